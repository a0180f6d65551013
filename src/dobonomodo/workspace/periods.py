"""The periods of a workspace: those of its calendars, with the statuses that the store has recorded since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from dobonomodo.model import Calendar, Period, Schedule
from dobonomodo.problems import Rejected
from dobonomodo.problems.definition import InvalidPeriodRange, PeriodNotFound
from dobonomodo.problems.operation import PeriodNotRunnable
from dobonomodo.store import PeriodStatus
from dobonomodo.workspace.arguments import read_period

if TYPE_CHECKING:
    from dobonomodo.store import Run
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.stores import Stores


RANGE = ".."
"""Between the first and the last of several periods."""
LATEST = "latest"
"""The last period that has ended."""


@dataclass(frozen=True, slots=True)
class ListedPeriod:
    """A period with its calendar."""

    calendar: str
    period: Period

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {"calendar": self.calendar, **self.period.document()}


class Periods:
    """Finds periods."""

    def __init__(self, files: Files, stores: Stores) -> None:
        self._definitions, self._stores = files.definitions, stores

    def schedules(self) -> tuple[tuple[Calendar, Schedule], ...]:
        """Every calendar with its periods, the statuses as they are now; the default calendar first."""
        return tuple((calendar, self._current(calendar)) for calendar in self._calendars())

    def _calendars(self) -> Sequence[Calendar]:
        default = self._definitions.default_calendar
        return sorted(self._definitions.calendars.values(), key=lambda each: each is not default)

    def list(self) -> tuple[ListedPeriod, ...]:
        """The periods of every calendar."""
        return tuple(
            ListedPeriod(calendar.id, period) for calendar, schedule in self.schedules() for period in schedule.periods
        )

    def _current(self, calendar: Calendar) -> Schedule:
        store = self._stores.find_main()
        if store is None:
            return calendar.schedule
        current: dict[str, Any] = {
            name: record.status.value for name, record in store.list_periods(calendar.id).items()
        }
        return calendar.schedule.with_statuses(current)

    def find(self, identifier: str) -> Period:
        """A period of any calendar, the default calendar's first."""
        return _find(read_period(identifier), [schedule for _, schedule in self.schedules()])

    def choose(self, texts: Sequence[str], *, today: date) -> tuple[Period, ...]:
        """The periods that texts name, each once, by date: an identifier, a range ``2026-01..2026-12``, or ``latest``."""
        schedules = [schedule for _, schedule in self.schedules()]
        found = [period for text in texts for period in _choose(read_period(text).strip(), schedules, today=today)]
        unique = {each.identifier: each for each in found}
        return tuple(sorted(unique.values(), key=lambda each: (each.start_date, each.end_date)))

    def find_schedule(self, identifier: str) -> Schedule | None:
        """The periods of the calendar that has one, with the statuses of its file."""
        calendar = self.find_calendar(identifier)
        return calendar.schedule if calendar is not None else None

    def find_calendar(self, identifier: str) -> Calendar | None:
        """The calendar that has a period, the default calendar first."""
        return next((each for each in self._calendars() if identifier in each.schedule.by_identifier), None)

    def find_before(self, identifier: str) -> str | None:
        """The period before one, by the calendar; None where no calendar has it, or it is the first."""
        schedule = self.find_schedule(identifier)
        found = schedule.before(schedule.by_identifier[identifier]) if schedule is not None else None
        return found.identifier if found is not None else None

    def identifiers(self) -> tuple[str, ...]:
        """The names of all periods."""
        calendars = self._definitions.calendars.values()
        return tuple(dict.fromkeys(name for calendar in calendars for name in calendar.schedule.by_identifier))

    def has(self, identifier: str) -> bool:
        """Whether a calendar has a period."""
        return identifier in self.identifiers()

    def can_resume(self, run: Run) -> bool:
        """Whether the period of a run lets it go on."""
        try:
            self.require_resumable(run)
        except Rejected:
            return False
        return True

    def require_resumable(self, run: Run) -> None:
        """Refuse to go on with a run whose period was closed since; what it was publishing is completed in any case."""
        if run.progress.get("intent") is None and self.has(run.period):
            require_runnable(self.find(run.period), override_closed=run.snapshot.get("override") is not None)

    def list_starts(self, identifier: str) -> dict[str, PeriodStatus]:
        """The status of a period in the file of each calendar that has it."""
        return {
            calendar.id: PeriodStatus(period.status)
            for calendar in self._definitions.calendars.values()
            if (period := calendar.schedule.by_identifier.get(identifier)) is not None
        }


def _find(identifier: str, schedules: Sequence[Schedule]) -> Period:
    for schedule in schedules:
        if identifier in schedule.by_identifier:
            return schedule.by_identifier[identifier]
    if not schedules:
        raise Rejected([PeriodNotFound(identifier=identifier, calendar="", known=())])
    raise Rejected(schedules[0].find(identifier).problems)


def _choose(text: str, schedules: Sequence[Schedule], *, today: date) -> tuple[Period, ...]:
    named = any(text in schedule.by_identifier for schedule in schedules)
    if named or (RANGE not in text and text != LATEST):
        return (_find(text, schedules),)
    if text == LATEST:
        found = schedules[0].latest(today) if schedules else None
        if found is None:
            problem = InvalidPeriodRange(
                text=text,
                wrong=f"no period has ended before {today}",
                instead="name a period; `dobo period list` shows all",
            )
            raise Rejected([problem])
        return (found,)
    start, _, end = text.partition(RANGE)
    if not start.strip() or not end.strip():
        raise Rejected([InvalidPeriodRange(text=text, wrong="it needs a first and a last period")])
    first, last = _find(start.strip(), schedules), _find(end.strip(), schedules)
    schedule = next(each for each in schedules if first.identifier in each.by_identifier)
    if last.identifier not in schedule.by_identifier:
        raise Rejected([InvalidPeriodRange(text=text, wrong="the two are periods of different calendars")])
    if first.level != last.level:
        wrong = f"`{first.identifier}` is of level `{first.level}` and `{last.identifier}` of level `{last.level}`"
        raise Rejected([InvalidPeriodRange(text=text, wrong=wrong)])
    if last.start_date < first.start_date:
        wrong, instead = "the first comes after the last", f"write `{last.identifier}..{first.identifier}`"
        raise Rejected([InvalidPeriodRange(text=text, wrong=wrong, instead=instead)])
    return schedule.between(first, last)


def require_runnable(*periods: Period, override_closed: bool) -> None:
    """A locked period never runs, a closed one only on request (C-69)."""
    problems = [
        PeriodNotRunnable(period=period.identifier, status=period.status)
        for period in periods
        if period.status == "locked" or (period.status == "closed" and not override_closed)
    ]
    if problems:
        raise Rejected(problems)
