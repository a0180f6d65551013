"""Functions of dates and times. They read the clock of the run, never that of the machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from dobonomodo.formula.functions.signature import (
    Argument,
    Function,
    RunValues,
    clock,
    day,
    fn,
    integer,
    moment,
    sig,
    text,
)
from dobonomodo.formula.meaning import each, int32, not_a_date, of_run, or_null, overflow
from dobonomodo.formula.moment import Day, Moment, days_in, write_year
from dobonomodo.formula.sql import literal
from dobonomodo.formula.types import DATE, INTEGER, TEXT, TIMESTAMP


def _date_of_text(arguments: Sequence[Argument], run: RunValues) -> str:
    """A cast would accept 2026 and 2026-1; to_date with a pattern does not."""
    (argument,) = arguments
    if argument.is_literal:
        return literal(date.fromisoformat(str(argument.value)), DATE)
    return f"to_date({_four_digit_year(argument.sql)}, 'yyyy-MM-dd')"


def _try_date(arguments: Sequence[Argument], run: RunValues) -> str:
    return f"try_to_date({_four_digit_year(arguments[0].sql)}, 'yyyy-MM-dd')"


def _four_digit_year(sql: str) -> str:
    """A text that is no date any more if it begins with a sign or the year 0.

    For ``yyyy`` Spark reads -2026-01-31 as a day before our era, and +12026-01-31 and 0000-01-01 too (4.3).
    """
    return f"regexp_replace({sql}, '^([+-]|0000)', '?$1')"


def days(sql: str) -> str:
    """Days to add. Spark's date_add wraps round silently beyond its range, so ten million days and more are an error."""
    return f"CAST(CAST({sql} AS DECIMAL(7,0)) AS INT)"


def _months(sql: str) -> str:
    return f"CAST(CAST({sql} AS DECIMAL(6,0)) AS INT)"


def _date_add(arguments: Sequence[Argument], run: RunValues) -> str:
    return f"date_add({arguments[0].sql}, {days(arguments[1].sql)})"


def _add_months(arguments: Sequence[Argument], run: RunValues) -> str:
    return f"add_months({arguments[0].sql}, {_months(arguments[1].sql)})"


def _end_of_month(arguments: Sequence[Argument], run: RunValues) -> str:
    return f"last_day({_add_months(arguments, run)})"


def _today(arguments: Sequence[Argument], run: RunValues) -> str:
    return literal(run.started_at.date(), DATE)


def _now(arguments: Sequence[Argument], run: RunValues) -> str:
    return literal(run.started_at, TIMESTAMP)


def _run_period(arguments: Sequence[Argument], run: RunValues) -> str:
    return literal(run.period, TEXT)


def _period_start(arguments: Sequence[Argument], run: RunValues) -> str:
    return literal(run.period_start, DATE)


def _period_end(arguments: Sequence[Argument], run: RunValues) -> str:
    return literal(run.period_end, DATE)


_date_text = replace(text, is_date_text=True)

# --- in plain Python

MOST_DAYS, MOST_MONTHS = 10**7, 10**6
"""What may be added to a date is less."""


def add_days(day: Day, count: int) -> Day:
    """A date so many days later."""
    return Day(int32(day.number + _bounded(count, MOST_DAYS)))


def days_between(end: Day, start: Day) -> int:
    """The days from one date to another."""
    return int32(end.number - start.number)


def _shift_months(day: Day, count: int) -> Day:
    year, month, of_month = day.parts
    years, months = divmod(year * 12 + month - 1 + _bounded(count, MOST_MONTHS), 12)
    return Day(int32(Day.of(years, months + 1, min(of_month, days_in(years, months + 1))).number))


def _last_of_month(day: Day) -> Day:
    year, month, _ = day.parts
    return Day.of(year, month, days_in(year, month))


def _bounded(count: int, limit: int) -> int:
    if abs(count) >= limit:
        raise overflow(count)
    return count


_DAY = re.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})")
LAST_YEAR = 999_999_999
"""Of Java's calendar."""


def _make_day(*given: str | Moment | int) -> Day:
    """From a text, a time, or year, month and day."""
    if isinstance(given[0], Moment):
        return given[0].day
    if isinstance(given[0], str):
        found = _DAY.fullmatch(given[0])
        if found is None or found[1] == "0000":
            raise not_a_date(given[0])
        return _checked_day(int(found[1]), int(found[2]), int(found[3]))
    year, month, of_month = (int32(int(part)) for part in given if isinstance(part, int))
    return _checked_day(year, month, of_month)


def _checked_day(year: int, month: int, of_month: int) -> Day:
    if not (abs(year) <= LAST_YEAR and 1 <= month <= 12 and 1 <= of_month <= days_in(year, month)):
        raise not_a_date(f"{write_year(year)}-{month:02d}-{of_month:02d}")
    return Day(int32(Day.of(year, month, of_month).number))


def _iso_week(day: Day) -> int:
    thursday = day.number - (day.number + 3) % 7 + 3
    return (thursday - Day.of(Day(thursday).parts[0], 1, 1).number) // 7 + 1


def _day(moment: Day | Moment) -> Day:
    return moment.day if isinstance(moment, Moment) else moment


DATES: tuple[Function, ...] = (
    fn("DATE", [
           (sig(_date_text, to=DATE), _date_of_text),
           (sig(clock, to=DATE), "CAST({0} AS DATE)"),
           (sig(integer, integer, integer, to=DATE), "make_date(CAST({0} AS INT), CAST({1} AS INT), CAST({2} AS INT))"),
       ],
       "A date from a text year-month-day, from a time, or from year, month and day. A text that is not a date fails the run.",
       'DATE("2026-01-31") = DATE(2026, 1, 31)', 'DATE("2024-02-29") < "2024-03-01"', "ISNULL(DATE(2026, NULL, 1))",
       "DATE(NOW()) = TODAY()",
       python=each(_make_day)),
    fn("TRY_DATE", sig(text, to=DATE), _try_date,
       "A date from a text, or NULL if the text is not a date.",
       'TRY_DATE("2026-01-31") = "2026-01-31"', 'ISNULL(TRY_DATE("2026-02-30"))', 'ISNULL(TRY_DATE("soon"))',
       python=each(or_null(_make_day))),
    fn("TODAY", sig(to=DATE), _today, "The date on which the run started, in UTC.", "TODAY() = DATE(NOW())", "YEAR(TODAY()) >= 2000",
       python=of_run(lambda run: run.started_at.date())),
    fn("NOW", sig(to=TIMESTAMP), _now, "The time at which the run started, the same in every row and every operation.",
       "NOW() = NOW()", "NOW() >= TODAY()",
       python=of_run(lambda run: run.started_at)),
    fn("YEAR", sig(moment, to=INTEGER), "CAST(year({0}) AS BIGINT)", "The year of a date or time.", 'YEAR(DATE("2026-01-31")) = 2026',
       "ISNULL(YEAR(NULL))",
       python=each(lambda moment: _day(moment).parts[0])),
    fn("QUARTER", sig(moment, to=INTEGER), "CAST(quarter({0}) AS BIGINT)", "The quarter of the calendar year, 1 to 4.",
       'QUARTER(DATE("2026-03-31")) = 1', 'QUARTER(DATE("2026-04-01")) = 2', "ISNULL(QUARTER(NULL))",
       python=each(lambda moment: (_day(moment).parts[1] + 2) // 3)),
    fn("MONTH", sig(moment, to=INTEGER), "CAST(month({0}) AS BIGINT)", "The month of a date or time, 1 to 12.",
       'MONTH(DATE("2026-01-31")) = 1', "ISNULL(MONTH(NULL))",
       python=each(lambda moment: _day(moment).parts[1])),
    fn("DAY", sig(moment, to=INTEGER), "CAST(day({0}) AS BIGINT)", "The day of the month, 1 to 31.", 'DAY(DATE("2026-01-31")) = 31',
       "ISNULL(DAY(NULL))",
       python=each(lambda moment: _day(moment).parts[2])),
    fn("WEEKDAY", sig(moment, to=INTEGER), "CAST(dayofweek({0}) AS BIGINT)", "The day of the week, 1 for Sunday to 7 for Saturday.",
       'WEEKDAY(DATE("2026-01-04")) = 1', 'WEEKDAY(DATE("2026-01-31")) = 7', "ISNULL(WEEKDAY(NULL))",
       python=each(lambda moment: (_day(moment).number + 4) % 7 + 1)),
    fn("ISOWEEKNUM", sig(moment, to=INTEGER), "CAST(weekofyear({0}) AS BIGINT)",
       "The ISO week, 1 to 53: it begins on Monday and belongs to the year of its Thursday.",
       'ISOWEEKNUM(DATE("2026-01-01")) = 1', 'ISOWEEKNUM(DATE("2027-01-03")) = 53', "ISNULL(ISOWEEKNUM(NULL))",
       python=each(lambda moment: _iso_week(_day(moment)))),
    fn("DATEDIFF", sig(day, day, to=INTEGER), "CAST(datediff({0}, {1}) AS BIGINT)",
       "The number of days from the second date to the first: DATEDIFF(end, start).",
       'DATEDIFF(DATE("2026-02-01"), DATE("2026-01-01")) = 31', 'DATE("2026-01-01") - DATE("2026-02-01") = -31',
       "ISNULL(DATEDIFF(TODAY(), NULL))",
       python=each(days_between)),
    fn("DATEADD", sig(day, integer, to=DATE), _date_add,
       "A date plus a number of days; a negative number subtracts.",
       'DATEADD(DATE("2026-01-31"), 1) = "2026-02-01"', 'DATE("2026-03-01") - 1 = "2026-02-28"', 'ISNULL(DATEADD(NULL, 1))',
       python=each(add_days)),
    fn("EDATE", sig(day, integer, to=DATE), _add_months,
       "A date plus a number of months; a day that the month does not have becomes its last day.",
       'EDATE(DATE("2026-01-31"), 1) = "2026-02-28"', 'EDATE(DATE("2026-03-15"), -3) = "2025-12-15"', "ISNULL(EDATE(NULL, 1))",
       python=each(_shift_months)),
    fn("EOMONTH", sig(day, integer, to=DATE), _end_of_month,
       "The last day of the month that is a number of months later.",
       'EOMONTH(DATE("2026-01-15"), 0) = "2026-01-31"', 'EOMONTH(DATE("2026-02-28"), 1) = "2026-03-31"', "ISNULL(EOMONTH(TODAY(), NULL))",
       python=each(lambda day, count: _last_of_month(_shift_months(day, count)))),
    fn("RUN_PERIOD", sig(to=TEXT), _run_period, "The identifier of the run's period, such as 2026-01.", 'LEN(RUN_PERIOD()) > 0',
       "RUN_PERIOD() = RUN_PERIOD()",
       python=of_run(lambda run: run.period)),
    fn("PERIOD_START", sig(to=DATE), _period_start, "The first day of the run's period.", "PERIOD_START() <= PERIOD_END()",
       "PERIOD_START() = DATE(YEAR(PERIOD_START()), MONTH(PERIOD_START()), DAY(PERIOD_START()))",
       python=of_run(lambda run: run.period_start)),
    fn("PERIOD_END", sig(to=DATE), _period_end, "The last day of the run's period.", "PERIOD_END() >= PERIOD_START()",
       "PERIOD_END() + 1 > PERIOD_START()",
       python=of_run(lambda run: run.period_end)),
)  # fmt: skip
