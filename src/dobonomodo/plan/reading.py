"""Checks of the readings of a plan that need the period of a run, or the columns that its rows are stored with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from datetime import date

from dobonomodo.model.period import Period, Schedule
from dobonomodo.plan.dataset import DatasetUse, Role
from dobonomodo.plan.planner import Plan
from dobonomodo.plan.system import PERIOD
from dobonomodo.problems import Problem
from dobonomodo.problems.operation import (
    AppendDatasetNotFound,
    DatasetMissing,
    InputDatasetNotFound,
    JoinDatasetNotFound,
    OneDayForPeriod,
    ResolverNotFound,
    UnfilteredPeriods,
)

_MISSING: dict[Role, type[DatasetMissing]] = {
    "input": InputDatasetNotFound,
    "lookup": JoinDatasetNotFound,
    "join": JoinDatasetNotFound,
    "append": AppendDatasetNotFound,
    "against": JoinDatasetNotFound,
}


def check_awaited(plan: Plan, period: str | None, *, active: Collection[str] | None = None) -> Iterator[Problem]:
    """Datasets that are read before any run has registered them (C-93).

    ``active``: the projects whose results this one sees, where a draft's are not enough.
    """
    for use in plan.uses:
        if not use.is_awaited or use.may_be_missing:
            continue
        others = tuple(each for each in use.registered_by if each != plan.project.id)
        if others:
            yield _missing(use, others, period, inactive=active is not None and not set(others) & set(active))
        else:
            yield ResolverNotFound(dataset_id=use.dataset_id, span=use.place, operation=use.operation)


def _missing(use: DatasetUse, makers: tuple[str, ...], period: str | None, *, inactive: bool) -> Problem:
    return _MISSING[use.role](
        dataset_id=use.dataset_id,
        registered_by=makers,
        inactive=inactive,
        period=period,
        span=use.place,
        operation=use.operation,
    )


def check_unfiltered(plan: Plan, stored: Callable[[DatasetUse], Collection[str]]) -> Iterator[Problem]:
    """Sources without a temporal mode whose stored rows have a period (W-04); ``stored`` gives the columns of a reading."""
    for use in plan.uses:
        if use.role == "append" and use.temporal_mode is None and PERIOD in map(str.casefold, stored(use)):
            yield UnfilteredPeriods(dataset_id=use.dataset_id, span=use.place, operation=use.operation)


def check_days(plan: Plan, period: Period, schedule: Schedule | None, *, as_of: date | None) -> Iterator[Problem]:
    """Bitemporal datasets that are read as of one day for a period with several parts, although no day was named (W-09)."""
    uses = [
        use for use in plan.uses if use.temporal_mode == "bitemporal" and use.as_of is None and use.horizon.is_current
    ]
    parts = schedule.parts(period) if uses and as_of is None and schedule is not None else ()
    for use in uses if len(parts) > 1 else ():
        yield OneDayForPeriod(
            dataset_id=use.dataset_id,
            day=period.start_date,
            period=period.identifier,
            level=parts[0].level,
            count=len(parts),
            span=use.place,
            operation=use.operation,
        )
