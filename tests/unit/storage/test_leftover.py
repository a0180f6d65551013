"""What killed runs leave: sizes, times, and removing it without following links."""

from __future__ import annotations

import os
from pathlib import Path

from dobonomodo.storage.leftover import Leftover, find_last_change


def make_folder(root: Path) -> Path:
    folder = root / "staged"
    (folder / "deep").mkdir(parents=True)
    (folder / "a").write_bytes(b"x" * 10)
    (folder / "deep" / "b").write_bytes(b"x" * 5)
    return folder


def test_a_folder_has_the_size_of_its_files_and_goes_as_a_whole(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    found = Leftover.of_path(folder, kind="run folder", run="r1")
    assert found.to_dict() == {"kind": "run folder", "place": str(folder), "run_id": "r1", "bytes": 15}
    found.remove()
    assert not folder.exists()
    found.remove()


def test_a_link_goes_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    link = tmp_path / "link"
    link.symlink_to(folder)
    Leftover.of_path(link, kind="link").remove()
    assert not link.is_symlink()
    assert (folder / "a").exists()


def test_the_last_change_is_the_newest_of_all(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    for path, at in ((folder / "a", 100), (folder / "deep" / "b", 300), (folder / "deep", 200), (folder, 50)):
        os.utime(path, (at, at))
    assert find_last_change(folder) == 300
    assert find_last_change(folder / "a") == 100
    assert find_last_change(tmp_path / "nothing") == 0.0


def test_a_broken_link_counts(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    assert find_last_change(tmp_path / "link") > 0
    assert Leftover.of_path(tmp_path / "link", kind="link").bytes > 0
