"""Extracts the rows of a table into Parquet files with ADBC, which returns Arrow and needs no jar."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.failpoint import reach
from dobonomodo.formula import Type
from dobonomodo.formula.types import INTEGER, TEXT, DecimalType, is_number
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.plan.system import PERIOD, RUN_PERIOD, VALIDITY
from dobonomodo.storage.executors import Executors
from dobonomodo.storage.extracted import CheckedRows, TableRead, find_keys, order_of
from dobonomodo.storage.faults import loading_failed, removing_on_failure
from dobonomodo.storage.findings import Findings, check_batch
from dobonomodo.storage.postgresql import (
    Database,
    database_faults,
    describe_table,
    is_passing_fault,
    name_table,
)
from dobonomodo.storage.schema import SYSTEM, arrow_schema, find_differences
from dobonomodo.storage.storage import Belongs

if TYPE_CHECKING:
    from psycopg import IsolationLevel
    from psycopg.sql import Composable, Composed

    from dobonomodo.storage.postgresql import Connection

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
class TableReading:
    """What is read of a table, and how its rows are checked."""

    database: Database
    table: str
    use: DatasetUse
    """With the names that columns have in the table."""
    columns: Mapping[str, Type]
    keys: tuple[str, ...]
    """By which people find a row."""
    statement: str
    ranges: tuple[str, ...] = ()
    """Statements that give the same rows in the same order, one after the other."""
    rows: int = 0
    """How many rows all of them give together."""
    snapshot: str | None = None
    """What was exported by a transaction that is still open: all statements see the same rows."""


def extract_table(
    database: Database,
    targets: Sequence[Path],
    use: DatasetUse,
    *,
    table: str,
    schema: str | None,
    belongs: Belongs,
    run_period: str | None = None,
    executors: Executors | None = None,
) -> tuple[Findings, tuple[str, ...]]:
    """Read a table into Parquet files, in one snapshot, unless a value is invalid; returns the hashes of the files.

    Several files are ranges of the rows, each after the other, in the order that they have in one file. There may be fewer
    files than targets. With ``run_period``, only what runs for that period wrote.
    """
    use = use.as_stored()
    try:
        with database.connect() as connection:
            # Other transactions can see what this one sees, as long as it is open.
            connection.isolation_level = _same_moment()
            reading = _plan_reading(
                database, connection, use, table, schema or database.schema, belongs, run_period, parts=len(targets)
            )
            if not reading.ranges:
                connection.rollback()
                done = [read_rows(reading, targets[0], reading.statement)]
            else:
                done = _read_ranges(reading, targets, executors)
    except database_faults() as fault:
        detail = f"table `{table}`: {database.explain(fault)}"
        raise loading_failed(use, detail, retry_helps=is_passing_fault(fault)) from fault
    findings, before = Findings(), 0
    for each in done:
        findings += each.findings(before)
        before += each.rows
    if findings:
        for target in targets:
            target.unlink(missing_ok=True)
    return findings, tuple(each.sha256 for each in done if each.sha256 is not None)


def estimate_rows(database: Database, *, table: str, schema: str | None) -> int:
    """The number of rows of a table by the database's statistics; 0 if unknown."""
    try:
        with database.connect() as connection:
            named = name_table(schema or database.schema, table).as_string(connection)
            query = "SELECT reltuples::bigint FROM pg_class WHERE oid = to_regclass(%s)"
            found = connection.execute(query, [named]).fetchone()
    except database_faults():
        return 0
    return max(0, found[0]) if found is not None else 0


def _same_moment() -> IsolationLevel:
    from psycopg import IsolationLevel

    return IsolationLevel.REPEATABLE_READ


def _plan_reading(
    database: Database,
    connection: Connection,
    use: DatasetUse,
    table: str,
    schema: str | None,
    belongs: Belongs,
    run_period: str | None,
    *,
    parts: int,
) -> TableReading:
    """What is read; with more than one part, ranges of its rows, of about the same size."""
    stored = describe_table(connection, schema, table)
    if stored is None:
        raise loading_failed(use, f"table `{table}` does not exist")
    columns = _columns_to_read(stored, use, table, grown=run_period is not None)
    named = name_table(schema, table)
    keys = find_keys(stored, use, partial(_primary_key, connection, named))
    query = _Query(stored, columns, use, named, keys, belongs, run_period)
    shown = tuple(name for name in keys if name in columns)
    statement = query.select().as_string(connection)
    reading = TableReading(database, table, use, columns, shown, statement)
    if parts == 1 or not query.order:
        return reading
    # The texts of bounds mean the same in every session, and this session holds no locks while others read.
    connection.execute("SET LOCAL DateStyle = 'ISO'; SET LOCAL TimeZone = 'UTC'")
    connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    found = connection.execute(query.select_bounds(parts)).fetchone()
    rows, texts = found if found is not None else (0, None)
    bounds = list(dict.fromkeys(each for each in texts or () if each is not None))
    ranges = tuple(query.select(each).as_string(connection) for each in query.ranges(bounds))
    snapshot = connection.execute("SELECT pg_export_snapshot()").fetchone()
    return replace(reading, ranges=ranges, rows=rows, snapshot=snapshot[0] if snapshot is not None else None)


def _read_ranges(reading: TableReading, targets: Sequence[Path], executors: Executors | None) -> list[TableRead]:
    """All ranges, by executors where there are some; what they cannot read is read here."""
    items = list(zip(targets, reading.ranges, strict=False))
    done: Sequence[TableRead | None] | None = None
    if executors is not None:
        carried = replace(reading, database=reading.database.for_tasks())
        done = executors.do(partial(_read_in_task, carried), items)
    read = [
        read_rows(reading, *item) if found is None or not (found.counts or item[0].exists()) else found
        for item, found in zip(items, done or [None] * len(items), strict=True)
    ]
    if (total := sum(each.rows for each in read)) != reading.rows:
        raise loading_failed(reading.use, f"table `{reading.table}`: {total} rows were read instead of {reading.rows}")
    return read


def _read_in_task(reading: TableReading, item: tuple[Path, str]) -> TableRead | None:
    """The result of a range; None if the executor cannot reach the database or the folder."""
    target, statement = item
    if not target.parent.exists():
        return None
    # Another attempt at the same task may be at work.
    own = target.with_name(f"{target.name}.{secrets.token_hex(8)}")
    try:
        done = read_rows(reading, own, statement)
        if done.sha256 is not None:
            own.replace(target)
        return done
    except database_faults():
        return None
    finally:
        own.unlink(missing_ok=True)


def read_rows(reading: TableReading, target: Path, statement: str) -> TableRead:
    """The rows of a statement in a Parquet file, unless one is wrong."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = reading.columns
    types = arrow_schema(columns)
    unfinished = target.with_name(target.name + ".part")
    found = CheckedRows(reading.keys)
    with removing_on_failure(unfinished):
        with pq.ParquetWriter(unfinished, types) as writer, reading.database.stream(reading.snapshot) as cursor:
            cursor.execute(statement)
            for batch in cursor.fetch_record_batch():
                plain = [each.storage if isinstance(each, pa.ExtensionArray) else each for each in batch.columns]
                checked = check_batch(plain, columns, use=reading.use, place=reading.table)
                found.add(checked, dict(zip(columns, plain, strict=True)), batch.num_rows)
                if not found.counts:
                    writer.write_batch(pa.RecordBatch.from_arrays(checked.columns, schema=types))
                reach("input.extracting")
        return found.finish(unfinished, target)


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
        raise loading_failed(use, f"table `{table}` does not match the declaration", differences=differences)
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


@dataclass(frozen=True, slots=True)
class _Query:
    """The statements that read a table."""

    stored: Mapping[str, str]
    columns: Mapping[str, Type]
    use: DatasetUse
    table: Composable
    keys: Sequence[str]
    belongs: Belongs
    run_period: str | None

    @property
    def order(self) -> list[Composable]:
        return [_order_by(name, self.stored) for name in order_of(self.keys, self.columns)]

    def select(self, within: Composable | None = None) -> Composed:
        """All rows, or those of a range."""
        from psycopg import sql

        shown = sql.SQL(", ").join(
            sql.SQL("{} AS {}").format(_read_as(name, self.stored[name], kind), sql.Identifier(name))
            for name, kind in self.columns.items()
        )
        query = sql.SQL("SELECT {} FROM {}").format(shown, self.table) + self._where(within)
        return query + sql.SQL(" ORDER BY ") + sql.SQL(", ").join(self.order) if self.order else query

    def _where(self, within: Composable | None = None) -> Composable:
        from psycopg import sql

        folded = {name.casefold(): name for name in self.stored}
        tests = list(_tests(folded, self.stored, self.use, self.belongs))
        if self.run_period is not None and RUN_PERIOD in folded:
            own = sql.Identifier(folded[RUN_PERIOD])
            tests.insert(0, sql.SQL("{} = {}").format(own, sql.Literal(self.run_period)))
        if within is not None:
            tests.append(within)
        return sql.SQL(" WHERE ") + sql.SQL(" AND ").join(tests) if tests else sql.SQL("")

    def select_bounds(self, parts: int) -> Composed:
        """Values of the first column of the order that divide the rows into parts of about the same size, as texts."""
        from psycopg import sql

        shares = sql.SQL(", ").join(sql.Literal(at / parts) for at in range(1, parts))
        query = sql.SQL("SELECT count(*), (percentile_disc(ARRAY[{}]) WITHIN GROUP (ORDER BY {}))::text[] FROM {}")
        return query.format(shares, self.order[0], self.table) + self._where()

    def ranges(self, bounds: Sequence[str]) -> list[Composable]:
        """Conditions for the rows between bounds, in the order of rows; without a value, rows come last."""
        from psycopg import sql

        column, limits = self.order[0], [sql.Literal(each) for each in bounds]
        starts = [sql.SQL("{} >= {}").format(column, each) for each in limits]
        ends = [sql.SQL("{} < {}").format(column, each) for each in limits]
        if not limits:
            return []
        last = sql.SQL("({} OR {} IS NULL)").format(starts[-1], column)
        between = [sql.SQL("{} AND {}").format(start, end) for start, end in zip(starts, ends[1:], strict=False)]
        return [ends[0], *between, last]


def _tests(
    folded: Mapping[str, str], stored: Mapping[str, str], use: DatasetUse, belongs: Belongs
) -> Iterator[Composable]:
    """The temporal conditions of the engine as SQL for the database, so that other rows are not transferred (predicate pushdown)."""
    from psycopg import sql

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
    """An order that does not depend on the collation of the database."""
    from psycopg import sql

    texts = stored[name] == "text" or stored[name].startswith("character")
    return sql.SQL('{} COLLATE "C"').format(sql.Identifier(name)) if texts else sql.Identifier(name)


def _primary_key(connection: Connection, table: Composable) -> tuple[str, ...]:
    rows = connection.execute(
        "SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) "
        "WHERE i.indrelid = to_regclass(%s) AND i.indisprimary ORDER BY a.attnum",
        [table.as_string(connection)],
    ).fetchall()
    return tuple(row[0] for row in rows)
