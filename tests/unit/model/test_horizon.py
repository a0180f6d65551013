"""Other periods, counted by the calendar of the run."""

from __future__ import annotations

import pytest

from dobonomodo.model import Period, Schedule
from dobonomodo.model.document import Places
from dobonomodo.model.horizon import CURRENT, Horizon, check_horizon
from dobonomodo.problems import Problem
from dobonomodo.problems.definition import InvalidPeriodRange, PeriodNotFound
from dobonomodo.problems.operation import OtherPeriodMissing
from tests.world import define

FISCAL = (
    define(
        """\
calendar:
  id: fiscal
  levels:
    - {name: year, identifier_pattern: "FY{year}"}
    - {name: quarter, parent_level: year, identifier_pattern: "{year}-Q{sequence}"}
    - {name: month, parent_level: quarter, identifier_pattern: "{year}-{sequence:02}"}
  generate: {from: 2025-01-01, to: 2026-12-31}"""
    )
    .calendars["fiscal"]
    .schedule
)
RETAIL = (
    define(
        """\
calendar:
  id: retail
  levels:
    - {name: season, date_rules: {starts: [2025-02-02, 2026-02-01, 2027-01-31]}, identifier_pattern: "S{year}"}
    - {name: week, parent_level: season, date_rules: {every: 1 weeks}, identifier_pattern: "{year}-W{sequence:02}"}
  generate: {from: 2025-02-02, to: 2027-01-30}"""
    )
    .calendars["retail"]
    .schedule
)


def chosen(value: object, period: str, schedule: Schedule = FISCAL) -> list[str] | Problem:
    found = Horizon.parse(value).choose(schedule.by_identifier[period], schedule)
    return [each.identifier for each in found] if isinstance(found, tuple) else found


@pytest.mark.parametrize(
    ("value", "period", "found"),
    [
        ("current", "2026-02", ["2026-02"]),
        ("previous", "2026-01", ["2025-12"]),
        ("previous", "2026-Q1", ["2025-Q4"]),
        ("previous", "FY2026", ["FY2025"]),
        ("previous_year", "2026-02", ["2025-02"]),
        ("previous_year", "2026-Q4", ["2025-Q4"]),
        ("previous_year", "FY2026", ["FY2025"]),
        ("year_to_date", "2026-03", ["2026-01", "2026-02", "2026-03"]),
        ("year_to_date", "2026-Q2", ["2026-Q1", "2026-Q2"]),
        ("year_to_date", "FY2026", ["FY2026"]),
        ({"last": 1}, "2026-01", ["2026-01"]),
        ({"last": 3}, "2026-01", ["2025-11", "2025-12", "2026-01"]),
        ({"from": "2025-12", "to": "2026-01"}, "2026-06", ["2025-12", "2026-01"]),
        ({"from": "2025-Q4", "to": "2025-Q4"}, "2026-06", ["2025-Q4"]),
    ],
)
def test_periods_are_counted_at_the_level_of_the_run(value: object, period: str, found: list[str]) -> None:
    assert chosen(value, period) == found


def test_without_a_level_named_year_the_coarsest_counts() -> None:
    assert chosen("previous_year", "2026-W03", RETAIL) == ["2025-W03"]
    assert chosen("year_to_date", "2026-W02", RETAIL) == ["2026-W01", "2026-W02"]


@pytest.mark.parametrize(
    ("value", "period", "kind"),
    [
        ("previous", "2025-01", OtherPeriodMissing),
        ("previous_year", "2025-07", OtherPeriodMissing),
        ({"last": 4}, "2025-03", OtherPeriodMissing),
        ({"from": "2025-1", "to": "2025-02"}, "2026-01", PeriodNotFound),
        ({"from": "2025-02", "to": "2025-01"}, "2026-01", InvalidPeriodRange),
        ({"from": "2025-02", "to": "2025-Q2"}, "2026-01", InvalidPeriodRange),
    ],
)
def test_periods_that_do_not_exist(value: object, period: str, kind: type[Problem]) -> None:
    assert isinstance(chosen(value, period), kind)


def test_a_period_of_no_calendar_has_no_others() -> None:
    own = FISCAL.by_identifier["2026-01"]
    alone = Period(identifier="x", level="month", start_date=own.start_date, end_date=own.end_date)
    assert CURRENT.choose(alone, None) == (alone,)
    assert isinstance(Horizon.parse("previous").choose(alone, None), OtherPeriodMissing)
    assert isinstance(Horizon.parse("previous").choose(alone, FISCAL), OtherPeriodMissing)


@pytest.mark.parametrize(
    "value", ["", "next", 12, True, [], {}, {"last": 0}, {"last": "3"}, {"last": True}, {"last": 1001}, {"from": "2025-01"},
              {"last": 3, "from": "2025-01", "to": "2025-02"}, {"from": 2025, "to": 2026}]
)  # fmt: skip
def test_other_values_are_refused_with_the_forms(value: object) -> None:
    (problem,) = check_horizon(Places.of_data({"period": value}), "period")
    assert "year_to_date" in problem.message()


def test_a_slip_is_answered_with_the_word() -> None:
    (problem,) = check_horizon(Places.of_data({"period": "previos"}), "period")
    assert problem.hint() == "did you mean `previous`?"


@pytest.mark.parametrize("value", ["previous", {"last": 3}, {"from": "2025-01", "to": "2025-02"}])
def test_what_is_written_can_be_read_again(value: object) -> None:
    assert Horizon.parse(Horizon.parse(value).document()) == Horizon.parse(value)
