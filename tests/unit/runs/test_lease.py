"""Taking a lease, renewing it, losing it: over a real store, with time that the test makes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dobonomodo.problems import Rejected, RunFailed
from dobonomodo.problems.store import StoreUnavailable
from dobonomodo.runs.lease import Heartbeat, Pace, hold_lease
from dobonomodo.store import Lease, Run, Store
from tests.world import CLOCK, new_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = new_store(tmp_path)
    yield opened
    opened.close()


@dataclass
class Time:
    """Passes while somebody sleeps; what else happens then is up to the test."""

    now: float = 0.0
    slept: list[float] = field(default_factory=list)
    meanwhile: Any = None

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        if self.meanwhile is not None:
            self.meanwhile()

    @property
    def pace(self) -> Pace:
        return Pace(lease=60, heartbeat=5, monotonic=lambda: self.now, sleep=self.sleep, now=lambda: CLOCK)


def hold(store: Store, time: Time, *, wait: bool = False, dead: bool = False, reports: list[str] | None = None) -> Any:
    said: list[str] = [] if reports is None else reports
    return hold_lease(
        store, "p", "2026-01", holder="me", pace=time.pace, wait=wait, report=said.append, dead=lambda _: dead
    )


def take(store: Store) -> Lease:
    taken = store.take_lease("p", "2026-01", token="other", holder="ann", at=CLOCK)
    assert isinstance(taken, Lease)
    return taken


def test_a_free_lease_is_taken_at_once_and_given_back(store: Store) -> None:
    time = Time()
    with hold(store, time) as heart:
        assert heart.lease.fence == 1
        assert heart.is_beating
    assert not heart.is_beating
    assert time.slept == []
    assert take(store).fence == 2


def test_a_lease_is_given_back_after_a_failure(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), hold(store, Time()):
        raise ZeroDivisionError
    assert take(store).fence == 2


def test_a_holder_that_is_not_alive_is_waited_for_as_long_as_a_lease_lasts(store: Store) -> None:
    take(store)
    time, said = Time(), []  # type: tuple[Time, list[str]]
    with hold(store, time, reports=said) as heart:
        assert heart.lease.fence == 2
    # Five times per heartbeat of 5 seconds.
    assert time.slept == [1] * 60
    assert len(said) == 1


def test_a_holder_that_renews_is_alive(store: Store) -> None:
    time = Time()
    held = take(store)

    def renew() -> None:
        nonlocal held
        if time.now >= 4:
            held = store.renew_lease(held)

    time.meanwhile = renew
    with pytest.raises(Rejected) as refused, hold(store, time):
        raise AssertionError("held by another")
    (problem,) = refused.value.problems
    assert (problem.code, getattr(problem, "holder", None)) == ("RUN_HELD", "ann")
    assert time.now <= 5
    store.check_lease(held)


def test_who_waits_gets_the_lease_when_it_is_given_back(store: Store) -> None:
    time = Time()
    held = take(store)

    def renew() -> None:
        nonlocal held
        if time.now < 20:
            held = store.renew_lease(held)
        elif time.now < 22:
            store.release_lease(held)

    time.meanwhile = renew
    with hold(store, time, wait=True) as heart:
        assert heart.lease.fence == 2
    assert 20 <= time.now <= 22


def test_the_time_counts_from_the_last_renewal(store: Store) -> None:
    time = Time()
    held = take(store)

    def renew() -> None:
        nonlocal held
        if time.now < 10:
            held = store.renew_lease(held)

    time.meanwhile = renew
    with hold(store, time, wait=True) as heart:
        assert heart.lease.fence == 2
    assert 69 <= time.now <= 71


def test_a_dead_process_is_not_waited_for(store: Store) -> None:
    take(store)
    time = Time()
    with hold(store, time, dead=True) as heart:
        assert heart.lease.fence == 2
    assert time.slept == []


def test_two_runs_of_one_process_are_two(store: Store) -> None:
    time = Time()
    with hold(store, time) as first:

        def renew() -> None:
            first.beat()

        time.meanwhile = renew
        with pytest.raises(Rejected), hold(store, time, dead=False):
            raise AssertionError("held by the first")
        first.check()


class Engine:
    interrupted = 0

    def interrupt(self) -> None:
        self.interrupted += 1


def heart_of(store: Store, lease: Lease, run_id: str | None = None) -> Heartbeat:
    heart = Heartbeat(store, lease, pace=Time().pace)
    heart.run_id, heart.engine = run_id, Engine()
    return heart


def test_a_beat_renews(store: Store) -> None:
    heart = heart_of(store, take(store))
    heart.beat()
    heart.beat()
    heart.check()
    assert (heart.lease.fence, heart.lease.renewals) == (1, 2)
    assert heart.engine is not None
    assert heart.engine.interrupted == 0  # type: ignore[attr-defined]


def test_a_lost_lease_stops_the_engine(store: Store) -> None:
    lease = take(store)
    heart = heart_of(store, lease)
    store.take_over(lease, token="new", holder="bob", at=CLOCK)
    heart.beat()
    with pytest.raises(RunFailed) as failed:
        heart.check()
    assert failed.value.problem.code == "LEASE_LOST"
    assert heart.engine.interrupted == 1  # type: ignore[union-attr]


def test_a_cancelled_run_stops_the_engine(store: Store) -> None:
    lease = take(store)
    run = Run(
        id="r1",
        project="p",
        version=1,
        period="2026-01",
        status="cancelled",
        by="ann",
        created_at=CLOCK,
        updated_at=CLOCK,
        snapshot={},
        progress={},
    )
    store.put_run(run)
    heart = heart_of(store, lease, "r1")
    heart.beat()
    with pytest.raises(RunFailed) as failed:
        heart.check()
    assert failed.value.problem.code == "RUN_CANCELLED"
    assert heart.engine.interrupted == 1  # type: ignore[union-attr]


class Unreachable:
    """A store that cannot be reached for a moment."""

    def __init__(self, store: Store, times: int) -> None:
        self._store, self._times = store, times

    def renew_lease(self, lease: Lease) -> Lease:
        if self._times:
            self._times -= 1
            raise RunFailed(StoreUnavailable(store="x", reason="no route", is_transient=True))
        return self._store.renew_lease(lease)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_a_store_that_cannot_be_reached_for_a_moment_stops_nothing(store: Store) -> None:
    heart = heart_of(Unreachable(store, 2), take(store))
    for _ in range(3):
        heart.beat()
        heart.check()
    assert heart.lease.renewals == 1


def test_the_thread_beats_until_it_is_ended(store: Store) -> None:
    beaten = threading.Event()

    class Counted:
        def renew_lease(self, lease: Lease) -> Lease:
            renewed = store.renew_lease(lease)
            if renewed.renewals >= 3:
                beaten.set()
            return renewed

        def get_run(self, run_id: str) -> None:
            raise AssertionError("there is no run yet")

    heart = Heartbeat(Counted(), take(store), pace=Pace(heartbeat=0.001))  # type: ignore[arg-type]
    heart.start()
    assert beaten.wait(1800)
    heart.end()
    assert heart.lease.renewals >= 3
    store.check_lease(heart.lease)
