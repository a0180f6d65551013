"""PostgreSQL as a storage: tables are read into Parquet and written from Parquet, all outputs of a run in one transaction."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from dobonomodo.formula import Type
from dobonomodo.model.datasource import StorageOptions
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
from dobonomodo.storage.extracted import ExtractedStorage, TablePin, name_location
from dobonomodo.storage.faults import loading_failed
from dobonomodo.storage.findings import Findings
from dobonomodo.storage.postgresql import Database, database_faults, describe_table, is_passing_fault, name_table
from dobonomodo.storage.secret import find_secret
from dobonomodo.storage.storage import Answer, Belongs, Pin, Row, Scratch, Stored
from dobonomodo.storage.table_rows import estimate_rows, extract_table
from dobonomodo.storage.table_target import StoredTable, TableTarget, inspect_table, keep_rows, kept_name
from dobonomodo.storage.target import Inspected, OutputPlace, Target

_ROWS_OF_PART = 1_000_000
_PARTS_AT_MOST = 64
_ADVICE = "write `postgresql://user@host:5432/database`; percent-encode special characters"
_OTHERS = (
    "other databases can be read by a datasource of `type: sql`; this type is for PostgreSQL, which is written too"
)
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
                advice=_ADVICE if _SCHEME.match(url) or "://" not in url else _OTHERS,
                span=places.span("url"),
            )
        if places.text("schema") is not None:
            yield from check_table_name(places.passage("schema"), "schema")


@dataclass(frozen=True, slots=True)
class DatabaseStorage(ExtractedStorage):
    """The tables of a PostgreSQL database."""

    kind: ClassVar[str] = "database"
    options: ClassVar[type[StorageOptions]] = DatabaseOptions
    destinations: ClassVar[DestinationKind] = DestinationKind(are_paths=False, inline=False, has_schemas=True)
    modules: ClassVar[Sequence[str]] = POSTGRESQL
    together: ClassVar[str] = "one transaction for all tables of the database"

    @classmethod
    def load_stored(cls, document: Document) -> Stored:
        """From plain data."""
        return StoredTable.load(document)

    @property
    def _options(self) -> DatabaseOptions:
        return DatabaseOptions.model_validate(self.source.options)

    @property
    def schema(self) -> str | None:
        """The schema of tables that name none."""
        return self._options.schema_name

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

    # --- reading

    def find_existing(self, use: DatasetUse, locations: Sequence[Location]) -> list[Location]:
        """The tables that there are."""
        database = self.connect()
        try:
            with database.connect() as connection:
                return [
                    each
                    for each in locations
                    if describe_table(connection, each.schema or database.schema, name_location(each)) is not None
                ]
        except database_faults() as fault:
            raise loading_failed(use, database.explain(fault), retry_helps=is_passing_fault(fault)) from fault

    def pin_registered(self, use: DatasetUse, stored: Stored) -> tuple[Pin, ...]:
        """The copy of the table."""
        del use
        own = _stored_table(stored)
        return (TablePin(self.kind, f"{self.source.id}:{own.table}", self.source.id, own.table, own.schema),)

    def pin_output(self, stored: Stored, *, name: str, period: str) -> Pin:
        """The rows of the period in the table."""
        own = _stored_table(stored)
        return TablePin(self.kind, name, self.source.id, own.table, own.schema, run_period=period)

    def extract_rows(
        self, use: DatasetUse, pin: TablePin, files: Sequence[Path], scratch: Scratch, *, belongs: Belongs
    ) -> tuple[Findings, tuple[str, ...]]:
        """Read a table in one snapshot."""
        return extract_table(
            self.connect(),
            files,
            use,
            table=pin.table,
            schema=pin.schema,
            belongs=belongs,
            run_period=pin.run_period,
            executors=scratch.executors,
        )

    def count_parts(self, pin: TablePin, executors: Executors | None) -> int | None:
        """Into how many files a table is read; None for one."""
        if executors is None:
            return None
        rows = estimate_rows(self.connect(), table=pin.table, schema=pin.schema)
        return min(_PARTS_AT_MOST, max(2, -(-rows // _ROWS_OF_PART))) if rows > executors.limits.table_rows else None

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


def _stored_table(stored: Stored) -> StoredTable:
    if not isinstance(stored, StoredTable):
        raise AssertionError("a database has written it")
    return stored
