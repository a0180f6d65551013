"""Files with names of their own: complete or not there, never over what somebody else wrote, and completed after a kill."""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import INTEGER, TEXT
from dobonomodo.plan.destination import Destination, name_store
from dobonomodo.plan.relation import Rel, Write
from dobonomodo.problems.run import OutputWrite
from dobonomodo.problems.store import LeaseLost
from dobonomodo.storage import Inspected, Outputs, Storages, WrittenOutput, load_stored, named
from dobonomodo.storage.fence import Fence
from dobonomodo.storage.kept import hash_file
from dobonomodo.storage.schema import arrow_type
from tests import world
from tests.unit.storage.syncing import Syncs

COLUMNS: dict[str, Type] = {"id": INTEGER, "Net amount": TEXT}
FILE = "results/summary-{{period}}.csv"


class Killed(BaseException):
    """What a failpoint raises here in place of a signal."""


def write_of(file: str | None = FILE, *, table: str | None = None, kind: str = "csv", **more: Any) -> Write:
    destination = Destination(kind, table or name_store(file or "", None), "out", None, file, None, **more)
    rows = cast(Rel, None)
    return Write(rows, tuple(COLUMNS), destination, "replace", None, include_deleted=False)


def outputs_of(root: Path, *, run: str = "r1", fence: int = 1, period: str = "2026-01") -> Outputs:
    storages = Storages(root, {"out": world.source_of("csv", path_prefix="data")})
    number = Fence("store", "project", period, fence)
    return Outputs(storages, folder=root / ".run" / run, period=period, run=run, fence=number, started=time.time())


def publish(root: Path, rows: Sequence[Mapping[str, object]], write: Write | None = None, **which: Any) -> Outputs:
    outputs, output = outputs_of(root, **which), WrittenOutput(10, write or write_of(), COLUMNS)
    outputs.check(output)
    folder = root / ".run" / which.get("run", "r1") / "staged"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in COLUMNS.items()])
    pq.write_table(pa.Table.from_pylist(list(rows), schema), folder / "part.parquet")
    staged = outputs.convert(output, outputs.staged_in(folder), rows=len(rows))
    outputs.claim([output])
    outputs.publish([(output, staged, len(rows), "digest")])
    return outputs


def row(number: int) -> dict[str, object]:
    return {"id": number, "Net amount": "a"}


def text(root: Path, name: str = "results/summary-2026-01.csv") -> str:
    return (root / "data" / name).read_text()


def test_one_file_with_its_name_and_period(tmp_path: Path) -> None:
    outputs = publish(tmp_path, [row(1)])
    assert text(tmp_path) == '"id","Net amount"\n1,"a"\n'
    publish(tmp_path, [row(2)], run="r2", fence=2, period="2026-02")
    assert text(tmp_path, "results/summary-2026-02.csv").endswith('2,"a"\n')
    assert text(tmp_path).endswith('1,"a"\n')
    stored = outputs.stored(WrittenOutput(10, write_of(), COLUMNS))
    assert stored.shown == "data/results/summary-2026-01.csv"
    assert sorted(path.name for path in (tmp_path / "data" / "results").iterdir()) == [
        "summary-2026-01.csv",
        "summary-2026-02.csv",
    ]


def test_a_table_and_a_file(tmp_path: Path) -> None:
    publish(tmp_path, [row(1)], write_of(table="orders"))
    assert text(tmp_path).endswith('1,"a"\n')
    (kept,) = (tmp_path / "data" / "orders" / "run_period=2026-01").iterdir()
    assert kept.read_text() == text(tmp_path)


def test_the_same_again_leaves_the_file_alone(tmp_path: Path) -> None:
    publish(tmp_path, [row(1)])
    path = tmp_path / "data" / "results" / "summary-2026-01.csv"
    before = path.stat().st_ino
    publish(tmp_path, [row(1)])
    assert path.stat().st_ino == before


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data" / "results" / "summary-2026-01.csv"
    syncs = Syncs(monkeypatch, path.exists)
    publish(tmp_path, [row(1)])
    assert syncs.of(path) == [False]
    assert True in syncs.of(path.parent)


def test_the_next_run_replaces_the_file(tmp_path: Path) -> None:
    publish(tmp_path, [row(1)])
    publish(tmp_path, [row(2)], run="r2", fence=2)
    assert text(tmp_path).endswith('2,"a"\n')


@pytest.mark.parametrize("before", ["theirs", "ours, then changed"])
def test_a_file_that_is_not_as_a_run_wrote_it_stays(tmp_path: Path, before: str) -> None:
    if before != "theirs":
        publish(tmp_path, [row(1)])
    path = tmp_path / "data" / "results" / "summary-2026-01.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    checked = world.failure(outputs_of(tmp_path, run="r2", fence=2).check, WrittenOutput(10, write_of(), COLUMNS))
    assert isinstance(checked.problem, OutputWrite)
    failed = world.failure(publish, tmp_path, [row(2)], run="r2", fence=2)
    assert isinstance(failed.problem, OutputWrite)
    assert "is not as a run wrote it" in failed.problem.detail
    assert path.read_text() == "mine"


def test_an_earlier_run_does_not_replace_the_file_of_a_later_one(tmp_path: Path) -> None:
    publish(tmp_path, [row(2)], run="r2", fence=2)
    failed = world.failure(publish, tmp_path, [row(1)])
    assert isinstance(failed.problem, LeaseLost)
    assert text(tmp_path).endswith('2,"a"\n')


def test_a_publication_that_was_killed_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(tmp_path, [row(1)])
    for number, moment in enumerate(("before the rename", "after the rename"), start=2):
        which: dict[str, Any] = {"run": f"r{number}", "fence": number}

        def kill(name: str) -> None:
            if name == "publish.naming":
                raise Killed

        def die(*args: object) -> None:
            del args
            raise Killed

        with monkeypatch.context() as patch:
            if moment == "before the rename":
                patch.setattr(named, "reach", kill)
            else:
                patch.setattr(named, "sync", lambda path: die() if path.is_dir() else None)
            with pytest.raises(Killed):
                publish(tmp_path, [row(number)], **which)
        output = WrittenOutput(10, write_of(), COLUMNS)
        assert outputs_of(tmp_path, **which).find_commit(output) is None, (
            "it is not published as long as the file is not there"
        )
        outputs_of(tmp_path, **which).check(output)
        publish(tmp_path, [row(number)], **which)
        assert text(tmp_path).endswith(f'{number},"a"\n')
        assert outputs_of(tmp_path, **which).find_commit(output) is not None
        assert not list((tmp_path / "data").rglob("*.unfinished"))


def test_a_folder_of_the_name_and_a_place_inside_a_table_are_refused(tmp_path: Path) -> None:
    (tmp_path / "data" / "results" / "summary-2026-01.csv").mkdir(parents=True)
    failed = world.failure(publish, tmp_path, [row(1)])
    assert isinstance(failed.problem, OutputWrite)
    assert failed.problem.detail == "it is a folder"
    publish(tmp_path, [row(1)], write_of(None, table="orders"), fence=2)
    inside = write_of("orders/run_period=2026-01/x-{{period}}.csv")
    failed = world.failure(publish, tmp_path, [row(1)], inside, run="r2", fence=3)
    assert isinstance(failed.problem, OutputWrite)
    assert "inside the folder of a table" in failed.problem.detail


def test_other_formats_have_named_files_too(tmp_path: Path) -> None:
    publish(tmp_path, [row(1)], write_of(options=(("delimiter", ";"),)))
    assert text(tmp_path) == '"id";"Net amount"\n1;"a"\n'


def test_a_folder_that_cannot_be_written_is_found_before_anything_is_computed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "results").write_text("a file where the folder should be")
    failed = world.failure(outputs_of(tmp_path).check, WrittenOutput(10, write_of(), COLUMNS))
    assert isinstance(failed.problem, OutputWrite)


def test_a_file_that_was_changed_or_is_gone_is_found(tmp_path: Path) -> None:
    stored = publish(tmp_path, [row(1)]).stored(WrittenOutput(10, write_of(), COLUMNS))
    storages = Storages(tmp_path, {})
    path = tmp_path / "data" / "results" / "summary-2026-01.csv"
    assert storages.inspect_named(load_stored(stored.document())) == Inspected(files=1)
    assert [(file.path, file.sha256) for file in storages.list_files(stored) if file.is_named] == [
        ("data/results/summary-2026-01.csv", hash_file(path))
    ]
    path.write_text("mine")
    assert storages.inspect_named(stored) == Inspected(changed=(f"`{path}` is not what the run wrote",))
    path.unlink()
    assert storages.inspect_named(stored) == Inspected(gone=(f"`{path}`",))
    before = load_stored({name: value for name, value in stored.document().items() if name != "named_sha256"})
    assert storages.inspect_named(before).gone, "earlier versions have the hash in the mark alone"
    (mark,) = (tmp_path / "data").rglob(named.MARK)
    mark.write_text("{}")
    assert storages.inspect_named(before) == Inspected(changed=(f"`{mark}` cannot be read",))
    mark.unlink()
    assert storages.inspect_named(before) == Inspected()


def test_a_file_that_cannot_be_read_is_not_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = publish(tmp_path, [row(1)]).stored(WrittenOutput(10, write_of(), COLUMNS))
    storages = Storages(tmp_path, {})

    def refuse(path: Path) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    with monkeypatch.context() as patched:
        patched.setattr("dobonomodo.storage.folder.hash_file", refuse)
        with pytest.raises(PermissionError):
            storages.inspect_named(stored)
        found = storages.of_record(stored).inspect(stored, run="r1", seq=10)
        assert found.gone == ()
        assert found.changed
        assert all(each.endswith("cannot be read (Permission denied)") for each in found.changed)
    path = tmp_path / "data" / "results" / "summary-2026-01.csv"
    path.unlink()
    path.mkdir()
    assert storages.inspect_named(stored) == Inspected(gone=(f"`{path}`",)), "a folder is not the file"
