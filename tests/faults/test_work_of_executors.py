"""Executors of a standalone cluster do what grows with the data (CSV, footers, PostgreSQL), while a worker is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dobonomodo import failpoint
from dobonomodo.workspace import Workspace
from dobonomodo.workspace.execution import LIMIT_VARIABLE
from tests.faults.cluster import Cluster, wait_until
from tests.postgresql import PASSWORD, Server, postgresql_server
from tests.world import MONTHS, PERIOD, Folder

if TYPE_CHECKING:
    from dobonomodo.runs import RunView

__all__ = ["postgresql_server"]

pytestmark = [pytest.mark.spark, pytest.mark.postgresql]

ROOT = Path(__file__).parents[2]
FILES, ROWS = 6, 50
DEFINITIONS = """
datasource: {id: exports, type: csv, options: {path_prefix: data/exports}}
---
datasource: {id: lake, type: parquet, options: {path_prefix: data}}
---
datasource: {id: figures, type: database, options: {url: "URL"}, credential_ref: "file://password"}
---
resolver:
  id: places
  is_default: true
  rules:
    - {when: 'table.name = "lines"', strategy: {type: path, datasource_id: exports, path: lines}}
    - {when: 'table.name = "names"', strategy: {type: path, datasource_id: lake, path: names}}
    - {strategy: {type: table, datasource_id: figures, table: "{{table_name}}"}}
---
dataset:
  id: lines
  main_table:
    name: lines
    columns: [{name: id, type: integer}, {name: text, type: string}, {name: amount, type: "decimal(9,2)"}]
---
dataset:
  id: names
  natural_key_columns: [id]
  main_table: {name: names, columns: [{name: id, type: integer}, {name: name, type: string}]}
---
dataset:
  id: rates
  natural_key_columns: [id]
  main_table: {name: rates, columns: [{name: id, type: integer}, {name: rate, type: "decimal(9,4)"}]}
---
project:
  id: close
  input_dataset_id: lines
  operations:
    - seq: 10
      type: update
      arguments:
        joins:
          - {alias: names, dataset_id: names, on: lines.id = names.id}
          - {alias: rates, dataset_id: rates, on: lines.id = rates.id}
        assignments:
          - {column: name, expression: names.name}
          - {column: value, expression: "ROUND(lines.amount * rates.rate, 2)"}
    - {seq: 20, type: output, arguments: {destination: {datasource_id: figures, table: gold}, columns: [id, text, name, value]}}
    - {seq: 30, type: output, arguments: {destination: {datasource_id: lake, table: silver}, columns: [id, text, name, value]}}
"""


@pytest.fixture
def url(postgresql_server: Server) -> Iterator[str]:
    with postgresql_server.fresh_database() as address:
        yield address


@pytest.fixture
def root(tmp_path: Path, url: str) -> Path:
    """A workspace with rows in CSV files, Parquet files and a database."""
    root = tmp_path / "workspace"
    Folder.make(root, MONTHS, DEFINITIONS.replace("URL", url.replace(f":{PASSWORD}", "")))
    (root / "password").write_text(PASSWORD)
    (root / "data/exports/lines").mkdir(parents=True)
    (root / "data/names").mkdir()
    for number in range(FILES):
        ids = range(number * ROWS, (number + 1) * ROWS)
        lines = "".join(f'{each},"te\nxt ü {each}",{each}.25\n' for each in ids)
        (root / f"data/exports/lines/{number}.csv").write_text(f"id,text,amount\n{lines}")
        names = pa.table({"id": pa.array(ids, pa.int64()), "name": [f"name {each}" for each in ids]})
        pq.write_table(names, root / f"data/names/{number}.parquet")
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE rates (id bigint PRIMARY KEY, rate numeric(9,4))")
        connection.execute(
            "INSERT INTO rates SELECT id, 1 + id / 1000.0 FROM generate_series(0, %s) AS id", [FILES * ROWS - 1]
        )
        # The database tells how many rows there are once it has looked.
        connection.execute("ANALYZE rates")
    with closing(Workspace.open(root)) as workspace:
        workspace.apply()
        workspace.activate("close")
    return root


def start(root: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """`dobo run` in a process of its own, whose Spark may be another than that of the tests."""
    command = [sys.executable, "-m", "dobonomodo.cli", "-C", str(root), "run", "close", "-p", PERIOD, "--json"]
    return subprocess.Popen(
        [*command, "--started-at", "2026-02-03T08:00:00Z", *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(root: Path, process: subprocess.Popen[str]) -> tuple[RunView, dict[str, Any]]:
    """The run when it is completed, with the pins of its record."""
    out, said = process.communicate(timeout=1800)
    assert process.returncode == 0, (out, said)
    assert "executors cannot" not in said
    with closing(Workspace.open(root)) as workspace:
        view = workspace.runs()[0]
        record = workspace.store.get_run(view.id)
    assert record is not None
    return view, json.loads(json.dumps(record.snapshot))


def outcome(view: RunView) -> dict[str, tuple[int, str]]:
    return {name: (each.rows, each.digest) for name, each in view.outputs.items()}


def test_the_result_is_that_of_the_driver_also_when_a_worker_is_killed(root: Path, tmp_path: Path, url: str) -> None:
    alone, _ = finish(root, start(root, "--master", "local[1]"))
    assert outcome(alone)["gold"][0] == FILES * ROWS
    folder = tmp_path / "cluster"
    folder.mkdir()
    cluster, gate = Cluster(folder), tmp_path / "gate"
    workers = {"PYSPARK_PYTHON": sys.executable}
    asking = {**workers, LIMIT_VARIABLE: "0"}
    try:
        cluster.start_master()
        # A task of the first worker waits in the middle of a CSV file.
        cluster.add_worker({**workers, failpoint.VARIABLE: f"input.extracting@{gate}"})
        cluster.add_worker(workers)
        process = start(root, "--master", cluster.url, **asking)
        wait_until(lambda: Path(f"{gate}.waiting").exists() or process.poll() is not None, what="the gate")
        assert process.poll() is None, process.communicate()
        cluster.kill_worker()
        gate.touch()
        killed, snapshot = finish(root, process)
    finally:
        cluster.stop()
    assert outcome(killed) == outcome(alone)
    # Executors have read the table in ranges; the driver reads it as one.
    parts = [pin.get("parts") for pins in snapshot["inputs"].values() for pin in pins if pin["kind"] == "database"]
    assert parts
    assert all(each >= 2 for each in parts)
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT count(*), count(DISTINCT id), min(name), max(name) FROM gold").fetchone()
    assert found == (FILES * ROWS, FILES * ROWS, "name 0", "name 99")
