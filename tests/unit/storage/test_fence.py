"""Fencing numbers: comparable within one store, project and period, and the failure of one that is too low."""

from __future__ import annotations

from dataclasses import replace

from dobonomodo.problems.store import LeaseLost
from dobonomodo.storage.fence import Fence

FENCE = Fence("store", "close", "2026-01", 7)


def test_the_key_is_that_of_store_project_and_period() -> None:
    assert replace(FENCE, number=8).key == FENCE.key
    others = [replace(FENCE, store="other"), replace(FENCE, project="open"), replace(FENCE, period="2026-02")]
    assert len({FENCE.key, *(other.key for other in others)}) == 4


def test_parts_of_the_key_cannot_run_into_each_other() -> None:
    assert Fence("s", "b", "a c", 1).key != Fence("s", "c\nb", "a", 1).key != Fence("s", "a b", "c", 1).key


def test_a_number_that_is_too_low_is_a_lost_lease() -> None:
    lost = FENCE.lost()
    assert lost.problem == LeaseLost(project="close", period="2026-01", fence=7)
