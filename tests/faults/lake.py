"""A workspace that reads a lake table and writes several, to be killed in and resumed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog

from dobonomodo.workspace import Workspace
from tests.world import MONTHS, PERIOD, Folder

ROWS = 40

DEFINITIONS = """
datasource: {id: lake, type: delta, options: {path_prefix: lake}}
---
datasource: {id: ice, type: iceberg, options: {uri: "sqlite:///catalog.db", warehouse: warehouse}}
---
datasource: {id: plain, type: parquet, options: {path_prefix: plain}}
---
resolver: {id: tables, is_default: true, rules: [{strategy: {type: path, datasource_id: lake, path: "raw/{{table_name}}"}}]}
---
dataset:
  id: lines
  main_table:
    name: lines
    temporal_mode: period
    columns: [{name: id, type: integer}, {name: amount, type: "decimal(15,2)"}]
---
project:
  id: lake
  input_dataset_id: lines
  operations:
    - seq: 10
      type: update
      arguments: {assignments: [{column: seen, expression: NOW()}, {column: half, expression: "ROUND(amount / 2, 2)"}]}
    - {seq: 20, type: output, arguments: {destination: {datasource_id: lake, table: gold/one}, columns: [id, half, seen]}}
    - {seq: 30, type: output, arguments: {destination: {datasource_id: plain, table: three}, columns: [id, half, seen]}}
    - seq: 40
      type: output
      arguments: {destination: {datasource_id: lake, table: gold/two}, columns: [id, half, seen], register_as_dataset: two}
    - {seq: 50, type: output, arguments: {destination: {datasource_id: lake, table: gold/same}, columns: [id, half]}}
    - {seq: 60, type: output, arguments: {destination: {datasource_id: ice, table: four}, columns: [id, half, seen]}}
"""


@dataclass(frozen=True)
class Lake:
    """The workspace, and the Spark that computes for it."""

    root: Path
    remote: str

    @classmethod
    def make(cls, root: Path, *, remote: str) -> Lake:
        """Definitions and a table of somebody else; the project is active."""
        Folder.make(root, MONTHS, DEFINITIONS)
        amounts = [Decimal(number * 7) + Decimal("0.55") for number in range(2 * ROWS)]
        table = {
            "id": pa.array(range(2 * ROWS), pa.int64()),
            "amount": pa.array(amounts, pa.decimal128(15, 2)),
            "_period": [PERIOD] * ROWS + ["2026-02"] * ROWS,
        }
        write_deltalake(root / "lake/raw/lines", pa.table(table), partition_by=["_period"])
        lake = cls(root, remote)
        workspace = lake.open()
        workspace.apply()
        workspace.activate("lake")
        return lake

    def open(self) -> Workspace:
        """The workspace, as another process would open it."""
        return Workspace.open(self.root)

    def start(self, *arguments: str, failpoint: str | None = None) -> subprocess.Popen[str]:
        """A command that computes, in a process of its own."""
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "dobonomodo.cli",
                "-C",
                str(self.root),
                *arguments,
                "--remote",
                self.remote,
                "--json",
            ],
            env={**os.environ, **({"DOBO_FAILPOINT": failpoint} if failpoint else {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, at: str, *, failpoint: str | None = None) -> subprocess.CompletedProcess[str]:
        """`dobo run`, which a failpoint may kill."""
        return self.finish(self.start("run", "lake", "-p", PERIOD, "--started-at", at, failpoint=failpoint))

    def resume(self, run: str) -> subprocess.CompletedProcess[str]:
        """`dobo resume`."""
        return self.finish(self.start("resume", run))

    @staticmethod
    def finish(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
        """Wait for a command."""
        out, err = process.communicate(timeout=600)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    @contextmanager
    def moved_on(self) -> Iterator[None]:
        """Somebody adds rows to the table that runs read, and takes them back."""
        path = self.root / "lake/raw/lines"
        more = {"id": pa.array([999], pa.int64()), "amount": pa.array([Decimal(1)], pa.decimal128(15, 2))}
        write_deltalake(path, pa.table({**more, "_period": [PERIOD]}), mode="append")
        yield
        DeltaTable(path).restore(0)

    def see(self) -> dict[str, tuple[int, set[str]]]:
        """What a reader finds in each destination: the number of rows of the period, and the clocks in them."""
        found = {
            name: DeltaTable(self.root / "lake/gold" / name).to_pyarrow_table().to_pylist()
            for name in ("one", "two", "same")
            if (self.root / "lake/gold" / name / "_delta_log").exists()
        }
        if (self.root / "plain/three").exists():
            found["three"] = (
                pyarrow.dataset.dataset(self.root / "plain/three", partitioning="hive").to_table().to_pylist()
            )
        if (self.root / "catalog.db").exists():
            found["four"] = self._see_four()
        return {name: (len(rows), _clocks(rows)) for name, rows in found.items()}

    def _see_four(self) -> list[dict[str, Any]]:
        """The rows of the Iceberg table, as pyiceberg finds them."""
        uri = f"sqlite:///{self.root / 'catalog.db'}"
        catalog = load_catalog("default", type="sql", uri=uri, warehouse=str(self.root / "warehouse"))
        rows: list[dict[str, Any]] = catalog.load_table("default.four").scan().to_arrow().to_pylist()
        return rows


def _clocks(rows: list[dict[str, Any]]) -> set[str]:
    assert len({row["id"] for row in rows}) == len(rows), "no row is there twice"
    return {str(row["seen"])[:19] for row in rows if "seen" in row}
