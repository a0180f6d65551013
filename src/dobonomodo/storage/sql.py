"""Databases to read from: any that SQLAlchemy or an ADBC driver can reach. Small tables; nothing is written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NoReturn

from pydantic import Field

from dobonomodo.failpoint import reach
from dobonomodo.formula import Type
from dobonomodo.model.datasource import StorageOptions
from dobonomodo.model.document import Places
from dobonomodo.model.plain import Document
from dobonomodo.model.secret import find_secrets
from dobonomodo.model.template import check_table_name
from dobonomodo.model.value import Filled
from dobonomodo.plan.dataset import DatasetUse, Location
from dobonomodo.plan.destination import DestinationKind
from dobonomodo.problems import Problem, Rejected, RunFailed
from dobonomodo.problems.definition import InvalidValue
from dobonomodo.problems.package import DriverMissing, PackageMissing
from dobonomodo.storage.extracted import (
    CheckedRows,
    ExtractedStorage,
    TablePin,
    TableRead,
    find_keys,
    name_location,
    order_of,
)
from dobonomodo.storage.faults import loading_failed, removing_on_failure
from dobonomodo.storage.findings import Findings
from dobonomodo.storage.schema import SYSTEM, arrow_schema, find_differences, stored_type
from dobonomodo.storage.secret import find_secret
from dobonomodo.storage.sql_reading import (
    FILE_DRIVERS,
    AdbcDatabase,
    OpenDatabase,
    Reading,
    SqlDatabase,
    TableColumns,
    UrlDatabase,
    database_faults,
    is_passing_fault,
    plan_reading,
)
from dobonomodo.storage.sql_values import check_columns
from dobonomodo.storage.storage import Answer, Belongs, Pin, Row, Scratch, Stored
from dobonomodo.storage.target import Inspected, OutputPlace, Target

if TYPE_CHECKING:
    import pyarrow

_ROW_GROUP = 100_000
_DRIVER = re.compile(r"adbc_driver_[a-z0-9_]+")
_MANAGER = "adbc_driver_manager"
_DIALECTS = {
    "bigquery": "sqlalchemy-bigquery",
    "clickhouse": "clickhouse-sqlalchemy",
    "databricks": "databricks-sqlalchemy",
    "duckdb": "duckdb-engine",
    "hana": "sqlalchemy-hana",
    "redshift": "sqlalchemy-redshift",
    "snowflake": "snowflake-sqlalchemy",
    "trino": "trino[sqlalchemy]",
}
"""By dialect that SQLAlchemy does not bring itself, the package that does."""
_OWN_DIALECTS = ("mysql", "mariadb", "mssql", "oracle", "postgresql", "sqlite")
_PACKAGES = {
    "adbc_driver_duckdb": "duckdb",
    "MySQLdb": "mysqlclient",
    "mysql": "mysql-connector-python",
    "pymysql": "PyMySQL",
    "psycopg": "psycopg[binary]",
    "psycopg2": "psycopg2-binary",
}
"""By module, the package that brings it, if that has another name."""
_EXAMPLES = "write `mysql+pymysql://user@host/database`, `sqlite:///ledger.db` or another URL of SQLAlchemy"


class SqlOptions(StorageOptions):
    """A database to read from."""

    url: Filled = Field(
        description="The URL without a password, as SQLAlchemy has it: `mysql+pymysql://user@host/db`, `sqlite:///ledger.db`. With "
        "`driver`, the URI of that driver. The path of a file starts at the workspace."
    )
    driver: Filled | None = Field(
        default=None,
        description="The Python module of an ADBC driver, such as `adbc_driver_duckdb`, instead of SQLAlchemy.",
    )
    schema_name: Filled | None = Field(default=None, alias="schema", description="The schema of the tables.")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """A URL that can be read. One with a secret in it is reported as that."""
        driver = places.text("driver")
        if driver is not None and driver.strip() and not _DRIVER.fullmatch(driver):
            yield InvalidValue(
                key="driver",
                expected="the Python module of an ADBC driver",
                found=f"`{driver}`",
                advice="write its name, such as `adbc_driver_duckdb`; without `driver`, `url` is a URL of SQLAlchemy",
                span=places.span("driver"),
            )
        url = places.text("url") or ""
        is_right = _is_url(url) if driver is None else driver not in FILE_DRIVERS or "://" not in url
        if url.strip() and not is_right and not any(find_secrets(places, "options")):
            yield InvalidValue(
                key="url",
                expected="a URL of SQLAlchemy, or `driver` beside it" if driver is None else "the path of a file",
                found="this text",
                advice=_EXAMPLES
                if driver is None
                else f"`{driver}` opens files; without `driver`, `url` is a URL of SQLAlchemy",
                span=places.span("url"),
            )
        if places.text("schema") is not None:
            yield from check_table_name(places.passage("schema"), "schema")

    @classmethod
    def find_missing(cls, places: Places) -> Iterable[Problem]:
        """A dialect that nobody knows, or a driver that is not installed here."""
        url, driver = places.text("url") or "", places.text("driver")
        try:
            missing = find_missing(url, driver)
        except UnknownDialectError as unknown:
            yield replace(unknown.problem, span=places.span("url"))
            return
        if missing is not None:
            key = "url" if driver is None else "driver"
            yield DriverMissing(modules=missing.modules, packages=missing.packages, span=places.span(key))


class UnknownDialectError(Exception):
    """SQLAlchemy has no dialect of a name, and no package is known that brings it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        known = (*_OWN_DIALECTS, *_DIALECTS)
        self.problem = InvalidValue(
            key="url", expected="a dialect that SQLAlchemy knows", found=f"`{name}`", known=known, text=name
        )


def _is_url(url: str) -> bool:
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        make_url(url)
    except (ArgumentError, ValueError):
        return False
    return True


def find_missing(url: str, driver: str | None) -> PackageMissing | None:
    """What must be installed to reach a database; None if everything is."""
    if driver is not None:
        modules = tuple(name for name in (driver, _MANAGER) if find_spec(name) is None)
        return _missing(*modules) if modules else None
    from sqlalchemy import make_url
    from sqlalchemy.exc import NoSuchModuleError

    parsed = make_url(url)
    try:
        parsed.get_dialect().import_dbapi()
    except NoSuchModuleError as fault:
        dialect = parsed.get_backend_name()
        if dialect not in _DIALECTS:
            raise UnknownDialectError(parsed.drivername) from fault
        return PackageMissing(modules=(dialect,), packages=(_DIALECTS[dialect],))
    except ImportError as fault:
        return _missing(fault.name or parsed.get_driver_name())
    except NotImplementedError:
        # An old dialect, which says it when it connects.
        return None
    return None


def _missing(*modules: str) -> PackageMissing:
    packages = tuple(_PACKAGES.get(name, name.replace("_", "-")) for name in modules)
    return PackageMissing(modules=modules, packages=packages)


@dataclass(frozen=True, slots=True)
class SqlStorage(ExtractedStorage):
    """The tables of a database that is only read."""

    kind: ClassVar[str] = "sql"
    options: ClassVar[type[StorageOptions]] = SqlOptions
    destinations: ClassVar[DestinationKind] = DestinationKind(
        are_paths=False, inline=False, has_schemas=True, can_write=False
    )
    modules: ClassVar[Sequence[str]] = ("pyarrow",)
    together: ClassVar[str] = "nothing is written"

    @classmethod
    def load_stored(cls, document: Document) -> Stored:
        """Nothing is written here."""
        del document
        _refuse_writing()

    @property
    def _options(self) -> SqlOptions:
        return SqlOptions.model_validate(self.source.options)

    @property
    def schema(self) -> str | None:
        """The schema of tables that name none."""
        return self._options.schema_name

    def connect(self) -> SqlDatabase:
        """How to reach the database, with its secret; raises if its driver is not installed."""
        own = self._options
        try:
            missing = find_missing(own.url, own.driver)
        except UnknownDialectError as unknown:
            raise Rejected([unknown.problem]) from unknown
        if missing is not None:
            raise RunFailed(missing)
        password = find_secret(self.source.credential_ref, root=self.root, owner=f"datasource `{self.source.id}`")
        if own.driver is not None:
            return AdbcDatabase(own.driver, own.url, self.root, password)
        return UrlDatabase(own.url, self.root, password)

    # --- checking

    def call(self) -> Answer | None:
        """What answers, or why nothing does."""
        database = self.connect()
        try:
            with database.open() as opened:
                return Answer(f"{opened.version()} answers")
        except database_faults() as fault:
            return Answer(database.explain(fault), works=False)

    # --- reading

    def find_existing(self, use: DatasetUse, locations: Sequence[Location]) -> list[Location]:
        """The tables that there are."""
        database = self.connect()
        try:
            with database.open() as opened:
                return [
                    each
                    for each in locations
                    if opened.describe(each.schema or self.schema, name_location(each), use) is not None
                ]
        except database_faults() as fault:
            raise loading_failed(use, database.explain(fault), retry_helps=is_passing_fault(fault)) from fault

    def extract_rows(
        self, use: DatasetUse, pin: TablePin, files: Sequence[Path], scratch: Scratch, *, belongs: Belongs
    ) -> tuple[Findings, tuple[str, ...]]:
        """Read a table by one statement, and sort its rows."""
        del scratch
        (target,) = files
        stored, database = use.as_stored(), self.connect()
        try:
            with database.open() as opened:
                done = _extract(opened, stored, pin, target, belongs)
        except database_faults() as fault:
            detail = f"table `{pin.table}`: {database.explain(fault)}"
            raise loading_failed(use, detail, retry_helps=is_passing_fault(fault)) from fault
        return done.findings(0), (done.sha256,) if done.sha256 is not None else ()

    def pin_registered(self, use: DatasetUse, stored: Stored) -> tuple[Pin, ...]:
        """Nothing is written here."""
        del use, stored
        _refuse_writing()

    def pin_output(self, stored: Stored, *, name: str, period: str) -> Pin:
        """Nothing is written here."""
        del stored, name, period
        _refuse_writing()

    def sample(self, stored: Stored, columns: Mapping[str, Type], rows: int) -> list[Row]:
        """Nothing is written here."""
        del stored, columns, rows
        _refuse_writing()

    # --- writing

    def target(self, output: OutputPlace) -> Target:
        """Nothing is written here."""
        del output
        _refuse_writing()

    def inspect(self, stored: Stored, *, run: str, seq: int) -> Inspected:
        """Nothing is written here."""
        del stored, run, seq
        _refuse_writing()

    def keep(self, stored: Stored, *, period: str, run: str, seq: int) -> Stored | None:
        """Nothing is written here."""
        del stored, period, run, seq
        _refuse_writing()


def _refuse_writing() -> NoReturn:
    raise AssertionError("a plan does not write to a database that is only read")


def _extract(opened: OpenDatabase, use: DatasetUse, pin: TablePin, target: Path, belongs: Belongs) -> TableRead:
    """The rows of a table in a Parquet file, unless one is wrong."""
    stored = opened.describe(pin.schema, pin.table, use)
    if stored is None:
        raise loading_failed(use, f"table `{pin.table}` does not exist")
    columns = _columns_to_read(stored, use, pin.table)
    keys = tuple(name for name in find_keys(stored.types, use, lambda: stored.primary_key) if name in columns)
    reading = plan_reading(stored, use, belongs, schema=pin.schema, table=pin.table, columns=columns)
    found = CheckedRows(keys)
    batches = list(_check(opened, reading, use, found))
    unfinished = target.with_name(target.name + ".part")
    with removing_on_failure(unfinished):
        _write_sorted(batches, columns, list(order_of(keys, columns)), unfinished)
        return found.finish(unfinished, target)


def _columns_to_read(stored: TableColumns, use: DatasetUse, table: str) -> dict[str, Type]:
    differences = find_differences(stored.types.items(), use)
    if differences:
        raise loading_failed(use, f"table `{table}` does not match the declaration", differences=differences)
    declared = {name.casefold() for name in use.columns} | SYSTEM.keys()
    columns = {name: stored_type(name, use) for name in stored.types if name.casefold() in declared}
    if not columns:
        raise loading_failed(use, f"table `{table}` has none of the declared columns")
    return columns


def _check(
    opened: OpenDatabase, reading: Reading, use: DatasetUse, found: CheckedRows
) -> Iterator[pyarrow.RecordBatch]:
    """The rows in their declared types, up to the first that is wrong."""
    import pyarrow as pa

    schema = arrow_schema(reading.columns)
    for batch in opened.read(reading):
        checked = check_columns(batch, reading.columns, use=use, place=reading.table)
        by_name = {name: each.values for name, each in zip(reading.columns, batch, strict=True)}
        found.add(checked, by_name, len(batch[0].values))
        if not found.counts:
            yield pa.RecordBatch.from_arrays(checked.columns, schema=schema)
        reach("input.extracting")


def _write_sorted(
    batches: Sequence[pyarrow.RecordBatch], columns: Mapping[str, Type], order: Sequence[str], target: Path
) -> None:
    """Write rows in an order that no database decides: texts by their bytes, NULL last."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    schema = arrow_schema(columns)
    table = pa.Table.from_batches(batches, schema).combine_chunks()
    # Names such as `.a` would be paths to Arrow.
    numbered = table.rename_columns([str(number) for number in range(len(columns))])
    keys = [(str(list(columns).index(name)), "ascending") for name in order]
    positions = pc.sort_indices(numbered, sort_keys=keys)
    with pq.ParquetWriter(target, schema) as writer:
        for start in range(0, table.num_rows, _ROW_GROUP):
            writer.write_table(table.take(positions.slice(start, _ROW_GROUP)))
