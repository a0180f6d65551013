"""The first rows of what a run wrote: files that are missing or damaged are reported, not a bug."""

from __future__ import annotations

import pytest

from dobonomodo.problems.run import DataLoad
from tests.unit.workspace.conftest import Office
from tests.world import failure


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
