from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dobonomodo.problems import RunFailed
from dobonomodo.problems.run import OutputWrite
from dobonomodo.storage.target import Commit, Publication


def publication(rows: int, *files: Path) -> Publication:
    target = cast("Any", SimpleNamespace(place="the ledger"))
    commit = Commit("run", 10, rows, "digest")
    return Publication(target, commit, "replace", registers=False, files=tuple(map(str, files)), since=0.0)


def test_a_commit_says_that_its_run_failed() -> None:
    for commit in (Commit("run", 10, 1, "digest", 2), Commit("run", 10, 1, "digest", 2, of_failed_run=True)):
        assert Commit.load(commit.document()) == commit
        assert ("of_failed_run" in commit.document()) == commit.of_failed_run


def test_staged_files_are_given_if_all_rows_are_in_them(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    assert publication(2, tmp_path / "a.parquet").staged_files() == (str(tmp_path / "a.parquet"),)
    assert publication(0).staged_files() == ()


@pytest.mark.parametrize("files", [("a.parquet",), ("a.parquet", "gone.parquet"), ()])
def test_rows_that_are_not_there_are_not_published_without(tmp_path: Path, files: tuple[str, ...]) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    with pytest.raises(RunFailed) as failed:
        publication(3, *(tmp_path / name for name in files)).staged_files()
    problem = failed.value.problem
    assert isinstance(problem, OutputWrite)
    assert problem.destination == "the ledger"
