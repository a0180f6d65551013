"""Whether a run can be resumed: a pure decision over records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dobonomodo.plan.check import CheckResult
from dobonomodo.problems import Rejected
from dobonomodo.problems.run import ResumeRefused
from dobonomodo.runs.state import RunEvent, next_run_status

if TYPE_CHECKING:
    from dobonomodo.store import Run


def require_resumable(run: Run, others: Iterable[Run] = ()) -> None:
    """Raise if a run cannot be resumed: it has ended, it never pinned its inputs, or a later run has written outputs."""
    next_run_status(run.status, RunEvent.RESUME, run=run.id)
    reason = None
    if run.snapshot.get("inputs") is None:
        reason = "it could not read its inputs, so there is nothing to resume"
    elif (failed := find_stopping(run)) is not None:
        reason = (
            f"check `{failed}` would fail again on the same inputs; correct the data or the project, then run again"
        )
    elif (successor := find_successor(run, others)) is not None:
        reason = f"run `{successor.id}` is newer and published outputs"
    if reason is not None:
        raise Rejected([ResumeRefused(run=run.id, reason=reason)])


def find_stopping(run: Run) -> str | None:
    """A check that stopped the run; its inputs are pinned, so it would do so again."""
    checks = (CheckResult.load(each) for each in run.progress.get("checks", ()))
    return next((each.name for each in checks if each.stops), None)


def find_successor(run: Run, others: Iterable[Run]) -> Run | None:
    """A later run of the same project and period that wrote outputs, so that resuming would publish over it."""
    return next((other for other in others if came_after(other, run) and other.progress.get("outputs")), None)


def came_after(other: Run, run: Run) -> bool:
    """Whether another run of the same project and period is later: its fencing number is higher.

    Clocks of hosts differ, so times decide only between runs of versions that recorded no numbers; those came before all others.
    """
    if other.fence is None or run.fence is None:
        return (other.fence is not None, other.created_at) > (run.fence is not None, run.created_at)
    return other.fence > run.fence
