"""The periods of a workspace: those of its calendars, with the statuses that the store has recorded since."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dobonomodo.model import Calendar, Period, Schedule
from dobonomodo.problems import Rejected
from dobonomodo.problems.definition import PeriodNotFound
from dobonomodo.problems.operation import PeriodNotRunnable
from dobonomodo.store import PeriodStatus
from dobonomodo.workspace.arguments import read_period

if TYPE_CHECKING:
    from dobonomodo.store import Run
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.stores import Stores


class Periods:
    """Finds periods."""

    def __init__(self, files: Files, stores: Stores) -> None:
        self._definitions, self._stores = files.definitions, stores

    def schedules(self) -> tuple[tuple[Calendar, Schedule], ...]:
        """Every calendar with its periods, the statuses as they are now; the default calendar first."""
        default = self._definitions.default_calendar
        calendars = sorted(self._definitions.calendars.values(), key=lambda each: each is not default)
        return tuple((calendar, self._current(calendar)) for calendar in calendars)

    def _current(self, calendar: Calendar) -> Schedule:
        store = self._stores.find_main()
        if store is None:
            return calendar.schedule
        listed = calendar.schedule.by_identifier
        current: dict[str, Any] = {
            name: record.status.value for name, record in store.list_periods(calendar.id).items() if name in listed
        }
        return calendar.schedule.with_statuses(current)

    def find(self, identifier: str) -> Period:
        """A period of any calendar, the default calendar's first."""
        read_period(identifier)
        schedules = [schedule for _, schedule in self.schedules()]
        for schedule in schedules:
            if identifier in schedule.by_identifier:
                return schedule.by_identifier[identifier]
        if not schedules:
            raise Rejected([PeriodNotFound(identifier=identifier, calendar="", known=())])
        raise Rejected(schedules[0].find(identifier).problems)

    def find_schedule(self, period: Period) -> Schedule | None:
        """The periods of the calendar that has this one."""
        for _, schedule in self.schedules():
            if period.identifier in schedule.by_identifier:
                return schedule
        return None

    def find_before(self, identifier: str) -> str | None:
        """The period before one, by the calendar; None where no calendar has it, or it is the first."""
        for _, schedule in self.schedules():
            if (period := schedule.by_identifier.get(identifier)) is not None:
                found = schedule.before(period)
                return found.identifier if found is not None else None
        return None

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
        """Refuse to go on with a run whose period was closed since; what it was publishing is completed all the same."""
        if run.progress.get("intent") is None and self.has(run.period):
            require_runnable(self.find(run.period), override_closed=run.snapshot.get("override") is not None)

    def list_starts(self, identifier: str) -> dict[str, PeriodStatus]:
        """The status of a period in the file of each calendar that has it."""
        return {
            calendar.id: PeriodStatus(period.status)
            for calendar in self._definitions.calendars.values()
            if (period := calendar.schedule.by_identifier.get(identifier)) is not None
        }


def require_runnable(period: Period, *, override_closed: bool) -> None:
    """A locked period never runs, a closed one only on request (C-69)."""
    if period.status == "locked" or (period.status == "closed" and not override_closed):
        raise Rejected([PeriodNotRunnable(period=period.identifier, status=period.status)])
