"""Metadata of definitions, projects, periods and runs, and the port ``Store``.

Definitions are opaque here: a kind, an id, a fingerprint and a document. Times come in as arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from dobonomodo.model.plain import Document

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from dobonomodo.store.history import Entry, Head, Subject
    from dobonomodo.store.life import PeriodEvent, PeriodStatus
    from dobonomodo.store.signoff import Approvals, SignOff

PROJECT = "project"
"""The kind of definition whose status is a life (``life.py``) and not a field of its document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a user wrote. The fingerprint covers what makes a version; the document is all of it."""

    kind: str
    id: str
    fingerprint: str
    document: Document
    status: str = "active"
    """For kinds with a status of their own, such as `disabled`; a project starts as a draft whatever this says."""
    text: str | None = None
    """The document as it was written, comments included; None for a definition that was made in a program."""


class Pin(NamedTuple):
    """The version of the input dataset that an active project reads."""

    dataset: str
    version: int


class Activation(NamedTuple):
    """When a version of a project last became active, by whom, and what it reads since."""

    pin: Pin
    at: datetime
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One recorded version of a definition."""

    kind: str
    id: str
    version: int
    fingerprint: str
    document: Document
    status: str
    text: str | None
    created_at: datetime
    created_by: str
    updated_at: datetime
    updated_by: str
    activation: Activation | None = None
    conflict: Document | None = None
    """The latest report of a conflict; it stays when the pin was kept, so that it is not raised again."""
    location: Document | None = None
    """Where the rows of a registered dataset are."""
    origin: str | None = None
    """The output of a run that registered it."""


class Action(StrEnum):
    """What applying a definition does."""

    CREATED = "created"
    CHANGED = "changed"
    TOUCHED = "touched"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Change:
    """A definition, what applying it does, and the version it then has."""

    action: Action
    definition: Definition
    version: int
    before: Version | None

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the definition that changed; ``text`` where only its comments or its layout did."""
        before: Document = self.before.document if self.before is not None else {}
        after = self.definition.document
        changed = [key for key in dict.fromkeys([*before, *after]) if before.get(key) != after.get(key)]
        return tuple(changed or ["text"]) if self.action is not Action.UNCHANGED else ()

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {
            "action": str(self.action),
            "kind": self.definition.kind,
            "id": self.definition.id,
            "version": self.version,
            "changed": list(self.parts),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodRecord:
    """How far the store knows a period to be."""

    calendar: str
    identifier: str
    status: PeriodStatus
    changed_at: datetime
    changed_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One execution of a project for a period: its snapshot and its progress."""

    id: str
    project: str
    version: int | None
    """None when a draft ran that was never applied."""
    period: str
    status: str
    by: str
    created_at: datetime
    updated_at: datetime
    snapshot: Document
    progress: Document
    fence: int | None = None
    """The fencing number of the latest attempt: of two runs of a project and period, the higher one is the later one.

    None for runs of versions that did not record it.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A run for a closed period: why, and who must have approved it."""

    reason: str
    approvals: Approvals | None = None
    approved_by: tuple[str, ...] = ()
    """Who had signed when the run was planned; it is recorded only if they are still enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to run a project for a period. It belongs to a token, and each lease has a higher fencing number.

    A store knows no expiry times, since clocks of hosts differ: a holder that is alive renews its lease, and who waits for it
    sees ``renewals`` grow.
    """

    project: str
    period: str
    token: str
    """Random, so that two runs never hold one lease, not even in one process."""
    holder: str
    """For people."""
    fence: int
    renewals: int
    taken_at: datetime


@dataclass(frozen=True, slots=True)
class Held:
    """The response to a second run: another holder has the lease."""

    lease: Lease


class Store(Protocol):
    """Keeps metadata. Every method that writes is one atomic transaction.

    Auditable changes add an entry to the history in the same transaction. Raises ``Rejected`` for errors of the caller and
    ``RunFailed`` for failures of outside systems.
    """

    @property
    def id(self) -> str:
        """A random id that was made with the store: fencing numbers of different stores are not compared."""
        ...

    def compare(self, definitions: Iterable[Definition]) -> tuple[Change, ...]:
        """What ``apply`` would do, without doing it."""
        ...

    def apply(self, definitions: Iterable[Definition], *, at: datetime, by: str) -> tuple[Change, ...]:
        """Record definitions: a new fingerprint makes the next version, any other difference changes the newest."""
        ...

    def register(
        self,
        definition: Definition,
        *,
        location: Document,
        origin: str,
        at: datetime,
        by: str,
        lease: Lease | None = None,
    ) -> Version:
        """Record the next version of a dataset that an output wrote, if the lease is still held.

        ``origin`` names the output; registering it again returns the version that it already has.
        """
        ...

    def get_version(self, kind: str, definition_id: str, *, version: int | None = None) -> Version | None:
        """One version, or the newest."""
        ...

    def get_active_version(self, kind: str, definition_id: str) -> Version | None:
        """The highest version with status `active`."""
        ...

    def list_versions(self, kind: str, definition_id: str) -> tuple[Version, ...]:
        """All versions of a definition, the first one first."""
        ...

    def list_definitions(self, kind: str) -> tuple[Version, ...]:
        """The newest version of every definition of a kind, by id."""
        ...

    def list_live_projects(self) -> tuple[Version, ...]:
        """The version of each project that is active or in conflict, by id."""
        ...

    def activate(
        self,
        project: str,
        version: int,
        *,
        fingerprint: str,
        pin: Pin,
        at: datetime,
        by: str,
        reason: str | None = None,
        detail: Document | None = None,
        approvals: Approvals | None = None,
    ) -> Version:
        """Make a version the active one; the version that was active before becomes inactive.

        ``fingerprint`` is that of the project as it was checked. ``detail`` is recorded with the pin.
        """
        ...

    def deactivate(self, project: str, version: int, *, at: datetime, by: str) -> Version:
        """Make the active version, or the one in conflict, inactive."""
        ...

    def mark_conflict(self, project: str, version: int, *, report: Document, at: datetime, by: str) -> Version:
        """Stop an active version from running until the report is dealt with.

        A report that was answered by keeping the pin changes nothing.
        """
        ...

    def keep_pin(self, project: str, version: int, *, at: datetime, by: str) -> Version:
        """Resolve a conflict: the version is active again and keeps reading its pinned version."""
        ...

    def change_period(
        self,
        identifier: str,
        *,
        event: PeriodEvent,
        starts: Mapping[str, PeriodStatus],
        at: datetime,
        by: str,
        reason: str | None = None,
        detail: Document | None = None,
        approvals: Approvals | None = None,
        dead: Collection[str] = (),
    ) -> None:
        """Apply an event to a period; idempotent.

        ``starts`` has the status of the period in the file of each calendar that has it, which counts until something has
        happened. A period that is being run is not closed or locked; ``dead`` are the tokens of leases whose holders are
        not alive.
        """
        ...

    def check_period(self, identifier: str, *, overridden: bool) -> None:
        """Refuse to run a period that was locked, or closed without being overridden."""
        ...

    def list_periods(self, calendar: str) -> Mapping[str, PeriodRecord]:
        """The periods of a calendar to which something ever happened, by identifier."""
        ...

    def list_history(
        self,
        *,
        project: str | None = None,
        period: str | None = None,
        subject: Subject | None = None,
        limit: int | None = None,
    ) -> tuple[Entry, ...]:
        """The history, or what belongs to a project, a period or a subject, oldest first; with a limit, the latest."""
        ...

    def head(self) -> Head:
        """The latest entry of the history; number 0 and the id of the store before there is one."""
        ...

    def find_damage(self) -> tuple[str, ...]:
        """The records whose text is not one that this program writes: `table key: column`, for `dobo audit verify`."""
        ...

    def sign(self, subject: Subject, fingerprint: str, *, at: datetime, by: str, comment: str | None = None) -> SignOff:
        """Record a sign-off of something as it is now; idempotent."""
        ...

    def unsign(self, subject: Subject, *, at: datetime, by: str, reason: str | None = None) -> tuple[SignOff, ...]:
        """Withdraw the sign-offs of a person; returns the withdrawn ones."""
        ...

    def list_signoffs(self, *subjects: Subject) -> tuple[SignOff, ...]:
        """The sign-offs of subjects that were not withdrawn, by time."""
        ...

    def put_run(self, run: Run, *, lease: Lease | None = None, override: Override | None = None) -> None:
        """Record a new run, if the lease is still held and the period may be run, and the override that it needs."""
        ...

    def get_run(self, run_id: str) -> Run | None:
        """One run."""
        ...

    def list_runs(
        self,
        *,
        project: str | None = None,
        period: str | None = None,
        status: str | None = None,
        limit: int | None = None,
    ) -> tuple[Run, ...]:
        """All runs, newest first; with a limit, the latest of them."""
        ...

    def change_run_status(
        self,
        run_id: str,
        *,
        before: str,
        after: str,
        at: datetime,
        by: str,
        progress: Document | None = None,
        fence: int | None = None,
        lease: Lease | None = None,
    ) -> Run:
        """Change a run, if its status is ``before`` and the lease is still held; the record gets the fence of the lease.

        With ``fence`` and no lease: only if no later attempt at the run has begun.
        """
        ...

    def change_run_if_same(self, run: Run, *, status: str, at: datetime, by: str) -> Run | None:
        """Change the status of a run whose record is still exactly the one given; None if it is not."""
        ...

    def take_lease(self, project: str, period: str, *, token: str, holder: str, at: datetime) -> Lease | Held:
        """Take a lease that nobody has."""
        ...

    def take_over(self, lease: Lease, *, token: str, holder: str, at: datetime) -> Lease | Held:
        """Take a lease from its holder, if it was neither renewed nor taken since it was seen like this."""
        ...

    def renew_lease(self, lease: Lease) -> Lease:
        """Show that the holder is alive, if nobody has taken the lease since."""
        ...

    def list_leases(self) -> tuple[Lease, ...]:
        """The leases that somebody holds, whether alive or not."""
        ...

    def check_lease(self, lease: Lease) -> None:
        """Raise if a lease was released or taken over."""
        ...

    def release_lease(self, lease: Lease) -> None:
        """Release a lease; does nothing if it is no longer held."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...
