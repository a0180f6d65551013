"""Two ways to read any database: by an SQLAlchemy URL, or by an ADBC driver.

Both describe the columns of a table, and give the rows of one statement in batches. Statements are portable SQL. No order is
asked for, since the order of texts and of NULL depends on the database.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, INTEGER, TIMESTAMP, DecimalType
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.plan.system import PERIOD, VALIDITY
from dobonomodo.storage.faults import is_passing
from dobonomodo.storage.schema import spark_type, stored_type
from dobonomodo.storage.sql_values import Converted, convert_column
from dobonomodo.storage.storage import Belongs

if TYPE_CHECKING:
    import adbc_driver_manager.dbapi
    import pyarrow
    from sqlalchemy import URL, ColumnElement, Connection, Dialect, Engine, Numeric, TableClause
    from sqlalchemy.types import TypeEngine

BATCH = 20_000
SQLITE, DUCKDB = "sqlite", "duckdb"
_ADBC = "adbc_driver_"
FILE_DRIVERS = frozenset({f"{_ADBC}{SQLITE}", f"{_ADBC}{DUCKDB}"})
"""Those that open the file of a database."""
_INT64_DIGITS = 18
"""Whole numbers of so many digits fit in 64 bits."""
_INEXACT = ("REAL", "FLOA", "DOUB")
"""What the name of a type contains for which SQLite stores binary numbers."""
_IN_UTC = {
    "mysql": "SET time_zone = '+00:00'",
    "mariadb": "SET time_zone = '+00:00'",
    "oracle": "ALTER SESSION SET TIME_ZONE = '+00:00'",
}
"""For databases that give times in the zone of the session, without saying so."""
_USER = re.compile(r"((?:[A-Za-z][A-Za-z0-9+.-]*://)?[^/?#@:]+)@")


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a table."""

    types: Mapping[str, str]
    """The types as Spark calls them, in the order of the table; the declared type where only values can tell."""
    primary_key: tuple[str, ...] = ()
    """Empty if there is none, or if it is unknown."""
    days: frozenset[str] = frozenset()
    """The columns that the database itself compares as days."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read of a table."""

    schema: str | None
    table: str
    columns: Mapping[str, Type]
    periods: tuple[str, tuple[str, ...]] | None = None
    """A column, and the values that it may have."""
    valid: tuple[str, str, date] | None = None
    """Two columns with the first day and the day behind the last one, which may be NULL, and a day that is between them."""


class OpenDatabase(Protocol):
    """A database to which there is a connection."""

    def describe(self, schema: str | None, table: str, use: DatasetUse) -> TableColumns | None:
        """The columns of a table; None if there is no such table."""
        ...

    def read(self, reading: Reading) -> Iterator[list[Converted]]:
        """The rows of one statement, in no particular order."""
        ...

    def version(self) -> str:
        """What answers."""
        ...


class SqlDatabase(Protocol):
    """A database that can be reached, with the secret that opens it."""

    def open(self) -> AbstractContextManager[OpenDatabase]:
        """Connect to it, to read."""
        ...

    def explain(self, fault: BaseException) -> str:
        """The error message of the database, in one line and without the secret."""
        ...


def plan_reading(
    stored: TableColumns,
    use: DatasetUse,
    belongs: Belongs,
    *,
    schema: str | None,
    table: str,
    columns: Mapping[str, Type],
) -> Reading:
    """What is read, with the temporal conditions of the engine that mean the same in every database (predicate pushdown).

    The engine tests them again. A database that ignores case may return too many rows, never too few.
    """
    folded = {name.casefold(): name for name in stored.types}
    periods = valid = None
    if use.temporal_mode == "period" and PERIOD in folded:
        periods = (folded[PERIOD], belongs.periods)
    if use.temporal_mode == "bitemporal":
        pairs = [(folded[start], folded[end]) for start, end in VALIDITY if start in folded and end in folded]
        if pairs and stored.days.issuperset(pairs[0]):
            valid = (*pairs[0], belongs.as_of)
    return Reading(schema, table, columns, periods, valid)


def database_faults() -> tuple[type[Exception], ...]:
    """What the drivers raise."""
    import pyarrow as pa
    from sqlalchemy.exc import SQLAlchemyError

    return (SQLAlchemyError, *_adbc_faults("Error"), pa.ArrowException, OSError)


def is_passing_fault(fault: BaseException) -> bool:
    """Whether the server could not be reached, was stopped, or has no room; trying again may help."""
    from sqlalchemy.exc import OperationalError

    return isinstance(fault, (OperationalError, *_adbc_faults("OperationalError"))) or is_passing(fault)


def _adbc_faults(name: str) -> tuple[type[Exception], ...]:
    with suppress(ImportError):
        return (getattr(import_module("adbc_driver_manager"), name),)
    return ()


def _first_line(fault: BaseException, password: str | None) -> str:
    fault = getattr(fault, "orig", None) or fault
    match fault.args:
        case (int(), str(text)):
            pass
        case _:
            text = str(fault)
    line = next((line for line in text.splitlines() if line.strip()), type(fault).__name__)
    for secret in {password or "", quote(password or "", safe="")} - {""}:
        line = line.replace(secret, "***")
    return line


def _find_file(root: Path, name: str) -> Path:
    """The file of a database, which must exist: to open a missing one would create it."""
    path = root / name
    if not path.is_file():
        raise NoFileError(f"there is no file `{path}`")
    return path


class NoFileError(OSError):
    """The file of a database is missing, which is another fault than a missing table."""


# --- by an SQLAlchemy URL


@dataclass(frozen=True, slots=True)
class UrlDatabase:
    """A database that is reached by an SQLAlchemy URL."""

    url: str
    root: Path
    password: str | None = field(default=None, repr=False)

    @contextmanager
    def open(self) -> Iterator[OpenDatabase]:
        """Connect, and leave no connection behind."""
        from sqlalchemy import NullPool, create_engine

        url, arguments = self._address()
        engine = create_engine(url, poolclass=NullPool, connect_args=arguments)
        try:
            with _connect(engine) as connection:
                if connection.dialect.name in _IN_UTC:
                    connection.exec_driver_sql(_IN_UTC[connection.dialect.name])
                yield _OpenUrl(connection)
        finally:
            engine.dispose()

    def _address(self) -> tuple[URL, dict[str, object]]:
        """The URL with the secret, and what the driver is told. Files are opened to be read only."""
        from sqlalchemy import make_url

        url = make_url(self.url)
        if self.password is not None:
            url = url.set(password=self.password)
        backend = url.get_backend_name()
        if backend not in (SQLITE, DUCKDB) or not url.database or url.database.startswith((":", "file:")):
            return url, {}
        path = _find_file(self.root, url.database)
        if backend == DUCKDB:
            return url.set(database=str(path)), {"read_only": True}
        return url.set(database=f"file:{quote(str(path))}").update_query_dict({"mode": "ro", "uri": "true"}), {}

    def explain(self, fault: BaseException) -> str:
        """The error message of the database, in one line and without the secret."""
        return _first_line(fault, self.password)


def _connect(engine: Engine) -> Connection:
    try:
        return engine.connect()
    except RuntimeError as fault:
        # PyMySQL says so that a package is missing which the server's way to sign in needs.
        raise OSError(str(fault)) from fault


@dataclass(frozen=True, slots=True)
class _OpenUrl:
    connection: Connection

    @property
    def _is_typed(self) -> bool:
        return self.connection.dialect.name != SQLITE

    def version(self) -> str:
        from sqlalchemy import inspect

        # A file is looked into when something is asked, not when it is opened.
        inspect(self.connection).has_table("dobo")
        dialect = self.connection.dialect
        # Other dialects give the version of a database that they resemble.
        is_own = type(dialect).__module__.startswith("sqlalchemy.")
        numbers = dialect.server_version_info if is_own else None
        return " ".join([dialect.name, ".".join(map(str, numbers or ()))]).strip()

    def describe(self, schema: str | None, table: str, use: DatasetUse) -> TableColumns | None:
        from sqlalchemy import Date, false, inspect, select, text
        from sqlalchemy.exc import SAWarning, SQLAlchemyError

        inspector = inspect(self.connection)
        with warnings.catch_warnings():
            # A type that SQLAlchemy does not know is refused by us, with its name.
            warnings.simplefilter("ignore", SAWarning)
            if not inspector.has_table(table, schema):
                return None
            try:
                found = {each["name"]: each["type"] for each in inspector.get_columns(table, schema)}
                key = inspector.get_pk_constraint(table, schema)["constrained_columns"]
            except (SQLAlchemyError, NotImplementedError):
                # Dialects of others cannot always say it: then the names come with rows, and each value tells its type.
                self.connection.rollback()
                rows = self.connection.execute(select(text("*")).select_from(_name(schema, table)).where(false()))
                names = list(rows.keys())
                return TableColumns({name: stored_type(name, use).sql.lower() for name in names})
        types = {name: name_type(kind, stored_type(name, use), self.connection.dialect) for name, kind in found.items()}
        days = frozenset(name for name in types if self._is_typed and isinstance(found[name], Date))
        return TableColumns(types, tuple(key), days)

    def read(self, reading: Reading) -> Iterator[list[Converted]]:
        from sqlalchemy import column, select

        shown: list[ColumnElement[object]] = [column(name) for name in reading.columns]
        statement = select(*shown).select_from(_name(reading.schema, reading.table)).where(*self._conditions(reading))
        streaming = self.connection.execution_options(stream_results=True, max_row_buffer=BATCH)
        for rows in streaming.execute(statement).partitions(BATCH):
            yield [
                convert_column(values, kind, name=name, is_typed=self._is_typed)
                for (name, kind), values in zip(reading.columns.items(), zip(*rows, strict=True), strict=True)
            ]

    def _conditions(self, reading: Reading) -> Iterator[ColumnElement[bool]]:
        from sqlalchemy import Date, String, Text, cast, column, or_

        if reading.periods is not None:
            name, values = reading.periods
            # Without types, the number 2026 would not be the text `2026`.
            yield (column(name, String) if self._is_typed else cast(column(name), Text)).in_(values)
        if reading.valid is not None:
            start, end, day = reading.valid
            yield column(start, Date) <= day
            yield or_(column(end, Date).is_(None), column(end, Date) > day)


def _name(schema: str | None, table: str) -> TableClause:
    from sqlalchemy import table as make_table

    return make_table(table, schema=schema) if schema else make_table(table)


def name_type(kind: TypeEngine[object], wanted: Type, dialect: Dialect) -> str:
    """The type of a column as Spark calls it, or as the database does if it is none that can be read."""
    from sqlalchemy import types

    if dialect.name == SQLITE:
        return str(kind).lower() if isinstance(kind, types.Float) else wanted.sql.lower()
    match kind:
        case types.Boolean():
            return "boolean"
        case types.Float():
            return _show_type(kind, dialect)
        case types.Numeric():
            return _name_number(kind, wanted)
        case types.Integer() if wanted == BOOLEAN:
            return "boolean"
        case types.BigInteger():
            return "bigint"
        case types.Integer():
            return "int"
        case types.String() | types.Uuid():
            return "string"
        case types.DateTime() if kind.__visit_name__ == "DATE" and wanted != TIMESTAMP:
            return "date"
        case types.DateTime():
            return "timestamp" if kind.timezone else "timestamp_ntz"
        case types.Date():
            return "date"
        case _:
            return _show_type(kind, dialect)


def _name_number(kind: Numeric[Decimal], wanted: Type) -> str:
    if kind.precision is None:
        # Without limits in the table, each value is checked as it is read.
        return wanted.sql.lower() if isinstance(wanted, DecimalType) else "numeric"
    scale = kind.scale or 0
    # Oracle has no other type for whole numbers.
    if wanted == INTEGER and kind.__visit_name__ == "NUMBER" and scale == 0 and kind.precision <= _INT64_DIGITS:
        return "bigint"
    return f"decimal({kind.precision},{scale})"


def _show_type(kind: TypeEngine[object], dialect: Dialect) -> str:
    from sqlalchemy.exc import SQLAlchemyError

    try:
        return kind.compile(dialect).lower()
    except SQLAlchemyError:
        return "of an unknown type"


# --- by an ADBC driver


@dataclass(frozen=True, slots=True)
class AdbcDatabase:
    """A database that is reached by an ADBC driver."""

    driver: str
    """The name of its Python module."""
    url: str
    root: Path
    password: str | None = field(default=None, repr=False)

    @contextmanager
    def open(self) -> Iterator[OpenDatabase]:
        """Connect, and leave no connection behind."""
        with self._connect() as connection:
            is_sqlite = _find_info(connection).get("vendor_name") == "SQLite"
            yield _OpenAdbcSqlite(connection) if is_sqlite else _OpenAdbc(connection)

    def _connect(self) -> adbc_driver_manager.dbapi.Connection:
        """A connection by the driver. Files are opened to be read only."""
        place, options = self.url, {}
        if self.driver == f"{_ADBC}{DUCKDB}":
            manager, module = import_module(f"{_ADBC}manager.dbapi"), import_module(self.driver)
            options = {"path": str(_find_file(self.root, place)), "access_mode": "READ_ONLY"}
            connect, place = partial(manager.connect, entrypoint="duckdb_adbc_init"), module.driver_path()
        else:
            connect = import_module(f"{self.driver}.dbapi").connect
        if self.driver == f"{_ADBC}{SQLITE}":
            place = f"file:{quote(str(_find_file(self.root, place)))}?mode=ro"
        elif self.password is not None and (user := _USER.match(place)):
            place = f"{user[1]}:{quote(self.password, safe='')}{place[user.end() - 1 :]}"
        elif self.password is not None:
            options = {**options, "password": self.password}
        more = {"db_kwargs": options} if options else {}
        connection: adbc_driver_manager.dbapi.Connection = connect(place, **more)
        return connection

    def explain(self, fault: BaseException) -> str:
        """The error message of the database, in one line and without the secret."""
        return _first_line(fault, self.password)


@dataclass(frozen=True, slots=True)
class _OpenAdbc:
    """A database whose driver gives the types of its columns."""

    connection: adbc_driver_manager.dbapi.Connection

    def version(self) -> str:
        known = _find_info(self.connection)
        return " ".join(known[key] for key in ("vendor_name", "vendor_version") if known.get(key)) or "the database"

    def describe(self, schema: str | None, table: str, use: DatasetUse) -> TableColumns | None:
        try:
            with _stream(self.connection, f"SELECT * FROM {_quote_table(schema, table)} WHERE 1 = 0") as reader:
                fields = list(reader.schema)
        except _adbc_faults("Error"):
            if self._has(table):
                raise
            return None
        types = {each.name: _name_arrow(each.type, stored_type(each.name, use)) for each in fields}
        return TableColumns(types, days=frozenset(name for name, kind in types.items() if kind == "date"))

    def _has(self, table: str) -> bool:
        """Whether a table is in the catalog: why a statement failed is said by each driver in its own words."""
        self.connection.rollback()
        with self.connection.adbc_get_objects(depth="tables") as reader:
            found = reader.read_all().to_pylist()
        schemas = (schema for catalog in found for schema in catalog["catalog_db_schemas"] or ())
        return any(each["table_name"] == table for schema in schemas for each in schema["db_schema_tables"] or ())

    def read(self, reading: Reading) -> Iterator[list[Converted]]:
        # All columns: where the name of a column in quotes would be a text, so would that of the table, which is an error.
        statement = f"SELECT * FROM {_quote_table(reading.schema, reading.table)}{_where(reading)}"
        with _stream(self.connection, statement) as reader:
            for batch in reader:
                yield [_take(batch.column(name), kind, name=name) for name, kind in reading.columns.items()]


def _find_info(connection: adbc_driver_manager.dbapi.Connection) -> dict[str, str]:
    """What a driver tells of itself and of the database; some tell nothing."""
    with suppress(*_adbc_faults("Error")):
        return {str(key): str(value) for key, value in connection.adbc_get_info().items()}
    return {}


def _name_arrow(kind: pyarrow.DataType, wanted: Type) -> str:
    import pyarrow as pa

    if wanted == BOOLEAN and pa.types.is_integer(kind):
        return "boolean"
    if isinstance(kind, pa.OpaqueType) and kind.type_name == "numeric" and isinstance(wanted, DecimalType):
        # Numbers that Arrow cannot hold are texts; each is checked as it is read.
        return wanted.sql.lower()
    return spark_type(kind)


def _take(column: pyarrow.Array, kind: Type, *, name: str) -> Converted:
    """A column in a type that can be checked."""
    import pyarrow as pa

    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.decimal128(column.type.precision, column.type.scale))
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    if kind == BOOLEAN and pa.types.is_integer(column.type):
        return convert_column(column.to_pylist(), kind, name=name, is_typed=True)
    return Converted(column)


@dataclass(frozen=True, slots=True)
class _OpenAdbcSqlite:
    """SQLite by its ADBC driver, which guesses the type of a column by its first rows and writes other values in that type.

    So values travel as texts that say what they are.
    """

    connection: adbc_driver_manager.dbapi.Connection

    def version(self) -> str:
        with _stream(self.connection, "SELECT count(*) FROM sqlite_master") as reader:
            reader.read_all()
        return _OpenAdbc(self.connection).version()

    def describe(self, schema: str | None, table: str, use: DatasetUse) -> TableColumns | None:
        named = ", ".join(_quote_text(each) for each in (table, schema) if each)
        with _stream(
            self.connection, f"SELECT name, type, pk FROM pragma_table_xinfo({named}) WHERE hidden <> 1"
        ) as reader:
            found = reader.read_all().to_pylist()
        if not found:
            return None
        types = {
            each["name"]: each["type"].lower()
            if _is_inexact(each["type"])
            else stored_type(each["name"], use).sql.lower()
            for each in found
        }
        keys = sorted((each["pk"], each["name"]) for each in found if each["pk"])
        return TableColumns(types, tuple(name for _, name in keys))

    def read(self, reading: Reading) -> Iterator[list[Converted]]:
        shown = ", ".join(f"{_TAGGED.format(_quote_name(name))} AS {_quote_name(name)}" for name in reading.columns)
        where = _where(reading, period="CAST({} AS TEXT)")
        statement = f"SELECT {shown} FROM {_quote_table(reading.schema, reading.table)}{where}"
        with _stream(self.connection, statement) as reader:
            for batch in reader:
                yield [
                    convert_column(list(map(_untag, texts.to_pylist())), kind, name=name, is_typed=False)
                    for (name, kind), texts in zip(reading.columns.items(), batch.columns, strict=True)
                ]


_TAGGED = (
    "CASE typeof({0}) WHEN 'integer' THEN 'i' || {0} WHEN 'real' THEN 'r' || printf('%!.17g', {0}) "
    "WHEN 'text' THEN 't' || {0} WHEN 'blob' THEN 'b' END"
)


_BY_TAG: Mapping[str, Callable[[str], object]] = {"i": int, "r": float, "t": str, "b": str.encode}


def _untag(text: str | None) -> object:
    if text is None:
        return None
    return _BY_TAG[text[0]](text[1:])


def _is_inexact(declared: str) -> bool:
    return any(part in declared.upper() for part in _INEXACT)


@contextmanager
def _stream(connection: adbc_driver_manager.dbapi.Connection, statement: str) -> Iterator[pyarrow.RecordBatchReader]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        with cursor.fetch_record_batch() as reader:
            yield reader


def _where(reading: Reading, *, period: str = "{}") -> str:
    tests = []
    if reading.periods is not None and not any("\\" in each for each in reading.periods[1]):
        values = ", ".join(map(_quote_text, reading.periods[1]))
        tests.append(f"{period.format(_quote_name(reading.periods[0]))} IN ({values})")
    if reading.valid is not None:
        start, end, day = map(str, reading.valid)
        start, end = _quote_name(start), _quote_name(end)
        tests.append(f"{start} <= DATE '{day}' AND ({end} IS NULL OR {end} > DATE '{day}')")
    return f" WHERE {' AND '.join(tests)}" if tests else ""


def _quote_table(schema: str | None, table: str) -> str:
    return ".".join(_quote_name(each) for each in (schema, table) if each)


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quote_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
