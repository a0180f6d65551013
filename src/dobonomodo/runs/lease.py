"""Acquires and renews a lease: a run's exclusive claim on its project and period, and detects its loss.

Clocks of different hosts are never compared. A waiting process observes renewals by its own clock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from dobonomodo.problems import Rejected, RunFailed
from dobonomodo.problems.run import RunCancelled, RunHeld
from dobonomodo.problems.store import LeaseLost
from dobonomodo.runs.holder import is_dead, new_token
from dobonomodo.runs.state import RunStatus

if TYPE_CHECKING:
    from dobonomodo.store import Lease, Store


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a lease lasts, how often it is renewed, and the time itself."""

    lease: float = 60.0
    """Seconds without a renewal after which others may take a lease."""
    heartbeat: float = 5.0
    """Seconds between renewals, which is also how soon a run notices that it was cancelled."""
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    @classmethod
    def of(cls, seconds: float) -> Pace:
        """The pace of a lease of other length."""
        return cls(lease=seconds, heartbeat=seconds / 12)


class Interruptible(Protocol):
    """The engine of a run, as far as it can be interrupted."""

    def interrupt(self) -> None:
        """Stop computing."""
        ...


@contextmanager
def hold_lease(
    store: Store,
    project: str,
    period: str,
    *,
    holder: str,
    pace: Pace,
    wait: bool,
    report: Callable[[str], None],
    dead: Callable[[str], bool] = is_dead,
) -> Iterator[Heartbeat]:
    """Hold a lease while the block runs. Raises ``Rejected`` if another live run holds it, unless told to wait."""
    lease = _take(store, project, period, holder=holder, pace=pace, wait=wait, report=report, dead=dead)
    heart = Heartbeat(store, lease, pace=pace)
    heart.start()
    try:
        yield heart
    finally:
        heart.end()
        # If the store stays busy, the lease is taken over from a process that has ended; why the run ends matters more.
        with suppress(RunFailed):
            store.release_lease(heart.lease)


def _take(
    store: Store,
    project: str,
    period: str,
    *,
    holder: str,
    pace: Pace,
    wait: bool,
    report: Callable[[str], None],
    dead: Callable[[str], bool],
) -> Lease:
    from dobonomodo.store import Held

    token = new_token()
    watched: Lease | None = None
    since = pace.monotonic()
    while True:
        taken = store.take_lease(project, period, token=token, holder=holder, at=pace.now())
        if isinstance(taken, Held) and (
            dead(taken.lease.token) or (taken.lease == watched and pace.monotonic() - since >= pace.lease)
        ):
            taken = store.take_over(taken.lease, token=token, holder=holder, at=pace.now())
        if not isinstance(taken, Held):
            return taken
        found = taken.lease
        if found != watched:
            # The first time, nobody knows whether the holder is alive; if it was renewed meanwhile, it is.
            if watched is not None and not wait:
                started = found.taken_at.strftime("%Y-%m-%d %H:%M:%S UTC")
                raise Rejected([RunHeld(project=project, period=period, holder=found.holder, since=started)])
            watched, since = found, pace.monotonic()
            report(f"waiting for {found.holder}" if wait else f"checking whether {found.holder} is still running")
        pace.sleep(pace.heartbeat / 5)


class Heartbeat:
    """Renews the lease while a run works, and detects a lost lease or a cancelled run."""

    def __init__(self, store: Store, lease: Lease, *, pace: Pace) -> None:
        self._store, self._pace = store, pace
        self.lease = lease
        self.run_id: str | None = None
        self.engine: Interruptible | None = None
        self._stopped: RunFailed | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="dobo-heartbeat", daemon=True)

    def start(self) -> None:
        """Renew from now on, in a thread."""
        self._thread.start()

    def end(self) -> None:
        """Stop renewing."""
        self._over.set()
        self._thread.join(timeout=10)

    @property
    def is_beating(self) -> bool:
        """Whether the lease is being renewed."""
        return self._thread.is_alive()

    def check(self) -> None:
        """Raise if the run may not go on: its lease is lost, or it was cancelled."""
        if self._stopped is not None:
            raise self._stopped

    def beat(self) -> None:
        """Renew once. A store that is briefly unreachable does not stop the run; a lost lease does."""
        try:
            self.lease = self._store.renew_lease(self.lease)
            found = self._store.get_run(self.run_id) if self.run_id is not None else None
        except RunFailed as fault:
            if not isinstance(fault.problem, LeaseLost):
                return
            self._stopped = fault
        else:
            if found is None or found.status != RunStatus.CANCELLED:
                return
            self._stopped = RunFailed(RunCancelled(run=found.id))
        if self.engine is not None:
            self.engine.interrupt()

    def _work(self) -> None:
        while self._stopped is None and not self._over.wait(self._pace.heartbeat):
            self.beat()
