"""Removes leftovers of killed runs: run folders, staged files, staging tables, unfinished stores.

Records and leases of the store decide what may be removed (``runs/leftovers.py``). Only leftovers that no record can name
are removed by age.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.problems import InternalError, Problem, Rejected, RunFailed
from dobonomodo.runs import RunSpec, restore_snapshot
from dobonomodo.runs.holder import is_dead
from dobonomodo.runs.leftovers import are_all_recorded, find_alive, is_over
from dobonomodo.runs.retention import find_locked_runs, find_needed_hashes, list_hashes
from dobonomodo.runs.state import RunStatus
from dobonomodo.storage import KeptInputs
from dobonomodo.storage.leftover import Leftover, find_last_change
from dobonomodo.storage.transport import PROBE, WRITTEN
from dobonomodo.store import Event, Kind
from dobonomodo.workspace.running import OWNER, RunData

if TYPE_CHECKING:
    from dobonomodo.storage.transport import Transport
    from dobonomodo.store import Run, Store
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.stores import Stores

DAY = 24 * 3600
SWEPT = "swept"
"""The file in a run's folder that says up to which attempt nothing is left at its destinations."""
AT_MOST = 1_000
"""Maximum number of runs of a status, or of a project and period, that are inspected: the latest ones."""

OpenData = Callable[[str, RunSpec], RunData]
"""Gives the rows that a run reads and writes, by its id."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The leftovers of runs, and why some of them could not be removed."""

    leftovers: tuple[Leftover, ...]
    problems: tuple[Problem, ...] = ()
    dry_run: bool = False

    @property
    def bytes(self) -> int:
        """The size of all leftovers."""
        return sum(each.bytes for each in self.leftovers)

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {"dry_run": self.dry_run, "bytes": self.bytes, "leftovers": [each.to_dict() for each in self.leftovers]}


def clean_workspace(files: Files, stores: Stores, *, data: OpenData, keep_inputs: str, dry_run: bool) -> Cleaned:
    """Remove leftovers of killed runs, and copies of inputs that no run needs; with ``dry_run``, only find them."""
    unfinished = find_unfinished_stores(stores.path) if stores.path is not None else []
    if not dry_run:
        for each in unfinished:
            each.remove()
    store = stores.find_main()
    if store is None:
        return Cleaned(tuple(unfinished))
    cleaning = Cleaning(files.runs, store, data=data, transport=files.transport)
    cleaned = cleaning.clean(everywhere=True, dry_run=dry_run)
    copies = find_needless_copies(files.root, store, keep_inputs=keep_inputs)
    if not dry_run:
        for each in copies:
            each.remove()
    return replace(cleaned, leftovers=(*unfinished, *cleaned.leftovers, *copies))


def find_needless_copies(root: Path, store: Store, *, keep_inputs: str) -> list[Leftover]:
    """Copies of inputs that no run needs. What no record names may be of a run that is running, unless it is a day old."""
    # Before the records are read, so that what a run keeps and records meanwhile is not among them.
    copies = list(KeptInputs.of(root).files())
    alive = find_alive(store.list_leases(), is_dead=is_dead)
    runs = store.list_runs()
    history = store.list_history()
    subjects = {entry.subject for entry in history if entry.subject.kind == Kind.RUN and entry.event == Event.SIGN}
    signed = {each.subject.id for each in store.list_signoffs(*subjects)}
    locked = find_locked_runs(history)
    working = {run.id for run in runs if not is_over(run, others=_of_same(run, runs), alive=alive)}
    needed = find_needed_hashes(runs, policy=keep_inputs, protected=signed | locked | working)
    named = {sha256 for run in runs for sha256 in list_hashes(run.progress)}
    return [
        Leftover.of_path(each.place, kind="kept input")
        for each in copies
        if each.sha256 not in needed and (each.sha256 in named or each.since < time.time() - DAY)
    ]


class Cleaning:
    """One observation of all that runs left in a workspace. The folders are listed first, then the leases, then the records are read.

    So a run that started before is known by its lease or by its record, and a run that starts later is not inspected.
    """

    def __init__(self, runs: Path, store: Store, *, data: OpenData, transport: Transport | None = None) -> None:
        """``runs`` is the folder of the folders of runs, ``transport`` has the objects of runs."""
        self._store, self._data, self._transport = store, data, transport
        self._problems: list[Problem] = []
        self._remote = self._list_remote()
        self._folders = {path.name: path for path in sorted(_entries(runs)) if path.is_dir()}
        self._alive = find_alive(store.list_leases(), is_dead=is_dead)
        self._runs_of = cache(lambda project, period: store.list_runs(project=project, period=period, limit=AT_MOST))

    def _list_remote(self) -> Sequence[str]:
        try:
            return self._transport.names() if self._transport is not None else ()
        except RunFailed as failed:
            self._problems.append(failed.problem)
            return ()

    def clean(self, *, everywhere: bool, dry_run: bool) -> Cleaned:
        """Find leftovers and remove them: those of the runs that have a folder here, or of all that did not complete."""
        found: list[Leftover] = []
        for run_id, run in self._find_runs(everywhere=everywhere).items():
            over = run is not None and self._is_over(run)
            own = list(self._find_staged(run)) if run is not None and over else []
            found += own
            if not dry_run and not self._remove(own):
                continue
            rest = [*self._find_in_folder(run_id, run, over=over), *self._find_objects(run_id, run, over=over)]
            found += rest
            if not dry_run:
                self._remove(rest)
                if run is not None and over:
                    self._note_swept(run)
        return Cleaned(tuple(found), tuple(dict.fromkeys(self._problems)))

    def _find_runs(self, *, everywhere: bool) -> Mapping[str, Run | None]:
        found: dict[str, Run | None] = {name: self._store.get_run(name) for name in (*self._folders, *self._remote)}
        if everywhere:
            for status in (RunStatus.RUNNING, RunStatus.FAILED, RunStatus.CANCELLED):
                found |= {run.id: run for run in self._store.list_runs(status=status, limit=AT_MOST)}
        return found

    def _is_over(self, run: Run) -> bool:
        return is_over(run, others=self._runs_of(run.project, run.period), alive=self._alive)

    # --- at the destinations

    def _find_staged(self, run: Run) -> Iterator[Leftover]:
        if self._is_swept(run):
            return
        try:
            data = self._data(run.id, restore_snapshot(run.snapshot))
        except InternalError:
            # A snapshot of another version of this program: it cannot be resumed either.
            return
        data.hold(run.fence or 0)
        seen: set[str] = set()
        for finding in data.leftover_findings():
            try:
                listed = finding()
            except RunFailed as failed:
                self._problems.append(failed.problem)
                continue
            except Rejected as rejected:
                self._problems.extend(rejected.problems)
                continue
            # Two outputs into one database find the same tables.
            yield from (each for each in listed if each.place not in seen)
            seen |= {each.place for each in listed}

    def _is_swept(self, run: Run) -> bool:
        folder = self._folders.get(run.id)
        with suppress(OSError, ValueError):
            return folder is not None and int((folder / SWEPT).read_text()) >= (run.fence or 0)
        return False

    def _note_swept(self, run: Run) -> None:
        if self._problems:
            return
        folder = self._folders.get(run.id)
        if folder is not None and folder.is_dir():
            with suppress(OSError):
                (folder / SWEPT).write_text(str(run.fence or 0))

    # --- in the folder of the run

    def _find_in_folder(self, run_id: str, run: Run | None, *, over: bool) -> Iterator[Leftover]:
        folder = self._folders.get(run_id)
        if folder is None or not folder.is_dir():
            return
        parts = list(self._parts_to_remove(folder, run, over=over))
        rest = [path for path in _entries(folder) if path not in parts and path.name not in (OWNER, SWEPT)]
        if (over or (run is None and parts)) and not rest:
            yield Leftover.of_path(folder, kind="run folder", run=run_id)
        else:
            yield from (Leftover.of_path(path, kind=f"{path.name} of a run", run=run_id) for path in parts)

    def _parts_to_remove(self, folder: Path, run: Run | None, *, over: bool) -> Iterator[Path]:
        if run is None:
            if self._is_abandoned(folder):
                yield from _entries(folder)
            return
        for path in _entries(folder):
            attempts = [each.name for each in _entries(path)]
            if _is_needless(path.name, run, over=over, attempts=attempts, changed=partial(find_last_change, path)):
                yield path

    def _is_abandoned(self, folder: Path) -> bool:
        """Whether a folder is of a run that was killed before it was recorded."""
        try:
            owner = (folder / OWNER).read_text()
        except OSError:
            # Of a version that did not say whose it is; it may be recorded in the store of another environment.
            return _is_old(find_last_change(folder))
        return self._is_own(owner)

    def _is_own(self, owner: str | None) -> bool:
        """Whether a run without a record belongs to the store, and no run is about to be recorded."""
        return owner == self._store.id and are_all_recorded(self._alive, self._runs_of)

    # --- in the object store through which Spark and the run exchange files

    def _find_objects(self, run_id: str, run: Run | None, *, over: bool) -> Iterator[Leftover]:
        if self._transport is None or run_id not in self._remote:
            return
        own = self._transport.below(run_id)
        try:
            names = own.names()
            parts = [name for name in names if self._are_needless(own, name, run, over=over)]
            if parts and not {*names} - {*parts, OWNER}:
                yield own.find_leftover(kind="objects of a run", run=run_id)
            else:
                for name in parts:
                    yield own.find_leftover(name, kind=f"{name} of a run", run=run_id)
        except RunFailed as failed:
            self._problems.append(failed.problem)

    def _are_needless(self, own: Transport, name: str, run: Run | None, *, over: bool) -> bool:
        if run is None:
            return self._is_own(own.read_note(OWNER))
        attempts = own.below(name).names() if name == WRITTEN else ()
        changed = partial(own.find_last_change, name)
        needless = _is_needless(name, run, over=over, attempts=attempts, changed=changed)
        return needless or (name == OWNER and over)

    def _remove(self, leftovers: list[Leftover]) -> bool:
        """Whether all could be removed."""
        done = True
        for each in leftovers:
            try:
                each.remove()
            except RunFailed as failed:
                self._problems.append(failed.problem)
                done = False
        return done


def _of_same(run: Run, runs: Iterable[Run]) -> list[Run]:
    return [each for each in runs if (each.project, each.period) == (run.project, run.period)]


def find_unfinished_stores(path: Path) -> list[Leftover]:
    """Files that were to become the store at a path, when their process was killed."""
    from dobonomodo.store.format import UNFINISHED

    found = path.parent.glob(f"{path.name}.*{UNFINISHED}*") if path.parent.is_dir() else ()
    old = (each for each in sorted(found) if _is_old(find_last_change(each)))
    return [Leftover.of_path(each, kind="unfinished store") for each in old]


def has_leftovers(runs: Path, transport: Transport | None = None) -> bool:
    """Whether there is the folder of any run, or its objects, which a run that completes removes."""
    return bool(_entries(runs)) or (transport is not None and bool(transport.names()))


def _is_needless(part: str, run: Run, *, over: bool, attempts: Iterable[str], changed: Callable[[], float]) -> bool:
    """Whether a part of what a run keeps is needed no more; ``attempts`` are the names in it."""
    match part:
        case "inputs":
            return over
        case "outputs":
            return over and not _has_later_attempt(attempts, run)
        case "verify":
            # Rows that were read back, perhaps by a notebook that is still open.
            return _is_old(changed())
        case _:
            return over and part.startswith(PROBE)


def _has_later_attempt(names: Iterable[str], run: Run) -> bool:
    """Whether an attempt has begun since the record was read."""
    numbers = [int(name) for name in names if name.isdigit()]
    return run.fence is not None and any(number > run.fence for number in numbers)


def _is_old(changed: float) -> bool:
    return changed < time.time() - DAY


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
