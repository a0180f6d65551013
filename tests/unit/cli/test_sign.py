"""`dobo sign`, `dobo unsign` and `dobo history`, and what `dobo runs` shows of decisions."""

from __future__ import annotations

from pathlib import Path

import pytest

from dobonomodo.workspace import Workspace
from tests.unit.cli.conftest import Dobo

PROJECT, PERIOD = "monthly-sales", "2026-01"


@pytest.fixture
def applied(dobo: Dobo, stored: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DOBO_USER", "ann")
    workspace = Workspace.open(stored)
    workspace.apply()
    workspace.close()
    return stored


def test_signing_and_withdrawing(dobo: Dobo, applied: Path) -> None:
    signed = dobo("sign", f"{PROJECT}@v1", "--comment", "read", "--json")
    data = signed.document["data"]
    assert (signed.code, signed.document["schema"]) == (0, "dobo/sign/1")
    assert (data["kind"], data["id"], data["version"], data["by"], data["comment"]) == (
        "project",
        PROJECT,
        1,
        "ann",
        "read",
    )
    assert "ann" in dobo("sign", PERIOD).err
    assert dobo("unsign", PERIOD).code == 0
    assert dobo("unsign", PERIOD, "--json").codes == ["NOT_SIGNED"]
    (version,) = dobo("show", PROJECT, "--json").document["data"]["versions"]
    assert [each["by"] for each in version["sign_offs"]] == ["ann"]


def test_a_history_of_all_of_a_project_and_of_a_period(dobo: Dobo, applied: Path) -> None:
    dobo("sign", f"{PROJECT}@v1", "--comment", "read")
    dobo("period", "close", PERIOD, "--reason", "month end")
    document = dobo("history", "--json").document
    assert document["schema"] == "dobo/history/1"
    assert {"apply", "sign", "close"} == {entry["event"] for entry in document["data"]}
    assert [entry["number"] for entry in document["data"]] == list(range(1, len(document["data"]) + 1))
    assert [entry["event"] for entry in dobo("history", PROJECT, "--json").document["data"]] == ["apply", "sign"]
    assert [entry["reason"] for entry in dobo("history", PERIOD, "--json").document["data"]] == ["month end"]
    head, *lines = dobo("history", "-n", "2").out.splitlines()
    assert (head.split()[0], len(lines)) == ("WHEN", 2)
    assert "month end" in lines[-1]


def test_a_history_of_nothing(dobo: Dobo, sales: Path) -> None:
    assert dobo("history").code == 5
    assert dobo("history", PERIOD).code == 5
    unknown = dobo("history", "nothing", "--json")
    assert (unknown.code, unknown.codes) == (1, ["NOT_DEFINED"])


def test_an_override_needs_a_reason(dobo: Dobo, applied: Path) -> None:
    refused = dobo("run", PROJECT, "-p", PERIOD, "--override-closed", "--json")
    assert (refused.code, refused.codes) == (2, ["REASON_MISSING"])
    assert dobo("run", PROJECT, "-p", PERIOD, "--reason", "because").code == 2


def test_an_override_is_shown_wherever_the_run_is(dobo: Dobo, applied: Path) -> None:
    dobo("period", "close", PERIOD)
    assert dobo("run", PROJECT, "-p", PERIOD, "--json").codes == ["PERIOD_NOT_RUNNABLE"]
    # There are no files to read, so the run fails; it was allowed to begin.
    failed = dobo("run", PROJECT, "-p", PERIOD, "--override-closed", "--reason", "late invoice", "--json")
    assert failed.document["data"]["override"]["reason"] == "late invoice"
    assert "late invoice" in dobo("runs", "list").out
    assert "late invoice" in dobo("runs", "show", "latest").out
    (listed,) = dobo("runs", "list", "--json").document["data"]
    assert (listed["override"]["by"], listed["override"]["approved_by"]) == ("ann", [])
    report = dobo("runs", "report", "latest").out.strip()
    assert "late invoice" in Path(report).read_text()
    assert dobo("runs", "show", "latest", "--json").document["data"]["sign_offs"] == []
