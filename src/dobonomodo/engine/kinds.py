"""Kinds of rows in an output: loaded rows, and rows that an operation added, per level.

An output may mix details with their totals, or actual with budget. One sum over all of them is meaningless, so each kind
has its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dobonomodo.engine.digest import ROWS, Metrics
from dobonomodo.engine.totals import Sum, numeric_columns, read_totals, written_sums
from dobonomodo.engine.tracking import SEQ
from dobonomodo.formula import ColumnRef
from dobonomodo.formula.sql import quote_name, quote_text
from dobonomodo.formula.typed import Literal, Operation
from dobonomodo.plan import Plan, Step
from dobonomodo.plan.condition import parts_of
from dobonomodo.plan.counts import KindTotals
from dobonomodo.plan.levels import LEVEL
from dobonomodo.plan.relation import Expand, Keep, walk_between
from dobonomodo.plan.system import OPERATION_SEQ

SUMS_AT_MOST = 60
"""Aggregates for totals of kinds in one output."""
_METRIC = "kind "


@dataclass(frozen=True, slots=True)
class Kind:
    """Rows of the same origin."""

    seq: int
    """The operation that added them; 0 if they were loaded."""
    name: str
    level: str | None = None
    level_column: str | None = None

    @property
    def metric(self) -> str:
        """The name of the metric that counts them, the same for all outputs."""
        return f"{_METRIC}{self.seq} {self.level or ''}"

    def condition(self, *, tracked: bool) -> str:
        """SQL condition for these rows. ``tracked``: they also have hidden columns, which are not written."""
        made = f"{quote_name(SEQ if tracked else OPERATION_SEQ)} = {self.seq}L"
        if self.level is None or self.level_column is None:
            return made
        column = _hidden(self.level_column) if tracked else self.level_column
        return f"{made} AND {quote_name(column)} = {quote_text(self.level)}"


def _hidden(level_column: str) -> str:
    return f" level {level_column}"


def carry_levels(kinds: Sequence[Kind]) -> list[str]:
    """SQL for hidden columns that tell levels apart, whether they are written or not."""
    names = dict.fromkeys(kind.level_column for kind in kinds if kind.level_column is not None)
    return [f"{quote_name(name)} AS {quote_name(_hidden(name))}" for name in names]


def find_kinds(plan: Plan, step: Step) -> tuple[Kind, ...]:
    """The kinds of rows that an output may hold according to its plan."""
    found = [Kind(0, "")]
    for each in plan.steps:
        if each.spec.seq < step.spec.seq and each.lowered.added is not None:
            found += _levels_of(each)
    only = _chosen_seq(step)
    return tuple(kind for kind in found if only is None or kind.seq == only)


def _levels_of(step: Step) -> Iterator[Kind]:
    seq, name = step.spec.seq, step.spec.name
    column = step.after.levels.get(seq)
    expanded = [node for node in walk_between(step.top, step.before.node) if isinstance(node, Expand)]
    if column is None or not expanded:
        yield Kind(seq, name)
        return
    levels = (choice[LEVEL] for node in expanded for choice in node.choices)
    names = dict.fromkeys(str(each.value) for each in levels if isinstance(each, Literal))
    yield from (Kind(seq, name, level, column) for level in names)


def _chosen_seq(step: Step) -> int | None:
    """The operation whose rows alone an output writes, if its selector says so."""
    rows = step.write.rows
    for part in parts_of(rows.condition) if isinstance(rows, Keep) else ():
        match part:
            case Operation("=", (ColumnRef() as column, Literal() as value)) if column.name == OPERATION_SEQ:
                return value.value if isinstance(value.value, int) else None
    return None


def sum_kinds(step: Step, kinds: Sequence[Kind], *, chosen: str, tracked: bool) -> dict[str, Sum]:
    """The totals of each kind, by the names of their metrics."""
    found: dict[str, Sum] = {}
    for kind in kinds:
        condition = f"{chosen} AND {kind.condition(tracked=tracked)}"
        for at, (name, type_) in enumerate(numeric_columns(step).items()):
            zero = f"CAST(0 AS {type_.sql})"
            # Other rows add zero rather than NULL, so that sums of parts can be added.
            value = f"CASE WHEN {condition} THEN coalesce({quote_name(name)}, {zero}) ELSE {zero} END"
            found[f"{kind.metric} total {at}"] = Sum(name, type_, f"try_sum({value})", ROWS)
    return found


def count_kinds(kinds: Sequence[Kind], *, chosen: str, tracked: bool) -> dict[str, str]:
    """SQL for the number of rows of each kind."""
    return {
        kind.metric: f"sum(CASE WHEN {chosen} AND {kind.condition(tracked=tracked)} THEN 1L ELSE 0L END)"
        for kind in kinds
    }


def can_be_summed(step: Step, kinds: Sequence[Kind], *, tracked: bool) -> bool:
    """Whether there are several kinds, not too many, and hidden or written columns distinguish them."""
    needed = {OPERATION_SEQ, *(kind.level_column for kind in kinds if kind.level_column is not None)}
    few = len(kinds) * (1 + len(numeric_columns(step))) <= SUMS_AT_MOST
    return len(kinds) > 1 and few and (tracked or needed <= set(step.write.columns))


def without_kinds(metrics: Metrics) -> Metrics:
    """The metrics of another output, without those of its kinds of rows."""
    return {name: value for name, value in metrics.items() if not name.startswith(_METRIC)}


def read_kinds(step: Step, kinds: Sequence[Kind], metrics: Metrics) -> tuple[KindTotals, ...] | None:
    """The kinds that have rows; empty if there is at most one, None if unknown."""
    if len(kinds) < 2:
        return ()
    found = list_kinds(step, kinds, metrics)
    return found if found is None or len(found) > 1 else ()


def list_kinds(step: Step, kinds: Sequence[Kind], metrics: Metrics) -> tuple[KindTotals, ...] | None:
    """The same, with a single kind too."""
    if len(kinds) == 1 and metrics[ROWS]:
        (kind,) = kinds
        totals = read_totals(written_sums(step, "TRUE"), metrics)
        return (KindTotals(kind.seq, kind.name, kind.level, metrics[ROWS], totals),)
    if len(kinds) > 1 and any(kind.metric not in metrics for kind in kinds):
        return None
    found = []
    for kind in kinds if len(kinds) > 1 else ():
        totals = read_totals(sum_kinds(step, (kind,), chosen="TRUE", tracked=True), metrics)
        if rows := int(metrics[kind.metric] or 0):
            found.append(KindTotals(kind.seq, kind.name, kind.level, rows, totals))
    if sum(each.rows for each in found) != metrics[ROWS]:
        # An operation has given a row another level.
        return None
    return tuple(found)
