"""A workspace that reads a lake table and writes several, to be killed in and resumed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError
from pyiceberg.catalog import load_catalog

from dobonomodo.workspace import Workspace
from tests.faults.forked import fork
from tests.world import MONTHS, PERIOD, Folder

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess

    from tests.object_server import ObjectServer

ROWS = 40
Seen = dict[str, tuple[int, set[str]]]
"""What a reader finds in each destination: the number of rows of the period, and the clocks in them."""

PLACES = """
datasource: {id: lake, type: delta, options: {path_prefix: "ABOVElake"}}
---
datasource: {id: ice, type: iceberg, options: {uri: "sqlite:///catalog.db", warehouse: "ABOVEwarehouse"}}
---
datasource: {id: plain, type: parquet, options: {path_prefix: "ABOVEplain"}}
"""
DEFINITIONS = """
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
    - {seq: 15, name: halves, type: check, arguments: {expect: ABS(half) <= ABS(amount)}}
    - {seq: 16, name: rows, type: check, arguments: {expect: COUNT(*) = 40}}
    - {seq: 20, type: output, arguments: {destination: {datasource_id: lake, table: gold/one}, columns: [id, half, seen]}}
    - {seq: 30, type: output, arguments: {destination: {datasource_id: plain, table: three}, columns: [id, half, seen]}}
    - {seq: 50, type: output, arguments: {destination: {datasource_id: lake, table: gold/same}, columns: [id, half]}}
    - {seq: 60, type: output, arguments: {destination: {datasource_id: ice, table: four}, columns: [id, half, seen]}}
"""
REGISTERED = """    - seq: 40
      type: output
      arguments: {destination: {datasource_id: lake, table: gold/two}, columns: [id, half, seen], register_as_dataset: two}
"""


@dataclass(frozen=True)
class Lake:
    """The workspace, and the Spark that computes for it."""

    root: Path
    remote: str
    server: ObjectServer | None = None
    address: str = ""
    """Of the object store, where the tables are in one."""

    @classmethod
    def make(cls, root: Path, *, remote: str, server: ObjectServer | None = None) -> Lake:
        """Definitions and a table of somebody else; the project is active."""
        lake = cls(root, remote) if server is None else cls(root, remote, server, f"{server.fresh_bucket()}/data")
        above = f"{lake.address}/" if server is not None else ""
        more = REGISTERED if server is None else ""
        Folder.make(root, MONTHS, PLACES.replace("ABOVE", above), DEFINITIONS + more)
        lake._write_lines(_lines(), mode="overwrite")
        workspace = lake.open()
        workspace.apply()
        workspace.activate("lake")
        return lake

    @property
    def access(self) -> dict[str, str]:
        """What Delta needs to reach a server without a certificate."""
        return {"AWS_ALLOW_HTTP": "true"}

    def delta(self, table: str) -> str:
        """Where a table of Delta is."""
        return f"{self.address or self.root}/lake/{table}"

    def open(self) -> Workspace:
        """The workspace, as another process would open it."""
        return Workspace.open(self.root)

    def start(self, *arguments: str, failpoint: str | None = None) -> subprocess.Popen[str]:
        """A command that computes, in a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "dobonomodo.cli", *self._command(*arguments)],
            env={**os.environ, **({"DOBO_FAILPOINT": failpoint} if failpoint else {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def fork(self, *arguments: str) -> ForkServerProcess:
        """A command that computes, in a process of its own that has loaded the product already."""
        return fork(self._command(*arguments), out=self.said)

    @property
    def said(self) -> Path:
        """What a forked command said."""
        return self.root / "said.txt"

    def _command(self, *arguments: str) -> list[str]:
        return ["-C", str(self.root), *arguments, "--remote", self.remote, "--json"]

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
        more = {"id": pa.array([999], pa.int64()), "amount": pa.array([Decimal(1)], pa.decimal128(15, 2))}
        self._write_lines(pa.table({**more, "_period": [PERIOD]}), mode="append")
        yield
        self._write_lines(_lines(), mode="overwrite")

    def _write_lines(self, rows: pa.Table, *, mode: Literal["append", "overwrite"]) -> None:
        write_deltalake(self.delta("raw/lines"), rows, mode=mode, partition_by=["_period"], storage_options=self.access)

    def see(self) -> Seen:
        """What a reader finds in each destination."""
        found: dict[str, list[dict[str, Any]]] = {}
        for name in ("one", "two", "same"):
            with suppress(TableNotFoundError):
                table = DeltaTable(self.delta(f"gold/{name}"), storage_options=self.access)
                found[name] = table.to_pyarrow_table().to_pylist()
        if self.server is not None:
            with self.server.copied(f"{self.address}/plain", "three") as copies:
                found["three"] = [row for path in copies for row in pq.ParquetFile(path).read().to_pylist()]
        elif (self.root / "plain/three").exists():
            found["three"] = (
                pyarrow.dataset.dataset(self.root / "plain/three", partitioning="hive").to_table().to_pylist()
            )
        if (self.root / "catalog.db").exists():
            found["four"] = self._see_four()
        return {name: (len(rows), _clocks(rows)) for name, rows in found.items()}

    def _see_four(self) -> list[dict[str, Any]]:
        """The rows of the Iceberg table, as pyiceberg finds them."""
        uri = f"sqlite:///{self.root / 'catalog.db'}"
        access = {"s3.endpoint": self.server.endpoint, "s3.region": "us-east-1"} if self.server is not None else {}
        with closing(
            load_catalog("default", type="sql", uri=uri, warehouse=f"{self.address or self.root}/warehouse", **access)
        ) as catalog:
            rows: list[dict[str, Any]] = catalog.load_table("default.four").scan().to_arrow().to_pylist()
        return rows


def _lines() -> pa.Table:
    """What somebody else has written for two periods."""
    amounts = [Decimal(number * 7) + Decimal("0.55") for number in range(2 * ROWS)]
    columns = {
        "id": pa.array(range(2 * ROWS), pa.int64()),
        "amount": pa.array(amounts, pa.decimal128(15, 2)),
        "_period": [PERIOD] * ROWS + ["2026-02"] * ROWS,
    }
    return pa.table(columns)


def _clocks(rows: list[dict[str, Any]]) -> set[str]:
    assert len({row["id"] for row in rows}) == len(rows), "no row is there twice"
    return {str(row["seen"])[:19] for row in rows if "seen" in row}
