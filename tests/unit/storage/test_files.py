"""Which files a location has."""

from __future__ import annotations

from pathlib import Path

from dobonomodo.storage.files import list_files


def test_folders_of_partitions_are_read_whatever_their_names_start_with(tmp_path: Path) -> None:
    for name in ("_x=1/a.csv", "x=1/_y=2/b.csv", "c.csv", "_tmp/d.csv", ".x=1/e.csv", "_f.csv", ".g.csv", "x=1/_h"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = [path.relative_to(tmp_path).as_posix() for path in list_files(tmp_path)]
    assert found == ["_x=1/a.csv", "c.csv", "x=1/_y=2/b.csv"]


def test_a_hidden_file_that_is_named_is_read(tmp_path: Path) -> None:
    (tmp_path / "_rows.csv").touch()
    assert list_files(tmp_path / "_rows.csv") == (tmp_path / "_rows.csv",)
