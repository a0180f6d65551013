"""One operation of a plan, with the rows before and after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dobonomodo.formula import Type
from dobonomodo.model.operation import OperationSpec
from dobonomodo.plan.operations.lowered import Lowered
from dobonomodo.plan.operations.operation import Effect, Facts, Operation
from dobonomodo.plan.relation import Rel, Write
from dobonomodo.plan.rows import Rows
from dobonomodo.plan.system import LABELS, is_system


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One operation of a plan: the rows before and after it, and what it does."""

    spec: OperationSpec
    operation: type[Operation]
    before: Rows
    lowered: Lowered
    selectors: Mapping[str, str]
    """The named conditions of the project."""

    @property
    def facts(self) -> Facts:
        """The facts of its operation type."""
        return self.operation.facts

    @property
    def deletes(self) -> bool:
        """Whether it marks the rows that it selects as deleted."""
        shares = self.lowered.shares
        return Effect.DELETES in self.facts.effect or (shares is not None and shares.deletes)

    @property
    def after(self) -> Rows:
        """The working dataset that the next operation sees."""
        return self.lowered.rows

    @property
    def write(self) -> Write:
        """What it writes; only an output does."""
        if self.lowered.write is None:
            raise AssertionError("only outputs write")
        return self.lowered.write

    @property
    def top(self) -> Rel:
        """The node that the operation ends in: the rows it writes, else the rows after it."""
        return self.lowered.write.rows if self.lowered.write else self.after.node

    def describe(self) -> list[str]:
        """What it does, in lines for people."""
        return self.operation.describe(self)

    def added_columns(self) -> dict[str, Type]:
        """Columns that this operation makes."""
        return {name: kind for name, kind in self.after.columns.items() if name not in self.before.columns}

    def changed_columns(self) -> dict[str, tuple[Type, Type]]:
        """Columns that this operation sets, with their type before and after."""
        before, after = self.before, self.after
        return {
            name: (before.columns[name], kind)
            for name, kind in after.columns.items()
            if name in before.columns
            and (before.columns[name] != kind or before.origins.get(name) != after.origins.get(name))
        }

    def shown_changes(self) -> dict[str, tuple[Type, Type]]:
        """The columns that it sets, without those that every operation sets."""
        return {
            name: change for name, change in self.changed_columns().items() if name == LABELS or not is_system(name)
        }

    def show_column(self, name: str) -> str:
        """A column with what the operation does to its type."""
        if name not in self.before.columns:
            return f"{name} (new, {self.after.columns[name]})"
        before, after = self.before.columns[name], self.after.columns[name]
        return name if before == after else f"{name} ({before} becomes {after})"
