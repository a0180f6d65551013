"""A run that was suspended beyond its lease publishes nothing over the run that took over, whatever it writes to.

Runner, store, storage and records are real; only Spark is missing, whose files are made here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dobonomodo import failpoint
from dobonomodo.runs import Runner, RunSpec, RunView
from dobonomodo.runs.lease import Pace
from dobonomodo.runs.runner import Computed, Who
from dobonomodo.storage import StagedRows, WrittenOutput
from dobonomodo.store import Run, Store
from dobonomodo.workspace.running import RunData
from tests.contract.storages import TABLES, Storage, failure, open_source, publish
from tests.contract.test_storages import (
    FILES_IN_HDFS,
    FILES_IN_S3,
    IN_OBJECT_STORES,
    KINDS,
    SIMPLE,
    database,
    make_storage,
    rows,
    server_for,
)
from tests.postgresql import PASSWORD
from tests.searching import tries
from tests.world import FILES, JANUARY, LAKE, MONTHS, PERIOD, EngineByHand, Folder, new_store

if TYPE_CHECKING:
    pass

__all__ = ["database"]

SUSPENDED = Pace(lease=0.2, heartbeat=3600)
"""A suspended process renews nothing."""
AWAKE = Pace(lease=0.2, heartbeat=0.02)

SOURCE = "datasource: {{id: out, type: {kind}, options: {options}, credential_ref: {credential}}}"
PROJECT = """
dataset: {id: lines, main_table: {name: lines, columns: [{name: id, type: integer}, {name: value, type: string}]}}
---
project:
  id: close
  input_dataset_id: lines
  operations:
    - {seq: 10, type: output, arguments: {destination: {datasource_id: out, table: closedFILE}, columns: [id, value]}}
"""


class ByHand(RunData):
    """The data of a run, whose rows say which run they are of."""

    def stage(self, output: Computed) -> StagedRows:
        start = self._outputs.target(self._written[10]).start()
        folder = Path(start or self._outputs._folder / "10")
        folder.mkdir(parents=True)
        table = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "value": [self._folder.name] * 3})
        pq.write_table(table, folder / "part-0.parquet")
        failpoint.reach("output.staged")
        return self._outputs.staged_in(folder)


class World:
    """A workspace with one output, and runs that write to it."""

    def __init__(self, storage: Storage, store: Store) -> None:
        self.storage, self.store = storage, store
        options = storage.source.options
        unused = "null" if storage.is_remote else "env://NOTHING"
        source = SOURCE.format(kind=storage.kind, options=options, credential=storage.source.credential_ref or unused)
        file = ', file: "closed-{{period}}.xlsx"' if storage.kind == "excel" else ""
        project = PROJECT.replace("FILE", file)
        folder = Folder.make(
            storage.root, LAKE.replace("path_prefix: data", "path_prefix: in"), source, FILES, MONTHS, project
        )
        (storage.root / "in").mkdir()
        pq.write_table(pa.table({"id": [1], "value": ["x"]}), storage.root / "in/lines.parquet")
        planned = folder.open().plan("close", period=PERIOD, draft=True)
        self._planned = RunSpec(
            planned.plan, JANUARY, JANUARY.period_start, planned.definitions.datasources, "active", None
        )

    def _open(self, run: Run) -> tuple[RunSpec, RunData]:
        return self._planned, self._data(run.id)

    def _data(self, run_id: str) -> ByHand:
        return ByHand(
            root=self.storage.root,
            run=run_id,
            planned=self._planned,
            registry=lambda: self.store,
            store_id=self.store.id,
            sandbox=None,
            session=self.storage.session,
        )

    def run(self, run_id: str, pace: Pace) -> RunView:
        data = self._data(run_id)
        snapshot = {"project": {"status": "active"}, "started_at": "2026-02-03T00:00:00+00:00"}
        runner = Runner(self.store, who=Who("ann", run_id), open_data=self._open, pace=pace)
        return runner.start(run_id, self._planned, data, EngineByHand, version=1, snapshot=lambda _: snapshot)

    def see(self) -> set[str]:
        """The runs whose rows readers find."""
        return {row["value"] for row in self.storage.see(SIMPLE, "closed")}


@pytest.fixture(params=[*KINDS, FILES_IN_S3[0], IN_OBJECT_STORES[-1], FILES_IN_HDFS[0]])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    url = request.getfixturevalue("database") if request.param == "database" else None
    session = partial(request.getfixturevalue, "spark")
    storage = make_storage(request.param, tmp_path, url, server_for(request), session)
    with closing(new_store(tmp_path)) as store:
        yield World(storage, store)


@contextmanager
def suspended(place: str, path: Path, work: Callable[[], RunView]) -> Iterator[list[RunView]]:
    """A run that waits at a failpoint while the block runs; its end is in the list afterwards."""
    ended: list[RunView] = []
    failpoint._reached.clear()
    os.environ[failpoint.VARIABLE] = f"{place}@{path}"
    thread = threading.Thread(target=lambda: ended.append(work()))
    thread.start()
    try:
        while thread.is_alive() and not Path(f"{path}.waiting").exists():
            thread.join(0.002)
        assert thread.is_alive(), "the run did not come to the failpoint"
        yield ended
    finally:
        path.touch()
        thread.join()
        del os.environ[failpoint.VARIABLE]


WAITING = [
    "output.staged",
    "output.converting",
    "output.ready",
    "publish.claimed",
    "publish.intended",
    "publish.before",
]
SOME = {"output.ready", "publish.before"}
INTENDED = {"publish.intended", "publish.before"}
"""What a run was publishing, its successor completes before it publishes itself."""


@pytest.mark.search
@pytest.mark.parametrize("place", WAITING)
def test_a_suspended_run_does_not_publish_over_its_successor(
    world: World, place: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    is_other = (world.storage.kind, world.storage.is_remote) == ("iceberg", True) or world.storage.kind == "table"
    if is_other and place not in SOME and not os.environ.get("DOBO_TEST_ALL"):
        pytest.skip("the same target as on this machine, or many jobs of Spark; all with DOBO_TEST_ALL")
    if place == "output.converting" and world.storage.kind in ("parquet", "excel", "delta", "table"):
        place = "output.converted"
    ended_as = ("completed", []) if place in INTENDED else ("failed", ["LEASE_LOST"])
    count = tries(sample=2, full=100)
    for number in range(count):
        late, next_one = f"late-{number}", f"next-{number}"
        with suspended(place, tmp_path / f"go-{number}", partial(world.run, late, SUSPENDED)) as ended:
            assert world.run(next_one, AWAKE).status == "completed"
            assert world.see() == {next_one}
        (view,) = ended
        assert (view.status, [problem.code for problem in view.problems]) == ended_as
        record = world.store.get_run(late)
        assert record is not None
        assert (record.status, [problem["code"] for problem in record.progress["problems"]]) == ended_as
        assert world.see() == {next_one}
    record_property("suspensions", count)


def test_a_destination_refuses_a_lower_number_of_the_same_key_only(world: World) -> None:
    storage = world.storage

    def put(value: str, *, fence: int, **more: Any) -> None:
        outputs = storage.outputs(run=f"run-{value}", fence=fence)
        output = WrittenOutput(10, storage.write(SIMPLE), SIMPLE)
        if more:
            outputs.fence = replace(outputs.fence, **more)
        table = pa.table({"id": pa.array([1], pa.int64()), "value": [value]})
        staged = storage.stage_by_hand(outputs, table, output)
        publish(outputs, output, staged, rows=1, digest=value)

    put("a", fence=5)
    lost = failure(lambda: put("b", fence=4))
    assert (lost.problem.code, getattr(lost.problem, "fence", None), lost.retry_helps) == ("LEASE_LOST", 4, False)
    assert storage.see(SIMPLE) == rows("a")
    put("c", fence=5)
    put("d", fence=1, store="another store")
    put("e", fence=1, project="another project")
    assert storage.see(SIMPLE) == rows("e")
    put("h", fence=1, period="another period")
    assert storage.see(SIMPLE) == rows("h")
    assert failure(lambda: put("f", fence=4)).problem.code == "LEASE_LOST"
    put("g", fence=6)
    assert storage.see(SIMPLE) == rows("g")


def test_an_earlier_attempt_at_the_same_run_does_not_touch_what_a_later_one_published(world: World) -> None:
    """Both attempts have the same run and the same operation, so they would write into the same place."""
    storage = world.storage
    output = WrittenOutput(10, storage.write(SIMPLE), SIMPLE)

    def stage(value: str, fence: int) -> tuple[Any, Any]:
        outputs = storage.outputs(run="run-1", fence=fence)
        table = pa.table({"id": pa.array([1], pa.int64()), "value": [value]})
        return outputs, storage.stage_by_hand(outputs, table, output)

    early, staged_early = stage("early", 1)
    late, staged_late = stage("late", 2)
    publish(late, output, staged_late, rows=1, digest="late")
    assert failure(lambda: publish(early, output, staged_early, rows=1, digest="early")).problem.code == "LEASE_LOST"
    stage("early", 1)
    assert storage.see(SIMPLE) == rows("late")
    location: Any = storage.outputs(run="run-1", fence=3).stored(output).document()
    if not storage.lists_files:
        return
    if storage.kind in TABLES:
        assert {each["path"].split("/")[-2] for each in location["files"]} == {"dobo-run-1-10-2"}
    else:
        assert str(location["data"]).endswith("run-1-10-2/data")


@pytest.mark.postgresql
def test_one_table_under_two_spellings_is_one_table(tmp_path: Path, database: str) -> None:
    """Named with its schema and without: one lock, one record, one number."""
    (tmp_path / "password").write_text(PASSWORD + "\n")
    bare = open_source("database", url=database.replace(f":{PASSWORD}", ""))
    full = open_source("database", url=database.replace(f":{PASSWORD}", ""), schema="public")
    storages = [Storage(tmp_path, source, database) for source in (bare, full)]
    for number, storage in enumerate([*storages, *storages], 1):
        outputs = storage.outputs(run=f"run-{number}", fence=number)
        output = WrittenOutput(10, storage.write(SIMPLE, table="spelled"), SIMPLE)
        table = pa.table({"id": pa.array([1], pa.int64()), "value": [str(number)]})
        staged = storage.stage_by_hand(outputs, table, output)
        publish(outputs, output, staged, rows=1, digest=str(number))
        stale = storages[number % 2].outputs(run="stale", fence=number - 1)
        staged = storage.stage_by_hand(stale, table, output)
        lost = failure(partial(publish, stale, output, staged, rows=1, digest="x"))
        assert lost.problem.code == "LEASE_LOST"
        assert storages[1].see(SIMPLE, "spelled") == rows(str(number))
    with storages[1].connect() as connection:
        held = connection.execute("SELECT count(*) FROM dobo_fence WHERE destination = 'spelled'").fetchone()
    assert held == (1,)


@pytest.mark.postgresql
def test_publications_under_two_spellings_wait_for_each_other(tmp_path: Path, database: str) -> None:
    """While one spelling is being published, the other cannot be; else both would find nothing to replace."""
    (tmp_path / "password").write_text(PASSWORD + "\n")
    url = database.replace(f":{PASSWORD}", "")
    sources = [open_source("database", url=url), open_source("database", url=url, schema="public")]
    storages = [Storage(tmp_path, source, database) for source in sources]
    table = pa.table({"id": pa.array([1], pa.int64()), "value": ["x"]})
    threads = []
    for turn in range(tries(sample=3, full=30)):
        for number, storage in enumerate(storages):
            outputs = storage.outputs(run=f"turn-{turn}-{number}")
            outputs.fence = replace(outputs.fence, store=f"store {number}")
            output = WrittenOutput(10, storage.write(SIMPLE, table=f"twice_{turn}"), SIMPLE)
            staged = storage.stage_by_hand(outputs, table, output)
            threads.append(threading.Thread(target=partial(publish, outputs, output, staged, rows=1, digest="x")))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        threads.clear()
        assert storages[1].see(SIMPLE, f"twice_{turn}") == rows("x")
