"""Whether a run can be resumed: a pure decision over records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dobonomodo.store import Run


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
