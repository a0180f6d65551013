"""``SqlStore``: the store in a SQL database.

Each writing method is one exclusive ``writing`` transaction, so it may read, decide and write without conflicts.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import asdict, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, assert_never

from sqlalchemy import Integer, Text, bindparam, func, insert, or_, select, type_coerce, update
from typing_extensions import override

from dobonomodo.model.plain import Document, hash_document, render_document
from dobonomodo.problems import InternalError, Rejected, RunFailed
from dobonomodo.problems.control import PeriodInUse
from dobonomodo.problems.operation import PeriodNotRunnable
from dobonomodo.problems.store import InvalidTransition, LeaseLost, VersionChanged, VersionNotFound
from dobonomodo.store.history import Entry, Event, Head, Subject, link_entry
from dobonomodo.store.life import (
    LIVE,
    PeriodEvent,
    PeriodStatus,
    ProjectEvent,
    ProjectStatus,
    next_period_status,
    next_project_status,
)
from dobonomodo.store.signoff import FINGERPRINT, Approvals, SignOff, find_signoffs
from dobonomodo.store.store import (
    PROJECT,
    Action,
    Activation,
    Change,
    Definition,
    Held,
    Lease,
    Override,
    PeriodRecord,
    Pin,
    Run,
    Store,
    Version,
)
from dobonomodo.store.tables import AUDITED, HISTORY, LEASE, PERIOD, RUN, STORE, VERSION, Canonical

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Column, ColumnElement, Connection, Insert, Row, RowMapping, Select, Table

    from dobonomodo.store.database import Database

_DATASET = "dataset"


class SqlStore(Store):
    """A store in a SQLite file or a PostgreSQL database that has the newest format."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __repr__(self) -> str:
        return f"SqlStore({self._database.name!r})"

    @cached_property
    @override
    def id(self) -> str:
        with self._database.reading() as connection:
            found: str = connection.execute(select(STORE.c.id)).scalar_one()
            return found

    @override
    def close(self) -> None:
        self._database.close()

    @override
    def compare(self, definitions: Iterable[Definition]) -> tuple[Change, ...]:
        with self._database.reading() as connection:
            return _compare(connection, tuple(definitions))

    @override
    def apply(self, definitions: Iterable[Definition], *, at: datetime, by: str) -> tuple[Change, ...]:
        with self._database.writing() as connection:
            changes = _compare(connection, tuple(definitions))
            for change in changes:
                match change.action:
                    case Action.CREATED | Action.CHANGED:
                        _insert_version(connection, change.definition, change.version, at=at, by=by)
                    case Action.TOUCHED:
                        _touch_version(connection, change.definition, change.version, at=at, by=by)
                    case Action.UNCHANGED:
                        continue
                    case _:
                        assert_never(change.action)
                _record(connection, _describe_change(change, at=at, by=by))
            return changes

    @override
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
        with self._database.writing() as connection:
            if lease is not None:
                _require_lease(connection, lease)
            same = (VERSION.c.kind == definition.kind, VERSION.c.id == definition.id)
            if known := _read_versions(connection, kind=definition.kind, id=definition.id, origin=origin):
                return known[0]
            newest = connection.scalar(select(func.max(VERSION.c.version)).where(*same)) or 0
            _insert_version(connection, definition, newest + 1, at=at, by=by, location=location, origin=origin)
            subject = Subject(kind=definition.kind, id=definition.id, version=newest + 1)
            detail = {"origin": origin, "location": hash_document(location), **_describe_content(definition)}
            _record(connection, Entry(subject=subject, event=Event.REGISTER, at=at, by=by, detail=detail))
            return _require_version(connection, definition.kind, definition.id, newest + 1)

    @override
    def get_version(self, kind: str, definition_id: str, *, version: int | None = None) -> Version | None:
        if version is not None:
            return self._find(kind=kind, id=definition_id, version=version)
        return self._find(kind=kind, id=definition_id)

    @override
    def get_active_version(self, kind: str, definition_id: str) -> Version | None:
        return self._find(kind=kind, id=definition_id, status="active")

    @override
    def list_versions(self, kind: str, definition_id: str) -> tuple[Version, ...]:
        with self._database.reading() as connection:
            return _read_versions(connection, kind=kind, id=definition_id)

    @override
    def list_definitions(self, kind: str) -> tuple[Version, ...]:
        with self._database.reading() as connection:
            return _read_newest(connection, [kind])

    @override
    def list_live_projects(self) -> tuple[Version, ...]:
        with self._database.reading() as connection:
            return _read_live(connection)

    @override
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
        with self._database.writing() as connection:
            chosen = _require_version(connection, PROJECT, project, version)
            if chosen.fingerprint != fingerprint:
                raise Rejected([VersionChanged(kind=PROJECT, id=project, version=version)])
            _require_version(connection, _DATASET, pin.dataset, pin.version)
            approved = _require_approvals(connection, approvals, by=by)
            for other in _read_live(connection):
                if other.id != project or other.version == version:
                    continue
                _move_project(connection, other, ProjectEvent.SUPERSEDE, at=at, by=by, detail={"by_version": version})
            return _move_project(
                connection,
                chosen,
                ProjectEvent.ACTIVATE,
                at=at,
                by=by,
                reason=reason,
                detail={**pin._asdict(), **(detail or {}), **approved},
                activated_at=at,
                activated_by=by,
                pinned_dataset=pin.dataset,
                pinned_version=pin.version,
                conflict=None,
            )

    @override
    def deactivate(self, project: str, version: int, *, at: datetime, by: str) -> Version:
        with self._database.writing() as connection:
            chosen = _require_version(connection, PROJECT, project, version)
            return _move_project(connection, chosen, ProjectEvent.DEACTIVATE, at=at, by=by)

    @override
    def mark_conflict(self, project: str, version: int, *, report: Document, at: datetime, by: str) -> Version:
        with self._database.writing() as connection:
            chosen = _require_version(connection, PROJECT, project, version)
            if chosen.status in LIVE and chosen.conflict == report:
                return chosen
            return _move_project(
                connection, chosen, ProjectEvent.CONFLICT, at=at, by=by, detail=report, conflict=report
            )

    @override
    def keep_pin(self, project: str, version: int, *, at: datetime, by: str) -> Version:
        with self._database.writing() as connection:
            chosen = _require_version(connection, PROJECT, project, version)
            return _move_project(connection, chosen, ProjectEvent.KEEP_PIN, at=at, by=by)

    @override
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
        with self._database.writing() as connection:
            recorded = _read_statuses(connection, identifier)
            moves = {
                calendar: (before, next_period_status(before, event, calendar=calendar, identifier=identifier))
                for calendar, start in starts.items()
                for before in [recorded.get(calendar, start)]
            }
            moves = {calendar: move for calendar, move in moves.items() if move[0] is not move[1]}
            if not moves:
                return
            if event in (PeriodEvent.CLOSE, PeriodEvent.LOCK):
                _require_idle(connection, identifier, dead)
            approved = _require_approvals(connection, approvals, by=by)
            for calendar, (before, after) in moves.items():
                _put_period(connection, calendar, identifier, after, is_new=calendar not in recorded, at=at, by=by)
                entry = Entry(
                    subject=Subject.of_period(identifier, calendar=calendar),
                    event=event,
                    before=before,
                    after=after,
                    at=at,
                    by=by,
                    reason=reason,
                    detail={**(detail or {}), **approved} or None,
                )
                _record(connection, entry)

    @override
    def check_period(self, identifier: str, *, overridden: bool) -> None:
        with self._database.reading() as connection:
            _require_runnable(connection, identifier, overridden=overridden)

    @override
    def list_periods(self, calendar: str) -> Mapping[str, PeriodRecord]:
        with self._database.reading() as connection:
            rows = connection.execute(_select(PERIOD, "calendar"), {"calendar": calendar}).mappings()
            records = [PeriodRecord(**{**row, "status": PeriodStatus(row["status"])}) for row in rows]
        return {record.identifier: record for record in sorted(records, key=lambda record: record.identifier)}

    @override
    def list_history(
        self,
        *,
        project: str | None = None,
        period: str | None = None,
        subject: Subject | None = None,
        limit: int | None = None,
    ) -> tuple[Entry, ...]:
        wanted = [
            column == value
            for column, value in ((HISTORY.c.project, project), (HISTORY.c.period, period))
            if value is not None
        ]
        if subject is not None:
            wanted.append(_is_of(subject))
        with self._database.reading() as connection:
            return _read_history(connection, *wanted, limit=limit)

    @override
    def head(self) -> Head:
        with self._database.reading() as connection:
            return _read_head(connection)

    @override
    def find_damage(self) -> tuple[str, ...]:
        with self._database.reading() as connection:
            return tuple(place for table in AUDITED for place in _find_damage(connection, table))

    @override
    def sign(self, subject: Subject, fingerprint: str, *, at: datetime, by: str, comment: str | None = None) -> SignOff:
        with self._database.writing() as connection:
            for known in _read_signoffs(connection, [subject]):
                if (known.by, known.fingerprint) == (by, fingerprint):
                    return known
            detail = {FINGERPRINT: fingerprint}
            entry = Entry(subject=subject, event=Event.SIGN, at=at, by=by, reason=comment, detail=detail)
            _record(connection, entry)
            return SignOff(subject=subject, fingerprint=fingerprint, by=by, at=at, comment=comment)

    @override
    def unsign(self, subject: Subject, *, at: datetime, by: str, reason: str | None = None) -> tuple[SignOff, ...]:
        with self._database.writing() as connection:
            own = tuple(each for each in _read_signoffs(connection, [subject]) if each.by == by)
            if own:
                _record(connection, Entry(subject=subject, event=Event.UNSIGN, at=at, by=by, reason=reason))
            return own

    @override
    def list_signoffs(self, *subjects: Subject) -> tuple[SignOff, ...]:
        with self._database.reading() as connection:
            return _read_signoffs(connection, subjects)

    @override
    def put_run(self, run: Run, *, lease: Lease | None = None, override: Override | None = None) -> None:
        values = {column.name: getattr(run, column.name) for column in RUN.columns}
        with self._database.writing() as connection:
            if lease is not None:
                _require_lease(connection, lease)
            _require_runnable(connection, run.period, overridden=override is not None)
            approved = _require_approvals(connection, override.approvals, by=run.by) if override is not None else {}
            connection.execute(_insert(RUN), values)
            started = Entry(
                subject=_subject_of(run),
                event=Event.STARTED,
                after=run.status,
                at=run.created_at,
                by=run.by,
                detail={"snapshot": hash_document(run.snapshot), "fence": run.fence},
            )
            _record(connection, started)
            if override is not None:
                overridden = replace(
                    started, event=Event.OVERRIDE, after=None, reason=override.reason, detail=approved or None
                )
                _record(connection, overridden)

    @override
    def get_run(self, run_id: str) -> Run | None:
        with self._database.reading() as connection:
            return _find_run(connection, run_id)

    @override
    def list_runs(
        self,
        *,
        project: str | None = None,
        period: str | None = None,
        status: str | None = None,
        limit: int | None = None,
    ) -> tuple[Run, ...]:
        wanted = ((RUN.c.project, project), (RUN.c.period, period), (RUN.c.status, status))
        latest = (
            select(RUN)
            .where(*(column == value for column, value in wanted if value is not None))
            .order_by(RUN.c.created_at.desc(), RUN.c.id.desc())
            .limit(limit)
        )
        with self._database.reading() as connection:
            return tuple(Run(**row) for row in connection.execute(latest).mappings())

    @override
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
        with self._database.writing() as connection:
            if lease is not None:
                _require_lease(connection, lease)
            run = _find_run(connection, run_id)
            if run is None:
                raise InternalError(f"there is no run {run_id}")
            if run.status != before or (fence is not None and run.fence != fence):
                raise Rejected([InvalidTransition(subject=f"run `{run_id}`", status=run.status, wanted=after)])
            changed = replace(
                run,
                status=after,
                updated_at=at,
                progress=run.progress if progress is None else progress,
                fence=run.fence if lease is None else lease.fence,
            )
            connection.execute(
                update(RUN)
                .where(RUN.c.id == run_id)
                .values(
                    status=changed.status, updated_at=changed.updated_at, progress=changed.progress, fence=changed.fence
                )
            )
            # Whoever completes the publication of another run changes the record of a run that is not running.
            _record_run(connection, run, changed, by=by, by_other=lease is None and progress is not None)
            return changed

    @override
    def change_run_if_same(self, run: Run, *, status: str, at: datetime, by: str) -> Run | None:
        with self._database.writing() as connection:
            if _find_run(connection, run.id) != run:
                return None
            connection.execute(update(RUN).where(RUN.c.id == run.id).values(status=status, updated_at=at))
            changed = replace(run, status=status, updated_at=at)
            _record_run(connection, run, changed, by=by)
            return changed

    @override
    def take_lease(self, project: str, period: str, *, token: str, holder: str, at: datetime) -> Lease | Held:
        with self._database.writing() as connection:
            found = _find_lease(connection, project, period)
            if found is not None and found["token"] is not None:
                return Held(Lease(**found))
            fence = found["fence"] + 1 if found is not None else 1
            lease = Lease(
                project=project, period=period, token=token, holder=holder, fence=fence, renewals=0, taken_at=at
            )
            return _put_lease(connection, lease, is_new=found is None)

    @override
    def take_over(self, lease: Lease, *, token: str, holder: str, at: datetime) -> Lease | Held:
        with self._database.writing() as connection:
            found = _find_lease(connection, lease.project, lease.period)
            if found is None:
                raise InternalError(f"there is no lease of {lease.project} and {lease.period}")
            if found["token"] is not None and (found["fence"], found["renewals"]) != (lease.fence, lease.renewals):
                return Held(Lease(**found))
            new = replace(lease, token=token, holder=holder, fence=found["fence"] + 1, renewals=0, taken_at=at)
            return _put_lease(connection, new, is_new=False)

    @override
    def renew_lease(self, lease: Lease) -> Lease:
        with self._database.writing() as connection:
            _require_lease(connection, lease)
            renewed = replace(lease, renewals=lease.renewals + 1)
            return _put_lease(connection, renewed, is_new=False)

    @override
    def list_leases(self) -> tuple[Lease, ...]:
        held = select(LEASE).where(LEASE.c.token.is_not(None)).order_by(LEASE.c.project, LEASE.c.period)
        with self._database.reading() as connection:
            return tuple(Lease(**row) for row in connection.execute(held).mappings())

    @override
    def check_lease(self, lease: Lease) -> None:
        with self._database.reading() as connection:
            _require_lease(connection, lease)

    @override
    def release_lease(self, lease: Lease) -> None:
        with self._database.writing() as connection:
            connection.execute(update(LEASE).where(_held(lease)).values(token=None))

    def _find(self, **values: object) -> Version | None:
        """The highest version with some values."""
        with self._database.reading() as connection:
            row = connection.execute(_select_highest(*values), values).one_or_none()
        return None if row is None else _to_version(row)


# --- statements: made once each, since making one takes as long as running it


@cache
def _select(table: Table, *names: str) -> Select[Any]:
    """The rows with given values in some columns."""
    return select(table).where(*(table.c[name] == bindparam(name) for name in names))


@cache
def _select_highest(*names: str) -> Select[Any]:
    """The highest version with given values."""
    return _select(VERSION, *names).order_by(VERSION.c.version.desc()).limit(1)


@cache
def _select_newest() -> Select[Any]:
    """The highest version of each definition of some kinds."""
    newest = (
        select(VERSION.c.kind, VERSION.c.id, func.max(VERSION.c.version).label("version"))
        .where(VERSION.c.kind.in_(bindparam("kinds", expanding=True)))
        .group_by(VERSION.c.kind, VERSION.c.id)
        .subquery()
    )
    same = (VERSION.c.kind == newest.c.kind) & (VERSION.c.id == newest.c.id) & (VERSION.c.version == newest.c.version)
    return select(VERSION).join(newest, same)


@cache
def _select_live() -> Select[Any]:
    return select(VERSION).where(VERSION.c.kind == PROJECT, VERSION.c.status.in_(LIVE))


@cache
def _select_head() -> Select[Any]:
    return select(HISTORY.c.number, HISTORY.c.hash).order_by(HISTORY.c.number.desc()).limit(1)


@cache
def _insert(table: Table) -> Insert:
    return insert(table)


def _compare(connection: Connection, definitions: Sequence[Definition]) -> tuple[Change, ...]:
    counts = Counter((definition.kind, definition.id) for definition in definitions)
    if twice := [key for key, number in counts.items() if number > 1]:
        raise InternalError(f"definitions given twice: {twice}")
    newest = _read_newest(connection, sorted({definition.kind for definition in definitions}))
    newest_by_key = {(version.kind, version.id): version for version in newest}
    return tuple(
        _compare_one(definition, newest_by_key.get((definition.kind, definition.id))) for definition in definitions
    )


def _compare_one(definition: Definition, before: Version | None) -> Change:
    if before is None:
        return Change(Action.CREATED, definition, 1, before)
    if before.fingerprint != definition.fingerprint:
        return Change(Action.CHANGED, definition, before.version + 1, before)
    same = (
        render_document(before.document) == render_document(definition.document)
        and before.text == definition.text
        and (definition.kind == PROJECT or before.status == definition.status)
    )
    return Change(Action.UNCHANGED if same else Action.TOUCHED, definition, before.version, before)


def _insert_version(
    connection: Connection, definition: Definition, version: int, *, at: datetime, by: str, **more: object
) -> None:
    connection.execute(
        insert(VERSION).values(
            kind=definition.kind,
            id=definition.id,
            version=version,
            fingerprint=definition.fingerprint,
            document=definition.document,
            text=definition.text,
            status=ProjectStatus.DRAFT if definition.kind == PROJECT else definition.status,
            created_at=at,
            created_by=by,
            updated_at=at,
            updated_by=by,
            **more,
        )
    )


def _touch_version(connection: Connection, definition: Definition, version: int, *, at: datetime, by: str) -> None:
    values = {"document": definition.document, "text": definition.text, "updated_at": at, "updated_by": by}
    if definition.kind != PROJECT:
        values["status"] = definition.status
    this = (VERSION.c.kind == definition.kind, VERSION.c.id == definition.id, VERSION.c.version == version)
    connection.execute(update(VERSION).where(*this).values(values))


def _read_newest(connection: Connection, kinds: Sequence[str]) -> tuple[Version, ...]:
    return _in_order(connection.execute(_select_newest(), {"kinds": kinds}))


def _read_versions(connection: Connection, **values: object) -> tuple[Version, ...]:
    return _in_order(connection.execute(_select(VERSION, *values), values))


def _read_live(connection: Connection) -> tuple[Version, ...]:
    return _in_order(connection.execute(_select_live()))


def _require_version(connection: Connection, kind: str, definition_id: str, version: int) -> Version:
    versions = _read_versions(connection, kind=kind, id=definition_id)
    for known in versions:
        if known.version == version:
            return known
    numbers = tuple(known.version for known in versions)
    raise Rejected([VersionNotFound(kind=kind, id=definition_id, version=version, known=numbers)])


def _in_order(rows: Iterable[Row[Any]]) -> tuple[Version, ...]:
    # Databases sort text by collation; Python sorts the same everywhere.
    return tuple(sorted(map(_to_version, rows), key=lambda version: (version.kind, version.id, version.version)))


def _to_version(row: Row[Any]) -> Version:
    return Version(
        kind=row.kind,
        id=row.id,
        version=row.version,
        fingerprint=row.fingerprint,
        document=row.document,
        status=row.status,
        text=row.text,
        created_at=row.created_at,
        created_by=row.created_by,
        updated_at=row.updated_at,
        updated_by=row.updated_by,
        activation=(
            Activation(Pin(row.pinned_dataset, row.pinned_version), row.activated_at, row.activated_by)
            if row.activated_at
            else None
        ),
        conflict=row.conflict,
        location=row.location,
        origin=row.origin,
    )


def _move_project(
    connection: Connection,
    version: Version,
    event: ProjectEvent,
    *,
    at: datetime,
    by: str,
    reason: str | None = None,
    detail: Document | None = None,
    **values: object,
) -> Version:
    before = ProjectStatus(version.status)
    after = next_project_status(before, event, project=version.id, version=version.version)
    this = (VERSION.c.kind == PROJECT, VERSION.c.id == version.id, VERSION.c.version == version.version)
    connection.execute(update(VERSION).where(*this).values(status=after, updated_at=at, updated_by=by, **values))
    subject = Subject.of_project(version.id, version.version)
    entry = Entry(subject=subject, event=event, before=before, after=after, at=at, by=by, reason=reason, detail=detail)
    _record(connection, entry)
    return _require_version(connection, PROJECT, version.id, version.version)


def _read_statuses(connection: Connection, identifier: str) -> dict[str, PeriodStatus]:
    """The recorded status of a period, by calendar."""
    found = connection.execute(select(PERIOD.c.calendar, PERIOD.c.status).where(PERIOD.c.identifier == identifier))
    return {calendar: PeriodStatus(status) for calendar, status in found}


def _put_period(
    connection: Connection, calendar: str, identifier: str, status: PeriodStatus, *, is_new: bool, at: datetime, by: str
) -> None:
    values = {"status": status, "changed_at": at, "changed_by": by}
    if is_new:
        connection.execute(insert(PERIOD).values(calendar=calendar, identifier=identifier, **values))
    else:
        this = (PERIOD.c.calendar == calendar, PERIOD.c.identifier == identifier)
        connection.execute(update(PERIOD).where(*this).values(values))


def _require_runnable(connection: Connection, identifier: str, *, overridden: bool) -> None:
    """A period that was closed or locked since the run was planned does not run."""
    for status in _read_statuses(connection, identifier).values():
        if status is PeriodStatus.LOCKED or (status is PeriodStatus.CLOSED and not overridden):
            raise Rejected([PeriodNotRunnable(period=identifier, status=status)])


def _require_idle(connection: Connection, identifier: str, dead: Collection[str]) -> None:
    """Require that no run is active for a period: it would publish after the period is closed."""
    held = select(LEASE).where(LEASE.c.period == identifier, LEASE.c.token.is_not(None)).order_by(LEASE.c.project)
    for row in connection.execute(held).mappings():
        if row["token"] not in dead:
            raise Rejected([PeriodInUse(period=identifier, project=row["project"], holder=row["holder"])])


def _describe_change(change: Change, *, at: datetime, by: str) -> Entry:
    definition = change.definition
    project = definition.id if definition.kind == PROJECT else None
    return Entry(
        subject=Subject(kind=definition.kind, id=definition.id, version=change.version, project=project),
        event=Event.APPLY,
        at=at,
        by=by,
        detail={"action": change.action.value, **_describe_content(definition)},
    )


def _describe_content(definition: Definition) -> dict[str, Any]:
    """What an entry says of a version, so that a change of it is found."""
    text = definition.text
    return {
        FINGERPRINT: definition.fingerprint,
        "document": hash_document(definition.document),
        "text": hashlib.sha256(text.encode()).hexdigest() if text is not None else None,
        "status": definition.status,
    }


def _find_damage(connection: Connection, table: Table) -> Iterator[str]:
    """The values of a table that are not as this program writes them, read as the texts that they are."""
    plain = select(*(type_coerce(column, Text).label(column.name) for column in table.columns))
    for row in connection.execute(plain).mappings():
        for column in table.columns:
            if not _is_plausible(column, row[column.name]):
                key = " ".join(str(row[each.name]) for each in table.primary_key.columns)
                yield f"{table.name} {key}: {column.name}"


def _is_plausible(column: Column[Any], value: object) -> bool:
    """Whether a value is of the kind that its column has; SQLite takes any."""
    if value is None:
        return bool(column.nullable)
    if isinstance(column.type, Integer):
        return isinstance(value, int)
    if not isinstance(value, str):
        return False
    return not isinstance(column.type, Canonical) or column.type.is_canonical(value)


# --- the history


def _record(connection: Connection, entry: Entry) -> None:
    """Append an entry; in a writing transaction nobody else does."""
    linked = link_entry(entry, to=_read_head(connection))
    values = {name: getattr(linked, name) for name in _OWN_FIELDS} | asdict(linked.subject)
    connection.execute(_insert(HISTORY), values)


_OWN_FIELDS = ("number", "at", "by", "event", "before", "after", "reason", "detail", "previous", "hash")
_SUBJECT_FIELDS = ("kind", "id", "version", "calendar", "project", "period")


def _read_head(connection: Connection) -> Head:
    row = connection.execute(_select_head()).one_or_none()
    return Head(0, connection.execute(select(STORE.c.id)).scalar_one()) if row is None else Head(*row)


def _read_history(
    connection: Connection, *conditions: ColumnElement[bool], limit: int | None = None
) -> tuple[Entry, ...]:
    latest = select(HISTORY).where(*conditions).order_by(HISTORY.c.number.desc()).limit(limit)
    return tuple(_to_entry(row) for row in reversed(connection.execute(latest).mappings().all()))


def _to_entry(row: RowMapping) -> Entry:
    subject = Subject(**{name: row[name] for name in _SUBJECT_FIELDS})
    return Entry(subject=subject, **{name: row[name] for name in _OWN_FIELDS})


def _is_of(subject: Subject) -> ColumnElement[bool]:
    of_version = HISTORY.c.version == subject.version if subject.version is not None else HISTORY.c.version.is_(None)
    return (HISTORY.c.kind == subject.kind) & (HISTORY.c.id == subject.id) & of_version


def _read_signoffs(connection: Connection, subjects: Sequence[Subject]) -> tuple[SignOff, ...]:
    if not subjects:
        return ()
    is_signing = HISTORY.c.event.in_([Event.SIGN, Event.UNSIGN])
    return find_signoffs(_read_history(connection, is_signing, or_(*map(_is_of, subjects))))


def _require_approvals(connection: Connection, approvals: Approvals | None, *, by: str) -> dict[str, object]:
    """Who approved, as a detail of the entry; refuses if they are too few."""
    if approvals is None or approvals.needed == 0:
        return {}
    people = approvals.require(_read_signoffs(connection, [approvals.subject]), by=by)
    return {"approved_by": list(people), FINGERPRINT: approvals.fingerprint}


def _subject_of(run: Run) -> Subject:
    return Subject.of_run(run.id, project=run.project, period=run.period, version=run.version)


def _record_run(connection: Connection, before: Run, after: Run, *, by: str, by_other: bool = False) -> None:
    """An entry for a new status or a new attempt; how far a run got in between is in its record alone."""
    resumed = after.fence != before.fence
    same = after.status == before.status and not resumed
    if same and not by_other:
        return
    entry = Entry(
        subject=_subject_of(after),
        event=Event.RESUMED if resumed else Event.ADVANCED if same else after.status,
        before=before.status,
        after=after.status,
        at=after.updated_at,
        by=by,
        detail={"progress": hash_document(after.progress), "fence": after.fence},
    )
    _record(connection, entry)


def _find_run(connection: Connection, run_id: str) -> Run | None:
    row = connection.execute(_select(RUN, "id"), {"id": run_id}).mappings().one_or_none()
    return None if row is None else Run(**row)


def _held(lease: Lease) -> ColumnElement[bool]:
    return (
        (LEASE.c.project == lease.project)
        & (LEASE.c.period == lease.period)
        & (LEASE.c.fence == lease.fence)
        & (LEASE.c.token == lease.token)
    )


def _find_lease(connection: Connection, project: str, period: str) -> dict[str, Any] | None:
    this = {"project": project, "period": period}
    row = connection.execute(_select(LEASE, *this), this).mappings().one_or_none()
    return None if row is None else dict(row)


def _put_lease(connection: Connection, lease: Lease, *, is_new: bool) -> Lease:
    values = asdict(lease)
    if is_new:
        connection.execute(_insert(LEASE), values)
    else:
        this = (LEASE.c.project == lease.project, LEASE.c.period == lease.period)
        connection.execute(update(LEASE).where(*this).values(values))
    return lease


def _require_lease(connection: Connection, lease: Lease) -> None:
    this = {name: getattr(lease, name) for name in ("project", "period", "fence", "token")}
    if connection.execute(_select(LEASE, *this), this).first() is None:
        lost = LeaseLost(project=lease.project, period=lease.period, fence=lease.fence)
        raise RunFailed(lost)
