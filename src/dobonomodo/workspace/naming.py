"""Names of runs: an id, a unique prefix or suffix of it, or project and period."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dobonomodo.problems import Rejected
from dobonomodo.problems.run import RunNotFound
from dobonomodo.runs.neighbours import find_neighbours, is_draft
from dobonomodo.runs.state import RunStatus
from dobonomodo.workspace.arguments import read_run

if TYPE_CHECKING:
    from dobonomodo.store import Run, Store

LATEST = "latest"
"""The run that was started last."""


def find_run(store: Store | None, name: str) -> Run:
    """The run of a name: its id, a part that no other id begins or ends with, or

    ``latest``, ``latest:PROJECT``, ``previous`` (the one before the latest) or ``PROJECT@PERIOD``, the latest of those.
    """
    read_run(name)
    if store is not None:
        if (found := store.get_run(name) or _find_named(name, store)) is not None:
            return found
        known = [run for run in store.list_runs() if run.id.startswith(name) or run.id.endswith(name)]
        if len(known) == 1:
            return known[0]
        if known:
            raise Rejected([RunNotFound(id=name, known=tuple(run.id for run in known))])
    raise Rejected([RunNotFound(id=name)])


def find_completed(store: Store | None, name: str) -> Run:
    """The same, for runs that are compared: ``PROJECT@PERIOD`` is the newest that completed and is no draft."""
    read_run(name)
    of, _, period = name.rpartition("@")
    if store is not None and of and period and store.get_run(name) is None:
        completed = store.list_runs(project=of, period=period, status=RunStatus.COMPLETED)
        found = next((run for run in completed if not is_draft(run)), None)
        if found is not None:
            return found
    return find_run(store, name)


def find_compared(store: Store | None, before: str, after: str) -> tuple[Run, Run]:
    """Two runs that are compared. ``previous`` is the one that the figures of the other run compare it with.

    The run before the latest may be of another project or period, or may have failed: it is taken where there is no such run.
    """
    if "previous" not in (before, after) or before == after:
        return find_completed(store, before), find_completed(store, after)
    other = find_completed(store, after if before == "previous" else before)
    previous = None
    if store is not None:
        previous = find_neighbours(other, store.list_runs(project=other.project, period=other.period)).previous
    found = previous or find_completed(store, "previous")
    return (found, other) if before == "previous" else (other, found)


def _find_named(name: str, store: Store) -> Run | None:
    """The run that is named by what it was about, or by its place among the latest."""
    first, colon, project = name.partition(":")
    of, _, period = name.rpartition("@")
    if first == LATEST and (project or not colon):
        found = store.list_runs(project=project if colon else None, limit=1)
    elif name == "previous":
        found = store.list_runs(limit=2)[1:]
    elif of and period:
        found = store.list_runs(project=of, period=period, limit=1)
    else:
        return None
    return found[0] if found else None
