"""Periods are closed, locked and reopened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dobonomodo.problems.control import ApprovalsMissing, PeriodInUse, ReasonMissing
from dobonomodo.workspace.closing import place_kept
from tests.unit.runs.reporting import SNAPSHOT, make_output, make_view
from tests.unit.workspace.conftest import PERIOD, PROJECT, Office, refusal


def test_who_when_and_why(office: Office) -> None:
    office.at_desk("ann").change_period(PERIOD, "closed", reason=" month end ")
    workspace = office.at_desk("bob")
    assert workspace.change_period(PERIOD, "locked").status == "locked"
    view = workspace.show_period(PERIOD)
    assert [(entry.event, entry.by, entry.reason) for entry in view.history] == [
        ("close", "ann", "month end"),
        ("lock", "bob", None),
    ]
    assert view.latest == view.history[-1]
    assert (view.to_dict()["status"], view.to_dict()["changed_by"]) == ("locked", "bob")


def test_a_period_to_which_nothing_happened(office: Office) -> None:
    view = office.at_desk("ann").show_period(PERIOD)
    assert (view.latest, view.history, view.results, view.signed) == (None, (), (), ())
    assert (view.to_dict()["status"], view.to_dict()["changed_at"]) == ("open", None)


def test_a_workspace_without_a_store_has_periods(office: Office) -> None:
    (office.root / ".dobo" / "store.db").unlink()
    workspace = office.at_desk("ann")
    assert workspace.show_period(PERIOD).history == ()
    assert workspace.history(PERIOD) == workspace.history() == ()


def test_a_closed_period_is_reopened_without_a_reason(office: Office) -> None:
    workspace = office.at_desk("ann")
    workspace.change_period(PERIOD, "closed")
    assert workspace.reopen_period(PERIOD).status == "open"
    assert workspace.change_period(PERIOD, "closed").status == "closed"


@pytest.mark.parametrize("reason", [None, "", "  "])
def test_a_locked_one_needs_a_reason(office: Office, reason: str | None) -> None:
    workspace = office.at_desk("ann")
    for status in ("closed", "locked"):
        workspace.change_period(PERIOD, status)
    assert isinstance(refusal(workspace.reopen_period, PERIOD, reason=reason), ReasonMissing)
    assert workspace.reopen_period(PERIOD, reason="late invoice").status == "open"
    assert workspace.history(PERIOD)[-1].reason == "late invoice"


def test_opening_is_only_making_sure(office: Office) -> None:
    workspace = office.at_desk("ann")
    assert workspace.change_period(PERIOD, "open").status == "open"
    workspace.change_period(PERIOD, "closed")
    problem = refusal(workspace.change_period, PERIOD, "open")
    assert (problem.code, getattr(problem, "possible", None)) == ("INVALID_TRANSITION", ("lock", "reopen"))


def test_the_record_wins_over_the_file(office: Office) -> None:
    dates = "start_date: 2026-01-01, end_date: 2026-01-31"
    listed = f"\n  periods:\n    - {{identifier: 2026-01, level: month, parent: 2026-Q1, {dates}, status: locked}}\n"
    path = office.root / "calendars" / "fiscal.yaml"
    path.write_text(path.read_text().rstrip("\n") + listed)
    workspace = office.at_desk("ann")
    assert workspace.find_period(PERIOD).status == "locked"
    workspace.reopen_period(PERIOD, reason="late")
    assert office.at_desk("ann").find_period(PERIOD).status == "open"
    assert office.at_desk("ann").show_period(PERIOD).starts == {"fiscal": "locked"}


def test_results_are_shown(office: Office) -> None:
    workspace = office.at_desk("ann")
    office.put_run()
    latest, other = office.put_run(), office.put_run(project="other")
    office.put_run(draft=True)
    office.put_run(status="failed", progress={"outputs": []})
    found = workspace.show_period(PERIOD)
    assert [(each.project, each.run) for each in found.results] == [(PROJECT, latest.id), ("other", other.id)]


def test_a_period_is_locked_with_approvals(office: Office) -> None:
    office.setting("approvals: {lock: 1}")
    workspace = office.at_desk("ann")
    workspace.change_period(PERIOD, "closed")
    missing = refusal(workspace.change_period, PERIOD, "locked")
    assert missing == ApprovalsMissing(subject=PERIOD, needed=1, command="dobo sign 2026-01")
    office.at_desk("bob").sign(PERIOD)
    run = office.put_run_overriding()
    assert refusal(office.at_desk("ann").change_period, PERIOD, "locked").code == "APPROVALS_MISSING"
    office.at_desk("bob").sign(PERIOD)
    assert office.at_desk("ann").change_period(PERIOD, "locked").status == "locked"
    entry = office.at_desk("ann").history(PERIOD)[-1]
    assert (entry.event, (entry.detail or {})["approved_by"]) == ("lock", ["bob"])
    assert run.period == PERIOD


def test_a_period_is_not_closed_over_a_publication_that_was_cut_off(office: Office) -> None:
    workspace = office.at_desk("ann")
    run = office.put_run(status="running", progress={"intent": [90], "staged": []})
    problem = refusal(workspace.change_period, PERIOD, "closed")
    assert problem == PeriodInUse(period=PERIOD, project=PROJECT, run=run.id)


def test_a_locked_result_that_is_gone_does_not_keep_a_period_locked(office: Office) -> None:
    workspace = office.at_desk("ann")
    office.put_run(snapshot={**SNAPSHOT, "project": {**SNAPSHOT["project"], "status": "active"}})
    for status in ("closed", "locked"):
        workspace.change_period(PERIOD, status)
    workspace.reopen_period(PERIOD, reason="late")
    (kept,) = (workspace.history(PERIOD)[-1].detail or {})["kept"]
    assert (kept["project"], kept["table"], kept["location"]) == (PROJECT, "out", None)


def test_rows_are_read_where_they_were_kept(office: Office, tmp_path: Path) -> None:
    workspace = office.at_desk("ann")
    run = office.put_run()
    data = office.root / "lake/out" / run.id
    data.mkdir(parents=True)
    for status in ("closed", "locked"):
        workspace.change_period(PERIOD, status)
    workspace.reopen_period(PERIOD, reason="late")
    assert (data.parent / "kept").exists()
    found = workspace.find_run(run.id).outputs["out"]
    assert found.location.place == ("folder", f"lake/out/{run.id}")


def test_runs_that_were_never_locked_are_where_they_are(office: Office) -> None:
    view = replace(make_view(), outputs={"out": make_output()})
    assert place_kept(view, office.at_desk("ann").history()) is view
