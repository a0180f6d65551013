"""A run that is killed anywhere leaves old or new complete rows, and resuming it gives what an undisturbed run gives."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from dobonomodo.problems.failpoint import FAILPOINTS
from tests.faults.closing import NEW, OLD, Closing, data_of

if TYPE_CHECKING:
    from tests.postgresql import Server

pytestmark = [pytest.mark.spark, pytest.mark.postgresql]

PER_OUTPUT = {name for name in FAILPOINTS if name.startswith(("output.", "publish."))}
OUTPUTS = (1, 2, 3)
"""The first output is Parquet, the second CSV, the third a table of PostgreSQL."""

EVERYWHERE = [f"{name}:{number}" for name in FAILPOINTS for number in (OUTPUTS if name in PER_OUTPUT else (1,))]
SOME = [
    "run.recorded:1",
    "output.staged:1",
    "publish.during:1",
    "publish.after:1",
    "publish.during:2",
    "output.registered:3",
    "publish.during:3",
    "publish.after:3",
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
    assert closing.run(at=OLD).returncode == 0
    before = closing.clocks()
    assert {kind: len(found) for kind, found in before.items()} == {"lake": 1, "texts": 1, "base": 1}, before

    killed = closing.run(failpoint=failpoint)
    assert killed.returncode == -9, killed.stderr

    for kind, found in closing.clocks().items():
        assert len(found) == 1, f"{kind}: {found}"
        assert found == before[kind] or NEW[:10] in next(iter(found)), f"{kind}: {found}"
    latest = closing.open().runs()[0]
    recorded = latest.started_at.isoformat().startswith(NEW[:10])
    if recorded and latest.status == "completed":
        assert failpoint.startswith("run.finished")
    elif recorded:
        done = closing.command("resume", latest.id)
        assert done.returncode == 0, done.stderr
        assert data_of(done)["run_id"] == latest.id
    else:
        assert closing.run().returncode == 0
    assert closing.digests() == undisturbed
    assert {
        kind: {each.replace(OLD[:10], NEW[:10]) for each in found} for kind, found in before.items()
    } == closing.clocks()
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


def test_a_second_run_is_refused_while_one_is_at_work(closing: Closing) -> None:
    import subprocess
    import sys
    import time

    variables = {**os.environ, "DOBO_FAILPOINT": f"output.staging@{closing.root / 'go'}"}
    command = [sys.executable, "-m", "dobonomodo.cli", "-C", str(closing.root), "run", "closing", "-p", "2026-01"]
    with subprocess.Popen([*command, "--remote", closing.remote], env=variables, stderr=subprocess.PIPE) as first:
        for _ in range(600):
            if any(run.status == "running" for run in closing.open().runs()):
                break
            time.sleep(0.1)
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
    import subprocess
    import sys
    import time

    assert closing.run(at=OLD).returncode == 0
    before = closing.clocks()
    go = closing.root / "go"
    command = [sys.executable, "-m", "dobonomodo.cli", "-C", str(closing.root), "run", "closing", "-p", "2026-01"]
    variables = {**os.environ, "DOBO_FAILPOINT": f"output.staged@{go}"}
    with subprocess.Popen(
        [*command, "--remote", closing.remote, "--json"], env=variables, stdout=subprocess.PIPE
    ) as run:
        hidden = closing.root / "data/lake/.dobo-data/closed"
        for _ in range(1200):
            if len({path.parent for path in hidden.glob("*/data/*.parquet")}) > 1:
                break
            time.sleep(0.05)
        path = closing.root / "data/in/orders/2026-01.csv"
        path.write_text(path.read_text().replace("7.5", "8.5"))
        go.touch()
        shown = run.communicate()[0].decode()
    assert run.returncode == 1
    assert '"INPUT_CHANGED"' in shown
    assert closing.clocks() == before


def test_interrupting_ends_cleanly(closing: Closing) -> None:
    import signal
    import subprocess
    import sys
    import time

    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        command = [sys.executable, "-m", "dobonomodo.cli", "-C", str(closing.root), "run", "closing", "-p", "2026-01"]
        variables = {**os.environ, "DOBO_FAILPOINT": f"output.staging@{closing.root / 'never'}"}
        known = len(closing.open().runs())
        with subprocess.Popen([*command, "--remote", closing.remote], env=variables) as run:
            for _ in range(1200):
                if (closing.root / "data/lake/.dobo-data/closed").exists() and len(closing.open().runs()) > known:
                    break
                time.sleep(0.05)
            time.sleep(2)
            run.send_signal(number)
        assert run.returncode == code
        stopped = closing.open().runs()[0]
        assert stopped.status == "failed"
        assert stopped.problems[0]["code"] == "RUN_INTERRUPTED"
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
