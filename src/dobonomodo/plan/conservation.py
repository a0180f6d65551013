"""Which operations can change the total of a column of the input, and which provably cannot. Known from the plan alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dobonomodo.formula import ColumnRef, Typed
from dobonomodo.formula.typed import Cast
from dobonomodo.formula.typed import Literal as Value
from dobonomodo.formula.types import is_number
from dobonomodo.plan.planner import Plan
from dobonomodo.plan.relation import Derive, Reshape
from dobonomodo.plan.step import Step
from dobonomodo.plan.system import is_system

Change = Literal["assigns", "deletes rows", "adds rows"]


@dataclass(frozen=True, slots=True)
class Conservation:
    """A numeric column of the input, and the operations that can change its total over the rows that are not deleted."""

    column: str
    changes: tuple[tuple[int, Change], ...]
    """The number of the operation, and how. All other operations leave the total as it is."""


def find_conservation(plan: Plan) -> tuple[Conservation, ...]:
    """Every numeric column of the input."""
    numeric = [name for name, kind in plan.start.columns.items() if is_number(kind) and not is_system(name)]
    return tuple(
        Conservation(name, tuple((step.spec.seq, how) for step in plan.steps for how in _find_changes(step, name)))
        for name in numeric
    )


def _find_changes(step: Step, column: str) -> list[Change]:
    shares = step.lowered.shares
    if shares is not None and shares.column == column and shares.conserves:
        return []
    found: list[Change] = []
    if _assigns(step, column):
        found.append("assigns")
    if step.deletes or (step.lowered.check is not None and step.lowered.check.excludes):
        found.append("deletes rows")
    if _adds(step, column):
        found.append("adds rows")
    return found


def _assigns(step: Step, column: str) -> bool:
    """Whether rows that are there get another value; a wider type alone changes none."""
    node = step.after.node
    if step.lowered.added is not None or node is step.before.node or not isinstance(node, Derive):
        return False
    return column in node.values and not _is_same(node.values[column], column)


def _is_same(value: Typed, column: str) -> bool:
    while isinstance(value, Cast):
        value = value.operand
    return isinstance(value, ColumnRef) and value.qualifier is None and value.name == column


def _adds(step: Step, column: str) -> bool:
    """Whether the rows that it adds can have a value in the column."""
    added = step.lowered.added
    if added is None:
        return False
    value = added.values.get(column) if isinstance(added, Reshape) else None
    return not (isinstance(value, Value) and value.value is None)
