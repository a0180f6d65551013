from __future__ import annotations

import pytest

from dobonomodo.problems import RunFailed
from dobonomodo.problems.run import OutputWrite
from dobonomodo.storage.tries import look_again


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited, if chance takes the longest each time."""
    waited: list[float] = []
    monkeypatch.setattr("dobonomodo.storage.tries.time.sleep", waited.append)
    monkeypatch.setattr("dobonomodo.storage.tries.random.uniform", lambda _, longest: longest)
    return waited


def test_the_table_is_looked_at_before_each_try(pauses: list[float]) -> None:
    states = iter(["old", None, "theirs", "ours"])
    seen = []
    for table in look_again(lambda: next(states), name="orders", tries=9, pause=1):
        seen.append(table)
        if table == "ours":
            break
    assert seen == ["old", "theirs", "ours"]
    assert pauses == [0, 1, 2]


def test_the_tries_come_to_an_end(pauses: list[float]) -> None:
    seen: list[str] = []
    with pytest.raises(RunFailed) as failed:
        seen.extend(look_again(lambda: "theirs", name="orders", tries=30, pause=1))
    assert isinstance(failed.value.problem, OutputWrite)
    assert (failed.value.problem.destination, failed.value.problem.is_transient) == ("orders", True)
    assert len(seen) == len(pauses) == 30
    assert max(pauses) == pauses[-1] == 20
