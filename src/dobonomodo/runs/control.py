"""What people decided about a run: an override of a closed period, sign-offs and whether they still count. Records, nothing more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Overridden:
    """A run for a closed period: why, and who approved it."""

    reason: str
    by: str
    at: datetime
    approved_by: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {"reason": self.reason, "by": self.by, "at": self.at, "approved_by": list(self.approved_by)}


@dataclass(frozen=True, slots=True)
class Signed:
    """A sign-off, and why it does not count any more, if so."""

    by: str
    at: datetime
    comment: str | None = None
    void: str | None = None

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {"by": self.by, "at": self.at, "comment": self.comment, "void": self.void}
