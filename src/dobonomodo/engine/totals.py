"""Totals of numeric columns as aggregates of one observation: of loaded rows, of written rows, and of the changes by each operation.

A row that is observed when it is written has its whole history in hidden columns: which operations selected it, and what a
column was before an operation assigned it. So the value of a column after any operation is the value kept by the next one
that assigns it, or the value at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from typing import NamedTuple

from dobonomodo.engine.digest import ROWS, Metrics
from dobonomodo.engine.tracking import SEQ, WAS_ACTIVE, Kept, Mark, is_violated
from dobonomodo.formula.sql import quote_name
from dobonomodo.formula.typed import Literal
from dobonomodo.formula.types import DecimalType, Type, is_number
from dobonomodo.plan import Plan, Step
from dobonomodo.plan.counts import Totals
from dobonomodo.plan.relation import Derive, Reshape
from dobonomodo.plan.system import is_system

KEPT_AT_MOST = 50
"""Values that are kept in hidden columns. A column with more assignments than there is room for has no changes of its total."""
SUMS_AT_MOST = 200
"""Aggregates for changes of totals in one observation. Columns beyond them have none."""

_EXACT = Context(prec=100)


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of a column over some rows, as an aggregate."""

    column: str
    type: Type
    sql: str
    rows: str
    """The metric that counts these rows."""
    seq: int | None = None
    """The operation whose change it is part of; None for a total."""
    sign: int = 1
    deletes: bool = False
    """Whether the operation deletes these rows, so that they keep what they have."""

    def read(self, found: Decimal | int | None, rows: int) -> Decimal | None:
        """Its value. Spark returns NULL for no rows, and for a sum with too many digits."""
        if found is None:
            scale = self.type.scale if isinstance(self.type, DecimalType) else 0
            return Decimal((0, (0,), -scale)) if rows == 0 else None
        return _EXACT.multiply(Decimal(found), Decimal(self.sign))


class Known(NamedTuple):
    """For which rows at the end the totals are known without observing them."""

    active: bool = False
    everything: bool = False
    """All rows, of which none was deleted when it was loaded."""


class Ends(NamedTuple):
    """These totals, by column; None if unknown."""

    active: Totals | None = None
    everything: Totals | None = None

    @property
    def known(self) -> Known:
        """Which of them are known."""
        return Known(self.active is not None, self.everything is not None)


def _sum_where(condition: str, column: str, kind: Type) -> str:
    """SQL for the sum of a column over the rows for which a condition is true. An overflow returns NULL, never an error."""
    return f"try_sum(CASE WHEN {condition} THEN coalesce({quote_name(column)}, CAST(0 AS {kind.sql})) END)"


def numeric_columns(step: Step) -> dict[str, Type]:
    """The business columns of an output that have a total."""
    columns = step.before.columns
    return {name: columns[name] for name in step.write.columns if is_number(columns[name]) and not is_system(name)}


def written_sums(step: Step, chosen: str) -> dict[str, Sum]:
    """The totals of an output, by the names of their metrics; ``chosen`` is true for the rows that it writes."""
    return {
        f"total_{at}": Sum(name, kind, _sum_where(chosen, name, kind), ROWS)
        for at, (name, kind) in enumerate(numeric_columns(step).items())
    }


def read_totals(sums: Mapping[str, Sum], metrics: Metrics) -> Totals:
    """The totals that an observation found."""
    return {each.column: each.read(metrics[name], metrics[each.rows]) for name, each in sums.items()}


class History:
    """What every operation of a plan does to the numeric columns that outputs write."""

    def __init__(self, plan: Plan, mark_by_seq: Mapping[int, Mark]) -> None:
        self._plan, self._marks = plan, mark_by_seq
        self.kept: dict[int, tuple[Kept, ...]] = {}
        """By the identity of the node that assigns."""
        self._kept_by_column: dict[str, dict[int, Kept]] = {}
        """By the number of the operation in the plan; columns whose history is not known are not there."""
        self._keep()

    def _keep(self) -> None:
        """Choose the columns whose history is known, in the order of the outputs, up to the limit."""
        last: dict[str, int] = {}
        for number, step in enumerate(self._plan.steps):
            if step.lowered.write is not None:
                last |= dict.fromkeys(numeric_columns(step), number)
        wanted: dict[str, dict[int, Kept]] = {name: {} for name in last}
        for number, step in enumerate(self._plan.steps):
            for name in [each for each in wanted if number < last[each] and not self._is_known(step, each)]:
                del wanted[name]
            for name in self._assigned(step):
                if name in wanted and number < last[name] and name in step.before.columns:
                    wanted[name][number] = Kept(number, name, step.before.columns[name])
        left = KEPT_AT_MOST
        for name, kept in wanted.items():
            if len(kept) > left:
                continue
            left -= len(kept)
            self._kept_by_column[name] = kept
            for number, each in kept.items():
                node = id(self._plan.steps[number].after.node)
                self.kept[node] = (*self.kept.get(node, ()), each)

    def _assigned(self, step: Step) -> frozenset[str]:
        """The columns that an operation computes for the rows it selects."""
        node = step.after.node
        return frozenset(node.values) if step.spec.seq in self._marks and isinstance(node, Derive) else frozenset()

    def _is_known(self, step: Step, name: str) -> bool:
        """Whether an operation changes a column only by assigning it to selected rows."""
        if step.after.node is step.before.node:
            return True
        if step.lowered.added is None and step.spec.seq not in self._marks and not excludes(step):
            return False
        before, after = step.before.columns.get(name), step.after.columns.get(name)
        if before is None or before == after:
            return True
        return after is not None and is_number(before) and is_number(after)

    def sums(self, until: Step, known: Known) -> dict[str, Sum]:
        """Aggregates over the working dataset before an output: the loaded totals and all changes, by the names of their metrics.

        Sums that can be derived from the others and from known totals are left out.
        """
        found: dict[str, Sum] = {}
        for name, sums in self._all_sums(until).items():
            left_out = _find_left_out(sums, known)
            found |= {f"sum {name} {at}": each for at, each in enumerate(sums) if at not in left_out}
        return found

    def _all_sums(self, until: Step) -> dict[str, list[Sum]]:
        """By column. The first is usually over most of the rows: what was loaded, or what the first assignment made."""
        found: dict[str, list[Sum]] = {}
        room = SUMS_AT_MOST
        for name in numeric_columns(until):
            more = list(self._sums_of(name, until)) if name in self._kept_by_column else []
            if more and len(more) <= room:
                found[name] = more
                room -= len(more)
        return found

    def read(self, until: Step, metrics: Metrics, ends: Ends) -> dict[int | None, Totals]:
        """Loaded totals under None, changes by operation, from what was observed and what is known of the rows at the end.

        Rows that are active at the end were loaded or added, and not deleted: their total is the sum of all changes.
        Deleted rows keep what they had: they are the difference between all rows and the active ones.
        """
        found: dict[int | None, dict[str, Decimal | None]] = {}
        for name, sums in self._all_sums(until).items():
            left_out = _find_left_out(sums, ends.known)
            values = {
                at: each.read(metrics[f"sum {name} {at}"], metrics[each.rows])
                for at, each in enumerate(sums)
                if at not in left_out
            }
            active, everything = (ends.active or {}).get(name), (ends.everything or {}).get(name)
            if len(left_out) > 1:
                deleted = [values[at] for at, each in enumerate(sums) if each.deletes and at not in left_out]
                values[left_out[1]] = _subtract(active, [everything, *deleted])
            if left_out:
                values[0] = _subtract(active, list(values.values()))
            for at, each in enumerate(sums):
                totals = found.setdefault(each.seq, {})
                before, value = totals.get(name, Decimal(0)), _with_digits(values[at], each.type)
                totals[name] = _EXACT.add(before, value) if before is not None and value is not None else None
        return dict(found)

    def hidden(self, until: Step) -> list[str]:
        """The hidden columns that these aggregates read."""
        names = numeric_columns(until)
        found = [(number, each) for name in names for number, each in self._kept_by_column.get(name, {}).items()]
        return [each.name for number, each in found if self._plan.steps[number].spec.seq < until.spec.seq]

    def _sums_of(self, name: str, until: Step) -> Iterator[Sum]:
        """The loaded total of a column, and the change of the total by each operation before an output."""
        end = (name, until.before.columns[name])
        kept = self._kept_by_column[name]

        def value(*, after: int) -> tuple[str, Type]:
            """The hidden or visible column that holds its value after an operation."""
            for number, each in kept.items():
                if after < number and self._plan.steps[number].spec.seq < until.spec.seq:
                    return each.name, each.type
            return end

        def make(condition: str, source: tuple[str, Type], *, rows: str, seq: int | None = None, sign: int = 1) -> Sum:
            return Sum(name, source[1], _sum_where(condition, *source), rows, seq, sign)

        def deleted(condition: str, *, number: int, rows: str, seq: int) -> Sum:
            return replace(make(condition, value(after=number), rows=rows, seq=seq, sign=-1), deletes=True)

        if name in self._plan.start.columns:
            yield make(WAS_ACTIVE, value(after=-1), rows="active")
        for number, step in enumerate(self._plan.steps):
            seq, mark = step.spec.seq, self._marks.get(step.spec.seq)
            if seq >= until.spec.seq:
                return
            if step.lowered.added is not None:
                if _can_add_value(step, name):
                    yield make(f"{quote_name(SEQ)} = {seq}L", value(after=number), rows=f"added_{seq}", seq=seq)
                if step.deletes and mark is not None and name in step.before.columns:
                    yield deleted(mark.bit.is_set(), number=number, rows=f"selected_{seq}", seq=seq)
            elif excludes(step):
                if name in step.before.columns:
                    yield deleted(is_violated(seq), number=number, rows=excluded_by(seq), seq=seq)
            elif mark is None or name not in step.after.columns:
                continue
            elif step.deletes and name in step.before.columns:
                yield deleted(mark.bit.is_set(), number=number, rows=f"selected_{seq}", seq=seq)
            elif name in self._assigned(step):
                yield make(mark.bit.is_set(), value(after=number), rows=f"selected_{seq}", seq=seq)
                if number in kept:
                    before = kept[number].name, kept[number].type
                    yield make(mark.bit.is_set(), before, rows=f"selected_{seq}", seq=seq, sign=-1)


def _find_left_out(sums: list[Sum], known: Known) -> tuple[int, ...]:
    """The indexes of the sums of a column that are not needed: the first one, then one over deleted rows."""
    if not known.active:
        return ()
    deleted = [at for at, each in enumerate(sums) if each.deletes]
    return (0, deleted[-1]) if known.everything and deleted else (0,)


def _subtract(whole: Decimal | None, parts: Iterable[Decimal | None]) -> Decimal | None:
    """The total minus the others; None if one of them is unknown."""
    rest = whole
    for part in parts:
        if rest is None or part is None:
            return None
        rest = _EXACT.subtract(rest, part)
    return rest


def _with_digits(value: Decimal | None, kind: Type) -> Decimal | None:
    """A total with the scale of its column."""
    return value.quantize(Decimal((0, (1,), -_scale(kind))), context=_EXACT) if value is not None else None


def excludes(step: Step) -> bool:
    """Whether an operation is a check that deletes the rows which violate it."""
    return step.lowered.check is not None and step.lowered.check.excludes


def excluded_by(seq: int) -> str:
    """The metric that counts these rows."""
    return f"excluded_{seq}"


def _can_add_value(step: Step, name: str) -> bool:
    """Whether the rows that an operation adds can have a value in a column."""
    added = step.lowered.added
    value = added.values.get(name) if isinstance(added, Reshape) else None
    return name in step.after.columns and not (isinstance(value, Literal) and value.value is None)


def _scale(kind: Type) -> int:
    return kind.scale if isinstance(kind, DecimalType) else 0
