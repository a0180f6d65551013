"""Verifies that the records of a store match its history. Pure: everything is read through the port."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dobonomodo.model.plain import hash_document
from dobonomodo.store.history import Entry, Event, Head, Kind, find_break
from dobonomodo.store.life import PeriodEvent, ProjectEvent, ProjectStatus
from dobonomodo.store.signoff import FINGERPRINT
from dobonomodo.store.store import PROJECT

if TYPE_CHECKING:
    from dobonomodo.store.store import PeriodRecord, Run, Store, Version

_ASIDE = frozenset({Event.SIGN, Event.UNSIGN, Event.OVERRIDE})
"""Events that do not change a record."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A record that contradicts the history."""

    subject: str
    detail: str


@dataclass(frozen=True, slots=True, eq=False)
class StoreAudit:
    """The result of a check of everything."""

    history: tuple[Entry, ...] = ()
    versions: int = 0
    periods: int = 0
    runs: tuple[Run, ...] = ()
    broken: int | None = None
    """The number of the first entry that is not as it was written or does not follow the one before."""
    damage: tuple[str, ...] = ()
    """Records that cannot be parsed; nothing else is checked then."""
    doubts: tuple[Doubt, ...] = ()
    unproved: tuple[str, ...] = ()
    """Records that are older than the history and cannot be verified."""


def audit_store(store: Store, *, kinds: Iterable[str], calendars: Iterable[str]) -> StoreAudit:
    """Compare all records with the history."""
    if damage := store.find_damage():
        return StoreAudit(damage=damage)
    history = store.list_history()
    broken = find_break(history, start=Head(0, store.id))
    versions = [
        version
        for kind in dict.fromkeys(kinds)
        for newest in store.list_definitions(kind)
        for version in store.list_versions(kind, newest.id)
    ]
    named = dict.fromkeys([*calendars, *(entry.subject.calendar for entry in history if entry.subject.calendar)])
    periods: dict[tuple[str, str], PeriodRecord] = {}
    unreadable = []
    for name in named:
        try:
            periods |= {(name, each): record for each, record in store.list_periods(name).items()}
        except ValueError:
            unreadable.append(Doubt(f"calendar {name}", "the status of a period is unknown"))
    runs = store.list_runs()
    checks = (_check_versions(versions, history), _check_runs(runs, history), _check_periods(periods, history))
    found = [*unreadable, *(each for check in checks for each in check)]
    return StoreAudit(
        history,
        len(versions),
        len(periods),
        runs,
        broken,
        doubts=tuple(each for each in found if isinstance(each, Doubt)),
        unproved=tuple(each for each in found if isinstance(each, str)),
    )


# --- versions


def _check_versions(versions: Sequence[Version], history: Iterable[Entry]) -> Iterator[Doubt | str]:
    entries: dict[tuple[str, str, int | None], list[Entry]] = defaultdict(list)
    for entry in history:
        if entry.event not in _ASIDE and entry.subject.version is not None:
            entries[entry.subject.kind, entry.subject.id, entry.subject.version].append(entry)
    known = {(version.kind, version.id, version.version) for version in versions}
    for (kind, name, number), said in entries.items():
        if kind not in set(Kind) and (kind, name, number) not in known:
            yield Doubt(str(said[0].subject), "its record is gone")
    for version in versions:
        said = entries.get((version.kind, version.id, version.version), [])
        subject = f"{version.kind} {version.id} v{version.version}"
        if not any(entry.event in (Event.APPLY, Event.REGISTER) for entry in said):
            yield subject
        yield from (Doubt(subject, f"its {what} is not what the history says") for what in _differences(version, said))


def _differences(version: Version, entries: Sequence[Entry]) -> Iterator[str]:
    if not entries:
        return
    contents = [entry for entry in entries if entry.event in (Event.APPLY, Event.REGISTER)]
    if contents:
        yield from _compare_content(version, contents)
    if (version.updated_at, version.updated_by) != (entries[-1].at, entries[-1].by):
        yield "last change"
    if version.kind == PROJECT:
        moved = [entry.after for entry in entries if entry.after is not None]
        if version.status != (moved[-1] if moved else ProjectStatus.DRAFT):
            yield "status"
        yield from _compare_life(version, entries, is_whole=bool(contents))


def _compare_content(version: Version, contents: Sequence[Entry]) -> Iterator[str]:
    first, detail = contents[0], contents[-1].detail or {}
    if (version.created_at, version.created_by) != (first.at, first.by):
        yield "author"
    text = hashlib.sha256(version.text.encode()).hexdigest() if version.text is not None else None
    found = {
        FINGERPRINT: version.fingerprint,
        "document": hash_document(version.document),
        "text": text,
        "status": version.status if version.kind != PROJECT else detail.get("status"),
    }
    yield from (name for name, value in found.items() if name in detail and detail[name] != value)
    registered = next((entry.detail or {} for entry in contents if entry.event == Event.REGISTER), {})
    location = hash_document(version.location) if version.location is not None else None
    if (not registered or "location" in registered) and location != registered.get("location"):
        yield "location"
    if version.origin != registered.get("origin"):
        yield "origin"


def _compare_life(version: Version, entries: Sequence[Entry], *, is_whole: bool) -> Iterator[str]:
    activated = [entry for entry in entries if entry.event == ProjectEvent.ACTIVATE]
    own = version.activation
    if activated:
        last, detail = activated[-1], activated[-1].detail or {}
        found = (own.at, own.by, own.pin.dataset, own.pin.version) if own is not None else None
        if found != (last.at, last.by, detail.get("dataset"), detail.get("version")):
            yield "activation"
    elif is_whole and own is not None:
        yield "activation"
    reports = [entry for entry in entries if entry.event in (ProjectEvent.CONFLICT, ProjectEvent.ACTIVATE)]
    expected = reports[-1].detail if reports and reports[-1].event == ProjectEvent.CONFLICT else None
    if (reports or is_whole) and version.conflict != expected:
        yield "conflict"


# --- runs


def _check_runs(runs: Sequence[Run], history: Sequence[Entry]) -> Iterator[Doubt | str]:
    entries: dict[str, list[Entry]] = defaultdict(list)
    for entry in history:
        if entry.subject.kind == Kind.RUN and entry.event not in _ASIDE:
            entries[entry.subject.id].append(entry)
    known = {run.id for run in runs}
    yield from (Doubt(f"run {name}", "its record is gone") for name in entries if name not in known)
    for run in runs:
        said = entries.get(run.id, [])
        if not any(entry.event == Event.STARTED for entry in said):
            if not history or run.created_at < history[0].at:
                yield f"run {run.id}"
            else:
                yield Doubt(f"run {run.id}", "the history does not know it")
        yield from (
            Doubt(f"run {run.id}", f"its {what} is not what the history says") for what in _run_differs(run, said)
        )


def _run_differs(run: Run, entries: Sequence[Entry]) -> Iterator[str]:
    for entry in entries:
        if entry.event == Event.STARTED:
            yield from _start_differs(run, entry)
    if not entries:
        return
    last = entries[-1]
    detail = last.detail or {}
    if run.status != last.after:
        yield "status"
    if "fence" in detail and run.fence != detail["fence"]:
        yield "fencing number"
    if last.event in (Event.STARTED, Event.RESUMED):
        # It is running, or was killed: how far it got is in its record alone.
        return
    if "progress" in detail and hash_document(run.progress) != detail["progress"]:
        yield "record"
    if run.updated_at != last.at:
        yield "last change"


def _start_differs(run: Run, entry: Entry) -> Iterator[str]:
    subject = entry.subject
    if (run.project, run.period, run.version) != (subject.project, subject.period, subject.version):
        yield "project, version or period"
    if (run.created_at, run.by) != (entry.at, entry.by):
        yield "start"
    if hash_document(run.snapshot) != (entry.detail or {}).get("snapshot"):
        yield "snapshot"


# --- periods


def _check_periods(periods: Mapping[tuple[str, str], PeriodRecord], history: Iterable[Entry]) -> Iterator[Doubt]:
    last: dict[tuple[str, str], Entry] = {}
    for entry in history:
        if entry.event in set(PeriodEvent) and entry.subject.calendar is not None:
            last[entry.subject.calendar, entry.subject.id] = entry
    for key in dict.fromkeys([*periods, *last]):
        latest, record = last.get(key), periods.get(key)
        said = (latest.after, latest.at, latest.by) if latest is not None else None
        found = (record.status, record.changed_at, record.changed_by) if record is not None else None
        if said != found:
            yield Doubt(f"period {key[1]} of {key[0]}", "its status is not what the history says")
