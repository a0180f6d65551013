"""A REST catalog: all tables of a run are changed by one transaction where the catalog offers that, and what if it does not go well."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dobonomodo.problems.run import DataLoad, OutputWrite
from dobonomodo.storage import Outputs, WrittenOutput
from dobonomodo.storage.iceberg import AT_ONCE
from tests.contract.lake_tables import Ready, check_replaced_fenced_and_found, see_all, stage_several
from tests.contract.storages import Storage, arrow_table, failure, open_catalog, open_source
from tests.contract.test_storages import SIMPLE, rows
from tests.native.rest_catalog import COMMIT, Forward, Proxy, running_catalog
from tests.object_server import KEY, SECRET, ObjectServer
from tests.world import MONTHS, PERIOD, Folder

pytestmark = pytest.mark.native

TABLES = ("one", "two", "three")
Answer = tuple[int, bytes]


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    with running_catalog(tmp_path, f"file://{tmp_path}/warehouse") as address:
        yield Proxy(address)


@pytest.fixture
def rest(tmp_path: Path, proxy: Proxy) -> Iterator[Storage]:
    with proxy.running() as address:
        yield Storage(tmp_path, open_source("iceberg", uri=address, warehouse="warehouse"))


def make_ready(storage: Storage, outputs: Outputs, value: str, tables: tuple[str, ...] = TABLES) -> Ready:
    """Outputs to several tables that are claimed, and ready to be published."""
    ready = stage_several(storage, outputs, value, tables)
    outputs.claim([each[0] for each in ready])
    return ready


def put(storage: Storage, value: str, *, period: str = PERIOD, fence: int = 1) -> None:
    outputs = storage.outputs(run=f"run-{value}", period=period, fence=fence)
    outputs.publish(make_ready(storage, outputs, value))


def see(storage: Storage) -> dict[str, list[str]]:
    return see_all(storage, TABLES)


def everywhere(*values: str) -> dict[str, list[str]]:
    return {table: list(values) for table in TABLES}


def notes(storage: Storage, table: str) -> list[dict[str, Any]]:
    """What the snapshots of a table note of outputs."""
    found = open_catalog(storage).load_table(("default", table)).snapshots()
    summaries = [each.summary.additional_properties for each in found if each.summary is not None]
    return [each for each in summaries if "dobo.outputs" in each]


def test_what_holds_for_lake_tables(rest: Storage) -> None:
    check_replaced_fenced_and_found(rest)


def test_all_tables_are_changed_by_one_transaction(rest: Storage, proxy: Proxy) -> None:
    put(rest, "old")
    outputs = rest.outputs(run="run-new", fence=2)
    ready = make_ready(rest, outputs, "new")
    proxy.commits.clear()
    outputs.publish(ready)
    assert proxy.commits == [COMMIT]
    assert see(rest) == everywhere("new")
    found = [outputs.find_commit(output) for output, *_ in ready]
    assert [each and each.digest for each in found] == ["new"] * 3
    for table in TABLES:
        assert json.loads(notes(rest, table)[-1]["dobo.together"]) == [f"default.{each}" for each in TABLES]
    outputs.publish(ready)
    assert proxy.commits == [COMMIT]


def test_two_outputs_to_one_of_the_tables(rest: Storage, proxy: Proxy) -> None:
    outputs = rest.outputs()
    ready = make_ready(rest, outputs, "a", ("one", "two", "one"))
    proxy.commits.clear()
    outputs.publish(ready)
    assert proxy.commits == [COMMIT]
    assert [len(rest.see(SIMPLE, table)) for table in ("one", "two")] == [1, 1]


def test_one_table_needs_no_such_transaction(rest: Storage, proxy: Proxy) -> None:
    outputs = rest.outputs()
    ready = make_ready(rest, outputs, "a", ("one",))
    proxy.commits.clear()
    outputs.publish(ready)
    assert [path.rpartition("/")[2] for path in proxy.commits] == ["one"]


def test_a_catalog_that_does_not_offer_it_is_given_one_table_after_the_other(rest: Storage, proxy: Proxy) -> None:
    proxy.hides = True
    outputs = rest.outputs()
    ready = make_ready(rest, outputs, "a")
    proxy.commits.clear()
    outputs.publish(ready)
    assert [path.rpartition("/")[2] for path in proxy.commits] == list(TABLES)
    assert see(rest) == everywhere("a")
    assert "dobo.together" not in notes(rest, "one")[0]


class TestOthersAreFaster:
    def test_nothing_is_changed_if_one_table_has_moved_on(self, rest: Storage, proxy: Proxy) -> None:
        """Another period is published in between: the catalog refuses all, then the run looks again."""
        put(rest, "old")
        seen = []

        def meanwhile(body: bytes, forward: Forward) -> Answer | None:
            other = rest.outputs(run="run-other", period="2026-02")
            other.publish(make_ready(rest, other, "other", ("two",)))
            answer = forward(body)
            seen.append((answer and answer[0], see(rest)))
            return answer

        proxy.on_commit = meanwhile
        put(rest, "new", fence=2)
        assert seen == [(409, {**everywhere("old"), "two": ["old", "other"]})]
        assert see(rest) == {**everywhere("new"), "two": ["new", "other"]}

    def test_a_run_that_lost_its_lease_changes_no_table(self, rest: Storage, proxy: Proxy) -> None:
        put(rest, "old")

        def meanwhile(body: bytes, forward: Forward) -> Answer | None:
            # Of the tables of the late run, the next one has claimed the last.
            make_ready(rest, rest.outputs(run="run-next", fence=3), "next", ("three",))
            return forward(body)

        proxy.on_commit = meanwhile
        assert failure(lambda: put(rest, "late", fence=2)).problem.code == "LEASE_LOST"
        assert see(rest) == everywhere("old")
        put(rest, "next", fence=3)
        assert see(rest) == everywhere("next")

    def test_periods_at_the_same_moment_are_all_there(self, rest: Storage) -> None:
        periods = ["2026-01", "2026-02", "2026-03", "2026-04"]
        faults: list[BaseException] = []

        def publish(period: str) -> None:
            try:
                for number in range(3):
                    put(rest, f"{period}-{number}", period=period, fence=number + 1)
            except BaseException as fault:  # noqa: BLE001  it is raised where it is seen
                faults.append(fault)

        threads = [threading.Thread(target=partial(publish, each)) for each in periods]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert faults == []
        assert see(rest) == everywhere(*(f"{each}-2" for each in periods))


def lose_request(body: bytes, forward: Forward) -> None:
    del body, forward


def lose_answer(body: bytes, forward: Forward) -> None:
    answer = forward(body)
    assert answer is not None
    assert answer[0] < 300


def answer_500(body: bytes, forward: Forward) -> Answer | None:
    forward(body)
    return 500, json.dumps({"error": {"message": "oops", "type": "ServerError", "code": 500}}).encode()


def part_of(status: int) -> Callable[[bytes, Forward], Answer | None]:
    """A catalog that commits one table after the other, and stops after the first."""

    def commit(body: bytes, forward: Forward) -> Answer | None:
        changes = json.loads(body)["table-changes"]
        answer = forward(json.dumps({"table-changes": changes[:1]}).encode())
        assert answer is not None
        assert answer[0] < 300
        return status, json.dumps({"error": {"message": "later", "type": "CommitFailed", "code": status}}).encode()

    return commit


class TestAnswersThatAreLost:
    @pytest.mark.parametrize(("lose", "again"), [(lose_request, [COMMIT]), (lose_answer, []), (answer_500, [])])
    def test_the_tables_tell_whether_it_took_place(
        self, rest: Storage, proxy: Proxy, lose: Callable[[bytes, Forward], Answer | None], again: list[str]
    ) -> None:
        put(rest, "old")
        outputs = rest.outputs(run="run-new", fence=2)
        ready = make_ready(rest, outputs, "new")
        proxy.on_commit = lose
        failed = failure(lambda: outputs.publish(ready))
        assert isinstance(failed.problem, OutputWrite)
        assert failed.retry_helps
        assert see(rest) == everywhere("old" if again else "new")
        proxy.commits.clear()
        later = rest.outputs(run="run-new", fence=3)
        later.claim([each[0] for each in ready])
        proxy.commits.clear()
        later.publish(ready)
        assert proxy.commits == again
        assert see(rest) == everywhere("new")
        assert [len(notes(rest, table)) for table in TABLES] == [2, 2, 2]

    @pytest.mark.parametrize("status", [200, 409])
    def test_a_catalog_that_commits_a_part_is_given_the_rest(self, rest: Storage, proxy: Proxy, status: int) -> None:
        put(rest, "old")
        proxy.on_commit = part_of(status)
        put(rest, "new", fence=2)
        assert see(rest) == everywhere("new")
        assert [len(notes(rest, table)) for table in TABLES] == [2, 2, 2]

    def test_a_catalog_that_does_not_answer(self, tmp_path: Path) -> None:
        storage = Storage(tmp_path, open_source("iceberg", uri="http://127.0.0.1:9", warehouse="warehouse"))
        reading = failure(lambda: storage.extract(storage.use(SIMPLE)))
        assert isinstance(reading.problem, DataLoad)
        writing = failure(lambda: storage.outputs().check(WrittenOutput(10, storage.write(SIMPLE), SIMPLE)))
        assert isinstance(writing.problem, OutputWrite)
        assert (reading.retry_helps, writing.retry_helps) == (True, True)


def test_tables_in_an_object_store(
    tmp_path: Path, object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server of the catalog writes the metadata of the tables there, we their files."""
    warehouse = f"{object_server.fresh_bucket()}/some/data"
    settings = {
        "IO__IMPL": "org.apache.iceberg.aws.s3.S3FileIO",
        "S3_ENDPOINT": object_server.endpoint,
        "S3_PATH__STYLE__ACCESS": "true",
    }
    for name, value in settings.items():
        monkeypatch.setenv(f"CATALOG_{name}", value)
    for name, value in {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    with running_catalog(tmp_path, warehouse) as address:
        source = open_source("iceberg", uri=address, warehouse=warehouse)
        storage = Storage(tmp_path, source, server=object_server)
        put(storage, "old")
        put(storage, "new", fence=2)
        assert see(storage) == everywhere("new")


DEFINITIONS = """
datasource: {id: plain, type: parquet, options: {path_prefix: plain}}
---
datasource: {id: ice, type: iceberg, options: {uri: "ADDRESS", warehouse: warehouse}}
---
resolver: {id: files, is_default: true, rules: [{strategy: {type: path, datasource_id: plain, path: "{{table_name}}.parquet"}}]}
---
dataset: {id: lines, main_table: {name: lines, columns: [{name: id, type: integer}, {name: value, type: string}]}}
---
project:
  id: close
  input_dataset_id: lines
  operations:
    - {seq: 10, type: update, arguments: {assignments: [{column: value, expression: 'TEXT(NOW(), "HH:mm")'}]}}
    - {seq: 20, type: output, arguments: {destination: {datasource_id: ice, table: one}, columns: [id, value]}}
    - {seq: 30, type: output, arguments: {destination: {datasource_id: ice, table: two}, columns: [id, value]}}
    - {seq: 40, type: output, arguments: {destination: {datasource_id: ice, table: three}, columns: [id, value]}}
"""


@pytest.mark.spark
def test_a_run_that_is_killed_leaves_all_tables_old_or_all_new(
    rest: Storage, proxy: Proxy, tmp_path: Path, connect_url: str
) -> None:
    (tmp_path / "plain").mkdir()
    pq.write_table(arrow_table(SIMPLE, rows("a", "b")), tmp_path / "plain/lines.parquet")
    folder = Folder.make(tmp_path, MONTHS, DEFINITIONS.replace("ADDRESS", str(rest.source.options["uri"])))
    folder.activate("close").close()

    def dobo(*arguments: str, failpoint: str = "") -> int:
        command = [sys.executable, "-m", "dobonomodo.cli", "-C", str(tmp_path), *arguments, "--remote", connect_url]
        done = subprocess.run(command, env={**os.environ, "DOBO_FAILPOINT": failpoint}, capture_output=True)
        return done.returncode

    assert dobo("run", "close", "-p", PERIOD, "--started-at", "2026-02-03T08:00:00Z") == 0
    places = ("publish.claimed", "publish.intended", "publish.before", "publish.during", "publish.after")
    for minute, place in enumerate(places, 1):
        before, at = see(rest), f"2026-02-03T08:0{minute}:00Z"
        assert dobo("run", "close", "-p", PERIOD, "--started-at", at, failpoint=place) == -9
        (now,) = {tuple(values) for values in see(rest).values()}
        assert (list(now) == before["one"]) == (place != "publish.after")
        proxy.commits.clear()
        assert dobo("resume", "latest") == 0
        assert proxy.commits.count(COMMIT) == (place != "publish.after")
        (after,) = {tuple(values) for values in see(rest).values()}
        assert after == (f"08:0{minute}",) * 2
        assert [len(notes(rest, table)) for table in TABLES] == [minute + 1] * 3
    workspace = folder.open()
    assert AT_ONCE in workspace.runs()[0].snapshot["together"]["means"]
    assert AT_ONCE in str(workspace.plan("close", period=PERIOD).to_dict()["together"])
    workspace.close()
