"""`dobo init`."""

from __future__ import annotations

from pathlib import Path

import pytest

from dobonomodo.cli.init import PROJECTS, Template
from tests.unit.cli.conftest import Dobo


def test_what_to_do_next(dobo: Dobo, tmp_path: Path) -> None:
    result = dobo("init", str(tmp_path / "new"))
    assert (result.code, result.out) == (0, "")
    assert f"dobo run {PROJECTS[Template.MINIMAL]}" in result.err


def test_nothing_is_overwritten(dobo: Dobo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert dobo("init").code == 0
    again = dobo("init")
    assert (again.code, again.out) == (2, "")
    assert "already" in again.err


def test_a_file_in_the_way_leaves_the_folder_as_it_was(dobo: Dobo, tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text("mine")
    assert dobo("init", str(tmp_path)).code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["schema.json"]
    assert dobo("init", str(tmp_path / "schema.json")).code == 2
    assert dobo("init", str(tmp_path / "schema.json" / "below")).code == 2


def test_a_readme_that_is_there_stays(dobo: Dobo, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    result = dobo("init", str(tmp_path))
    assert result.code == 0
    assert "README.md exists" in result.err
    assert (tmp_path / "README.md").read_text() == "mine"
    assert (tmp_path / "dobo.yaml").exists()


@pytest.mark.parametrize("folder", ["/proc/x", "/proc/x/y", "/dev/null", "/dev/null/x", "a\0b", "x" * 300])
def test_a_folder_that_cannot_be_made_is_a_problem(
    dobo: Dobo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = dobo("init", folder)
    assert result.code in (2, 6)
    assert result.out == ""
    assert "Traceback" not in result.err
    assert result.code == 2 or "UNWRITABLE_FOLDER" in result.err
    assert list(tmp_path.iterdir()) == []


def test_what_was_made_before_a_failure_is_taken_away(dobo: Dobo, tmp_path: Path) -> None:
    # As where a file or a link to nowhere has the name of one of the folders.
    (tmp_path / "projects").symlink_to(tmp_path / "nowhere" / "deep")
    before = sorted(tmp_path.iterdir())
    result = dobo("init", str(tmp_path), "--json")
    assert (result.code, result.codes) == (6, ["UNWRITABLE_FOLDER"])
    assert sorted(tmp_path.iterdir()) == before


def test_a_new_workspace_as_json(dobo: Dobo, tmp_path: Path) -> None:
    result = dobo("init", "-C", str(tmp_path), "new", "--json")
    assert result.code == 0
    assert result.document["data"]["project"] == PROJECTS[Template.MINIMAL]
    assert (tmp_path / "new" / "dobo.yaml").exists()
