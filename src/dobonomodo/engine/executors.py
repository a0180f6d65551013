"""Detects that Spark has tasks but no executor to run them. Spark itself would wait forever."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from dobonomodo.engine.session import is_local, is_remote

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.shell.progress import ProgressHandler, StageInfo

REPORT_EVERY_SECONDS = 10
POLL_EVERY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Tasks:
    """Task counts of the active stages."""

    running: int = 0
    left: int = 0

    @property
    def wait(self) -> bool:
        """Whether there are tasks but none of them runs."""
        return self.left > 0 and self.running == 0


@dataclass(slots=True)
class Patience:
    """How long tasks have waited for an executor. ``say`` receives a message every ten seconds."""

    limit: float = math.inf
    say: Callable[[str], None] = lambda text: None
    over: bool = False
    """Whether the tasks have waited too long."""
    _since: float | None = field(default=None, init=False)
    _said: int = field(default=0, init=False)

    def observe(self, tasks: Tasks, *, at: float) -> None:
        """Record the tasks at a time, in seconds."""
        if not tasks.wait:
            if self._said:
                self.say("computing")
            self._since, self._said = None, 0
            return
        self._since = at if self._since is None else self._since
        waited = at - self._since
        self.over = self.over or waited >= self.limit
        if waited >= self._said + REPORT_EVERY_SECONDS:
            self._said = int(waited)
            self.say(f"waiting for executors ({self._said} s)")


@contextmanager
def waiting_for_executors(spark: SparkSession, patience: Patience) -> Iterator[None]:
    """Cancel the Spark jobs of the block when they have waited too long for executors; ``patience`` records this."""
    with _observing(spark) as observe:
        if observe is None:
            yield
            return
        ended = threading.Event()
        arguments = (spark, patience, observe, ended)
        watch = threading.Thread(target=_watch, args=arguments, name="dobo-executors", daemon=True)
        watch.start()
        try:
            yield
        finally:
            ended.set()
            watch.join(timeout=10)


def _watch(spark: SparkSession, patience: Patience, observe: Callable[[], Tasks], ended: threading.Event) -> None:
    while not ended.wait(POLL_EVERY_SECONDS):
        # If Spark is lost, the block itself raises.
        with suppress(Exception):
            patience.observe(observe(), at=time.monotonic())
            if patience.over:
                spark.interruptAll()


@contextmanager
def _observing(spark: SparkSession) -> Iterator[Callable[[], Tasks] | None]:
    """A function that returns the tasks of a session; None if the driver is the only executor."""
    if not is_remote(spark):
        context = spark.sparkContext
        yield None if is_local(context.master or "") else lambda: _tasks_of(context)
        return
    latest = [Tasks()]

    def receive(*, stages: Iterable[StageInfo] | None, inflight_tasks: int, operation_id: object, done: bool) -> None:
        del operation_id
        left = sum(stage.num_tasks - stage.num_completed_tasks for stage in stages or () if not stage.done)
        latest[0] = Tasks() if done else Tasks(inflight_tasks, left)

    handler = cast("ProgressHandler", receive)
    spark.registerProgressHandler(handler)
    try:
        yield lambda: latest[0]
    finally:
        spark.removeProgressHandler(handler)


def _tasks_of(context: SparkContext) -> Tasks:
    """The tasks of all active stages of a SparkContext."""
    tracker = context.statusTracker()
    stages = [stage for each in tracker.getActiveStageIds() if (stage := tracker.getStageInfo(each)) is not None]
    return Tasks(
        running=sum(stage.numActiveTasks for stage in stages),
        left=sum(stage.numTasks - stage.numCompletedTasks for stage in stages),
    )
