"""A class-data archive (CDS) of the classes that Spark loads, created once per installation: Spark then starts in half the time.

Java compares an archive with its own version and class path, and ignores one that does not fit. If no archive can be written or
read, for example in a read-only home, Spark starts without it, and no message is shown.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from dobonomodo.engine.java import Java, require_java
from dobonomodo.problems import RunFailed

SWITCH = "DOBO_CLASS_ARCHIVE"
"""Set to `off`, it disables reading and creating archives; set to `read`, an archive is used if there is one."""

_QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""Java would print a warning about every archive that does not fit."""


_LATER = "import os; os.nice(19); from dobonomodo.engine import make_archive; make_archive()"


def find_archive(java: Java) -> Path | None:
    """Path of the archive for a Java and the installed Spark; None if it does not exist yet."""
    path = _path(java)
    return path if path is not None and path.is_file() and os.access(path, os.R_OK) else None


def archive_options(java: Java) -> list[str]:
    """JVM options that load the archive."""
    path = find_archive(java)
    return [f'"-XX:SharedArchiveFile={path}"', "-Xshare:auto", *_QUIET] if path is not None else []


def make_archive_later() -> None:
    """Create the archive in a separate process with low priority, if it does not exist and this process started Spark."""
    if os.environ.get(SWITCH) == "read" or not _has_started_spark():
        return
    with suppress(OSError, RunFailed):
        java = require_java()
        path = _path(java)
        if path is None or path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.Popen(
            [sys.executable, "-c", _LATER],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def _has_started_spark() -> bool:
    if "pyspark" not in sys.modules:
        return False
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None  # noqa: SLF001  (the only way to look without starting)


def make_archive() -> bool:
    """Start Spark, run a few typical jobs, and dump the loaded classes; returns whether the archive exists now."""
    java = require_java()
    path = _path(java)
    if path is None:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if path.exists():
            return True
        for left in path.parent.glob(f"{path.stem}.*[0-9]"):
            left.unlink(missing_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        try:
            _exercise_spark(f'"-XX:ArchiveClassesAtExit={unfinished}"')
            if not _is_usable(java, unfinished):
                return False
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    return True


def _path(java: Java, environment: Mapping[str, str] = os.environ) -> Path | None:
    if environment.get(SWITCH) == "off":
        return None
    try:
        spark = metadata.version("pyspark")
        home = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except (metadata.PackageNotFoundError, RuntimeError):
        return None
    # The class path is part of what Java compares, and so is the folder that the packages are in.
    place = next((str(entry) for entry in sys.path if entry.endswith("site-packages")), "")
    key = hashlib.sha256(f"{java.version}\0{java.home}\0{spark}\0{place}".encode()).hexdigest()[:16]
    return home / "dobonomodo" / f"spark-{key}.jsa"


def _exercise_spark(option: str) -> None:
    """Run what most runs do: read and write Parquet, join, group, observe, hash."""
    from pyspark import SparkContext
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    from dobonomodo.engine.session import open_session
    from dobonomodo.engine.size import InputSize

    session = open_session(conf={"spark.driver.extraJavaOptions": " ".join([option, *_QUIET])}, size=InputSize(0, 0))
    with tempfile.TemporaryDirectory(prefix="dobo-archive-") as folder:
        rows = session.range(100).selectExpr(
            "id", "CAST(id % 7 AS STRING) AS name", "CAST(id AS DECIMAL(15,2)) AS amount", "DATE'2026-01-31' AS day"
        )
        rows.write.parquet(f"{folder}/rows")
        stored = session.read.parquet(f"{folder}/rows").where("amount > 3")
        side = stored.selectExpr("name AS key", "count(1) OVER (PARTITION BY name) AS number").distinct()
        joined = stored.join(side, F.expr("name = key AND id > 5"), "left")
        totals = joined.groupBy("name").agg(F.expr("sum(amount)").alias("amount"))
        marked = "CASE WHEN amount > 5BD THEN number | 2L ELSE number END AS number"
        full = joined.selectExpr("name", "ROUND(amount / nullif(number, 0BD), 2) AS amount", marked).unionByName(
            totals.selectExpr("*", "CAST(NULL AS BIGINT) AS number")
        )
        sums = (
            "sum(xxhash64(name) & 255L)",
            "coalesce(sum(CAST((number & 2L) <> 0L AS BIGINT)), 0L)",
            "try_sum(CASE WHEN number > 1 THEN amount END)",
        )
        metrics = [F.expr(sql).alias(f"m{at}") for at, sql in enumerate(sums)]
        seen = full.observe(Observation(), F.expr("count(1)").alias("rows"), *metrics)
        seen.coalesce(1).write.parquet(f"{folder}/more")
    gateway = SparkContext._gateway  # noqa: SLF001  (Spark has no public way to wait for its process)
    session.stop()
    if gateway is not None:
        process = gateway.proc
        gateway.shutdown()
        process.stdin.close()
        process.wait(timeout=300)


def _is_usable(java: Java, archive: Path) -> bool:
    """Whether Java accepts the archive; it refuses a truncated one."""
    if not archive.is_file():
        return False
    command = [str(java.executable), f"-XX:SharedArchiveFile={archive}", *_QUIET, "-version"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
