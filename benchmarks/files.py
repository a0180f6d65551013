"""Many input files: finding, checking and counting them without Spark, and the memory of the process that does it."""

from __future__ import annotations

import shutil
import time
from typing import Any

from benchmarks.data import WORK
from benchmarks.measure import cpu_seconds, peak_megabytes
from dobonomodo.formula import Columns
from dobonomodo.formula.types import INTEGER, TEXT
from dobonomodo.model import DataSource
from dobonomodo.plan import DatasetUse
from dobonomodo.plan.dataset import Location
from dobonomodo.storage import Storages
from dobonomodo.storage.storage import Belongs, Scratch

COLUMNS = {"id": INTEGER, **{f"text_{number}": TEXT for number in range(10)}}
USE = DatasetUse("input", "lines", 1, "lines", None, Columns(COLUMNS), nullable=frozenset(COLUMNS) - {"id"})


def many_files(count: int) -> dict[str, Any]:
    """Times and peak memory for a folder of so many small Parquet files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = WORK / "files"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "lines").mkdir(parents=True)
    table = {"id": pa.array(range(10), pa.int64()), **{name: ["x"] * 10 for name in COLUMNS if name != "id"}}
    pq.write_table(pa.table(table), folder / "lines/00000.parquet")
    content = (folder / "lines/00000.parquet").read_bytes()
    for number in range(1, count):
        (folder / f"lines/{number:05}.parquet").write_bytes(content)
    source = DataSource.from_data({"id": "files", "type": "parquet", "options": {"path_prefix": "."}})
    storage, scratch = Storages(folder, {"files": source}).open(source), Scratch(str(folder / "run"), "lines")
    before, started = cpu_seconds(), time.perf_counter()
    (pin,) = storage.pin(USE, [Location("files", "path", path="lines")])
    storage.extract(USE, pin, scratch, belongs=Belongs((), None))  # type: ignore[arg-type]
    rows = storage.count(pin, scratch)
    found = {"seconds": time.perf_counter() - started, "cpu": cpu_seconds() - before}
    shutil.rmtree(folder)
    return {
        "files": count,
        "rows": rows,
        "megabytes": round(peak_megabytes()),
        **{k: round(v, 2) for k, v in found.items()},
    }
