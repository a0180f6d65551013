"""Runs whose workers share nothing but an object store with the driver, over Spark's own `s3a`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.faults.closing import NEW, OLD, Closing, data_of
from tests.local_scratch import addresses_of_spark
from tests.object_server import KEY, SECRET, ObjectServer
from tests.postgresql import PASSWORD, Server
from tests.world import MONTHS, PERIOD, Folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.runs import RunView

pytestmark = [pytest.mark.native, pytest.mark.postgresql]

SOME = ["output.staged:2", "publish.intended:1"]
EVERYWHERE = [
    "input.extracted:1", "input.pinned:1", "output.staging:1", "output.staged:1", "output.staged:2", "output.converted:1",
    "output.ready:3", "publish.claimed:1", "publish.intended:1", "publish.after:1", "publish.before:2", "run.finishing:1",
]  # fmt: skip
CHOSEN = EVERYWHERE if os.environ.get("DOBO_TEST_ALL") else SOME

DEFINITIONS = """
datasource: {id: files, type: csv, options: {path_prefix: in}}
---
datasource: {id: lake, type: parquet, options: {path_prefix: "ADDRESS/lake"}}
---
datasource: {id: gold, type: delta, options: {path_prefix: gold}}
---
datasource: {id: texts, type: csv, options: {path_prefix: texts}}
---
datasource: {id: base, type: database, credential_ref: "env://DOBO_TEST_PASSWORD", options: {url: "URL"}}
---
resolver:
  id: all
  is_default: true
  rules:
    - {when: 'table.name = "customers"', strategy: {type: path, datasource_id: lake, path: customers}}
    - {when: 'table.name = "rates"', strategy: {type: table, datasource_id: base, table: rates}}
    - {strategy: {type: path, datasource_id: files, path: "{{table_name}}"}}
---
dataset:
  id: orders
  main_table:
    name: orders
    columns: [{name: order_id, type: string}, {name: customer, type: string}, {name: amount, type: "decimal(15,2)"}]
---
dataset: {id: customers, main_table: {name: customers, columns: [{name: id, type: string}, {name: tier, type: string}]}}
---
dataset:
  id: rates
  main_table: {name: rates, columns: [{name: customer, type: string}, {name: rate, type: "decimal(5,2)"}]}
---
project:
  id: closing
  input_dataset_id: orders
  operations:
    - seq: 10
      type: update
      arguments:
        joins:
          - {alias: c, dataset_id: customers, on: orders.customer = c.id}
          - {alias: r, dataset_id: rates, on: orders.customer = r.customer}
        assignments:
          - {column: net, expression: 'ROUND(amount * r.rate * IF(c.tier = "gold", 0.9, 1), 2)'}
          - {column: seen, expression: NOW()}
    - {seq: 20, type: aggregate, arguments: {group_by: [customer], aggregations: [{column: total, expression: SUM(net)}]}}
    - {seq: 40, type: output, arguments: {destination: {datasource_id: lake, table: closed}, columns: [order_id, net, seen, _row_id]}}
    - seq: 50
      type: output
      selector: _operation_seq = 20
      arguments: {destination: {datasource_id: gold, table: totals}, columns: [customer, total, _row_id, _updated_at]}
    - {seq: 60, type: output, arguments: {destination: {datasource_id: texts, table: lines}, columns: [order_id, net, seen]}}
"""


@dataclass(frozen=True)
class Apart(Closing):
    """A workspace on the driver's disk, its lake in an object store, and perhaps its scratch too."""

    server: ObjectServer
    address: str

    @classmethod
    def in_bucket(cls, root: Path, *, server: ObjectServer, remote: str, url: str, scratch: bool = True) -> Apart:
        address = server.fresh_bucket()
        apart = cls(root, url, PASSWORD, remote, server, address)
        os.environ["DOBO_TEST_PASSWORD"] = PASSWORD
        plain = url.replace(f":{PASSWORD}@", "@")
        Folder.make(root, MONTHS, DEFINITIONS.replace("ADDRESS", address).replace("URL", plain))
        if scratch:
            text = (root / "dobo.yaml").read_text()
            (root / "dobo.yaml").write_text(text.replace("{name: test}", f'{{scratch: "{address}/tmp/dobo"}}'))
        # Several files, with the same names in several folders: positions count on over all of them.
        for number in range(3):
            lines = [f"A{row},C{row % 3},{row * 7}.50" for row in range(number * 20, number * 20 + 20)]
            folder = root / f"in/orders/{number // 2}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number % 2}.csv").write_text("order_id,customer,amount\n" + "\n".join(lines) + "\n")
        customers = pa.table({"id": ["C1", "C2"], "tier": ["gold", "silver"]})
        pq.write_table(customers, root / "customers.parquet")
        server.put(f"{address}/lake/customers/c.parquet", (root / "customers.parquet").read_bytes())
        workspace = apart.open()
        workspace.apply()
        workspace.activate("closing")
        workspace.close()
        return apart

    def here(self, spark: SparkSession, at: str = NEW) -> RunView:
        """A run in this process."""
        workspace = self.open()
        try:
            run = workspace.run("closing", period=PERIOD, spark=spark, started_at=at)
        finally:
            workspace.close()
        assert run.status == "completed", run.problems
        return run

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """What other tools read, in order."""
        with self.server.copied(f"{self.address}/lake", "closed") as files:
            lake = [row for file in files for row in pq.read_table(file).to_pylist()]
        texts = [line for path in self.root.glob("texts/lines/*/*.csv") for line in path.read_text().splitlines()[1:]]
        gold = DeltaTable(self.root / "gold/totals").to_pyarrow_table().to_pylist()
        tables = {"lake": lake, "gold": gold, "texts": [{"line": line} for line in texts]}
        return {name: sorted(rows, key=str) for name, rows in tables.items()}

    def left(self) -> list[str]:
        """The objects of runs, without the one that marks the folder of all."""
        return [key for key in self.server.keys(f"{self.address}/tmp/dobo") if key]


def point_to(spark: SparkSession, server: ObjectServer) -> None:
    """Tell Hadoop where the server is; a file system is made for each bucket when it is first used."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    for name, value in {
        "endpoint": server.endpoint,
        "endpoint.region": "us-east-1",
        "path.style.access": "true",
        "access.key": KEY,
        "secret.key": SECRET,
    }.items():
        hadoop.set(f"fs.s3a.{name}", value)


@pytest.fixture
def s3a(spark: SparkSession, object_server: ObjectServer) -> SparkSession:
    point_to(spark, object_server)
    return spark


@pytest.fixture(scope="module")
def rates(postgresql_server: Server) -> Iterator[str]:
    """The address of a database with a table."""
    with postgresql_server.fresh_database() as url:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE rates (customer text, rate numeric(5, 2))")
            connection.execute("INSERT INTO rates VALUES ('C0', 1.1), ('C1', 1.2), ('C2', 1.3)")
        yield url


@pytest.fixture
def apart(tmp_path: Path, s3a: SparkSession, object_server: ObjectServer, connect_url: str, rates: str) -> Apart:
    return Apart.in_bucket(tmp_path / "some folder", server=object_server, remote=connect_url, url=rates)


@pytest.mark.parametrize("small", [True, False])
def test_a_run_gives_the_same_as_with_a_folder(
    apart: Apart,
    tmp_path: Path,
    s3a: SparkSession,
    object_server: ObjectServer,
    connect_url: str,
    rates: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    small: bool,
) -> None:
    """Digests, rows and their ids, and Spark sees nothing but objects."""
    if not small:
        monkeypatch.setattr("dobonomodo.engine.size.SMALL_BYTES", 0)
        monkeypatch.setattr("dobonomodo.engine.frames.LEAVES", 2)
    plain = Apart.in_bucket(tmp_path / "plain", server=object_server, remote=connect_url, url=rates, scratch=False)
    expected = plain.here(s3a)
    with addresses_of_spark() as seen:
        found = apart.here(s3a)
    spelled = f"{apart.address.replace('s3://', 's3a://')}/tmp/dobo/{found.id}/"
    assert all(each.startswith(spelled) for each in seen), seen
    assert any("/stage-" in each for each in seen) is not small
    assert {name: (each.rows, each.digest) for name, each in found.outputs.items()} == {
        name: (each.rows, each.digest) for name, each in expected.outputs.items()
    }
    rows = apart.rows()
    assert rows == plain.rows()
    assert {name: len(each) for name, each in rows.items()} == {"lake": 63, "gold": 3, "texts": 63}
    assert len({row["_row_id"] for row in rows["lake"]}) == 63
    assert apart.left() == []

    # Spark itself reads what was published, by the list of files and through `s3a`.
    files = [each.replace("s3://", "s3a://") for each in object_server.list_files(f"{apart.address}/lake", "closed")]
    native = [row.asDict() for row in s3a.read.parquet(*files).select("order_id", "net", "_row_id").collect()]
    wanted = [{name: row[name] for name in ("order_id", "net", "_row_id")} for row in rows["lake"]]
    assert sorted(native, key=str) == sorted(wanted, key=str)


@pytest.fixture(scope="module")
def killed(
    tmp_path_factory: pytest.TempPathFactory,
    spark: SparkSession,
    object_server: ObjectServer,
    connect_url: str,
    rates: str,
) -> tuple[Apart, dict[int, str]]:
    """A workspace after an undisturbed run, and the digests of that."""
    point_to(spark, object_server)
    root = tmp_path_factory.mktemp("apart")
    apart = Apart.in_bucket(root, server=object_server, remote=connect_url, url=rates)
    done = apart.run()
    assert done.returncode == 0, done.stdout
    return apart, apart.digests()


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("failpoint", CHOSEN)
def test_killed_and_resumed(killed: tuple[Apart, dict[int, str]], failpoint: str, *, elsewhere: bool) -> None:
    """Also on a machine that has nothing of what the first one kept."""
    apart, digests = killed
    dead = apart.run(failpoint=failpoint)
    assert dead.returncode == -9, dead.stdout
    run = apart.open().runs()[0].id
    assert any(key.startswith(f"{run}/") for key in apart.left())
    if elsewhere:
        shutil.rmtree(apart.root / ".dobo/runs" / run)
    done = apart.command("resume", run)
    assert done.returncode == 0, done.stdout
    assert data_of(done)["run_id"] == run
    assert apart.digests() == digests
    assert apart.left() == []


def test_what_a_killed_run_left_is_listed_and_removed(killed: tuple[Apart, dict[int, str]]) -> None:
    """Though the machine on which it was killed is gone."""
    apart, _ = killed
    assert apart.run(failpoint="input.pinned").returncode == -9
    assert apart.run(at=OLD, failpoint="output.staged:2").returncode == -9
    unrecorded = "20260101-000000-abcdef"
    store = apart.open().store.id
    for name, owner in ((unrecorded, store), ("20260101-000000-fedcba", "another store"), ("data", None)):
        apart.server.put(f"{apart.address}/tmp/dobo/{name}/inputs/a.parquet", b"12345")
        if owner is not None:
            apart.server.put(f"{apart.address}/tmp/dobo/{name}/store", owner.encode())
    shutil.rmtree(apart.root / ".dobo/runs")
    first, second = apart.open().runs()[1].id, apart.open().runs()[0].id
    assert not [each for each in apart.open().clean(dry_run=True).leftovers if each.run == second], "it can be resumed"
    done = apart.command("resume", second)
    assert done.returncode == 0, done.stdout
    # The run that came next has removed what the other one left.
    assert {key.partition("/")[0] for key in apart.left()} == {"20260101-000000-fedcba", "data"}
    assert first != second
    apart.server.put(f"{apart.address}/tmp/dobo/{first}/outputs/1/40/a.parquet", b"12345")
    listed = apart.open().clean(dry_run=True).leftovers
    assert [(each.kind, each.place, each.run, each.bytes) for each in listed] == [
        ("objects of a run", f"{apart.address}/tmp/dobo/{first}", first, 5)
    ]
    assert apart.open().clean().leftovers == listed
    assert apart.open().clean().leftovers == ()
    assert {key.partition("/")[0] for key in apart.left()} == {"20260101-000000-fedcba", "data"}
    apart.server.remove(f"{apart.address}/tmp/dobo")
