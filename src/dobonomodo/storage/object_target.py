"""A table in an object store as a destination: data under a new key, then one change of the datasource's pointer.

Spark stages on this machine; converted files are uploaded before anything is claimed. A reader that follows the pointer to
the manifests finds the old rows or the new ones of all tables.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dobonomodo.failpoint import reach
from dobonomodo.formula import Type
from dobonomodo.plan.registration import United, unite_columns
from dobonomodo.storage.address import Address
from dobonomodo.storage.executors import Executors
from dobonomodo.storage.faults import is_passing, writing_failed
from dobonomodo.storage.fence import Fence
from dobonomodo.storage.folder import GRACE_SECONDS, FilePart, Format, StoredFiles, StoredFolders, Workbooks
from dobonomodo.storage.leftover import Leftover
from dobonomodo.storage.manifest import DATA
from dobonomodo.storage.named_object import NamedObject
from dobonomodo.storage.object_copies import Copy, upload_all
from dobonomodo.storage.object_pointer import (
    KEPT,
    OWN,
    REPLACED,
    DataFile,
    DataPart,
    Manifest,
    ObjectPointer,
    State,
    is_manifest,
    store_of,
    versions_in,
)
from dobonomodo.storage.objects import FoundObject, Objects
from dobonomodo.storage.target import Commit, Publication, Target

_PROBE = ".dobo-data/.probe"


@dataclass(frozen=True, slots=True)
class ObjectTarget:
    """One output of one run into a table of an object store."""

    objects: Objects
    prefix: Address
    """The address of the datasource, whose tables are published together."""
    source: str
    """The id of the datasource."""
    table: str
    format: Format
    period: str
    run: str
    seq: int
    columns: Mapping[str, Type]
    fence: Fence
    attempt: int
    """The number of the attempt that wrote the files, which may be an earlier one than the one that publishes them."""
    named: NamedObject | None = None
    """The file that people open, where the output writes one of its own name."""
    executors: Executors | None = None
    """Who uploads what is large."""

    @property
    def place(self) -> str:
        """The pointer through which the table is read."""
        return f"folder {self.prefix}"

    @property
    def pointer(self) -> ObjectPointer:
        """That of the datasource."""
        return ObjectPointer(self.objects, self.prefix)

    @property
    def _store(self) -> str:
        return store_of(self.table)

    def _version_of(self, fence: int | None) -> str:
        """Each attempt at a run has its own data: an earlier attempt may still be writing, without knowing that it lost its lease."""
        name = f"{self._store}/{self.period}~{self.run}-{self.seq}"
        return name if fence is None else f"{name}-{fence}"

    @property
    def version(self) -> str:
        """What the keys of the data begin with."""
        return self._version_of(self.attempt)

    @property
    def shown(self) -> str:
        """The table as people name it."""
        return str(self.prefix / self.table)

    # --- before anything is computed

    def check(self, *, mode: str) -> United:
        """Refuse a table with foreign objects, or with data that cannot be read together with these columns.

        Also refuse a store that is not writable or ignores write conditions. Returns the columns of the data that stays.
        """
        with self._explaining():
            self._require_ours()
            self._require_conditions()
            if self.named is not None:
                self.named.require_own()
            state, _ = self.pointer.read()
            return self._unite(state, mode=mode)

    def _require_ours(self) -> None:
        folder = self.pointer.key(self.table)
        if self.objects.find(folder) is not None:
            raise writing_failed(self.shown, "it is a file, not a folder")
        below = (each.key.removeprefix(f"{folder}/") for each in self.objects.list(folder))
        foreign = next((name for name in below if not name.startswith(".")), None)
        if foreign is not None:
            detail = f"the folder contains `{foreign}`, which no run wrote; choose another table"
            raise writing_failed(self.shown, detail)

    def _require_conditions(self) -> None:
        """Refuse servers that ignore write conditions: two runs could overwrite each other's publication."""
        key = self.pointer.key(f"{_PROBE}-{self.run}-{self.seq}-{self.fence.number}")
        self.objects.put(key, b"")
        taken = self.objects.put_if_match(key, b"", None)
        self.objects.delete([key])
        if taken is not None:
            detail = "the object store ignores `If-None-Match`, without which runs could publish over each other"
            raise writing_failed(self.shown, detail)

    def _unite(self, state: State, *, mode: str) -> United:
        """The columns of what stays; refuses those of this output if both cannot be read together (C-86)."""
        manifests = self.pointer.read_manifests(state.table(self.table))
        staying = [each for period, each in manifests.items() if mode == "append" or period != self.period]
        there = [part.columns for each in staying for part in each.parts]
        united = unite_columns([*there, self.columns])
        if united.conflicts:
            raise writing_failed(self.shown, united.explain())
        return unite_columns(there)

    # --- staging

    def start(self) -> str | None:
        """Spark stages on this machine."""
        return None

    def convert(self, files: Sequence[str]) -> bool:
        """Convert to the format of the destination and upload the files, unpublished."""
        if self.named is not None and isinstance(self.format, Workbooks):
            self.format.check([Path(each) for each in files], columns=self.columns, to=self.named.shown)
        with self._explaining():
            if self._find_sealed() is not None:
                return False
            self._upload([Path(each) for each in files])
        return True

    def _upload(self, files: Sequence[Path]) -> DataPart:
        self._remove(self.version)
        with tempfile.TemporaryDirectory(dir=files[0].parents[1] if files else None) as folder:
            made = list(files)
            if not self.format.in_place:
                self.format.convert(files, Path(folder), columns=self.columns, to=self.shown)
                made = sorted(Path(folder).iterdir())
            uploaded = self._upload_files(made)
        part = DataPart(self.version, uploaded, self.columns)
        # Last: it says that all files are there.
        self.objects.put(self.pointer.key(f"{self.version}/{OWN}"), json.dumps(part.document(), indent=2).encode())
        return part

    def _upload_files(self, files: Sequence[Path]) -> tuple[DataFile, ...]:
        folder = f"{self.version}/{DATA}"
        copies = [Copy(self.pointer.key(f"{folder}/{path.name}"), path, path.stat().st_size) for path in files]
        done = upload_all(self.objects, copies, self.executors)
        return tuple(
            DataFile(copy.path.name, copy.size, uploaded.stamp.etag, uploaded.sha256, time.time_ns())
            for copy, uploaded in zip(copies, done, strict=True)
        )

    def _remove(self, version: str) -> None:
        self.objects.delete(each.key for each in self.objects.list(self.pointer.key(version)))

    # --- publishing

    def claim(self) -> None:
        """Fail if a later run has claimed the table; otherwise earlier runs are refused from now on."""
        with self._explaining():
            self.pointer.change(self.claim_in)

    def claim_in(self, state: State) -> State:
        """The state in which the claim is made."""
        return state.having(self.table, state.table(self.table).claim(self.fence))

    def find_commit(self) -> Commit | None:
        """What this output published, if it did: the data, and the file that people open."""
        with self._explaining():
            commit = self._find_sealed()
            placed = commit is None or self.named is None or self.named.is_placed(self._version_of(commit.fence))
            return commit if placed else None

    def _find_sealed(self) -> Commit | None:
        """What readers of the data find of this output."""
        manifest = self._current()
        return manifest.find_commit(self.run, self.seq) if manifest is not None else None

    def published_version(self) -> str:
        """What the keys of the output's data begin with, whichever attempt published them."""
        commit = self._find_sealed()
        return self.version if commit is None else self._version_of(commit.fence)

    def _current(self) -> Manifest | None:
        state, _ = self.pointer.read()
        key = state.table(self.table).manifests.get(self.period)
        return self.pointer.read_manifest(key) if key is not None else None

    def publish(self, group: Sequence[Publication]) -> None:
        """Publish the data of all outputs, by one change of the pointer."""
        targets = [(each, _object_target(each.target)) for each in group]

        def seal_all(state: State) -> State:
            for _, target in targets:
                state = target.claim_in(state)
            for each, target in targets:
                state = target.seal_in(state, each)
            return state

        with self._explaining():
            self.pointer.change(seal_all, before=lambda: reach("publish.during"))
            _place_files(targets)
            for target in {target.table: target for _, target in targets}.values():
                target.sweep(min(time.time() - GRACE_SECONDS, min(each.since for each in group)))

    def seal_in(self, state: State, publication: Publication) -> State:
        """The state in which this output is published: its manifest, and what it is appended to."""
        table = state.table(self.table)
        key = table.manifests.get(self.period)
        before = self.pointer.read_manifest(key) if key is not None else None
        if before is not None and before.find_commit(self.run, self.seq) is not None:
            return state
        self._require_ours()
        if self.named is not None:
            self.named.require_own()
        self._unite(state, mode=publication.mode)
        own = self.pointer.read_part(self.version) or self._upload([Path(each) for each in publication.staged_files()])
        commits, parts = [replace(publication.commit, fence=self.attempt)], [own]
        if publication.mode == "append" and before is not None:
            commits, parts = [*before.commits, *commits], [*before.parts, *parts]
        manifest = Manifest(self.table, self.period, tuple(commits), tuple(parts), publication.head)
        written = self.pointer.write_manifest(manifest)
        return state.having(self.table, replace(table, manifests={**table.manifests, self.period: written}))

    def sweep(self, limit: float) -> None:
        """Remove what was replaced long ago; readers and the run itself may still use the rest.

        What killed runs left unpublished is removed by following their records, never by its age.
        """
        state, _ = self.pointer.read()
        used = {
            part.version
            for each in self.pointer.read_manifests(state.table(self.table)).values()
            for part in each.parts
        }
        found = self._list_store()
        for version, names in versions_in(list(found), self._store):
            if version in used or KEPT in names or not any(map(is_manifest, names)):
                continue
            if REPLACED not in names:
                self.objects.put(self.pointer.key(f"{version}/{REPLACED}"), b"")
            elif found[f"{version}/{REPLACED}"].modified < limit:
                self._remove(version)

    def _list_store(self) -> dict[str, FoundObject]:
        """The objects of all versions, by their keys below the datasource."""
        listed = self.objects.list(self.pointer.key(self._store))
        return {self.prefix.relative(each.key): each for each in listed}

    # --- afterwards

    def stored(self) -> StoredFiles:
        """Where the output is, once it is published."""
        with self._explaining():
            version = self.published_version()
            part = self.pointer.require_part(version)
            return StoredFiles(
                self.format,
                self.shown,
                self.pointer.uri(part.data),
                part.names,
                tuple(file.sha256 for file in part.files),
                self._find_manifest(version),
                self.named.shown if self.named is not None else None,
                self.source,
                self.named.find_hash(version) if self.named is not None else None,
            )

    def _find_manifest(self, version: str) -> str | None:
        """The SHA-256 of the manifest that was published with a version: that which readers find, else the latest."""
        state, _ = self.pointer.read()
        current = state.table(self.table).manifests.get(self.period, "")
        listed = sorted(self.objects.list(self.pointer.key(version)), key=lambda each: each.modified)
        keys = [self.prefix.relative(each.key) for each in listed if is_manifest(each.key.rpartition("/")[2])]
        found = current if current in keys else next(reversed(keys), None)
        return found.rpartition("-")[2].removesuffix(".json") if found is not None else None

    def registered(self) -> tuple[Mapping[str, Type], StoredFolders]:
        """The columns of all periods, and the folders of their data, which are kept from now on (C-64, C-86)."""
        with self._explaining():
            state, _ = self.pointer.read()
            manifests = self.pointer.read_manifests(state.table(self.table))
            parts = {part.version: part for _, each in sorted(manifests.items()) for part in each.parts}
            for version in parts:
                self.objects.put(self.pointer.key(f"{version}/{KEPT}"), b"")
        united = unite_columns(part.columns for part in parts.values()).columns
        folders = tuple(self.pointer.uri(part.data) for part in parts.values())
        return united, StoredFolders(self.format, folders, tuple(united), self.source)

    def find_leftovers(self) -> list[Leftover]:
        """What attempts up to this fencing number wrote and never published."""
        with self._explaining():
            found = self._list_store()
        return [
            Leftover(
                "staged files",
                self.pointer.uri(version),
                self.run,
                sum(found[f"{version}/{name}"].size for name in names),
                lambda version=version: self._remove(version),  # type: ignore[misc]
            )
            for version, names in versions_in(list(found), self._store)
            if self._is_own_attempt(version) and not any(map(is_manifest, names))
        ]

    def _is_own_attempt(self, version: str) -> bool:
        output, _, number = version.rpartition("-")
        return output == self._version_of(None) and number.isdigit() and int(number) <= self.fence.number

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except OSError as fault:
            detail = fault.strerror or str(fault)
            raise writing_failed(self.shown, detail, retry_helps=is_passing(fault)) from fault


def _object_target(target: Target) -> ObjectTarget:
    if not isinstance(target, ObjectTarget):
        raise AssertionError("what has the same place is of the same kind")
    return target


def _place_files(targets: Sequence[tuple[Publication, ObjectTarget]]) -> None:
    """Make and place the files that people open, where they do not hold these rows yet."""
    by_key: dict[str, list[tuple[Publication, ObjectTarget, NamedObject]]] = {}
    for publication, target in targets:
        if target.named is not None:
            by_key.setdefault(target.named.key, []).append((publication, target, target.named))
    for group in by_key.values():
        _, first, named = group[0]
        versions = [target.published_version() for _, target, _ in group]
        if all(named.is_placed(version) for version in versions):
            continue
        parts = [
            FilePart(tuple(map(Path, each.staged_files())), target.columns, sheet.sheet)
            for each, target, sheet in group
        ]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            if isinstance(first.format, Workbooks):
                first.format.combine(parts, path, to=first.shown)
            else:
                part = first.pointer.require_part(versions[0])
                (only,) = part.files
                key = first.pointer.key(f"{part.data}/{only.name}")
                first.objects.download(key, path, size=only.size, etag=only.etag)
            named.place(path, versions)
