"""`dobo period`."""

from __future__ import annotations

from pathlib import Path

import pytest

from dobonomodo.workspace import Workspace, now
from tests.unit.cli.conftest import Dobo


def test_a_list(dobo: Dobo, sales: Path) -> None:
    result = dobo("period", "list")
    assert (result.code, len(result.out.splitlines())) == (0, 1 + 4 + 12)


def test_only_some(dobo: Dobo, sales: Path) -> None:
    assert [line.split()[1] for line in dobo("period", "list", "--level", "quarter").out.splitlines()] == [
        f"2026-Q{number}" for number in (1, 2, 3, 4)
    ]


def test_as_json(dobo: Dobo, sales: Path) -> None:
    document = dobo("period", "list", "--level", "year", "--json").document
    (year,) = document["data"]
    assert document["schema"] == "dobo/periods/1"
    assert (year["calendar"], year["identifier"], year["status"]) == ("fiscal", "FY2026", "open")


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_nothing_matched(dobo: Dobo, sales: Path, flags: tuple[str, ...]) -> None:
    assert dobo("period", "list", "--status", "locked", *flags).code == 5


@pytest.mark.parametrize("flags", [("--level", "week"), ("--status", "shut")])
def test_a_filter_that_cannot_match(dobo: Dobo, sales: Path, flags: tuple[str, ...]) -> None:
    assert dobo("period", "list", *flags).code in (2, 5)


def test_closing_and_locking(dobo: Dobo, stored: Path) -> None:
    assert dobo("period", "close", "2026-01").code == 0
    assert dobo("period", "lock", "2026-01", "--json").document["data"]["status"] == "locked"
    assert [line.split()[1] for line in dobo("period", "list", "--status", "locked").out.splitlines()] == ["2026-01"]


def test_an_open_one_is_not_locked(dobo: Dobo, stored: Path) -> None:
    result = dobo("period", "lock", "2026-01")
    assert (result.code != 0, "INVALID_TRANSITION" in result.err) == (True, True)


def test_one_that_does_not_exist(dobo: Dobo, stored: Path) -> None:
    result = dobo("period", "close", "2026-13")
    assert (result.code != 0, "PERIOD_NOT_FOUND" in result.err) == (True, True)


def test_a_reason_is_recorded_and_shown(dobo: Dobo, stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOBO_USER", "ann")
    assert dobo("period", "close", "2026-01", "--reason", "month end").code == 0
    assert dobo("period", "lock", "2026-01").code == 0
    shown = dobo("period", "show", "2026-01")
    assert (shown.code, "ann" in shown.out, "month end" in shown.out) == (0, True, True)
    data = dobo("period", "show", "2026-01", "--json").document["data"]
    assert (data["status"], data["changed_by"], data["reason"]) == ("locked", "ann", None)
    assert [(entry["event"], entry["reason"]) for entry in data["history"]] == [("close", "month end"), ("lock", None)]


def test_reopening(dobo: Dobo, stored: Path) -> None:
    dobo("period", "close", "2026-01")
    dobo("period", "lock", "2026-01")
    refused = dobo("period", "reopen", "2026-01", "--json")
    assert (refused.code, refused.codes) == (2, ["REASON_MISSING"])
    assert dobo("period", "open", "2026-01", "--json").codes == ["INVALID_TRANSITION"]
    reopened = dobo("period", "reopen", "2026-01", "--reason", "audit", "--json")
    assert reopened.document["data"]["status"] == "open"


def test_closing_what_somebody_runs_is_a_conflict(dobo: Dobo, stored: Path) -> None:
    workspace = Workspace.open(stored)
    workspace.store.take_lease("monthly-sales", "2026-01", token="elsewhere", holder="bob", at=now())
    workspace.close()
    refused = dobo("period", "close", "2026-01", "--json")
    assert (refused.code, refused.codes) == (4, ["PERIOD_IN_USE"])
