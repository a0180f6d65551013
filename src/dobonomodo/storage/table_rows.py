"""The rows of a table: read into a Parquet file by ADBC, which speaks Arrow and needs no jar."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.failpoint import reach
from dobonomodo.formula import Type
from dobonomodo.formula.types import INTEGER, TEXT, DecimalType, is_number
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.plan.system import PERIOD, RUN_PERIOD, VALIDITY
from dobonomodo.storage.faults import loading_failed, removing_on_failure
from dobonomodo.storage.findings import CheckedBatch, Findings, check_batch
from dobonomodo.storage.postgresql import (
    Database,
    arrow_schema,
    database_faults,
    describe_table,
    is_passing_fault,
    name_table,
)
from dobonomodo.storage.schema import SYSTEM, find_differences
from dobonomodo.storage.storage import Belongs
from dobonomodo.storage.values import show_value

if TYPE_CHECKING:
    import pyarrow
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


def extract_table(
    database: Database,
    target: Path,
    use: DatasetUse,
    *,
    table: str,
    schema: str | None,
    belongs: Belongs,
    run_period: str | None = None,
) -> Findings:
    """Read a table into a Parquet file, in one statement and so at one moment, unless a value of it is wrong.

    With ``run_period``, only what runs for that period wrote.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    use = use.as_stored()
    try:
        with database.connect() as connection:
            stored = describe_table(connection, schema or database.schema, table)
            if stored is None:
                raise loading_failed(use, f"table `{table}` does not exist")
            columns = _columns_to_read(stored, use, table, grown=run_period is not None)
            named = name_table(schema or database.schema, table)
            keys = _keys(connection, stored, use, named)
            statement = _select(stored, columns, use, named, keys, belongs, run_period).as_string(connection)
        shown = tuple(name for name in keys if name in columns)
        types = arrow_schema(columns)
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
    except database_faults() as fault:
        detail = f"table `{table}`: {database.explain(fault)}"
        raise loading_failed(use, detail, retry_helps=is_passing_fault(fault)) from fault


def _place(checked: CheckedBatch, batch: Mapping[str, pyarrow.Array], keys: Sequence[str], *, first: int) -> Findings:
    """What is wrong in a batch, each value with the key of its row, or without one with the number of the row."""

    def name_row(at: int) -> str:
        return ", ".join(f"`{key}` {show_value(batch[key], at)}" for key in keys) or f"row {first + at}"

    return Findings(tuple(replace(cell, row=name_row(at)) for at, cell in checked.first), checked.counts)


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


def _select(
    stored: Mapping[str, str],
    columns: Mapping[str, Type],
    use: DatasetUse,
    table: Composable,
    keys: Sequence[str],
    belongs: Belongs,
    run_period: str | None,
) -> Composed:
    from psycopg import sql

    shown = sql.SQL(", ").join(
        sql.SQL("{} AS {}").format(_read_as(name, stored[name], kind), sql.Identifier(name))
        for name, kind in columns.items()
    )
    folded = {name.casefold(): name for name in stored}
    query = sql.SQL("SELECT {} FROM {}").format(shown, table)
    tests = list(_tests(folded, stored, use, belongs))
    if run_period is not None and RUN_PERIOD in folded:
        tests.insert(0, sql.SQL("{} = {}").format(sql.Identifier(folded[RUN_PERIOD]), sql.Literal(run_period)))
    if tests:
        query = query + sql.SQL(" WHERE ") + sql.SQL(" AND ").join(tests)
    # All columns follow the key: rows that share one have a stable order too, and equal ones need none (C-85).
    order = [_order_by(name, stored) for name in dict.fromkeys((*keys, *columns))]
    if order:
        query = query + sql.SQL(" ORDER BY ") + sql.SQL(", ").join(order)
    return query


def _keys(connection: Connection, stored: Mapping[str, str], use: DatasetUse, table: Composable) -> tuple[str, ...]:
    """The natural or else the primary key, in the spelling of the table."""
    folded = {name.casefold(): name for name in stored}
    keys = use.natural_key or _primary_key(connection, table)
    return tuple(folded[key.casefold()] for key in keys if key.casefold() in folded)


def _tests(
    folded: Mapping[str, str], stored: Mapping[str, str], use: DatasetUse, belongs: Belongs
) -> Iterator[Composable]:
    """What the engine asks of rows in time, asked of the database, so that other rows do not travel."""
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
    """The same order whatever language the database sorts by."""
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
