"""Failures to read and write: what they are called, whether another try may help, and what they leave behind."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from dobonomodo.problems import RunFailed
from dobonomodo.problems.run import AppendDataLoad, DataLoad, OutputWrite, WrongCell
from dobonomodo.storage.faults import (
    find_lack_of_room,
    is_of_spark,
    is_passing,
    loading_failed,
    refuse,
    removing_on_failure,
    writing_failed,
)
from dobonomodo.storage.findings import Findings
from tests.world import use_of


def test_rows_that_cannot_be_read_have_a_problem_of_their_role() -> None:
    for role, kind in (("input", DataLoad), ("append", AppendDataLoad)):
        failed = loading_failed(use_of({}, role=role), "it is gone", retry_helps=True, remedy="bring it back")
        assert type(failed.problem) is kind
        assert isinstance(failed.problem, DataLoad | AppendDataLoad)
        assert (failed.problem.detail, failed.problem.remedy, failed.problem.cells) == (
            "it is gone",
            "bring it back",
            (),
        )
        assert failed.retry_helps
    failed = writing_failed("out", "no room", retry_helps=True)
    assert isinstance(failed.problem, OutputWrite)
    assert (failed.retry_helps, writing_failed("out", "no room").retry_helps) == (True, False)


def test_what_is_wrong_in_files_is_refused_with_all_of_it() -> None:
    refuse(Findings(), use_of({}))
    cell = WrongCell(place="a.csv", row="line 2", column="id", rule="is not a number")
    for remedies, said in (((), None), (("set a", "set b"), "set a; set b")):
        with pytest.raises(RunFailed) as failed:
            refuse(Findings((cell,), {"id": 3}, remedies), use_of({}))
        assert isinstance(failed.value.problem, DataLoad)
        assert (failed.value.problem.cells, failed.value.problem.counts) == ((cell,), (("id", 3),))
        assert (failed.value.problem.remedy, failed.value.retry_helps) == (said, False)


def test_another_try_helps_where_people_can_make_room_or_allow_it() -> None:
    assert all(is_passing(OSError(number, "")) for number in (errno.ENOSPC, errno.EACCES, errno.ESTALE))
    assert not is_passing(FileNotFoundError(errno.ENOENT, ""))
    assert not is_passing(ValueError())


def test_a_full_disk_of_spark_is_told_in_few_words() -> None:
    report = "Job aborted due to stage failure: java.io.IOException: No space left on device\n\tat java.io.File"
    assert find_lack_of_room(PySparkException(message=report)) == "No space left on device"
    assert (
        find_lack_of_room(PySparkException(message="java.io.IOException: Disk quota exceeded")) == "Disk quota exceeded"
    )
    assert find_lack_of_room(PySparkException(message="Job aborted")) is None
    # The same words of another are not its own.
    assert find_lack_of_room(ValueError(report)) is None
    assert (is_of_spark(PySparkException(message=report)), is_of_spark(ConnectionError())) == (True, False)


def test_what_cannot_be_completed_is_removed(tmp_path: Path) -> None:
    folder, file = tmp_path / "folder", tmp_path / "file"
    for path in (folder, file, tmp_path / "none"):
        folder.mkdir()
        (folder / "rows").touch()
        file.touch()
        with pytest.raises(KeyboardInterrupt), removing_on_failure(path):
            raise KeyboardInterrupt
        assert not path.exists()
        with removing_on_failure(tmp_path):
            pass
        assert tmp_path.exists()
        (folder / "rows").unlink(missing_ok=True)
        if folder.exists():
            folder.rmdir()
