"""The values that a run fixes before it starts. Does not depend on plans, so that every module of a run may import it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from dobonomodo.formula.typed import Value


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The clock, the period and the parameters of a run."""

    started_at: datetime
    period: str
    period_start: date
    period_end: date
    parameters: Mapping[str, Value] = field(default_factory=dict)
    """The values of the project's parameters, each in its type."""

    def __post_init__(self) -> None:
        """The clock is in UTC, so that everything computed from it is the same instant (C-89)."""
        if self.started_at.tzinfo is None:
            raise ValueError("the clock of a run needs a time zone")
        object.__setattr__(self, "started_at", self.started_at.astimezone(UTC))
