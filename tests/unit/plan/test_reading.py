"""The day on which bitemporal rows must be valid: who names it, and when it is said that one day serves a whole period."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from dobonomodo.plan import Plan
from dobonomodo.plan.explain import describe_plan, render_plan
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.reading import check_awaited, check_days, check_unfiltered
from tests.unit.plan.building import (
    MONTHS,
    WORLD,
    WORLD_BUILT,
    World,
    append,
    found,
    plan_of,
    problem_in,
    shown,
    update,
    world_from,
)
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


# --- other periods

JANUARY = WORLD_BUILT.resolving(schedule=MONTHS, period=MONTHS.by_identifier["2026-01"])
FEBRUARY = WORLD_BUILT.resolving(schedule=MONTHS, period=MONTHS.by_identifier["2026-02"])


def joining(timing: str, dataset: str = "budget") -> str:
    on = "b.country = region" if dataset in ("rates", "customers") else "b.region = region"
    return f"""\
        - seq: 1
          type: update
          arguments:
            joins: [{{alias: b, dataset_id: {dataset}, on: {on}, {timing}}}]
            assignments: [{{column: note, expression: region}}]
    """


def periods_of(timing: str, world: World, dataset: str = "budget") -> list[str] | None:
    use = plan_of(joining(timing, dataset), world=world).uses[1]
    return [each.identifier for each in use.periods] if use.periods is not None else None


def test_a_reading_is_for_the_periods_that_it_names() -> None:
    assert periods_of("period: current", FEBRUARY) is None
    assert periods_of("period: previous", FEBRUARY) == ["2026-01"]
    assert periods_of("period: {last: 2}", FEBRUARY) == ["2026-01", "2026-02"]
    assert periods_of("period: previous, missing: empty", JANUARY) == []


def test_without_a_period_nothing_is_chosen_yet() -> None:
    assert periods_of("period: previous", WORLD_BUILT) is None


def test_a_period_that_does_not_exist_is_reported_at_the_reading() -> None:
    assert found(joining("period: previous"), world=JANUARY) == [("OTHER_PERIOD_MISSING", "previous")]
    range_of = "period: {from: 2026-01, to: 2031-12}"
    assert [code for code, _ in found(joining(range_of), world=JANUARY)] == ["PERIOD_NOT_FOUND"]


@pytest.mark.parametrize(
    ("named", "codes"),
    [
        ("{from: 2026-01, to: 2026-02}", []),
        ("{from: 2026-01, to: 2026-13}", ["PERIOD_NOT_FOUND"]),
        ("{from: 2026-02, to: 2026-01}", ["INVALID_PERIOD_RANGE"]),
        ("previous", []),
    ],
)
def test_periods_that_are_named_are_checked_without_a_period(named: str, codes: list[str]) -> None:
    schedule = JANUARY.resolution.schedule
    assert schedule is not None
    world = WORLD_BUILT.resolving(schedules=(schedule,))
    problems = found(joining(f"period: {named}"), world=world)
    assert [code for code, _ in problems] == codes
    assert {text for _, text in problems} <= {named}


def test_a_bitemporal_dataset_is_read_for_one_period() -> None:
    assert [code for code, _ in found(joining("period: {last: 2}", "rates"), world=FEBRUARY)] == ["INVALID_VALUE"]
    use = plan_of(joining("period: previous, as_of: period_end", "rates"), world=FEBRUARY).uses[1]
    facts = RunFacts(FIRST_QUARTER.started_at, "2026-02", date(2026, 2, 1), date(2026, 2, 28))
    assert use.valid_on(facts, None) == date(2026, 1, 31)
    assert use.valid_on(facts, date(2026, 2, 14)) == date(2026, 1, 31), "--as-of is for the period of the run"


def test_rows_of_other_periods_are_not_checked_again() -> None:
    checked = WORLD_BUILT.with_dataset(
        """\
        dataset:
          id: own
          checks: [{unique: [region]}]
          main_table: {name: own, temporal_mode: period, columns: [{name: region, type: string}]}
        """
    )
    assert len(plan_of(joining("dataset_version: 1", "own"), world=checked).contracts) == 1
    assert plan_of(joining("period: year_to_date", "own"), world=checked).contracts == ()


def test_each_period_has_its_location_and_a_shared_one_is_read_once() -> None:
    def located(path: str) -> list[tuple[str | None, str | None]]:
        rule = FEBRUARY.definitions.resolvers["files"].rules[0]
        strategy = rule.strategy.model_copy(update={"path": path})
        resolver = FEBRUARY.definitions.resolvers["files"].model_copy(
            update={"rules": (rule.model_copy(update={"strategy": strategy, "data_level": "month"}),)}
        )
        plan = plan_of(joining("period: {last: 2}"), world=FEBRUARY.resolving(resolvers={"files": resolver}))
        return [(each.path, each.period) for each in plan.uses[1].locations]

    assert located("b/{{identifier}}") == [("b/2026-01", "2026-01"), ("b/2026-02", "2026-02")]
    assert located("b") == [("b", None)]


def test_the_plan_lists_every_period() -> None:
    plan = plan_of(joining("period: {last: 2}"), world=FEBRUARY)
    facts = RunFacts(FIRST_QUARTER.started_at, "2026-02", date(2026, 2, 1), date(2026, 2, 28))
    assert "last 2: 2026-01, 2026-02" in render_plan(plan, facts)
    reads = describe_plan(plan, facts)["reads"]
    assert isinstance(reads, list)
    assert (reads[1]["period"], reads[1]["periods"]) == ({"last": 2}, ["2026-01", "2026-02"])


def test_an_awaited_dataset_may_be_missing() -> None:
    text = "dataset: {id: own, main_table: {name: own, temporal_mode: period, columns: [{name: region, type: string}]}}"
    world = FEBRUARY.with_dataset(text, registered_by=("other",), planned=True)
    awaited = plan_of(joining("period: previous", "own"), world=world)
    assert [each.code for each in check_awaited(awaited, "2026-02")] == ["JOIN_DATASET_NOT_FOUND"]
    assert (
        list(check_awaited(plan_of(joining("period: previous, missing: empty", "own"), world=world), "2026-02")) == []
    )


def test_only_sources_without_a_temporal_mode_are_not_filtered() -> None:
    world = world_from(WORLD.replace("name: budgets\n    temporal_mode: period", "name: budgets"))
    (problem,) = check_unfiltered(plan_of(append("budget"), world=world), lambda use: ("amount", "_PERIOD"))
    assert (problem.code, problem.operation and problem.operation.seq, shown(problem.span)) == ("W-04", 1, "budget")
    assert not list(check_unfiltered(plan_of(append("budget"), world=world), lambda use: tuple(use.columns)))
    assert not list(check_unfiltered(plan_of(append("budget")), lambda use: ("amount", "_period")))
