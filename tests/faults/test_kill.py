"""A run that is killed anywhere leaves old or new complete rows, and resuming it gives what an undisturbed run gives."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from dobonomodo.failpoint import FAILPOINTS
from tests.faults.closing import NEW, OLD, Closing, data_of

if TYPE_CHECKING:
    from dobonomodo.runs import RunView
    from tests.postgresql import Server

pytestmark = [pytest.mark.spark, pytest.mark.postgresql]

PER_OUTPUT = {"output.staging", "output.staged", "output.converted", "output.ready"}
PER_PLACE = {"publish.before", "publish.during", "publish.after"}
THREE = (1, 2, 3)
"""The first output is Parquet, the second CSV, the third a table of PostgreSQL. The database is published first."""

CONVERTED = (1, 2)
"""Parquet stays as it is."""


def _numbers(name: str) -> tuple[int, ...]:
    if name == "output.converting":
        return CONVERTED
    return THREE if name in PER_OUTPUT | PER_PLACE else (1,)


EVERYWHERE = [f"{name}:{number}" for name in FAILPOINTS for number in _numbers(name)]
SOME = [
    "run.recorded:1",
    "output.staged:2",
    "output.ready:3",
    "checks.evaluated:1",
    "checks.passed:1",
    "publish.claimed:1",
    "publish.intended:1",
    "publish.during:1",
    "publish.after:1",
    "publish.during:2",
    "publish.naming:1",
    "publish.after:3",
    "output.registered:1",
]
CHOSEN = EVERYWHERE if os.environ.get("DOBO_TEST_ALL") else SOME


@pytest.fixture
def closing(tmp_path: Path, postgresql_server: Server, connect_url: str) -> Iterator[Closing]:
    with postgresql_server.fresh_database() as url:
        yield Closing.make(tmp_path, url=url, remote=connect_url)


@pytest.fixture(scope="session")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory, postgresql_server: Server, connect_url: str
) -> dict[int, str]:
    """The digests of a run that nothing happens to."""
    with postgresql_server.fresh_database() as url:
        closing = Closing.make(tmp_path_factory.mktemp("undisturbed"), url=url, remote=connect_url)
        done = closing.run()
        assert done.returncode == 0, done.stderr
        digests = closing.digests()
        assert closing.run().returncode == 0
        assert closing.digests() == digests
        return digests


def test_every_failpoint_is_there() -> None:
    assert {each.partition(":")[0] for each in EVERYWHERE} == set(FAILPOINTS)
    assert set(SOME) <= set(EVERYWHERE)


@pytest.mark.parametrize("failpoint", CHOSEN)
def test_killed_and_resumed(closing: Closing, undisturbed: dict[int, str], failpoint: str) -> None:
    before = _run_before(closing)
    killed = closing.run(failpoint=failpoint)
    assert killed.returncode == -9, killed.stderr
    latest = _check_that_nothing_is_torn(closing, before)
    if EVERYWHERE.index(failpoint) <= EVERYWHERE.index("publish.during:1"):
        assert closing.clocks() == before, "nothing is published before everything is"
    if latest is not None and latest.status == "completed":
        assert failpoint.startswith("run.finished")
    _go_on(closing, latest)
    _check_the_end(closing, before, undisturbed)


@pytest.mark.parametrize("moment", range(40 if os.environ.get("DOBO_TEST_ALL") else 2))
def test_killed_at_a_random_moment(closing: Closing, undisturbed: dict[int, str], moment: int) -> None:
    """A moment that is different each time the tests run; a run of this workspace takes a few seconds."""
    before = _run_before(closing)
    seconds = random.SystemRandom().uniform(0.5, 8)
    with closing.start("run", "closing", "-p", "2026-01", "--started-at", NEW) as process:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=seconds)
        process.kill()
    _go_on(closing, _check_that_nothing_is_torn(closing, before))
    _check_the_end(closing, before, undisturbed)


def _run_before(closing: Closing) -> dict[str, set[str]]:
    """What readers find after an earlier run."""
    assert closing.run(at=OLD).returncode == 0
    before = closing.clocks()
    assert {kind: len(found) for kind, found in before.items()} == {"lake": 1, "texts": 1, "file": 1, "base": 1}, before
    return before


def _check_that_nothing_is_torn(closing: Closing, before: dict[str, set[str]]) -> RunView | None:
    """Each destination holds the rows of one run, all of them. Gives the run that was killed, if it got that far."""
    for kind, found in closing.clocks().items():
        assert len(found) == 1, f"{kind}: {found}"
        assert found == before[kind] or NEW[:10] in next(iter(found)), f"{kind}: {found}"
    latest = closing.open().runs()[0]
    return latest if latest.started_at.isoformat().startswith(NEW[:10]) else None


def _go_on(closing: Closing, killed: RunView | None) -> None:
    if killed is None:
        assert closing.run().returncode == 0
    elif killed.status != "completed":
        done = closing.command("resume", killed.id)
        assert done.returncode == 0, done.stderr
        assert data_of(done)["run_id"] == killed.id


def _check_the_end(closing: Closing, before: dict[str, set[str]], undisturbed: dict[int, str]) -> None:
    """All is as if nothing had happened, and nothing was published twice."""
    assert closing.digests() == undisturbed
    expected = {kind: {each.replace(OLD[:10], NEW[:10]) for each in found} for kind, found in before.items()}
    assert closing.clocks() == expected
    versions = closing.open().store.list_versions("dataset", "closed")
    assert [version.version for version in versions] == [1, 2]


def test_the_next_run_completes_what_a_killed_one_was_publishing(closing: Closing) -> None:
    """Without Spark, before it does anything else; the killed run is then complete, and the next one replaces its rows."""
    killed = closing.run(at=OLD, failpoint="publish.after:1")
    assert killed.returncode == -9, killed.stderr
    first = closing.open().runs()[0]
    assert (first.status, first.is_publishing) == ("running", True)
    assert closing.command("cancel", first.id).returncode == 1
    done = closing.run()
    assert done.returncode == 0, done.stderr
    completed = closing.open().find_run(first.id)
    assert (completed.status, len(completed.outputs)) == ("completed", 3)
    assert all(NEW[:10] in next(iter(found)) for found in closing.clocks().values())
    versions = closing.open().store.list_versions("dataset", "closed")
    assert [version.version for version in versions] == [1, 2]


def test_two_periods_twice_and_another_project_after_them(closing: Closing) -> None:
    """From CSV files and a table to Parquet, CSV and a table; then the registered table is the input of another project."""
    arguments = ("run", "closing", "-p", "2026-02", "-p", "2026-01", "--started-at", NEW)
    first, second = closing.command(*arguments), closing.command(*arguments)
    assert (first.returncode, second.returncode) == (0, 0), second.stderr
    runs = json.loads(first.stdout)["data"], json.loads(second.stdout)["data"]
    assert [run["period"] for run in runs[0]] == ["2026-01", "2026-02"]
    digests = [[output["digest"] for run in each for output in run["outputs"]] for each in runs]
    assert digests[0] == digests[1]
    assert len(set(digests[0])) == 4
    with psycopg.connect(closing.url, password=closing.password) as connection:
        found = connection.execute("SELECT _run_period, count(*) FROM closed GROUP BY 1 ORDER BY 1").fetchall()
        assert found == [("2026-01", 61), ("2026-02", 61)]
    (closing.root / "projects").mkdir()
    (closing.root / "projects" / "after.yaml").write_text(
        """
project:
  id: after
  input_dataset_id: closed-base
  operations:
    - {seq: 1, type: aggregate, arguments: {group_by: [customer], aggregations: [{column: net, expression: SUM(net)}]}}
    - seq: 2
      type: output
      selector: _operation_seq = 1
      arguments: {destination: {datasource_id: base, table: after}, columns: [customer, net]}
"""
    )
    workspace = closing.open()
    workspace.apply()
    workspace.activate("after")
    done = closing.command("run", "after", "-p", "2026-01")
    assert done.returncode == 0, done.stdout
    with psycopg.connect(closing.url, password=closing.password) as connection:
        own = connection.execute("SELECT sum(net) FROM closed WHERE order_id IS NOT NULL AND _run_period = '2026-01'")
        later = connection.execute("SELECT sum(net) FROM after")
        assert own.fetchone() == later.fetchone()


PLANNING = """
project:
  id: planning
  input_dataset_id: orders
  parameters: {uplift: {type: "decimal(5,4)", default: 0.03}}
  operations:
    - seq: 10
      type: update
      arguments:
        joins: [{alias: later, dataset_id: orders, period: {from: 2026-02, to: 2026-02}, on: orders.order_id = later.order_id}]
        assignments:
          - {column: planned, expression: "ROUND(later.amount * (1 + param.uplift), 2)"}
          - {column: share, expression: "ROUND(amount / SUM(amount) OVER (PARTITION BY customer), 4)"}
    - seq: 20
      type: allocate
      selector: order_id = "A5"
      arguments:
        amount: planned
        receivers: {dataset_id: customers}
        driver: IF(receivers.tier = "gold", 3, 1)
        set: [{column: customer, expression: receivers.id}]
        round: 2
    - {seq: 30, type: output, arguments: {destination: {datasource_id: lake, table: planned}}}
    - {seq: 40, type: output, arguments: {destination: {datasource_id: base, table: planned}}}
"""


def test_parameters_other_periods_windows_and_parts_are_resumed_and_replayed(closing: Closing) -> None:
    """From a table and files to a table and files, over Connect."""
    (closing.root / "projects").mkdir()
    (closing.root / "projects" / "planning.yaml").write_text(PLANNING)
    workspace = closing.open()
    workspace.apply()
    workspace.activate("planning")
    run = ("run", "planning", "-p", "2026-01", "--set", "uplift=0.05", "--started-at", NEW)
    assert closing.command(*run, failpoint="output.ready").returncode == -9
    killed = closing.open().runs()[0]
    done = closing.command("resume", killed.id)
    assert (done.returncode, data_of(done)["run_id"]) == (0, killed.id), done.stderr
    with psycopg.connect(closing.url, password=closing.password) as connection:
        found = connection.execute(
            "SELECT customer, planned FROM planned WHERE order_id = 'A5' AND NOT _deleted ORDER BY customer"
        ).fetchall()
    # 35.50 * 1.05 = 37.28, three quarters of it to C1, and one to C2.
    assert [(customer, str(planned)) for customer, planned in found] == [("C1", "27.96"), ("C2", "9.32")]
    resumed = closing.digests()
    assert closing.command(*run).returncode == 0
    assert closing.digests() == resumed
    replayed = closing.command("verify", killed.id, "--replay")
    assert replayed.returncode == 0, replayed.stderr


def test_a_second_run_is_refused_while_one_is_at_work(closing: Closing) -> None:
    with closing.waiting("output.staging") as first:
        second = closing.run()
        assert second.returncode == 4, second.stderr
        assert "RUN_HELD" in second.stdout
        assert str(first.pid) in second.stdout
        running = closing.open().runs(status="running")[0]
        first.kill()
    assert closing.command("cancel", running.id).returncode == 0
    assert closing.open().find_run(running.id).status == "cancelled"
    assert closing.command("resume", running.id).returncode == 1
    assert closing.run().returncode == 0


@pytest.mark.parametrize("failpoint", ["output.staged:1", "output.converting:1", "publish.claimed:1"])
def test_a_suspended_run_does_not_publish_over_its_successor(closing: Closing, failpoint: str) -> None:
    """A computer that sleeps: the whole process stands still beyond its lease, its heartbeat too."""
    short = {"DOBO_LEASE_SECONDS": "2"}
    with closing.waiting(failpoint, at=OLD, **short) as late:
        _suspend(late, closing.root / ".dobo" / "store.db")
        done = closing.run(**short)
        assert done.returncode == 0, done.stdout
        after = closing.clocks()
        closing.go()
        late.send_signal(signal.SIGCONT)
        shown, _ = late.communicate()
    assert late.returncode == 4, shown
    assert [each["code"] for each in json.loads(shown)["problems"] if each["severity"] == "error"] == ["LEASE_LOST"]
    assert closing.clocks() == after
    assert all(NEW[:10] in next(iter(found)) for found in after.values())
    lost = _find_old(closing)
    assert (lost.status, lost.problems[0].code) == ("failed", "LEASE_LOST")


@pytest.mark.parametrize("failpoint", ["publish.before:1", "publish.before:2"])
def test_the_successor_of_a_run_that_was_suspended_while_it_published(closing: Closing, failpoint: str) -> None:
    """It completes the publication, then publishes its own; the suspended run finds itself complete."""
    short = {"DOBO_LEASE_SECONDS": "2"}
    with closing.waiting(failpoint, at=OLD, **short) as late:
        _suspend(late, closing.root / ".dobo" / "store.db")
        done = closing.run(**short)
        assert done.returncode == 0, done.stdout
        after = closing.clocks()
        assert _find_old(closing).status == "completed"
        closing.go()
        late.send_signal(signal.SIGCONT)
        shown, _ = late.communicate()
    assert late.returncode == 0, shown
    assert closing.clocks() == after
    assert all(NEW[:10] in next(iter(found)) for found in after.values())
    completed = _find_old(closing)
    assert (completed.status, len(completed.outputs), completed.problems) == ("completed", 3, ())
    versions = closing.open().store.list_versions("dataset", "closed")
    assert [version.version for version in versions] == [1, 2]


def _find_old(closing: Closing) -> RunView:
    return next(run for run in closing.open().runs() if run.started_at.isoformat().startswith(OLD[:10]))


def _suspend(process: subprocess.Popen[str], store: Path) -> None:
    """Stop a process at a moment at which its heartbeat does not hold the lock of the store."""
    while True:
        process.send_signal(signal.SIGSTOP)
        # The signal is sent at once, but each thread stops a little later.
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        try:
            with contextlib.closing(sqlite3.connect(store, timeout=0.1, isolation_level=None)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                return
        except sqlite3.OperationalError:
            process.send_signal(signal.SIGCONT)


def test_changed_inputs_are_not_resumed(closing: Closing) -> None:
    assert closing.run(failpoint="output.staged:2").returncode == -9
    killed = closing.open().runs()[0]
    path = closing.root / "data/in/orders/2026-01.csv"
    path.write_text(path.read_text().replace("7.5", "8.5"))
    refused = closing.command("resume", killed.id)
    assert refused.returncode == 1
    assert "INPUT_CHANGED" in refused.stdout
    assert str(path) in refused.stdout


def test_an_input_that_changes_during_the_run_fails_it(closing: Closing) -> None:
    before = _run_before(closing)
    with closing.waiting("output.staged") as run:
        path = closing.root / "data/in/orders/2026-01.csv"
        path.write_text(path.read_text().replace("7.5", "8.5"))
        closing.go()
        shown, _ = run.communicate()
    assert run.returncode == 1
    assert '"INPUT_CHANGED"' in shown
    assert closing.clocks() == before


@pytest.mark.parametrize("failpoint", ["input.extracting:2", "output.converting:2", "publish.during:1"])
def test_the_database_stops(
    closing: Closing, undisturbed: dict[int, str], postgresql_server: Server, failpoint: str
) -> None:
    """While its rows are read, while rows are staged in it, and before it can answer that they are published."""
    before = _run_before(closing)
    with closing.waiting(failpoint) as run:
        postgresql_server.stop()
        try:
            closing.go()
            shown, _ = run.communicate()
        finally:
            postgresql_server.start()
    assert run.returncode == 6, shown
    (problem,) = (each for each in json.loads(shown)["problems"] if each["severity"] == "error")
    assert problem["code"] == ("DATA_LOAD" if failpoint.startswith("input") else "OUTPUT_WRITE")
    assert closing.password not in shown
    assert closing.clocks()["base"] == before["base"]
    failed = _check_that_nothing_is_torn(closing, before)
    assert failed is not None
    assert failed.status == "failed"
    if failpoint.startswith("input"):
        # A run that never had its inputs has nothing to continue; a new one begins.
        assert "RESUME_REFUSED" in closing.command("resume", failed.id).stdout
    _go_on(closing, None if failpoint.startswith("input") else failed)
    _check_the_end(closing, before, undisturbed)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupting_ends_cleanly(closing: Closing, number: int, code: int) -> None:
    with closing.waiting("output.staging") as run:
        run.send_signal(number)
        run.communicate()
    assert run.returncode == code
    stopped = closing.open().runs()[0]
    assert stopped.status == "failed"
    assert stopped.problems[0].code == "RUN_INTERRUPTED"
    assert closing.command("resume", stopped.id).returncode == 0


def test_the_password_is_nowhere(closing: Closing) -> None:
    done = closing.run()
    assert done.returncode == 0
    report = closing.command("runs", "report", closing.open().runs()[0].id)
    assert report.returncode == 0
    shown = [done.stdout, done.stderr, report.stdout]
    shown += [
        path.read_bytes().decode("utf-8", "replace") for path in (closing.root / ".dobo").rglob("*") if path.is_file()
    ]
    assert len(shown) > 4
    assert not any(closing.password in text for text in shown)
