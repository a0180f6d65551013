"""A workspace that the version before made goes on: its store, its folders of links, its runs that were killed or failed."""

from __future__ import annotations

import json
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset
import pytest

from dobonomodo.problems import Rejected
from dobonomodo.store import Head, find_break
from dobonomodo.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEPT = Path(__file__).parents[1] / "data/workspaces/format-0002.tar.gz"
MADE_IN = "/tmp/up/ws"
"""Where the workspace was; the files that its runs pinned are named by their paths."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with tarfile.open(KEPT) as archive:
        archive.extractall(tmp_path, filter="tar")
    folder = tmp_path / "ws"
    with closing(sqlite3.connect(folder / ".dobo/store.db")) as connection, connection:
        for column in ("snapshot", "progress"):
            connection.execute(f"UPDATE dobo_run SET {column} = replace({column}, ?, ?)", [MADE_IN, str(folder)])
    return folder


def rows(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pyarrow.dataset.dataset(folder, partitioning="hive").to_table().to_pylist()
    return found


def test_the_kept_workspace_is_one_of_the_version_before(root: Path) -> None:
    """Made anew by a later version it would prove nothing."""
    with closing(sqlite3.connect(root / ".dobo/store.db")) as connection:
        assert connection.execute("SELECT version_num FROM dobo_format").fetchall() == [("0002",)]
        columns = {row[1] for row in connection.execute("PRAGMA table_info(dobo_run)")}
        snapshots = [json.loads(text) for (text,) in connection.execute("SELECT snapshot FROM dobo_run")]
    assert "fence" not in columns
    assert [snapshot["inputs"] is None for snapshot in snapshots] == [False, False, True]
    links = {path.name for path in root.rglob("run_period=*") if path.is_symlink()}
    assert links == {"run_period=2026-01", "run_period=2026-02"}
    manifests = [json.loads(path.read_text()) for path in root.rglob("manifest.json")]
    commits = [set(commit) for manifest in manifests for commit in manifest["commits"]]
    assert commits == [{"run", "seq", "rows", "digest"}] * 3


def test_its_runs_are_read(root: Path) -> None:
    runs = {run.period: run for run in Workspace.open(root).runs()}
    assert {period: run.status for period, run in runs.items()} == {
        "2026-01": "completed",
        "2026-02": "running",
        "2026-03": "failed",
    }
    assert [output.rows for output in runs["2026-01"].outputs.values()] == [14, 15]
    assert [output.rows for output in runs["2026-02"].outputs.values()] == [14]
    assert not any(run.is_publishing for run in runs.values())


def test_its_history_is_the_beginning_of_the_chain(root: Path) -> None:
    workspace = Workspace.open(root)
    store = workspace.store
    before = store.list_history()
    assert [(entry.subject.id, entry.event, entry.after) for entry in before] == [("closing", "activate", "active")]
    workspace.deactivate("closing")
    after = store.list_history()
    assert [entry.event for entry in after] == ["activate", "deactivate"]
    assert find_break(after, start=Head(0, store.id)) is None
    assert store.head() == Head(2, after[-1].hash)


def test_its_results_are_verified(root: Path, spark: SparkSession) -> None:
    workspace = Workspace.open(root)
    completed = next(run for run in workspace.runs() if run.status == "completed")
    _, problems = workspace.verify(completed.id, spark=spark)
    assert problems == ()
    assert len(workspace.sample("closed", 100)["closed"]) == 28


def test_a_killed_run_is_resumed(root: Path, spark: SparkSession) -> None:
    """One output was published, without an intent and without a fencing number; the other one was not."""
    workspace = Workspace.open(root)
    killed = next(run for run in workspace.runs() if run.status == "running")
    done = workspace.resume(killed.id, spark=spark)
    assert (done.status, sorted(output.seq for output in done.outputs.values())) == ("completed", [40, 50])
    assert len(rows(root / "data/lake/closed")) == 28
    assert len(list((root / "data/texts/closed").glob("*/*.csv"))) == 2
    assert [version.version for version in workspace.store.list_versions("dataset", "closed")] == [1, 2]


def test_a_run_that_found_no_inputs_is_not_resumed(root: Path, spark: SparkSession) -> None:
    workspace = Workspace.open(root)
    failed = next(run for run in workspace.runs() if run.status == "failed")
    with pytest.raises(Rejected) as refused:
        workspace.resume(failed.id, spark=spark)
    assert [problem.code for problem in refused.value.problems] == ["RESUME_REFUSED"]


def test_a_new_run_takes_over_folders_and_replaces_the_period(root: Path, spark: SparkSession) -> None:
    workspace = Workspace.open(root)
    before = json.dumps(sorted(row["run_period"] for row in rows(root / "data/lake/closed")))
    run = workspace.run("closing", period="2026-01", spark=spark)
    assert run.status == "completed"
    assert (root / "data/lake/closed").is_symlink()
    assert json.dumps(sorted(row["run_period"] for row in rows(root / "data/lake/closed"))) == before
    assert {row["_created_at"].year for row in rows(root / "data/lake/closed") if row["run_period"] == "2026-02"} == {
        2026
    }
