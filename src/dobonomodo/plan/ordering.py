"""The order in which rows of an output are shown."""

from __future__ import annotations

from dobonomodo.plan.planner import Plan
from dobonomodo.plan.relation import Group, walk_between
from dobonomodo.plan.step import Step
from dobonomodo.plan.system import is_system


def order_of(plan: Plan, step: Step) -> tuple[str, ...]:
    """The key of the rows that an output writes: the natural key of the input, then the group keys of rows that were added.

    Summary rows have no natural key, so they come first. Without either, all columns.
    """
    written = shown_columns(step)
    columns = step.before.columns
    named = [columns.spelling(name) for name in plan.input.natural_key]
    for earlier in plan.steps:
        if earlier.spec.seq < step.spec.seq and earlier.lowered.added is not None:
            named += [columns.spelling(name) for name in _group_keys(earlier)]
    order = tuple(name for name in dict.fromkeys(named) if name in written)
    return order or written


def shown_columns(step: Step) -> tuple[str, ...]:
    """The columns of an output that people read: those of the system only where there are no others."""
    columns = step.write.columns
    return tuple(name for name in columns if not is_system(name)) or columns


def _group_keys(step: Step) -> list[str]:
    between = walk_between(step.after.node, step.before.node)
    if step.lowered.shares is not None or not any(isinstance(node, Group) for node in between):
        return []
    return list(step.after.keys.get(step.spec.seq, ()))
