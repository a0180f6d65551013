"""One suite a port, over everything that implements it."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pytest

from tests.contract.work import Place, keep_barrier, meet
from tests.postgresql import Server, postgresql_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from dobonomodo.store import Store

__all__ = ["postgresql_server"]

T = TypeVar("T")

CROWD = 8


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "postgresql: needs a PostgreSQL server, which the test set-up starts")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An address at which there is no store yet."""
    if request.param == "sqlite":
        return Place("sqlite", "sqlite:///.dobo/store.db", tmp_path)
    server: Server = request.getfixturevalue("postgresql_server")
    return Place("postgresql", server.create_database(), tmp_path)


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
            return [task.result(timeout=120) for task in tasks]

        yield work_at_once
