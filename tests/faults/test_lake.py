"""A run that writes lake tables and is killed anywhere leaves old or new complete tables, and is resumed to what it would have been."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

import pytest

from dobonomodo.failpoint import FAILPOINTS
from tests.faults.lake import ROWS, Lake
from tests.searching import tries

if TYPE_CHECKING:
    from dobonomodo.runs import RunView

pytestmark = pytest.mark.spark

SOME = ["publish.after:3", "publish.during:5"]
"""Three tables of Delta are published first, then Parquet files, then a table of Iceberg."""
OUTPUTS = 5
REACHED = {"output.converting": 1, "input.extracting": 0, "publish.naming": 0}
EVERYWHERE = [
    f"{name}:{number + 1}"
    for name in FAILPOINTS
    for number in range(REACHED.get(name, OUTPUTS if name.startswith(("output.st", "output.re", "publish.")) else 1))
    if name not in ("publish.claimed", "publish.intended", "output.registered", "output.recorded") or number == 0
]
CHOSEN = EVERYWHERE if os.environ.get("DOBO_TEST_ALL") else SOME

_seconds = count()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, connect_url: str) -> Lake:
    made = Lake.make(tmp_path_factory.mktemp("lake"), remote=connect_url)
    done = made.run(_clock())
    assert done.returncode == 0, done.stdout
    return made


def _clock() -> str:
    """A later one each time."""
    return f"2026-02-03T08:{next(_seconds) // 60:02}:{next(_seconds) % 60:02}Z"


def _latest(lake: Lake) -> RunView:
    return lake.open().runs()[0]


@pytest.mark.parametrize("failpoint", CHOSEN)
def test_killed_and_resumed(lake: Lake, failpoint: str) -> None:
    before, same = lake.see(), _latest(lake).outputs["same"].digest
    at = _clock()
    killed = lake.run(at, failpoint=failpoint)
    assert killed.returncode == -9, killed.stdout
    _check(lake, before, at)
    run = _latest(lake)
    # The table that it reads moves on; it reads the version that it has pinned.
    if run.started_at.isoformat()[:19] == at[:19] and run.status != "completed":
        with lake.moved_on():
            done = lake.resume(run.id)
        assert done.returncode == 0, done.stdout
        _check_the_end(lake, at, same)


def _check(lake: Lake, before: dict[str, tuple[int, set[str]]], at: str) -> None:
    """Each destination has all rows of one run."""
    for name, (rows, clocks) in lake.see().items():
        assert rows == before[name][0], name
        assert clocks in (before[name][1], {at[:19].replace("T", " ")}), name


def _check_the_end(lake: Lake, at: str, same: str) -> None:
    """Every destination has all rows of the run, once, and what does not depend on the clock has the same digest."""
    found = lake.see()
    assert {name: rows for name, (rows, _) in found.items()} == dict.fromkeys(
        ("one", "two", "same", "three", "four"), ROWS
    )
    assert all(clocks in (set(), {at[:19].replace("T", " ")}) for _, clocks in found.values())
    run = _latest(lake)
    assert (run.status, run.outputs["same"].digest) == ("completed", same)


@pytest.mark.search
def test_killed_at_random_moments(
    lake: Lake, record_property: Callable[[str, object], None], request: pytest.FixtureRequest
) -> None:
    """0 mixed periods, 0 doubled, 0 lost."""
    chance = random.Random(request.config.getoption("--seed", default=None))
    kills = tries(sample=0, full=100)
    for _ in range(kills):
        before, at = lake.see(), _clock()
        process = lake.start("run", "lake", "-p", "2026-01", "--started-at", at)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=chance.uniform(0.5, 7))
        process.kill()
        process.communicate()
        _check(lake, before, at)
        run = _latest(lake)
        if run.status != "completed":
            done = lake.resume(run.id)
            if done.returncode != 0:
                codes = {each["code"] for each in json.loads(done.stdout)["problems"]}
                assert codes <= {"RESUME_REFUSED"}, codes
                assert lake.run(_clock()).returncode == 0
        _check(lake, before, _latest(lake).started_at.isoformat()[:19] + "Z")
    record_property("kills", kills)
