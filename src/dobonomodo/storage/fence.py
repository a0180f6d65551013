"""Fencing: a destination remembers the highest number that it has seen of a run's key, and refuses lower ones.

The check is part of the atomic publication, so a run whose lease has expired cannot overwrite its successor.
"""

from __future__ import annotations

from dataclasses import dataclass

from dobonomodo.problems import RunFailed
from dobonomodo.problems.store import LeaseLost


@dataclass(frozen=True, slots=True)
class Fence:
    """The number of one attempt at a run. Numbers are compared only within one store, project and run period."""

    store: str
    """The id of the store that gave the number."""
    project: str
    period: str
    number: int

    @property
    def key(self) -> str:
        """Store, project and period as one text; the id of a store has no blanks, a period has no line breaks."""
        return f"{self.store} {self.period}\n{self.project}"

    def lost(self) -> RunFailed:
        """The failure of a destination that has seen a higher number."""
        return RunFailed(LeaseLost(project=self.project, period=self.period, fence=self.number))
