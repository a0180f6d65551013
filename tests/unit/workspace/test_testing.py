"""Scenarios are run before a project becomes active."""

from __future__ import annotations

from tests.unit.workspace.conftest import PROJECT, Office, refusal


def test_a_project_without_scenarios_gets_a_warning_and_no_spark(office: Office) -> None:
    active = office.at_desk("ann").activate(PROJECT)
    assert [problem.code for problem in active.warnings] == ["W-10"]
    entry = office.at_desk("ann").history(PROJECT)[-1]
    assert (entry.event, (entry.detail or {})["scenarios"]) == ("activate", 0)


def test_leaving_them_out_needs_a_reason(office: Office) -> None:
    workspace = office.at_desk("ann")
    assert refusal(workspace.activate, PROJECT, test=False).code == "REASON_MISSING"
    active = workspace.activate(PROJECT, test=False, reason="hotfix")
    assert (active.status, active.warnings) == ("active", ())
    entry = workspace.history(PROJECT)[-1]
    assert (entry.reason, (entry.detail or {})["scenarios"]) == ("hotfix", None)
