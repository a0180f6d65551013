"""What a run fixes before it starts. It knows nothing of plans, so that everything that runs may know it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The clock and the period of a run."""

    started_at: datetime
    period: str
    period_start: date
    period_end: date

    def __post_init__(self) -> None:
        """The clock is in UTC, so that everything made from it is the same instant (C-89)."""
        if self.started_at.tzinfo is None:
            raise ValueError("the clock of a run needs a time zone")
        object.__setattr__(self, "started_at", self.started_at.astimezone(UTC))
