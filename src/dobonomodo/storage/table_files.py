"""Tables that are lists of Parquet files, kept by a log: how their versions are pinned and read.

The storage of each kind defines what a version is and which files it has.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from re import fullmatch
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar, Self

from dobonomodo.formula import Type
from dobonomodo.model.datasource import DataSource
from dobonomodo.model.plain import Document
from dobonomodo.plan.dataset import DatasetUse, Location
from dobonomodo.plan.system import RUN_PERIOD
from dobonomodo.problems import RunFailed
from dobonomodo.problems.run import DataLoad
from dobonomodo.storage.address import is_address
from dobonomodo.storage.faults import is_passing, loading_failed, removing_on_failure
from dobonomodo.storage.files import PinnedFile, find_changes
from dobonomodo.storage.findings import Findings
from dobonomodo.storage.footers import count_rows
from dobonomodo.storage.kept import InputFile
from dobonomodo.storage.local_shelf import LocalShelf
from dobonomodo.storage.native import (
    copy_rows,
    find_missing,
    read_version,
    rows_without_positions,
    why_unreadable,
)
from dobonomodo.storage.object_shelf import ObjectShelf
from dobonomodo.storage.objects import do_at_once
from dobonomodo.storage.parquet import (
    Given,
    ParquetFormat,
    ParquetStorage,
    check_files,
    find_lacking,
    read_stored,
)
from dobonomodo.storage.schema import stored_arrow_type
from dobonomodo.storage.storage import Belongs, Pin, Row, Scratch, Session, Storage, Stored
from dobonomodo.storage.table_home import TableHome
from dobonomodo.storage.target import WrittenFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dobonomodo.storage.rows import StoredRows

OWN = "dobo-"
"""How the names of the folders begin that runs make below a table."""
NOWHERE = Path(os.devnull)
"""Where no file is put."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file of a version of a table."""

    path: str
    """From the folder of the table, or an address."""
    size: int
    values: tuple[tuple[str, str | None], ...] = ()
    """Of columns that are not in the file: those that the table is partitioned by."""

    def document(self) -> dict[str, object]:
        """As plain data."""
        return {"path": self.path, "size": self.size, "values": dict(self.values)}

    @classmethod
    def load(cls, document: Document) -> TableFile:
        """From plain data."""
        return cls(document["path"], int(document["size"]), tuple(dict(document["values"]).items()))


@dataclass(frozen=True, slots=True)
class StoredTableFiles:
    """The files that one output wrote into a table, or all files of the version of it that was registered."""

    kind: str
    datasource_id: str
    schema: str | None
    table: str
    version: int
    files: tuple[TableFile, ...]
    hashes: tuple[str, ...] | None = None
    """The SHA-256 of the files, in the same order, for those of one output."""
    columns: tuple[str, ...] | None = None
    is_kept: bool = False
    """Whether it is the version that counts, whatever happens to the table."""

    @property
    def file_names(self) -> frozenset[str]:
        """The last parts of the paths of the files."""
        return frozenset(os.path.basename(file.path) for file in self.files)

    @property
    def shown(self) -> None:
        """The name of the destination says it."""

    @property
    def place(self) -> tuple[str | None, ...]:
        """The table, or one version of it."""
        table = ("table", self.datasource_id, self.schema, self.table)
        return (*table, str(self.version)) if self.is_kept or self.columns is not None else table

    @property
    def lasting(self) -> StoredTableFiles:
        """The version that the output made."""
        return replace(self, is_kept=True)

    def document(self) -> dict[str, object]:
        """As plain data."""
        own: dict[str, object] = {
            "kind": self.kind,
            "datasource_id": self.datasource_id,
            "schema": self.schema,
            "table": self.table,
            "version": self.version,
            "files": [file.document() for file in self.files],
            "is_kept": self.is_kept,
        }
        if self.hashes is not None:
            own["hashes"] = list(self.hashes)
        return own if self.columns is None else {**own, "columns": list(self.columns)}

    @classmethod
    def load(cls, document: Document) -> StoredTableFiles:
        """From plain data."""
        hashes, columns = document.get("hashes"), document.get("columns")
        return cls(
            document["kind"],
            document["datasource_id"],
            document.get("schema"),
            document["table"],
            int(document["version"]),
            tuple(TableFile.load(each) for each in document["files"]),
            tuple(hashes) if hashes is not None else None,
            tuple(columns) if columns is not None else None,
            bool(document.get("is_kept")),
        )


@dataclass(frozen=True, slots=True)
class TableFilesPin:
    """The files of one version of a table, as they were."""

    kind: str
    name: str
    datasource_id: str
    table: str
    version: int
    files: tuple[PinnedFile, ...]
    values: tuple[tuple[str | None, ...], ...]
    """By file, the values of the columns that are not in it."""
    partitions: tuple[tuple[str, str], ...] = ()
    """Those columns, with their types as Spark calls them."""
    columns: tuple[str, ...] = ()
    """All columns of the table, in lower case; where a file lacks one it is NULL."""
    period: str | None = None
    native: str | None = None
    """The address by which the connector of Spark reads the version, where its files do not tell what its rows are."""

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def given(self) -> list[tuple[Given, ...]]:
        """By file, the columns that are not in it."""
        return [
            tuple(Given(*column, value) for column, value in zip(self.partitions, values, strict=True))
            for values in self.values
        ]

    def document(self) -> dict[str, object]:
        """As plain data."""
        native = {"native": self.native} if self.native is not None else {}
        return {
            "kind": self.kind,
            "name": self.name,
            "datasource_id": self.datasource_id,
            "table": self.table,
            "version": self.version,
            "period": self.period,
            "files": [file.document() for file in self.files],
            "values": [list(each) for each in self.values],
            "partitions": [list(each) for each in self.partitions],
            "columns": list(self.columns),
            **native,
        }

    @classmethod
    def load(cls, document: Document) -> TableFilesPin:
        """From plain data."""
        return cls(
            document["kind"],
            document["name"],
            document["datasource_id"],
            document["table"],
            int(document["version"]),
            tuple(PinnedFile.load(each) for each in document["files"]),
            tuple(tuple(each) for each in document["values"]),
            tuple((name, kind) for name, kind in document["partitions"]),
            tuple(document["columns"]),
            document.get("period"),
            document.get("native"),
        )


@dataclass(frozen=True, slots=True)
class TableFilesStorage(ABC):
    """Tables of a datasource. The reading of pinned files is the same whatever log has listed them."""

    source: DataSource
    root: Path
    session: Session | None = None

    kind: ClassVar[str]
    connector: ClassVar[str]
    """What reads such tables in Spark, as Maven names it."""
    removal: ClassVar[str]
    """What removes the files of earlier versions, as people call it."""

    @classmethod
    def open(
        cls,
        source: DataSource | None,
        *,
        root: str,
        record: Pin | Stored | None = None,
        session: Session | None = None,
    ) -> Self:
        """The tables of a datasource."""
        del record
        if source is None:
            raise AssertionError("a table belongs to a datasource")
        return cls(source, Path(root), session)

    def with_options(self, options: Sequence[tuple[str, object]]) -> Self:
        """There are none."""
        del options
        return self

    def in_folder(self, folder: str, *, within: str) -> Storage:
        """Drafts write Parquet files in place of tables."""
        return ParquetStorage(LocalShelf(self.root, Path(folder), Path(within)), ParquetFormat())

    def pin(self, use: DatasetUse, locations: Sequence[Location]) -> tuple[Pin, ...]:
        """The tables as they are now."""
        return tuple(self.pin_table(use, each) for each in locations)

    @property
    @abstractmethod
    def objects(self) -> ObjectShelf | None:
        """The object store; None where files are on this machine."""

    @abstractmethod
    def home_of(self, stored: StoredTableFiles, *, copies: Path = NOWHERE) -> TableHome:
        """Where written files are; ``copies`` is for those that are downloaded."""

    @abstractmethod
    def pin_table(self, use: DatasetUse, location: Location) -> TableFilesPin:
        """One table as it is now."""

    @classmethod
    def load_pin(cls, document: Document) -> Pin:
        """From plain data."""
        return TableFilesPin.load(document)

    @classmethod
    def load_stored(cls, document: Document) -> Stored:
        """From plain data."""
        return StoredTableFiles.load(document)

    def find_changes(self, pin: Pin, *, listing: bool) -> Iterable[str]:
        """Files that are gone or were written to. A table that has moved on is no change: its earlier version is read."""
        del listing
        own = table_pin(pin)
        for change in self.find_file_changes(own.files):
            gone = change.endswith(" is gone")
            why = f" of version {own.version} of table `{own.table}`: {self.removal} or another program removed it"
            yield f"{change}{why}" if gone else change

    def find_file_changes(self, files: Sequence[PinnedFile]) -> Iterable[str]:
        """Changes to files since they were pinned, by size and time, or by size and tag."""
        if (shelf := self.objects) is None:
            return find_changes(files)
        # Kept copies are files of this machine.
        remote = [file for file in files if file.etag is not None]
        return (*shelf.find_changes(remote), *find_changes([file for file in files if file.etag is None]))

    def pin_each(
        self,
        pin: Callable[[TableFile], PinnedFile],
        files: Sequence[TableFile],
        *,
        use: DatasetUse | None,
        table: str,
        version: int,
    ) -> tuple[PinnedFile, ...]:
        """The files of a version as they are now; a failure is one of the reading, if there is one."""
        try:
            return tuple(do_at_once(pin, files))
        except OSError as fault:
            if use is None:
                raise
            if isinstance(fault, FileNotFoundError):
                detail = f"version {version} of table `{table}` lacks `{fault.filename}`"
                raise loading_failed(use, f"{detail}: {self.removal} or another program removed it") from fault
            detail = f"version {version} of table `{table}`, file `{fault.filename}`: {fault.strerror}"
            raise loading_failed(use, detail, retry_helps=is_passing(fault)) from fault

    def fetch(self, pin: TableFilesPin, scratch: Scratch) -> None:
        """Download the objects that are not there yet; files of this machine are there."""
        if (shelf := self.objects) is not None:
            shelf.fetch(pin.files, scratch)

    def extract(self, use: DatasetUse, pin: Pin, scratch: Scratch, *, belongs: Belongs) -> tuple[Pin, Findings]:
        """Check every file; Spark reads them where they are."""
        del belongs
        own = table_pin(pin)
        if own.native is not None:
            return pin, find_missing(self._read_native(own), use, place=own.name)
        self.fetch(own, scratch)
        stored = replace(use, optional=frozenset(own.columns))
        files = zip(self.local_files(own, scratch), own.given, strict=True)
        return pin, sum(check_files(list(files), stored, scratch.executors), Findings())

    def local_files(self, pin: TableFilesPin, scratch: Scratch) -> list[Path]:
        """The files that Spark reads: where they are, or copies of objects."""
        shelf = self.objects
        return shelf.paths(pin.files, scratch) if shelf is not None else [Path(file.path) for file in pin.files]

    def input_files(self, pin: Pin, scratch: Scratch) -> tuple[InputFile, ...]:
        """The files of the version, which never change: a link is as good as a copy.

        Empty if only the connector can read the rows.
        """
        own = table_pin(pin)
        if own.native is not None:
            return ()
        paths = self.local_files(own, scratch)
        return tuple(
            InputFile(str(path), is_ours=True, name=file.path) for file, path in zip(own.files, paths, strict=True)
        )

    def from_kept(self, pin: Pin, files: Sequence[str], scratch: Scratch) -> Pin:
        """Copies in place of the files."""
        del scratch
        return replace(table_pin(pin), files=tuple(PinnedFile.of(Path(path)) for path in files))

    def extracted(self, pin: Pin, scratch: Scratch) -> Sequence[str]:
        """The files themselves; copies with all columns, where the table of somebody else has some that are not in its files."""
        own = table_pin(pin)
        if own.native is not None:
            return copy_rows(self._read_native(own), Path(scratch.file(0)), scratch.transport)
        files = self.local_files(own, scratch)
        if all(is_key(name) for name, _ in own.partitions) or not any(map(find_lacking, files, own.given)):
            return [str(path) for path in files]
        targets = [scratch.file(number) for number in range(len(files))]
        for file, given, target in zip(files, own.given, targets, strict=True):
            _complete_file(file, Path(target), given)
        return targets

    def count(self, pin: Pin, scratch: Scratch) -> int:
        """The number of rows, from the footers of the files."""
        if (own := table_pin(pin)).native is not None:
            return self._read_native(own).count()
        return count_rows(self.local_files(table_pin(pin), scratch))

    def read(
        self, spark: SparkSession, use: DatasetUse, pin: Pin, scratch: Scratch, *, before: Callable[[], int]
    ) -> StoredRows:
        """The rows of all files, with the columns that are not in them."""
        own = table_pin(pin)
        if own.native is not None:
            frame = read_version(spark, own.kind, own.native, own.version)
            return rows_without_positions(frame, use, period=pin.period)
        stored = replace(use, optional=frozenset(own.columns))
        files = self.local_files(own, scratch)
        return read_stored(spark, files, stored, links=scratch.links, period=pin.period, before=before, given=own.given)

    def sample(self, stored: Stored, columns: Mapping[str, Type], rows: int) -> list[Row]:
        """The first rows of the first files."""
        own = stored_files(stored)
        with TemporaryDirectory() as copies:
            home = self.home_of(own, copies=Path(copies))
            files = ((home.fetch(file.path), file) for file in own.files)
            return sample_files(files, own.columns or tuple(columns), rows)

    def list_files(self, stored: Stored) -> tuple[WrittenFile, ...]:
        """Those of the version that the output made, without its log."""
        own = stored_files(stored)
        hashes = own.hashes or (None,) * len(own.files)
        return tuple(WrittenFile(name, sha256) for name, sha256 in zip(self._name_files(own), hashes, strict=True))

    def _name_files(self, stored: StoredTableFiles) -> Iterator[str]:
        """Paths, from the workspace where they are inside, or addresses; an object store is not opened for its names."""
        if (shelf := self.objects) is None:
            home, root = self.home_of(stored), os.path.realpath(self.root)
            return (home.name(file.path).removeprefix(f"{root}/") for file in stored.files)
        table = shelf.prefix / stored.table
        return (file.path if is_address(file.path) else f"{table}/{file.path}" for file in stored.files)

    def keep(self, stored: Stored, *, period: str, run: str, seq: int) -> Stored | None:
        """The version stays readable, until the files of old versions are removed."""
        del period, run, seq
        own = stored_files(stored)
        home = self.home_of(own)
        try:
            do_at_once(lambda file: home.pin(file.path), own.files)
        except FileNotFoundError:
            return None
        return replace(own, is_kept=True)

    def require_connector(self, use: DatasetUse, name: str, feature: str, address: str, version: int) -> None:
        """Refuse a table whose files do not tell its rows, by the name of the feature, unless Spark itself can read it."""
        why = why_unreadable(self.session, self.kind, address, version)
        if why is not None:
            detail = f"table `{name}` uses {feature}, which cannot be read here: {why}"
            remedy = (
                f"set `spark.jars.packages` in dobo.yaml to `{self.connector}` for your version of Spark (docs/lake.md), "
                "or have the table rewritten without the feature"
            )
            raise loading_failed(use, detail, remedy=remedy)

    def _read_native(self, pin: TableFilesPin) -> DataFrame:
        """The rows of a version that only the connector can read, in the session of the caller."""
        if pin.native is None:
            raise AssertionError("its files are read")
        if self.session is None:
            detail = f"only a connector of Spark can read version {pin.version} of the table, and Spark is not started for this"
            raise RunFailed(DataLoad(dataset_id=pin.name, detail=detail))
        return read_version(self.session(), pin.kind, pin.native, pin.version)


def table_pin(pin: Pin) -> TableFilesPin:
    """The pin of such a table."""
    if not isinstance(pin, TableFilesPin):
        raise AssertionError("a storage of tables that are lists of files has made it")
    return pin


def stored_files(stored: Stored) -> StoredTableFiles:
    """Where such a storage has written rows."""
    if not isinstance(stored, StoredTableFiles):
        raise AssertionError("a storage of tables that are lists of files has written it")
    return stored


def sample_files(files: Iterable[tuple[Path, TableFile]], names: Sequence[str], rows: int) -> list[Row]:
    """The first rows of some files, with the columns of these names."""
    import pyarrow.parquet as pq

    def sampled() -> Iterable[Row]:
        for path, file in files:
            with pq.ParquetFile(path) as opened:
                for batch in opened.iter_batches(batch_size=256):
                    yield from ({**dict(file.values), **row} for row in batch.to_pylist())

    return [{name: row.get(name) for name in names} for row in islice(sampled(), rows)]


def is_key(name: str) -> bool:
    """Whether a column is one in which runs keep their periods."""
    return fullmatch(r"_(dobo_)*run_period", name) is not None


def free_key(columns: Iterable[str]) -> str:
    """The column for the run period: one that is not among the data's own."""
    taken = {name.casefold() for name in columns}
    return next(key for key in ("_" + "dobo_" * times + RUN_PERIOD[1:] for times in count()) if key not in taken)


def fold(names: Iterable[str]) -> tuple[str, ...]:
    """Names in lower case."""
    return tuple(name.casefold() for name in names)


def compare_files(
    files: Sequence[str], hashes: Sequence[str], hash_of: Callable[[str], str]
) -> tuple[list[str], list[str], int]:
    """Which files are not what they were, which are gone, and how many are right."""
    changed, gone, right = [], [], 0
    for name, sha256 in zip(files, hashes, strict=False):
        try:
            found = hash_of(name)
        except OSError:
            gone.append(f"`{name}`")
            continue
        if found == sha256:
            right += 1
        else:
            changed.append(f"`{name}` is not what the run wrote")
    return changed, gone, right


def _complete_file(source: Path, target: Path, given: Sequence[Given]) -> None:
    """A copy of a file that has all columns, unless it is there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{target.name}.part")
    columns = [(each, stored_arrow_type(each.type)) for each in find_lacking(source, given)]
    with removing_on_failure(unfinished), pq.ParquetFile(source) as file:
        schema = pa.schema([*file.schema_arrow, *(pa.field(each.name, kind) for each, kind in columns)])
        with pq.ParquetWriter(unfinished, schema) as writer:
            for batch in file.iter_batches():
                added = [pa.array([each.value] * batch.num_rows, pa.string()).cast(kind) for each, kind in columns]
                writer.write_batch(pa.RecordBatch.from_arrays([*batch.columns, *added], schema=schema))
    unfinished.replace(target)
