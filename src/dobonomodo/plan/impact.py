"""What a new version of a dataset means for a plan that was made with an older one."""

from __future__ import annotations

from dataclasses import dataclass

from dobonomodo.model.dataset import Dataset
from dobonomodo.plan.dataset import column_types
from dobonomodo.plan.planner import Plan
from dobonomodo.problems import OperationRef


@dataclass(frozen=True, slots=True)
class ColumnConflict:
    """A column that operations use and that is no longer what it was."""

    column: str
    before: str
    after: str | None
    """Its new type; None when it was removed."""
    operations: tuple[OperationRef, ...]

    @property
    def change(self) -> str:
        """What happened to it, in words."""
        return "removed" if self.after is None else f"{self.before} became {self.after}"


def find_conflicts(plan: Plan, dataset: Dataset) -> tuple[ColumnConflict, ...]:
    """The used columns of the input that a new version removes or gives another type. New columns harm nobody."""
    new = {name.casefold(): kind for name, kind in column_types(dataset.main_table.columns).items()}
    conflicts = []
    for name, kind in plan.input.columns.items():
        now = new.get(name.casefold())
        if now == kind:
            continue
        users = tuple(
            step.spec.ref for step in plan.steps if name in step.lowered.reads and _is_loaded(plan, name, step.spec.seq)
        )
        if users:
            conflicts.append(ColumnConflict(name, str(kind), None if now is None else str(now), users))
    return tuple(conflicts)


def _is_loaded(plan: Plan, name: str, seq: int) -> bool:
    """Whether a column still has values of the input when an operation runs."""
    before = next(step.before for step in plan.steps if step.spec.seq == seq)
    origin = before.origins.get(name)
    return origin is not None and f"{plan.input.dataset_id}.{name}" in origin.inputs
