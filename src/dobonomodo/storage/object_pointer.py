"""Published state in an object store: one pointer object per datasource, and one manifest per period and table.

``.dobo-data/current.json`` names the manifest of every table and period, and the highest fencing number of every key that
published there. It is replaced by compare-and-swap, so that any number of tables change atomically. Data and
manifests are never changed. Keys are relative to the address of the datasource.
"""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from errno import EAGAIN
from typing import TYPE_CHECKING

from dobonomodo.formula import Type
from dobonomodo.model.plain import Document
from dobonomodo.storage.address import Address
from dobonomodo.storage.manifest import DATA, HIDDEN, Part
from dobonomodo.storage.objects import Objects, Stamp, do_at_once
from dobonomodo.storage.target import Commit, Noted

if TYPE_CHECKING:
    from dobonomodo.storage.fence import Fence

POINTER = f"{HIDDEN}/current.json"
OWN = "data.json"
"""The record of what an output wrote, stored next to its data; it exists once all data do."""
KEPT = "kept"
REPLACED = "replaced"
_MANIFEST = "manifest-"
_PATIENCE_SECONDS = 120


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that an output wrote."""

    name: str
    size: int
    etag: str
    sha256: str
    modified: int
    """In nanoseconds since 1970."""


@dataclass(frozen=True, slots=True)
class DataPart:
    """The files that one output wrote, which all have the same columns."""

    version: str
    """The key that all of its objects begin with."""
    files: tuple[DataFile, ...]
    columns: Mapping[str, Type | None]

    @property
    def data(self) -> str:
        """The folder of the files."""
        return f"{self.version}/{DATA}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the files."""
        return tuple(file.name for file in self.files)

    def document(self) -> dict[str, object]:
        """As plain data."""
        files = [
            {"name": each.name, "size": each.size, "etag": each.etag, "sha256": each.sha256, "modified": each.modified}
            for each in self.files
        ]
        return {
            "version": self.version,
            "files": files,
            "columns": Part(self.names, self.columns).document()["columns"],
        }

    @classmethod
    def load(cls, document: Document) -> DataPart:
        """From plain data."""
        files = tuple(DataFile(**each) for each in document["files"])
        columns = Part.load({"files": [], "columns": document["columns"]}).columns
        return cls(document["version"], files, columns)

    def as_manifest(self) -> bytes:
        """What is put beside copies of the files on this machine, for those who read their columns there."""
        return json.dumps({"parts": [Part(self.names, self.columns).document()]}).encode()


@dataclass(frozen=True, slots=True)
class Manifest:
    """The rows of one table for one period."""

    table: str
    period: str
    commits: tuple[Commit, ...]
    parts: tuple[DataPart, ...]
    head: Noted | None

    @property
    def version(self) -> str:
        """That of the output which was published last."""
        return self.parts[-1].version

    def find_commit(self, run: str, seq: int) -> Commit | None:
        """What an output published."""
        return next((each for each in self.commits if (each.run, each.seq) == (run, seq)), None)

    def render(self) -> bytes:
        """As an object; the list of all files is for readers."""
        document = {
            "table": self.table,
            "period": self.period,
            "files": [f"{part.data}/{name}" for part in self.parts for name in part.names],
            "parts": [part.document() for part in self.parts],
            "commits": [each.document() for each in self.commits],
            "history": self.head._asdict() if self.head is not None else None,
        }
        return json.dumps(document, indent=2).encode()

    @classmethod
    def parse(cls, content: bytes) -> Manifest:
        """From the content of an object."""
        document: Document = json.loads(content)
        noted = document["history"]
        return cls(
            document["table"],
            document["period"],
            tuple(Commit.load(each) for each in document["commits"]),
            tuple(DataPart.load(each) for each in document["parts"]),
            Noted.load(noted) if noted is not None else None,
        )


@dataclass(frozen=True, slots=True)
class TableState:
    """A table as readers find it."""

    manifests: Mapping[str, str] = field(default_factory=dict)
    """The keys of its manifests, by period."""
    fences: Mapping[str, int] = field(default_factory=dict)
    """The highest number of each key that published here."""

    def claim(self, fence: Fence) -> TableState:
        """The table that has seen a number; raises if it has seen a higher one."""
        seen = self.fences.get(fence.key, 0)
        if seen > fence.number:
            raise fence.lost()
        return self if seen == fence.number else replace(self, fences={**self.fences, fence.key: fence.number})


@dataclass(frozen=True, slots=True)
class State:
    """All tables of a datasource as readers find them."""

    tables: Mapping[str, TableState] = field(default_factory=dict)

    def table(self, name: str) -> TableState:
        """One table; it may have nothing yet."""
        return self.tables.get(name, TableState())

    def having(self, name: str, table: TableState) -> State:
        """The same with another state of a table."""
        return State({**self.tables, name: table})

    def render(self) -> bytes:
        """As the content of the pointer."""
        tables = {
            name: {
                "periods": {period: {"manifest": key} for period, key in sorted(table.manifests.items())},
                "fences": dict(table.fences),
            }
            for name, table in sorted(self.tables.items())
        }
        return json.dumps({"format": 1, "tables": tables}, indent=2).encode()

    @classmethod
    def parse(cls, content: bytes) -> State:
        """From the content of the pointer."""
        document: Document = json.loads(content)
        return cls(
            {
                name: TableState(
                    {period: each["manifest"] for period, each in table["periods"].items()}, dict(table["fences"])
                )
                for name, table in document["tables"].items()
            }
        )


@dataclass(frozen=True, slots=True)
class ObjectPointer:
    """The pointer of the tables below an address."""

    objects: Objects
    prefix: Address

    def key(self, relative: str) -> str:
        """A key of the bucket."""
        return (self.prefix / relative).key

    def uri(self, relative: str) -> str:
        """An address, as people write it."""
        return str(self.prefix / relative)

    def read(self) -> tuple[State, Stamp | None]:
        """What readers find now; nothing and no stamp if nothing was published."""
        found = self.objects.read_pointer(self.key(POINTER))
        return (State(), None) if found is None else (State.parse(found[0]), found[1])

    def change(self, act: Callable[[State], State], *, before: Callable[[], None] = lambda: None) -> None:
        """Replace the state by a changed one; retry while others replace it first."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            state, stamp = self.read()
            fresh = act(state)
            if fresh == state:
                return
            before()
            if self.objects.replace_pointer(self.key(POINTER), fresh.render(), stamp) is not None:
                return
            if time.monotonic() > deadline:
                raise OSError(EAGAIN, "others change it all the time", self.uri(POINTER))
            time.sleep(random.uniform(0.01, 0.1))

    # --- manifests

    def write_manifest(self, manifest: Manifest) -> str:
        """Write a manifest next to the data of its version, named by its content; returns its key."""
        content = manifest.render()
        key = manifest_key(manifest.version, hashlib.sha256(content).hexdigest())
        self.objects.put(self.key(key), content)
        return key

    def read_manifest(self, key: str) -> Manifest:
        """A manifest that the pointer names."""
        return Manifest.parse(self._read(key))

    def read_manifests(self, table: TableState) -> dict[str, Manifest]:
        """Those of all periods of a table."""
        return dict(zip(table.manifests, do_at_once(self.read_manifest, table.manifests.values()), strict=True))

    def read_part(self, version: str) -> DataPart | None:
        """What an output wrote; None if it was not finished."""
        found = self.objects.read(self.key(f"{version}/{OWN}"))
        return DataPart.load(json.loads(found[0])) if found is not None else None

    def require_part(self, version: str) -> DataPart:
        """What an output wrote; raises if it is gone."""
        return DataPart.load(json.loads(self._read(f"{version}/{OWN}")))

    def _read(self, key: str) -> bytes:
        found = self.objects.read(self.key(key))
        if found is None:
            raise FileNotFoundError(2, "No such file or directory", self.uri(key))
        return found[0]


def store_of(table: str) -> str:
    """What the keys of all versions of a table begin with: the same as in folders of a machine."""
    folder, _, name = table.rpartition("/")
    return f"{folder}/{HIDDEN}/{name}" if folder else f"{HIDDEN}/{name}"


def manifest_key(version: str, sha256: str) -> str:
    """The key of a manifest with a content."""
    return f"{version}/{_MANIFEST}{sha256}.json"


def is_manifest(name: str) -> bool:
    """Whether an object of a version is a manifest."""
    return name.startswith(_MANIFEST)


def versions_in(keys: Sequence[str], store: str) -> Iterator[tuple[str, list[str]]]:
    """The versions that some keys are of, each with the names of its objects."""
    found: dict[str, list[str]] = {}
    for key in keys:
        version, _, name = key.removeprefix(f"{store}/").partition("/")
        if name:
            found.setdefault(f"{store}/{version}", []).append(name)
    yield from found.items()
