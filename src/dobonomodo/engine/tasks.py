"""Runs Python functions on executors: one task per item, results are collected as rows. Outputs are never computed this way.

Arguments are pickled with the task code, which no plan, log or event of Spark shows: they may contain secrets.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dobonomodo.engine.faults import one_line, text_of
from dobonomodo.engine.labels import Labels, labelled
from dobonomodo.problems import RunFailed
from dobonomodo.storage.executors import Limits
from dobonomodo.storage.faults import is_of_spark

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from dobonomodo.engine.engine import SparkEngine

T = TypeVar("T")
R = TypeVar("R")

TASKS_AT_MOST = 1_000
"""Of one job. What is to be done goes to each of them."""
_SCHEMA = "number BIGINT, lacks STRING, result BINARY"


@dataclass(slots=True)
class SparkExecutors:
    """The executors of an engine, which is opened for the first task."""

    open_engine: Callable[[], SparkEngine]
    folder: Path
    """The folder of the run, which executors must share with the driver."""
    limits: Limits = field(default_factory=Limits)
    say: Callable[[str], None] = lambda text: None
    _engine: SparkEngine | None = field(default=None, init=False)
    _are_able: bool = field(default=True, init=False)

    def do(self, work: Callable[[T], R], things: Sequence[T]) -> list[R] | None:
        """The results in the order of the items; None if the driver has to do the work."""
        if not things:
            return []
        if not self._are_able:
            return None
        lacks, results = self._attempt(work, things)
        if lacks is None:
            return [_unpack(result) for result in results]
        self._are_able = False
        self.say(f"the executors cannot read or write for us, this machine does it: {lacks}")
        return None

    def _attempt(self, work: Callable[[T], R], things: Sequence[T]) -> tuple[str | None, list[bytes]]:
        """What is missing on the executors, or the results."""
        engine = self._open()
        count = min(len(things), TASKS_AT_MOST)
        chunks = [things[number::count] for number in range(count)]
        perform = _make_task(pickle.dumps((partial(_perform, work), chunks)), _versions())
        labels = Labels((f"dobo-run={self.folder.name}",), f"dobo {self.folder.name}, {len(things)} files or parts")
        try:
            with engine.attended(), labelled(engine.spark, labels):
                rows = engine.spark.range(0, count, 1, count).mapInArrow(perform, _SCHEMA).collect()
        except Exception as fault:
            if not is_of_spark(fault):
                raise
            return one_line(text_of(fault)), []
        if lacks := next((row.lacks for row in rows if row.lacks is not None), None):
            return lacks, []
        results = {row.number: pickle.loads(row.result) for row in rows}
        return None, [results[at % count][at // count] for at in range(len(things))]

    def _open(self) -> SparkEngine:
        if self._engine is None:
            self._engine = self.open_engine()
            self.folder.mkdir(parents=True, exist_ok=True)
            self._engine.require_reach(self.folder)
        return self._engine


def _versions() -> dict[str, str]:
    """The same code writes the same files."""
    return {name: import_module(name).__version__ for name in ("dobonomodo", "pyarrow")}


def _make_task(payload: bytes, versions: dict[str, str]) -> Callable[[Iterable[RecordBatch]], Iterator[RecordBatch]]:
    """The function of a task. It is pickled by value, and checks itself whether it can run on its executor."""

    def perform(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        import importlib
        import pickle as pickles

        import pyarrow as pa

        lacks = None
        for name, version in versions.items():
            try:
                found = getattr(importlib.import_module(name), "__version__", None)
            except ImportError as fault:
                found = str(fault)
            if found != version:
                lacks = lacks or f"their Python needs {name} {version} ({found})"
        for batch in batches:
            for number in batch.column(0).to_pylist():
                result = None
                if lacks is None:
                    work, chunks = pickles.loads(payload)
                    result = pickles.dumps([work(thing) for thing in chunks[number]])
                yield pa.RecordBatch.from_arrays(
                    [pa.array([number], pa.int64()), pa.array([lacks], pa.string()), pa.array([result], pa.binary())],
                    names=["number", "lacks", "result"],
                )

    return perform


def _perform(work: Callable[[T], R], thing: T) -> bytes:
    """The result, or a problem caused by data or an outside system; any other exception fails the task."""
    try:
        return pickle.dumps((work(thing), None))
    except RunFailed as failed:
        return pickle.dumps((None, (failed.problem, failed.others)))
    except OSError as fault:
        return pickle.dumps((None, fault))


def _unpack(result: bytes) -> Any:
    value, fault = pickle.loads(result)
    if isinstance(fault, OSError):
        raise fault
    if fault is not None:
        problem, others = fault
        raise RunFailed(problem, others=others)
    return value
