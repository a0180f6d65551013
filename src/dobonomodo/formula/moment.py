"""Dates and times as Spark counts them, in plain Python: for any year, while Python's own types end with 9999."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

MICROS_OF_SECOND = 1_000_000
MICROS_OF_DAY = 86_400 * MICROS_OF_SECOND

_DAYS_OF_ERA = 146_097
"""Days of 400 years, after which the calendar repeats."""
_EPOCH = 719_468
"""Days from the first of March of the year 0 to 1970-01-01. With March as the first month, a leap day comes last."""


@dataclass(frozen=True, order=True, slots=True)
class Day:
    """A date: days since 1970-01-01 in the Gregorian calendar, which reaches back before its beginning."""

    number: int

    @classmethod
    def of(cls, year: int, month: int, day: int) -> Day:
        """The day with this date, which must exist."""
        shifted = year - (month <= 2)
        era, of_era = divmod(shifted, 400)
        of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
        return cls(era * _DAYS_OF_ERA + of_era * 365 + of_era // 4 - of_era // 100 + of_year - _EPOCH)

    @property
    def parts(self) -> tuple[int, int, int]:
        """Year, month and day of the month."""
        era, of_era = divmod(self.number + _EPOCH, _DAYS_OF_ERA)
        year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
        of_year = of_era - (365 * year + year // 4 - year // 100)
        shifted = (5 * of_year + 2) // 153
        month = shifted + 3 if shifted < 10 else shifted - 9
        return year + 400 * era + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1

    def __str__(self) -> str:
        year, month, day = self.parts
        return f"{write_year(year)}-{month:02d}-{day:02d}"


@dataclass(frozen=True, order=True, slots=True)
class Moment:
    """A time: microseconds since 1970 in UTC."""

    micros: int

    @property
    def day(self) -> Day:
        """The day in UTC."""
        return Day(self.micros // MICROS_OF_DAY)

    @property
    def clock(self) -> tuple[int, int, int, int]:
        """Hour, minute, second and microsecond in UTC."""
        seconds, micros = divmod(self.micros % MICROS_OF_DAY, MICROS_OF_SECOND)
        minutes, second = divmod(seconds, 60)
        return minutes // 60, minutes % 60, second, micros

    def __str__(self) -> str:
        hour, minute, second, micros = self.clock
        fraction = f".{micros:06d}".rstrip("0") if micros else ""
        return f"{self.day} {hour:02d}:{minute:02d}:{second:02d}{fraction}"


def days_in(year: int, month: int) -> int:
    """How many days a month has."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def write_year(year: int) -> str:
    """A year with four digits, or more and a sign."""
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}"


def day_of(value: date) -> Day:
    """A date of Python's."""
    return Day.of(value.year, value.month, value.day)


def moment_of(value: datetime) -> Moment:
    """A time of Python's; without zone it is in UTC."""
    at = value.astimezone(UTC) if value.tzinfo else value
    seconds = at.hour * 3600 + at.minute * 60 + at.second
    return Moment(day_of(at).number * MICROS_OF_DAY + seconds * MICROS_OF_SECOND + at.microsecond)
