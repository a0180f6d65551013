"""How long a run waits for executors, and what it says of it."""

from __future__ import annotations

from dobonomodo.engine.executors import Patience, Tasks

WAITING = Tasks(running=0, left=3)
WORKING = Tasks(running=1, left=3)


def test_nobody_waits_while_a_task_runs_or_none_is_left() -> None:
    assert WAITING.wait
    assert not WORKING.wait
    assert not Tasks().wait


def test_waiting_is_said_every_ten_seconds_and_ends_at_the_limit() -> None:
    said: list[tuple[float, str]] = []
    now = 100.0
    patience = Patience(limit=45, say=lambda text: said.append((now, text)))
    over = []
    for now in range(100, 150):
        patience.observe(WAITING, at=now)
        over.append(patience.over)
    assert said == [(100 + each, f"waiting for executors ({each} s)") for each in (10, 20, 30, 40)]
    assert over.index(True) == 45


def test_an_executor_that_comes_ends_the_wait() -> None:
    said: list[str] = []
    patience = Patience(limit=20, say=said.append)
    for at in (0, 15):
        patience.observe(WAITING, at=at)
    patience.observe(WORKING, at=19)
    for at in (21, 30):
        patience.observe(WAITING, at=at)
    assert not patience.over
    assert said == ["waiting for executors (15 s)", "computing"]
    patience.observe(WAITING, at=41)
    assert patience.over


def test_a_short_wait_is_not_worth_a_word() -> None:
    said: list[str] = []
    patience = Patience(say=said.append)
    for at, tasks in enumerate((WAITING, WAITING, WORKING, Tasks())):
        patience.observe(tasks, at=at)
    assert (said, patience.over) == ([], False)
