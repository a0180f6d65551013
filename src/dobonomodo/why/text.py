"""An explanation as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dobonomodo.formula.meaning import Value
from dobonomodo.plan.system import is_system
from dobonomodo.why.explanation import (
    Contribution,
    Contributor,
    Evaluated,
    Explanation,
    JoinedRow,
    StoredPlace,
    Summary,
    Touch,
    columns_behind,
    show,
    with_relevant,
)

_WIDEST = 60
"""Cells for a part of a formula; longer ones push the rest of the line to the right."""
_LABEL = 11


def render_text(explanation: Explanation) -> Iterator[str]:
    """The row, then what each operation did with it, the last first, then where it comes from."""
    yield _head(explanation)
    names = {written: name for written, name in explanation.names.items() if explanation.column in (None, written)}
    if names and explanation.contribution is None:
        yield f"in the operations: {', '.join(f'{name} for {written}' for written, name in names.items())}"
    yield ""
    for touch in with_relevant(explanation.operations, explanation.asked):
        yield from render_touch(touch)
    if isinstance(explanation.origin, Summary):
        yield from _summary(explanation.origin, columns_behind(explanation.operations, explanation.asked))
    elif explanation.origin is not None:
        yield from _loaded(explanation.origin)
    yield _proof(explanation)


def _head(explanation: Explanation) -> str:
    where = f"{explanation.table}, period {explanation.period}, run {explanation.run}"
    row = _values(explanation.key)
    if explanation.contribution is not None:
        return f"{_part(explanation.contribution)}    {_name(explanation)} of {where}"
    if explanation.column is not None:
        return f"{explanation.column} = {show(explanation.row[explanation.column])}    {row} of {where}"
    values = ", ".join(f"{name} {show(value)}" for name, value in explanation.row.items() if not is_system(name))
    return f"{row} of {where}: {values}"


def _part(contribution: Contribution) -> str:
    """What a row adds, of what."""
    whole = contribution.to.origin
    totals = whole.totals if isinstance(whole, Summary) else {}
    shown = (f"{name} {show(value)} of {show(totals[name].value)}" for name, value in contribution.amounts.items())
    return ", ".join(shown) or "a contributor"


def _name(explanation: Explanation) -> str:
    """The row by its key, and the totals that it contributes to."""
    own, to = _values(explanation.key), explanation.contribution
    if to is None:
        return own
    return f"{own}, {'the only row' if to.rows == 1 else f'one of {to.rows:,} rows'} of {_name(to.to)}"


def render_touch(touch: Touch) -> Iterator[str]:
    """An operation, and what it did with the row."""
    title = f"{touch.seq:<3} {touch.name}" + (f" ({touch.type})" if touch.type else "")
    left_out = [name for name in touch.sets if name not in touch.values] if touch.effect == "selected" else []
    is_short = not (touch.values or touch.reads or touch.joins or touch.condition)
    if touch.effect != "selected" or is_short:
        title += f": {touch.effect}" + (f", set {', '.join(left_out)}" if left_out else "")
    yield title
    labelled = [*([("selected", touch.condition)] if touch.condition is not None else []), *touch.values.items()]
    labelled += [(f"{name} reads", each) for name, read in touch.reads.items() for each in read]
    width = max([_LABEL, *(len(name) for name, _ in labelled), *(len(join.alias) for join in touch.joins)])
    for name, each in labelled:
        yield from _formula(name, each, width)
    for join in touch.joins:
        yield from _join(join, width)


def _formula(name: str, each: Evaluated, width: int) -> Iterator[str]:
    """The formula as it was written, and below it each part with its values; the whole comes last."""
    if not each.parts:
        yield f"    {name:<{width}} {each.text}    {show(each.value)}"
        return
    yield f"    {name:<{width}} {each.text}"
    *inner, whole = each.parts
    first = min(_WIDEST, max([len(part.text) for part in inner], default=0))
    second = min(_WIDEST, max(len(part.values) for part in each.parts))
    for part in inner:
        yield f"    {'':<{width}} {part.text:<{first}}  {part.values:<{second}}  {show(part.value)}"
    shown = f"{'':<{first}}  {whole.values:<{second}}" if inner else f"{whole.values}"
    yield f"    {'':<{width}} {shown}  {show(whole.value)}"


def _join(join: JoinedRow, width: int) -> Iterator[str]:
    if join.row is None:
        wanted = f"has {_values(join.wanted)}" if join.wanted else "matches"
        yield f"    {join.alias:<{width}} no row of {join.dataset} {wanted}, on {join.text}"
        return
    yield f"    {join.alias:<{width}} {_place(join.row)}, on {join.text}"
    yield from _further(join.row)


def _place(row: StoredPlace) -> str:
    key = _values(row.key)
    return f"row {key + ' ' if key else ''}of {row.dataset} v{row.version} ({row.place})"


def _loaded(row: StoredPlace) -> Iterator[str]:
    yield f"0   loaded from {row.dataset} v{row.version} ({row.place}): {_values(row.values)}"
    yield from _further(row)


def _further(row: StoredPlace) -> Iterator[str]:
    if row.further is not None:
        yield from (f"    | {line}" for line in render_text(row.further))


def _summary(summary: Summary, columns: frozenset[str] | None) -> Iterator[str]:
    rows = "1 row" if summary.rows == 1 else f"{summary.rows:,} rows"
    totals = {name: each for name, each in summary.totals.items() if columns is None or name in columns}
    width = max([_LABEL, *map(len, totals)])
    yield f"    {'group':<{width}} {_values(summary.key) or 'all rows'}: {rows}"
    for name, total in totals.items():
        words = "" if name in summary.sums else ", which is not a sum of amounts of rows"
        yield f"    {name:<{width}} {total.text} = {show(total.value)}{words}"
    if summary.contributors:
        shown = len(summary.contributors)
        yield f"    {_title(shown, of=summary.rows)}:"
    keys = [_values(each.key) for each in summary.contributors]
    amounts = [_amounts(each, columns) for each in summary.contributors]
    first, second = (min(_WIDEST, max(map(len, cells), default=0)) for cells in (keys, amounts))
    for key, amount, each in zip(keys, amounts, summary.contributors, strict=True):
        yield f"      {key:<{first}}  {amount:<{second}}  {each.place or ''}".rstrip()


def _amounts(each: Contributor, columns: frozenset[str] | None) -> str:
    """What a row adds, and what is read of it for totals to which it adds nothing."""
    added = {name: value for name, value in each.amounts.items() if columns is None or name in columns}
    read: dict[str, Value] = {}
    for name, arguments in each.reads.items():
        read |= arguments if columns is None or name in columns else {}
    return "; ".join([*([_values(added)] if added else []), *([f"reads {_values(read)}"] if read else [])])


def _title(shown: int, *, of: int) -> str:
    if shown == of:
        return "contributors"
    return "the largest contributor" if shown == 1 else f"the {shown} largest contributors"


def _values(row: Mapping[str, Value]) -> str:
    return ", ".join(f"{name} {show(value)}" for name, value in row.items())


def _proof(explanation: Explanation) -> str:
    if explanation.contribution is not None:
        stored = explanation
        while stored.contribution is not None:
            stored = stored.contribution.to
        return f"{_proof(stored)}, and this row leads to it"
    if explanation.column is not None:
        return f"proved: recomputed {explanation.column} equals the stored value"
    return f"proved: all {len(explanation.row)} recomputed values equal the stored ones"
