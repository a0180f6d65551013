"""TPC-H data as Parquet, made by tpchgen-cli, with the period column that the pipeline filters by."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).parent
WORK = HOME.parent / "build" / "bench"


def make_data(scale: float) -> Path:
    """The folder with orders, customer, nation and balance at a scale; made once."""
    folder = WORK / f"sf{scale:g}"
    if (folder / "done").exists():
        return folder
    import duckdb

    shutil.rmtree(folder, ignore_errors=True)
    raw = folder / "raw"
    raw.mkdir(parents=True)
    generator = Path(sys.executable).with_name("tpchgen-cli")
    for table in ("orders", "customer", "nation"):
        command = [generator, "parquet", "-s", f"{scale:g}", f"--tables={table}", f"--output-dir={raw}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    queries = {
        # Six years of seven belong to the period that is run.
        "orders": "SELECT *, CASE WHEN o_orderdate < DATE '1998-01-01' THEN '2026-01' ELSE '2026-02' END AS _period FROM t",
        "customer": "SELECT * FROM t",
        "nation": "SELECT * FROM t",
        "balance": "SELECT c_mktsegment AS segment, c_acctbal AS total FROM t",
    }
    with duckdb.connect() as connection:
        for name, query in queries.items():
            source = raw / f"{'customer' if name == 'balance' else name}.parquet"
            text = query.replace("FROM t", f"FROM '{source}'")
            connection.execute(f"COPY ({text}) TO '{folder / name}.parquet' (FORMAT parquet, ROW_GROUP_SIZE 200000)")
    shutil.rmtree(raw)
    (folder / "done").touch()
    return folder


def make_workspace(folder: Path, data: Path) -> Path:
    """A workspace with the pipeline over some data."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(HOME / "pipeline.yaml", folder / "dobo.yaml")
    (folder / "data").symlink_to(data)
    return folder
