"""The files of a table in a folder of this machine."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

from dobonomodo.storage.delta_home import LOG, LocalHome, log_name
from dobonomodo.storage.table_home import LocalFiles, local_path


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What was made to be on the disk."""
    found: list[Path] = []
    real = os.fsync

    def note(number: int) -> None:
        found.append(Path(os.readlink(f"/proc/self/fd/{number}")))
        real(number)

    monkeypatch.setattr(os, "fsync", note)
    return found


def test_a_folder_that_can_be_written_is_left_empty(tmp_path: Path) -> None:
    home = LocalFiles(tmp_path / "a" / "b")
    for _ in range(2):
        home.prepare()
        assert list(home.data.iterdir()) == []
    assert (home.uri, home.is_remote) == (str(home.data), False)


def test_files_are_on_the_disk_before_anybody_names_them(tmp_path: Path, synced: list[Path]) -> None:
    home, folder = LocalFiles(tmp_path), tmp_path / "period" / "run"
    folder.mkdir(parents=True)
    files = [folder / "a.parquet", folder / "b.parquet"]
    for path in files:
        path.touch()
    home.put(files)
    assert sorted(synced) == [tmp_path, folder, *files]
    synced.clear()
    home.write("period/run/note.json", b"note")
    assert synced[-1] == folder
    assert home.read("period/run/note.json") == b"note"
    assert home.read("period/run/other.json") is None


def test_a_commit_of_delta_is_on_the_disk_with_its_name(tmp_path: Path, synced: list[Path]) -> None:
    (tmp_path / LOG).mkdir()
    commit = tmp_path / LOG / log_name(3)
    commit.touch()
    LocalHome(tmp_path).settle(3)
    assert (commit.name, synced) == ("00000000000000000003.json", [commit, tmp_path / LOG])


def test_files_are_found_by_their_names_and_by_addresses(tmp_path: Path) -> None:
    home = LocalFiles(tmp_path)
    path = tmp_path / "a b.parquet"
    path.write_bytes(b"rows")
    for name in ("a b.parquet", str(path), f"file://{tmp_path}/a%20b.parquet"):
        assert (home.fetch(name), home.pin(name).size, home.hash(name)) == (path, 4, sha256(b"rows").hexdigest())
    assert home.locate(path) == str(path)
    assert local_path("a%20b") == Path("a%20b")


def test_folders_of_runs_are_found_below_their_periods(tmp_path: Path) -> None:
    for name in ("p=2/run-1-2", "p=1/run-1-1", "p=1/run-2-1", "run-1-3", "p=1/deep/run-1-4"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "p=1/run-1-1/file").write_bytes(b"rows")
    found = list(LocalFiles(tmp_path).find_folders("run-1-"))
    assert [(name, Path(left.place), left.bytes) for name, left in found] == [
        ("run-1-1", tmp_path / "p=1/run-1-1", 4),
        ("run-1-2", tmp_path / "p=2/run-1-2", 0),
    ]
    found[0][1].remove()
    assert not (tmp_path / "p=1/run-1-1").exists()
