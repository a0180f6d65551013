"""Tables that Spark knows by the name of a catalog (Unity, Glue, Hive, Iceberg REST) as a storage.

Everything goes through the Spark session: a project can read every table that Spark reads by name, and write tables with
versions. A table without versions is copied into the folder of the run when it is extracted, so that a resumed run reads the
same rows.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field

from dobonomodo.formula import Type
from dobonomodo.formula.sql import quote_name, quote_text
from dobonomodo.model.datasource import DataSource, StorageOptions
from dobonomodo.model.document import Places
from dobonomodo.model.plain import Document
from dobonomodo.model.template import check_table_name
from dobonomodo.model.value import Filled
from dobonomodo.plan.dataset import DatasetUse, Location
from dobonomodo.plan.destination import DestinationKind
from dobonomodo.problems import Problem, RunFailed
from dobonomodo.problems.run import DataLoad
from dobonomodo.storage.catalog_log import LOGS, Description, TableName, is_not_there, read_catalog
from dobonomodo.storage.catalog_target import (
    KIND,
    SESSION_CATALOG,
    CatalogTarget,
    StoredCatalogTable,
    find_commits,
    why_gone,
)
from dobonomodo.storage.faults import loading_failed
from dobonomodo.storage.findings import Findings
from dobonomodo.storage.footers import count_rows
from dobonomodo.storage.kept import InputFile, hash_file
from dobonomodo.storage.local_shelf import LocalShelf
from dobonomodo.storage.native import copy_rows, explain_spark, find_missing, is_said_by_spark, rows_without_positions
from dobonomodo.storage.parquet import ParquetFormat, ParquetStorage, check_files, read_parquet
from dobonomodo.storage.rows import StoredRows
from dobonomodo.storage.schema import find_differences
from dobonomodo.storage.storage import Answer, Belongs, Pin, Row, Scratch, Session, Storage, Stored
from dobonomodo.storage.target import Inspected, Noted, OutputPlace, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REMOVAL = "VACUUM, the expiry of snapshots, or another program removed it"


class CatalogTableOptions(StorageOptions):
    """A catalog that the session of Spark knows."""

    catalog: Filled = Field(default=SESSION_CATALOG, description="The name by which Spark knows the catalog.")
    schema_name: Filled = Field(default="default", alias="schema", description="The schema of tables that name none.")
    form: Literal["delta", "iceberg"] = Field(
        default="delta", alias="format", description="The format of the tables that runs create."
    )

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """Names that Spark can be given."""
        for key in ("catalog", "schema"):
            if places.text(key) is not None:
                yield from check_table_name(places.passage(key), key)


@dataclass(frozen=True, slots=True)
class CatalogPin:
    """A version of a table; of one that has no versions, the copy of its rows."""

    name: str
    datasource_id: str
    schema: str
    table: str
    version: int | None
    period: str | None = None
    key: str | None = None
    run_period: str | None = None
    """Only what runs for this period wrote, by the column with this key."""
    parts: int | None = None
    """The number of files of the copy, once it is made."""
    content: str | None = None
    """The hash of the copy."""

    @property
    def kind(self) -> str:
        """The kind of storage."""
        return KIND

    @property
    def size(self) -> int:
        """The catalog does not tell."""
        return 0

    @property
    def fingerprint(self) -> str | None:
        """Identifies the rows."""
        return self.content if self.version is None else f"{self.schema}.{self.table}@{self.version}"

    def document(self) -> dict[str, object]:
        """As plain data."""
        own = {name: getattr(self, name) for name in self.__slots__}
        return {"kind": self.kind, **own, "fingerprint": self.fingerprint, "files": []}

    @classmethod
    def load(cls, document: Document) -> CatalogPin:
        """From plain data."""
        return cls(**{name: document.get(name) for name in cls.__slots__})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class CatalogTableStorage:
    """The tables of a catalog."""

    source: DataSource
    root: Path
    session: Session | None = None

    kind: ClassVar[str] = KIND
    options: ClassVar[type[StorageOptions]] = CatalogTableOptions
    destinations: ClassVar[DestinationKind] = DestinationKind(are_paths=False, inline=False, has_schemas=True)
    modules: ClassVar[Sequence[str]] = ("pyarrow",)
    together: ClassVar[str] = (
        "one commit of the catalog for each table, one after the other; after a kill the rest is completed"
    )

    @classmethod
    def open(
        cls,
        source: DataSource | None,
        *,
        root: str,
        record: Pin | Stored | None = None,
        session: Session | None = None,
    ) -> Self:
        """The catalog of a datasource."""
        del record
        if source is None:
            raise AssertionError("a table belongs to a datasource")
        return cls(source, Path(root), session)

    @classmethod
    def load_pin(cls, document: Document) -> Pin:
        """From plain data."""
        return CatalogPin.load(document)

    @classmethod
    def load_stored(cls, document: Document) -> Stored:
        """From plain data."""
        return StoredCatalogTable.load(document)

    def with_options(self, options: Sequence[tuple[str, object]]) -> Storage:
        """There are none."""
        del options
        return self

    def in_folder(self, folder: str, *, within: str) -> Storage:
        """Drafts write Parquet files in place of tables."""
        return ParquetStorage(LocalShelf(self.root, Path(folder), Path(within)), ParquetFormat())

    @property
    def _options(self) -> CatalogTableOptions:
        return CatalogTableOptions.model_validate(self.source.options)

    def _name(self, schema: str | None, table: str) -> TableName:
        return TableName(self._options.catalog, schema or self._options.schema_name, table)

    def _spark(self, name: str) -> SparkSession:
        if self.session is None:
            detail = "only Spark can read a table of its catalog, and Spark is not started for this"
            raise RunFailed(DataLoad(dataset_id=name, detail=detail))
        return self.session()

    # --- checking

    def call(self) -> Answer | None:
        """Not checked: it would need Spark."""
        return None

    def leaves(self, location: Location) -> bool:
        """Names of tables lead nowhere else."""
        del location
        return False

    def escapes(self, table: str) -> bool:
        """Names of tables lead nowhere else."""
        del table
        return False

    # --- reading

    def pin(self, use: DatasetUse, locations: Sequence[Location]) -> tuple[Pin, ...]:
        """The versions of the tables."""
        return tuple(self._pin(use, each) for each in locations)

    def _pin(self, use: DatasetUse, location: Location) -> CatalogPin:
        name = self._name(location.schema, location.table or location.path or "")
        try:
            spark = self._spark(str(location))
            told = Description.ask(spark, name)
            if told is None:
                detail = f"table `{name}` does not exist in the catalog"
                raise loading_failed(use, detail, present=_list(spark, name)) from FileNotFoundError(str(name))
            version = LOGS[told.provider](spark, name).version() if told.provider in LOGS else None
            types = read_catalog(spark, name, version).dtypes
        except Exception as fault:
            if not is_said_by_spark(fault):
                raise
            raise loading_failed(use, f"table `{name}` cannot be read: {explain_spark(fault)}") from fault
        differences = find_differences(types, use.as_stored())
        if differences:
            raise loading_failed(use, f"table `{location}` does not match the declaration", differences=differences)
        return CatalogPin(str(location), self.source.id, name.schema, name.table, version, location.period)

    def pin_registered(self, use: DatasetUse, stored: Stored) -> tuple[Pin, ...]:
        """The version that was registered."""
        del use
        own = _stored(stored)
        return (self._pin_version(own, f"{self.source.id}:{own.schema}.{own.table}", own.version),)

    def pin_output(self, stored: Stored, *, name: str, period: str) -> Pin:
        """The rows of the period in the version that the output made; in the latest one, where that is gone."""
        own = _stored(stored)
        version, table = own.version, self._name(own.schema, own.table)
        if not own.is_kept and why_gone(self._spark(name), table, version) is not None:
            told = Description.ask(self._spark(name), table)
            if told is not None and told.provider in LOGS:
                version = LOGS[told.provider](self._spark(name), table).version()
        return replace(self._pin_version(own, name, version), key=own.key, run_period=period)

    def _pin_version(self, stored: StoredCatalogTable, name: str, version: int) -> CatalogPin:
        return CatalogPin(name, self.source.id, stored.schema, stored.table, version)

    def find_changes(self, pin: Pin, *, listing: bool) -> Iterable[str]:
        """A version that cannot be read any more. A table that has moved on is no change: its earlier version is read."""
        del listing
        own = _pinned(pin)
        if own.version is None:
            return
        name = self._name(own.schema, own.table)
        if (why := why_gone(self._spark(own.name), name, own.version)) is not None:
            yield f"version {own.version} of table `{name}` cannot be read: {REMOVAL} ({why})"

    def extract(self, use: DatasetUse, pin: Pin, scratch: Scratch, *, belongs: Belongs) -> tuple[Pin, Findings]:
        """Find missing values. A table without versions is copied first, unless an earlier attempt did."""
        del belongs
        own = _pinned(pin)
        try:
            if own.version is not None:
                return own, find_missing(self._frame(own), use, place=own.name)
            own = self._copy(use, own, scratch)
        except Exception as fault:
            if not is_said_by_spark(fault):
                raise
            raise loading_failed(use, f"table `{own.name}` cannot be read: {explain_spark(fault)}") from fault
        files = [(path, ()) for path in _copies(own, scratch)]
        return own, sum(check_files(files, use, scratch.executors), Findings())

    def _copy(self, use: DatasetUse, pin: CatalogPin, scratch: Scratch) -> CatalogPin:
        """The pin with the number and the hash of the files to which the table is copied."""
        folder = _copy_folder(scratch)
        if pin.content is not None and not folder.exists():
            detail = f"table `{pin.name}` has no versions, and the copy of what the run read is gone"
            raise loading_failed(use, detail)
        if not folder.exists():
            copy_rows(
                read_catalog(self._spark(pin.name), self._name(pin.schema, pin.table), None), folder, scratch.transport
            )
        files = sorted(folder.glob("*.parquet"))
        for number, path in enumerate(files):
            # Files that an earlier attempt has renamed come first.
            path.replace(folder / _file_name(number))
        done = replace(pin, parts=len(files))
        hashes = [hash_file(path) for path in _copies(done, scratch)]
        return replace(done, content=hashlib.sha256("".join(hashes).encode()).hexdigest())

    def _frame(self, pin: CatalogPin, spark: SparkSession | None = None) -> DataFrame:
        """The rows of the version, in the session of the caller."""
        own = spark if spark is not None else self._spark(pin.name)
        frame = read_catalog(own, self._name(pin.schema, pin.table), pin.version)
        if pin.run_period is None or pin.key is None:
            return frame
        return frame.where(f"{quote_name(pin.key)} = {quote_text(pin.run_period)}")

    def input_files(self, pin: Pin, scratch: Scratch) -> tuple[InputFile, ...]:
        """The copy of a table that has no versions; of others no copy is kept."""
        return tuple(InputFile(str(path), is_ours=True) for path in _copies(_pinned(pin), scratch))

    def from_kept(self, pin: Pin, files: Sequence[str], scratch: Scratch) -> Pin:
        """Put the copy of a table that has no versions where an earlier attempt would have left it."""
        for source, target in zip(files, _copies(_pinned(pin), scratch), strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        return pin

    def extracted(self, pin: Pin, scratch: Scratch) -> Sequence[str]:
        """A copy of the rows."""
        own = _pinned(pin)
        if own.version is None:
            return [str(path) for path in _copies(own, scratch)]
        return copy_rows(self._frame(own), Path(scratch.file(0)), scratch.transport)

    def count(self, pin: Pin, scratch: Scratch) -> int:
        """The number of rows, counted by Spark; of a copy, from the footers of its files."""
        own = _pinned(pin)
        return count_rows(_copies(own, scratch)) if own.version is None else self._frame(own).count()

    def read(
        self, spark: SparkSession, use: DatasetUse, pin: Pin, scratch: Scratch, *, before: Callable[[], int]
    ) -> StoredRows:
        """The rows, without positions: the order in which Spark reads a table is undefined."""
        del before
        own = _pinned(pin)
        if own.version is not None:
            return rows_without_positions(self._frame(own, spark), use, period=pin.period)
        frame = read_parquet(spark, _copies(own, scratch), use, links=scratch.links, positions=False)
        return StoredRows(frame, pin.period)

    def sample(self, stored: Stored, columns: Mapping[str, Type], rows: int) -> list[Row]:
        """The first rows of the version."""
        own = _stored(stored)
        name = self._name(own.schema, own.table)
        frame = read_catalog(self._spark(str(name)), name, own.version)
        names = own.columns or tuple(columns)
        found: list[Row] = frame.limit(rows).selectExpr(*map(quote_name, names)).toArrow().to_pylist()
        return found

    # --- writing

    def target(self, output: OutputPlace) -> Target:
        """A table of the catalog."""
        name = self._name(output.schema, output.table)
        return CatalogTarget(
            self.source.id,
            name,
            output.period,
            output.run,
            output.seq,
            dict(output.columns),
            output.fence,
            output.attempt,
            Path(output.folder) / self.source.id / name.schema / name.table,
            self._options.form,
            output.transport,
            lambda: self._spark(str(name)),
        )

    def inspect(self, stored: Stored, *, run: str, seq: int) -> Inspected:
        """What commits note. The rows themselves are checked by their digest, when they are read."""
        own = _stored(stored)
        name = self._name(own.schema, own.table)
        told = Description.ask(self._spark(str(name)), name)
        if told is None or told.provider not in LOGS:
            return Inspected(gone=(f"table `{name}`",))
        notes = LOGS[told.provider](self._spark(str(name)), name).notes()
        heads = [Noted.load(each.note["history"]) for each in notes if each.note.get("history") is not None]
        made = any(find_commits(notes, run=run, seq=seq))
        return Inspected(tuple(heads), (), () if made else (f"the commit of the run in the history of `{name}`",))

    def keep(self, stored: Stored, *, period: str, run: str, seq: int) -> Stored | None:
        """The version stays readable, until the files of old versions are removed."""
        del period, run, seq
        own = _stored(stored)
        name = self._name(own.schema, own.table)
        gone = why_gone(self._spark(str(name)), name, own.version)
        return replace(own, is_kept=True) if gone is None else None


def _list(spark: SparkSession, name: TableName) -> list[str]:
    """The existing tables next to a missing one; empty if the catalog cannot list them."""
    try:
        return [str(row["tableName"]) for row in spark.sql(f"SHOW TABLES IN {name.schema_sql}").collect()]
    except Exception as fault:
        if is_not_there(fault):
            return []
        raise


def _copy_folder(scratch: Scratch) -> Path:
    return Path(scratch.folder) / f"{scratch.stem}-copy"


def _file_name(number: int) -> str:
    return f"{number:05}.parquet"


def _copies(pin: CatalogPin, scratch: Scratch) -> list[Path]:
    """The files of the copy of a table that has no versions."""
    return [_copy_folder(scratch) / _file_name(number) for number in range(pin.parts or 0)]


def _pinned(pin: Pin) -> CatalogPin:
    if not isinstance(pin, CatalogPin):
        raise AssertionError("a catalog has made it")
    return pin


def _stored(stored: Stored) -> StoredCatalogTable:
    if not isinstance(stored, StoredCatalogTable):
        raise AssertionError("a catalog has written it")
    return stored
