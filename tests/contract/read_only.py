"""Databases that are only read: how tables get there without the product."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import adbc_driver_duckdb.dbapi
import pyarrow as pa

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType

FILE = "some base.db"
READ_ONLY = {
    "sql": {"url": f"sqlite:///{FILE}"},
    "sql by ADBC": {"url": FILE, "driver": "adbc_driver_sqlite"},
    "sql of DuckDB": {"url": FILE, "driver": "adbc_driver_duckdb"},
}
"""The options of each."""
_DUCKDB = {TEXT: "VARCHAR", INTEGER: "BIGINT", BOOLEAN: "BOOLEAN", DATE: "DATE", TIMESTAMP: "TIMESTAMPTZ"}
_SQLITE = {TEXT: "TEXT", INTEGER: "INTEGER", BOOLEAN: "BOOLEAN", DATE: "DATE", TIMESTAMP: "TIMESTAMP"}


def is_duckdb(options: Mapping[str, Any]) -> bool:
    """Whether the columns of the database have types."""
    return "duckdb" in str(options.get("driver"))


def execute_in_file(root: Path, options: Mapping[str, Any], *statements: str) -> None:
    """Change the database of some options."""
    if is_duckdb(options):
        with adbc_driver_duckdb.dbapi.connect(str(root / FILE)) as base, base.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            base.commit()
        return
    with closing(sqlite3.connect(root / FILE)) as file, file:
        for statement in statements:
            file.execute(statement)


def create_table(
    root: Path, options: Mapping[str, Any], name: str, columns: Mapping[str, Type], declared: Mapping[str, str]
) -> None:
    """A table without rows."""
    types = {each: declared.get(each, _declare(kind, options)) for each, kind in columns.items()}
    fields = ", ".join(f"{quote(each)} {kind}" for each, kind in types.items())
    execute_in_file(root, options, f"CREATE TABLE {quote(name)} ({fields})")


def insert_rows(root: Path, options: Mapping[str, Any], name: str, rows: pa.Table) -> None:
    """Rows of a table."""
    if is_duckdb(options):
        with adbc_driver_duckdb.dbapi.connect(str(root / FILE)) as base, base.cursor() as cursor:
            cursor.adbc_ingest(name, rows, mode="append")
            base.commit()
        return
    values: Sequence[Sequence[Any]] = [[_store(value) for value in row.values()] for row in rows.to_pylist()]
    with closing(sqlite3.connect(root / FILE)) as file, file:
        file.executemany(f"INSERT INTO {quote(name)} VALUES ({', '.join('?' * rows.num_columns)})", values)


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _declare(kind: Type, options: Mapping[str, Any]) -> str:
    if isinstance(kind, DecimalType):
        # What SQLite stores for a decimal has 15 digits; a text has them all.
        return f"DECIMAL({kind.precision},{kind.scale})" if is_duckdb(options) else "TEXT"
    return (_DUCKDB if is_duckdb(options) else _SQLITE)[kind]


def _store(value: Any) -> Any:
    match value:
        case Decimal():
            return f"{value:f}"
        case datetime() | date():
            return value.isoformat()
        case _:
            return value
