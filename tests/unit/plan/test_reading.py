"""The day on which bitemporal rows must be valid: who names it, and when it is said that one day serves a whole period."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from dobonomodo.plan import Plan
from dobonomodo.plan.explain import describe_plan, render_plan
from dobonomodo.plan.reading import check_days
from tests.unit.plan.building import MONTHS, WORLD, append, plan_of, problem_in, shown, update, world_from
from tests.world import FIRST_QUARTER

FIRST, LAST = FIRST_QUARTER.period_start, FIRST_QUARTER.period_end
NAMED = date(2026, 2, 14)

END = world_from(WORLD.replace("temporal_mode: bitemporal", "temporal_mode: bitemporal\n    as_of: period_end"))
START = world_from(WORLD.replace("temporal_mode: bitemporal", "temporal_mode: bitemporal\n    as_of: period_start"))


def joined(as_of: str = "", dataset: str = "rates") -> str:
    named = f", as_of: {as_of}" if as_of else ""
    on = "r.country = region" if dataset == "rates" else "r.id = region"
    return update("x = r.country", joins=f"- {{alias: r, dataset_id: {dataset}{named}, on: {on}}}")


def appended(as_of: str = "", dataset: str = "rates") -> str:
    source = f"{{source: {{dataset_id: {dataset}{f', as_of: {as_of}' if as_of else ''}}}}}"
    make = update("country = region", "rate = 1.5") if dataset == "rates" else ""
    return f"{make}- {{seq: 5, type: append, arguments: {source}}}\n"


def day(plan: Plan, as_of: date | None = None) -> date:
    (use,) = [use for use in plan.uses if use.dataset_id == "rates"]
    return use.valid_on(FIRST_QUARTER, as_of)


@pytest.mark.parametrize("reading", [joined, appended])
def test_the_first_day_unless_one_is_named(reading: Any) -> None:
    assert day(plan_of(reading())) == FIRST
    assert day(plan_of(reading("period_end"))) == LAST
    assert day(plan_of(reading("period_start"))) == FIRST


@pytest.mark.parametrize("reading", [joined, appended])
def test_the_reading_comes_before_the_dataset(reading: Any) -> None:
    assert day(plan_of(reading(), world=END)) == LAST
    assert day(plan_of(reading("period_start"), world=END)) == FIRST
    assert day(plan_of(reading("period_end"), world=START)) == LAST


@pytest.mark.parametrize("reading", [joined, appended])
def test_the_run_comes_before_all(reading: Any) -> None:
    assert day(plan_of(reading("period_end"), world=START), as_of=NAMED) == NAMED
    assert day(plan_of(reading("period_start"), world=END), as_of=NAMED) == NAMED


def test_each_reading_has_its_own_day() -> None:
    uses = plan_of(joined("period_end") + appended().replace("seq: 1", "seq: 2"), world=START).uses
    assert [use.valid_on(FIRST_QUARTER, None) for use in uses if use.dataset_id == "rates"] == [LAST, FIRST]


def test_a_bitemporal_input() -> None:
    plan = plan_of("- {seq: 1, type: delete, selector: rate = 0}", world=END, input_id="rates")
    assert day(plan) == LAST


LOOKUPS = """
dataset:
  id: shops
  main_table: {name: shops, columns: [{name: country, type: string}]}
  lookups:
    - alias: r
      target: %s
      as_of: period_end
      join_conditions: [{source_column: country, target_column: country}]
"""
OWN_TABLE = "{type: table, name: rates, temporal_mode: bitemporal, columns: [{name: country, type: string}]}"


@pytest.mark.parametrize("target", ["{type: dataset, id: rates}", OWN_TABLE])
def test_a_lookup(target: str) -> None:
    world = START.with_dataset(LOOKUPS % target)
    plan = plan_of("- {seq: 1, type: delete, selector: ISNULL(r.country)}", world=world, input_id="shops")
    (use,) = [use for use in plan.uses if use.role == "lookup"]
    assert use.valid_on(FIRST_QUARTER, None) == LAST


@pytest.mark.parametrize("reading", [joined("period_end", "customers"), appended("period_end", "budget")])
def test_a_day_means_something_for_bitemporal_datasets_only(reading: str) -> None:
    problem = problem_in(reading)
    assert (problem.code, problem.key, shown(problem.span)) == ("INVALID_VALUE", "as_of", "as_of")
    assert problem.operation is not None


def test_another_word_than_the_two() -> None:
    assert problem_in(joined("period_middle")).code == "INVALID_VALUE"


def test_the_plan_shows_the_day() -> None:
    plan = plan_of(joined("period_end"))
    assert [use["as_of"] for use in describe_plan(plan, FIRST_QUARTER)["reads"]] == [None, "2026-03-31"]
    assert [use["as_of"] for use in describe_plan(plan, FIRST_QUARTER, as_of=NAMED)["reads"]] == [None, "2026-02-14"]
    assert [use["as_of"] for use in describe_plan(plan)["reads"]] == [None, None]
    assert "as of 2026-03-31" in render_plan(plan, FIRST_QUARTER)
    assert "as of 2026-02-14" in render_plan(plan, FIRST_QUARTER, as_of=NAMED)
    assert "as of" not in render_plan(plan)


# --- W-09


def warnings(plan: Plan, period: str, as_of: date | None = None) -> list[Any]:
    return list(check_days(plan, MONTHS.by_identifier[period], MONTHS, as_of=as_of))


def test_one_day_for_a_quarter() -> None:
    (warning,) = warnings(plan_of(joined()), "2026-Q1")
    assert (warning.code, warning.severity, warning.dataset_id) == ("W-09", "warning", "rates")
    assert (warning.day, warning.level, warning.count) == (FIRST, "month", 3)
    assert (shown(warning.span), warning.operation.seq) == ("rates", 1)


def test_one_day_for_a_year_names_the_next_level() -> None:
    (warning,) = warnings(plan_of(joined()), "2026")
    assert (warning.level, warning.count) == ("quarter", 2)


def test_a_month_has_no_parts() -> None:
    assert warnings(plan_of(joined()), "2026-01") == []


def test_no_warning_where_somebody_names_the_day() -> None:
    assert warnings(plan_of(joined("period_start")), "2026-Q1") == []
    assert warnings(plan_of(joined(), world=END), "2026-Q1") == []
    assert warnings(plan_of(joined()), "2026-Q1", as_of=NAMED) == []


def test_no_warning_for_other_datasets() -> None:
    assert warnings(plan_of(append("budget")), "2026-Q1") == []


def test_no_warning_without_a_calendar() -> None:
    assert list(check_days(plan_of(joined()), MONTHS.by_identifier["2026-Q1"], None, as_of=None)) == []
