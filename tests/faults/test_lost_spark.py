"""A Spark that is killed, or has no executors, fails a run without blame; the run is resumed with another Spark."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dobonomodo.workspace import Workspace
from tests.faults.cluster import Cluster, wait_until
from tests.world import FILES, LAKE, MONTHS, PERIOD, Folder

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]

ORDERS = """
dataset:
  id: orders
  main_table: {name: orders, columns: [{name: id, type: integer}, {name: amount, type: "decimal(15,2)"}]}
---
project:
  id: double
  input_dataset_id: orders
  operations:
    - {seq: 10, type: update, arguments: {assignments: [{column: twice, expression: amount * 2}]}}
    - {seq: 20, type: output, arguments: {destination: {datasource_id: lake, table: doubled}}}
"""

KILLED_IN_A_JOB = """
import json, signal
from dobonomodo.engine import open_session
from dobonomodo.engine.engine import SparkEngine
from dobonomodo.problems import RunFailed
from tests.faults.on_cluster import when_tasks_run

spark = open_session(master="local[2]")
java = spark.sparkContext._gateway.proc
engine, rows = SparkEngine(spark), spark.range(10**15)
found = []

def compute():
    try:
        engine.digest(rows, ["id"])
    except RunFailed as failed:
        found.append([failed.problem.code, failed.retry_helps, failed.problem.operation])

with when_tasks_run(spark, 1, lambda: java.send_signal(signal.SIGKILL)):
    compute()
compute()
engine.interrupt()
found.append(java.wait())
found.append(open_session(master="local[1]").range(3).count())
print(json.dumps(found))
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    Folder.make(root, LAKE, FILES, MONTHS, ORDERS)
    (root / "data").mkdir()
    amounts = pa.array([None, 1, 2], pa.decimal128(15, 2))
    pq.write_table(pa.table({"id": pa.array([1, 2, 3], pa.int64()), "amount": amounts}), root / "data/orders.parquet")
    return root


def python(*arguments: str | Path, timeout: int = 1800) -> subprocess.CompletedProcess[str]:
    """A Python of its own: PySpark cannot be two kinds of client in one process."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def dobo(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return python("-m", "dobonomodo.cli", "-C", root, *arguments, "--json")


@contextmanager
def waiting_run(root: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`dobo run` that waits before its first job until there is a file `gate`."""
    gate = root / "gate"
    with subprocess.Popen(
        [sys.executable, "-m", "dobonomodo.cli", "-C", root, "run", "double", "-p", PERIOD, "--json", *arguments],
        env={**os.environ, "DOBO_FAILPOINT": f"output.staging@{gate}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            wait_until(lambda: Path(f"{gate}.waiting").exists() or process.poll() is not None, what="the gate")
            assert process.poll() is None, process.communicate()
            yield process
        finally:
            process.kill()


@contextmanager
def connect_server() -> Iterator[tuple[str, int]]:
    """The address of a Spark Connect server, and its Java process."""
    script = [sys.executable, str(ROOT / "tests/faults/connect_server.py")]
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port, java = process.stdout.readline().split()
        yield f"sc://127.0.0.1:{port}", int(java)


def java_of(process: subprocess.Popen[str]) -> int:
    """The Java process that a command has started."""
    (java,) = (
        int(each.parent.name)
        for each in Path("/proc").glob("[0-9]*/stat")
        if (fields := _read(each).rpartition(")"))[2].split()[1:2] == [str(process.pid)] and "(java" in fields[0]
    )
    return java


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def problem_of(shown: str) -> dict[str, Any]:
    problem: dict[str, Any]
    (problem,) = (each for each in json.loads(shown)["problems"] if each["severity"] == "error")
    return problem


def check_failure_and_resume(root: Path, code: int, shown: str, said: str, *, problem: str) -> None:
    """The run failed for want of Spark, and goes on with another one."""
    found = problem_of(shown)
    assert (code, found["code"], found["retry_helps"]) == (6, problem, True), said
    assert found.get("operation_seq") is None
    assert "Traceback" not in said
    (failed,) = Workspace.open(root).runs()
    assert (failed.status, failed.outputs) == ("failed", {})
    resumed = dobo(root, "resume", failed.id)
    assert resumed.returncode == 0, resumed.stderr
    (run,) = Workspace.open(root).runs()
    assert (run.id, run.status, run.attempts) == (failed.id, "completed", failed.attempts + 1)
    assert run.outputs["doubled"].rows == 3


def test_java_is_killed_in_a_job() -> None:
    done = python("-c", KILLED_IN_A_JOB)
    assert done.returncode == 0, done.stderr
    lost = ["SPARK_LOST", True, None]
    assert json.loads(done.stdout) == [lost, lost, -signal.SIGKILL, 3]


def test_java_is_killed_during_a_run(workspace: Path) -> None:
    with waiting_run(workspace) as run:
        os.kill(java_of(run), signal.SIGKILL)
        (workspace / "gate").touch()
        shown, said = run.communicate()
    check_failure_and_resume(workspace, run.returncode, shown, said, problem="SPARK_LOST")


def test_the_connect_server_is_killed_during_a_run(workspace: Path) -> None:
    with connect_server() as (url, java):
        with waiting_run(workspace, "--remote", url) as run:
            os.kill(java, signal.SIGKILL)
            (workspace / "gate").touch()
            shown, said = run.communicate()
        failed = Workspace.open(workspace).runs()[0]
        unanswered = dobo(workspace, "resume", failed.id, "--remote", url)
        assert (unanswered.returncode, problem_of(unanswered.stdout)["code"]) == (6, "SPARK_LOST"), unanswered.stderr
    check_failure_and_resume(workspace, run.returncode, shown, said, problem="SPARK_LOST")


def test_a_cluster_without_workers(workspace: Path, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    try:
        cluster.start_master()
        done = dobo(workspace, "run", "double", "-p", PERIOD, "--master", cluster.url, "--wait-for-executors", "12")
    finally:
        cluster.stop()
    assert "waiting for executors (" in done.stderr
    check_failure_and_resume(workspace, done.returncode, done.stdout, done.stderr, problem="NO_EXECUTORS")


def _may_hide(folder: Path) -> bool:
    """Whether this user may give a process a view of its own."""
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", str(folder)]
    return shutil.which("unshare") is not None and subprocess.run(command, capture_output=True).returncode == 0


def test_workers_that_do_not_see_the_workspace(workspace: Path, tmp_path: Path) -> None:
    """Not even its inputs and outputs: a shared scratch folder is enough."""
    if not _may_hide(workspace):
        pytest.skip("processes cannot be given a view of their own here")
    cluster, shared = Cluster(tmp_path), tmp_path / "shared"
    try:
        cluster.start_master()
        cluster.add_worker(hidden=workspace)
        run = ("run", "double", "-p", PERIOD, "--master", cluster.url)
        refused = dobo(workspace, *run)
        found = problem_of(refused.stdout)
        assert (refused.returncode, found["code"], found.get("operation_seq")) == (6, "WORKERS_ELSEWHERE", None)
        assert str(workspace / ".dobo/runs") in found["message"]
        assert "scratch:" in found["hint"]
        definitions = (workspace / "dobo.yaml").read_text()
        (workspace / "dobo.yaml").write_text(
            definitions.replace("workspace: {", f"workspace: {{scratch: {shared}, ", 1)
        )
        done = dobo(workspace, *run)
    finally:
        cluster.stop()
    assert done.returncode == 0, done.stdout
    completed, failed = Workspace.open(workspace).runs()
    assert (completed.status, failed.status, completed.outputs["doubled"].rows) == ("completed", "failed", 3)
    files = list((workspace / ".dobo/sandbox/double/lake/doubled").glob("*/*.parquet"))
    assert sum(pq.read_metadata(path).num_rows for path in files) == 3
    assert list(shared.iterdir()) == []


def test_a_cluster_whose_workers_have_other_locales_and_are_killed_one_after_the_other(tmp_path: Path) -> None:
    """One test, since a cluster takes its time to start and to be taken apart."""
    try:
        done = python(ROOT / "tests/faults/on_cluster.py", tmp_path)
    finally:
        Cluster(tmp_path).stop()
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)

    # Executors have the locale, the time zone and the encoding of the driver.
    same = ["en", "US", "UTC", "UTF-8", "1"]
    assert found["settings"] == [["IĞDIR0", *same], ["IĞDIR1", *same]]
    # A job survives the loss of a worker.
    assert isinstance(found["undisturbed"], str)
    assert found["one worker killed"] == [found["undisturbed"], ["killed"]]
    # Killed executors are worth another try.
    assert found["executors killed"] == ["SPARK_LOST", True, None]
    # A job without executors waits, then fails; it works with a new worker.
    failure, events, said = found["all workers killed"]
    assert (failure, events) == (["NO_EXECUTORS", True, None], ["killed", "killed"])
    assert any(each.startswith("waiting for executors (") for each in said)
    assert found["new worker"] == found["undisturbed"]
