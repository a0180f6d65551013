"""The states of a run: every pair of status and event is decided, and what does not fit is refused with what would."""

from __future__ import annotations

from itertools import product

import pytest

from dobonomodo.problems.store import InvalidTransition
from dobonomodo.runs.state import RUN_LIFE, RunEvent, RunStatus, next_run_status
from tests.world import refusal

PAIRS = list(product(RunStatus, RunEvent))


@pytest.mark.parametrize(("status", "event"), PAIRS)
def test_every_event_leads_on_or_is_refused(status: RunStatus, event: RunEvent) -> None:
    if (status, event) in RUN_LIFE:
        assert next_run_status(status.value, event, run="r1") is RUN_LIFE[status, event]
        return
    (problem,) = refusal(next_run_status, status.value, event, run="r1")
    assert isinstance(problem, InvalidTransition)
    assert (problem.subject, problem.status, problem.wanted) == ("run `r1`", status, event)
    allowed = {known.value for start, known in RUN_LIFE if start is status}
    assert set(problem.possible) == allowed - {"advance"}


@pytest.mark.parametrize("status", [RunStatus.COMPLETED, RunStatus.CANCELLED])
def test_what_is_over_stays_over(status: RunStatus) -> None:
    assert [event for start, event in RUN_LIFE if start is status] == []


def test_a_killed_or_failed_run_can_be_resumed_and_cancelled() -> None:
    for status in ("running", "failed"):
        assert next_run_status(status, RunEvent.RESUME, run="r") is RunStatus.RUNNING
        assert next_run_status(status, RunEvent.CANCEL, run="r") is RunStatus.CANCELLED


def test_a_run_ends_as_what_happened_to_it() -> None:
    ends = {event: next_run_status("running", event, run="r").value for event in RunEvent}
    assert ends == {
        "advance": "running",
        "complete": "completed",
        "fail": "failed",
        "cancel": "cancelled",
        "resume": "running",
    }
