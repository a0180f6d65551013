"""A run that writes lake tables and is killed anywhere leaves old or new complete tables, and is resumed to what it would have been."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

import pytest

from dobonomodo.failpoint import FAILPOINTS
from tests.faults.lake import ROWS, Lake, Seen
from tests.searching import tries
from tests.world import PERIOD

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess

    from dobonomodo.runs import RunView
    from tests.object_server import ObjectServer

pytestmark = pytest.mark.spark

SOME = [("lake", "publish.during:5"), ("remote_lake", "publish.after:3")]
"""Tables of Delta are published first, then Parquet files, then a table of Iceberg."""
OUTPUTS = {"lake": 5, "remote_lake": 4}
REACHED = {"output.converting": 1, "input.extracting": 0, "publish.naming": 0}
EVERYWHERE = [
    (place, f"{name}:{number + 1}")
    for place, outputs in OUTPUTS.items()
    for name in FAILPOINTS
    for number in range(REACHED.get(name, outputs if name.startswith(("output.st", "output.re", "publish.")) else 1))
    if name not in ("publish.claimed", "publish.intended", "output.registered", "output.recorded") or number == 0
    if (place, name) != ("remote_lake", "output.registered")
]
CHOSEN = EVERYWHERE if os.environ.get("DOBO_TEST_ALL") else SOME

_seconds = count()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, connect_url: str) -> Lake:
    made = Lake.make(tmp_path_factory.mktemp("lake"), remote=connect_url)
    done = made.run(_clock())
    assert done.returncode == 0, done.stdout
    return made


@pytest.fixture(scope="module")
def remote_lake(tmp_path_factory: pytest.TempPathFactory, connect_url: str, object_server: ObjectServer) -> Lake:
    """Delta, Iceberg and Parquet, all of it in an object store."""
    made = Lake.make(tmp_path_factory.mktemp("lake"), remote=connect_url, server=object_server)
    done = made.run(_clock())
    assert done.returncode == 0, done.stdout
    return made


def _clock() -> str:
    """A later one each time."""
    return f"2026-02-03T08:{next(_seconds) // 60:02}:{next(_seconds) % 60:02}Z"


def _latest(lake: Lake) -> RunView:
    return lake.open().runs()[0]


@pytest.mark.parametrize(("place", "failpoint"), CHOSEN)
def test_killed_and_resumed(place: str, failpoint: str, request: pytest.FixtureRequest) -> None:
    lake: Lake = request.getfixturevalue(place)
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


def _check(lake: Lake, before: Seen, at: str) -> Seen:
    """Each destination has all rows of one run; gives what is there."""
    found = lake.see()
    for name, (rows, clocks) in found.items():
        assert rows == before[name][0], name
        assert clocks in (before[name][1], {at[:19].replace("T", " ")}), name
    return found


def _check_the_end(lake: Lake, at: str, same: str) -> Seen:
    """Every destination has all rows of the run, once, and what does not depend on the clock has the same digest; gives what is there."""
    found = lake.see()
    run = _latest(lake)
    assert {name: rows for name, (rows, _) in found.items()} == dict.fromkeys(run.outputs, ROWS)
    assert {"one", "same", "three", "four"} <= run.outputs.keys()
    assert all(clocks in (set(), {at[:19].replace("T", " ")}) for _, clocks in found.values())
    assert (run.status, run.outputs["same"].digest) == ("completed", same)
    # The same rows, in Delta, Parquet and Iceberg.
    assert len({each.digest for name, each in run.outputs.items() if name != "same"}) == 1
    return found


def _run_at(at: str) -> list[str]:
    return ["run", "lake", "-p", PERIOD, "--started-at", at]


def _finish(lake: Lake, process: ForkServerProcess) -> None:
    """Wait for a command that must succeed."""
    process.join(600)
    assert process.exitcode == 0, lake.said.read_text()


@pytest.mark.search
@pytest.mark.parametrize("place", ["lake", "remote_lake"])
def test_killed_at_random_moments(
    place: str, record_property: Callable[[str, object], None], request: pytest.FixtureRequest
) -> None:
    """0 mixed periods, 0 doubled, 0 lost; what is resumed has the digests of a run that nothing happened to."""
    chance = random.Random(request.config.getoption("--seed", default=None))
    kills = tries(sample=1, full=100)
    lake: Lake = request.getfixturevalue(place)
    same = _latest(lake).outputs["same"].digest
    counts: Counter[str] = Counter()
    longest = 0.0
    # The first one waits until the product is loaded.
    for _ in range(2):
        started = time.monotonic()
        _finish(lake, lake.fork(*_run_at(_clock())))
        longest = time.monotonic() - started
    before = lake.see()
    while counts["kills"] < kills:
        at = _clock()
        process = lake.fork(*_run_at(at))
        process.join(chance.uniform(0.1, 1.05) * longest)
        process.kill()
        process.join()
        assert process.exitcode in (0, -9), lake.said.read_text()
        counts["kills" if process.exitcode else "ended before they were killed"] += 1
        found = _check(lake, before, at)
        run = _latest(lake)
        if run.started_at.isoformat()[:19] != at[:19]:
            counts["killed before there was a record"] += 1
            # The machine may have become busier since: kills must not all come before there is anything to lose.
            longest *= 1.2
            continue
        if run.status == "completed":
            counts["killed when they were completed"] += process.exitcode != 0
            longest /= 1.1
        else:
            counts["resumed"] += 1
            counts["resumed when something was published"] += found != before
            _finish(lake, lake.fork("resume", run.id))
        before = _check_the_end(lake, at, same)
    for name, counted in counts.items():
        record_property(name, counted)
