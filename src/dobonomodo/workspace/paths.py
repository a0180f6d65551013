"""The paths that a plan reads and writes, checked on the disk as it is now: a symbolic link may lead out of a datasource."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from posixpath import dirname
from typing import TYPE_CHECKING

from dobonomodo.problems import OperationRef, Problem
from dobonomodo.problems.definition import UnsafePath
from dobonomodo.problems.operation import DestinationReason, InvalidDestination

if TYPE_CHECKING:
    from dobonomodo.model import DataSource
    from dobonomodo.plan import Plan


def check_links(plan: Plan, datasources: Mapping[str, DataSource], *, root: Path) -> Iterator[Problem]:
    """Where a link leads out of a datasource, as far as there are links now; a run checks again."""
    from dobonomodo.storage import Storages

    storages = Storages(root, datasources)
    for use in plan.uses:
        for location in use.locations:
            source = datasources.get(location.datasource_id)
            if source is not None and storages.open(source).leaves(location):
                yield UnsafePath(path=str(location), operation=use.operation)
    for step in plan.steps:
        destination = step.lowered.write.destination if step.lowered.write is not None else None
        names = (destination.table, dirname(destination.file or "")) if destination is not None else ()
        if destination is not None and any(storages.of_destination(destination).escapes(name) for name in names):
            span = step.spec.places.span("arguments", "destination")
            name, operation = str(destination), OperationRef(step.spec.seq, step.spec.name)
            yield InvalidDestination(reason=DestinationReason.LINK, name=name, span=span, operation=operation)
