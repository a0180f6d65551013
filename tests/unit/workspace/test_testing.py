"""Scenarios are run before a project becomes active."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dobonomodo.problems.control import ScenarioFailed
from tests.unit.workspace.conftest import PROJECT, Office, refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCENARIO = """
scenario:
  name: nothing is known about it
  period: {identifier: "2026-01", start_date: 2026-01-01, end_date: 2026-01-31}
  project: {use: monthly-sales}
  expect: {error: {code: NO_SUCH_CODE}}
"""


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


def test_a_failing_scenario_stops_it(office: Office, spark: SparkSession) -> None:
    (office.root / "scenarios").mkdir()
    (office.root / "scenarios" / "one.yaml").write_text(SCENARIO)
    workspace = office.at_desk("ann")
    before = workspace.store.head()
    problem = refusal(workspace.activate, PROJECT, spark=spark)
    assert isinstance(problem, ScenarioFailed)
    assert (problem.name, problem.file) == ("nothing is known about it", "scenarios/one.yaml")
    assert workspace.store.head() == before
    assert workspace.activate(PROJECT, test=False, reason="hotfix").status == "active"
