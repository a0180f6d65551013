"""A run from object store to object store that is killed: readers find old or new rows of all tables, and resuming completes it."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.faults.closing import NEW, OLD, ROWS, Closing, data_of
from tests.object_server import SECRET, ObjectServer
from tests.searching import tries
from tests.world import MONTHS, PERIOD, Folder

pytestmark = pytest.mark.spark

SOME = ["publish.during:1", "publish.after:1"]
EVERYWHERE = [
    "input.pinned:1", "input.extracted:1", "output.staged:2", "output.converted:1", "output.converted:2", "output.converted:3",
    "publish.claimed:1", "publish.intended:1", "publish.before:1", "publish.during:1", "publish.after:1", "publish.before:2",
    "publish.during:2", "publish.naming:1", "publish.after:2", "run.finished:1",
]  # fmt: skip
CHOSEN = EVERYWHERE if os.environ.get("DOBO_TEST_ALL") else SOME

DEFINITIONS = """
datasource: {id: files, type: csv, options: {path_prefix: "ADDRESS/in", delimiter: ";"}}
---
datasource: {id: lake, type: parquet, options: {path_prefix: "ADDRESS/lake"}}
---
datasource: {id: texts, type: csv, options: {path_prefix: "ADDRESS/texts"}}
---
resolver:
  id: all
  is_default: true
  rules:
    - {data_level: month, strategy: {type: path, datasource_id: files, path: "{{table_name}}/{{identifier}}.csv"}}
---
dataset:
  id: orders
  main_table:
    name: orders
    temporal_mode: period
    columns: [{name: order_id, type: string}, {name: customer, type: string}, {name: amount, type: "decimal(15,2)"}]
---
project:
  id: closing
  input_dataset_id: orders
  operations:
    - {seq: 10, type: update, arguments: {assignments: [{column: seen, expression: NOW()}]}}
    - {seq: 20, type: aggregate, arguments: {group_by: [customer], aggregations: [{column: total, expression: SUM(amount)}]}}
    - seq: 40
      type: output
      arguments: {destination: {datasource_id: lake, table: closed}, register_as_dataset: closed}
    - seq: 50
      type: output
      selector: _operation_seq = 20
      arguments: {destination: {datasource_id: lake, table: "deep/totals"}, columns: [customer, total, _updated_at]}
    - seq: 60
      type: output
      arguments:
        destination: {datasource_id: texts, table: closed, file: "closed-{{period}}.csv"}
        columns: [order_id, seen]
        order_by: [order_id]
"""


@dataclass(frozen=True)
class Stored(Closing):
    """The workspace whose data are in an object store."""

    server: ObjectServer
    address: str

    @classmethod
    def in_bucket(cls, root: Path, *, server: ObjectServer, remote: str) -> Stored:
        address = f"{server.fresh_bucket()}/data"
        stored = cls(root, "", "", remote, server, address)
        Folder.make(root, MONTHS, DEFINITIONS.replace("ADDRESS", address))
        lines = [f"A{number};C{number % 3};{number * 7}.5" for number in range(ROWS)]
        server.put(
            f"{address}/in/orders/{PERIOD}.csv", ("order_id;customer;amount\n" + "\n".join(lines) + "\n").encode()
        )
        workspace = stored.open()
        workspace.apply()
        workspace.activate("closing")
        return stored

    def clocks(self) -> dict[str, set[str]]:
        """What a reader finds that follows the pointer once for each datasource."""
        rows: dict[str, list[dict[str, Any]]] = {}
        for place, column in (
            ("lake/closed", "_updated_at"),
            ("lake/deep/totals", "_updated_at"),
            ("texts/closed", "seen"),
        ):
            datasource, _, table = place.partition("/")
            files = self.server.list_files(f"{self.address}/{datasource}", table)
            found = [row for file in files for row in _read(file, self.server.read(file))]
            rows[place] = [{"clock": row[column]} for row in found if row[column]]
        file = f"closed-{PERIOD}.csv"
        found = _read(file, self.server.read(f"{self.address}/texts/{file}"))
        rows["file"] = [{"clock": row["seen"]} for row in found if row["seen"]]
        return {
            place: {f"{len(each)} rows at {str(row['clock'])[:10]}" for row in each} for place, each in rows.items()
        }


def _read(name: str, content: bytes) -> list[dict[str, Any]]:
    if name.endswith(".csv"):
        return list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    found: list[dict[str, Any]] = pq.ParquetFile(io.BytesIO(content)).read().to_pylist()
    return found


@pytest.fixture(scope="module")
def stored(
    tmp_path_factory: pytest.TempPathFactory, object_server: ObjectServer, connect_url: str
) -> Iterator[tuple[Stored, dict[int, str]]]:
    """A workspace after an undisturbed run, and the digests of that."""
    stored = Stored.in_bucket(tmp_path_factory.mktemp("stored"), server=object_server, remote=connect_url)
    done = stored.run(at=OLD)
    assert done.returncode == 0, done.stdout
    yield stored, stored.digests()
    shown = [path.read_bytes() for path in (stored.root / ".dobo").rglob("*") if path.is_file()]
    assert shown
    assert not any(SECRET.encode() in each for each in shown)


def _clock(number: int) -> str:
    return NEW.replace("2026-02-03", f"2026-03-{number % 28 + 1:02}")


def _check(stored: Stored, *clocks: str) -> set[str]:
    """Rows of one datasource are of one run, which is one of these; gives the clocks of all."""
    found = stored.clocks()
    assert all(len(each) == 1 for each in found.values()), found
    days = {place: next(iter(each)).rpartition(" ")[2] for place, each in found.items()}
    assert days["lake/closed"] == days["lake/deep/totals"], "one pointer for both"
    assert set(days.values()) <= {each[:10] for each in clocks}
    return set(days.values())


def _go_on(stored: Stored, at: str) -> None:
    killed = stored.open().runs()[0]
    if not killed.started_at.isoformat().startswith(at[:10]):
        assert stored.run(at=at).returncode == 0
    elif killed.status != "completed":
        done = stored.command("resume", killed.id)
        assert done.returncode == 0, done.stdout
        assert data_of(done)["run_id"] == killed.id


@pytest.mark.parametrize("failpoint", CHOSEN)
def test_killed_and_resumed(stored: tuple[Stored, dict[int, str]], failpoint: str) -> None:
    closing, _ = stored
    before = max(next(iter(each)).rpartition(" ")[2] for each in closing.clocks().values())
    at = _clock(CHOSEN.index(failpoint))
    killed = closing.run(at=at, failpoint=failpoint)
    assert killed.returncode == -9, killed.stdout
    seen = _check(closing, before, at)
    if EVERYWHERE.index(failpoint) <= EVERYWHERE.index("publish.during:1"):
        assert seen == {before}, "nothing is published before everything is"
    _go_on(closing, at)
    assert _check(closing, at) == {at[:10]}
    assert len(closing.open().store.list_versions("dataset", "closed")) == CHOSEN.index(failpoint) + 2


@pytest.mark.search
def test_killed_at_random_moments(stored: tuple[Stored, dict[int, str]], record_property: Any) -> None:
    closing, _ = stored
    count = tries(sample=1, full=100)
    before = max(next(iter(each)).rpartition(" ")[2] for each in closing.clocks().values())
    for number in range(count):
        at = _clock(number + 20).replace("2026-03", f"{2027 + number // 20}-03")
        with closing.start("run", "closing", "-p", PERIOD, "--started-at", at) as process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=random.SystemRandom().uniform(1, 6))
            process.kill()
        _check(closing, before, at)
        _go_on(closing, at)
        assert _check(closing, at) == {at[:10]}
        before = at[:10]
    record_property("kills", count)
