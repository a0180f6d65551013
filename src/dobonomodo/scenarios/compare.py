"""Compares expected with actual rows: exact, independent of order, with a readable difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dobonomodo.formula import Type
from dobonomodo.plan.system import is_system
from dobonomodo.problems.problem import did_you_mean
from dobonomodo.scenarios.scenario import ExpectedOutput
from dobonomodo.scenarios.values import ANYTHING, WrongValueError, read_values, show_value

Row = Mapping[str, object]
SHOWN_AT_MOST = 20


def compare_output(expected: ExpectedOutput, actual: Sequence[Row], columns: Mapping[str, Type]) -> list[str]:
    """The differences as lines; empty if all rows are as expected."""
    if expected.columns is not None and list(expected.columns) != list(columns):
        return [f"columns: expected {', '.join(expected.columns)}; got {', '.join(columns)}"]
    if expected.count is not None and len(actual) != expected.count:
        return [f"rows: expected {expected.count}, got {len(actual)}"]
    if expected.count is not None and not expected.rows:
        return []
    named = {name for row in expected.rows for name in row}
    unknown = [name for name in named if name not in columns]
    if unknown:
        hint = did_you_mean(unknown[0], tuple(columns))
        return [f"the output has no column `{unknown[0]}`; {hint}"]
    try:
        wanted = _read_rows(expected.rows, columns)
    except WrongValueError as fault:
        return [str(fault)]
    if expected.match == "exact":
        full = [{**{name: None for name in columns if not is_system(name)}, **row} for row in wanted]
        return _compare_all(full, actual, ordered=expected.ordered)
    return [f"missing  {_show(row)}" for row in wanted if not any(_matches(row, each) for each in actual)]


def _read_rows(rows: Sequence[Row], columns: Mapping[str, Type]) -> list[dict[str, object]]:
    read = [dict(row) for row in rows]
    for name, kind in columns.items():
        chosen = [row for row in read if name in row and not _is_anything(row[name])]
        for row, value in zip(chosen, read_values([row[name] for row in chosen], kind), strict=True):
            row[name] = value
    return read


def _is_anything(value: object) -> bool:
    return isinstance(value, str) and value == ANYTHING


def _matches(expected: Row, actual: Row) -> bool:
    return all(_equal(value, actual[name]) for name, value in expected.items())


def _equal(expected: object, actual: object) -> bool:
    if _is_anything(expected):
        return actual is not None
    return bool(expected == actual) and (expected is None) == (actual is None)


def _compare_all(expected: Sequence[Row], actual: Sequence[Row], *, ordered: bool) -> list[str]:
    if ordered:
        pairs = list(zip(expected, actual, strict=False))
        lines = [line for want, got in pairs for line in ([] if _matches(want, got) else [_changed(want, got)])]
        lines += [f"missing  {_show(row)}" for row in expected[len(pairs) :]]
        return lines + [f"extra    {_show(_like(row, expected))}" for row in actual[len(pairs) :]]
    left = list(actual)
    missing: list[Row] = []
    # Rows that leave less open find their match first, so that `*` does not take it from them.
    for row in sorted(expected, key=lambda each: sum(value == ANYTHING for value in each.values())):
        found = next((at for at, each in enumerate(left) if _matches(row, each)), None)
        if found is None:
            missing.append(row)
        else:
            del left[found]
    lines = []
    for row in missing:
        near = max(left, key=lambda each: _likeness(row, each), default=None)
        if near is not None and _likeness(row, near) * 2 >= len(row):
            left.remove(near)
            lines.append(_changed(row, near))
        else:
            lines.append(f"missing  {_show(row)}")
    lines += [f"extra    {_show(_like(row, expected))}" for row in left]
    if len(lines) > SHOWN_AT_MOST:
        lines = [*lines[:SHOWN_AT_MOST], f"and {len(lines) - SHOWN_AT_MOST} more differences"]
    return lines


def _likeness(expected: Row, actual: Row) -> int:
    return sum(_equal(value, actual[name]) for name, value in expected.items())


def _changed(expected: Row, actual: Row) -> str:
    same = {name: value for name, value in expected.items() if _equal(value, actual[name]) and value is not None}
    cells = [
        f"{name}: {show_value(value)} -> {show_value(actual[name])}"
        for name, value in expected.items()
        if not _equal(value, actual[name])
    ]
    keys = ", ".join(f"{name}={show_value(value)}" for name, value in list(same.items())[:3])
    return f"changed  {keys or 'row'}: {'; '.join(cells)}"


def _like(row: Row, expected: Sequence[Row]) -> Row:
    """The columns of a row that the expectation talks about."""
    names = {name for each in expected for name in each} or set(row)
    return {name: value for name, value in row.items() if name in names}


def _show(row: Row) -> str:
    return ", ".join(f"{name}={show_value(value)}" for name, value in row.items() if value is not None) or "(all NULL)"
