"""What a run writes, as far as no Spark is needed: where it is staged, and what is said when it cannot be written."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dobonomodo import failpoint
from dobonomodo.formula import Type
from dobonomodo.formula.types import INTEGER, TEXT
from dobonomodo.plan.destination import Destination
from dobonomodo.plan.relation import Rel, Write
from dobonomodo.problems.run import OutputWrite
from dobonomodo.storage import Outputs, StagedRows, Storages, WrittenOutput
from dobonomodo.storage.fence import Fence
from dobonomodo.storage.outputs import _name_parts, _part_of
from tests.world import PERIOD, failure, source_of

COLUMNS: dict[str, Type] = {"id": INTEGER}


def outputs(root: Path, *, fence: int = 1, run: str = "run-1") -> Outputs:
    storages = Storages(root, {"files": source_of("parquet", path_prefix="out")})
    folder = root / ".dobo/runs" / run
    number = Fence("store", "project", PERIOD, fence)
    return Outputs(storages, folder=folder, period=PERIOD, run=run, fence=number, started=0.0)


def output(columns: Mapping[str, Type] = COLUMNS, *, seq: int = 10, table: str = "t", **more: Any) -> WrittenOutput:
    values: dict[str, Any] = {"mode": "replace", "register_as": None, "include_deleted": False, **more}
    destination = Destination("parquet", table, "files")
    return WrittenOutput(seq, Write(cast("Rel", None), tuple(columns), destination, **values), columns)


def stage(own: Outputs, written: WrittenOutput, table: pa.Table) -> StagedRows:
    """As Spark leaves it."""
    folder = Path(own.target(written).start() or "")
    folder.mkdir(parents=True)
    pq.write_table(table, folder / "part-0.parquet")
    return own.staged_in(folder)


def test_staged_rows_are_found_again_when_the_workspace_was_moved(tmp_path: Path) -> None:
    own = outputs(tmp_path / "one", fence=3)
    staged = stage(own, output(), pa.table({"id": [1, 2]}))
    assert staged.attempt == 3
    assert not Path(staged.folder).is_absolute()
    assert StagedRows.load(json.loads(json.dumps(staged.document()))) == staged
    (tmp_path / "one").rename(tmp_path / "two")
    (file,) = outputs(tmp_path / "two").files_of(staged)
    assert pq.read_metadata(file).num_rows == 2
    assert own.staged_in(tmp_path / "elsewhere").folder == str(tmp_path / "elsewhere")


def test_what_an_earlier_attempt_staged_is_published_by_a_later_one(tmp_path: Path) -> None:
    first, later, written = outputs(tmp_path), outputs(tmp_path, fence=2), output()
    staged = stage(first, written, pa.table({"id": [1, 2]}))
    converted = later.convert(written, staged, rows=2)
    later.claim([written])
    assert later.find_commit(written) is None
    later.publish([(written, converted, 2, "digest")])
    commit = later.find_commit(written)
    assert commit is not None
    assert (commit.run, commit.seq, commit.rows, commit.digest) == ("run-1", 10, 2, "digest")
    assert failure(first.claim, [written]).problem.code == "LEASE_LOST"


class Killed(BaseException):
    """What a failpoint raises here in place of a signal."""


@pytest.mark.parametrize(
    ("moment", "is_published"), [("output.converted", False), ("publish.before", False), ("publish.after", True)]
)
def test_a_run_that_was_killed_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, is_published: bool
) -> None:
    written = output()
    staged = stage(outputs(tmp_path), written, pa.table({"id": [1, 2]}))

    def finish(own: Outputs) -> None:
        own.publish([(written, own.convert(written, staged, rows=2), 2, "digest")])

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(failpoint, "_reached", {})
        patch.setattr(os, "kill", die)
        patch.setenv(failpoint.VARIABLE, moment)
        with pytest.raises(Killed):
            finish(outputs(tmp_path))
    later = outputs(tmp_path, fence=2)
    assert (later.find_commit(written) is not None) is is_published
    finish(later)
    commit = later.find_commit(written)
    assert commit is not None
    assert commit.rows == 2


def test_rows_that_are_not_there_are_not_converted(tmp_path: Path) -> None:
    own, written = outputs(tmp_path), output()
    staged = stage(own, written, pa.table({"id": [1, 2]}))
    problem = failure(own.convert, written, staged, rows=3).problem
    assert isinstance(problem, OutputWrite)
    assert problem.detail == "2 rows were staged instead of 3"
    (file,) = own.files_of(staged)
    Path(file).write_bytes(b"PAR1")
    broken = failure(own.convert, written, staged, rows=2)
    assert isinstance(broken.problem, OutputWrite)
    assert (broken.problem.destination, broken.retry_helps) == (str(written.write.destination), False)
    assert broken.problem.detail


def test_a_disk_that_is_full_for_now_is_worth_another_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, written = outputs(tmp_path), output()
    staged = stage(own, written, pa.table({"id": [1, 2]}))

    def refuse(path: Path, *_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(pq, "ParquetFile", refuse)
    failed = failure(own.convert, written, staged, rows=2)
    assert isinstance(failed.problem, OutputWrite)
    assert (failed.problem.detail, failed.retry_helps) == ("No space left on device", True)


def test_rows_are_registered_only_with_others_of_their_temporal_mode(tmp_path: Path) -> None:
    own, written = outputs(tmp_path), output()
    own.publish([(written, stage(own, written, pa.table({"id": [1]})), 1, "digest")])
    next_ = outputs(tmp_path, run="run-2")
    timed = {**COLUMNS, "_period": TEXT}
    next_.check(output(timed, mode="append"))
    next_.check(output(timed, mode="replace", register_as="made"))
    problem = failure(next_.check, output(timed, mode="append", register_as="made")).problem
    assert isinstance(problem, OutputWrite)
    assert "temporal mode" in problem.detail
    next_.check(output(mode="append", register_as="made"))


def test_files_of_parts_come_together_with_the_numbers_of_their_parts(tmp_path: Path) -> None:
    for name in (" part=0/part-0.parquet", " part=12/part-0.parquet", " part=12/.part-0.parquet.crc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "whole.parquet").touch()
    _name_parts(tmp_path)
    found = sorted(tmp_path.iterdir())
    assert [path.name for path in found] == ["0~part-0.parquet", "12~part-0.parquet", "whole.parquet"]
    assert [_part_of(path) for path in found] == [0, 12, None]
    assert found[1].read_text() == " part=12/part-0.parquet"
