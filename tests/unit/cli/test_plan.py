"""`dobo plan`. How a plan reads is in the golden plans."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.conftest import Dobo, change

PLAN = ("plan", "monthly-sales", "--period", "2026-01")


def test_a_plan_goes_to_stdout(dobo: Dobo, sales: Path) -> None:
    result = dobo(*PLAN)
    assert (result.code, result.err) == (0, "")
    assert "ds-lake:orders/2026/01.parquet" in result.out
    assert "SELECT" not in result.out


def test_with_sql(dobo: Dobo, sales: Path) -> None:
    result = dobo(*PLAN, "--sql", "--started-at", "2026-02-03T08:00:00Z")
    assert "2026-02-03" in result.out
    assert "CASE WHEN" in result.out


def test_as_json(dobo: Dobo, sales: Path) -> None:
    document = dobo(*PLAN, "--json").document
    assert (document["schema"], document["ok"], document["problems"]) == ("dobo/plan/1", True, [])
    data = document["data"]
    assert (data["project"], data["period"], data["version"], data["status"]) == (
        "monthly-sales",
        "2026-01",
        None,
        "draft",
    )
    assert [step["seq"] for step in data["operations"]] == [1, 2, 3, 4, 5]
    assert data["writes"][0]["columns"][0]["inputs"] == ["sales-orders.order_id"]


def test_planning_writes_nothing(dobo: Dobo, sales: Path) -> None:
    before = sorted(sales.rglob("*"))
    dobo(*PLAN, "--sql")
    assert sorted(sales.rglob("*")) == before


def test_warnings_come_with_the_plan(dobo: Dobo, sales: Path) -> None:
    change(sales, "projects/monthly-sales.yaml", "  selectors:", "  selectors:\n    unused: amount > 1")
    result = dobo(*PLAN)
    assert (result.code, "W-07" in result.err) == (0, True)
    assert dobo(*PLAN, "--json").codes == ["W-07"]


def test_errors_instead_of_a_plan(dobo: Dobo, sales: Path) -> None:
    change(sales, "projects/monthly-sales.yaml", "orders.amount = 0", "amout = 0")
    result = dobo(*PLAN)
    assert (result.code, result.out, "UNKNOWN_COLUMN" in result.err) == (1, "", True)


@pytest.mark.parametrize("moment", ["yesterday", "2026-02-30T00:00:00Z", "2026-02-03", "2026-02-03T08:00:00"])
def test_a_clock_that_is_none(dobo: Dobo, sales: Path, moment: str) -> None:
    assert dobo(*PLAN, "--started-at", moment).code == 2


def test_a_period_that_does_not_exist(dobo: Dobo, sales: Path) -> None:
    result = dobo("plan", "monthly-sales", "-p", "2026-1")
    assert result.code in (1, 5)
    assert "PERIOD_NOT_FOUND" in result.err
    assert "2026-01" in result.err


def test_the_active_version_and_the_draft(dobo: Dobo, stored: Path) -> None:
    dobo("apply", "--yes")
    dobo("activate", "monthly-sales")
    change(stored, "projects/monthly-sales.yaml", "orders.amount = 0", "orders.amount < 0")
    active = dobo(*PLAN, "--json").document["data"]
    draft = dobo(*PLAN, "--draft", "--json").document["data"]
    assert [(each["version"], each["status"], each["operations"][3]["selector"]) for each in (active, draft)] == [
        (1, "active", "orders.amount = 0"),
        (None, "draft", "orders.amount < 0"),
    ]


def test_the_text_says_which_version_it_is(dobo: Dobo, stored: Path) -> None:
    assert "draft" in dobo(*PLAN).out
    dobo("apply", "--yes")
    dobo("activate", "monthly-sales")
    assert "version 1" in dobo(*PLAN).out.splitlines()[0]


def test_parameters(dobo: Dobo, sales: Path) -> None:
    declared = "  parameters:\n    uplift: {type: 'decimal(5,4)', default: 0.03, description: Planned increase}\n    day: {type: date}\n"
    used = "  selectors:\n    raised: amount > param.uplift AND TODAY() > param.day"
    change(sales, "projects/monthly-sales.yaml", "  selectors:", declared + used)
    change(sales, "projects/monthly-sales.yaml", '"orders.status = \\"active\\""', '"{{raised}}"')
    result = dobo(*PLAN, "--set", "uplift=0.05", "--set", "day=2026-01-31")
    assert (result.code, result.err) == (0, "")
    assert "uplift  decimal(5,4)  0.05        default 0.03  Planned increase" in result.out
    assert dobo(*PLAN, "--set", "uplift=0.05", "--set", "day=2026-01-31", "--json").document["data"]["parameters"][
        "day"
    ] == {"type": "date", "value": "2026-01-31", "default": None, "description": None}
    missing = dobo(*PLAN)
    assert (missing.code, "PARAMETER_MISSING" in missing.err, "--set day=" in missing.err) == (2, True, True)
    assert dobo(*PLAN, "--set", "day=31.1.2026").code == 2
    assert dobo(*PLAN, "--set", "dya=2026-01-31").code == 2
    wrong = dobo(*PLAN, "--set", "day")
    assert (wrong.code, "NAME=VALUE" in wrong.err) == (2, True)


def test_the_plans_of_several_periods(dobo: Dobo, sales: Path) -> None:
    result = dobo("run", "monthly-sales", "--period", "2026-01..2026-03", "--dry-run")
    assert result.code == 0
    assert [name for name in ("2026-01", "2026-02", "2026-03", "2026-04") if f"period {name}" in result.out] == [
        "2026-01",
        "2026-02",
        "2026-03",
    ]
    assert "period 2026-01" in dobo("plan", "monthly-sales", "-p", "latest", "--started-at", "2026-02-03T08:00:00Z").out
    several = dobo("plan", "monthly-sales", "--period", "2026-01..2026-03")
    assert (several.code, "--dry-run" in several.err) == (2, True)
