"""The first rows of what a run wrote: those of a failed run are marked, missing and damaged files are reported."""

from __future__ import annotations

import pytest

from dobonomodo.problems.run import DataLoad
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
    assert problem.dataset_id == "out"
    assert (str(folder) in problem.detail) == (damage == "missing")
