"""Evaluates the checks of a plan: from metrics observed while outputs are written, otherwise in separate jobs.

Hidden columns keep the values that a check reads, so that rows are observed while they are written and are not read again. Checks
per group, and checks against other datasets, need one additional aggregate.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Context, Decimal
from typing import TYPE_CHECKING

from dobonomodo.engine.digest import Metrics
from dobonomodo.engine.frames import Frames
from dobonomodo.engine.needs import names_in
from dobonomodo.engine.tracking import HiddenValue, check_column, count_where, is_violated
from dobonomodo.formula import ColumnRef, Typed, rewrite
from dobonomodo.formula.sql import quote_name
from dobonomodo.formula.typed import Literal
from dobonomodo.formula.types import INTEGER
from dobonomodo.plan import Plan, Step
from dobonomodo.plan.check import ROWS, Check, CheckResult, GroupCondition, RowCondition
from dobonomodo.plan.expression import FALSE, coalesce, if_else, integer, null
from dobonomodo.plan.relation import Rel
from dobonomodo.problems.problem import LISTED_AT_MOST
from dobonomodo.problems.run import Cells

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

_EXACT = Context(prec=100)
_NULL = "NULL"
_HOLDS, _LEFT, _RIGHT = " holds", " left", " right"


class Checking:
    """The checks of one run that are not evaluated yet."""

    def __init__(self, plan: Plan, *, skip: Collection[int] = ()) -> None:
        self._pending = {
            step.spec.seq: (step, step.lowered.check)
            for step in plan.steps
            if step.lowered.check is not None and step.spec.seq not in skip
        }
        self.values: dict[int, tuple[HiddenValue, ...]] = {}
        """What is kept of rows, by the identity of the node whose rows they are."""
        self._metrics: dict[int, dict[str, str | Typed]] = {}
        self._names: dict[int, set[str]] = {}
        self._kept: dict[tuple[int, Typed], str] = {}
        for seq, (step, check) in self._pending.items():
            self._metrics[seq], self._names[seq] = {}, set()
            if isinstance(check.condition, RowCondition):
                self._keep_row(step, check.condition)
            else:
                self._keep_measures(step, check.condition)

    def _keep(self, seq: int, node: Rel, name: str, value: Typed) -> str:
        """The hidden column that keeps a value of a node's rows; checks that read the same value share it."""
        known = self._kept.setdefault((id(node), value), name)
        if known == name:
            self.values[id(node)] = (*self.values.get(id(node), ()), HiddenValue(name, value))
        self._names[seq].add(known)
        return known

    def _keep_selected(self, seq: int, node: Rel, selected: Typed) -> None:
        """Whether a row is selected, and how many are."""
        name = self._keep(seq, node, f" reached{seq}", if_else(selected, integer(1), null(INTEGER)))
        self._metrics[seq][f"selected_{seq}"] = f"count({quote_name(name)})"

    def _keep_row(self, step: Step, condition: RowCondition) -> None:
        """Whether a row is selected, and whether it violates the condition."""
        seq = step.spec.seq
        self._keep_selected(seq, condition.rows, condition.selected)
        name = check_column(seq)
        self.values[id(condition.rows)] += (HiddenValue(name, coalesce(condition.violated, FALSE)),)
        self._names[seq].add(name)
        self._metrics[seq][f"violations_{seq}"] = count_where(is_violated(seq))

    def _keep_measures(self, step: Step, condition: GroupCondition) -> None:
        """The operand of every aggregate, for the rows that count; an operation that selects rows counts them."""
        seq = step.spec.seq
        if step.lowered.selected is not None:
            self._keep_selected(seq, step.before.node, step.lowered.selected)
        for measure in condition.measures:
            (operand,) = measure.aggregate.operands
            value = if_else(measure.selected, operand, null(operand.type))
            hidden = self._keep(seq, measure.rows, f" measure{seq}{measure.name}", value)
            over = replace(measure.aggregate, operands=(ColumnRef(hidden, None, operand.type),))
            self._metrics[seq][_metric(seq, measure.name)] = over

    def read(self) -> Iterator[tuple[Rel, Iterable[str]]]:
        """The columns that are read of the rows which violate a check, to show some of them."""
        for _, check in self._pending.values():
            condition = check.condition
            if isinstance(condition, RowCondition):
                yield condition.rows, (*names_in(condition.selected, condition.violated), *condition.shown)

    def metrics(self, frames: Frames, until: Step) -> dict[str, str]:
        """SQL aggregates over the working dataset before an output, for the checks that this output can evaluate."""
        there = set(frames.trackers(until.before.node))
        return {
            name: sql if isinstance(sql, str) else frames.sql(sql)
            for seq, metrics in self._metrics.items()
            if seq in self._pending and self._names[seq] <= there
            for name, sql in metrics.items()
        }

    def take(self, frames: Frames, spark: SparkSession, metrics: Metrics) -> tuple[CheckResult, ...]:
        """The results of the checks whose metrics are in an observation."""
        found = []
        for seq, (_, check) in list(self._pending.items()):
            wanted = self._metrics[seq]
            if not wanted or not set(wanted) <= set(metrics):
                continue
            condition = check.condition
            if isinstance(condition, RowCondition):
                reached, violations = metrics[f"selected_{seq}"], metrics[f"violations_{seq}"]
                found.append(_judge_rows(frames, check, condition, reached, violations))
            elif condition.measures:
                values = {each.name: metrics[_metric(seq, each.name)] for each in condition.measures}
                found.append(_judge_total(frames, spark, check, condition, values))
            else:
                continue
            del self._pending[seq]
        return tuple(found)

    def evaluate(self, frames: Frames, step: Step) -> CheckResult:
        """The result of a check that no observation covers, computed in a separate job."""
        _, check = self._pending.pop(step.spec.seq)
        condition = check.condition
        if isinstance(condition, GroupCondition):
            return _judge_groups(frames, check, condition)
        ((reached, violations),) = _count_rows(frames, [condition])
        return _judge_rows(frames, check, condition, reached, violations)

    @property
    def pending(self) -> tuple[Step, ...]:
        """The operations whose checks are not evaluated yet."""
        return tuple(step for step, _ in self._pending.values())


def evaluate_contracts(frames: Frames, contracts: Sequence[Check]) -> tuple[CheckResult, ...]:
    """Evaluate the checks of datasets: one job for all row checks of a reading, one job for each other check."""
    counts: dict[int, tuple[int, int]] = {}
    by_rows: dict[int, list[tuple[int, RowCondition]]] = {}
    for number, check in enumerate(contracts):
        if isinstance(check.condition, RowCondition):
            by_rows.setdefault(id(check.condition.rows), []).append((number, check.condition))
    for group in by_rows.values():
        found = _count_rows(frames, [condition for _, condition in group])
        counts |= {number: count for (number, _), count in zip(group, found, strict=True)}
    results = []
    for number, check in enumerate(contracts):
        if isinstance(check.condition, RowCondition):
            results.append(_judge_rows(frames, check, check.condition, *counts[number]))
        else:
            results.append(_judge_groups(frames, check, check.condition))
    return tuple(results)


def _count_rows(frames: Frames, conditions: Sequence[RowCondition]) -> list[tuple[int, int]]:
    """For each condition on the same rows: the number of selected rows and of violations. One job."""
    sql = [f"count_if({frames.sql(part)})" for each in conditions for part in (each.selected, each.violated)]
    row = frames.make(conditions[0].rows).selectExpr(*sql).first()
    found = [int(each) for each in row] if row is not None else [0] * len(sql)
    return list(zip(found[::2], found[1::2], strict=True))


def _judge_rows(frames: Frames, check: Check, condition: RowCondition, reached: int, violations: int) -> CheckResult:
    sample: tuple[Cells, ...] = ()
    if violations:
        sample = _sample(frames.make(condition.rows).where(frames.sql(condition.violated)), condition.shown)
    return check.result(reached=reached, violations=violations, sample=sample)


def _judge_total(
    frames: Frames, spark: SparkSession, check: Check, condition: GroupCondition, values: Metrics
) -> CheckResult:
    """Evaluate a condition on observed totals: each total replaces its column as a literal."""

    def change(node: Typed) -> Typed | None:
        if isinstance(node, ColumnRef) and node.name in values:
            return Literal(values[node.name], node.type)
        return None

    sides = [rewrite(each, change) if each is not None else None for each in _parts(condition)]
    row = spark.range(1).selectExpr(*_columns(frames, sides)).first()
    reached = sum(value for name, value in values.items() if name.startswith(ROWS))
    return _result_of(check, row, reached)


def _judge_groups(frames: Frames, check: Check, condition: GroupCondition) -> CheckResult:
    """Evaluate a condition on groups: the number of groups, the number of violations, and the first violations."""
    keys = [f"{quote_name(f'#{name}')} AS {quote_name(name)}" for name in condition.keys]
    rows = f"{quote_name(ROWS)} AS {quote_name(ROWS)}"
    judged = frames.make(condition.groups).selectExpr(*keys, rows, *_columns(frames, _parts(condition)))
    if not condition.keys:
        row = judged.first()
        return _result_of(check, row, row[ROWS] if row is not None else 0)
    violated = f"NOT coalesce({quote_name(_HOLDS)}, FALSE)"
    counts = judged.selectExpr("count(1)", f"count_if({violated})").first()
    reached, violations = (counts[0], counts[1]) if counts is not None else (0, 0)
    named = {_LEFT: "left", _RIGHT: "right"} if condition.left is not None else {}
    sample = _sample(judged.where(violated), (*condition.keys, *named)) if violations else ()
    renamed = [tuple((named.get(name, name), value) for name, value in row) for row in sample]
    shown = tuple(map(with_difference, renamed)) if condition.compares_numbers else tuple(renamed)
    return check.result(reached=reached, violations=violations, sample=shown)


def with_difference(row: Cells) -> Cells:
    """A row that ends with two numbers, and their difference."""
    (_, left), (_, right) = row[-2:]
    difference = _subtract(left, right)
    return row if difference is None else (*row, ("difference", difference))


def _metric(seq: int, name: str) -> str:
    return f"check_{seq}_{name.removeprefix('=')}"


def _parts(condition: GroupCondition) -> list[Typed | None]:
    return [condition.holds, condition.left, condition.right]


def _columns(frames: Frames, parts: Iterable[Typed | None]) -> list[str]:
    holds, left, right = parts
    found = [f"{frames.sql(holds)} AS {quote_name(_HOLDS)}"] if holds is not None else []
    for name, side in ((_LEFT, left), (_RIGHT, right)):
        shown = f"CAST({frames.sql(side)} AS STRING)" if side is not None else "CAST(NULL AS STRING)"
        found.append(f"{shown} AS {quote_name(name)}")
    return found


def _result_of(check: Check, row: Row | None, reached: int) -> CheckResult:
    if row is None:
        return check.result(reached=0, violations=0)
    left, right = row[_LEFT], row[_RIGHT]
    violations = 0 if row[_HOLDS] else 1
    compares = isinstance(check.condition, GroupCondition) and check.condition.compares_numbers
    difference = _subtract(left, right) if compares else None
    return check.result(reached=reached, violations=violations, left=left, right=right, difference=difference)


def _subtract(left: str | None, right: str | None) -> str | None:
    """The difference of two numbers as text; None if one of them is NULL."""
    if left is None or right is None or _NULL in (left, right):
        return None
    return f"{_EXACT.subtract(Decimal(left), Decimal(right)):f}"


def _sample(rows: DataFrame, columns: Collection[str]) -> tuple[Cells, ...]:
    """The first rows ordered by some columns, as text, for a message. Their number is limited."""
    shown = [f"CAST({quote_name(name)} AS STRING) AS {quote_name(name)}" for name in columns]
    if not shown:
        return ()
    ordered = rows.orderBy(*(quote_name(name) for name in columns)).selectExpr(*shown).limit(LISTED_AT_MOST)
    return tuple(
        tuple((name, _NULL if row[name] is None else str(row[name])) for name in columns) for row in ordered.collect()
    )
