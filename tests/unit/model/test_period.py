"""Periods: status, parents and parts."""

from datetime import date

import pytest

from dobonomodo.model import Period, Schedule
from dobonomodo.problems.definition import PeriodNotFound


def period(identifier: str, level: str, start: str, end: str, parent: str | None = None) -> Period:
    first, last = date.fromisoformat(start), date.fromisoformat(end)
    return Period(identifier=identifier, level=level, parent=parent, start_date=first, end_date=last)


YEAR = period("2026", "year", "2026-01-01", "2026-12-31")
Q1 = period("2026-Q1", "quarter", "2026-01-01", "2026-03-31", "2026")
JAN = period("2026-01", "month", "2026-01-01", "2026-01-31", "2026-Q1")
FEB = period("2026-02", "month", "2026-02-01", "2026-02-28", "2026-Q1")
LOOSE = period("2026-04", "month", "2026-04-01", "2026-04-30")
SCHEDULE = Schedule(
    "fiscal", (YEAR, Q1, JAN, FEB, LOOSE), {"year": None, "quarter": "year", "month": "quarter", "week": "year"}
)


def test_a_period_is_found_by_its_identifier() -> None:
    assert SCHEDULE.find("2026-Q1").value is Q1


def test_a_period_that_is_not_there_is_answered_with_the_nearest() -> None:
    value, (problem,) = SCHEDULE.find("2026-1")
    assert value is None
    assert isinstance(problem, PeriodNotFound)
    assert problem.calendar == "fiscal"
    assert problem.ranges == (
        ("month", "2026-01", "2026-04"),
        ("quarter", "2026-Q1", "2026-Q1"),
        ("year", "2026", "2026"),
    )
    assert (problem.hint() or "").startswith("did you mean `2026-01`? available: month `2026-01` to `2026-04`, quarter")


def test_a_range_has_the_periods_of_one_level() -> None:
    assert SCHEDULE.between(JAN, LOOSE) == (JAN, FEB, LOOSE)
    assert SCHEDULE.between(FEB, FEB) == (FEB,)


@pytest.mark.parametrize(
    ("day", "latest"), [("2026-01-31", None), ("2026-02-01", JAN), ("2026-02-28", JAN), ("2026-12-31", LOOSE)]
)
def test_the_latest_period_has_ended(day: str, latest: Period | None) -> None:
    assert SCHEDULE.latest(date.fromisoformat(day)) is latest


@pytest.mark.parametrize(("of", "before"), [(FEB, JAN), (LOOSE, FEB), (JAN, None), (Q1, None), (YEAR, None)])
def test_the_period_before_is_of_the_same_level(of: Period, before: Period | None) -> None:
    assert SCHEDULE.before(of) is before


KNOWN = (*(f"2026-{month:02d}" for month in range(1, 13)), "2026-Q1", "2026-Q2", "2026", "W05")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-1", "2026-01"),
        ("2026/01", "2026-01"),
        ("01/2026", "2026-01"),
        ("1.2026", "2026-01"),
        ("202601", "2026-01"),
        ("Jan 2026", "2026-01"),
        ("2026-december", "2026-12"),
        ("2026_Feb", "2026-02"),
        ("2026-q1", "2026-Q1"),
        ("Q2 2026", "2026-Q2"),
        ("w5", "W05"),
        # Another number is another period, however near it looks.
        ("2026-13", None),
        ("2025-01", None),
        ("2026-Q5", None),
        ("2026-00", None),
        ("soon", None),
        ("", None),
        ("9" * 5_000, None),
    ],
)
def test_a_period_that_was_written_in_another_way(written: str, meant: str | None) -> None:
    hint = PeriodNotFound(identifier=written, calendar="fiscal", known=KNOWN).hint() or ""
    assert [each for each in KNOWN if f"did you mean `{each}`" in hint] == ([meant] if meant else [])
    assert meant or "`2026-01`" in hint


def test_parts_of_a_period_are_in_date_order() -> None:
    assert SCHEDULE.children(YEAR, "month") == (JAN, FEB, LOOSE)
    assert SCHEDULE.children(YEAR, "quarter") == (Q1,)
    assert SCHEDULE.children(Q1, "month") == (JAN, FEB)


def test_a_period_is_its_own_part_at_its_level_and_has_none_above() -> None:
    assert SCHEDULE.children(JAN, "month") == (JAN,)
    assert SCHEDULE.children(JAN, "quarter") == ()
    assert SCHEDULE.children(Q1, "week") == ()


def test_levels_are_compared_by_their_parents() -> None:
    assert SCHEDULE.is_finer("month", "year")
    assert not SCHEDULE.is_finer("year", "month")
    assert not SCHEDULE.is_finer("week", "quarter")
    assert not SCHEDULE.is_finer("month", "month")


def test_statuses_that_were_reached_meanwhile() -> None:
    later = SCHEDULE.with_statuses({"2026-01": "closed"})
    assert [each.status for each in later.at_level("month")] == ["closed", "open", "open"]


def test_the_status_is_no_part_of_the_fingerprint() -> None:
    assert JAN.model_copy(update={"status": "closed"}).fingerprint() == JAN.fingerprint()
