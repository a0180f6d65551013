"""Calendars: generated and listed periods, and what does not fit together."""

from datetime import date
from itertools import pairwise

import pytest

from dobonomodo.model import Calendar, Period
from dobonomodo.model.calendar import Length
from dobonomodo.problems.definition import InvalidPeriod, PeriodReason
from tests.unit.model.loading import found, load, sound

LEVELS = """[{name: year, identifier_pattern: "FY{year}"},
    {name: quarter, parent_level: year, identifier_pattern: "{year}-Q{sequence}"},
    {name: month, parent_level: quarter, identifier_pattern: "{year}-{sequence:02}"}]"""
RANGE = "{from: 2025-01-01, to: 2026-12-31}"


def calendar(levels: str = LEVELS, generate: str = "", periods: str = "[]") -> str:
    return f"calendar: {{id: c, levels: {levels}, generate: {generate}, periods: {periods}}}"


def periods(text: str) -> dict[str, Period]:
    return dict(sound(text).calendars["c"].schedule.by_identifier)


def reasons(text: str) -> list[PeriodReason]:
    return [problem.reason for problem in load(text)[1] if isinstance(problem, InvalidPeriod)]


def days(period: Period) -> tuple[str, str]:
    return str(period.start_date), str(period.end_date)


def test_years_quarters_and_months_are_generated() -> None:
    made = periods(calendar(generate=RANGE))
    assert len(made) == 2 + 8 + 24
    assert days(made["FY2025"]) == ("2025-01-01", "2025-12-31")
    assert days(made["2026-Q2"]) == ("2026-04-01", "2026-06-30")
    assert days(made["2026-02"]) == ("2026-02-01", "2026-02-28")
    assert (made["2026-04"].parent, made["2026-Q2"].parent, made["FY2026"].parent) == ("2026-Q2", "FY2026", None)
    assert {period.status for period in made.values()} == {"open"}


def test_parts_fill_their_parent() -> None:
    schedule = sound(calendar(generate=RANGE)).calendars["c"].schedule
    for whole in schedule.at_level("year"):
        parts = schedule.children(whole, "month")
        assert len(parts) == 12
        assert parts[0].start_date == whole.start_date
        assert parts[-1].end_date == whole.end_date
        assert all((after.start_date - before.end_date).days == 1 for before, after in pairwise(parts))


def test_a_coarse_period_is_generated_whole() -> None:
    made = periods(calendar(generate="{from: 2026-03-15, to: 2026-03-16}"))
    assert len(made) == 1 + 4 + 12


def test_levels_have_patterns_of_their_own() -> None:
    levels = "[{name: year}, {name: half, parent_level: year}, {name: week, parent_level: year}, {name: day, parent_level: week}]"
    made = periods(calendar(levels, "{from: 2026-01-01, to: 2026-01-01}"))
    assert {"2026", "2026-H2", "2026-W01", "2026-W53", "2026-12-31"} <= set(made)
    assert days(made["2026-W53"]) == ("2026-12-31", "2026-12-31")


def test_a_coarsest_month_counts_in_its_year() -> None:
    made = periods(calendar("[{name: month}]", "{from: 2026-05-10, to: 2026-06-10}"))
    assert list(made) == ["2026-05", "2026-06"]


def test_a_fiscal_year_starts_where_it_is_said_to() -> None:
    levels = """[{name: year, identifier_pattern: "FY{end_year}", date_rules: {starts: 2020-04-01}},
        {name: month, parent_level: year, identifier_pattern: "{parent}-P{position:02}"}]"""
    made = periods(calendar(levels, "{from: 2025-04-01, to: 2026-03-31}"))
    assert len(made) == 13
    assert days(made["FY2026"]) == ("2025-04-01", "2026-03-31")
    assert days(made["FY2026-P12"]) == ("2026-03-01", "2026-03-31")


RETAIL = """[{name: year, identifier_pattern: "{year}", date_rules: {starts: [2023-01-29, 2024-02-04, 2025-02-02]}},
    {name: quarter, parent_level: year, date_rules: {split: [13 weeks, 13 weeks, 13 weeks, 13 weeks]}},
    {name: month, parent_level: quarter, date_rules: {split: [4 weeks, 4 weeks, 5 weeks]}},
    {name: week, parent_level: month}]"""


def test_weeks_in_a_4_4_5_calendar_with_a_long_year() -> None:
    schedule = sound(calendar(RETAIL, "{from: 2023-06-01, to: 2024-06-01}")).calendars["c"].schedule
    long, short = schedule.at_level("year")
    assert (len(schedule.children(long, "week")), len(schedule.children(short, "week"))) == (53, 52)
    first = schedule.children(short, "quarter")[0]
    assert [len(schedule.children(month, "week")) for month in schedule.children(first, "month")] == [4, 4, 5]
    assert len(schedule.children(schedule.children(long, "month")[-1], "week")) == 6
    assert days(schedule.children(long, "week")[-1]) == ("2024-01-28", "2024-02-03")


def test_a_split_that_does_not_fit_is_refused() -> None:
    levels = "[{name: month}, {name: week, parent_level: month, date_rules: {split: [4 weeks, 4 weeks]}}]"
    assert reasons(calendar(levels, "{from: 2026-02-01, to: 2026-02-01}")) == [PeriodReason.DOES_NOT_FIT]


def test_a_listed_period_overrides_a_generated_one() -> None:
    listed = "[{identifier: 2026-01, status: locked}, {identifier: 2026-02, status: closed}]"
    made = periods(calendar(generate=RANGE, periods=listed))
    assert (made["2026-01"].status, made["2026-02"].status, made["2026-03"].status) == ("locked", "closed", "open")
    assert made["2026-01"].parent == "2026-Q1"
    assert days(made["2026-01"]) == ("2026-01-01", "2026-01-31")


def test_a_listed_period_may_be_one_more() -> None:
    extra = "{identifier: 2026-13, level: month, start_date: 2026-12-31, end_date: 2026-12-31, parent: 2026-Q4}"
    schedule = sound(calendar(generate=RANGE, periods=f"[{extra}]")).calendars["c"].schedule
    year = schedule.by_identifier["FY2026"]
    assert [part.identifier for part in schedule.children(year, "month")][-2:] == ["2026-12", "2026-13"]


def test_periods_by_hand_find_their_parents() -> None:
    listed = """[{identifier: Q1, level: quarter, start_date: 2026-01-01, end_date: 2026-03-31},
        {identifier: Jan, level: month, start_date: 2026-01-01, end_date: 2026-01-31}]"""
    assert periods(calendar(periods=listed))["Jan"].parent == "Q1"


def test_a_parent_is_only_taken_where_there_is_one_choice() -> None:
    listed = """[{identifier: A, level: quarter, start_date: 2026-01-01, end_date: 2026-03-31},
        {identifier: B, level: quarter, start_date: 2026-01-01, end_date: 2026-06-30},
        {identifier: Jan, level: month, start_date: 2026-01-01, end_date: 2026-01-31},
        {identifier: May, level: month, start_date: 2026-05-01, end_date: 2026-05-31},
        {identifier: Dec, level: month, start_date: 2026-12-01, end_date: 2026-12-31}]"""
    made = periods(calendar(periods=listed))
    assert (made["Jan"].parent, made["May"].parent, made["Dec"].parent) == (None, "B", None)


ONE = "{identifier: x, level: month, start_date: 2026-01-01, end_date: 2026-01-31%s}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (calendar(periods="[{identifier: x, level: month, start_date: 2026-02-01, end_date: 2026-01-31}]"), PeriodReason.ENDS_BEFORE_START),
        (calendar(periods=f"[{(ONE % '').replace('month', 'mont')}]"), PeriodReason.UNKNOWN_LEVEL),
        (calendar(periods=f"[{ONE % ', parent: y'}]"), PeriodReason.UNKNOWN_PARENT),
        (calendar(generate=RANGE, periods=f"[{ONE % ', parent: FY2026'}]"), PeriodReason.PARENT_LEVEL),
        (calendar(generate=RANGE, periods=f"[{ONE % ', parent: 2026-Q2'}]"), PeriodReason.OUTSIDE_PARENT),
        (calendar(generate=RANGE, periods="[{identifier: 2026-Q1, start_date: 2026-02-01}]"), PeriodReason.OUTSIDE_PARENT),
        (calendar(generate=RANGE, periods="[{identifier: x, level: month, start_date: 2026-01-01}]"), PeriodReason.NOT_GENERATED),
    ],
)  # fmt: skip
def test_periods_that_do_not_fit(text: str, reason: PeriodReason) -> None:
    assert set(reasons(text)) == {reason}
    assert "c" not in load(text)[0].calendars


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (calendar("[]"), ("INVALID_VALUE", "[]")),
        (calendar("[{name: a}, {name: b}]"), ("MISSING_KEY", "name")),
        (calendar("[{name: a, parent_level: b}]"), ("INVALID_VALUE", "b")),
        (calendar("[{name: a}, {name: b, parent_level: c}, {name: c, parent_level: a}]"), ("INVALID_VALUE", "c")),
        (calendar("[{name: a}, {name: a, parent_level: a}]"), ("DUPLICATE_NAME", "a")),
        (calendar("[{name: a b}]"), ("INVALID_VALUE", "a b")),
        (calendar("[{name: year, identifier_pattern: '{yeer}'}]"), ("INVALID_VALUE", "{yeer}")),
        (calendar("[{name: year, identifier_pattern: '{year.real}'}]"), ("INVALID_VALUE", "'{year.real}'")),
        (calendar("[{name: year, identifier_pattern: '{year:999}'}]"), ("INVALID_VALUE", "{year:999}")),
        (calendar("[{name: year, identifier_pattern: '{year}/x'}]"), ("INVALID_VALUE", "'{year}/x'")),
        (calendar("[{name: year}]", "{from: 2026-01-01}"), ("MISSING_KEY", "generate")),
        (calendar("[{name: year}]", "{from: 2026-02-01, to: 2026-01-01}"), ("INVALID_VALUE", "2026-01-01")),
        (calendar("[{name: year}]", "{from: 0001-01-01, to: 2026-01-01}"), ("INVALID_VALUE", "0001-01-01")),
        (calendar("[{name: year, identifier_pattern: x}]", RANGE), ("DUPLICATE_NAME", "x")),
        (calendar("[{name: day}]", "{from: 1900-01-01, to: 2026-01-01}"), ("LIMIT_EXCEEDED", "{from: 1900-01-01, to: 2026-01-01}")),
        (calendar("[{name: year, date_rules: {starts: [2026-01-01, 2025-01-01]}}]"), ("INVALID_VALUE", "[2026-01-01, 2025-01-01]")),
        (calendar("[{name: year, date_rules: {split: [1 month]}}]"), ("INVALID_VALUE", "split")),
        (calendar("[{name: year, date_rules: {every: 0 weeks}}]"), ("INVALID_VALUE", "0 weeks")),
        (calendar(periods="[{identifier: a/b}]"), ("INVALID_VALUE", "a/b")),
    ],
)  # fmt: skip
def test_calendars_that_cannot_be_loaded(text: str, problem: tuple[str, str]) -> None:
    assert found(text) == [problem]


def test_a_level_of_ones_own_needs_a_pattern_and_a_rule_to_be_generated() -> None:
    assert found(calendar("[{name: sprint}]")) == []
    assert [code for code, _ in found(calendar("[{name: sprint}]", RANGE))] == ["MISSING_KEY", "MISSING_KEY"]
    own = "[{name: sprint, identifier_pattern: 'S{start:%Y%m%d}', date_rules: {every: 2 weeks, starts: 2026-01-05}}]"
    made = periods(calendar(own, "{from: 2026-01-05, to: 2026-01-20}"))
    assert list(made) == ["S20260105", "S20260119"]


def test_starts_and_split_belong_to_the_right_level() -> None:
    child = "[{name: year}, {name: month, parent_level: year, date_rules: {starts: 2026-01-01}}]"
    assert found(calendar(child)) == [("INVALID_VALUE", "starts")]
    both = "[{name: year}, {name: month, parent_level: year, date_rules: {every: 1 month, split: [1 week]}}]"
    assert found(calendar(both)) == [("INVALID_VALUE", "split")]


def test_identifiers_stand_once() -> None:
    listed = "[{identifier: 2026-01, status: open}, {identifier: 2026-01, status: open}]"
    assert found(calendar(generate=RANGE, periods=listed)) == [("DUPLICATE_NAME", "2026-01")]


def test_a_calendar_without_a_file_has_a_schedule_too() -> None:
    made = Calendar.from_data(
        {"id": "c", "levels": [{"name": "year"}], "generate": {"from": "2026-01-01", "to": "2026-01-02"}}
    )
    assert [period.identifier for period in made.schedule.periods] == ["2026"]
    again = Calendar.from_data(made.document())
    assert again.schedule == made.schedule


def test_lengths() -> None:
    assert Length.parse("4 weeks").after(date(2026, 1, 1), 2) == date(2026, 2, 26)
    assert Length.parse("1 month").after(date(2026, 1, 31), 1) == date(2026, 2, 28)
    assert Length.parse("2 quarters").after(date(2026, 1, 1), -1) == date(2025, 7, 1)
    assert str(Length.parse("1 YEAR")) == "1 year"
