"""PostgreSQL as a storage: tables are read into Parquet and written from Parquet, all outputs of a run in one transaction."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field

from dobonomodo.formula import Type
from dobonomodo.model.datasource import DataSource, StorageOptions
from dobonomodo.model.document import Places
from dobonomodo.model.plain import Document
from dobonomodo.model.secret import find_secrets, is_plain_address
from dobonomodo.model.template import check_table_name
from dobonomodo.model.value import Filled
from dobonomodo.plan.dataset import DatasetUse, Location
from dobonomodo.plan.destination import DestinationKind
from dobonomodo.problems import Problem
from dobonomodo.problems.definition import InvalidValue
from dobonomodo.problems.package import POSTGRESQL
from dobonomodo.storage.executors import Executors
from dobonomodo.storage.faults import loading_failed
from dobonomodo.storage.findings import Findings
from dobonomodo.storage.footers import count_rows
from dobonomodo.storage.kept import InputFile, hash_file
from dobonomodo.storage.local_shelf import LocalShelf
from dobonomodo.storage.parquet import ParquetFormat, ParquetStorage, read_stored
from dobonomodo.storage.postgresql import Database, database_faults, describe_table, is_passing_fault, name_table
from dobonomodo.storage.secret import find_secret
from dobonomodo.storage.storage import Answer, Belongs, Pin, Row, Scratch, Session, Storage, Stored
from dobonomodo.storage.table_rows import estimate_rows, extract_table
from dobonomodo.storage.table_target import StoredTable, TableTarget, inspect_table, keep_rows, kept_name
from dobonomodo.storage.target import Inspected, OutputPlace, Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.storage.rows import StoredRows


_ROWS_OF_PART = 1_000_000
_PARTS_AT_MOST = 64
_SCHEME = re.compile(r"postgres(?:ql)?(?:\+\w+)?://")


class DatabaseOptions(StorageOptions):
    """A database that is reached by an address."""

    url: Filled = Field(description="The URL without a password: `postgresql://user@host:5432/db`.")
    schema_name: Filled | None = Field(default=None, alias="schema", description="The schema of the tables.")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """One form of address, which cannot be read in two ways; no other kind of database is taken for PostgreSQL."""
        url = places.text("url") or ""
        is_right = _SCHEME.match(url) and is_plain_address(url)
        # An address with a secret in it is reported as that.
        if url.strip() and not is_right and not any(find_secrets(places, "options")):
            yield InvalidValue(
                key="url",
                expected="the URL of a PostgreSQL database",
                found="this text",
                advice="write `postgresql://user@host:5432/database`; percent-encode special characters",
                span=places.span("url"),
            )
        if places.text("schema") is not None:
            yield from check_table_name(places.passage("schema"), "schema")


@dataclass(frozen=True, slots=True)
class TablePin:
    """A table, with a fingerprint of the rows that were read."""

    name: str
    datasource_id: str
    table: str
    schema: str | None
    period: str | None = None
    fingerprint: str | None = None
    run_period: str | None = None
    """Only what runs for this period wrote."""
    parts: int | None = None
    """Into how many files the rows were extracted, if not into one: the same rows give the same files."""

    @property
    def kind(self) -> str:
        """The kind of storage."""
        return "database"

    @property
    def size(self) -> int:
        """What was extracted has a size of its own."""
        return 0

    def document(self) -> dict[str, object]:
        """As plain data."""
        own = {name: getattr(self, name) for name in self.__slots__ if name != "parts" or self.parts is not None}
        return {"kind": self.kind, **own, "files": []}

    @classmethod
    def load(cls, document: Document) -> TablePin:
        """From plain data."""
        return cls(**{name: document.get(name) for name in cls.__slots__})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class DatabaseStorage:
    """The tables of a PostgreSQL database."""

    source: DataSource
    root: Path

    kind: ClassVar[str] = "database"
    options: ClassVar[type[StorageOptions]] = DatabaseOptions
    destinations: ClassVar[DestinationKind] = DestinationKind(are_paths=False, inline=False, has_schemas=True)
    modules: ClassVar[Sequence[str]] = POSTGRESQL
    together: ClassVar[str] = "one transaction for all tables of the database"

    @classmethod
    def open(
        cls,
        source: DataSource | None,
        *,
        root: str,
        record: Pin | Stored | None = None,
        session: Session | None = None,
    ) -> Self:
        """The database of a datasource."""
        del record, session
        if source is None:
            raise AssertionError("a table belongs to a datasource")
        return cls(source, Path(root))

    @classmethod
    def load_pin(cls, document: Document) -> Pin:
        """From plain data."""
        return TablePin.load(document)

    @classmethod
    def load_stored(cls, document: Document) -> Stored:
        """From plain data."""
        return StoredTable.load(document)

    def with_options(self, options: Sequence[tuple[str, object]]) -> Storage:
        """There are none."""
        del options
        return self

    def in_folder(self, folder: str, *, within: str) -> Storage:
        """Drafts write Parquet files in place of tables."""
        return ParquetStorage(LocalShelf(self.root, Path(folder), Path(within)), ParquetFormat())

    @property
    def _options(self) -> DatabaseOptions:
        return DatabaseOptions.model_validate(self.source.options)

    def connect(self) -> Database:
        """How to reach the database, with its secret."""
        password = find_secret(self.source.credential_ref, root=self.root, owner=f"datasource `{self.source.id}`")
        return Database(self._options.url, self._options.schema_name, password)

    # --- checking

    def call(self) -> Answer | None:
        """The version of the server, or why it cannot be reached."""
        import psycopg

        database = self.connect()
        try:
            with database.connect() as connection:
                version = connection.info.server_version
        except psycopg.Error as fault:
            return Answer(database.explain(fault), works=False)
        return Answer(f"PostgreSQL {version // 10_000}.{version % 10_000} answers")

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
        """The names of tables; their content is known when it is read. Of tables that may be missing, only existing ones."""
        if use.may_be_missing:
            locations = self._find_existing(use, locations)
        return tuple(
            TablePin(
                str(each),
                self.source.id,
                each.table or each.path or "",
                each.schema or self._options.schema_name,
                each.period,
            )
            for each in locations
        )

    def _find_existing(self, use: DatasetUse, locations: Sequence[Location]) -> list[Location]:
        """The tables that there are."""
        database = self.connect()
        try:
            with database.connect() as connection:
                return [
                    each
                    for each in locations
                    if describe_table(connection, each.schema or database.schema, each.table or each.path or "")
                    is not None
                ]
        except database_faults() as fault:
            raise loading_failed(use, database.explain(fault), retry_helps=is_passing_fault(fault)) from fault

    def pin_registered(self, use: DatasetUse, stored: Stored) -> tuple[Pin, ...]:
        """The copy of the table."""
        del use
        own = _stored_table(stored)
        return (TablePin(f"{self.source.id}:{own.table}", self.source.id, own.table, own.schema),)

    def pin_output(self, stored: Stored, *, name: str, period: str) -> Pin:
        """The rows of the period in the table."""
        own = _stored_table(stored)
        return TablePin(name, self.source.id, own.table, own.schema, run_period=period)

    def find_changes(self, pin: Pin, *, listing: bool) -> Iterable[str]:
        """The rows were extracted; whether they can be extracted again is known when that is done."""
        del pin, listing
        return ()

    def extract(self, use: DatasetUse, pin: Pin, scratch: Scratch, *, belongs: Belongs) -> tuple[Pin, Findings]:
        """Extract the table into one Parquet file, or several if it is large, unless an earlier attempt did."""
        own = _table_pin(pin)
        mark = Path(scratch.file(0)).with_suffix(".sha256")
        done = _read_mark(own, mark)
        if done is None or not all(Path(each).exists() for each in _files(done, scratch)):
            Path(scratch.folder).mkdir(parents=True, exist_ok=True)
            own = own if own.fingerprint is not None else replace(own, parts=self._count_parts(own, scratch.executors))
            findings, hashes = extract_table(
                self.connect(),
                [Path(each) for each in _files(own, scratch)],
                use,
                table=own.table,
                schema=own.schema,
                belongs=belongs,
                run_period=own.run_period,
                executors=scratch.executors,
            )
            if findings:
                return pin, findings
            done = _write_mark(own, hashes, mark)
        if own.fingerprint is not None and own != done:
            raise loading_failed(use, f"table `{own.table}` has changed since the run took its snapshot")
        return done, Findings()

    def _count_parts(self, pin: TablePin, executors: Executors | None) -> int | None:
        """Into how many files a table is read; None for one."""
        if executors is None:
            return None
        rows = estimate_rows(self.connect(), table=pin.table, schema=pin.schema)
        return min(_PARTS_AT_MOST, max(2, -(-rows // _ROWS_OF_PART))) if rows > executors.limits.table_rows else None

    def input_files(self, pin: Pin, scratch: Scratch) -> tuple[InputFile, ...]:
        """What was extracted of the table: its fingerprint is the hash of that file, or of the hashes of several."""
        return tuple(InputFile(each, is_ours=True) for each in _files(_table_pin(pin), scratch))

    def from_kept(self, pin: Pin, files: Sequence[str], scratch: Scratch) -> Pin:
        """Put the extracted rows where an earlier attempt would have left them."""
        own = _table_pin(pin)
        targets = [Path(each) for each in _files(own, scratch)]
        for source, target in zip(files, targets, strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        _write_mark(own, [hash_file(each) for each in targets], targets[0].with_suffix(".sha256"))
        return own

    def extracted(self, pin: Pin, scratch: Scratch) -> Sequence[str]:
        """One for the table, or several for a large one."""
        return _files(_table_pin(pin), scratch)

    def count(self, pin: Pin, scratch: Scratch) -> int:
        """The number of rows that were extracted."""
        return count_rows(Path(each) for each in _files(_table_pin(pin), scratch))

    def read(
        self, spark: SparkSession, use: DatasetUse, pin: Pin, scratch: Scratch, *, before: Callable[[], int]
    ) -> StoredRows:
        """The rows that were extracted."""
        files = [Path(each) for each in _files(_table_pin(pin), scratch)]
        return read_stored(spark, files, use, links=scratch.links, period=pin.period, before=before)

    def sample(self, stored: Stored, columns: Mapping[str, Type], rows: int) -> list[Row]:
        """The first rows of the table."""
        from psycopg import sql
        from psycopg.rows import dict_row

        del columns
        own = _stored_table(stored)
        with self.connect().connect() as connection, connection.cursor(row_factory=dict_row) as cursor:
            # The number is put into the text: psycopg would look for its `%s` in the names too.
            query = sql.SQL("SELECT * FROM {} LIMIT {}").format(name_table(own.schema, own.table), rows)
            return cursor.execute(query).fetchall()

    # --- writing

    def target(self, output: OutputPlace) -> Target:
        """A table of the database."""
        database = self.connect()
        return TableTarget(
            database,
            output.table,
            output.schema or database.schema,
            output.period,
            output.run,
            output.seq,
            dict(output.columns),
            output.fence,
            output.attempt,
            self.source.id,
            output.executors,
        )

    def inspect(self, stored: Stored, *, run: str, seq: int) -> Inspected:
        """What the table of commits notes; the rows themselves are checked by their digest, when they are read."""
        own = _stored_table(stored)
        with self.connect().connect() as connection:
            return inspect_table(connection, own, run=run, seq=seq)

    def keep(self, stored: Stored, *, period: str, run: str, seq: int) -> Stored | None:
        """The rows of the period are copied, unless the output was registered, for which the table was copied already."""
        own = _stored_table(stored)
        with self.connect().connect() as connection:
            copy = keep_rows(connection, own, period=period, name=kept_name(own.table, run, seq))
        return replace(own, table=copy) if copy is not None else None


def _files(pin: TablePin, scratch: Scratch) -> list[str]:
    """What a table is extracted to."""
    return [scratch.file(number) for number in range(pin.parts or 1)]


def _write_mark(pin: TablePin, hashes: Sequence[str], mark: Path) -> TablePin:
    """Record the fingerprint of files, and their number if there are several, which says that they are complete."""
    together = hashlib.sha256("".join(hashes).encode()).hexdigest()
    unfinished = mark.with_name(mark.name + ".part")
    unfinished.write_text(hashes[0] if len(hashes) == 1 else f"{together} {len(hashes)}")
    unfinished.replace(mark)
    return _read_mark(pin, mark) or pin


def _read_mark(pin: TablePin, mark: Path) -> TablePin | None:
    """The pin with what was recorded of the files; None if they are not complete."""
    if not mark.exists():
        return None
    fingerprint, _, parts = mark.read_text().partition(" ")
    return replace(pin, fingerprint=fingerprint, parts=int(parts) if parts else None)


def _table_pin(pin: Pin) -> TablePin:
    if not isinstance(pin, TablePin):
        raise AssertionError("a database has made it")
    return pin


def _stored_table(stored: Stored) -> StoredTable:
    if not isinstance(stored, StoredTable):
        raise AssertionError("a database has written it")
    return stored
