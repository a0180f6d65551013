"""Reading and writing a table of PostgreSQL: ours, strict and all at once, against the least that Arrow and psycopg can do."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.data import WORK, make_data
from benchmarks.measure import measure, peak_megabytes
from dobonomodo.formula import Columns
from dobonomodo.formula.types import DATE, INTEGER, TEXT, DecimalType
from dobonomodo.plan import DatasetUse
from dobonomodo.storage.fence import Fence
from dobonomodo.storage.postgresql import Database
from dobonomodo.storage.storage import Belongs
from dobonomodo.storage.table_rows import extract_table
from dobonomodo.storage.table_target import TableTarget
from dobonomodo.storage.target import Commit, Publication

COLUMNS = {
    "o_orderkey": INTEGER,
    "o_custkey": INTEGER,
    "o_orderstatus": TEXT,
    "o_totalprice": DecimalType(15, 2),
    "o_orderdate": DATE,
    "o_comment": TEXT,
}
USE = DatasetUse("input", "orders", 1, "orders", None, Columns(COLUMNS), nullable=frozenset(COLUMNS))
_numbers = count(1)


def database(scale: float, *, alone: bool) -> dict[str, Any]:
    """Times of all, or, of ours alone, the peak memory of the process that moves the rows."""
    import pyarrow.parquet as pq

    path = make_data(scale) / "orders.parquet"
    rows = pq.read_metadata(path).num_rows
    with _database() as base, _folder() as folder:
        writing: dict[str, Callable[[], object]] = {"dobo": partial(_write, base, path, rows)}
        reading: dict[str, Callable[[], object]] = {"dobo": partial(_read, base, folder)}
        if alone:
            _write(base, path, rows)
            _read(base, folder)
            return {"rows": rows, "megabytes": round(peak_megabytes())}
        writing |= {
            "ADBC, straight into a table": partial(_ingest, base, path),
            "psycopg COPY": partial(_copy, base, path),
        }
        reading |= {"ADBC, unchecked": partial(_fetch, base, folder)}
        written, _ = measure(writing, warm=3)
        read, _ = measure(reading, warm=3)
    documents = {"write": written, "read": read}
    return {
        "rows": rows,
        **{way: {name: each.document() for name, each in found.items()} for way, found in documents.items()},
    }


@contextmanager
def _database() -> Iterator[Database]:
    from tests.postgresql import PASSWORD, find_programs, running_server

    with running_server(find_programs()) as server, server.fresh_database() as url:
        yield Database(url.replace(f":{PASSWORD}@", "@"), password=PASSWORD)


@contextmanager
def _folder() -> Iterator[Path]:
    folder = WORK / "database"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _write(base: Database, path: Path, rows: int) -> None:
    """As an output does: a staging table, then one transaction that replaces the period's rows."""
    number = next(_numbers)
    fence = Fence("store", "project", "2026-01", number)
    target = TableTarget(base, "orders", None, "2026-01", f"run-{number}", 1, COLUMNS, fence, number, "orders")
    files = (str(path),)
    target.convert(files)
    commit = Commit(f"run-{number}", 1, rows, "-")
    target.publish([Publication(target, commit, "replace", registers=False, files=files, since=0.0)])


def _ingest(base: Database, path: Path) -> None:
    import pyarrow.parquet as pq

    with base.stream() as cursor, pq.ParquetFile(path) as file:
        cursor.adbc_ingest("ingested", _reader(file), mode="replace")


def _copy(base: Database, path: Path) -> None:
    import pyarrow.parquet as pq

    with base.connect() as connection, pq.ParquetFile(path) as file:
        connection.execute("DROP TABLE IF EXISTS copied")
        connection.execute(
            "CREATE TABLE copied (k bigint, c bigint, s text, p numeric(15,2), d date, t text)",
        )
        with connection.cursor().copy("COPY copied FROM STDIN") as copy:
            for batch in file.iter_batches(columns=list(COLUMNS)):
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    copy.write_row(row)


def _read(base: Database, folder: Path) -> None:
    belongs = Belongs(("2026-01",), date(2026, 1, 1))
    extract_table(base, [folder / "orders.parquet"], USE, table="orders", schema=None, belongs=belongs)


def _fetch(base: Database, folder: Path) -> None:
    import pyarrow.parquet as pq

    with base.stream() as cursor:
        cursor.execute(f"SELECT {', '.join(COLUMNS)} FROM orders")
        reader = cursor.fetch_record_batch()
        with pq.ParquetWriter(folder / "fetched.parquet", reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)


def _reader(file: Any) -> Any:
    import pyarrow as pa

    names = list(COLUMNS)
    schema = pa.schema([file.schema_arrow.field(name) for name in names])
    return pa.RecordBatchReader.from_batches(schema, (batch.select(names) for batch in file.iter_batches()))
