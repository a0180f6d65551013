"""Computes on a cluster while its workers and executors are killed, and prints as JSON what came of it."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dobonomodo.engine import open_session
from dobonomodo.engine.engine import SparkEngine
from dobonomodo.engine.executors import Patience
from dobonomodo.problems import RunFailed
from tests.faults.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOREIGN = {"JAVA_TOOL_OPTIONS": "-Duser.language=tr -Duser.country=TR -Dfile.encoding=ISO-8859-9", "TZ": "Asia/Tokyo"}
"""A worker of a machine that is set up otherwise than the driver's; its executors inherit it."""
PROPERTIES = ("user.language", "user.country", "user.timezone", "file.encoding", "own")
CONF = {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": "-Down=1"}
LIMIT = 12.0


def main(folder: Path) -> None:
    cluster = Cluster(folder)
    cluster.start_master()
    cluster.add_worker(FOREIGN)
    cluster.add_worker(FOREIGN)
    found = kill_workers(cluster)
    found["executors killed"] = kill_executors(cluster)
    sys.stdout.write(json.dumps(found) + "\n")


def kill_workers(cluster: Cluster) -> dict[str, Any]:
    """One of two, then the other; then a new one comes."""
    spark = open_session(master=cluster.url, conf=CONF)
    found: dict[str, Any] = {"settings": settings_of_executors(spark)}
    busy: list[str] = []
    while not busy:
        # Both executors are there when two tasks run at once.
        found["undisturbed"] = digest(spark, at=2, act=lambda: busy.append("both"))
    events: list[str] = []

    def kill() -> None:
        cluster.kill_worker()
        events.append("killed")

    found["one worker killed"] = digest(spark, at=2, act=kill), list(events)
    said: list[str] = []
    patience = Patience(limit=LIMIT, say=said.append)
    found["all workers killed"] = digest(spark, at=1, act=kill, patience=patience), list(events), said
    cluster.add_worker(FOREIGN)
    found["new worker"] = digest(spark)
    spark.stop()
    return found


def kill_executors(cluster: Cluster) -> Any:
    """Executors that die of a task, as far as Spark can tell, more often than it starts the task again."""
    spark = open_session(master=cluster.url, conf={**CONF, "spark.task.maxFailures": "1"})

    def kill() -> None:
        # Tasks that have not begun are not counted, so that it may take more than one kill.
        time.sleep(1)
        for each in cluster.executors():
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)

    found = digest(spark, at=1, act=kill, again=True)
    spark.stop()
    return found


def settings_of_executors(spark: SparkSession) -> list[list[str]]:
    """What differs between machines, as two tasks find it."""
    names = [f"reflect('java.lang.System', 'getProperty', '{each}')" for each in PROPERTIES]
    rows = spark.range(0, 2, 1, 2).selectExpr("upper(concat('iğdır', id))", *names)
    return [list(row) for row in rows.collect()]


def digest(
    spark: SparkSession,
    *,
    at: int = 0,
    act: Callable[[], None] = lambda: None,
    again: bool = False,
    patience: Patience | None = None,
) -> str | list[Any]:
    """The digest of forty rows that take half a second each; ``act`` happens when so many tasks run at once."""
    rows = spark.range(0, 40, 1, 8).selectExpr("id + length(reflect('java.lang.Thread', 'sleep', 500L)) AS id")
    with when_tasks_run(spark, at, act, again=again):
        try:
            return SparkEngine(spark, patience=patience).digest(rows, ["id"])
        except RunFailed as failed:
            return [failed.problem.code, failed.retry_helps, failed.problem.operation]


@contextmanager
def when_tasks_run(spark: SparkSession, number: int, act: Callable[[], None], *, again: bool = False) -> Iterator[None]:
    """Act in the block when so many tasks run at once, once or again and again."""
    tracker = spark.sparkContext.statusTracker()
    ended = threading.Event()

    def watch() -> None:
        while number and not ended.is_set():
            stages = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
            if sum(stage.numActiveTasks for stage in stages if stage is not None) >= number:
                act()
                if not again:
                    return
            time.sleep(0.05)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
