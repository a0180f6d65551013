"""Which leftovers of runs may be removed: pure decisions over records and leases.

Nothing of a run that is alive is ever removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from dobonomodo.runs.resume import came_after
from dobonomodo.runs.state import RunStatus

if TYPE_CHECKING:
    from dobonomodo.store import Lease, Run


def is_over(run: Run, *, others: Iterable[Run], alive: Sequence[Lease]) -> bool:
    """Whether the extracted and staged files of a recorded run are obsolete: it is not running and cannot be resumed.

    ``others`` are the runs of the same project and period.
    """
    return not is_at_work(run, alive) and not _is_resumable(run, others)


def is_at_work(run: Run, alive: Sequence[Lease]) -> bool:
    """Whether the latest attempt at a run holds its lease."""
    return any(
        (lease.project, lease.period) == (run.project, run.period) and run.fence in (None, lease.fence)
        for lease in alive
    )


def find_alive(leases: Iterable[Lease], *, is_dead: Callable[[str], bool]) -> tuple[Lease, ...]:
    """The leases whose holder may be alive; for a holder on another machine this is unknown."""
    return tuple(lease for lease in leases if not is_dead(lease.token))


def are_all_recorded(alive: Iterable[Lease], runs: Callable[[str, str], Iterable[Run]]) -> bool:
    """Whether every lease belongs to a recorded run; one that does not is of a run that is about to start."""
    return all(any(run.fence == lease.fence for run in runs(lease.project, lease.period)) for lease in alive)


def _is_resumable(run: Run, others: Iterable[Run]) -> bool:
    """A run that failed or was killed, that found its inputs, and that no completed run has followed."""
    if run.status not in (RunStatus.FAILED, RunStatus.RUNNING) or run.snapshot.get("inputs") is None:
        return False
    return not any(other.status == RunStatus.COMPLETED and came_after(other, run) for other in others)
