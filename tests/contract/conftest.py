"""One suite a port, over everything that implements it."""

from __future__ import annotations

import multiprocessing
import shutil
import subprocess
import tempfile
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pytest

from tests.contract.work import Place, keep_barrier, meet
from tests.postgresql import Server, postgresql_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dobonomodo.store import Store

__all__ = ["postgresql_server"]

T = TypeVar("T")

CROWD = 8


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An address at which there is no store yet."""
    if request.param == "sqlite":
        yield Place("sqlite", "sqlite:///.dobo/store.db", tmp_path)
        return
    server: Server = request.getfixturevalue("postgresql_server")
    with server.fresh_database() as url:
        yield Place("postgresql", url, tmp_path)


@pytest.fixture
def store(place: Place) -> Iterator[Store]:
    with closing(place.open()) as store:
        yield store


class Crowd(Protocol):
    """Eight processes that do the same thing at the same time, each with its number."""

    def __call__(self, work: Callable[..., T], place: Place, /, **more: Any) -> list[T]: ...


@pytest.fixture(scope="session")
def crowd() -> Iterator[Crowd]:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(CROWD)
    with ProcessPoolExecutor(CROWD, mp_context=context, initializer=keep_barrier, initargs=(barrier,)) as pool:

        def work_at_once(work: Callable[..., T], place: Place, /, **more: Any) -> list[T]:
            tasks = [pool.submit(meet, partial(work, place, number, **more)) for number in range(CROWD)]
            return [task.result(timeout=1800) for task in tasks]

        yield work_at_once


@pytest.fixture
def open_root() -> Iterator[Path]:
    """A folder that everybody may enter and fill."""
    root = Path(tempfile.mkdtemp(prefix="dobo-open-"))
    root.chmod(0o777)
    yield root
    subprocess.run(["chmod", "-R", "u+rwX", str(root)], check=True)
    shutil.rmtree(root)
