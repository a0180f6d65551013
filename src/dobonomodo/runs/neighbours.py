"""The runs that a run is compared with and linked to: a pure decision over records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dobonomodo.runs.resume import came_after
from dobonomodo.runs.state import RunStatus

if TYPE_CHECKING:
    from dobonomodo.store import Run


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """The runs around a run of the same project. All of them completed."""

    previous: Run | None = None
    """The one before it for the same period. For a draft that is the published result, where there is one."""
    next: Run | None = None
    """The one after it for the same period, of the same kind: a draft is followed by a draft."""
    previous_period: Run | None = None
    """The latest one for the period before, by the calendar."""


def find_neighbours(run: Run, of_period: Iterable[Run], of_previous_period: Iterable[Run] = ()) -> Neighbours:
    """Among the runs of its project for its period, and for the period before that."""
    others = [each for each in of_period if each.id != run.id and each.status == RunStatus.COMPLETED]
    earlier = [each for each in others if came_after(run, each)]
    later = [each for each in others if came_after(each, run) and is_draft(each) == is_draft(run)]
    before = [each for each in of_previous_period if each.status == RunStatus.COMPLETED]
    return Neighbours(_latest(_comparable(run, earlier)), _earliest(later), _latest(_comparable(run, before)))


def is_draft(run: Run) -> bool:
    """Whether it wrote to the sandbox."""
    return bool(run.snapshot["project"]["status"] == "draft")


def _comparable(run: Run, others: list[Run]) -> list[Run]:
    """Published results; for a draft, earlier drafts where nothing is published."""
    published = [each for each in others if not is_draft(each)]
    return others if is_draft(run) and not published else published


def _latest(runs: list[Run]) -> Run | None:
    found: Run | None = None
    for each in runs:
        if found is None or came_after(each, found):
            found = each
    return found


def _earliest(runs: list[Run]) -> Run | None:
    found: Run | None = None
    for each in runs:
        if found is None or came_after(found, each):
            found = each
    return found
