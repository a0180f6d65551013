"""A folder as a destination: the list of its files for readers, and what is removed when."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import DATE, INTEGER, TEXT, DecimalType
from dobonomodo.problems import RunFailed
from dobonomodo.problems.run import OutputWrite
from dobonomodo.problems.store import LeaseLost
from dobonomodo.storage.csv import CsvFormat
from dobonomodo.storage.csv_dialect import Dialect
from dobonomodo.storage.excel import ExcelFormat
from dobonomodo.storage.fence import Fence
from dobonomodo.storage.folder import (
    GRACE_SECONDS,
    FolderTarget,
    StoredFiles,
    StoredFolders,
    inspect_files,
    keep_files,
    remove_marks,
)
from dobonomodo.storage.manifest import HIDDEN
from dobonomodo.storage.named import NamedFile
from dobonomodo.storage.target import Commit, Noted, Publication
from tests import world
from tests.unit.storage.syncing import Syncs

PERIOD = "2026-01"
NOW = time.time()
FENCE = Fence("store", "project", PERIOD, 1)


def target(folder: Path, run: str, *, period: str = PERIOD) -> FolderTarget:
    root = folder.parent
    return FolderTarget(folder, root, root, AsItIs(Dialect()), period, run, 10, {"id": TEXT}, FENCE, 1)


class Killed(BaseException):
    """What is raised here in place of a signal."""


class AsItIs(CsvFormat):
    """Files that are written here as they are published."""

    in_place = True


def start(output: FolderTarget) -> Path:
    data = output.start()
    assert data is not None
    return Path(data)


def publish_to(output: FolderTarget, commit: Commit, *, mode: str, since: float) -> None:
    output.publish([Publication(output, commit, mode, registers=False, files=(), since=since)])


def publish(folder: Path, run: str, *, mode: str = "replace", since: float = NOW) -> Path:
    """Publish one file; gives the folder that holds the version."""
    output = target(folder, run)
    data = start(output)
    data.mkdir()
    (data / f"{run}.csv").write_text(f"id\n{run}\n")
    publish_to(output, Commit(run, 10, 1, run), mode=mode, since=since)
    return data.parent


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def read_manifest(folder: Path) -> dict[str, Any]:
    """As the docs say: in one read, through the link."""
    with open(f"{folder}/run_period={PERIOD}/../manifest.json") as file:
        found: dict[str, Any] = json.load(file)
        return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out"


class TestManifest:
    def test_it_lists_the_files_by_paths_that_stay(self, folder: Path) -> None:
        publish(folder, "run-1")
        before = read_manifest(folder)
        publish(folder, "run-2")
        after = read_manifest(folder)
        texts = [
            [(folder.parent / found["folder"] / name).read_text() for name in found["files"]]
            for found in (before, after)
        ]
        assert texts == [["id\nrun-1\n"], ["id\nrun-2\n"]]
        assert HIDDEN in before["folder"]

    def test_it_lists_what_was_appended_to_as_well(self, folder: Path) -> None:
        publish(folder, "run-1", mode="append")
        publish(folder, "run-2", mode="append")
        found = read_manifest(folder)
        assert found["files"] == ["run-1.csv", "run-2.csv"]
        assert [(folder.parent / found["folder"] / name).is_file() for name in found["files"]] == [True, True]
        assert [commit["run"] for commit in found["commits"]] == ["run-1", "run-2"]
        assert target(folder, "run-2").own_files() == ["run-2.csv"]

    def test_the_hash_of_a_file_is_that_of_the_run_that_wrote_it(self, folder: Path) -> None:
        """A file that was altered since is not vouched for by whoever appends to it."""
        version = publish(folder, "run-1", mode="append")
        written = read_manifest(folder)["sha256"]["run-1.csv"]
        (version / "data" / "run-1.csv").write_text("id\naltered\n")
        publish(folder, "run-2", mode="append")
        assert read_manifest(folder)["sha256"]["run-1.csv"] == written

    def test_one_of_an_earlier_version_is_understood(self, folder: Path) -> None:
        version = publish(folder, "run-1")
        path = version / "manifest.json"
        document = json.loads(path.read_text())
        del document["own_files"], document["folder"]
        path.write_text(json.dumps(document))
        assert target(folder, "run-1").own_files() == ["run-1.csv"]


class TestSweep:
    def test_replaced_data_stay_for_an_hour(self, folder: Path) -> None:
        first = publish(folder, "run-1")
        publish(folder, "run-2")
        age(first / "replaced", GRACE_SECONDS - 300)
        publish(folder, "run-3")
        assert first.exists()
        age(first / "replaced", GRACE_SECONDS + 300)
        publish(folder, "run-4")
        assert not first.exists()

    def test_what_was_replaced_since_the_run_started_stays(self, folder: Path) -> None:
        """It may be what the run reads."""
        first = publish(folder, "run-1")
        publish(folder, "run-2")
        age(first / "replaced", 2 * GRACE_SECONDS)
        publish(folder, "run-3", since=NOW - 3 * GRACE_SECONDS)
        assert first.exists()
        publish(folder, "run-4", since=NOW - GRACE_SECONDS)
        assert not first.exists()

    def test_the_hour_begins_when_a_replacement_is_noticed(self, folder: Path) -> None:
        """A run that was killed right after it had replaced data could not note when."""
        first = publish(folder, "run-1")
        publish(folder, "run-2")
        (first / "replaced").unlink()
        age(first, 100 * GRACE_SECONDS)
        publish(folder, "run-3")
        assert first.exists()
        age(first / "replaced", GRACE_SECONDS + 300)
        publish(folder, "run-4")
        assert not first.exists()

    def test_what_was_never_published_goes_after_a_day(self, folder: Path) -> None:
        publish(folder, "run-1")
        late, early = (start(target(folder, run)).parent for run in ("killed-late", "killed-early"))
        age(late, 24 * GRACE_SECONDS - 300)
        age(early, 24 * GRACE_SECONDS + 300)
        working = start(target(folder, "working"))
        working.mkdir()
        age(working.parent, 25 * GRACE_SECONDS)
        publish(folder, "run-2")
        assert (late.exists(), early.exists(), working.exists()) == (True, False, True)

    def test_what_is_read_now_and_what_is_kept_stay(self, folder: Path) -> None:
        first = publish(folder, "run-1")
        target(folder, "run-1").all_data()
        second = publish(folder, "run-2")
        for path in (first, first / "replaced", second):
            age(path, 1000 * GRACE_SECONDS)
        other = target(folder, "run-3", period="2026-02")
        start(other).mkdir()
        publish_to(other, Commit("run-3", 10, 0, ""), mode="replace", since=NOW)
        assert first.exists()
        assert second.exists()


class TestAttempts:
    """What is there when a run is continued, and what is made of it."""

    def test_an_attempt_begins_with_an_empty_folder(self, folder: Path) -> None:
        output = target(folder, "run-1")
        start(output).mkdir()
        (output.data / "killed.csv").write_text("half a row")
        assert start(output) == output.data
        assert (output.data.parent.is_dir(), output.data.exists()) == (True, False)

    def test_what_is_published_is_not_made_again(self, folder: Path) -> None:
        publish(folder, "run-1")
        later = replace(target(folder, "run-1"), attempt=2)
        assert later.start() is None
        assert replace(later, format=CsvFormat(Dialect())).convert([]) is False
        assert later.published_data() != later.data
        assert later.own_files() == ["run-1.csv"]
        publish_to(later, Commit("run-1", 10, 1, "again"), mode="append", since=NOW)
        assert [commit["digest"] for commit in read_manifest(folder)["commits"]] == ["run-1"]

    def test_a_version_that_was_sealed_and_never_shown_is_sealed_again(self, folder: Path) -> None:
        """Its own files are known; those that it was appended to are those that are there now."""
        publish(folder, "run-1")
        output = target(folder, "run-2")
        start(output).mkdir()
        (output.data / "run-2.csv").write_text("id\nrun-2\n")
        killed = Publication(output, Commit("run-2", 10, 1, ""), "append", registers=False, files=(), since=NOW)
        assert output.seal(killed, before=output.current())
        assert output.find_commit() is None
        publish(folder, "run-3")
        output.publish([killed])
        assert read_manifest(folder)["files"] == ["run-2.csv", "run-3.csv"]
        assert sorted(path.name for path in output.data.iterdir()) == ["run-2.csv", "run-3.csv"]
        assert output.own_files() == ["run-2.csv"]

    def test_files_of_others_are_told_apart_after_a_kill(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A run that appends is killed while it puts the files there beside its own."""
        publish(folder, "run-0", mode="append")
        publish(folder, "run-1", mode="append")
        output = target(folder, "run-2")
        start(output).mkdir()
        (output.data / "run-2.csv").write_text("id\nrun-2\n")
        publication = Publication(output, Commit("run-2", 10, 1, ""), "append", registers=False, files=(), since=NOW)
        link = os.link

        def link_and_die(path: Path, copy: Path) -> None:
            link(path, copy)
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(os, "link", link_and_die)
            with pytest.raises(Killed):
                output.publish([publication])
        assert len(list(output.data.iterdir())) == 2
        publish(folder, "run-3")
        output.publish([publication])
        assert read_manifest(folder)["files"] == ["run-2.csv", "run-3.csv"]
        assert (output.own_files(), len(list(output.data.iterdir()))) == (["run-2.csv"], 2)

    def test_data_without_a_manifest_were_published_by_nobody(self, folder: Path) -> None:
        version = publish(folder, "run-1")
        (version / "manifest.json").unlink()
        assert target(folder, "run-1").find_commit() is None
        publish(folder, "run-2", mode="append")
        assert [commit["run"] for commit in read_manifest(folder)["commits"]] == ["run-2"]

    def test_files_that_spark_wrote_elsewhere_are_brought_here(self, folder: Path) -> None:
        staged = folder.parent / "staged.csv"
        staged.write_text("id\n1\n")
        output = replace(target(folder, "run-1"), apart=True)
        assert output.start() is None
        assert output.convert([str(staged)]) is True
        assert (output.data / "staged.csv").read_text() == "id\n1\n"
        assert target(folder, "run-1").convert([]) is False

    def test_rows_that_were_not_converted_are_converted_when_they_are_published(self, folder: Path) -> None:
        staged = folder.parent / "part-0.parquet"
        pq.write_table(pa.table({"id": ["a", "b"]}), staged)
        output = replace(target(folder, "run-1"), format=CsvFormat(Dialect()))
        commit = Commit("run-1", 10, 2, "")
        output.publish([Publication(output, commit, "replace", registers=False, files=(str(staged),), since=NOW)])
        assert (folder / f"run_period={PERIOD}" / "part-0.csv").read_text() == '"id"\n"a"\n"b"\n'
        # They were, and are published without the staged ones.
        other = replace(target(folder, "run-2"), format=CsvFormat(Dialect()))
        assert other.convert([str(staged)]) is True
        publish_to(other, Commit("run-2", 10, 2, ""), mode="replace", since=NOW)
        assert other.own_files() == ["part-0.csv"]

    def test_rows_that_a_workbook_cannot_hold_are_refused_before_anything_is_published(self, folder: Path) -> None:
        staged = folder.parent / "part-0.parquet"
        pq.write_table(pa.table({"id": ["x" * 40_000]}), staged)
        book = NamedFile(folder.parent / "book.xlsx")
        output = replace(target(folder, "run-1"), format=ExcelFormat(), named=book)
        problem = world.failure(output.convert, [str(staged)]).problem
        assert isinstance(problem, OutputWrite)
        assert (problem.destination, "`id`" in problem.detail) == (str(book.path), True)
        assert not output.data.exists()

    def test_outputs_are_published_together_or_not_at_all(self, folder: Path) -> None:
        first, second = target(folder, "run-1"), target(folder.parent / "other", "run-1")
        for each in (first, second):
            start(each).mkdir()
            (each.data / "rows.csv").write_text("id\n")
        replace(second, fence=replace(FENCE, number=2)).claim()
        group = [
            Publication(each, Commit("run-1", 10, 0, ""), "replace", registers=False, files=(), since=NOW)
            for each in (first, second)
        ]
        assert isinstance(world.failure(first.publish, group).problem, LeaseLost)
        assert not first.folder.exists()
        later = replace(FENCE, number=2)
        first.publish(
            [
                replace(each, target=replace(target_, fence=later))
                for each, target_ in zip(group, (first, second), strict=True)
            ]
        )
        assert first.find_commit() == second.find_commit() == Commit("run-1", 10, 0, "", 1)


class TestColumns:
    """Periods of one destination can be read together."""

    def output(self, folder: Path, run: str, kind: Type, period: str = PERIOD) -> FolderTarget:
        return replace(target(folder, run, period=period), columns={"id": kind})

    def fill(self, output: FolderTarget, *, mode: str = "replace") -> None:
        start(output).mkdir()
        (output.data / f"{output.run}.csv").write_text("id\n")
        publish_to(output, Commit(output.run, 10, 0, ""), mode=mode, since=NOW)

    def test_what_stays_counts_and_what_is_replaced_does_not(self, folder: Path) -> None:
        self.fill(self.output(folder, "run-1", INTEGER))
        self.fill(self.output(folder, "run-2", DecimalType(5, 2), "2026-02"))
        wider = self.output(folder, "run-3", DecimalType(25, 2))
        assert wider.check(mode="replace").columns == {"id": DecimalType(5, 2)}
        assert wider.check(mode="append").columns == {"id": DecimalType(21, 2)}
        assert not list(folder.parent.rglob(".probe*"))
        text = self.output(folder, "run-3", TEXT)
        for mode in ("replace", "append"):
            refused = world.failure(text.check, mode=mode).problem
            assert isinstance(refused, OutputWrite)
            assert (refused.destination, "`id`" in refused.detail) == (str(folder), True)
        alone = self.output(folder, "run-4", DATE, "2026-03")
        assert isinstance(world.failure(self.fill, alone).problem, OutputWrite)
        assert not (folder / "run_period=2026-03").exists()

    def test_a_type_changes_with_the_only_period(self, folder: Path) -> None:
        self.fill(self.output(folder, "run-1", INTEGER))
        text = self.output(folder, "run-2", TEXT)
        assert text.check(mode="replace").columns == {}
        assert isinstance(world.failure(text.check, mode="append").problem, OutputWrite)
        assert isinstance(world.failure(self.fill, text, mode="append").problem, OutputWrite)
        self.fill(text)
        assert target(folder, "run-2").registered()[0] == {"id": TEXT}


class TestRecords:
    FORM = CsvFormat(Dialect(delimiter=";"))

    def test_they_come_back(self) -> None:
        least = StoredFiles(self.FORM, "out", "data", ("a.csv",))
        most = replace(least, hashes=("1f",), manifest="2e", named="report.csv", datasource_id="lake")
        assert least.document() == {
            "kind": "csv", "folder": "out", "data": "data", "files": ["a.csv"], "delimiter": ";", "has_header": True,
        }  # fmt: skip
        for files in (least, most):
            assert StoredFiles.load(json.loads(json.dumps(files.document())), self.FORM) == files
        assert (least.shown, most.shown) == ("out", "report.csv")
        local = StoredFolders(self.FORM, ("a", "b"), ("id",))
        for folders in (local, replace(local, datasource_id="lake")):
            assert StoredFolders.load(json.loads(json.dumps(folders.document())), self.FORM) == folders
        assert "datasource_id" not in local.document()
        assert local.kind == "csv"
        assert local.place != replace(local, folders=("a",)).place

    def test_a_destination_outside_of_the_workspace_has_its_own_path(self, folder: Path, tmp_path: Path) -> None:
        version = publish(folder, "run-1")
        output = target(folder, "run-1")
        assert (output.stored().folder, output.registered()[1].folders) == (
            "out",
            ((version / "data").relative_to(tmp_path).as_posix(),),
        )
        elsewhere = replace(output, root=tmp_path / "workspace")
        assert (elsewhere.stored().folder, elsewhere.stored().data) == (str(folder), str(version / "data"))
        assert elsewhere.registered()[1].folders == (str(version / "data"),)

    def test_files_without_known_hashes_are_recorded_without(self, folder: Path) -> None:
        """As an earlier version wrote the manifest."""
        version = publish(folder, "run-1")
        assert target(folder, "run-1").stored().hashes is not None
        document = json.loads((version / "manifest.json").read_text())
        del document["sha256"]
        (version / "manifest.json").write_text(json.dumps(document))
        stored = target(folder, "run-1").stored()
        assert (stored.hashes, stored.manifest, stored.files) == (None, None, ("run-1.csv",))
        assert inspect_files(stored, root=folder.parent).files == 0

    def test_what_is_kept_is_all_there(self, folder: Path, tmp_path: Path) -> None:
        version = publish(folder, "run-1")
        stored = replace(target(folder, "run-1").stored(), named="report.csv")
        kept = keep_files(stored, root=tmp_path)
        assert kept == replace(stored, folder=stored.data, named=None)
        assert (version / "kept").exists()
        assert keep_files(replace(stored, files=("run-1.csv", "lost.csv")), root=tmp_path) is None
        assert keep_files(replace(stored, data="nowhere"), root=tmp_path) is None


class TestLeftovers:
    def test_a_named_file_that_was_not_finished(self, folder: Path) -> None:
        named = NamedFile(folder.parent / "report.csv")
        output = replace(target(folder, "run-1"), named=named)
        assert output.find_leftovers() == []
        named.unfinished.write_text("half")
        assert [each.place for each in output.find_leftovers()] == [str(named.unfinished)]

    def test_attempts_that_did_not_publish(self, folder: Path) -> None:
        published = publish(folder, "run-1")
        attempts = [
            replace(target(folder, "run-2"), fence=replace(FENCE, number=number), attempt=number)
            for number in (2, 3, 4)
        ]
        for attempt in attempts:
            start(attempt).mkdir()
            (attempt.data / "part").write_text("rows")
        others = [replace(attempts[0], **values) for values in ({"seq": 1}, {"seq": 100}, {"run": "run-22"})]
        for other in others:
            other.start()
        # The third attempt began after the record was read that knows of two.
        found = attempts[1].find_leftovers()
        assert [(each.kind, each.place, each.run, each.bytes) for each in found] == [
            ("staged files", str(attempt.data.parent), "run-2", 4) for attempt in attempts[:2]
        ]
        for each in found:
            each.remove()
        assert attempts[2].find_leftovers() != attempts[1].find_leftovers() == []
        assert published.exists()
        assert all(other.data.parent.exists() for other in others)

    def test_what_was_published_is_not_left_over(self, folder: Path) -> None:
        publish(folder, "run-1")
        publish(folder, "run-2")
        assert target(folder, "run-1").find_leftovers() == target(folder, "run-2").find_leftovers() == []

    def test_a_destination_that_was_never_made(self, folder: Path) -> None:
        assert target(folder, "run-1").find_leftovers() == []


def test_a_number_is_claimed_where_the_folder_was_removed_since(folder: Path) -> None:
    """Between the check of a destination and its publication a run may compute for hours."""
    target(folder, "run-2").claim()
    stale = replace(target(folder, "run-1"), fence=replace(FENCE, number=0))
    with pytest.raises(RunFailed) as refused:
        stale.claim()
    assert isinstance(refused.value.problem, LeaseLost)


def test_what_is_not_as_it_was_written_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    publish(folder, "run-1")
    stored = target(folder, "run-1").stored()
    data = tmp_path / stored.data

    def found() -> tuple[list[str], list[str], int]:
        inspected = inspect_files(stored, root=tmp_path)
        return [*inspected.changed], [*inspected.gone], inspected.files

    assert found() == ([], [], 2)
    (data / "run-1.csv").write_text("id\nrun-2\n")
    assert found() == ([f"`{data / 'run-1.csv'}` is not what the run wrote"], [], 1)
    (data / "more.csv").write_text("id\n")
    (data / "run-1.csv").unlink()
    assert found() == ([f"`{data / 'more.csv'}` was put there by somebody else"], [f"`{data / 'run-1.csv'}`"], 1)
    (data.parent / "manifest.json").write_text("{")
    assert found()[0] == [
        f"`{data.parent / 'manifest.json'}` is not what the run wrote",
        f"`{data.parent / 'manifest.json'}` cannot be read",
    ]


def test_destinations_note_the_history(tmp_path: Path) -> None:
    """Every version notes it, so that each of them can prove that the history was shortened."""
    heads = [Noted("store", number, f"{number}f") for number in (1, 2)]
    for head in heads:
        output = target(tmp_path / "out", f"run-{head.number}")
        start(output).mkdir()
        (output.data / "rows.csv").write_text("id\n")
        commit = Commit(output.run, 10, 0, "")
        output.publish([Publication(output, commit, "replace", registers=False, files=(), since=NOW, head=head)])
    publish(tmp_path / "out", "run-3")
    stored = target(tmp_path / "out", "run-3").stored()
    assert inspect_files(stored, root=tmp_path).heads == tuple(heads)
    (tmp_path / stored.data).parent.rename(tmp_path / "gone")
    found = inspect_files(stored, root=tmp_path)
    assert (found.heads, found.changed, len(found.gone), found.files) == (tuple(heads), (), 2, 0)


def test_numbers_are_claimed_once_and_upwards(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = folder.parent / HIDDEN / "out"
    fences = store / "fences.json"
    syncs = Syncs(monkeypatch, fences.exists)
    target(folder, "run-1").claim()
    assert True in syncs.of(store)
    before = fences.stat().st_ino
    target(folder, "run-1").claim()
    assert fences.stat().st_ino == before
    replace(target(folder, "run-2"), fence=replace(FENCE, number=5)).claim()
    replace(target(folder, "run-2"), fence=replace(FENCE, store="another")).claim()
    assert isinstance(world.failure(target(folder, "run-1").claim).problem, LeaseLost)


def test_rows_are_on_the_disk_before_readers_find_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = folder / f"run_period={PERIOD}"
    syncs = Syncs(monkeypatch, link.exists)
    version = publish(folder, "run-1")
    for path in (version / "data" / "run-1.csv", version / "manifest.json", version / "data", version):
        assert False in syncs.of(path), path


def test_marks_of_spark_are_removed_and_data_stay(tmp_path: Path) -> None:
    for name in ("_SUCCESS", ".part-0.parquet.crc", "part-0.parquet", "SUCCESS"):
        (tmp_path / name).touch()
    remove_marks(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["SUCCESS", "part-0.parquet"]
