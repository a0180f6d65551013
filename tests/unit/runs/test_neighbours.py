from __future__ import annotations

from dobonomodo.runs.neighbours import find_neighbours
from dobonomodo.store import Run
from tests.unit.runs.reporting import make_run


def numbers(number: int, *of_period: Run, before: tuple[Run, ...] = (), draft: bool = False) -> list[int | None]:
    run = make_run(number, draft=draft)
    found = find_neighbours(run, [run, *of_period], before)
    return [each.fence if each is not None else None for each in (found.previous, found.next, found.previous_period)]


def test_the_nearest_runs_that_completed() -> None:
    others = [make_run(number) for number in (1, 2, 6, 5)] + [
        make_run(3, status="failed"),
        make_run(7, status="running"),
    ]
    assert numbers(4, *others) == [2, 5, None]
    assert numbers(4) == [None, None, None]


def test_the_latest_run_of_the_period_before() -> None:
    before = (make_run(1), make_run(9), make_run(3), make_run(11, status="cancelled"), make_run(12, draft=True))
    assert numbers(5, before=before) == [None, None, 9]


def test_a_draft_is_compared_with_what_is_published() -> None:
    published, draft, later = make_run(1), make_run(2, draft=True), make_run(4)
    assert numbers(3, published, draft, later, draft=True) == [1, None, None]
    assert numbers(3, draft, later, draft=True) == [2, None, None]
    assert numbers(3, draft, draft=False) == [None, None, None]


def test_runs_without_a_fencing_number_came_before() -> None:
    assert numbers(1, make_run(5, fence=None), make_run(3)) == [None, 3, None]
