"""Sign-offs: who confirmed what, by its fingerprint. Pure; they are entries of the history, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime

from dobonomodo.problems import Rejected
from dobonomodo.problems.control import ApprovalsMissing
from dobonomodo.store.history import Entry, Event, Subject

FINGERPRINT = "fingerprint"
"""The key of what was signed in the details of an entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignOff:
    """A person confirmed something in the state that its fingerprint identifies."""

    subject: Subject
    fingerprint: str
    by: str
    at: datetime
    comment: str | None = None

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        own = {"fingerprint": self.fingerprint, "by": self.by, "at": self.at, "comment": self.comment}
        return {**asdict(self.subject), **own}


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvals:
    """How many people other than the acting one must have signed the current state."""

    subject: Subject
    fingerprint: str
    needed: int
    command: str
    """What they type to sign it."""

    def require(self, signed: Iterable[SignOff], *, by: str) -> tuple[str, ...]:
        """The people who approved; refuses if they are too few."""
        people = sorted({each.by for each in signed if each.fingerprint == self.fingerprint})
        others = tuple(each for each in people if each != by)
        if len(others) < self.needed:
            raise Rejected(
                [
                    ApprovalsMissing(
                        subject=self.subject.id,
                        needed=self.needed,
                        approved_by=others,
                        own=by if by in people else None,
                        command=self.command,
                    )
                ]
            )
        return others


def find_signoffs(entries: Iterable[Entry]) -> tuple[SignOff, ...]:
    """The sign-offs that were not withdrawn, by time: at most one of a person for a fingerprint."""
    found: dict[tuple[Subject, str, str], SignOff] = {}
    for entry in entries:
        match entry.event:
            case Event.SIGN:
                fingerprint = (entry.detail or {})[FINGERPRINT]
                found[entry.subject, entry.by, fingerprint] = SignOff(
                    subject=entry.subject, fingerprint=fingerprint, by=entry.by, at=entry.at, comment=entry.reason
                )
            case Event.UNSIGN:
                for key in [key for key in found if key[:2] == (entry.subject, entry.by)]:
                    del found[key]
    return tuple(found.values())
