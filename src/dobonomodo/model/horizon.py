"""The periods of a reading, relative to the period of the run: this one, the one before, a year to date."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from dobonomodo.model.document import Places
from dobonomodo.model.period import Period, Schedule
from dobonomodo.model.shape import CheckedApart
from dobonomodo.model.value import Expected, describe
from dobonomodo.problems import Problem
from dobonomodo.problems.definition import InvalidPeriodRange, InvalidValue
from dobonomodo.problems.operation import OtherPeriodMissing

Word = Literal["current", "previous", "previous_year", "year_to_date"]
WORDS: tuple[Word, ...] = ("current", "previous", "previous_year", "year_to_date")
YEAR = "year"
"""The level that a year is, where a calendar has one of this name; else its coarsest level."""
MOST = 1_000
"""Periods that one reading may count back."""
FORMS = "`current`, `previous`, `previous_year`, `year_to_date`, `{last: 12}` or `{from: 2026-01, to: 2026-03}`"


@dataclass(frozen=True, slots=True)
class Horizon:
    """Which periods a reading is for: a word, so many last ones, or those from one to another."""

    word: Word | None = None
    last: int | None = None
    first: str | None = None
    to: str | None = None

    @classmethod
    def parse(cls, value: object) -> "Horizon":
        """What a definition says; raises ValueError if it has another form."""
        if isinstance(value, Horizon):
            return value
        if isinstance(value, str) and value in WORDS:
            return cls(word=next(word for word in WORDS if word == value))
        if not isinstance(value, dict):
            raise ValueError
        keys, last = set(value), value.get("last")
        if keys == {"last"} and isinstance(last, int) and not isinstance(last, bool) and 1 <= last <= MOST:
            return cls(last=last)
        if keys == {"from", "to"} and all(isinstance(each, str) and each for each in value.values()):
            return cls(first=value["from"], to=value["to"])
        raise ValueError

    @property
    def is_current(self) -> bool:
        """Whether it is the period of the run itself."""
        return self.word == "current"

    @property
    def is_single(self) -> bool:
        """Whether it is always one period."""
        return self.word in ("current", "previous", "previous_year") or self.last == 1

    def document(self) -> object:
        """As it is written in a definition."""
        if self.word is not None:
            return self.word
        return {"last": self.last} if self.last is not None else {"from": self.first, "to": self.to}

    def __str__(self) -> str:
        if self.word is not None:
            return self.word.replace("_", " ")
        return f"last {self.last}" if self.last is not None else f"{self.first} to {self.to}"

    def choose(self, period: Period, schedule: Schedule | None) -> tuple[Period, ...] | Problem:
        """The periods by date, counted at the level of the run's period; a problem where one does not exist."""
        if self.is_current:
            return (period,)
        own = schedule.by_identifier.get(period.identifier) if schedule is not None else None
        found = self._choose(own, schedule) if schedule is not None and own is not None else None
        if found:
            return found
        calendar = schedule.calendar if schedule is not None else ""
        return OtherPeriodMissing(which=str(self), period=period.identifier, calendar=calendar)

    def find_fault(self, schedules: Sequence[Schedule]) -> Problem | None:
        """What is wrong with periods that are named, whatever the period of a run: no calendar has them."""
        if self.first is None or self.to is None:
            return None
        found = [self._range(self.first, self.to, schedule) for schedule in schedules]
        faults = [each for each in found if isinstance(each, Problem)]
        return faults[0] if faults and len(faults) == len(found) else None

    def _choose(self, period: Period, schedule: Schedule) -> tuple[Period, ...] | Problem | None:
        if self.first is not None and self.to is not None:
            return self._range(self.first, self.to, schedule)
        level = schedule.at_level(period.level)
        if self.last is not None:
            until = [each for each in level if each.start_date <= period.start_date]
            return tuple(until[-self.last :]) if len(until) >= self.last else None
        if self.word == "previous":
            before = schedule.before(period)
            return (before,) if before is not None else None
        year = _year_of(period, schedule)
        within = schedule.children(year, period.level) if year is not None else ()
        if self.word == "year_to_date":
            return tuple(each for each in within if each.start_date <= period.start_date) or None
        before = schedule.before(year) if year is not None else None
        if before is None:
            return None
        earlier = schedule.children(before, period.level)
        at = within.index(period)
        return (earlier[at],) if at < len(earlier) else None

    def _range(self, start: str, end: str, schedule: Schedule) -> tuple[Period, ...] | Problem:
        first, last = schedule.find(start), schedule.find(end)
        if first.value is None or last.value is None:
            return (*first.problems, *last.problems)[0]
        text = f"{start}..{end}"
        if first.value.level != last.value.level:
            wrong = f"`{start}` is of level `{first.value.level}` and `{end}` of level `{last.value.level}`"
            return InvalidPeriodRange(text=text, wrong=wrong)
        if last.value.start_date < first.value.start_date:
            return InvalidPeriodRange(text=text, wrong="the first comes after the last")
        return schedule.between(first.value, last.value)


CURRENT = Horizon(word="current")


def _year_of(period: Period, schedule: Schedule) -> Period | None:
    """The period of the level `year`, else of the coarsest level, that a period is part of."""
    levels = tuple(schedule.parent_by_level)
    wanted = (
        YEAR if YEAR in levels else next((name for name, above in schedule.parent_by_level.items() if not above), "")
    )
    if period.level == wanted:
        return period
    years = schedule.at_level(wanted)
    return next((year for year in years if period in schedule.children(year, period.level)), None)


def check_horizon(places: Places, key: str) -> Iterable[Problem]:
    """A value that is one of the forms."""
    value = places.get(key)
    if value is None:
        return
    try:
        Horizon.parse(value)
    except ValueError:
        found = describe(value) if not isinstance(value, dict) else "a mapping with other keys or values"
        text = value if isinstance(value, str) else None
        yield InvalidValue(
            key=key, expected=FORMS, found=found, known=WORDS if text else (), text=text, span=places.span(key)
        )


PeriodHorizon = Annotated[
    Horizon,
    BeforeValidator(Horizon.parse),
    PlainSerializer(Horizon.document),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(WORDS)},
                {
                    "type": "object",
                    "properties": {"last": {"type": "integer", "minimum": 1, "maximum": MOST}},
                    "required": ["last"],
                    "additionalProperties": False,
                },
                {
                    "type": "object",
                    "properties": {"from": {"type": "string"}, "to": {"type": "string"}},
                    "required": ["from", "to"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
    CheckedApart(),
    Expected(FORMS),
]
PERIOD_HELP = (
    "The periods to read, counted from that of the run by its calendar: " + FORMS + ". The default is `current`."
)
Missing = Literal["fail", "empty"]
MISSING_HELP = (
    "What it means that a period does not exist or has no rows: the run fails (the default), or nothing is read."
)
