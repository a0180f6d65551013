"""A folder of files as a destination: every write creates a complete new folder, and a pointer switches readers to it.

``orders/run_period=2026-01`` links to the data of a period's latest run; the data are stored under ``.dobo-data``.
Changing the pointer (``pointer.py``) is the one act of publishing, for all tables of a datasource together, so that a reader
finds the old rows or the new ones and never a mixture.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Protocol, runtime_checkable

from dobonomodo.formula import Type
from dobonomodo.model.plain import Document
from dobonomodo.plan.registration import United, unite_columns
from dobonomodo.storage.durable import sync, write_durably
from dobonomodo.storage.faults import is_passing, removing_on_failure, writing_failed
from dobonomodo.storage.fence import Fence
from dobonomodo.storage.files import link_file
from dobonomodo.storage.kept import hash_file
from dobonomodo.storage.leftover import Leftover, find_last_change
from dobonomodo.storage.manifest import DATA, HIDDEN, MANIFEST, Part, current_versions, read_hashes, read_parts
from dobonomodo.storage.named import MARK, NamedFile
from dobonomodo.storage.pointer import Pointer
from dobonomodo.storage.target import Commit, Inspected, Noted, Publication, Target

KEY = "run_period"
KEPT = "kept"
REPLACED = "replaced"
FENCES = "fences.json"
"""The highest fencing number of each store, project and period that published here."""
NOT_THERE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
"""Faults of reading that mean that there is no such file; others mean that it cannot be read."""
HASHED_AT_ONCE = 4
GRACE_SECONDS = 3600
"""How long replaced data stay, for readers that have begun to read them."""


class Format(Protocol):
    """What the files of a folder are."""

    @property
    def kind(self) -> str:
        """The kind of datasource."""
        ...

    @property
    def options(self) -> Mapping[str, object]:
        """What a reader has to know."""
        ...

    @property
    def in_place(self) -> bool:
        """Whether Spark writes the files as they are published."""
        ...

    def convert(self, files: Sequence[Path], folder: Path, *, columns: Mapping[str, Type], to: str) -> None:
        """Make files of Parquet files; ``to`` is how messages name the destination."""
        ...


@runtime_checkable
class Workbooks(Protocol):
    """A format whose files can hold several outputs."""

    def check(self, files: Sequence[Path], *, columns: Mapping[str, Type], to: str) -> None:
        """Refuse rows that such a file cannot hold, before anything is published."""
        ...

    def combine(self, parts: Sequence[FilePart], target: Path, *, to: str) -> None:
        """Write several outputs into one file."""
        ...


@dataclass(frozen=True, slots=True)
class FilePart:
    """One of the outputs in a file: its Parquet files and columns, and the name of its sheet."""

    files: tuple[Path, ...]
    columns: Mapping[str, Type]
    sheet: str | None


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """The files that one output wrote."""

    format: Format
    folder: str
    """What readers read; relative to the workspace where it is inside, so that the workspace can be moved."""
    data: str
    """The folder of the files."""
    files: tuple[str, ...]
    hashes: tuple[str, ...] | None = None
    """Their SHA-256, in the same order; None if an earlier version published them."""
    manifest: str | None = None
    """The SHA-256 of the manifest beside them."""
    named: str | None = None
    """The file that people open, where the output writes one of its own name."""
    datasource_id: str | None = None
    """The datasource that is needed to read them; None for files of this machine, which have addresses of their own."""
    named_sha256: str | None = None
    """The SHA-256 of the file that people open; None if an earlier version published it."""

    @property
    def kind(self) -> str:
        """The kind of storage."""
        return self.format.kind

    @property
    def columns(self) -> None:
        """The record of the output has them."""

    @property
    def file_names(self) -> frozenset[str]:
        """The last parts of the paths of the files of the data."""
        return frozenset(map(os.path.basename, self.files))

    @property
    def shown(self) -> str:
        """The file that people open, else the folder."""
        return self.named or self.folder

    @property
    def place(self) -> tuple[str | None, ...]:
        """The folder."""
        return ("folder", self.folder)

    @property
    def lasting(self) -> StoredFiles:
        """The files of a run stay its own."""
        return self

    @property
    def folders(self) -> tuple[str, ...]:
        """Where the files are."""
        return (self.data,)

    def document(self) -> dict[str, object]:
        """As plain data."""
        own: dict[str, object] = {
            "kind": self.kind,
            "folder": self.folder,
            "data": self.data,
            "files": list(self.files),
        }
        if self.hashes is not None:
            own |= {"hashes": list(self.hashes), "manifest": self.manifest}
        if self.named is not None:
            own["named"] = self.named
        if self.named_sha256 is not None:
            own["named_sha256"] = self.named_sha256
        if self.datasource_id is not None:
            own["datasource_id"] = self.datasource_id
        return {**own, **self.format.options}

    @classmethod
    def load(cls, document: Document, form: Format) -> StoredFiles:
        """From plain data."""
        hashes = document.get("hashes")
        return cls(
            form,
            document["folder"],
            document["data"],
            tuple(document["files"]),
            tuple(hashes) if hashes is not None else None,
            document.get("manifest"),
            document.get("named"),
            document.get("datasource_id"),
            document.get("named_sha256"),
        )


@dataclass(frozen=True, slots=True)
class StoredFolders:
    """A registered version: the folders of all periods as they were when it was registered (C-64)."""

    format: Format
    folders: tuple[str, ...]
    columns: tuple[str, ...]
    datasource_id: str | None = None
    """The datasource that is needed to read them; None for files of this machine."""

    @property
    def kind(self) -> str:
        """The kind of storage."""
        return self.format.kind

    @property
    def shown(self) -> None:
        """The name of the dataset says more."""

    @property
    def place(self) -> tuple[str | None, ...]:
        """The folders."""
        return ("folders", *self.folders)

    @property
    def lasting(self) -> StoredFolders:
        """The files of runs stay their own."""
        return self

    def document(self) -> dict[str, object]:
        """As plain data."""
        own: dict[str, object] = {
            "kind": self.kind,
            "folders": list(self.folders),
            "columns": list(self.columns),
        }
        if self.datasource_id is not None:
            own["datasource_id"] = self.datasource_id
        return {**own, **self.format.options}

    @classmethod
    def load(cls, document: Document, form: Format) -> StoredFolders:
        """From plain data."""
        columns = tuple(document.get("columns", ()))
        return cls(form, tuple(document["folders"]), columns, document.get("datasource_id"))


@dataclass(frozen=True, slots=True)
class FolderTarget:
    """One output of one run into a folder."""

    folder: Path
    """What readers read."""
    prefix: Path
    """The folder of the datasource, whose tables are published together."""
    root: Path
    """The folder of the workspace, with which the destination may be moved."""
    format: Format
    period: str
    run: str
    seq: int
    columns: Mapping[str, Type]
    fence: Fence
    attempt: int
    """The number of the attempt that wrote the files, which may be an earlier one than the one that publishes them."""
    named: NamedFile | None = None
    """The file that people open, where the output writes one of its own name."""
    apart: bool = False
    """Whether Spark cannot write into the folder."""

    @property
    def place(self) -> str:
        """The pointer through which the folder is read."""
        return f"folder {self._pointer.prefix}"

    @property
    def _pointer(self) -> Pointer:
        return Pointer.of(self.folder, prefix=self.prefix)

    @property
    def _store(self) -> Path:
        return self.folder.parent / HIDDEN / self.folder.name

    @property
    def _version(self) -> Path:
        return self._version_of(self.attempt)

    def _version_of(self, fence: int | None) -> Path:
        """Each attempt at a run has its own folder: an earlier attempt may still be writing, without knowing that it lost its lease."""
        name = f"{self.period}~{self.run}-{self.seq}"
        return self._store / (name if fence is None else f"{name}-{fence}")

    @property
    def data(self) -> Path:
        """Where this attempt puts the output's files, before and after they are published."""
        return self._version / DATA

    def published_data(self) -> Path:
        """Where the output's files are, whichever attempt published them."""
        return self._published_version() / DATA

    def _published_version(self) -> Path:
        commit = self._find_sealed()
        return self._version if commit is None else self._version_of(commit.fence)

    def _find_key(self) -> str:
        """The name of the column that tools make of the folders of periods: one that is not among the data's own.

        A folder keeps the one that it has, so that a period is never there twice.
        """
        taken = {name.casefold() for name in self.columns}
        used = next((path.name.partition("=")[0] for path in _entries(self.folder) if path.is_symlink()), None)
        if used is not None and used in taken:
            detail = f"its folders are named by `{used}`, which is now also a column; choose another table"
            raise writing_failed(str(self.folder), detail)
        return used or next(key for key in ("dobo_" * times + KEY for times in count()) if key not in taken)

    @property
    def link(self) -> Path:
        """The name under which readers find the period."""
        return self.folder / f"{self._find_key()}={self.period}"

    def check(self, *, mode: str) -> United:
        """Before anything is computed, refuse a folder with foreign files, or with data that cannot be read together with these columns.

        Returns the columns of the data that stays.
        """
        with self._explaining():
            self._require_ours()
            self._find_key()
            self._store.mkdir(parents=True, exist_ok=True)
            self._require_own_name()
            places = [self._store, self.folder.parent, self.prefix]
            if self.named is not None:
                self.named.path.parent.mkdir(parents=True, exist_ok=True)
                places.append(self.named.path.parent)
            for place in places:
                probe = place / f".probe-{os.getpid()}"
                probe.touch()
                probe.unlink()
            return self._unite(mode=mode)

    def _require_own_name(self) -> None:
        """Refuse to replace a file that no run wrote, or that was changed since."""
        if self.named is None:
            return
        # Outputs that write sheets of the same file are kept beside this one.
        versions = [version for store in _entries(self._store.parent) for version in _entries(store)]
        obstacle = self.named.find_obstacle(versions)
        if obstacle is not None:
            raise writing_failed(str(self.named.path), obstacle)

    def _require_ours(self) -> None:
        """Refuse a folder with files that no run wrote."""
        if self.folder.exists() and not self.folder.is_dir():
            raise writing_failed(str(self.folder), "it is a file, not a folder")
        foreign = sorted(path.name for path in _entries(self.folder) if not _is_ours(path))
        if foreign:
            detail = f"the folder contains `{foreign[0]}`, which no run wrote; choose another table"
            raise writing_failed(str(self.folder), detail)

    def _unite(self, *, mode: str, before: Path | None = None) -> United:
        """The columns of what stays; refuses those of this output if both cannot be read together (C-86)."""
        replaced = self.current()
        staying = [each for each in current_versions(self.folder) if mode == "append" or each != replaced]
        staying += [before] if before is not None and before not in staying else []
        there = [part.columns for version in staying for part in read_parts(version)]
        united = unite_columns([*there, self.columns])
        if united.conflicts:
            raise writing_failed(str(self.folder), united.explain())
        return unite_columns(there)

    def start(self) -> str | None:
        """An empty folder to put data into; what a killed attempt left there is removed, what is published stays."""
        return str(self._start()) if self._in_place and self._find_sealed() is None else None

    @property
    def _in_place(self) -> bool:
        return self.format.in_place and not self.apart

    def _start(self) -> Path:
        with self._explaining():
            if self._version.exists():
                shutil.rmtree(self._version)
            self._version.mkdir(parents=True, exist_ok=True)
        return self.data

    def convert(self, files: Sequence[str]) -> bool:
        """Make the files of the destination, where Spark did not write them as they are."""
        if self.named is not None and isinstance(self.format, Workbooks):
            self.format.check([Path(each) for each in files], columns=self.columns, to=str(self.named.path))
        if self._in_place or self._find_sealed() is not None:
            return False
        data = self._start()
        with self._explaining(), removing_on_failure(data):
            data.mkdir()
            if self.format.in_place:
                _link_files([Path(each) for each in files], data)
            else:
                self.format.convert([Path(each) for each in files], data, columns=self.columns, to=str(self.folder))
        return True

    def find_commit(self) -> Commit | None:
        """What this output published, if it did: the data, and the file that people open."""
        commit = self._find_sealed()
        with self._explaining():
            placed = commit is None or self.named is None or self.named.is_placed(self._version_of(commit.fence))
        return commit if placed else None

    def _find_sealed(self) -> Commit | None:
        """What readers of the data find of this output."""
        with self._explaining():
            return self._own_commit(self.current())

    def _own_commit(self, version: Path | None) -> Commit | None:
        return next((each for each in self._commits(version) if (each.run, each.seq) == (self.run, self.seq)), None)

    def claim(self) -> None:
        """Fail if a later run has claimed the folder; otherwise earlier runs are refused from now on."""
        with self._explaining(), self._pointer.locked():
            self.claim_under_lock()

    def claim_under_lock(self) -> None:
        """The same, for whoever holds the lock of the pointer."""
        self._store.mkdir(parents=True, exist_ok=True)
        path = self._store / FENCES
        numbers: dict[str, int] = json.loads(path.read_text()) if path.exists() else {}
        seen = numbers.get(self.fence.key, 0)
        if seen > self.fence.number:
            raise self.fence.lost()
        if seen < self.fence.number:
            write_durably(path, json.dumps({**numbers, self.fence.key: self.fence.number}, indent=2).encode())
            sync(self._store)

    def publish(self, group: Sequence[Publication]) -> None:
        """Publish the data of all outputs, by one change of the pointer."""
        pointer = self._pointer
        changes: dict[Path, dict[str, Path]] = {}
        replaced: dict[Path, Path] = {}
        with self._explaining(), pointer.locked():
            targets = [(each, _folder_target(each.target)) for each in group]
            for _, target in targets:
                target.claim_under_lock()
            for each, target in targets:
                link = target.link
                pending = changes.get(target.folder, {}).get(link.name)
                before = pending.parent if pending is not None else target.current()
                if target.seal(each, before=before):
                    changes.setdefault(target.folder, {})[link.name] = target.data
                    if before is not None and before != target.data.parent:
                        replaced[before] = target.data.parent
            if changes:
                pointer.publish(changes)
            _place_files(targets)
            for before in replaced:
                (before / REPLACED).touch()
            for each, target in targets:
                target.sweep(each.since)
            pointer.sweep(before=time.time() - GRACE_SECONDS)

    def seal(self, publication: Publication, *, before: Path | None) -> bool:
        """Complete the version that is to be published: manifest, and what it is appended to. False if it is published."""
        if self._own_commit(before) is not None:
            return False
        self._require_ours()
        if not self.data.is_dir() and not self._in_place:
            self.convert(publication.staged_files())
        self._require_own_name()
        own = self._find_own()
        self._unite(mode=publication.mode, before=before if publication.mode == "append" else None)
        commits, parts = [replace(publication.commit, fence=self.attempt)], [Part(tuple(own), self.columns)]
        there: list[Path] = []
        known: dict[str, str] = {}
        if publication.mode == "append" and before is not None:
            commits, parts = [*self._commits(before), *commits], [*read_parts(before), *parts]
            there, known = _entries(before / DATA), read_hashes(before)
        # Who continues after a kill can tell the output's own files from those that are put beside them.
        self._write_manifest(commits, own=own, there=there, parts=parts, known=known, head=publication.head)
        sync(self._version)
        _link_files(there, self.data)
        for path in self.data.iterdir():
            sync(path)
        for folder in (self.data, self._store):
            sync(folder)
        return True

    def _write_manifest(
        self,
        commits: Sequence[Commit],
        *,
        own: Sequence[str],
        there: Sequence[Path],
        parts: Sequence[Part],
        known: Mapping[str, str],
        head: Noted | None,
    ) -> None:
        """Put the list of files beside the data, for readers: they stay at these paths also when the link leads elsewhere.

        ``there`` are the files that it is appended to. With the SHA-256 of each file, of those as they were ``known``.
        """
        files = {path.name: path for path in (*there, *(self.data / name for name in own))}
        fresh = [name for name in sorted(files) if name not in known]
        with ThreadPoolExecutor(HASHED_AT_ONCE) as pool:
            found = dict(zip(fresh, pool.map(lambda name: hash_file(files[name]), fresh), strict=True))
        manifest = {
            "period": self.period,
            # From the folder around the table: the table itself is a link, behind which `..` leads elsewhere.
            "folder": os.path.relpath(self.data, self.folder.parent),
            "files": sorted(files),
            "own_files": list(own),
            "commits": [each.document() for each in commits],
            "parts": [each.document() for each in parts],
            "sha256": {**known, **found},
            "history": head._asdict() if head is not None else None,
        }
        write_durably(self._version / MANIFEST, json.dumps(manifest, indent=2).encode())

    def _find_own(self) -> list[str]:
        """The files of this output alone; an attempt that was killed may have put others beside them, which are removed."""
        manifest = self._version / MANIFEST
        if not manifest.exists():
            return sorted(path.name for path in self.data.iterdir())
        own: list[str] = json.loads(manifest.read_text())["own_files"]
        for path in self.data.iterdir():
            if path.name not in own:
                path.unlink()
        return own

    def own_files(self) -> list[str]:
        """The files that this output wrote, without those that it was appended to."""
        manifest: Document = json.loads((self._published_version() / MANIFEST).read_text())
        # Manifests of earlier versions list these alone.
        return list(manifest.get("own_files", manifest["files"]))

    def all_data(self) -> list[Path]:
        """The current data of every period, marked to be kept: a registered dataset reads them later."""
        versions = sorted(current_versions(self.folder))
        for version in versions:
            (version / KEPT).touch()
        return [version / DATA for version in versions]

    def find_leftovers(self) -> list[Leftover]:
        """What attempts up to this fencing number wrote and never published."""
        with self._explaining():
            found = [
                version
                for version in _entries(self._store)
                if self._is_own_attempt(version.name) and not (version / MANIFEST).exists()
            ]
            if self.named is not None and self.named.unfinished.exists():
                found.append(self.named.unfinished)
            return [Leftover.of_path(path, kind="staged files", run=self.run) for path in found]

    def _is_own_attempt(self, name: str) -> bool:
        output, _, number = name.rpartition("-")
        mine = self._version_of(None).name
        return name == mine or (output == mine and number.isdigit() and int(number) <= self.fence.number)

    def current(self) -> Path | None:
        """The folder of the data that readers find now."""
        return self.link.resolve().parent if self.link.is_symlink() else None

    def _commits(self, version: Path | None) -> list[Commit]:
        if version is None:
            return []
        try:
            manifest = json.loads((version / MANIFEST).read_text())
        except FileNotFoundError:
            return []
        return [Commit.load(each) for each in manifest["commits"]]

    def stored(self) -> StoredFiles:
        """Where the output is, once it is published."""
        version, files = self._published_version(), tuple(self.own_files())
        known = read_hashes(version)
        hashes = tuple(known[name] for name in files) if set(files) <= set(known) else None
        return StoredFiles(
            self.format,
            self._portable(self.folder),
            self._portable(version / DATA),
            files,
            hashes,
            hash_file(version / MANIFEST) if hashes is not None else None,
            self._portable(self.named.path) if self.named is not None else None,
            named_sha256=self.named.find_hash(version) if self.named is not None else None,
        )

    def registered(self) -> tuple[Mapping[str, Type], StoredFolders]:
        """The columns of all periods, and the folders of their data (C-64, C-86)."""
        folders = self.all_data()
        united = unite_columns(part.columns for each in folders for part in read_parts(each.parent)).columns
        listed = tuple(self._portable(folder) for folder in folders)
        return united, StoredFolders(self.format, listed, tuple(united))

    def _portable(self, path: Path) -> str:
        """Relative to the workspace where it is inside, so that the workspace can be moved."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return str(path)

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except OSError as fault:
            detail = fault.strerror or str(fault)
            raise writing_failed(str(self.folder), detail, retry_helps=is_passing(fault)) from fault

    def sweep(self, since: float) -> None:
        """Remove what was replaced long ago and what killed runs left; readers and the run itself may still use the rest."""
        current = set(current_versions(self.folder))
        limit = min(time.time() - GRACE_SECONDS, since)
        for version in _entries(self._store):
            if not version.is_dir() or version.resolve() in current or (version / KEPT).exists():
                continue
            if _is_obsolete(version, limit=limit):
                shutil.rmtree(version, ignore_errors=True)


def _is_obsolete(version: Path, *, limit: float) -> bool:
    """Whether a version that is not read any more was replaced before the limit, or given up a day before it."""
    replaced = version / REPLACED
    if replaced.exists():
        return replaced.stat().st_mtime < limit
    if (version / MANIFEST).exists():
        # Its successor was killed before it could say when it replaced it. Readers have an hour from now on.
        replaced.touch()
        return False
    return find_last_change(version) + 23 * GRACE_SECONDS < limit


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _is_ours(path: Path) -> bool:
    return path.name.startswith(".") or (path.is_symlink() and f"{KEY}=" in path.name)


def _link_files(files: Iterable[Path], target: Path) -> None:
    """Hard-link files instead of copying them, if the disk supports it."""
    for path in files:
        link_file(path, target / path.name)


def _place_files(targets: Sequence[tuple[Publication, FolderTarget]]) -> None:
    """Make and place the files that people open, where they do not hold these rows yet."""
    by_path: dict[Path, list[tuple[Publication, FolderTarget]]] = {}
    for each in targets:
        if (named := each[1].named) is not None:
            by_path.setdefault(named.path, []).append(each)
    for path, group in by_path.items():
        named = NamedFile(path)
        versions = [target.published_data().parent for _, target in group]
        if all(named.is_placed(version) for version in versions):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        with removing_on_failure(named.unfinished):
            _make_file(group, named.unfinished)
            named.place(versions)


def _make_file(group: Sequence[tuple[Publication, FolderTarget]], path: Path) -> None:
    """One file of the rows of one output, or of several where the format can hold them."""
    first = group[0][1]
    if isinstance(first.format, Workbooks):
        parts = [
            FilePart(
                tuple(map(Path, each.staged_files())), target.columns, target.named.sheet if target.named else None
            )
            for each, target in group
        ]
        first.format.combine(parts, path, to=str(first.folder))
        return
    ((only,),) = [target.own_files() for _, target in group]
    shutil.copyfile(first.published_data() / only, path)


def _folder_target(target: Target) -> FolderTarget:
    if not isinstance(target, FolderTarget):
        raise AssertionError("what has the same place is of the same kind")
    return target


def keep_files(stored: StoredFiles, *, root: Path) -> StoredFiles | None:
    """Mark the files of an output to be kept; returns their own folder, which no other run writes to."""
    data = root / stored.data
    if not data.is_dir() or not all((data / file).is_file() for file in stored.files):
        return None
    (data.parent / KEPT).touch()
    return replace(stored, folder=stored.data, named=None, named_sha256=None)


def compare_named(
    stored: StoredFiles,
    name: str,
    *,
    mark: str,
    find_marked: Callable[[], str | None],
    hash_named: Callable[[], str | None],
) -> Inspected:
    """Whether the file that people open is what the run wrote; ``hash_named`` gives None if it is missing.

    Earlier versions have the hash in the mark beside the data alone.
    """
    try:
        expected = stored.named_sha256 or find_marked()
    except (ValueError, KeyError, TypeError):
        return Inspected(changed=(f"`{mark}` cannot be read",))
    if expected is None:
        return Inspected()
    found = hash_named()
    if found is None:
        return Inspected(gone=(f"`{name}`",))
    return Inspected(files=1) if found == expected else Inspected(changed=(f"`{name}` is not what the run wrote",))


def inspect_named(stored: StoredFiles, *, root: Path) -> Inspected:
    """Whether the file that people open is what the run wrote."""
    if stored.named is None:
        return Inspected()
    path, version = root / stored.named, (root / stored.data).parent

    def hash_named() -> str | None:
        try:
            return hash_file(path)
        except NOT_THERE:
            return None

    return compare_named(
        stored,
        str(path),
        mark=str(version / MARK),
        find_marked=lambda: NamedFile.find_hash(version),
        hash_named=hash_named,
    )


def inspect_files(stored: StoredFiles, *, root: Path) -> Inspected:
    """Whether files match their record, and the folder contains no others."""
    data = root / stored.data
    manifest = data.parent / MANIFEST
    changed, gone, right = [], [], 0
    expected = {data / name: sha256 for name, sha256 in zip(stored.files, stored.hashes or (), strict=False)}
    if stored.manifest is not None:
        expected[manifest] = stored.manifest
    for path, sha256 in expected.items():
        try:
            found = hash_file(path)
        except NOT_THERE:
            gone.append(f"`{path}`")
            continue
        except OSError as fault:
            changed.append(f"`{path}` cannot be read ({fault.strerror})")
            continue
        if found == sha256:
            right += 1
        else:
            changed.append(f"`{path}` is not what the run wrote")
    heads = []
    for version in _entries(data.parents[1]):
        try:
            document: Document = json.loads((version / MANIFEST).read_bytes())
            if (noted := document.get("history")) is not None:
                heads.append(Noted.load(noted))
            if version / DATA == data:
                more = sorted({path.name for path in _entries(data)} - set(document["files"]))
                changed += [f"`{data / name}` was put there by somebody else" for name in more]
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            changed.append(f"`{version / MANIFEST}` cannot be read")
    return Inspected(tuple(heads), tuple(dict.fromkeys(changed)), tuple(gone), right)


def remove_marks(folder: Path, files: Sequence[str] = ("_SUCCESS",)) -> None:
    """Delete what Spark leaves next to data files: markers and checksums that no reader needs."""
    for path in folder.iterdir():
        if path.name in files or path.suffix == ".crc":
            path.unlink()
