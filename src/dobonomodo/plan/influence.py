"""What an operation can change in the outputs after it, by lineage: columns, or the set of rows. The result is an upper bound:

unknown influence counts as a change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dobonomodo.formula import Typed, columns_of
from dobonomodo.formula.typed import Over, walk
from dobonomodo.plan.operations import Effect
from dobonomodo.plan.pairing import find_makers
from dobonomodo.plan.relation import Keep
from dobonomodo.plan.step import Step
from dobonomodo.plan.system import ROW_ID

Reached = frozenset[str] | None
"""Columns of an output, by the names that they have in the working dataset; None for all, and the number of its rows."""


def find_influence(steps: Iterable[Step], seq: int) -> Iterator[tuple[Step, Reached]]:
    """The outputs, each with what operation ``seq`` can change of it. ``steps`` are in order, and may be those of several plans.

    In several plans, an operation is followed through all versions of those after it.
    """
    found = _Influence()
    for step in sorted(steps, key=lambda each: each.spec.seq):
        is_own = step.spec.seq == seq
        if step.lowered.write is not None:
            yield step, None if is_own else found.of_output(step)
        if is_own or found.reaches(step):
            found.follow(step, is_own=is_own)


@dataclass(eq=False)
class _Influence:
    # Ids depend on the fingerprint of the project, which every change of an operation changes.
    columns: set[str] = field(default_factory=lambda: {ROW_ID})
    makers: set[int] = field(default_factory=set)
    """The operations whose rows may differ in value or number."""
    everything: bool = False

    def of_output(self, step: Step) -> Reached:
        """What of the rows that it writes may be changed."""
        rows = step.write.rows
        chosen = [rows.condition] if isinstance(rows, Keep) else []
        if self._has_rows(chosen) or self._is_read(chosen):
            return None
        return frozenset(self.columns).intersection(step.write.columns)

    def reaches(self, step: Step) -> bool:
        """Whether an operation may do something else."""
        lowered = step.lowered
        if not self.columns.isdisjoint(lowered.reads):
            return True
        makes = Effect.ADDS in step.facts.effect or lowered.check is not None or _has_window(step)
        return makes and lowered.selected is not None and self._has_rows([lowered.selected])

    def follow(self, step: Step, *, is_own: bool) -> None:
        """What an operation may then change."""
        effect, check = step.facts.effect, step.lowered.check
        if step.deletes or (check is not None and check.excludes):
            self.everything = True
        elif Effect.ADDS in effect:
            self.makers.add(step.spec.seq)
        elif Effect.WRITES not in effect and check is None:
            self.columns |= self._find_assigned(step, is_own=is_own)

    def _find_assigned(self, step: Step, *, is_own: bool) -> set[str]:
        """The columns that it may give other values."""
        lowered = step.lowered
        every = {*step.added_columns(), *step.changed_columns()}
        conditions = [each.tree for each in lowered.conditions.values()]
        chosen = [lowered.selected, *conditions] if lowered.selected is not None else conditions
        if is_own or self._is_read(chosen) or _has_window(step):
            return every
        return {name for name, formula in lowered.formulas.items() if self._is_read([formula.tree])} or every

    def _has_rows(self, conditions: Iterable[Typed]) -> bool:
        """Whether rows that may be others can satisfy conditions."""
        if self.everything:
            return True
        allowed = [makers for each in conditions if (makers := find_makers(each)) is not None]
        return bool(self.makers.intersection(*allowed))

    def _is_read(self, expressions: Iterable[Typed]) -> bool:
        return any(column.name in self.columns for each in expressions for column in columns_of(each))


def _has_window(step: Step) -> bool:
    return any(isinstance(part, Over) for formula in step.lowered.formulas.values() for part in walk(formula.tree))
