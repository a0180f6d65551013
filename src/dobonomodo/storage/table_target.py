"""A table as a destination: rows go to a staging table first; one transaction then replaces the rows of the run's period.

The same transaction records what it did, for all tables of the database that a run publishes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from dobonomodo.failpoint import reach
from dobonomodo.formula import Type
from dobonomodo.formula.types import TEXT, SimpleType
from dobonomodo.model.plain import Document
from dobonomodo.plan.registration import United, widen
from dobonomodo.plan.system import RUN_PERIOD
from dobonomodo.problems import RunFailed
from dobonomodo.storage.executors import Executors
from dobonomodo.storage.faults import writing_failed
from dobonomodo.storage.fence import Fence
from dobonomodo.storage.leftover import Leftover
from dobonomodo.storage.postgresql import (
    MAX_NAME,
    Database,
    database_faults,
    declare_column,
    declare_type,
    describe_table,
    find_type,
    has_schema,
    is_passing_fault,
    lock_name,
    name_table,
)
from dobonomodo.storage.schema import arrow_schema
from dobonomodo.storage.target import Commit, Inspected, Noted, Publication, Target

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.parquet import ParquetFile

    from dobonomodo.storage.postgresql import Connection

COMMITS = "dobo_commit"
"""The table, beside the data, that says what was published."""
HISTORY = "history"
"""The column of that table that notes the head of the history."""
FENCES = "dobo_fence"
"""The highest fencing number of each store, project and period that published into a table."""
_PARTS_AT_MOST = 64
STAGE = "dobo_stage_"
"""How the names of staging tables begin."""


@dataclass(frozen=True, slots=True)
class StoredTable:
    """The table that an output wrote to, or the copy of it that a registered version reads."""

    datasource_id: str
    schema: str | None
    table: str
    columns: tuple[str, ...] | None = None

    @property
    def kind(self) -> str:
        """The kind of storage."""
        return "database"

    @property
    def shown(self) -> None:
        """The name of the destination says it."""

    @property
    def place(self) -> tuple[str | None, ...]:
        """The table."""
        return ("table", self.datasource_id, self.schema, self.table)

    @property
    def lasting(self) -> None:
        """Later runs for the period replace the rows."""

    def document(self) -> dict[str, object]:
        """As plain data."""
        own: dict[str, object] = {
            "kind": self.kind,
            "datasource_id": self.datasource_id,
            "schema": self.schema,
            "table": self.table,
        }
        return own if self.columns is None else {**own, "columns": list(self.columns)}

    @classmethod
    def load(cls, document: Document) -> StoredTable:
        """From plain data."""
        columns = document.get("columns")
        named = tuple(columns) if columns is not None else None
        return cls(document["datasource_id"], document.get("schema"), document["table"], named)


@dataclass(frozen=True, slots=True)
class Fit:
    """How the columns of an output go into a table."""

    spelled: Mapping[str, str | None]
    """Their spelling in the table, None where it lacks them."""
    widened: Mapping[str, Type] = field(default_factory=dict)
    """The columns of the table that must hold more than they do."""


@dataclass(frozen=True, slots=True)
class StagePart:
    """Files whose rows are copied into one table."""

    table: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableLoading:
    """How rows are copied into staging tables."""

    database: Database
    schema: str | None
    columns: Mapping[str, Type]

    def load(self, part: StagePart) -> None:
        """Replace the content of a staging table by the rows of its part, in one transaction: an earlier attempt may have copied some."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = arrow_schema(self.columns)
        with self.database.stream() as cursor:
            cursor.execute(f"TRUNCATE {name_table(self.schema, part.table).as_string()}")
            for path in part.files:
                with pq.ParquetFile(path) as file:
                    reader = pa.RecordBatchReader.from_batches(schema, self._batches(file, schema))
                    cursor.adbc_ingest(part.table, reader, mode="append", db_schema_name=self.schema)

    def _batches(self, file: ParquetFile, schema: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        for batch in file.iter_batches():
            yield from pa.Table.from_batches([batch]).select(list(self.columns)).cast(schema).to_batches()
            reach("output.converting")


def _load_in_task(loading: TableLoading, part: StagePart) -> bool:
    """Whether it was done: not where the database or the files cannot be reached."""
    try:
        loading.load(part)
    except database_faults():
        return False
    return True


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
    executors: Executors | None = None
    """Who copies many rows."""

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
        # Each attempt at a run has its own table: an earlier attempt may still be writing, without knowing that it lost its lease.
        text = f"{self.table}\0{self.run}\0{self.seq}\0{self.attempt}"
        return f"{STAGE}{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    @property
    def _written(self) -> dict[str, Type]:
        return {**{name: kind for name, kind in self.columns.items() if name != RUN_PERIOD}, RUN_PERIOD: TEXT}

    def located(self, connection: Connection) -> TableTarget:
        """The same with the schema that the table is in, or will be made in.

        One table may be named with its schema and without; what locks and records refer to has one name.
        """
        row = connection.execute(
            "SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)",
            [name_table(self.schema, self.table).as_string(connection)],
        ).fetchone()
        if row is None and self.schema is None:
            row = connection.execute("SELECT current_schema()").fetchone()
        return replace(self, schema=row[0]) if row is not None and row[0] is not None else self

    def check(self, *, mode: str) -> United:
        """Refuse a table that cannot accept the rows, before anything is computed; returns its columns."""
        del mode
        with self._explaining(), self.database.connect() as connection:
            located = self.located(connection)
            located.check_table(connection)
            return United(located.read_columns(connection, self.table))

    def find_columns(self, table: str) -> dict[str, Type]:
        """The columns of a table beside this one."""
        with self._explaining(), self.database.connect() as connection:
            return self.located(connection).read_columns(connection, table)

    def read_columns(self, connection: Connection, table: str) -> dict[str, Type]:
        """The same over a connection; columns of types that no run writes are left out."""
        stored = describe_table(connection, self.schema, table) or {}
        return {name: known for name, kind in stored.items() if (known := find_type(kind)) is not None}

    def check_table(self, connection: Connection) -> Fit:
        """How the columns that are written go into the table. Raises if it cannot take them."""
        for name in (*self._written, self.table):
            if len(name.encode()) > MAX_NAME:
                self._refuse(f"the name `{name}` is longer than {MAX_NAME} bytes")
        if self.schema is not None and not has_schema(connection, self.schema):
            self._refuse(f"schema `{self.schema}` does not exist")
        stored = describe_table(connection, self.schema, self.table)
        if stored is None:
            return Fit(dict.fromkeys(self._written))
        if RUN_PERIOD not in stored:
            self._refuse("the table has no column `_run_period`: no run created it; choose another table")
        # A column that differs in case only is the same one, here as everywhere.
        folded = {name.casefold(): name for name in stored}
        spelled = {name: name if name in stored else folded.get(name.casefold()) for name in self._written}
        pairs = {
            spelling: (find_type(stored[spelling]) or SimpleType(stored[spelling], stored[spelling]), kind)
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

    def convert(self, files: Sequence[str]) -> bool:
        """Copy rows into a staging table."""
        parts = self._divide(files)
        with self._explaining():
            with self.database.connect() as connection:
                schema = self.located(connection).schema
                self._create_stage(connection, schema, parts)
            loading = TableLoading(self.database, schema, self.columns)
            done: Sequence[bool] | None = None
            if self.executors is not None and len(parts) > 1:
                carried = replace(loading, database=self.database.for_tasks())
                done = self.executors.do(partial(_load_in_task, carried), parts)
            for part, is_done in zip(parts, done or [False] * len(parts), strict=True):
                if not is_done:
                    loading.load(part)
        return True

    def _divide(self, files: Sequence[str]) -> list[StagePart]:
        """The files that are copied into one table; where executors do it, each has tables of its own."""
        size = sum(Path(each).stat().st_size for each in files)
        if self.executors is None or len(files) < 2 or size <= self.executors.limits.table_bytes:
            return [StagePart(self._stage, tuple(files))]
        count = min(len(files), _PARTS_AT_MOST)
        return [StagePart(f"{self._stage}_{number}", tuple(files[number::count])) for number in range(count)]

    def _create_stage(self, connection: Connection, schema: str | None, parts: Sequence[StagePart]) -> None:
        """An empty staging table. Parts of their own are its children: who reads or removes it reads or removes them."""
        from psycopg import sql

        stage = name_table(schema, self._stage)
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {} CASCADE").format(stage))
        fields = sql.SQL(", ").join(declare_column(name, kind) for name, kind in self.columns.items())
        connection.execute(sql.SQL("CREATE UNLOGGED TABLE {} ({})").format(stage, fields))
        # Records the owner, so that leftovers of a killed run can be attributed.
        owner = json.dumps({"store": self.fence.store, "run": self.run, "fence": self.fence.number})
        connection.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(stage, owner))
        for part in parts:
            if part.table != self._stage:
                made = sql.SQL("CREATE UNLOGGED TABLE {} () INHERITS ({})")
                connection.execute(made.format(name_table(schema, part.table), stage))

    def find_commit(self) -> Commit | None:
        """What this output published, if it did."""
        with self._explaining(), self.database.connect() as connection:
            return self.located(connection).read_commit(connection)

    def read_commit(self, connection: Connection) -> Commit | None:
        """The same over a connection, for a target that is located."""
        from psycopg import sql

        if describe_table(connection, self.schema, COMMITS) is None:
            return None
        row = connection.execute(
            sql.SQL("SELECT rows, digest FROM {} WHERE destination = {} AND run = {} AND seq = {}").format(
                name_table(self.schema, COMMITS), self.table, self.run, self.seq
            )
        ).fetchone()
        return Commit(self.run, self.seq, int(row[0]), row[1]) if row else None

    def claim(self) -> None:
        """Fail if a later run has claimed the table; otherwise earlier runs are refused from now on."""
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
            # The response may be lost although the transaction was committed: query the result before reporting a failure.
            lost = isinstance(failed.__cause__, psycopg.OperationalError)
            if not lost or not all(_table_target(each.target).is_published() for each in group):
                raise

    def is_published(self) -> bool:
        """Whether the output is published; False if unknown."""
        try:
            return self.find_commit() is not None
        except RunFailed:
            return False

    def publish_in(self, connection: Connection, publication: Publication) -> None:
        """The output's part of the transaction, for a target that is located."""
        from psycopg import sql

        # Values are put into the text, quoted: psycopg would look for its `%s` in the names of columns too.
        target, stage = name_table(self.schema, self.table), name_table(self.schema, self._stage)
        commit = publication.commit
        self.claim_in(connection)
        if self.read_commit(connection) is not None:
            self.drop_stage(connection)
            return
        fields = sql.SQL(", ").join(declare_column(name, kind) for name, kind in self._written.items())
        connection.execute(sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(target, fields))
        fit = self.check_table(connection)
        for name in [name for name, spelling in fit.spelled.items() if spelling is None]:
            added = declare_column(name, self._written[name])
            connection.execute(sql.SQL("ALTER TABLE {} ADD COLUMN {}").format(target, added))
        for name, kind in fit.widened.items():
            changed = sql.SQL("ALTER TABLE {} ALTER COLUMN {} TYPE {}")
            connection.execute(changed.format(target, sql.Identifier(name), sql.SQL(declare_type(kind))))
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
            sql.SQL("INSERT INTO {} (destination, run, seq, run_period, rows, digest, history) VALUES ({})").format(
                name_table(self.schema, COMMITS),
                sql.SQL(", ").join(
                    [self.table, self.run, self.seq, self.period, commit.rows, commit.digest, _note(publication.head)]
                ),
            )
        )
        if publication.registers:
            kept = name_table(self.schema, self._kept)
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
            self.convert(publication.staged_files())

    def count_staged(self, connection: Connection) -> int | None:
        """How many rows are staged; None if there is no staging table. For a target that is located."""
        from psycopg import sql

        if describe_table(connection, self.schema, self._stage) is None:
            return None
        stage = name_table(self.schema, self._stage)
        found = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(stage)).fetchone()
        return found[0] if found is not None else None

    def claim_in(self, connection: Connection) -> None:
        """Lock the table until the transaction ends, and claim it, for a target that is located."""
        from psycopg import sql

        lock_name(connection, f"dobo/{self.name}")
        self._prepare_commits(connection)
        done = connection.execute(
            sql.SQL(
                "INSERT INTO {} AS known (destination, key, number) VALUES ({}) ON CONFLICT (destination, key) "
                "DO UPDATE SET number = EXCLUDED.number WHERE known.number <= EXCLUDED.number"
            ).format(
                name_table(self.schema, FENCES), sql.SQL(", ").join([self.table, self.fence.key, self.fence.number])
            )
        )
        if done.rowcount != 1:
            raise self.fence.lost()

    def _prepare_commits(self, connection: Connection) -> None:
        """Create our own tables if they do not exist; concurrent creation would conflict."""
        from psycopg import sql

        known = describe_table(connection, self.schema, COMMITS)
        if known is not None and HISTORY in known and describe_table(connection, self.schema, FENCES) is not None:
            return
        lock_name(connection, f"dobo/{COMMITS}")
        connection.execute(
            sql.SQL(
                "CREATE TABLE IF NOT EXISTS {} (destination text, key text, number bigint NOT NULL, "
                "PRIMARY KEY (destination, key))"
            ).format(name_table(self.schema, FENCES))
        )
        connection.execute(
            sql.SQL(
                "CREATE TABLE IF NOT EXISTS {} (number bigserial, destination text, run text, seq integer, "
                "run_period text, rows bigint, digest text, at timestamptz DEFAULT now(), history text, "
                "PRIMARY KEY (destination, run, seq))"
            ).format(name_table(self.schema, COMMITS))
        )
        # One that an earlier version made lacks it.
        connection.execute(
            sql.SQL("ALTER TABLE {} ADD COLUMN IF NOT EXISTS history text").format(name_table(self.schema, COMMITS))
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
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {} CASCADE").format(name_table(schema, name)))

    def drop_stage(self, connection: Connection) -> None:
        """Remove the staging table of a target that is located."""
        from psycopg import sql

        connection.execute(sql.SQL("DROP TABLE IF EXISTS {} CASCADE").format(name_table(self.schema, self._stage)))

    @property
    def _kept(self) -> str:
        """The copy of the table that a registered version reads."""
        return kept_name(self.table, self.run, self.seq)

    def stored(self) -> StoredTable:
        """Where the output is, once it is published."""
        return StoredTable(self.datasource_id, self.schema, self.table)

    def registered(self) -> tuple[Mapping[str, Type], StoredTable]:
        """The columns of all periods, and the copy of the table (C-64, C-86)."""
        united = self.find_columns(self._kept)
        return united, StoredTable(self.datasource_id, self.schema, self._kept, tuple(united))

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except database_faults() as fault:
            detail = self.database.explain(fault)
            raise writing_failed(self.name, detail, retry_helps=is_passing_fault(fault)) from fault

    def _refuse(self, detail: str) -> NoReturn:
        raise writing_failed(self.name, detail)


def _table_target(target: Target) -> TableTarget:
    if not isinstance(target, TableTarget):
        raise AssertionError("what has the same place is of the same kind")
    return target


def _note(head: Noted | None) -> str | None:
    return json.dumps(head._asdict()) if head is not None else None


def inspect_table(connection: Connection, stored: StoredTable, *, run: str, seq: int) -> Inspected:
    """What was noted of the history when an output was published into a table."""
    from psycopg import sql

    known = describe_table(connection, stored.schema, COMMITS)
    if known is None:
        return Inspected(gone=(f"table `{COMMITS}`",))
    column = sql.Identifier(HISTORY) if HISTORY in known else sql.SQL("NULL")
    commits = connection.execute(
        sql.SQL("SELECT run, seq, {} FROM {}").format(column, name_table(stored.schema, COMMITS))
    ).fetchall()
    gone = () if (run, seq) in {row[:2] for row in commits} else (f"the line of `{COMMITS}` for `{stored.table}`",)
    try:
        return Inspected(tuple(Noted.load(json.loads(row[2])) for row in commits if row[2] is not None), gone=gone)
    except (ValueError, KeyError, TypeError):
        return Inspected(changed=(f"what `{COMMITS}` notes of the history cannot be read",), gone=gone)


def kept_name(table: str, run: str, seq: int) -> str:
    """The name of the copy of a table that a registered version reads."""
    tail = f"__{hashlib.sha256(f'{run}/{seq}'.encode()).hexdigest()[:10]}"
    return table.encode()[: MAX_NAME - len(tail)].decode(errors="ignore") + tail


def keep_rows(connection: Connection, stored: StoredTable, *, period: str, name: str) -> str | None:
    """Copy the rows that runs for a period wrote into a table of their own, unless it is there; None if there are none to copy."""
    from psycopg import sql

    if describe_table(connection, stored.schema, name) is not None:
        return name
    if describe_table(connection, stored.schema, stored.table) is None:
        return None
    copy, table = name_table(stored.schema, name), name_table(stored.schema, stored.table)
    query = sql.SQL("CREATE TABLE IF NOT EXISTS {} AS SELECT * FROM {} WHERE {} = {}")
    connection.execute(query.format(copy, table, sql.Identifier(RUN_PERIOD), period))
    return name
