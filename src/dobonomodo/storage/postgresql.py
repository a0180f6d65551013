"""PostgreSQL: connections, names and types. It knows nothing of runs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit, urlunsplit

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType, parse_type
from dobonomodo.storage.faults import is_passing

if TYPE_CHECKING:
    import adbc_driver_manager.dbapi
    import psycopg
    from psycopg.sql import Composable

    Connection = psycopg.Connection[tuple[Any, ...]]

MAX_NAME = 63
"""Maximum bytes of a name; PostgreSQL silently truncates longer ones."""


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

    def connect(self) -> Connection:
        """A connection for statements; a transaction is open until commit."""
        import psycopg

        # libpq looks elsewhere for a password that is None.
        return psycopg.connect(
            self._address, connect_timeout=10, application_name="dobo", password=self.password or None
        )

    def for_tasks(self) -> Database:
        """The same on machines that do not have our environment."""
        return replace(self, password=self.password or os.environ.get("PGPASSWORD"))

    @contextmanager
    def stream(self, snapshot: str | None = None) -> Iterator[adbc_driver_manager.dbapi.Cursor]:
        """A cursor for rows as Arrow, in one transaction that is committed at the end.

        With ``snapshot``, it sees what the transaction sees that has exported it.
        """
        import adbc_driver_postgresql.dbapi as adbc

        parts = urlsplit(self._address)
        if self.password is not None:
            user, _, host = parts.netloc.rpartition("@")
            name = user.partition(":")[0]
            parts = parts._replace(netloc=f"{name}:{quote(self.password, safe='')}@{host}")
        with adbc.connect(urlunsplit(parts)) as connection, connection.cursor() as cursor:
            if snapshot is not None:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                cursor.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
            yield cursor
            connection.commit()

    def explain(self, fault: BaseException) -> str:
        """The error message of the database, in one line and without the secret."""
        line = next((line for line in str(fault).splitlines() if line.strip()), type(fault).__name__)
        for secret in {self.password or "", quote(self.password or "", safe="")} - {""}:
            line = line.replace(secret, "***")
        return line


def database_faults() -> tuple[type[Exception], ...]:
    """What the drivers raise."""
    import adbc_driver_manager
    import psycopg
    import pyarrow as pa

    return (psycopg.Error, adbc_driver_manager.Error, pa.ArrowException, OSError)


def is_passing_fault(fault: BaseException) -> bool:
    """Whether the server could not be reached, was stopped, or has no room; trying again may help."""
    import adbc_driver_manager
    import psycopg

    return isinstance(fault, psycopg.OperationalError | adbc_driver_manager.OperationalError) or is_passing(fault)


def describe_table(connection: Connection, schema: str | None, table: str) -> dict[str, str] | None:
    """The columns of a table with their types as PostgreSQL names them; None if there is no such table."""
    if len(table.encode()) > MAX_NAME:
        return None
    found = connection.execute(
        "SELECT to_regclass(%s)::oid", [name_table(schema, table).as_string(connection)]
    ).fetchone()
    if found is None or found[0] is None:
        return None
    rows = connection.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        [found[0]],
    ).fetchall()
    return dict(rows)


def name_table(schema: str | None, table: str) -> Composable:
    """The name of a table, quoted."""
    from psycopg import sql

    return sql.Identifier(schema, table) if schema else sql.Identifier(table)


def lock_name(connection: Connection, name: str) -> None:
    """Acquire an advisory lock on a name until the transaction ends."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [name])


def has_schema(connection: Connection, schema: str) -> bool:
    """Whether there is a schema."""
    return connection.execute("SELECT FROM pg_namespace WHERE nspname = %s", [schema]).fetchone() is not None


def declare_type(kind: Type) -> str:
    """A type as PostgreSQL names it."""
    if isinstance(kind, DecimalType):
        return f"numeric({kind.precision},{kind.scale})"
    return {TEXT: "text", INTEGER: "bigint", BOOLEAN: "boolean", DATE: "date", TIMESTAMP: "timestamp with time zone"}[
        kind
    ]


def find_type(declared: str) -> Type | None:
    """The type that is declared so; None if no type of ours is."""
    if found := re.fullmatch(r"numeric\((\d+),(\d+)\)", declared):
        return parse_type(f"decimal({found[1]},{found[2]})")
    return next((kind for kind in (TEXT, INTEGER, BOOLEAN, DATE, TIMESTAMP) if declare_type(kind) == declared), None)


def declare_column(name: str, kind: Type) -> Composable:
    """A column with its type, for a statement that makes it."""
    from psycopg import sql

    return sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(declare_type(kind)))
