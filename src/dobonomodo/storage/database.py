"""PostgreSQL: tables are read into Parquet and written from Parquet by ADBC, which speaks Arrow and needs no jar.

An output goes to a staging table first; one transaction then replaces the rows of the run's period and records that it did.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote, urlsplit, urlunsplit

from dobonomodo.failpoint import reach
from dobonomodo.formula import Type
from dobonomodo.formula.types import (
    BOOLEAN,
    DATE,
    INTEGER,
    TEXT,
    TIMESTAMP,
    DecimalType,
    SimpleType,
    is_number,
    parse_type,
)
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.plan.registration import United, widen
from dobonomodo.plan.system import PERIOD, RUN_PERIOD, VALIDITY
from dobonomodo.problems import RunFailed
from dobonomodo.storage.faults import is_passing, loading_failed, removing_on_failure, writing_failed
from dobonomodo.storage.fence import Fence
from dobonomodo.storage.findings import CheckedBatch, Findings, check_batch
from dobonomodo.storage.leftover import Leftover
from dobonomodo.storage.schema import SYSTEM, arrow_type, find_differences
from dobonomodo.storage.target import Commit, Publication, Target
from dobonomodo.storage.values import show_value

if TYPE_CHECKING:
    import psycopg
    import pyarrow
    from psycopg.sql import Composable, Composed
    from pyarrow.parquet import ParquetFile

COMMITS = "dobo_commit"
"""The table, beside the data, that says what was published."""
FENCES = "dobo_fence"
"""The highest fencing number of each store, project and period that published into a table."""
STAGE = "dobo_stage_"
"""How the names of staging tables begin."""
MAX_NAME = 63
"""Bytes of a name; PostgreSQL cuts longer ones without a word."""

_STORED = {
    "bigint": "bigint",
    "integer": "int",
    "smallint": "smallint",
    "text": "string",
    "uuid": "string",
    "boolean": "boolean",
    "date": "date",
    "timestamp with time zone": "timestamp",
    "timestamp without time zone": "timestamp_ntz",
}


@dataclass(frozen=True, slots=True)
class Database:
    """A database that can be reached, with the secret that opens it."""

    url: str
    schema: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def _address(self) -> str:
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(scheme="postgresql"))

    def connect(self) -> psycopg.Connection[Any]:
        """A connection for statements; a transaction is open until commit."""
        import psycopg

        # libpq looks elsewhere for a password that is None.
        return psycopg.connect(
            self._address, connect_timeout=10, application_name="dobo", password=self.password or None
        )

    @contextmanager
    def stream(self) -> Iterator[Any]:
        """A cursor for rows as Arrow, in one transaction that is committed at the end."""
        import adbc_driver_postgresql.dbapi as adbc

        parts = urlsplit(self._address)
        if self.password is not None:
            user, _, host = parts.netloc.rpartition("@")
            name = user.partition(":")[0]
            parts = parts._replace(netloc=f"{name}:{quote(self.password, safe='')}@{host}")
        with adbc.connect(urlunsplit(parts)) as connection, connection.cursor() as cursor:
            yield cursor
            connection.commit()

    def explain(self, fault: BaseException) -> str:
        """What the database says, in one line and without the secret."""
        line = next((line for line in str(fault).splitlines() if line.strip()), type(fault).__name__)
        for secret in {self.password or "", quote(self.password or "", safe="")} - {""}:
            line = line.replace(secret, "***")
        return line


@dataclass(frozen=True, slots=True)
class Belongs:
    """Which rows belong to a run: those of these periods, or those that are valid on this day."""

    periods: tuple[str, ...]
    as_of: date
    run_period: str | None = None
    """Only what runs for this period wrote."""


def _faults() -> tuple[type[Exception], ...]:
    import adbc_driver_manager
    import psycopg
    import pyarrow as pa

    return (psycopg.Error, adbc_driver_manager.Error, pa.ArrowException, OSError)


def _is_passing(fault: BaseException) -> bool:
    """Whether the server could not be reached, was stopped, or has no room; trying again may help."""
    import adbc_driver_manager
    import psycopg

    return isinstance(fault, psycopg.OperationalError | adbc_driver_manager.OperationalError) or is_passing(fault)


# --- reading


def extract_table(
    database: Database,
    target: Path,
    use: DatasetUse,
    *,
    table: str,
    schema: str | None,
    belongs: Belongs,
) -> Findings:
    """Read a table into a Parquet file, in one statement and so at one moment, unless a value of it is wrong."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with database.connect() as connection:
            stored = _describe(connection, schema or database.schema, table)
            if stored is None:
                raise loading_failed(use, f"there is no table `{table}`")
            columns = _columns_to_read(stored, use, table, grown=belongs.run_period is not None)
            named = _named(schema or database.schema, table)
            keys = _keys(connection, stored, use, named)
            statement = _select(stored, columns, use, named, keys, belongs).as_string(connection)
        shown = tuple(name for name in keys if name in columns)
        types = _arrow_schema(columns)
        unfinished = target.with_name(target.name + ".part")
        findings, first = Findings(), 1
        with removing_on_failure(unfinished):
            with pq.ParquetWriter(unfinished, types) as writer, database.stream() as cursor:
                cursor.execute(statement)
                for batch in cursor.fetch_record_batch():
                    plain = [each.storage if isinstance(each, pa.ExtensionArray) else each for each in batch.columns]
                    checked = check_batch(plain, columns, use=use, place=table)
                    findings += _place(checked, dict(zip(columns, plain, strict=True)), shown, first=first)
                    if not findings:
                        writer.write_batch(pa.RecordBatch.from_arrays(checked.columns, schema=types))
                    first += batch.num_rows
                    reach("input.extracting")
            if findings:
                unfinished.unlink()
            else:
                unfinished.replace(target)
        return findings
    except _faults() as fault:
        detail = f"table `{table}`: {database.explain(fault)}"
        raise loading_failed(use, detail, retry_helps=_is_passing(fault)) from fault


def _place(checked: CheckedBatch, batch: Mapping[str, pyarrow.Array], keys: Sequence[str], *, first: int) -> Findings:
    """What is wrong in a batch, each value with the key of its row, or without one with the number of the row."""

    def name_row(at: int) -> str:
        return ", ".join(f"`{key}` {show_value(batch[key], at)}" for key in keys) or f"row {first + at}"

    return Findings(tuple(replace(cell, row=name_row(at)) for at, cell in checked.first), checked.counts)


def _describe(connection: psycopg.Connection[Any], schema: str | None, table: str) -> dict[str, str] | None:
    """The columns of a table with their types as PostgreSQL names them; None if there is no such table."""
    if len(table.encode()) > MAX_NAME:
        return None
    found = connection.execute("SELECT to_regclass(%s)::oid", [_named(schema, table).as_string(connection)]).fetchone()
    if found is None or found[0] is None:
        return None
    rows = connection.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        [found[0]],
    ).fetchall()
    return dict(rows)


def _columns_to_read(stored: Mapping[str, str], use: DatasetUse, table: str, *, grown: bool) -> dict[str, Type]:
    """The columns with their types; ``grown``: the table may have more and wider ones than the rows that are wanted (C-86)."""
    declared = {name.casefold(): name for name in use.columns}
    if grown:
        stored = {name: kind for name, kind in stored.items() if name.casefold() in declared}
    differences = find_differences(
        [
            (name, _stored_type(kind, use.columns.get(declared.get(name.casefold(), "")), grown=grown))
            for name, kind in stored.items()
        ],
        use,
    )
    if differences:
        raise loading_failed(use, f"table `{table}` is not as declared", differences=differences)
    known = {name.casefold(): kind for name, kind in use.columns.items()} | dict(SYSTEM)
    return {name: known[name.casefold()] for name in stored if name.casefold() in known}


def _stored_type(kind: str, wanted: Type | None, *, grown: bool) -> str:
    if kind.startswith(("character varying", "character(")):
        return "string"
    if grown and kind.startswith("numeric") and wanted is not None and is_number(wanted):
        return wanted.sql.lower()
    if kind == "numeric":
        # Without limits in the table, each value is checked as it is read.
        return wanted.sql.lower() if isinstance(wanted, DecimalType) else "numeric"
    if kind.startswith("numeric("):
        return "decimal" + kind.removeprefix("numeric")
    return _STORED.get(kind, kind)


def _select(
    stored: Mapping[str, str],
    columns: Mapping[str, Type],
    use: DatasetUse,
    table: Composable,
    keys: Sequence[str],
    belongs: Belongs,
) -> Composed:
    from psycopg import sql

    shown = sql.SQL(", ").join(
        sql.SQL("{} AS {}").format(_read_as(name, stored[name], kind), sql.Identifier(name))
        for name, kind in columns.items()
    )
    folded = {name.casefold(): name for name in stored}
    query = sql.SQL("SELECT {} FROM {}").format(shown, table)
    tests = list(_tests(folded, stored, use, belongs))
    if tests:
        query = query + sql.SQL(" WHERE ") + sql.SQL(" AND ").join(tests)
    # All columns follow the key: rows that share one have a stable order too, and equal ones need none (C-85).
    order = [_order_by(name, stored) for name in dict.fromkeys((*keys, *columns))]
    if order:
        query = query + sql.SQL(" ORDER BY ") + sql.SQL(", ").join(order)
    return query


def _keys(
    connection: psycopg.Connection[Any], stored: Mapping[str, str], use: DatasetUse, table: Composable
) -> tuple[str, ...]:
    """The natural or else the primary key, in the spelling of the table."""
    folded = {name.casefold(): name for name in stored}
    keys = use.natural_key or _primary_key(connection, table)
    return tuple(folded[key.casefold()] for key in keys if key.casefold() in folded)


def _tests(
    folded: Mapping[str, str], stored: Mapping[str, str], use: DatasetUse, belongs: Belongs
) -> Iterator[Composable]:
    """What the engine asks of rows in time, asked of the database, so that other rows do not travel."""
    from psycopg import sql

    if belongs.run_period is not None and RUN_PERIOD in folded:
        yield sql.SQL("{} = {}").format(sql.Identifier(folded[RUN_PERIOD]), sql.Literal(belongs.run_period))
    if use.temporal_mode == "period" and PERIOD in folded:
        values = sql.SQL(", ").join(sql.Literal(each) for each in belongs.periods)
        yield sql.SQL("{} IN ({})").format(sql.Identifier(folded[PERIOD]), values)
    if use.temporal_mode == "bitemporal":
        for start, end in VALIDITY:
            if start in folded and end in folded:
                day = sql.Literal(belongs.as_of)
                yield sql.SQL("{} <= {}").format(_day(folded[start], stored), day)
                until = sql.Identifier(folded[end])
                yield sql.SQL("({} IS NULL OR {} > {})").format(until, _day(folded[end], stored), day)
                return


def _day(name: str, stored: Mapping[str, str]) -> Composable:
    """The day of a date or time; that of a time is the day in UTC, whatever zone the server is in."""
    from psycopg import sql

    if stored[name] == "timestamp with time zone":
        return sql.SQL("({} AT TIME ZONE 'UTC')::date").format(sql.Identifier(name))
    return sql.SQL("{}::date").format(sql.Identifier(name))


def _read_as(name: str, stored: str, kind: Type) -> Composable:
    from psycopg import sql

    if stored == "timestamp without time zone":
        return sql.SQL("{} AT TIME ZONE 'UTC'").format(sql.Identifier(name))
    if kind == INTEGER:
        whole = sql.SQL("trim_scale({})::text") if stored.startswith("numeric") else sql.SQL("{}::int8")
        return whole.format(sql.Identifier(name))
    if isinstance(kind, DecimalType) or kind == TEXT:
        return sql.SQL("{}::text").format(sql.Identifier(name))
    return sql.Identifier(name)


def _order_by(name: str, stored: Mapping[str, str]) -> Composable:
    """The same order whatever language the database sorts by."""
    from psycopg import sql

    texts = stored[name] == "text" or stored[name].startswith("character")
    return sql.SQL('{} COLLATE "C"').format(sql.Identifier(name)) if texts else sql.Identifier(name)


def _primary_key(connection: psycopg.Connection[Any], table: Composable) -> tuple[str, ...]:
    rows = connection.execute(
        "SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) "
        "WHERE i.indrelid = to_regclass(%s) AND i.indisprimary ORDER BY a.attnum",
        [table.as_string(connection)],
    ).fetchall()
    return tuple(row[0] for row in rows)


def _arrow_schema(columns: Mapping[str, Type]) -> pyarrow.Schema:
    import pyarrow as pa

    return pa.schema([(name, arrow_type(kind)) for name, kind in columns.items()])


# --- writing


@dataclass(frozen=True, slots=True)
class Fit:
    """How the columns of an output go into a table."""

    spelled: Mapping[str, str | None]
    """Their spelling in the table, None where it lacks them."""
    widened: Mapping[str, Type] = field(default_factory=dict)
    """The columns of the table that must hold more than they do."""


@dataclass(frozen=True, slots=True)
class TableTarget:
    """One output of one run into a table."""

    database: Database
    table: str
    schema: str | None
    period: str
    run: str
    seq: int
    columns: Mapping[str, Type]
    fence: Fence
    attempt: int
    """The number of the attempt that staged the rows, which may be an earlier one than the one that publishes them."""
    datasource_id: str

    @property
    def place(self) -> str:
        """The database: its tables are published in one transaction."""
        return f"database {self.database.url}"

    @property
    def name(self) -> str:
        """How messages name it."""
        return f"{self.schema}.{self.table}" if self.schema else self.table

    @property
    def _stage(self) -> str:
        # Each attempt at a run has a table of its own: an earlier one may still be writing, and not know that it lost.
        text = f"{self.table}\0{self.run}\0{self.seq}\0{self.attempt}"
        return f"{STAGE}{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    @property
    def _written(self) -> dict[str, Type]:
        return {**{name: kind for name, kind in self.columns.items() if name != RUN_PERIOD}, RUN_PERIOD: TEXT}

    def located(self, connection: psycopg.Connection[Any]) -> TableTarget:
        """The same with the schema that the table is in, or will be made in.

        One table may be named with its schema and without; what locks and records refer to has one name.
        """
        row = connection.execute(
            "SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)",
            [_named(self.schema, self.table).as_string(connection)],
        ).fetchone()
        if row is None and self.schema is None:
            row = connection.execute("SELECT current_schema()").fetchone()
        return replace(self, schema=row[0]) if row is not None and row[0] is not None else self

    def check(self, *, mode: str) -> United:
        """Refuse a table that cannot take the rows, before anything is computed; gives the columns that it has."""
        del mode
        with self._explaining(), self.database.connect() as connection:
            located = self.located(connection)
            located.check_table(connection)
            return United(located.read_columns(connection, self.table))

    def find_columns(self, table: str) -> dict[str, Type]:
        """The columns of a table beside this one."""
        with self._explaining(), self.database.connect() as connection:
            return self.located(connection).read_columns(connection, table)

    def read_columns(self, connection: psycopg.Connection[Any], table: str) -> dict[str, Type]:
        """The same over a connection; columns of types that no run writes are left out."""
        stored = _describe(connection, self.schema, table) or {}
        return {name: known for name, kind in stored.items() if (known := _known_type(kind)) is not None}

    def check_table(self, connection: psycopg.Connection[Any]) -> Fit:
        """How the columns that are written go into the table. Raises if it cannot take them."""
        for name in (*self._written, self.table):
            if len(name.encode()) > MAX_NAME:
                self._refuse(f"the name `{name}` is longer than {MAX_NAME} bytes")
        if self.schema is not None and not _has_schema(connection, self.schema):
            self._refuse(f"there is no schema `{self.schema}`")
        stored = _describe(connection, self.schema, self.table)
        if stored is None:
            return Fit(dict.fromkeys(self._written))
        if RUN_PERIOD not in stored:
            self._refuse("the table has no column `_run_period`: no run made it; choose another table")
        # A column that differs in case only is the same one, here as everywhere.
        folded = {name.casefold(): name for name in stored}
        spelled = {name: name if name in stored else folded.get(name.casefold()) for name in self._written}
        pairs = {
            spelling: (_known_type(stored[spelling]) or SimpleType(stored[spelling], stored[spelling]), kind)
            for name, kind in self._written.items()
            if (spelling := spelled[name]) is not None
        }
        united = {spelling: widen(one, other) for spelling, (one, other) in pairs.items()}
        conflicts = tuple((spelling, *pair) for spelling, pair in pairs.items() if united[spelling] is None)
        if conflicts:
            self._refuse(United({}, conflicts).explain())
        widened = {name: kind for name, kind in united.items() if kind is not None and kind != pairs[name][0]}
        return Fit(spelled, widened)

    def start(self) -> None:
        """Rows are copied from files: Spark writes nothing into a database."""

    def convert(self, files: Sequence[Path]) -> bool:
        """Copy rows into a table of their own, which nobody reads."""
        import pyarrow as pa
        import pyarrow.parquet as pq
        from psycopg import sql

        with self._explaining():
            with self.database.connect() as connection:
                schema_name = self.located(connection).schema
                stage = _named(schema_name, self._stage)
                connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(stage))
                fields = sql.SQL(", ").join(_declaration(name, kind) for name, kind in self.columns.items())
                connection.execute(sql.SQL("CREATE UNLOGGED TABLE {} ({})").format(stage, fields))
                # Whose it is, for whoever finds it after the run was killed.
                owner = json.dumps({"store": self.fence.store, "run": self.run, "fence": self.fence.number})
                connection.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(stage, owner))
            schema = _arrow_schema(self.columns)
            with self.database.stream() as cursor:
                for path in files:
                    with pq.ParquetFile(path) as file:
                        reader = pa.RecordBatchReader.from_batches(schema, self._batches(file, schema))
                        cursor.adbc_ingest(self._stage, reader, mode="append", db_schema_name=schema_name)
        return True

    def _batches(self, file: ParquetFile, schema: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        for batch in file.iter_batches():
            yield from pa.Table.from_batches([batch]).select(list(self.columns)).cast(schema).to_batches()
            reach("output.converting")

    def find_commit(self) -> Commit | None:
        """What this output published, if it did."""
        with self._explaining(), self.database.connect() as connection:
            return self.located(connection).read_commit(connection)

    def read_commit(self, connection: psycopg.Connection[Any]) -> Commit | None:
        """The same over a connection, for a target that is located."""
        from psycopg import sql

        if _describe(connection, self.schema, COMMITS) is None:
            return None
        row = connection.execute(
            sql.SQL("SELECT rows, digest FROM {} WHERE destination = {} AND run = {} AND seq = {}").format(
                _named(self.schema, COMMITS), self.table, self.run, self.seq
            )
        ).fetchone()
        return Commit(self.run, self.seq, int(row[0]), row[1]) if row else None

    def claim(self) -> None:
        """Refuse to go on if a later run was here; otherwise, earlier ones are refused from now on."""
        with self._explaining(), self.database.connect() as connection:
            self.located(connection).claim_in(connection)

    def publish(self, group: Sequence[Publication]) -> None:
        """Replace the period's rows, or add to them, and record it, for all tables in one transaction."""
        import psycopg

        for each in group:
            _table_target(each.target).require_stage(each)
        try:
            with self._explaining(), self.database.connect() as connection:
                located = [(each, _table_target(each.target).located(connection)) for each in group]
                # Tables are locked in one order, whoever publishes them.
                for each, target in sorted(located, key=lambda pair: (pair[1].name, pair[1].seq)):
                    target.publish_in(connection, each)
                reach("publish.during")
        except RunFailed as failed:
            # The answer may be lost although the transaction was committed: ask before saying that it failed.
            lost = isinstance(failed.__cause__, psycopg.OperationalError)
            if not lost or not all(_table_target(each.target).is_published() for each in group):
                raise

    def is_published(self) -> bool:
        """Whether the output is published; False if nobody can say."""
        try:
            return self.find_commit() is not None
        except RunFailed:
            return False

    def publish_in(self, connection: psycopg.Connection[Any], publication: Publication) -> None:
        """The output's part of the transaction, for a target that is located."""
        from psycopg import sql

        # Values are put into the text, quoted: psycopg would look for its `%s` in the names of columns too.
        target, stage = _named(self.schema, self.table), _named(self.schema, self._stage)
        commit = publication.commit
        self.claim_in(connection)
        if self.read_commit(connection) is not None:
            self.drop_stage(connection)
            return
        fields = sql.SQL(", ").join(_declaration(name, kind) for name, kind in self._written.items())
        connection.execute(sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(target, fields))
        fit = self.check_table(connection)
        for name in [name for name, spelling in fit.spelled.items() if spelling is None]:
            added = _declaration(name, self._written[name])
            connection.execute(sql.SQL("ALTER TABLE {} ADD COLUMN {}").format(target, added))
        for name, kind in fit.widened.items():
            changed = sql.SQL("ALTER TABLE {} ALTER COLUMN {} TYPE {}")
            connection.execute(changed.format(target, sql.Identifier(name), sql.SQL(_declare(kind))))
        period = sql.Identifier(RUN_PERIOD)
        if publication.mode == "replace":
            connection.execute(sql.SQL("DELETE FROM {} WHERE {} = {}").format(target, period, self.period))
        names = [name for name in self._written if name != RUN_PERIOD]
        staged = sql.SQL(", ").join(sql.Identifier(name) for name in names)
        listed = sql.SQL(", ").join(sql.Identifier(fit.spelled[name] or name) for name in names)
        done = connection.execute(
            sql.SQL("INSERT INTO {} ({}, {}) SELECT {}, {} FROM {}").format(
                target, listed, period, staged, self.period, stage
            )
        )
        if done.rowcount != commit.rows:
            self._refuse(f"{done.rowcount} rows were staged instead of {commit.rows}")
        connection.execute(
            sql.SQL("INSERT INTO {} (destination, run, seq, run_period, rows, digest) VALUES ({})").format(
                _named(self.schema, COMMITS),
                sql.SQL(", ").join([self.table, self.run, self.seq, self.period, commit.rows, commit.digest]),
            )
        )
        if publication.registers:
            kept = _named(self.schema, self._kept)
            connection.execute(sql.SQL("CREATE TABLE {} AS TABLE {}").format(kept, target))
        self.drop_stage(connection)

    def require_stage(self, publication: Publication) -> None:
        """Copy the rows again if the staging table is gone, or empty after a crash of the server.

        Not within the transaction that publishes: it would hold the table that is to be made again.
        """
        with self._explaining(), self.database.connect() as connection:
            located = self.located(connection)
            if located.read_commit(connection) is not None:
                return
            staged = located.count_staged(connection)
        if staged != publication.commit.rows:
            self.convert(publication.files)

    def count_staged(self, connection: psycopg.Connection[Any]) -> int | None:
        """How many rows are staged; None if there is no staging table. For a target that is located."""
        from psycopg import sql

        if _describe(connection, self.schema, self._stage) is None:
            return None
        stage = _named(self.schema, self._stage)
        found = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(stage)).fetchone()
        return found[0] if found is not None else None

    def claim_in(self, connection: psycopg.Connection[Any]) -> None:
        """Lock the table until the transaction ends, and claim it, for a target that is located."""
        from psycopg import sql

        _lock(connection, f"dobo/{self.name}")
        self._prepare_commits(connection)
        done = connection.execute(
            sql.SQL(
                "INSERT INTO {} AS known (destination, key, number) VALUES ({}) ON CONFLICT (destination, key) "
                "DO UPDATE SET number = EXCLUDED.number WHERE known.number <= EXCLUDED.number"
            ).format(_named(self.schema, FENCES), sql.SQL(", ").join([self.table, self.fence.key, self.fence.number]))
        )
        if done.rowcount != 1:
            raise self.fence.lost()

    def _prepare_commits(self, connection: psycopg.Connection[Any]) -> None:
        """Make our own tables where they are not there yet; two that do so at once would get in each other's way."""
        from psycopg import sql

        if None not in (_describe(connection, self.schema, name) for name in (COMMITS, FENCES)):
            return
        _lock(connection, f"dobo/{COMMITS}")
        connection.execute(
            sql.SQL(
                "CREATE TABLE IF NOT EXISTS {} (destination text, key text, number bigint NOT NULL, "
                "PRIMARY KEY (destination, key))"
            ).format(_named(self.schema, FENCES))
        )
        connection.execute(
            sql.SQL(
                "CREATE TABLE IF NOT EXISTS {} (number bigserial, destination text, run text, seq integer, "
                "run_period text, rows bigint, digest text, at timestamptz DEFAULT now(), "
                "PRIMARY KEY (destination, run, seq))"
            ).format(_named(self.schema, COMMITS))
        )

    def find_leftovers(self) -> list[Leftover]:
        """The staging tables of attempts at this run up to this fencing number."""
        with self._explaining(), self.database.connect() as connection:
            rows = connection.execute(
                "SELECT c.relname, obj_description(c.oid, 'pg_class'), pg_total_relation_size(c.oid) FROM pg_class c "
                "JOIN pg_namespace n ON n.oid = c.relnamespace "
                "WHERE n.nspname = %s AND c.relkind = 'r' AND starts_with(c.relname, %s)",
                [schema := self.located(connection).schema, STAGE],
            ).fetchall()
        return [
            Leftover("staging table", f"{schema}.{name}", self.run, size, partial(self._drop, schema, name))
            for name, owner, size in rows
            if self._is_own_attempt(owner)
        ]

    def _is_own_attempt(self, owner: str | None) -> bool:
        try:
            found = json.loads(owner or "{}")
            own = (found.get("store"), found.get("run")) == (self.fence.store, self.run)
            return own and int(found.get("fence", 0)) <= self.fence.number
        except (ValueError, TypeError, AttributeError):
            return False

    def _drop(self, schema: str | None, name: str) -> None:
        from psycopg import sql

        with self._explaining(), self.database.connect() as connection:
            # A table that somebody uses is not a leftover.
            connection.execute("SET LOCAL lock_timeout = '2s'")
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(_named(schema, name)))

    def drop_stage(self, connection: psycopg.Connection[Any]) -> None:
        """Remove the staging table of a target that is located."""
        from psycopg import sql

        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(_named(self.schema, self._stage)))

    @property
    def _kept(self) -> str:
        """The copy of the table that a registered version reads."""
        return kept_name(self.table, self.run, self.seq)

    def location(self) -> dict[str, Any]:
        """Where the output is, once it is published."""
        return {"kind": "database", "datasource_id": self.datasource_id, "schema": self.schema, "table": self.table}

    def registered(self) -> tuple[Mapping[str, Type], dict[str, Any]]:
        """The columns of all periods, and the copy of the table (C-64, C-86)."""
        united = self.find_columns(self._kept)
        return united, {**self.location(), "table": self._kept, "columns": list(united)}

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except _faults() as fault:
            detail = self.database.explain(fault)
            raise writing_failed(self.name, detail, retry_helps=_is_passing(fault)) from fault

    def _refuse(self, detail: str) -> NoReturn:
        raise writing_failed(self.name, detail)


def _table_target(target: Target) -> TableTarget:
    if not isinstance(target, TableTarget):
        raise AssertionError("what has the same place is of the same kind")
    return target


def kept_name(table: str, run: str, seq: int) -> str:
    """The name of the copy of a table that a registered version reads."""
    tail = f"__{hashlib.sha256(f'{run}/{seq}'.encode()).hexdigest()[:10]}"
    return table.encode()[: MAX_NAME - len(tail)].decode(errors="ignore") + tail


def _named(schema: str | None, table: str) -> Composable:
    from psycopg import sql

    return sql.Identifier(schema, table) if schema else sql.Identifier(table)


def _lock(connection: psycopg.Connection[Any], name: str) -> None:
    """Wait until nobody else has the name, and have it until the transaction ends."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [name])


def _has_schema(connection: psycopg.Connection[Any], schema: str) -> bool:
    return connection.execute("SELECT FROM pg_namespace WHERE nspname = %s", [schema]).fetchone() is not None


def _declare(kind: Type) -> str:
    if isinstance(kind, DecimalType):
        return f"numeric({kind.precision},{kind.scale})"
    return {TEXT: "text", INTEGER: "bigint", BOOLEAN: "boolean", DATE: "date", TIMESTAMP: "timestamp with time zone"}[
        kind
    ]


def _known_type(declared: str) -> Type | None:
    """The type that is declared so; None if no type of ours is."""
    if found := re.fullmatch(r"numeric\((\d+),(\d+)\)", declared):
        return parse_type(f"decimal({found[1]},{found[2]})")
    return next((kind for kind in (TEXT, INTEGER, BOOLEAN, DATE, TIMESTAMP) if _declare(kind) == declared), None)


def _declaration(name: str, kind: Type) -> Composable:
    from psycopg import sql

    return sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(_declare(kind)))
