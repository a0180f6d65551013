"""What may be removed of a run, by its record, its lease and the runs after it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from dobonomodo.runs.leftovers import are_all_recorded, find_alive, is_over
from dobonomodo.store import Lease, Run

AT = datetime(2026, 2, 3, 8, tzinfo=UTC)
RUN = Run(
    id="r1",
    project="sales",
    version=1,
    period="2026-01",
    status="failed",
    by="ann",
    created_at=AT,
    updated_at=AT,
    snapshot={"inputs": {}},
    progress={},
    fence=3,
)
LEASE = Lease(project="sales", period="2026-01", token="t", holder="ann", fence=3, renewals=0, taken_at=AT)


@pytest.mark.parametrize(
    ("status", "over"), [("running", False), ("failed", False), ("cancelled", True), ("completed", True)]
)
def test_a_run_that_nobody_is_at(status: str, over: bool) -> None:
    assert is_over(replace(RUN, status=status), others=(), alive=()) is over


@pytest.mark.parametrize("status", ["running", "failed", "cancelled", "completed"])
def test_nothing_of_a_run_that_is_at_work(status: str) -> None:
    """One that was cancelled may not have noticed, and one that completed may still be clearing up."""
    assert not is_over(replace(RUN, status=status), others=(), alive=[LEASE])


@pytest.mark.parametrize(
    "lease", [replace(LEASE, fence=4), replace(LEASE, period="2026-02"), replace(LEASE, project="costs")]
)
def test_the_lease_of_another_run_does_not_protect(lease: Lease) -> None:
    assert is_over(replace(RUN, status="cancelled"), others=(), alive=[lease])


def test_without_a_recorded_number_any_lease_of_the_period_protects() -> None:
    assert not is_over(replace(RUN, status="cancelled", fence=None), others=(), alive=[LEASE])


def test_a_run_that_found_no_inputs_cannot_be_resumed() -> None:
    assert is_over(replace(RUN, snapshot={"inputs": None}), others=(), alive=())


@pytest.mark.parametrize(
    ("later", "over"),
    [
        ({"status": "completed", "fence": 4}, True),
        ({"status": "completed", "fence": 2}, False),
        ({"status": "failed", "fence": 4}, False),
        ({"status": "running", "fence": 4}, False),
        ({"status": "cancelled", "fence": 4}, False),
    ],
)
def test_a_failed_run_stays_resumable_until_a_later_one_completed(later: dict[str, object], over: bool) -> None:
    other = replace(RUN, id="r2", **later)  # type: ignore[arg-type]
    assert is_over(RUN, others=[other, RUN], alive=()) is over


def test_a_holder_that_is_not_known_to_be_dead_is_alive() -> None:
    dead = replace(LEASE, token="dead", period="2026-02")
    assert find_alive([LEASE, dead], is_dead=lambda token: token == "dead") == (LEASE,)


def test_a_lease_without_a_record_is_of_a_run_that_starts() -> None:
    assert are_all_recorded([LEASE], lambda project, period: [RUN])
    assert not are_all_recorded([LEASE], lambda project, period: [replace(RUN, fence=2)])
    assert are_all_recorded([], lambda project, period: [])
