"""Tests whether Spark workers can access the folder of a run's files, or the object store in its place, before anything is computed."""

from __future__ import annotations

import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.engine.faults import one_line, text_of
from dobonomodo.engine.session import is_local, is_remote
from dobonomodo.problems import RunFailed
from dobonomodo.problems.run import WorkersElsewhere
from dobonomodo.storage.faults import is_of_spark
from dobonomodo.storage.native import explain_spark
from dobonomodo.storage.transport import PROBE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.storage.transport import Transport

FindOutage = Callable[[Exception], "RunFailed | None"]
"""The failure that an error means if Spark is lost or has no executors: such errors say nothing about a place."""

_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_UNSEEN = "what a worker writes is not seen here"
_CONNECTORS = {
    "s3a": "org.apache.hadoop:hadoop-aws",
    "gs": "com.google.cloud.bigdataoss:gcs-connector",
    "abfss": "org.apache.hadoop:hadoop-azure",
}
"""What gives Spark the file system of a scheme."""
_OF_HADOOP = "org.apache.hadoop:"
_NO_CONNECTOR = re.compile(r"No FileSystem for scheme|ClassNotFoundException: Class org\.apache\.hadoop\.fs\.")
_REFUSED = re.compile(
    r"AccessDenied|Forbidden|status code:? 40[13]|InvalidAccessKeyId|SignatureDoesNotMatch|[Cc]redentials"
)


def may_be_elsewhere(spark: SparkSession) -> bool:
    """Whether Spark computes outside its driver process, or on another machine than this one."""
    master = spark.conf.get("spark.master", "local")
    if not is_local(str(master)):
        return True
    return is_remote(spark) and spark.client.host not in _HERE


def require_reach(spark: SparkSession, folder: Path, *, find_outage: FindOutage) -> None:
    """Raise ``RunFailed`` unless a task writes a file that is seen here, and reads one that was written here."""
    probe = folder / _probe_name()
    try:
        probe.mkdir(parents=True)
        _write_row(probe / "here.parquet")
        with _explaining(str(folder), find_outage):
            read = _try(spark, str(probe / "here.parquet"), str(probe / "there"))
        if read != 1 or not any((probe / "there").glob("*.parquet")):
            raise RunFailed(WorkersElsewhere(folder=str(folder), detail=_UNSEEN))
    finally:
        shutil.rmtree(probe, ignore_errors=True)


def require_transport(spark: SparkSession, transport: Transport, *, find_outage: FindOutage) -> None:
    """Raise ``RunFailed`` unless a task reads what was uploaded here, and what it writes is found here."""
    probe = _probe_name()
    try:
        with tempfile.TemporaryDirectory() as folder:
            _write_row(Path(folder) / "here.parquet")
            here = transport.put(f"{probe}/here.parquet", Path(folder) / "here.parquet")
        with _explaining(str(transport), find_outage, remedy=lambda said: find_remedy(spark, here, said)):
            read = _try(spark, here, transport.address(f"{probe}/there"))
        if read != 1 or not transport.files(f"{probe}/there"):
            raise RunFailed(WorkersElsewhere(folder=str(transport), detail=_UNSEEN, remedy=_SAME))
    finally:
        transport.remove(probe)


_SAME = (
    "check that Spark's settings for the object store name the same server as those of this machine (docs/clusters.md)"
)


def _probe_name() -> str:
    return f"{PROBE}{secrets.token_hex(4)}"


def _write_row(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"id": pa.array([1], pa.int64())}), path)


def _try(spark: SparkSession, here: str, there: str) -> int:
    """The number of rows that a task reads; another one writes a row."""
    read = spark.read.schema("id BIGINT").parquet(here).count()
    spark.range(0, 1, 1, 1).write.parquet(there)
    return read


@contextmanager
def _explaining(
    place: str, find_outage: FindOutage, *, remedy: Callable[[str], str | None] = lambda said: None
) -> Iterator[None]:
    try:
        yield
    except Exception as fault:
        if not is_of_spark(fault) or find_outage(fault) is not None:
            raise
        said = text_of(fault)
        # What Spark says of an error of Java begins with the call that failed.
        detail = explain_spark(fault) if hasattr(fault, "java_exception") else one_line(said)
        raise RunFailed(WorkersElsewhere(folder=place, detail=detail, remedy=remedy(said))) from fault


def find_remedy(spark: SparkSession, address: str, said: str) -> str:
    """What to do where Spark says that it cannot use an address."""
    scheme = address.partition("://")[0]
    if _NO_CONNECTOR.search(said) and (connector := _CONNECTORS.get(scheme)) is not None:
        version = _hadoop_version(spark) if connector.startswith(_OF_HADOOP) else None
        shown = f"`{connector}:{version}`" if version is not None else f"`{connector}` for your version of Spark"
        return f"give Spark the connector for `{scheme}://`: set `spark.jars.packages` in dobo.yaml to {shown} (docs/clusters.md)"
    if _REFUSED.search(said):
        return (
            "give the driver and the workers of Spark a role or keys that may list, read, write and delete there "
            f"(docs/clusters.md: settings of `{scheme}`)"
        )
    return _SAME


def _hadoop_version(spark: SparkSession) -> str | None:
    """The version of Hadoop that Spark has; None for a server, which cannot be asked."""
    if is_remote(spark):
        return None
    jvm = spark.sparkContext._jvm  # noqa: SLF001  (Spark has no public way to ask)
    return str(jvm.org.apache.hadoop.util.VersionInfo.getVersion()) if jvm is not None else None
