"""What `dobo plan` says about two projects, as the files in ``plans`` say: plain, with SQL, and as JSON.

``monthly-sales`` is the annotated example of the seeds. ``revenue`` has lookups, a bitemporal join, an append with
aggregation, three outputs and a registration. ``make golden`` rewrites the files.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dobonomodo.plan.explain import describe_plan, render_plan
from dobonomodo.workspace import PlannedRun, Workspace
from tests.golden.text_file import compare

FOLDER = Path(__file__).parent / "plans"
DATA = Path(__file__).parents[1] / "data" / "workspaces"
PLANS = {"monthly-sales": ("sales", "2026-01"), "revenue": ("rich", "2026-Q1")}
STARTED = datetime(2026, 2, 3, 8, tzinfo=UTC)


def planned(project: str) -> PlannedRun:
    workspace, period = PLANS[project]
    return Workspace.open(DATA / workspace).plan(project, period=period, started_at=STARTED)


@pytest.mark.parametrize("project", PLANS)
def test_text(project: str, update_golden: bool) -> None:
    found = planned(project)
    compare(FOLDER / f"{project}.txt", render_plan(found.plan, found.facts) + "\n", update=update_golden)


@pytest.mark.parametrize("project", PLANS)
def test_sql(project: str, update_golden: bool) -> None:
    found = planned(project)
    compare(FOLDER / f"{project}.sql.txt", render_plan(found.plan, found.facts, sql=True) + "\n", update=update_golden)


@pytest.mark.parametrize("project", PLANS)
def test_json(project: str, update_golden: bool) -> None:
    found = planned(project)
    text = json.dumps(describe_plan(found.plan, found.facts, sql=True), indent=2, ensure_ascii=False)
    compare(FOLDER / f"{project}.json", text + "\n", update=update_golden)


@pytest.mark.parametrize("project", PLANS)
def test_the_same_plan_twice(project: str) -> None:
    one, other = planned(project), planned(project)
    assert render_plan(one.plan, one.facts, sql=True) == render_plan(other.plan, other.facts, sql=True)


def test_the_example_of_the_seeds_is_verbatim() -> None:
    seed = (DATA.parent / "seeds" / "annotated-example.yaml").read_text(encoding="utf-8")
    project = (DATA / "sales" / "projects" / "monthly-sales.yaml").read_text(encoding="utf-8")
    lines = [line.strip() for line in seed.splitlines() if line.strip() and not line.startswith("#")]
    assert lines == [
        line.strip() for line in project.splitlines()[7:] if line.strip() and not line.strip().startswith("#")
    ]
