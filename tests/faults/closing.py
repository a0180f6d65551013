"""A workspace that reads and writes every kind of storage, to be killed in and resumed."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.dataset

from dobonomodo.workspace import Workspace
from tests.world import LAKE, MONTHS, PERIOD, Folder

OLD = "2026-02-01T08:00:00Z"
NEW = "2026-02-03T08:00:00Z"
ROWS = 60
_RUN = ("run", "closing", "-p", PERIOD)

DEFINITIONS = """
datasource: {id: files, type: csv, options: {path_prefix: data/in, delimiter: ";"}}
---
datasource: {id: texts, type: csv, options: {path_prefix: data/texts}}
---
datasource: {id: base, type: database, credential_ref: "env://DOBO_TEST_PASSWORD", options: {url: "URL"}}
---
resolver:
  id: all
  is_default: true
  rules:
    - {when: 'table.name = "customers"', strategy: {type: table, datasource_id: base, table: customers}}
    - {data_level: month, strategy: {type: path, datasource_id: files, path: "{{table_name}}/{{identifier}}.csv"}}
---
dataset:
  id: orders
  main_table:
    name: orders
    temporal_mode: period
    columns:
      - {name: order_id, type: string, nullable: false}
      - {name: customer, type: string}
      - {name: note, type: string}
      - {name: amount, type: "decimal(15,2)"}
---
dataset:
  id: customers
  main_table: {name: customers, temporal_mode: snapshot, columns: [{name: id, type: string}, {name: tier, type: string}]}
---
project:
  id: closing
  input_dataset_id: orders
  operations:
    - seq: 10
      type: update
      arguments:
        joins: [{alias: c, dataset_id: customers, on: orders.customer = c.id}]
        assignments:
          - {column: net, expression: 'ROUND(amount * IF(c.tier = "gold", 0.9, 1), 2)'}
          - {column: seen, expression: NOW()}
    - {seq: 20, type: aggregate, arguments: {group_by: [customer], aggregations: [{column: total, expression: SUM(net)}]}}
    - {seq: 30, type: delete, selector: amount < 10}
    - {seq: 35, name: rows, type: check, selector: _operation_seq = 0, arguments: {expect: ABS(net) <= ABS(amount)}}
    - {seq: 36, name: total, type: check, selector: _operation_seq = 20, arguments: {expect: SUM(total) = SUM(after_20.total)}}
    - seq: 40
      type: output
      arguments: {destination: {datasource_id: lake, table: closed}, register_as_dataset: closed}
    - seq: 50
      type: output
      arguments:
        destination: {datasource_id: texts, table: closed, file: "closed-{{period}}.csv"}
        include_deleted: true
        order_by: [order_id]
    - seq: 60
      type: output
      arguments: {destination: {datasource_id: base, table: closed}, register_as_dataset: closed-base}
    - {seq: 70, name: groups, type: check, selector: _operation_seq = 0, arguments: {expect: COUNT(*) > 0, group_by: [customer]}}
"""


@dataclass(frozen=True)
class Closing:
    """The workspace, its database and the Spark that computes for it."""

    root: Path
    url: str
    password: str
    remote: str

    @classmethod
    def make(cls, root: Path, *, url: str, remote: str) -> Closing:
        """Definitions, input files and a table; the project is active."""
        plain = url.replace(f":{url.split(':')[2].split('@')[0]}@", "@")
        closing = cls(root, plain, url.split(":")[2].split("@")[0], remote)
        os.environ["DOBO_TEST_PASSWORD"] = closing.password
        Folder.make(
            root, LAKE.replace("path_prefix: data", "path_prefix: data/lake"), MONTHS, DEFINITIONS.replace("URL", plain)
        )
        folder = root / "data/in/orders"
        folder.mkdir(parents=True)
        lines = [
            f'"A{number}";"C{number % 3}";"a ""note"";{number}\nof two lines";{number * 7}.5' for number in range(ROWS)
        ]
        for period in (PERIOD, "2026-02"):
            (folder / f"{period}.csv").write_text("order_id;customer;note;amount\n" + "\n".join(lines) + "\n")
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE customers (id varchar(10), tier text)")
            connection.execute("INSERT INTO customers VALUES ('C1', 'gold'), ('C2', 'silver')")
        workspace = closing.open()
        workspace.apply()
        workspace.activate("closing")
        return closing

    def open(self) -> Workspace:
        """The workspace, as another process would open it."""
        return Workspace.open(self.root)

    def run(
        self, *, at: str = NEW, failpoint: str | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """`dobo run` in a process of its own, which a failpoint may kill."""
        return self.command(*_RUN, "--started-at", at, failpoint=failpoint, **environment)

    def command(
        self, *arguments: str, failpoint: str | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """A command in a process of its own."""
        with self.start(*arguments, failpoint=failpoint, **environment) as process:
            out, err = process.communicate(timeout=1800)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    @contextmanager
    def start(
        self, *arguments: str, failpoint: str | None = None, **environment: str
    ) -> Iterator[subprocess.Popen[str]]:
        """A command that is at work until the end of the block, where it is waited for."""
        remote = ["--remote", self.remote, "--json"] if arguments[0] in ("run", "resume", "verify") else []
        with subprocess.Popen(
            [sys.executable, "-m", "dobonomodo.cli", "-C", str(self.root), *arguments, *remote],
            env={**os.environ, **environment, **({"DOBO_FAILPOINT": failpoint} if failpoint else {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Tests that run in the background ignore Ctrl-C, and so would their children.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as process:
            try:
                yield process
            except BaseException:
                process.kill()
                raise

    @contextmanager
    def waiting(self, failpoint: str, *, at: str = NEW, **environment: str) -> Iterator[subprocess.Popen[str]]:
        """A run that waits at a failpoint; it goes on after `go`."""
        self._gate.unlink(missing_ok=True)
        waits = self._gate.with_name(f"{self._gate.name}.waiting")
        waits.unlink(missing_ok=True)
        with self.start(*_RUN, "--started-at", at, failpoint=f"{failpoint}@{self._gate}", **environment) as process:
            while not waits.exists():
                assert process.poll() is None, process.communicate()
                time.sleep(0.05)
            yield process

    def go(self) -> None:
        """Let the run that waits go on."""
        self._gate.touch()

    @property
    def _gate(self) -> Path:
        return self.root / "gate"

    def digests(self) -> dict[int, str]:
        """What the latest run recorded."""
        return {output.seq: output.digest for output in self.open().runs()[0].outputs.values()}

    def clocks(self) -> dict[str, set[str]]:
        """What a reader finds in each destination: the clocks of its rows, one if they are of one run, and their number."""
        found: dict[str, set[str]] = {}
        for kind in ("lake", "texts"):
            folder = self.root / "data" / kind / "closed"
            if not folder.exists():
                continue
            table = _read_lake(folder) if kind == "lake" else _read_texts(folder.glob("*/*.csv"))
            found[kind] = {f"{len(table)} rows at {_clock(row['seen'])}" for row in table if row["order_id"]}
        table = _read_texts((self.root / "data" / "texts").glob("closed-*.csv"))
        found["file"] = {f"{len(table)} rows at {_clock(row['seen'])}" for row in table if row["order_id"]}
        with psycopg.connect(self.url, password=self.password) as connection:
            exists = connection.execute("SELECT to_regclass('closed')").fetchone()
            if exists is not None and exists[0] is not None:
                rows = connection.execute("SELECT seen FROM closed WHERE order_id IS NOT NULL").fetchall()
                total = connection.execute("SELECT count(*) FROM closed").fetchone()
                found["base"] = {f"{total[0] if total else 0} rows at {_clock(row[0])}" for row in rows}
        return found


def _read_lake(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pyarrow.dataset.dataset(folder, partitioning="hive").to_table().to_pylist()
    return rows


def _read_texts(files: Iterable[Path]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for path in sorted(files):
        with path.open(newline="") as file:
            rows.extend(csv.DictReader(file))
    return rows


def _clock(value: Any) -> str:
    return str(value)[:10]


def data_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The data of a command's JSON document."""
    document: dict[str, Any] = json.loads(done.stdout)
    data: dict[str, Any] = document["data"]
    return data
