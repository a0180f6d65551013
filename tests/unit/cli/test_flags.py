"""The flags of every command work before its name and behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dobonomodo.cli.console import Settings
from dobonomodo.cli.main import _all_commands, walk_commands
from tests.unit.cli.conftest import Dobo

ARGUMENTS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("init",): (".",),
    ("validate",): (),
    ("test",): ("-k", "nothing of this name"),
    ("plan",): ("monthly-sales", "-p", "2026-01"),
    ("run",): ("no-such-project", "-p", "2026-01"),
    ("resume",): ("no-such-run",),
    ("cancel",): ("no-such-run",),
    ("verify",): ("no-such-run",),
    ("why",): ("no-such-run", "--key", "id=1"),
    ("why-not",): ("no-such-run", "--key", "id=1"),
    ("clean",): ("--dry-run",),
    ("apply",): ("--yes",),
    ("activate",): ("no-such-project",),
    ("deactivate",): ("no-such-project",),
    ("sign",): ("no-such-run",),
    ("unsign",): ("no-such-run",),
    ("history",): ("no-such-project",),
    ("diff",): ("no-such-project", "no-such-project@v1"),
    ("evidence",): ("no-such-run", "-o", "evidence.zip"),
    ("audit", "verify"): (),
    ("dataset", "infer"): ("dobo.yaml",),
    ("ls",): ("projects",),
    ("show",): ("monthly-sales",),
    ("formula",): ("1 + 1", "--started-at", "2026-01-01T00:00:00Z"),
    ("functions",): ("SUM",),
    ("explain",): ("DATA_LOAD",),
    ("schema",): ("project",),
    ("doctor",): (),
    ("period", "list"): ("--level", "year"),
    ("period", "show"): ("no-such-period",),
    ("period", "reopen"): ("no-such-period",),
    ("period", "open"): ("no-such-period",),
    ("period", "close"): ("no-such-period",),
    ("period", "lock"): ("no-such-period",),
    ("runs", "list"): (),
    ("runs", "show"): ("no-such-run",),
    ("runs", "report"): ("no-such-run",),
}
"""Every command, with arguments with which it ends at once."""
WITHOUT_WORKSPACE = {
    ("init",),
    ("dataset", "infer"),
    ("formula",),
    ("functions",),
    ("explain",),
    ("schema",),
    ("doctor",),
}


def paths(command: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    below = getattr(command, "commands", None)
    if below is None:
        return [path]
    return [found for name, each in below.items() for found in paths(each, (*path, name))]


def test_all_commands_are_tried() -> None:
    assert sorted(paths(_all_commands())) == sorted(ARGUMENTS)


def test_every_command_and_group_has_every_flag() -> None:
    for command in walk_commands(_all_commands()):
        known = {name for each in command.params for name in each.opts}
        assert {"-C", "--env", "-q", "-v", "--no-color", "--debug", "--json"} <= known, command.name


def placements(path: tuple[str, ...], *flags: str) -> list[tuple[str, ...]]:
    """The flags before the command, behind it, behind its arguments, and behind a group."""
    arguments = ARGUMENTS[path]
    ways = [(*flags, *path, *arguments), (*path, *flags, *arguments), (*path, *arguments, *flags)]
    return ways if len(path) == 1 else [*ways, (path[0], *flags, *path[1:], *arguments)]


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder beside the workspace, which is the current one."""
    folder = tmp_path / "outside"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("path", ARGUMENTS, ids=" ".join)
def test_flags_work_in_every_place(
    dobo: Dobo, stored: Path, outside: Path, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...]
) -> None:
    monkeypatch.setattr("dobonomodo.cli.doctor.examine", lambda: ())
    small = outside / "small"
    small.mkdir()
    (small / "dobo.yaml").write_text("workspace: {name: small}")
    flags = ("-C", str(small), "-q", "-v", "--no-color", "--debug", "--json", "--env", "no-such-environment")
    for way in placements(path, *flags):
        result = dobo(*way)
        assert (Settings.folder, Settings.environment) == (str(small), "no-such-environment"), way
        assert (Settings.quiet, Settings.verbose, Settings.debug, Settings.color) == (True, True, True, False), way
        assert Settings.as_json, way
        if path not in WITHOUT_WORKSPACE:
            assert (result.code, result.codes) == (2, ["ENVIRONMENT_NOT_FOUND"]), way
    result = dobo(*path, *ARGUMENTS[path], "-C", str(stored), "--json")
    assert set(result.document) == {"schema", "ok", "data", "problems"}


def test_a_value_that_looks_like_a_flag_is_a_value(dobo: Dobo, sales: Path) -> None:
    result = dobo("formula", "x", "--selector", "x=--json")
    assert not Settings.as_json
    assert result.code == 1
