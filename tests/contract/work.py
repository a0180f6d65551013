"""What the processes of the contract suite do: plain functions that a new interpreter can import."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from sqlalchemy import Engine, event

from dobonomodo.problems import Rejected, RunFailed
from dobonomodo.store import Definition, Held, Lease, Pin, Store, open_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.synchronize import Barrier
    from pathlib import Path

AT = datetime(2026, 2, 3, 8, tzinfo=UTC)

T = TypeVar("T")

_barrier: Barrier | None = None


@dataclass(frozen=True)
class Place:
    """The address of a store, for a test and for its processes."""

    kind: str
    url: str
    root: Path

    def open(self) -> Store:
        return open_store(self.url, root=self.root)


def define(definition_id: str, content: object = 1, *, kind: str = "dataset", **more: Any) -> Definition:
    """A definition whose fingerprint is its content."""
    document = {"id": definition_id, "content": content, "name": more.pop("name", "Orders")}
    return Definition(kind=kind, id=definition_id, fingerprint=f"sha256:{content}", document=document, **more)


def keep_barrier(barrier: Barrier) -> None:
    """Once in each process."""
    global _barrier
    _barrier = barrier


def meet(work: Callable[[], T]) -> T:
    """Begin when all processes are there."""
    assert _barrier is not None
    _barrier.wait(timeout=1800)
    return work()


def open_and_apply(place: Place, number: int) -> str:
    with closing(place.open()) as store:
        (change,) = store.apply([define("orders")], at=AT, by=f"process {number}")
        return change.action


def apply_contents(place: Place, number: int, *, rounds: int) -> list[int]:
    """Apply different content in each round; the versions it got."""
    with closing(place.open()) as store:
        return [
            store.apply([define("orders", f"{number}/{turn}")], at=AT, by=f"process {number}")[0].version
            for turn in range(rounds)
        ]


def apply_own(place: Place, number: int, *, rounds: int) -> None:
    """Apply a definition of one's own beside a shared one that never changes."""
    with closing(place.open()) as store:
        for turn in range(rounds):
            store.apply([define(f"own-{number}", turn), define("shared", "same")], at=AT, by=f"process {number}")


def activate(place: Place, number: int) -> None:
    with closing(place.open()) as store:
        chosen = store.get_version("project", "sales", version=number + 1)
        assert chosen is not None
        store.activate(
            "sales", chosen.version, fingerprint=chosen.fingerprint, pin=Pin("orders", 1), at=AT, by=f"process {number}"
        )


def register(place: Place, number: int) -> int:
    with closing(place.open()) as store:
        location = {"path": f"out/{number}"}
        return store.register(define("out"), location=location, origin=f"run-{number}/5", at=AT, by="me").version


def start_run(place: Place, number: int) -> str:
    """The status that a run has then, or the code of what was in the way."""
    with closing(place.open()) as store:
        try:
            run = store.change_run_status(
                "run-1", before="pending", after="running", at=AT, by="me", progress={"by": number}
            )
        except Rejected as refusal:
            return refusal.problems[0].code
        return run.status


def take_once(place: Place, number: int) -> Lease | Held:
    with closing(place.open()) as store:
        return store.take_lease("p", "2026-01", token=f"run-{number}", holder="ann", at=AT)


def take_and_release(place: Place, number: int, *, times: int) -> list[int]:
    """The fence numbers of as many leases, waiting for the others in between."""
    fences: list[int] = []
    with closing(place.open()) as store:
        while len(fences) < times:
            taken = store.take_lease("p", "2026-01", token=f"run-{number}", holder="ann", at=AT)
            if isinstance(taken, Lease):
                store.check_lease(taken)
                store.release_lease(taken)
                fences.append(taken.fence)
    return fences


def apply_and_die(place: Place, moment: str) -> None:
    """Killed in the middle of an apply that creates, changes and touches, or right behind it."""

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def die_after_insert(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("INSERT"):
            die()

    with closing(place.open()) as store:
        if moment == "after the first insert":
            event.listen(Engine, "after_cursor_execute", die_after_insert)
        elif moment == "before the commit":
            event.listen(Engine, "commit", die)
        store.apply(
            [define("new"), define("changed", 2), define("touched", name="Other"), define("new-too")], at=AT, by="me"
        )
        die()


def use_read_only_store(root: Path) -> list[Any]:
    """What comes of reading a store that this user may not write, of writing it, and of making one in a closed folder."""
    file = root / "closed" / "store.db"
    with pytest.raises(PermissionError):
        file.open("ab")
    with closing(open_store(f"sqlite:///{file}", root=root)) as store:
        read = store.list_runs()
        written = fault_of(lambda: store.apply([define("orders")], at=AT, by="ann"))
    return [read, written, fault_of(lambda: open_store("sqlite:///closed/new/store.db", root=root))]


def fault_of(call: Callable[[], object]) -> tuple[str, bool, str | None]:
    """The code of a failure, whether trying again helps, and the hint."""
    with pytest.raises(RunFailed) as failure:
        call()
    return failure.value.problem.code, failure.value.retry_helps, failure.value.problem.hint()
