"""Whether a run can be resumed: it found its inputs, no check stopped it, and no later run wrote outputs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from dobonomodo.plan.check import CheckResult
from dobonomodo.problems.run import ResumeRefused
from dobonomodo.runs.resume import came_after, find_stopping, find_successor, require_resumable
from tests.unit.runs.reporting import make_run
from tests.world import CLOCK, refusal

WROTE = {"outputs": [{"seq": 90}]}


def failed(number: int, **changes: Any) -> Any:
    return make_run(number, **{"status": "failed", **changes})


def check(status: Any, severity: Any = "stop") -> dict[str, Any]:
    return CheckResult(10, "totals", "SUM(a) > 0", severity, status, "rows", 3, 1).document()


def test_a_failed_run_with_inputs_is_resumed() -> None:
    require_resumable(failed(1))
    require_resumable(failed(2), [failed(2, progress=WROTE), failed(1, progress=WROTE), failed(3)])


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_a_run_that_is_over_is_not(status: str) -> None:
    (problem,) = refusal(require_resumable, make_run(1, status=status))
    assert problem.code == "INVALID_TRANSITION"


def test_a_run_without_inputs_is_not() -> None:
    run = failed(1)
    (problem,) = refusal(require_resumable, failed(1, snapshot={**run.snapshot, "inputs": None}))
    assert isinstance(problem, ResumeRefused)
    assert problem.run == run.id


@pytest.mark.parametrize(
    ("status", "severity", "stops"), [("failed", "stop", True), ("failed", "warn", False), ("passed", "stop", False)]
)
def test_a_run_that_a_check_stopped_is_not(status: str, severity: str, stops: bool) -> None:
    run = failed(1, progress={"checks": [check("passed"), check(status, severity)]})
    assert find_stopping(run) == ("totals" if stops else None)
    if stops:
        (problem,) = refusal(require_resumable, run)
        assert "`totals`" in problem.message()
    else:
        require_resumable(run)


def test_a_run_whose_successor_wrote_is_not() -> None:
    run, later = failed(1), make_run(2, progress=WROTE)
    assert find_successor(run, [make_run(3), later]) is later
    (problem,) = refusal(require_resumable, run, [later])
    assert later.id in problem.message()


def test_numbers_decide_which_run_is_later_and_times_only_without_them() -> None:
    first, second = make_run(1, created_at=CLOCK + timedelta(days=9)), make_run(2, created_at=CLOCK)
    assert came_after(second, first)
    assert not came_after(first, second)
    assert not came_after(first, first)
    old, older = (
        make_run(1, fence=None, created_at=CLOCK),
        make_run(2, fence=None, created_at=CLOCK - timedelta(days=1)),
    )
    assert came_after(old, older)
    assert not came_after(older, old)
    # Versions that recorded no numbers came before all others, whatever the clocks say.
    assert came_after(second, make_run(9, fence=None, created_at=CLOCK + timedelta(days=99)))
    assert not came_after(make_run(9, fence=None, created_at=CLOCK + timedelta(days=99)), second)
