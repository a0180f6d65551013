"""The states of projects and periods, and the only ways from one to another: tables, nothing more."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from dobonomodo.problems import Rejected
from dobonomodo.problems.store import InvalidTransition

if TYPE_CHECKING:
    from collections.abc import Mapping


class ProjectStatus(StrEnum):
    """Where one version of a project stands."""

    DRAFT = "draft"
    ACTIVE = "active"
    CONFLICT = "conflict"
    INACTIVE = "inactive"


class ProjectEvent(StrEnum):
    """What can happen to one version of a project."""

    ACTIVATE = "activate"
    SUPERSEDE = "supersede"
    DEACTIVATE = "deactivate"
    CONFLICT = "conflict"
    KEEP_PIN = "keep pin"


class PeriodStatus(StrEnum):
    """How far a period is done with, from open to locked."""

    OPEN = "open"
    CLOSED = "closed"
    LOCKED = "locked"


LIVE = (ProjectStatus.ACTIVE, ProjectStatus.CONFLICT)
"""At most one version of a project is in one of these."""

PROJECT_LIFE: Mapping[tuple[ProjectStatus, ProjectEvent], ProjectStatus] = MappingProxyType(
    {
        (ProjectStatus.DRAFT, ProjectEvent.ACTIVATE): ProjectStatus.ACTIVE,
        # Activating again moves the pin, takes up a version again, or ends a conflict; each time everything is checked.
        (ProjectStatus.ACTIVE, ProjectEvent.ACTIVATE): ProjectStatus.ACTIVE,
        (ProjectStatus.INACTIVE, ProjectEvent.ACTIVATE): ProjectStatus.ACTIVE,
        (ProjectStatus.CONFLICT, ProjectEvent.ACTIVATE): ProjectStatus.ACTIVE,
        (ProjectStatus.ACTIVE, ProjectEvent.SUPERSEDE): ProjectStatus.INACTIVE,
        (ProjectStatus.CONFLICT, ProjectEvent.SUPERSEDE): ProjectStatus.INACTIVE,
        (ProjectStatus.ACTIVE, ProjectEvent.DEACTIVATE): ProjectStatus.INACTIVE,
        (ProjectStatus.CONFLICT, ProjectEvent.DEACTIVATE): ProjectStatus.INACTIVE,
        (ProjectStatus.ACTIVE, ProjectEvent.CONFLICT): ProjectStatus.CONFLICT,
        (ProjectStatus.CONFLICT, ProjectEvent.CONFLICT): ProjectStatus.CONFLICT,
        (ProjectStatus.CONFLICT, ProjectEvent.KEEP_PIN): ProjectStatus.ACTIVE,
    }
)

PERIOD_LIFE: Mapping[PeriodStatus, tuple[PeriodStatus, ...]] = MappingProxyType(
    {
        PeriodStatus.OPEN: (PeriodStatus.CLOSED,),
        PeriodStatus.CLOSED: (PeriodStatus.LOCKED,),
        PeriodStatus.LOCKED: (),
    }
)

_PERIOD_ORDER = tuple(PeriodStatus)


def next_project_status(status: ProjectStatus, event: ProjectEvent, *, project: str, version: int) -> ProjectStatus:
    """The status after an event; an event that does not fit is refused."""
    after = PROJECT_LIFE.get((status, event))
    if after is None:
        possible = tuple(known.value for before, known in PROJECT_LIFE if before is status)
        subject = f"project `{project}` version {version}"
        raise Rejected([InvalidTransition(subject=subject, status=status, wanted=event, possible=possible)])
    return after


def next_period_status(status: PeriodStatus, to: PeriodStatus, *, calendar: str, identifier: str) -> PeriodStatus:
    """``to``, if it is the state a period is in or the next one."""
    if to is not status and to not in PERIOD_LIFE[status]:
        subject = f"period `{identifier}` of calendar `{calendar}`"
        possible = tuple(known.value for known in PERIOD_LIFE[status])
        raise Rejected([InvalidTransition(subject=subject, status=status, wanted=to, possible=possible)])
    return to


def further(one: PeriodStatus, other: PeriodStatus) -> PeriodStatus:
    """The later of two statuses: a file gives the starting point, the store can only be further along."""
    return max(one, other, key=_PERIOD_ORDER.index)
