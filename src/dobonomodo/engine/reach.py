"""Tests whether Spark workers can access the folder of a run's files, before anything is computed."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.engine.faults import one_line, text_of
from dobonomodo.engine.session import is_local, is_remote
from dobonomodo.problems import RunFailed
from dobonomodo.problems.run import WorkersElsewhere
from dobonomodo.storage.faults import is_of_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HERE = frozenset({"localhost", "127.0.0.1", "::1"})


def may_be_elsewhere(spark: SparkSession) -> bool:
    """Whether Spark computes outside its driver process, or on another machine than this one."""
    master = spark.conf.get("spark.master", "local")
    if not is_local(str(master)):
        return True
    return is_remote(spark) and spark.client.host not in _HERE


def require_reach(spark: SparkSession, folder: Path, *, find_outage: Callable[[Exception], RunFailed | None]) -> None:
    """Raise ``RunFailed`` unless a task writes a file that is seen here, and reads one that was written here.

    Errors because Spark is lost or has no executors (see ``find_outage``) say nothing about the folder.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    probe = folder / f"probe-{secrets.token_hex(4)}"
    try:
        probe.mkdir(parents=True)
        pq.write_table(pa.table({"id": pa.array([1], pa.int64())}), probe / "here.parquet")
        try:
            read = spark.read.schema("id BIGINT").parquet(str(probe / "here.parquet")).count()
            spark.range(0, 1, 1, 1).write.parquet(str(probe / "there"))
        except Exception as fault:
            if not is_of_spark(fault) or find_outage(fault) is not None:
                raise
            raise RunFailed(WorkersElsewhere(folder=str(folder), detail=one_line(text_of(fault)))) from fault
        if read != 1 or not any((probe / "there").glob("*.parquet")):
            raise RunFailed(WorkersElsewhere(folder=str(folder), detail="what a worker writes is not seen here"))
    finally:
        shutil.rmtree(probe, ignore_errors=True)
