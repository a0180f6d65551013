"""What grows with the data, done by the driver and by executors, in turns: CSV files, columns to check, objects, tables.

The executors are those of a local master, on the cores of the driver: the ratio tells what tasks cost, not what a cluster gains.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.data import WORK
from benchmarks.measure import measure
from dobonomodo.formula import Type
from dobonomodo.formula.types import DATE, INTEGER, TEXT, DecimalType
from dobonomodo.storage import WrittenOutput
from dobonomodo.storage.executors import Limits

if TYPE_CHECKING:
    import pyarrow

    from dobonomodo.engine.tasks import SparkExecutors
    from tests.contract.storages import Storage

COLUMNS: dict[str, Type] = {
    "id": INTEGER,
    "region": TEXT,
    "day": DATE,
    "amount": DecimalType(15, 2),
    "quantity": INTEGER,
}
FILES = 8


def executors(rows: int, turns: int) -> dict[str, Any]:
    """Both ways in turns, for files of so many rows, and the ratio of their best times."""
    from dobonomodo.engine import open_session
    from dobonomodo.engine.engine import SparkEngine
    from dobonomodo.engine.tasks import SparkExecutors

    root = WORK / "executors"
    shutil.rmtree(root, ignore_errors=True)
    engine = SparkEngine(open_session(master="local[2]"))
    asked = SparkExecutors(lambda: engine, root / "probe", limits=Limits.of(0))
    asked.do(abs, [1, 2])
    found: dict[str, Any] = {"rows": FILES * rows}
    with ExitStack() as stack:
        for name, make in {"csv": _csv, "checks": _parquet, "objects": _objects, "tables": _tables}.items():
            storage = stack.enter_context(make(root / name, rows))
            found[f"read {name}"] = _compare(lambda way, storage=storage: _read(storage, way), asked, turns)
            if name in ("objects", "tables"):
                found[f"write {name}"] = _compare(lambda way, storage=storage: _write(storage, rows, way), asked, turns)
    shutil.rmtree(root)
    return found


def _compare(act: Callable[[SparkExecutors | None], None], asked: SparkExecutors, turns: int) -> dict[str, Any]:
    ways = {"driver": partial(act, None), "executors": partial(act, asked)}
    found, _ = measure(ways, warm=turns, cold=0)
    seconds = round(found["executors"].least / found["driver"].least, 2)
    return {**{name: each.document() for name, each in found.items()}, "ratio": seconds}


def _read(storage: Storage, way: SparkExecutors | None) -> None:
    inputs, use = storage.inputs("reading", executors=way), storage.use(COLUMNS, required=["id"], natural_key=("id",))
    inputs.extract([use], inputs.pin([use]))
    shutil.rmtree(storage.root / ".dobo/runs/reading", ignore_errors=True)


def _write(storage: Storage, rows: int, way: SparkExecutors | None) -> None:
    """Converting alone: what is staged is brought to the destination."""
    import pyarrow.parquet as pq

    outputs = storage.outputs(executors=way)
    output = WrittenOutput(10, storage.write(COLUMNS, table="written"), COLUMNS)
    folder = storage.root / "staged"
    if not folder.exists():
        folder.mkdir()
        for number in range(FILES):
            pq.write_table(_make_table(number, rows), folder / f"part-{number}.parquet")
    outputs.convert(output, outputs.staged_in(folder), rows=FILES * rows)


@contextmanager
def _csv(root: Path, rows: int) -> Iterator[Storage]:
    import pyarrow.csv as pc

    from tests.contract.storages import Storage, open_source

    (root / "data/out").mkdir(parents=True)
    for number in range(FILES):
        pc.write_csv(_make_table(number, rows), root / f"data/out/{number}.csv")
    yield Storage(root, open_source("csv", path_prefix="data"))


@contextmanager
def _parquet(root: Path, rows: int) -> Iterator[Storage]:
    """Files that do not say whether values are missing."""
    import pyarrow.parquet as pq

    from tests.contract.storages import Storage, open_source

    (root / "data/out").mkdir(parents=True)
    for number in range(FILES):
        pq.write_table(_make_table(number, rows), root / f"data/out/{number}.parquet", write_statistics=False)
    yield Storage(root, open_source("parquet", path_prefix="data"))


@contextmanager
def _objects(root: Path, rows: int) -> Iterator[Storage]:
    import io

    import pyarrow.parquet as pq

    from tests.contract.storages import Storage, open_source
    from tests.object_server import running_server

    root.mkdir(parents=True)
    with running_server() as server:
        storage = Storage(root, open_source("parquet", path_prefix=f"{server.fresh_bucket()}/data"), server=server)
        for number in range(FILES):
            content = io.BytesIO()
            pq.write_table(_make_table(number, rows), content)
            storage.plant_text(content.getvalue(), f"out/{number}.parquet")
        yield storage


@contextmanager
def _tables(root: Path, rows: int) -> Iterator[Storage]:
    from tests.contract.test_storages import make_storage
    from tests.postgresql import find_programs, running_server

    root.mkdir(parents=True)
    with running_server(find_programs()) as server, server.fresh_database() as url:
        storage = make_storage("database", root, url)
        output = WrittenOutput(10, storage.write(COLUMNS), COLUMNS)
        outputs = storage.outputs(run="earlier")
        staged = storage.stage_by_hand(outputs, _make_table(0, FILES * rows), output)
        converted = outputs.convert(output, staged, rows=FILES * rows)
        outputs.publish([(output, converted, FILES * rows, "")])
        storage.execute("ANALYZE {schema}.out")
        yield storage


def _make_table(number: int, rows: int) -> pyarrow.Table:
    import numpy
    import pyarrow as pa

    random = numpy.random.default_rng(number)
    cents = pa.array(random.integers(0, 10**9, rows)).cast(pa.decimal128(19, 0))
    columns = {
        "id": pa.array(range(number * rows, (number + 1) * rows), pa.int64()),
        "region": pa.array(random.choice(["north", "south", "east", "west"], rows)),
        "day": pa.array(random.integers(18_000, 20_000, rows).astype("int32")).cast(pa.date32()),
        "amount": pa.compute.multiply(cents, pa.scalar(Decimal("0.01"))).cast(pa.decimal128(15, 2)),
        "quantity": pa.array(random.integers(0, 1000, rows)),
    }
    return pa.table(columns)
