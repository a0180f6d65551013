"""The states of projects and periods, and their transition tables."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from dobonomodo.problems import Rejected
from dobonomodo.problems.store import InvalidTransition

if TYPE_CHECKING:
    from collections.abc import Mapping


class ProjectStatus(StrEnum):
    """The state of one version of a project."""

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


class PeriodEvent(StrEnum):
    """What can happen to a period."""

    OPEN = "open"
    """Nothing; it must be open."""
    CLOSE = "close"
    LOCK = "lock"
    REOPEN = "reopen"


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

PERIOD_LIFE: Mapping[tuple[PeriodStatus, PeriodEvent], PeriodStatus] = MappingProxyType(
    {
        (PeriodStatus.OPEN, PeriodEvent.CLOSE): PeriodStatus.CLOSED,
        (PeriodStatus.CLOSED, PeriodEvent.LOCK): PeriodStatus.LOCKED,
        (PeriodStatus.CLOSED, PeriodEvent.REOPEN): PeriodStatus.OPEN,
        (PeriodStatus.LOCKED, PeriodEvent.REOPEN): PeriodStatus.OPEN,
        # Repeating an event is allowed and has no effect.
        (PeriodStatus.OPEN, PeriodEvent.OPEN): PeriodStatus.OPEN,
        (PeriodStatus.OPEN, PeriodEvent.REOPEN): PeriodStatus.OPEN,
        (PeriodStatus.CLOSED, PeriodEvent.CLOSE): PeriodStatus.CLOSED,
        (PeriodStatus.LOCKED, PeriodEvent.LOCK): PeriodStatus.LOCKED,
    }
)


def next_project_status(status: ProjectStatus, event: ProjectEvent, *, project: str, version: int) -> ProjectStatus:
    """The status after an event; an event that does not fit is refused."""
    after = PROJECT_LIFE.get((status, event))
    if after is None:
        possible = tuple(known.value for before, known in PROJECT_LIFE if before is status)
        subject = f"project `{project}` version {version}"
        raise Rejected([InvalidTransition(subject=subject, status=status, wanted=event, possible=possible)])
    return after


def next_period_status(status: PeriodStatus, event: PeriodEvent, *, calendar: str, identifier: str) -> PeriodStatus:
    """The status after an event; an event that does not fit is refused."""
    after = PERIOD_LIFE.get((status, event))
    if after is None:
        subject = f"period `{identifier}` of calendar `{calendar}`"
        possible = tuple(
            known.value for (before, known), to in PERIOD_LIFE.items() if before is status and to is not before
        )
        raise Rejected([InvalidTransition(subject=subject, status=status, wanted=event, possible=possible)])
    return after
