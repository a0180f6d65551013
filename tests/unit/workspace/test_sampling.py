"""The first rows of what a run wrote: those of a failed run are marked, missing and damaged files are reported."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from dobonomodo.problems.run import DataLoad
from dobonomodo.storage.parquet import ParquetStorage
from tests.unit.workspace.conftest import Office
from tests.world import failure


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_rows_of_a_failed_run_are_marked(office: Office, status: str) -> None:
    run = office.put_run(status=status)
    (office.root / "lake/out" / run.id).mkdir(parents=True)
    sample = office.at_desk("ann").sample(run.id, 3)
    assert (dict(sample), sample.failed_run) == ({"out": ()}, run.id if status == "failed" else None)


@pytest.mark.parametrize("damage", ["missing", "damaged"])
def test_files_that_cannot_be_read(office: Office, damage: str) -> None:
    run = office.put_run()
    folder = office.root / "lake/out" / run.id
    if damage == "damaged":
        folder.mkdir(parents=True)
        (folder / "part.parquet").write_bytes(b"PAR1 cut off")
    problem = failure(office.at_desk("ann").sample, run.id, 3).problem
    assert isinstance(problem, DataLoad)
    assert problem.message().startswith(f"output `out` of run {run.id}: ")
    assert (str(folder) in problem.detail) == (damage == "missing")


def fail_with(fault: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this fault when the first rows of Parquet files are read."""

    def fail(*_: object) -> list[object]:
        raise fault

    monkeypatch.setattr(ParquetStorage, "sample", fail)


def test_a_missing_file_that_arrow_reports_is_named(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    run = office.put_run()
    with pytest.raises(FileNotFoundError) as caught:
        pq.ParquetFile(office.root / "gone.parquet")
    fail_with(caught.value, monkeypatch)
    problem = failure(office.at_desk("ann").sample, run.id, 3).problem
    assert isinstance(problem, DataLoad)
    assert str(office.root / "gone.parquet") in problem.detail
    assert "None" not in problem.detail


def test_text_in_another_encoding_is_damage(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    run = office.put_run()
    fail_with(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), monkeypatch)
    assert isinstance(failure(office.at_desk("ann").sample, run.id, 3).problem, DataLoad)


def test_our_own_faults_are_not_those_of_files(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    run = office.put_run()
    fail_with(ValueError("a bug"), monkeypatch)
    with pytest.raises(ValueError, match="a bug"):
        office.at_desk("ann").sample(run.id, 3)
