"""The scenarios of a project are run before it becomes active."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dobonomodo.problems.control import ScenarioFailed
from tests.unit.workspace.conftest import PROJECT, Office, active, office, refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["active", "office"]

SCENARIO = """
scenario:
  name: nothing is known about it
  period: {identifier: "2026-01", start_date: 2026-01-01, end_date: 2026-01-31}
  project: {use: monthly-sales}
  expect: {error: {code: NO_SUCH_CODE}}
"""


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
