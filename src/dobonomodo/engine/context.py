"""Everything except the plan that the frames of a run depend on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from dobonomodo.engine.cutting import Cut
from dobonomodo.engine.rowid import IdSeed
from dobonomodo.formula import Typed, render_formula
from dobonomodo.plan.facts import RunFacts


@dataclass(frozen=True, slots=True)
class RunContext:
    """The inputs of frames other than the plan."""

    facts: RunFacts
    seed: IdSeed
    as_of: date | None
    """The day on which bitemporal rows must be valid, where the run itself names one."""
    ids: bool = True
    """Whether an output or a formula reads row ids; they cost something."""
    late_ids: bool = False
    """Whether only outputs do: then loaded rows carry a number, which is made into an id where it is written."""
    joined_ids: bool = True
    """Whether a formula reads the row id of a joined row."""
    places: bool = False
    """Whether windows sort rows by their place."""
    cut: Cut | None = None
    """How plans with many leaves are cut; None if they are not."""

    def sql(self, expression: Typed) -> str:
        """An expression as SQL text."""
        return render_formula(expression, self.facts)
