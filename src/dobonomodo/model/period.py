"""Periods of a calendar: their status, their parents, and which finer periods make up a coarser one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import ClassVar, Literal

from pydantic import Field

from dobonomodo.model.entity import Entity, Loaded
from dobonomodo.model.value import Day, FileName, Filled
from dobonomodo.problems.definition import PeriodNotFound

PeriodStatus = Literal["open", "closed", "locked"]


class Period(Entity):
    """A stretch of time that runs and data belong to, first and last day included."""

    cosmetic: ClassVar[frozenset[str]] = frozenset({"status"})

    identifier: FileName = Field(description="The name of the period, unique in its calendar.")
    level: Filled = Field(description="The calendar level it belongs to.")
    parent: FileName | None = Field(default=None, description="The period of the level above that it is a part of.")
    start_date: Day = Field(description="The first day.")
    end_date: Day = Field(description="The last day.")
    status: PeriodStatus = Field(
        default="open", description="open, closed or locked to begin with; what `dobo period` records wins over it."
    )

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return self.document()

    def contains(self, start: date, end: date) -> bool:
        """Whether a stretch of days is inside the period."""
        return self.start_date <= start and end <= self.end_date


@dataclass(frozen=True)
class Schedule:
    """All periods of a calendar, generated and listed, by date and from coarse to fine."""

    calendar: str
    periods: tuple[Period, ...]
    parent_by_level: Mapping[str, str | None] = field(default_factory=dict)

    @cached_property
    def by_identifier(self) -> Mapping[str, Period]:
        """Every period under its identifier."""
        return {period.identifier: period for period in self.periods}

    def find(self, identifier: str) -> Loaded[Period]:
        """The period with an identifier, or a problem that suggests the nearest one."""
        period = self.by_identifier.get(identifier)
        if period is not None:
            return Loaded(period)
        known = tuple(each.identifier for each in self.finest_first())
        problem = PeriodNotFound(
            identifier=identifier, calendar=self.calendar, known=known, ranges=tuple(self._ranges())
        )
        return Loaded(None, (problem,))

    def _ranges(self) -> Iterator[tuple[str, str, str]]:
        """Of each level that has periods, the finest first: its name, its first period and its last."""
        for level in reversed(tuple(self.parent_by_level)):
            if found := self.at_level(level):
                yield level, found[0].identifier, found[-1].identifier

    def between(self, first: Period, last: Period) -> tuple[Period, ...]:
        """The periods of the level of both, from the first to the last."""
        return tuple(
            each for each in self.at_level(first.level) if first.start_date <= each.start_date <= last.start_date
        )

    def latest(self, day: date) -> Period | None:
        """The last period of the finest level that has ended before a day."""
        finest = next((level for level in reversed(tuple(self.parent_by_level)) if self.at_level(level)), "")
        ended = [each for each in self.at_level(finest) if each.end_date < day]
        return ended[-1] if ended else None

    def finest_first(self) -> tuple[Period, ...]:
        """All periods, those of the finest level first, as most runs are for one of them."""
        levels = tuple(self.parent_by_level)
        return tuple(sorted(self.periods, key=lambda each: -levels.index(each.level)))

    def at_level(self, level: str) -> tuple[Period, ...]:
        """The periods of a level in date order."""
        return tuple(period for period in self.periods if period.level == level)

    def before(self, period: Period) -> Period | None:
        """The period of the same level that comes before one, by date; None for the first."""
        earlier = [each for each in self.at_level(period.level) if each.start_date < period.start_date]
        return earlier[-1] if earlier else None

    def is_finer(self, level: str, than: str) -> bool:
        """Whether a level is below another one."""
        above = self.parent_by_level.get(level)
        while above is not None:
            if above == than:
                return True
            above = self.parent_by_level.get(above)
        return False

    def children(self, period: Period, level: str) -> tuple[Period, ...]:
        """The periods of a level that make up a period, by date: itself at its own level, none at a coarser one."""
        if level == period.level:
            return (period,)
        if not self.is_finer(level, period.level):
            return ()
        return tuple(part for part in self.at_level(level) if self._is_part(part, period))

    def parts(self, period: Period) -> tuple[Period, ...]:
        """The periods of the nearest lower level at which a period has several, none if there is no such level."""
        for level in self.parent_by_level:
            if self.is_finer(level, period.level) and len(found := self.children(period, level)) > 1:
                return found
        return ()

    def with_statuses(self, status_by_identifier: Mapping[str, PeriodStatus]) -> "Schedule":
        """The same periods with their current statuses."""
        changed = {
            name: self.by_identifier[name].model_copy(update={"status": status})
            for name, status in status_by_identifier.items()
            if name in self.by_identifier and status != self.by_identifier[name].status
        }
        if not changed:
            return self
        periods = tuple(changed.get(period.identifier, period) for period in self.periods)
        return Schedule(self.calendar, periods, self.parent_by_level)

    def _is_part(self, part: Period, whole: Period) -> bool:
        """By the chain of parents; where that breaks off before the level of the whole, by the dates."""
        above: Period | None = part
        while above is not None and above.level != whole.level:
            above = self.by_identifier.get(above.parent) if above.parent is not None else None
        if above is None:
            return whole.contains(part.start_date, part.end_date)
        return above.identifier == whole.identifier
