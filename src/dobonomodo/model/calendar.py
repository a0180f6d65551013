"""A calendar: levels from coarse to fine, and the periods that follow from them or are listed by hand.

A level cuts the periods of the level above into parts. Years, halves, quarters, months, weeks and days are known by
the name of the level; ``date_rules`` says how others are cut:

- ``starts``: on the coarsest level, a day on which a period starts, such as the first day of a fiscal year; or the
  list of all starts, for years of 52 and 53 weeks (the last one only ends the period before);
- ``every``: a length, such as ``1 week``, that is repeated until the period above ends;
- ``split``: lengths, such as ``[4 weeks, 4 weeks, 5 weeks]``, of which the last takes what remains.
"""

import calendar as days_of
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import islice, pairwise
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, PlainSerializer, PrivateAttr, WithJsonSchema

from dobonomodo.model.document import Places
from dobonomodo.model.entity import Entity, Loaded, check_unique
from dobonomodo.model.period import Period, PeriodStatus, Schedule
from dobonomodo.model.value import Day, Expected, FileName, Filled, Flag, Id, Identifier, Text, is_name, parse_date
from dobonomodo.problems import Problem, in_order
from dobonomodo.problems.definition import (
    DuplicateName,
    InvalidPeriod,
    InvalidValue,
    LimitExceeded,
    MissingKey,
    PeriodReason,
)

MAX_PERIODS = 20_000
MAX_LISTED = 5_000
YEARS = range(1800, 3000)
"""The years that periods can be generated in."""

PATTERN_TOKENS = ("year", "end_year", "sequence", "position", "parent", "start", "end")

_TOKEN = re.compile(r"\{(\w+)(?::([^{}]*))?\}")
_NUMBER_FORMAT = re.compile(r"0?[0-9]")
_DATE_FORMAT = re.compile(r"(?:%[YymdjGVu]|[\w .-])+")
_LENGTH = re.compile(r"([1-9][0-9]{0,2})\s*(day|week|month|quarter|year)s?")
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAYS = {"day": 1, "week": 7}


@dataclass(frozen=True, slots=True)
class Length:
    """A length of time that can be repeated, such as 3 months."""

    count: int
    unit: str

    @classmethod
    def parse(cls, text: object) -> "Length":
        """A length from text such as ``4 weeks``; raises ValueError for any other text."""
        if isinstance(text, Length):
            return text
        found = _LENGTH.fullmatch(text.strip().lower()) if isinstance(text, str) else None
        if not found:
            raise ValueError
        return cls(int(found[1]), found[2])

    def after(self, start: date, times: int) -> date:
        """The day that is so many lengths after a start."""
        if self.unit in _DAYS:
            return start + timedelta(days=self.count * _DAYS[self.unit] * times)
        month = start.year * 12 + start.month - 1 + self.count * _MONTHS[self.unit] * times
        year, month = divmod(month, 12)
        last = days_of.monthrange(year, month + 1)[1]
        return date(year, month + 1, min(start.day, last))

    def __str__(self) -> str:
        return f"{self.count} {self.unit}{'' if self.count == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class _KnownLevel:
    length: Length
    pattern: str


_KNOWN_LEVELS = {
    "year": _KnownLevel(Length(1, "year"), "{year}"),
    "half": _KnownLevel(Length(6, "month"), "{year}-H{sequence}"),
    "quarter": _KnownLevel(Length(3, "month"), "{year}-Q{sequence}"),
    "month": _KnownLevel(Length(1, "month"), "{year}-{sequence:02}"),
    "week": _KnownLevel(Length(1, "week"), "{year}-W{sequence:02}"),
    "day": _KnownLevel(Length(1, "day"), "{start:%Y-%m-%d}"),
}


def _listed(value: object) -> list[object] | tuple[object, ...]:
    return value if isinstance(value, list | tuple) else (value,)


LengthText = Annotated[
    Length,
    BeforeValidator(Length.parse),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^[1-9][0-9]{0,2} *(day|week|month|quarter|year)s?$"}),
    Expected("a duration such as `4 weeks` or `1 month`"),
]


_STARTS_SCHEMA = {
    "anyOf": [{"type": "string", "format": "date"}, {"type": "array", "items": {"type": "string", "format": "date"}}]
}


class DateRules(Entity):
    """How a level is cut out of the one above, where its name does not say it."""

    starts: Annotated[
        tuple[Day, ...],
        BeforeValidator(_listed),
        WithJsonSchema(_STARTS_SCHEMA),
        Expected("a date such as `2026-02-01`, or a list of dates"),
    ] = Field(default=(), description="On the coarsest level: the start date of a period, or of all periods.")
    every: LengthText | None = Field(default=None, description="A duration that repeats, such as `1 week`.")
    split: tuple[LengthText, ...] = Field(
        default=(), description="The durations that the parent period is divided into; the last takes the remainder."
    )

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """One way of cutting, and starts that go forward."""
        if places.get("every") is not None and places.get("split"):
            expected = "no `every` with it"
            yield InvalidValue(key="split", expected=expected, found="both", span=places.key_span("split"))
        days = [day for day in map(_day_or_none, _listed(places.get("starts"))) if day is not None]
        if any(after <= before for before, after in pairwise(days)):
            expected = "dates in ascending order"
            yield InvalidValue(key="starts", expected=expected, found="another order", span=places.span("starts"))
        if any(day.year not in YEARS for day in days):
            yield _outside_years(places, "starts")


class Level(Entity):
    """One of the levels of a calendar."""

    cosmetic: ClassVar[frozenset[str]] = frozenset({"description"})

    name: Identifier = Field(description="The name of the level: year, quarter, month, or a custom one.")
    parent_level: Filled | None = Field(
        default=None, description="The parent level; required for every level except the first."
    )
    identifier_pattern: Filled | None = Field(
        default=None,
        description="How generated periods are named: {year}, {end_year}, {sequence} (in the coarsest period), "
        "{position} (in its parent), {parent}, {start}, {end}, formatted as in {sequence:02} or {start:%Y-%m-%d}.",
    )
    date_rules: DateRules | None = Field(
        default=None, description="How the parent level is divided into periods of this level."
    )
    description: Text | None = Field(default=None, description="The purpose of the level.")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """A pattern that can be filled in."""
        if places.text("identifier_pattern") is None:
            return
        passage = places.passage("identifier_pattern")
        for found in _TOKEN.finditer(passage.value):
            if not _is_token(found[1], found[2]):
                yield InvalidValue(
                    key="identifier_pattern",
                    expected="known tokens",
                    found=f"`{found[0]}`",
                    known=tuple(f"{{{token}}}" for token in PATTERN_TOKENS),
                    text=f"{{{found[1]}}}",
                    span=passage.span(found.start(), found.end()),
                )
        rest = _TOKEN.sub("", passage.value)
        if not is_name(f"x{rest}x") or any(char in rest for char in "{}/\\"):
            yield InvalidValue(
                key="identifier_pattern",
                expected="a pattern without unmatched braces and without `/`",
                found=f"`{passage.value}`",
                span=places.span("identifier_pattern"),
            )


class Generate(Entity):
    """The interval of time that periods are generated for."""

    first: Day = Field(alias="from", description="A day of the first period of the coarsest level.")
    last: Day = Field(alias="to", description="A day of the last period of the coarsest level.")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """An interval that goes forward, in a time that makes sense."""
        first, last = _day_or_none(places.get("from")), _day_or_none(places.get("to"))
        if first is not None and last is not None and last < first:
            found = f"`{last}`, which is before it"
            yield InvalidValue(key="to", expected="a date after `from`", found=found, span=places.span("to"))
        for key, day in (("from", first), ("to", last)):
            if day is not None and day.year not in YEARS:
                yield _outside_years(places, key)


class ListedPeriod(Entity):
    """A period by hand; where one of this identifier is generated too, it replaces what it mentions."""

    cosmetic: ClassVar[frozenset[str]] = frozenset({"status"})

    identifier: FileName = Field(description="The name of the period, unique in its calendar.")
    level: Filled | None = Field(default=None, description="The calendar level it belongs to.")
    parent: Filled | None = Field(default=None, description="The parent period, of the level above.")
    start_date: Day | None = Field(default=None, description="The first day.")
    end_date: Day | None = Field(default=None, description="The last day.")
    status: PeriodStatus | None = Field(default=None, description="The initial status.")


class Calendar(Entity):
    """Levels and periods; ``schedule`` has all of them."""

    kind: ClassVar[str] = "calendar"
    cosmetic: ClassVar[frozenset[str]] = frozenset({"name", "description", "owner", "status"})

    id: Id = Field(default="", description="The id that other definitions refer to; generated by default.")
    name: Filled = Field(default="", description="The display name; the default is the id.")
    description: Text | None = Field(default=None, description="The purpose.")
    owner: Text | None = Field(default=None, description="The person or team responsible for it.")
    status: Literal["draft", "active", "deprecated"] = Field(
        default="active", description="A disabled calendar is not used."
    )
    is_default: Flag = Field(default=False, description="Whether this is the default calendar.")
    levels: tuple[Level, ...] = Field(description="The levels, from coarse to fine.")
    generate: Generate | None = Field(
        default=None, description="The date range for which periods of all levels are generated."
    )
    periods: tuple[ListedPeriod, ...] = Field(
        default=(), description="Periods listed one by one; they add to or replace generated ones."
    )

    _schedule: Schedule | None = PrivateAttr(default=None)

    @classmethod
    def load(cls, places: Places, *, seed: str = "") -> Loaded[Self]:
        """The calendar at a place, with its periods made and checked."""
        loaded = super().load(places, seed=seed)
        if loaded.value is None:
            return loaded
        problems = loaded.value.make_schedule()
        return Loaded(None, in_order((*loaded.problems, *problems))) if problems else loaded

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """Levels that form a tree, names and identifiers that are unique."""
        levels = places.at("levels")
        elements = tuple(levels.elements()) if levels is not None else ()
        if levels is not None and levels.is_list and not elements:
            yield InvalidValue(key="levels", expected="at least one level", found="an empty list", span=levels.span())
        yield from check_unique(((part.text("name"), part.at("name") or part) for part in elements), kind="level")
        above: list[str] = []
        for position, part in enumerate(elements):
            yield from _check_level(part, above, is_first=position == 0, generates=places.get("generate") is not None)
            above.append(part.text("name") or "")
        periods = places.at("periods")
        listed = tuple(periods.elements()) if periods is not None else ()
        if len(listed) > MAX_LISTED:
            yield LimitExceeded(what="listed periods", limit=MAX_LISTED, span=places.key_span("periods"))
            return
        yield from check_unique(
            ((part.text("identifier"), part.at("identifier") or part) for part in listed), kind="period"
        )

    @property
    def schedule(self) -> Schedule:
        """All periods, generated and listed."""
        if self._schedule is None:
            self.make_schedule()
        return self._schedule or Schedule(self.id, ())

    def make_schedule(self) -> tuple[Problem, ...]:
        """Generate the periods and merge the listed ones; also returns the problems."""
        self._schedule, problems = _make_schedule(self)
        return problems


def _check_level(places: Places, above: Sequence[str], *, is_first: bool, generates: bool) -> Iterator[Problem]:
    parent = places.text("parent_level")
    if is_first and parent is not None:
        yield InvalidValue(
            key="parent_level",
            expected="no value on the first (coarsest) level",
            found=f"`{parent}`",
            span=places.span("parent_level"),
        )
    elif not is_first and parent is None and places.is_mapping:
        yield MissingKey(key="parent_level", owner="`level`", expected="the level above", span=places.key_span())
    elif not is_first and parent not in above:
        yield InvalidValue(
            key="parent_level",
            expected="a level that is listed before this one",
            found=f"`{parent}`",
            known=tuple(above),
            text=parent,
            span=places.span("parent_level"),
        )
    if places.get("date_rules", "starts") and not is_first:
        expected = "the first level, the coarsest, around it"
        span = places.key_span("date_rules", "starts")
        yield InvalidValue(key="starts", expected=expected, found="another", span=span)
    if places.get("date_rules", "split") and is_first:
        expected = "a level above to cut"
        yield InvalidValue(key="split", expected=expected, found="none", span=places.key_span("date_rules", "split"))
    name = places.text("name")
    if not generates or name is None or name in _KNOWN_LEVELS:
        return
    if places.get("identifier_pattern") is None:
        expected = 'a pattern such as `"{year}-{sequence:02}"`'
        yield MissingKey(
            key="identifier_pattern", owner=f"level `{name}`", expected=expected, span=places.key_span("name")
        )
    rules = places.get("date_rules")
    ways = ("every", "starts") if is_first else ("every", "split")
    if not isinstance(rules, dict) or not any(rules.get(way) for way in ways):
        expected = "`{every: 1 week}`" if is_first else "`{every: 1 week}` or `{split: [...]}`"
        yield MissingKey(key="date_rules", owner=f"level `{name}`", expected=expected, span=places.key_span("name"))


def _make_schedule(calendar: Calendar) -> tuple[Schedule, tuple[Problem, ...]]:
    generated, problems = _generate_periods(calendar)
    if problems:
        return Schedule(calendar.id, ()), problems
    parent_by_level = {level.name: level.parent_level for level in calendar.levels}
    merged, problems = _merge_listed(calendar, generated, parent_by_level)
    order = {level.name: position for position, level in enumerate(calendar.levels)}
    periods = sorted(
        merged.values(),
        key=lambda period: (period.start_date, order.get(period.level, 0), period.end_date, period.identifier),
    )
    return Schedule(calendar.id, tuple(periods), parent_by_level), problems


@dataclass(frozen=True, slots=True)
class _Interval:
    """A period in the making."""

    start: date
    end: date
    root_start: date
    root_end: date
    sequence: int
    position: int
    parent: str | None


def _generate_periods(calendar: Calendar) -> tuple[dict[str, Period], tuple[Problem, ...]]:
    """The periods of all levels, whole ones only, for every coarsest period that the wanted time touches."""
    made: dict[str, Period] = {}
    if calendar.generate is None:
        return made, ()
    intervals_by_level: dict[str, list[tuple[str, _Interval]]] = {}
    for number, level in enumerate(calendar.levels):
        above = intervals_by_level.get(level.parent_level or "", [])
        places = calendar.places
        try:
            cut = _cut_roots(level, calendar.generate) if number == 0 else _cut_level(level, above)
            intervals = list(islice(cut, MAX_PERIODS + 1))
        except _UnevenError as uneven:
            span = places.span("levels", number, "date_rules")
            problem = InvalidPeriod(
                reason=PeriodReason.DOES_NOT_FIT, identifier=uneven.identifier, other=level.name, span=span
            )
            return made, (problem,)
        if len(made) + len(intervals) > MAX_PERIODS:
            span = places.span("generate")
            return made, (LimitExceeded(what="periods in a calendar", limit=MAX_PERIODS, span=span),)
        named = intervals_by_level.setdefault(level.name, [])
        for interval in intervals:
            identifier = _render_identifier(level, interval)
            if identifier in made:
                span = places.span("levels", number, "identifier_pattern")
                return made, (DuplicateName(kind="period", name=identifier, span=span),)
            named.append((identifier, interval))
            made[identifier] = Period(
                identifier=identifier,
                level=level.name,
                parent=interval.parent,
                start_date=interval.start,
                end_date=interval.end,
            )
    return made, ()


class _UnevenError(Exception):
    def __init__(self, identifier: str) -> None:
        super().__init__(identifier)
        self.identifier = identifier


def _cut_roots(level: Level, wanted: Generate) -> Iterator[_Interval]:
    """The coarsest periods; each one counts from the first that starts in the same calendar year."""
    year, sequence = 0, 0
    for start, end in _find_roots(level, wanted):
        sequence = sequence + 1 if start.year == year else 1
        year = start.year
        if end >= wanted.first:
            yield _Interval(start, end, start, end, sequence, sequence, None)


def _find_roots(level: Level, wanted: Generate) -> Iterator[tuple[date, date]]:
    """From the first of the year in which the wanted time starts, or earlier, up to the end of that time."""
    day = timedelta(days=1)
    starts = level.date_rules.starts if level.date_rules is not None else ()
    if len(starts) > 1:
        yield from ((start, after - day) for start, after in pairwise(starts) if start <= wanted.last)
        return
    length = _length_of(level)
    anchor = starts[0] if starts else _natural_anchor(length, wanted.first)
    times = (wanted.first - anchor).days // (length.after(anchor, 1) - anchor).days
    while length.after(anchor, times).year >= wanted.first.year:
        times -= 1
    while (start := length.after(anchor, times)) <= wanted.last:
        times += 1
        yield start, length.after(anchor, times) - day


def _cut_level(level: Level, above: Iterable[tuple[str, _Interval]]) -> Iterator[_Interval]:
    sequence, root = 0, None
    for parent, whole in above:
        if whole.root_start != root:
            sequence, root = 0, whole.root_start
        for position, (start, end) in enumerate(_cut(level, parent, whole), start=1):
            sequence += 1
            yield _Interval(start, end, whole.root_start, whole.root_end, sequence, position, parent)


def _cut(level: Level, parent: str, whole: _Interval) -> Iterator[tuple[date, date]]:
    day = timedelta(days=1)
    split = level.date_rules.split if level.date_rules is not None else ()
    start = whole.start
    if split:
        for length in split[:-1]:
            after = length.after(start, 1)
            yield start, after - day
            start = after
        if start > whole.end:
            raise _UnevenError(parent)
        yield start, whole.end
        return
    length = _length_of(level)
    times = 0
    while (start := length.after(whole.start, times)) <= whole.end:
        times += 1
        yield start, min(length.after(whole.start, times) - day, whole.end)


def _length_of(level: Level) -> Length:
    if level.date_rules is not None and level.date_rules.every is not None:
        return level.date_rules.every
    return _KNOWN_LEVELS[level.name].length


def _natural_anchor(length: Length, day: date) -> date:
    """Where a period of a length starts if nothing is said: a Monday, or 1 January."""
    if length.unit == "week":
        return day - timedelta(days=day.weekday())
    return day if length.unit == "day" else date(day.year, 1, 1)


def _render_identifier(level: Level, interval: _Interval) -> str:
    pattern = level.identifier_pattern or _KNOWN_LEVELS[level.name].pattern
    numbers = {
        "year": interval.root_start.year,
        "end_year": interval.root_end.year,
        "sequence": interval.sequence,
        "position": interval.position,
    }
    days = {"start": interval.start, "end": interval.end}

    def fill(found: re.Match[str]) -> str:
        token, wanted = found[1], found[2] or ""
        if token in numbers:
            return format(numbers[token], wanted)
        return format(days[token], wanted) if token in days else interval.parent or ""

    return _TOKEN.sub(fill, pattern)


def _is_token(token: str, wanted: str | None) -> bool:
    if token in ("start", "end"):
        return wanted is None or _DATE_FORMAT.fullmatch(wanted) is not None
    if token == "parent":
        return wanted is None
    return token in PATTERN_TOKENS and (wanted is None or _NUMBER_FORMAT.fullmatch(wanted) is not None)


def _merge_listed(
    calendar: Calendar, generated: Mapping[str, Period], parent_by_level: Mapping[str, str | None]
) -> tuple[dict[str, Period], tuple[Problem, ...]]:
    """Generated and listed periods together, each with its parent."""
    merged = dict(generated)
    problems: list[Problem] = []
    place_by_identifier: dict[str, Places] = {}
    for position, listed in enumerate(calendar.periods):
        places = calendar.places.at("periods", position) or calendar.places
        place_by_identifier[listed.identifier] = places
        base = generated.get(listed.identifier)
        given = {name: value for name in Period.model_fields if (value := getattr(listed, name)) is not None}
        missing = [key for key in ("level", "start_date", "end_date") if base is None and key not in given]
        if missing:
            problems += [
                InvalidPeriod(
                    reason=PeriodReason.NOT_GENERATED, identifier=listed.identifier, other=key, span=places.key_span()
                )
                for key in missing
            ]
            continue
        period = base.model_copy(update=given) if base is not None else Period(**given)
        if period.level not in parent_by_level:
            known = tuple(parent_by_level)
            problems.append(
                InvalidPeriod(
                    reason=PeriodReason.UNKNOWN_LEVEL,
                    identifier=period.identifier,
                    other=period.level,
                    known=known,
                    span=places.span("level"),
                )
            )
        elif period.end_date < period.start_date:
            problems.append(
                InvalidPeriod(
                    reason=PeriodReason.ENDS_BEFORE_START, identifier=period.identifier, span=places.span("end_date")
                )
            )
        else:
            merged[period.identifier] = period
    merged |= {period.identifier: period for period in _find_parents(merged, parent_by_level)}
    problems += _check_parents(merged, parent_by_level, place_by_identifier)
    return merged, tuple(problems)


def _find_parents(periods: Mapping[str, Period], parent_by_level: Mapping[str, str | None]) -> Iterator[Period]:
    """Periods that name no parent, under the only one of the level above that contains them, if there is such a one."""
    by_level: dict[str, list[Period]] = {}
    for period in sorted(periods.values(), key=lambda each: each.start_date):
        by_level.setdefault(period.level, []).append(period)
    starts = {level: [period.start_date for period in group] for level, group in by_level.items()}
    longest = {level: max(each.end_date - each.start_date for each in group) for level, group in by_level.items()}
    for period in periods.values():
        above = parent_by_level[period.level]
        if period.parent is not None or above is None or above not in by_level:
            continue
        first = bisect_left(starts[above], _earlier(period.start_date, longest[above]))
        last = bisect_right(starts[above], period.start_date)
        around = [each for each in by_level[above][first:last] if each.contains(period.start_date, period.end_date)]
        if len(around) == 1:
            yield period.model_copy(update={"parent": around[0].identifier})


def _earlier(day: date, by: timedelta) -> date:
    return day - by if day - date.min > by else date.min


def _check_parents(
    periods: Mapping[str, Period], parent_by_level: Mapping[str, str | None], place_by_identifier: Mapping[str, Places]
) -> Iterator[Problem]:
    """Every part is inside its parent. Only what is listed can be wrong, on either side."""
    for period in periods.values():
        places = place_by_identifier.get(period.identifier) or place_by_identifier.get(period.parent or "")
        if period.parent is None or places is None:
            continue
        parent = periods.get(period.parent)
        if parent is None:
            reason, known = PeriodReason.UNKNOWN_PARENT, tuple(periods)
        elif parent.level != parent_by_level[period.level]:
            reason, known = PeriodReason.PARENT_LEVEL, ()
        elif not parent.contains(period.start_date, period.end_date):
            reason, known = PeriodReason.OUTSIDE_PARENT, ()
        else:
            continue
        yield InvalidPeriod(
            reason=reason,
            identifier=period.identifier,
            other=period.parent,
            known=known,
            span=places.span("parent") if places.at("parent") is not None else places.key_span(),
        )


def _day_or_none(value: object) -> date | None:
    try:
        return parse_date(value)
    except ValueError:
        return None


def _outside_years(places: Places, key: str) -> InvalidValue:
    expected = f"a year from {YEARS.start} to {YEARS.stop - 1}"
    return InvalidValue(key=key, expected=expected, found=f"`{places.get(key)}`", span=places.span(key))
