"""The history: who did what, when and why, as a chain of hashes. Pure; the store writes an entry in the transaction of the change.

Each entry holds the hash of the one before it, so that a changed, removed or inserted entry is found.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from dobonomodo.model.plain import Document, hash_document


class Event(StrEnum):
    """Events other than those of projects and periods (``life.py``)."""

    APPLY = "apply"
    """A definition was recorded: a new version, or the newest one changed in place."""
    REGISTER = "register"
    """A run made an output a version of a dataset."""
    OVERRIDE = "override"
    """A run was started for a closed period."""
    SIGN = "sign"
    UNSIGN = "unsign"
    STARTED = "started"
    RESUMED = "resumed"
    ADVANCED = "advanced"
    """Another run completed what a run was publishing when it was killed."""


class Kind(StrEnum):
    """What an entry is about, beside the kinds of definitions."""

    PERIOD = "period"
    RUN = "run"
    OVERRIDE = "override"
    """The run of a project for a closed period, before there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The subject of an event. ``project`` and ``period`` are search keys."""

    kind: str
    id: str
    version: int | None = None
    calendar: str | None = None
    project: str | None = None
    period: str | None = None

    def __str__(self) -> str:
        """As people say it."""
        match self.kind:
            case Kind.RUN:
                return f"run {self.id} ({self.project}, {self.period})"
            case _:
                return f"{self.kind} {self.id}" + (f" v{self.version}" if self.version is not None else "")

    @classmethod
    def of_project(cls, project: str, version: int) -> Subject:
        """A version of a project."""
        return cls(kind="project", id=project, version=version, project=project)

    @classmethod
    def of_period(cls, identifier: str, *, calendar: str | None = None) -> Subject:
        """A period; sign-offs are of all calendars that have it."""
        return cls(kind=Kind.PERIOD, id=identifier, calendar=calendar, period=identifier)

    @classmethod
    def of_run(cls, run: str, *, project: str, period: str, version: int | None) -> Subject:
        """A run."""
        return cls(kind=Kind.RUN, id=run, version=version, project=project, period=period)

    @classmethod
    def of_override(cls, project: str, period: str) -> Subject:
        """Running a project for a closed period."""
        return cls(kind=Kind.OVERRIDE, id=f"{project}@{period}", project=project, period=period)


class Head(NamedTuple):
    """The latest entry: it proves whether the history before it was changed or truncated."""

    number: int
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of the history. The store gives it its number and links it to the one before."""

    subject: Subject
    event: str
    at: datetime
    by: str
    before: str | None = None
    """The status before, of what has one."""
    after: str | None = None
    reason: str | None = None
    """Why, in the words of the person."""
    detail: Document | None = None
    number: int = 0
    previous: str = ""
    """The hash of the entry before; of the first one, the id of the store."""
    hash: str = ""

    def to_dict(self) -> dict[str, object]:
        """As plain data: what the hash is computed of, and the hash."""
        return {**_fields(self), "hash": self.hash}


def link_entry(entry: Entry, *, to: Head) -> Entry:
    """The entry as the next one behind a head; its hash is over all fields but itself."""
    linked = replace(entry, number=to.number + 1, previous=to.hash)
    return replace(linked, hash=hash_document(_fields(linked)))


def find_break(entries: Iterable[Entry], *, start: Head) -> int | None:
    """The number of the first entry that is not as it was written or does not follow the one before; None if all do."""
    head = start
    for entry in entries:
        if entry != link_entry(entry, to=head):
            return head.number + 1
        head = Head(entry.number, entry.hash)
    return None


def _fields(entry: Entry) -> dict[str, object]:
    return {
        "number": entry.number,
        "at": entry.at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "by": entry.by,
        "event": str(entry.event),
        **asdict(entry.subject),
        "kind": str(entry.subject.kind),
        "before": entry.before,
        "after": entry.after,
        "reason": entry.reason,
        "detail": dict(entry.detail) if entry.detail is not None else None,
        "previous": entry.previous,
    }
