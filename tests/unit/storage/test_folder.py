"""A folder as a destination: the list of its files for readers, and what is removed when."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dobonomodo.formula.types import TEXT
from dobonomodo.problems import RunFailed
from dobonomodo.problems.store import LeaseLost
from dobonomodo.storage.csv import CsvFormat
from dobonomodo.storage.csv_dialect import Dialect
from dobonomodo.storage.fence import Fence
from dobonomodo.storage.folder import GRACE_SECONDS, FolderTarget, inspect_files
from dobonomodo.storage.manifest import HIDDEN
from dobonomodo.storage.target import Commit, Publication

PERIOD = "2026-01"
NOW = time.time()
FENCE = Fence("store", "project", PERIOD, 1)


def target(folder: Path, run: str, *, period: str = PERIOD) -> FolderTarget:
    root = folder.parent
    return FolderTarget(folder, root, root, AsItIs(Dialect()), period, run, 10, {"id": TEXT}, FENCE, 1)


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
        age(late, 23 * GRACE_SECONDS)
        age(early, 25 * GRACE_SECONDS)
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


class TestLeftovers:
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
