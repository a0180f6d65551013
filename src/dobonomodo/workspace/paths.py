"""The paths that a plan reads and writes, checked on the disk as it is now: a symbolic link may lead out of a datasource."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from posixpath import dirname
from typing import TYPE_CHECKING

from dobonomodo.problems import OperationRef, Problem
from dobonomodo.problems.definition import UnsafePath
from dobonomodo.problems.operation import DestinationReason, InvalidDestination

if TYPE_CHECKING:
    from dobonomodo.model import DataSource
    from dobonomodo.plan import Plan
    from dobonomodo.plan.dataset import DatasetUse, Location
    from dobonomodo.plan.resolution import Resolution
    from dobonomodo.storage import Storages


_LOCATIONS_AT_MOST = 200


def check_links(plan: Plan, datasources: Mapping[str, DataSource], *, root: Path) -> Iterator[Problem]:
    """Where a link leads out of a datasource, as far as there are links now; a run checks again."""
    from dobonomodo.storage import Storages

    storages = Storages(root, datasources)
    for use in plan.uses:
        yield from _find_links(use, use.locations, storages, datasources)
    for step in plan.steps:
        destination = step.lowered.write.destination if step.lowered.write is not None else None
        names = (destination.table, dirname(destination.file or "")) if destination is not None else ()
        if destination is not None and any(storages.of_destination(destination).escapes(name) for name in names):
            span = step.spec.places.span("arguments", "destination")
            name, operation = str(destination), OperationRef(step.spec.seq, step.spec.name)
            yield InvalidDestination(reason=DestinationReason.LINK, name=name, span=span, operation=operation)


def check_links_of_any_period(
    plan: Plan, resolution: Resolution, datasources: Mapping[str, DataSource], *, root: Path
) -> Iterator[Problem]:
    """Where a link leads out of a datasource in some period, of each reading the first one.

    A calendar of days has thousands of periods, each with its path. Only the first ones are checked here; a run checks its own.
    """
    from dobonomodo.storage import Storages

    storages = Storages(root, datasources)
    by_calendar = [replace(resolution, schedule=schedule) for schedule in resolution.schedules]
    for use in plan.uses:
        # One file may serve several periods.
        found = (islice(calendar.locate_all(use), _LOCATIONS_AT_MOST) for calendar in by_calendar)
        locations = {str(each): each for located in found for each in located}
        yield from islice(_find_links(use, locations.values(), storages, datasources), 1)


def _find_links(
    use: DatasetUse, locations: Iterable[Location], storages: Storages, datasources: Mapping[str, DataSource]
) -> Iterator[Problem]:
    opened = {name: storages.open(source) for name, source in datasources.items()}
    for location in locations:
        storage = opened.get(location.datasource_id)
        if storage is not None and storage.leaves(location):
            yield UnsafePath(path=str(location), is_link=True, operation=use.operation)
