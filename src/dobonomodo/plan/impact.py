"""The impact of a new version of a dataset on a plan for an older one."""

from __future__ import annotations

from dataclasses import dataclass

from dobonomodo.formula import Type
from dobonomodo.model.dataset import Dataset, TableTarget
from dobonomodo.plan.dataset import column_types
from dobonomodo.plan.planner import Plan
from dobonomodo.plan.step import Step
from dobonomodo.plan.system import TEMPORAL
from dobonomodo.problems import OperationRef


@dataclass(frozen=True, slots=True)
class ColumnConflict:
    """A column that operations use, and that was removed or changed its type."""

    column: str
    before: str
    after: str | None
    """Its new type; None when it was removed."""
    operations: tuple[OperationRef, ...]

    @property
    def change(self) -> str:
        """What happened to it, in words."""
        return "removed" if self.after is None else f"{self.before} became {self.after}"

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        operations = [{"seq": each.seq, "name": each.name} for each in self.operations]
        return {"column": self.column, "change": self.change, "operations": operations}


def find_conflicts(plan: Plan, dataset: Dataset) -> tuple[ColumnConflict, ...]:
    """The used columns of the input that a new version removes or gives another type. New columns do no harm."""
    before = {**plan.input.columns, **TEMPORAL[plan.input.temporal_mode]}
    before |= {
        f"{alias}.{name}": kind for alias, columns in plan.start.joined.items() for name, kind in columns.items()
    }
    table = dataset.main_table
    after: dict[str, Type] = {**column_types(table.columns), **TEMPORAL[table.temporal_mode]}
    for lookup in dataset.lookups:
        if isinstance(lookup.target, TableTarget):
            columns = {**column_types(lookup.target.columns), **TEMPORAL[lookup.target.temporal_mode]}
        else:
            columns = dict(plan.start.joined.get(lookup.alias, {}))
        after |= {f"{lookup.alias}.{name}": kind for name, kind in columns.items()}
    now = {name.casefold(): kind for name, kind in after.items()}
    conflicts = []
    for name, kind in before.items():
        changed = now.get(name.casefold())
        if changed == kind:
            continue
        users = tuple(step.spec.ref for step in plan.steps if _uses(step, name, is_gone=changed is None))
        if users:
            conflicts.append(ColumnConflict(name, str(kind), None if changed is None else str(changed), users))
    return tuple(conflicts)


def _uses(step: Step, name: str, *, is_gone: bool) -> bool:
    """Whether an operation needs a column as the input has it. A column that is only set may go, not change its type."""
    lowered = step.lowered
    if name not in lowered.reads and (is_gone or name not in lowered.sets):
        return False
    origin = step.before.origins.get(name)
    return origin is not None and any(each.endswith(f".{name}") for each in origin.inputs)
