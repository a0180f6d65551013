"""A store that cannot be used: every command says so, with a remedy."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from dobonomodo.cli.console import Exit
from dobonomodo.problems import RunFailed
from dobonomodo.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Dobo

COMMANDS = [
    ("plan", "monthly-sales", "--period", "2026-01"),
    ("run", "monthly-sales", "--period", "2026-01"),
    ("resume", "20260101"),
    ("cancel", "20260101"),
    ("verify", "20260101"),
    ("apply", "--yes"),
    ("activate", "monthly-sales"),
    ("deactivate", "monthly-sales"),
    ("ls", "projects"),
    ("show", "monthly-sales"),
    ("runs", "list"),
    ("runs", "show", "20260101"),
    ("period", "list"),
    ("period", "close", "2026-01"),
]


def _replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _make_newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE dobo_format SET version_num = '9999'")
        connection.commit()


def _replace_by_bookmarks(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (address TEXT)")
        connection.commit()


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (lambda path: path.write_bytes(b""), "STORE_INVALID"),
    "text": (lambda path: path.write_text("this is not a database" * 100), "STORE_INVALID"),
    "damaged": (lambda path: path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 40960), "STORE_INVALID"),
    "foreign": (_replace_by_bookmarks, "STORE_INVALID"),
    "folder": (_replace_by_folder, "STORE_INVALID"),
    "newer": (_make_newer, "STORE_TOO_NEW"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_command_gives_the_problem_and_a_remedy(dobo: Dobo, stored: Path, fault: str) -> None:
    """Every fault by two commands, each of the two codes by all commands."""
    spoil, code = FAULTS[fault]
    spoil(stored / ".dobo" / "store.db")
    for command in COMMANDS if fault in ("damaged", "newer") else COMMANDS[:2]:
        result = dobo(*command, "--json")
        assert (result.code, result.codes) == (Exit.USAGE, [code]), (command, result.err)
        assert result.document["problems"][0]["hint"]
        assert "Traceback" not in result.err


@pytest.mark.parametrize("fault", FAULTS)
def test_doctor_goes_on(dobo: Dobo, stored: Path, fault: str) -> None:
    FAULTS[fault][0](stored / ".dobo" / "store.db")
    result = dobo("doctor", "--json")
    assert result.code == Exit.ENVIRONMENT
    (found,) = (each for each in result.document["data"] if each["check"] == "store")
    assert (found["status"], bool(found["remedy"])) == ("failed", True)


def test_what_needs_no_store_works_without(dobo: Dobo, stored: Path) -> None:
    (stored / ".dobo" / "store.db").write_bytes(b"")
    assert dobo("formula", "1 + 1").code == Exit.SUCCESS
    assert dobo("functions").code == Exit.SUCCESS


def test_a_file_where_the_folder_of_the_store_should_be(dobo: Dobo, sales: Path) -> None:
    (sales / ".dobo").write_text("in the way")
    result = dobo("apply", "--yes", "--json")
    assert (result.code, result.codes) == (Exit.FAILURE, ["STORE_UNAVAILABLE"])
    assert str(sales / ".dobo") in result.document["problems"][0]["hint"]


def test_a_sandbox_that_cannot_be_made(sales: Path) -> None:
    shutil.rmtree(sales / ".dobo", ignore_errors=True)
    (sales / ".dobo").mkdir()
    (sales / ".dobo" / "sandbox").write_text("in the way")
    with pytest.raises(RunFailed) as failure:
        _ = Workspace.open(sales)._stores.sandbox
    assert failure.value.problem.code == "STORE_UNAVAILABLE"
