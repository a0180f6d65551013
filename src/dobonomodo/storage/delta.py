"""Delta tables as a storage: a version of a table is a list of Parquet files, which Spark reads as such.

No connector of the cluster is needed: ``deltalake`` reads and writes the log of a table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NoReturn, Self

from dobonomodo.formula import Type
from dobonomodo.model.datasource import DataSource, StorageOptions
from dobonomodo.model.plain import Document
from dobonomodo.plan.dataset import DatasetUse, Location
from dobonomodo.plan.destination import DestinationKind
from dobonomodo.storage.delta_target import (
    DeltaFile,
    DeltaTarget,
    StoredDelta,
    explain_fault,
    explain_path,
    inspect_version,
    is_key,
    is_passing_fault,
    keep_version,
    list_delta,
    name_types,
    open_delta,
)
from dobonomodo.storage.faults import is_passing, loading_failed, removing_on_failure, writing_failed
from dobonomodo.storage.file_storage import FolderOptions
from dobonomodo.storage.files import PinnedFile, find_changes, leads_out, list_beside
from dobonomodo.storage.findings import Findings
from dobonomodo.storage.footers import count_rows
from dobonomodo.storage.kept import InputFile
from dobonomodo.storage.local_shelf import LocalShelf
from dobonomodo.storage.parquet import (
    Given,
    ParquetFormat,
    ParquetStorage,
    check_parquet,
    read_stored,
)
from dobonomodo.storage.schema import find_differences, stored_arrow_type
from dobonomodo.storage.storage import Answer, Belongs, Pin, Row, Scratch, Storage, Stored
from dobonomodo.storage.target import Inspected, OutputPlace, Target

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import SparkSession

    from dobonomodo.storage.rows import StoredRows

READABLE = frozenset({"timestampNtz", "vacuumProtocolCheck", "v2Checkpoint"})
"""Features of tables that do not change what their files hold."""


class DeltaOptions(FolderOptions):
    """A folder of Delta tables, each a folder below it."""


@dataclass(frozen=True, slots=True)
class DeltaPin:
    """The files of one version of a table, as they were."""

    name: str
    datasource_id: str
    table: str
    version: int
    files: tuple[PinnedFile, ...]
    values: tuple[tuple[str | None, ...], ...]
    """By file, the values of the columns that the table is partitioned by."""
    partitions: tuple[tuple[str, str], ...] = ()
    """Those columns, with their types as Spark calls them."""
    columns: tuple[str, ...] = ()
    """All columns of the table, in lower case; where a file lacks one it is NULL."""
    period: str | None = None

    @property
    def kind(self) -> str:
        """The kind of storage."""
        return DeltaStorage.kind

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
        }

    @classmethod
    def load(cls, document: Document) -> DeltaPin:
        """From plain data."""
        return cls(
            document["name"],
            document["datasource_id"],
            document["table"],
            int(document["version"]),
            tuple(PinnedFile.load(each) for each in document["files"]),
            tuple(tuple(each) for each in document["values"]),
            tuple((name, kind) for name, kind in document["partitions"]),
            tuple(document["columns"]),
            document.get("period"),
        )


@dataclass(frozen=True, slots=True)
class DeltaStorage:
    """The Delta tables below a folder."""

    source: DataSource
    root: Path

    kind: ClassVar[str] = "delta"
    options: ClassVar[type[StorageOptions]] = DeltaOptions
    destinations: ClassVar[DestinationKind] = DestinationKind(are_paths=True, inline=False, has_schemas=False)
    modules: ClassVar[Sequence[str]] = ("deltalake", "pyarrow")
    together: ClassVar[str] = "one commit for each table, one after the other; after a kill the rest is completed"

    @classmethod
    def open(cls, source: DataSource | None, *, root: str, record: Pin | Stored | None = None) -> Self:
        """The tables of a datasource."""
        del record
        if source is None:
            raise AssertionError("a table belongs to a datasource")
        return cls(source, Path(root))

    @classmethod
    def load_pin(cls, document: Document) -> Pin:
        """From plain data."""
        return DeltaPin.load(document)

    @classmethod
    def load_stored(cls, document: Document) -> Stored:
        """From plain data."""
        return StoredDelta.load(document)

    def with_options(self, options: Sequence[tuple[str, object]]) -> Storage:
        """There are none."""
        del options
        return self

    def in_folder(self, folder: str, *, within: str) -> Storage:
        """Drafts write Parquet files in place of tables."""
        return ParquetStorage(LocalShelf(self.root, Path(folder), Path(within)), ParquetFormat())

    @property
    def _prefix(self) -> Path:
        return self.root / str(self.source.options["path_prefix"])

    def _folder(self, table: str) -> Path:
        return Path(os.path.realpath(self._prefix / table))

    # --- checking

    def call(self) -> Answer | None:
        """There is no server."""
        return None

    def leaves(self, location: Location) -> bool:
        """Whether a symbolic link leads out of the datasource."""
        return self.escapes(location.path or location.table or "")

    def escapes(self, table: str) -> bool:
        """Whether a symbolic link leads out of the datasource."""
        return leads_out(self._prefix, self._prefix / table)

    # --- reading

    def pin(self, use: DatasetUse, locations: Sequence[Location]) -> tuple[Pin, ...]:
        """The tables as they are now."""
        return tuple(self._pin(use, each) for each in locations)

    def _pin(self, use: DatasetUse, location: Location) -> DeltaPin:
        name = location.path or location.table or ""
        folder = self._folder(name)
        if self.escapes(name):
            raise loading_failed(use, f"`{location}` points outside its datasource, to `{folder}`")
        table = self._open(use, folder)
        self._require_readable(use, table, str(location))
        types = name_types(table)
        differences = find_differences(types.items(), use.as_stored())
        if differences:
            raise loading_failed(use, f"table `{location}` does not match the declaration", differences=differences)
        partitions = tuple((each, types[each]) for each in table.metadata().partition_columns)
        pinned = self._pin_files(use, name, table.version(), list_delta(table))
        return replace(pinned, name=str(location), partitions=partitions, columns=_fold(types), period=location.period)

    def _open(self, use: DatasetUse, folder: Path) -> DeltaTable:
        from deltalake.exceptions import DeltaError

        try:
            if (wrong := explain_path(folder)) is not None:
                raise loading_failed(use, f"`{folder}`: {wrong}")
            folder.stat()
            table = open_delta(folder)
        except FileNotFoundError as fault:
            rule = f"rule `{use.rule}` of resolver `{use.resolver_id}` gives this path" if use.rule else None
            detail = f"table `{folder}` does not exist"
            raise loading_failed(use, detail, remedy=rule, present=list_beside(folder)) from fault
        except OSError as fault:
            raise loading_failed(use, f"`{folder}`: {fault.strerror}", retry_helps=is_passing(fault)) from fault
        except DeltaError as fault:
            detail = f"table `{folder}` cannot be read: {explain_fault(fault)}"
            raise loading_failed(use, detail, retry_helps=is_passing_fault(fault)) from fault
        if table is None:
            raise loading_failed(use, f"`{folder}` is not a Delta table: it has no log `_delta_log`")
        return table

    def _require_readable(self, use: DatasetUse, table: DeltaTable, name: str) -> None:
        """Refuse what a list of files does not tell: columns under other names, rows that are deleted in files."""

        def refuse(feature: str) -> NoReturn:
            remedy = "write the table again without the feature, or have its rows in other files"
            raise loading_failed(use, f"table `{name}` uses `{feature}`, which cannot be read here", remedy=remedy)

        protocol = table.protocol()
        features = set(protocol.reader_features or ())
        mapping = table.metadata().configuration.get("delta.columnMapping.mode", "none")
        if mapping != "none":
            refuse("columnMapping")
        if "deletionVectors" in features and _has_deletion_vectors(table):
            refuse("deletionVectors")
        unknown = sorted(features - READABLE - {"columnMapping", "deletionVectors"})
        if unknown:
            refuse(unknown[0])

    def _pin_files(self, use: DatasetUse | None, name: str, version: int, files: Sequence[DeltaFile]) -> DeltaPin:
        """Files of a version as they are now; what is gone fails."""
        folder = self._folder(name)
        pinned = []
        for file in files:
            path = folder / file.path
            if leads_out(self._prefix, path):
                raise OSError(None, "it points outside its datasource", str(path))
            try:
                pinned.append(PinnedFile.of(path))
            except FileNotFoundError as fault:
                if use is None:
                    raise
                detail = f"version {version} of table `{name}` lacks `{path}`: VACUUM, or somebody else, removed it"
                raise loading_failed(use, detail) from fault
        partitions = tuple((column, "string") for column, _ in files[0].values) if files else ()
        values = tuple(tuple(value for _, value in file.values) for file in files)
        return DeltaPin(name, self.source.id, name, version, tuple(pinned), values, partitions)

    def pin_registered(self, use: DatasetUse, stored: Stored) -> tuple[Pin, ...]:
        """The files of the version that was registered."""
        own = _stored_delta(stored)
        pin = self._pin_files(use, own.table, own.version, own.files)
        return (replace(pin, name=f"{self.source.id}:{own.table}", columns=_fold(own.columns or ())),)

    def pin_output(self, stored: Stored, *, name: str, period: str) -> Pin:
        """The files that the output wrote; those that have the rows of its period now, where they were removed."""
        own = _stored_delta(stored)
        try:
            return replace(self._pin_files(None, own.table, own.version, own.files), name=name)
        except FileNotFoundError:
            table = open_delta(self._folder(own.table))
            if table is None or own.is_kept:
                raise
            files = [file for file in list_delta(table) if [value for _, value in file.values] == [period]]
            return replace(self._pin_files(None, own.table, table.version(), files), name=name)

    def find_changes(self, pin: Pin, *, listing: bool) -> Iterable[str]:
        """Files that are gone or were written to. A table that has moved on is no change: its earlier version is read."""
        del listing
        own = _delta_pin(pin)
        for change in find_changes(own.files):
            gone = change.endswith(" is gone")
            why = f" of version {own.version} of table `{own.table}`: VACUUM, or somebody else, removed it"
            yield f"{change}{why}" if gone else change

    def extract(self, use: DatasetUse, pin: Pin, scratch: Scratch, *, belongs: Belongs) -> tuple[Pin, Findings]:
        """Check every file; Spark reads them where they are."""
        del scratch, belongs
        own = _delta_pin(pin)
        stored = replace(use, optional=frozenset(own.columns))
        checked = (
            check_parquet(Path(file.path), stored, given) for file, given in zip(own.files, own.given, strict=True)
        )
        return pin, sum(checked, Findings())

    def input_files(self, pin: Pin, scratch: Scratch) -> tuple[InputFile, ...]:
        """The files of the version, which nobody changes: a link to one is as good as a copy."""
        del scratch
        return tuple(InputFile(file.path, is_ours=True) for file in _delta_pin(pin).files)

    def from_kept(self, pin: Pin, files: Sequence[str], scratch: Scratch) -> Pin:
        """Copies in place of the files."""
        del scratch
        return replace(_delta_pin(pin), files=tuple(PinnedFile.of(Path(path)) for path in files))

    def extracted(self, pin: Pin, scratch: Scratch) -> Sequence[str]:
        """The files themselves; copies with all columns, where the table of somebody else has some that are not in its files."""
        own = _delta_pin(pin)
        files = [file.path for file in own.files]
        if all(is_key(name) for name, _ in own.partitions):
            return files
        targets = [scratch.file(number) for number in range(len(files))]
        for file, given, target in zip(files, own.given, targets, strict=True):
            _complete_file(Path(file), Path(target), given)
        return targets

    def count(self, pin: Pin, scratch: Scratch) -> int:
        """The number of rows, from the footers of the files."""
        del scratch
        return count_rows(Path(file.path) for file in _delta_pin(pin).files)

    def read(
        self, spark: SparkSession, use: DatasetUse, pin: Pin, scratch: Scratch, *, before: Callable[[], int]
    ) -> StoredRows:
        """The rows of all files, with the columns that the table is partitioned by."""
        own = _delta_pin(pin)
        stored = replace(use, optional=frozenset(own.columns))
        files = [Path(file.path) for file in own.files]
        return read_stored(spark, files, stored, links=scratch.links, period=pin.period, before=before, given=own.given)

    def sample(self, stored: Stored, columns: Mapping[str, Type], rows: int) -> list[Row]:
        """The first rows of the first files."""
        import pyarrow.parquet as pq

        own = _stored_delta(stored)
        names = own.columns or tuple(columns)

        def sampled() -> Iterable[Row]:
            for file in own.files:
                with pq.ParquetFile(self._folder(own.table) / file.path) as opened:
                    for batch in opened.iter_batches(batch_size=256):
                        yield from ({**dict(file.values), **row} for row in batch.to_pylist())

        return [{name: row.get(name) for name in names} for row in islice(sampled(), rows)]

    # --- writing

    def target(self, output: OutputPlace) -> Target:
        """A table of the datasource."""
        folder = self._folder(output.table)
        if self.escapes(output.table) or folder == Path(os.path.realpath(self._prefix)):
            raise writing_failed(str(self._prefix / output.table), f"it points outside its folder, to `{folder}`")
        return DeltaTarget(
            folder,
            output.table,
            output.period,
            output.run,
            output.seq,
            dict(output.columns),
            output.fence,
            output.attempt,
            self.source.id,
        )

    def inspect(self, stored: Stored, *, run: str, seq: int) -> Inspected:
        """The hashes of the files, and what the log notes."""
        own = _stored_delta(stored)
        return inspect_version(own, self._folder(own.table), run=run, seq=seq)

    def keep(self, stored: Stored, *, period: str, run: str, seq: int) -> Stored | None:
        """The version stays readable by itself, until somebody removes the files of old versions (VACUUM)."""
        del period, run, seq
        own = _stored_delta(stored)
        return keep_version(own, self._folder(own.table))


def _complete_file(source: Path, target: Path, given: Sequence[Given]) -> None:
    """A copy of a file that has all columns, unless it is there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{target.name}.part")
    columns = [(each, stored_arrow_type(each.type)) for each in given]
    with removing_on_failure(unfinished), pq.ParquetFile(source) as file:
        schema = pa.schema([*file.schema_arrow, *(pa.field(each.name, kind) for each, kind in columns)])
        with pq.ParquetWriter(unfinished, schema) as writer:
            for batch in file.iter_batches():
                added = [pa.array([each.value] * batch.num_rows, pa.string()).cast(kind) for each, kind in columns]
                writer.write_batch(pa.RecordBatch.from_arrays([*batch.columns, *added], schema=schema))
    unfinished.replace(target)


def _has_deletion_vectors(table: DeltaTable) -> bool:
    from deltalake.exceptions import DeltaError

    try:
        return any(batch.num_rows for batch in table.deletion_vectors())
    except DeltaError:
        # There is one, and the library cannot read it.
        return True


def _fold(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.casefold() for name in names)


def _delta_pin(pin: Pin) -> DeltaPin:
    if not isinstance(pin, DeltaPin):
        raise AssertionError("a storage of Delta tables has made it")
    return pin


def _stored_delta(stored: Stored) -> StoredDelta:
    if not isinstance(stored, StoredDelta):
        raise AssertionError("a storage of Delta tables has written it")
    return stored
