"""One workspace or store, used from several threads at once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier, Event, Thread
from typing import TypeVar

import pytest

from dobonomodo.storage.manifest import HIDDEN
from dobonomodo.storage.pointer import CURRENT, Pointer
from dobonomodo.store import open_store
from dobonomodo.workspace import Workspace

SALES = Path(__file__).parents[1] / "data" / "workspaces" / "sales"
THREADS = 6
T = TypeVar("T")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(SALES, tmp_path / "sales")


def at_once(work: Callable[[], T]) -> list[T]:
    """What each of several threads gets that begin together."""
    barrier = Barrier(THREADS)

    def begin(_: int) -> T:
        barrier.wait()
        return work()

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


def test_threads_share_one_store(folder: Path) -> None:
    workspace = Workspace.open(folder)
    stores = at_once(lambda: workspace.store)
    assert len({id(store) for store in stores}) == 1
    workspace.close()


def test_threads_plan_list_and_apply_as_one_does(folder: Path) -> None:
    workspace = Workspace.open(folder)

    def work() -> tuple[object, ...]:
        workspace.apply()
        planned = workspace.plan("monthly-sales", period="2026-01", started_at="2026-02-03T08:00:00Z")
        listed = workspace.listing("project") + workspace.listing("dataset")
        return [str(step.spec.ref) for step in planned.plan.steps], listed, workspace.problems(), planned.facts

    found = at_once(work)
    assert found == [work()] * THREADS
    assert [version.version for version in workspace.store.list_versions("project", "monthly-sales")] == [1]
    workspace.close()


def test_only_one_thread_closes_a_period(folder: Path) -> None:
    workspace = Workspace.open(folder)
    workspace.apply()
    statuses = at_once(lambda: workspace.change_period("2026-01", "closed").status)
    assert set(statuses) == {"closed"}
    workspace.close()


@pytest.mark.parametrize(
    ("rounds", "name", "files"),
    [(3, "{number}-{thread}.db", 12), (6, "{number}.db", 6)],
    ids=["a store for each", "one store for all"],
)
def test_threads_of_one_process_make_stores_at_once(tmp_path: Path, rounds: int, name: str, files: int) -> None:
    """Alembic knows one migration per process, however many threads migrate."""
    threads = 4
    barrier = Barrier(threads)

    def make(thread: int) -> None:
        for number in range(rounds):
            barrier.wait(timeout=1800)
            url = f"sqlite:///{name.format(number=number, thread=thread)}"
            with closing(open_store(url, root=tmp_path)) as store:
                assert store.list_runs() == ()

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(make, thread) for thread in range(threads)]:
            done.result(timeout=1800)
    assert len(list(tmp_path.iterdir())) == files


def test_readers_find_both_tables_of_one_publication_at_every_moment(tmp_path: Path) -> None:
    tables, period, over = ("one", "two"), "run_period=2026-01", Event()
    seen: set[tuple[str, ...]] = set()

    def publish(number: int) -> None:
        folders = {table: tmp_path / HIDDEN / "data" / f"{table}-{number}" for table in tables}
        for folder in folders.values():
            folder.mkdir(parents=True)
            (folder / "part").write_text(str(number))
        Pointer(tmp_path).publish({tmp_path / table: {period: folder} for table, folder in folders.items()})

    def read() -> None:
        while not over.is_set():
            state = (tmp_path / HIDDEN / CURRENT).resolve()
            seen.add(tuple((state / table / period / "part").read_text() for table in tables))

    publish(0)
    reader = Thread(target=read)
    reader.start()
    for number in range(1, 40):
        publish(number)
    over.set()
    reader.join()
    assert seen
    assert all(first == second for first, second in seen)
