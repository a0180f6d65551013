"""The states of a run and their transition table."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from dobonomodo.problems import Rejected
from dobonomodo.problems.store import InvalidTransition


class RunStatus(StrEnum):
    """The state of a run."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RunEvent(StrEnum):
    """What can happen to a run."""

    ADVANCE = "advance"
    COMPLETE = "complete"
    FAIL = "fail"
    CANCEL = "cancel"
    RESUME = "resume"


RUN_LIFE: Mapping[tuple[RunStatus, RunEvent], RunStatus] = MappingProxyType(
    {
        (RunStatus.RUNNING, RunEvent.ADVANCE): RunStatus.RUNNING,
        (RunStatus.RUNNING, RunEvent.COMPLETE): RunStatus.COMPLETED,
        (RunStatus.RUNNING, RunEvent.FAIL): RunStatus.FAILED,
        (RunStatus.RUNNING, RunEvent.CANCEL): RunStatus.CANCELLED,
        # A run that was killed is still `running`, and its lease has expired.
        (RunStatus.RUNNING, RunEvent.RESUME): RunStatus.RUNNING,
        (RunStatus.FAILED, RunEvent.RESUME): RunStatus.RUNNING,
        # The next run carries out what a failed one was publishing.
        (RunStatus.FAILED, RunEvent.ADVANCE): RunStatus.FAILED,
        (RunStatus.FAILED, RunEvent.COMPLETE): RunStatus.COMPLETED,
        (RunStatus.FAILED, RunEvent.CANCEL): RunStatus.CANCELLED,
    }
)


def next_run_status(status: str, event: RunEvent, *, run: str) -> RunStatus:
    """The status after an event; an event that is invalid in the current status is refused."""
    before = RunStatus(status)
    after = RUN_LIFE.get((before, event))
    if after is None:
        possible = tuple(known.value for start, known in RUN_LIFE if start is before and known is not RunEvent.ADVANCE)
        raise Rejected([InvalidTransition(subject=f"run `{run}`", status=before, wanted=event, possible=possible)])
    return after
