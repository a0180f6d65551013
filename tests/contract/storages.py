"""The kinds of storage behind one handle, and what other processes do to them."""

from __future__ import annotations

import csv
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString, cast
from uuid import uuid4

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter
from deltalake import DeltaTable, write_deltalake
from psycopg import sql
from pyarrow import dataset
from pyiceberg.catalog import Catalog, load_catalog

from dobonomodo.formula import Type
from dobonomodo.formula.types import TIMESTAMP, DecimalType
from dobonomodo.model import DataSource
from dobonomodo.plan import DatasetUse
from dobonomodo.plan.dataset import Location
from dobonomodo.plan.destination import Destination
from dobonomodo.plan.relation import Rel, Write
from dobonomodo.problems import RunFailed
from dobonomodo.storage import Inputs, Outputs, Pin, StagedRows, Storages, WrittenOutput
from dobonomodo.storage.executors import Executors
from dobonomodo.storage.fence import Fence
from dobonomodo.storage.file_storage import file_pin
from dobonomodo.storage.manifest import HIDDEN
from tests.contract.read_only import create_table, execute_in_file, insert_rows, quote
from tests.object_server import KEY, SECRET
from tests.world import JANUARY, PERIOD, use_of

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.sharedctypes import Synchronized
    from multiprocessing.synchronize import Event

    from pyspark.sql import DataFrame, SparkSession

    from dobonomodo.storage.target import Target
    from tests.object_server import ObjectServer

Row = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]

SEQ = 10
PASSWORD_FILE = "password"

_TYPES = {"string": pa.string(), "integer": pa.int64(), "boolean": pa.bool_(), "date": pa.date32()}
_DECLARED = {"string": "text", "integer": "bigint"}


def arrow_table(columns: Mapping[str, Type], rows: Rows) -> pa.Table:
    """Rows as Arrow, so that no value passes through the text of a statement."""
    arrays = [pa.array([row.get(name) for row in rows], _arrow_type(kind)) for name, kind in columns.items()]
    return pa.Table.from_arrays(arrays, names=list(columns))


def _arrow_type(kind: Type) -> pa.DataType:
    if isinstance(kind, DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    return pa.timestamp("us", "UTC") if kind == TIMESTAMP else _TYPES[kind.name]


def write_to(destination: Destination, columns: Mapping[str, Type], **more: Any) -> Write:
    """An output; storages look at where rows go, not at how they are made."""
    values: dict[str, Any] = {"mode": "replace", "register_as": None, "include_deleted": False, **more}
    return Write(rows=cast(Rel, None), columns=tuple(columns), destination=destination, **values)


@dataclass(frozen=True)
class Storage:
    """A datasource of one kind in a workspace of its own."""

    root: Path
    source: DataSource
    url: str | None = None
    """Of the database, with its password."""
    server: ObjectServer | None = None
    """Of the object store, where the files are in one."""
    session: Callable[[], SparkSession] | None = None
    """For what Spark alone can read."""

    @property
    def kind(self) -> str:
        return self.source.type

    @property
    def lists_files(self) -> bool:
        """Whether the record of an output lists its files; those of servers and catalogs are their own affair."""
        return self.kind not in ("database", "table")

    @property
    def is_reserving(self) -> bool:
        """Whether Spark reserves some names of system columns in its tables."""
        return self.kind == "table" and self.source.options["format"] == "iceberg"

    @property
    def port(self) -> Storages:
        """The storages of its workspace."""
        return Storages(self.root, {self.source.id: self.source}, session=self.session)

    @property
    def is_remote(self) -> bool:
        """Whether its files are in an object store."""
        return self.server is not None

    @property
    def folder(self) -> Path:
        """Where its files are."""
        assert not self.is_remote, "files in an object store have no folder"
        if self.kind == "table":
            return self.root / "catalog"
        if self.kind == "iceberg":
            return self.root / str(self.source.options["warehouse"]) / "default"
        return self.root / str(self.source.options["path_prefix"])

    def with_options(self, **options: Any) -> Storage:
        return replace(self, source=open_source(self.kind, **{**self.source.options, **options}))

    # --- through the doors of the product

    def outputs(
        self, *, run: str = "run-1", period: str = PERIOD, fence: int = 1, executors: Executors | None = None
    ) -> Outputs:
        return Outputs(
            Storages(self.root, {self.source.id: self.source}, session=self.session),
            folder=self.root / ".dobo" / "runs" / run,
            period=period,
            run=run,
            fence=Fence("store", "project", period, fence),
            started=time.time(),
            executors=executors,
        )

    def inputs(self, name: str = "reading", *, executors: Executors | None = None) -> Inputs:
        folder = self.root / ".dobo" / "runs" / name
        datasources = {self.source.id: self.source}
        return Inputs(
            root=self.root,
            datasources=datasources,
            folder=folder,
            facts=JANUARY,
            as_of=None,
            executors=executors,
            session=self.session,
        )

    def write(self, columns: Mapping[str, Type], *, table: str = "out", **more: Any) -> Write:
        return write_to(Destination(self.kind, table, self.source.id), columns, **more)

    def target(self, columns: Mapping[str, Type], *, table: str = "out", run: str = "run-1", seq: int = SEQ) -> Target:
        return self.outputs(run=run).target(WrittenOutput(seq, self.write(columns, table=table), columns))

    def put(
        self,
        rows: Rows,
        columns: Mapping[str, Type],
        *,
        run: str = "run-1",
        period: str = PERIOD,
        seq: int = SEQ,
        spark: SparkSession | None = None,
        **more: Any,
    ) -> Mapping[str, Any]:
        """Write rows as an output does; without Spark, its files are made here."""
        outputs, write = self.outputs(run=run, period=period), self.write(columns, **more)
        table = arrow_table(columns, rows)
        output = WrittenOutput(seq, write, columns)
        staged = (
            self.stage_by_hand(outputs, table, output)
            if spark is None
            else outputs.stage(spark.createDataFrame(table), output)
        )
        return publish(outputs, output, staged, rows=len(rows), digest=f"{run}/{seq}")

    def stage_by_hand(self, outputs: Outputs, table: pa.Table, output: WrittenOutput) -> StagedRows:
        """What ``stage`` leaves, made without Spark: rows in two Parquet files."""
        folder = Path(outputs.target(output).start() or self.root / ".dobo" / f"staged-{uuid4()}")
        folder.mkdir(parents=True, exist_ok=True)
        half = -(-table.num_rows // 2)
        for number, part in enumerate((table.slice(0, half), table.slice(half))):
            pq.write_table(part, folder / f"part-{number:05}-{uuid4()}.parquet")
        return outputs.staged_in(folder)

    def location(self, name: str = "out", *, period: str | None = None) -> Location:
        if self.kind in ("database", "iceberg", "sql", "table"):
            return Location(self.source.id, "table", table=name, period=period)
        return Location(self.source.id, "path", path=name, period=period)

    def use(self, columns: Mapping[str, Type], *names: str, required: Sequence[str] = (), **more: Any) -> DatasetUse:
        locations = tuple(self.location(name) for name in names or ("out",))
        return use_of(columns, required=required, **{"locations": locations, **more})

    def extract(self, use: DatasetUse, *, inputs: Inputs | None = None) -> tuple[Pin, ...]:
        """Find and check the rows, which needs no Spark."""
        inputs = inputs or self.inputs(f"reading-{uuid4()}")
        return inputs.extract([use], inputs.pin([use]))[use.key]

    def frames(self, spark: SparkSession, use: DatasetUse) -> list[DataFrame]:
        """The rows of every location, with their positions."""
        inputs = self.inputs(f"reading-{uuid4()}")
        found = inputs.read(spark, use, self.extract(use, inputs=inputs))
        return [stored.positioned() if stored.positioned is not None else stored.frame for stored in found]

    def get(self, spark: SparkSession, columns: Mapping[str, Type], *names: str, **more: Any) -> list[Row]:
        """The rows as Spark reads them, in the order of the first column."""
        use, inputs = self.use(columns, *names, **more), self.inputs(f"reading-{uuid4()}")
        found = [rows_of(each.frame, columns) for each in inputs.read(spark, use, self.extract(use, inputs=inputs))]
        return in_order(row for rows in found for row in rows)

    def see(self, columns: Mapping[str, Type], name: str = "out") -> list[Row]:
        """The rows as another tool finds them at the destination, in the order of the first column."""
        if self.kind == "database":
            return in_order(self._select(columns, name))
        if self.kind in TABLES:
            return in_order(TABLES[self.kind].read(self, columns, name))
        read = find_world(self.kind).read
        if self.server is not None:
            with self.server.copied(self.address, name) as copies:
                return in_order(row for path in copies for row in read(path, columns))
        inputs = self.inputs()
        (pin,) = inputs.pin([use := self.use(columns, name)])[use.key]
        files = [Path(file.path) for file in file_pin(pin).files]
        return in_order(row for path in files for row in read(path, columns))

    # --- behind its back

    def plant(self, columns: Mapping[str, Type], rows: Rows, name: str = "out", **declared: LiteralString) -> Path:
        """Rows that somebody else stored; ``declared`` are types of a database for some columns."""
        if self.kind == "database":
            self._create(columns, rows, name, declared)
            return Path(name)
        if self.kind in READERS:
            create_table(self.root, self.source.options, name, columns, declared)
            insert_rows(self.root, self.source.options, name, arrow_table(columns, rows))
            return Path(name)
        if self.kind in TABLES:
            return TABLES[self.kind].write(self, columns, rows, name)
        file = f"{name}/rows.{self.kind}"
        if self.server is not None:
            with tempfile.TemporaryDirectory() as folder:
                find_world(self.kind).write(Path(folder) / "file", columns, rows)
                return self.plant_text((Path(folder) / "file").read_bytes(), file)
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        find_world(self.kind).write(path, columns, rows)
        return path

    def plant_text(self, text: str | bytes, name: str = "rows.csv") -> Path:
        content = text.encode() if isinstance(text, str) else text
        if self.server is not None:
            self.server.put(f"{self.address}/{name}", content)
            return Path(name)
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def remove(self, name: str) -> None:
        """A folder of files, with all that is in it."""
        if self.kind == "table":
            self.spark.sql(f"DROP TABLE {catalog_name(self, name)} PURGE")
        elif self.kind in READERS:
            execute_in_file(self.root, self.source.options, f"DROP TABLE {quote(name)}")
        elif self.server is not None:
            self.server.remove(f"{self.address}/{'default/' if self.kind == 'iceberg' else ''}{name}")
        else:
            shutil.rmtree(self.folder / name)

    @property
    def spark(self) -> SparkSession:
        """The session that knows its catalog."""
        assert self.session is not None
        return self.session()

    @property
    def address(self) -> str:
        """That of the datasource, in an object store."""
        return str(self.source.options["warehouse" if self.kind == "iceberg" else "path_prefix"])

    @contextmanager
    def connect(self) -> Iterator[psycopg.Connection[Any]]:
        assert self.url is not None
        with psycopg.connect(self.url) as connection:
            yield connection

    @property
    def schema(self) -> str:
        """Where its tables are."""
        return str(self.source.options.get("schema", "public"))

    def named(self, table: str) -> sql.Identifier:
        return sql.Identifier(self.schema, table)

    def execute(self, statement: LiteralString, *names: str) -> None:
        """A statement in which each ``{}`` is a table and ``{schema}`` is their schema."""
        filled = sql.SQL(statement).format(*map(self.named, names), schema=sql.Identifier(self.schema))
        with self.connect() as connection:
            connection.execute(filled)

    def _create(
        self, columns: Mapping[str, Type], rows: Rows, name: str, declared: Mapping[str, LiteralString]
    ) -> None:
        fields = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(each), sql.SQL(declared.get(each, declare(kind))))
            for each, kind in columns.items()
        )
        with self.connect() as connection:
            connection.execute(sql.SQL("CREATE TABLE {} ({})").format(self.named(name), fields))
            for row in rows:
                values = sql.SQL(", ").join(row.get(each) for each in columns)
                connection.execute(sql.SQL("INSERT INTO {} VALUES ({})").format(self.named(name), values))

    def _select(self, columns: Mapping[str, Type], name: str) -> Iterator[Row]:
        listed = sql.SQL(", ").join(map(sql.Identifier, columns))
        with self.connect() as connection:
            found = connection.execute(sql.SQL("SELECT {} FROM {}").format(listed, self.named(name))).fetchall()
        yield from (dict(zip(columns, values, strict=True)) for values in found)


def declare(kind: Type) -> LiteralString:
    if isinstance(kind, DecimalType):
        return f"numeric({kind.precision},{kind.scale})"
    return _DECLARED.get(kind.name, "timestamptz" if kind == TIMESTAMP else kind.name)


def open_source(kind: str, *, credential_ref: str | None = None, **options: Any) -> DataSource:
    credential = credential_ref or (f"file://{PASSWORD_FILE}" if kind == "database" else None)
    return DataSource.model_validate({"id": "src", "type": kind, "options": options, "credential_ref": credential})


def rows_of(frame: DataFrame, columns: Mapping[str, Type]) -> list[Row]:
    """The declared columns of a frame as Python values."""
    table = frame.toArrow().select(list(columns))
    assert [str(field.type) for field in table.schema] == [
        str(field.type) for field in arrow_table(columns, []).schema
    ], "types are those that are declared"
    found: list[Row] = table.to_pylist()
    return found


def in_order(rows: Any) -> list[Row]:
    def key(row: Row) -> tuple[bool, Any]:
        first = next(iter(row.values()))
        return (first is not None, first)

    return sorted(rows, key=key)


def publish(
    outputs: Outputs, output: WrittenOutput, staged: StagedRows, *, rows: int, digest: str
) -> Mapping[str, Any]:
    """Publish one output, as a run does; gives where it is."""
    outputs.publish([(output, outputs.convert(output, staged, rows=rows), rows, digest)])
    return outputs.stored(output).document()


def failure(call: Callable[[], object]) -> RunFailed:
    """The fault that a call ends with."""
    try:
        call()
    except RunFailed as failed:
        return failed
    raise AssertionError("nothing failed")


# --- in other processes


@dataclass(frozen=True)
class Watch:
    """What a reader saw that looked again and again."""

    looks: int
    seen: Counter[tuple[tuple[str, int], ...]]
    """How often it found which values how many times."""
    missed: int
    """How often files were gone between finding and opening them."""


def watch(
    storage: Storage, way: str, columns: Mapping[str, Type], over: Event, count: Synchronized[int], answer: Connection
) -> None:
    """Read a destination without a pause until told that it is over; ``count`` is how often it has looked."""
    look = {"product": _look_by_pins, "folder": _look_at_folder, "table": _look_at_table}[way]
    seen: Counter[tuple[tuple[str, int], ...]] = Counter()
    looks = missed = 0
    while True:
        last = over.is_set()
        try:
            values = look(storage, columns)
            seen[tuple(sorted(Counter(values).items()))] += 1
        except FileNotFoundError:
            missed += 1
        looks += 1
        count.value = looks
        if last:
            break
    answer.send(Watch(looks, seen, missed))


def _look_by_pins(storage: Storage, columns: Mapping[str, Type]) -> list[str]:
    return [row["value"] for row in storage.see(columns)]


def _look_at_folder(storage: Storage, columns: Mapping[str, Type]) -> list[str]:
    table = dataset.dataset(storage.folder / "out", format="parquet", partitioning="hive").to_table()
    # Arrow leaves out what is gone when it comes back to what it has listed.
    if not set(columns) <= set(table.column_names):
        raise FileNotFoundError
    found: list[str] = table["value"].to_pylist()
    return found


def _look_at_table(storage: Storage, columns: Mapping[str, Type]) -> list[str]:
    return [row["value"] for row in storage.see(columns)]


def check_forbidden_destination(storage: Storage, columns: Mapping[str, Type]) -> Fault:
    with pytest.raises(PermissionError):
        (storage.folder / "probe").touch()
    return fault_of(lambda: storage.outputs().check(WrittenOutput(SEQ, storage.write(columns), columns)))


def publish_into_forbidden(storage: Storage, columns: Mapping[str, Type], old: Rows, new: Rows) -> list[Any]:
    """The fault, what is there then, and what is there after another try with permission."""
    storage.put(old, columns, run="run-1")
    folder = storage.folder / HIDDEN
    folder.chmod(0o555)
    with pytest.raises(PermissionError):
        (folder / "probe").touch()
    fault = fault_of(lambda: storage.put(new, columns, run="run-2"))
    kept = storage.see(columns)
    folder.chmod(0o755)
    storage.put(new, columns, run="run-2")
    return [fault, kept, storage.see(columns)]


def read_forbidden(storage: Storage, columns: Mapping[str, Type], cases: Sequence[tuple[str, Path]]) -> list[Fault]:
    """The fault of each location, of which something is blocked."""
    faults = []
    for name, blocked in cases:
        with pytest.raises(PermissionError):
            os.listdir(blocked) if blocked.is_dir() else blocked.read_bytes()
        use = storage.use(columns, name)
        faults.append(fault_of(lambda use=use: storage.extract(use)))  # type: ignore[misc]
    return faults


@dataclass(frozen=True)
class Fault:
    """A failure that can travel between processes."""

    code: str
    retry_helps: bool
    detail: str


def fault_of(call: Callable[[], object]) -> Fault:
    failed = failure(call)
    return Fault(failed.problem.code, failed.retry_helps, getattr(failed.problem, "detail", ""))


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _write_parquet(path: Path, columns: Mapping[str, Type], rows: Rows) -> None:
    pq.write_table(arrow_table(columns, rows), path)


def _write_csv(path: Path, columns: Mapping[str, Type], rows: Rows) -> None:
    lines = [list(columns), *([_shown(row.get(column)) for column in columns] for row in rows)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(lines)


def _write_excel(path: Path, columns: Mapping[str, Type], rows: Rows) -> None:
    """Exact numbers are texts here: cells hold 15 digits."""
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, list(columns))
        for number, row in enumerate(rows, start=1):
            for at, column in enumerate(columns):
                if row.get(column) is not None:
                    sheet.write_string(number, at, _shown(row[column]))


def _read_parquet(path: Path, columns: Mapping[str, Type]) -> list[Row]:
    found: list[Row] = pq.ParquetFile(path).read(columns=list(columns)).to_pylist()
    return found


def _read_csv(path: Path, columns: Mapping[str, Type]) -> list[Row]:
    """As text; what is not text is compared as it is written."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {name: int(row[name]) if name == "id" else row[name] for name in columns} for row in csv.DictReader(file)
        ]


# --- worlds


@dataclass(frozen=True)
class FileWorld:
    """How the files of a kind get there and are seen without the product."""

    write: Callable[[Path, Mapping[str, Type], Rows], None]
    read: Callable[[Path, Mapping[str, Type]], list[Row]]


FILE_WORLDS = {
    "parquet": FileWorld(_write_parquet, _read_parquet),
    "csv": FileWorld(_write_csv, _read_csv),
    # What runs write is kept as Parquet; the workbooks that people open are made of it.
    "excel": FileWorld(_write_excel, _read_parquet),
}


def _write_delta(storage: Storage, columns: Mapping[str, Type], rows: Rows, name: str) -> Path:
    write_deltalake(delta_uri(storage, name), arrow_table(columns, rows), storage_options=LOOPBACK)
    return Path(name) if storage.is_remote else storage.folder / name


def _read_delta(storage: Storage, columns: Mapping[str, Type], name: str) -> list[Row]:
    found: list[Row] = open_delta(storage, name).to_pyarrow_table(columns=list(columns)).to_pylist()
    return found


LOOPBACK = {"AWS_ALLOW_HTTP": "true"}
"""The server of the tests has no certificate."""


def delta_uri(storage: Storage, name: str = "out") -> str:
    """Where a table is, as other tools name it."""
    return f"{storage.address}/{name}" if storage.is_remote else str(storage.folder / name)


def open_delta(storage: Storage, name: str = "out") -> DeltaTable:
    """A table as another tool opens it."""
    return DeltaTable(delta_uri(storage, name), storage_options=LOOPBACK)


@dataclass(frozen=True)
class TableWorld:
    """How the tables of a kind get there and are seen without the product."""

    write: Callable[[Storage, Mapping[str, Type], Rows, str], Path]
    read: Callable[[Storage, Mapping[str, Type], str], list[Row]]


def open_catalog(storage: Storage) -> Catalog:
    """The catalog as another tool opens it."""
    uri = f"sqlite:///{storage.root / 'catalog.db'}"
    if storage.url is not None:
        uri = storage.url.replace("://", "+psycopg://", 1)
    own = str(storage.source.options.get("uri", ""))
    kind, uri = ("rest", own) if own.startswith("http") else ("sql", uri)
    if storage.server is None:
        return load_catalog("default", type=kind, uri=uri, warehouse=str(storage.root / "warehouse"))
    access = {"s3.endpoint": storage.server.endpoint, "s3.region": "us-east-1"}
    keys = {"s3.access-key-id": KEY, "s3.secret-access-key": SECRET}
    return load_catalog("default", type=kind, uri=uri, warehouse=storage.address, **access, **keys)


def _write_iceberg(storage: Storage, columns: Mapping[str, Type], rows: Rows, name: str) -> Path:
    if not storage.is_remote:
        (storage.root / "warehouse").mkdir(exist_ok=True)
    catalog, table = open_catalog(storage), arrow_table(columns, rows)
    catalog.create_namespace_if_not_exists("default")
    catalog.create_table(("default", name), table.schema).append(table)
    return Path(name)


def _read_iceberg(storage: Storage, columns: Mapping[str, Type], name: str) -> list[Row]:
    with closing(open_catalog(storage)) as catalog:
        scan = catalog.load_table(("default", name)).scan(selected_fields=tuple(columns))
        found: list[Row] = scan.to_arrow().select(list(columns)).to_pylist()
    return found


def catalog_name(storage: Storage, name: str = "out") -> str:
    """What Spark calls a table of a catalog."""
    options = storage.source.options
    return ".".join(f"`{part}`" for part in (options["catalog"], options["schema"], name))


def _write_catalog(storage: Storage, columns: Mapping[str, Type], rows: Rows, name: str) -> Path:
    frame = storage.spark.createDataFrame(arrow_table(columns, rows))
    frame.writeTo(catalog_name(storage, name)).using(str(storage.source.options["format"])).create()
    return Path(name)


def _read_catalog(storage: Storage, columns: Mapping[str, Type], name: str) -> list[Row]:
    return rows_of(storage.spark.table(catalog_name(storage, name)), columns)


TABLES = {
    "table": TableWorld(_write_catalog, _read_catalog),
    "delta": TableWorld(_write_delta, _read_delta),
    "iceberg": TableWorld(_write_iceberg, _read_iceberg),
}
READERS = frozenset({"sql"})
"""Kinds that are only read; a handle plants their rows itself."""
SERVERS = frozenset({"database"})
"""Kinds that need a server; a handle plants and sees their rows itself."""


def find_world(kind: str) -> FileWorld:
    """The world of a kind of files."""
    require_world(kind)
    return FILE_WORLDS[kind]


def require_world(kind: str) -> None:
    """Fail where nobody has said how the rows of a kind get there and are seen without the product."""
    if kind not in (FILE_WORLDS.keys() | TABLES.keys() | SERVERS | READERS):
        pytest.fail(
            f"storage `{kind}` is in STORAGES and has no test world: add it to FILE_WORLDS or TABLES in {__file__}, "
            "with a function that writes and one that reads without the product"
        )
