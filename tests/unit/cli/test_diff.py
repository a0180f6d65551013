"""`dobo diff` of two versions of a project."""

from __future__ import annotations

from pathlib import Path

from dobonomodo.workspace import Workspace
from tests.unit.cli.conftest import Dobo, change

PROJECT = "monthly-sales"


def apply(folder: Path) -> None:
    workspace = Workspace.open(folder)
    workspace.apply()
    workspace.close()


def test_versions_and_files_are_compared(dobo: Dobo, stored: Path) -> None:
    apply(stored)
    change(stored, f"projects/{PROJECT}.yaml", "0.9", "0.8")
    (operation,) = dobo("diff", f"{PROJECT}@v1", PROJECT, "--json").document["data"]["operations"]
    assert operation["change"] == "changed"
    (field,) = operation["fields"]
    assert ("0.9" in field["before"], "0.8" in field["after"]) == (True, True)
    apply(stored)
    shown = dobo("diff", f"{PROJECT}@v1", f"{PROJECT}@v2")
    assert (shown.code, " -> " in shown.out) == (0, True)
    assert dobo("diff", f"{PROJECT}@v2", PROJECT).out == ""


def test_what_there_is_not(dobo: Dobo, stored: Path) -> None:
    apply(stored)
    assert dobo("diff", f"{PROJECT}@v1", f"{PROJECT}@v9", "--json").codes == ["VERSION_NOT_FOUND"]
    assert dobo("diff", "nobody", f"{PROJECT}@v1", "--json").codes == ["NOT_DEFINED"]


def test_what_is_typed_in_a_wrong_way(dobo: Dobo, stored: Path) -> None:
    assert dobo("diff", "latest").code == 2
    assert dobo("diff", "a@2026-01", "b", "c", "--draft").code == 2
    assert dobo("diff", "latest", "previous", "--json").codes == ["RUN_NOT_FOUND"]
    assert dobo("diff", "nobody@2026-01", "--draft", "--json").codes == ["RUN_NOT_FOUND"]
