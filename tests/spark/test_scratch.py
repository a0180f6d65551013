"""Scratch in an object store: Spark reads and writes nothing but objects, and the results are those of a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import dobonomodo as dobo
from dobonomodo.engine.reach import find_remedy, require_transport
from dobonomodo.problems.run import ScratchUnreachable, WorkersElsewhere
from dobonomodo.storage.access import PATIENCE
from dobonomodo.storage.native import copy_rows
from dobonomodo.storage.transport import Transport
from tests.local_scratch import ADDRESS, addresses_of_spark, use_folder
from tests.object_server import ObjectServer
from tests.spark.test_many_rows import run_close
from tests.world import failure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.runs import RunView

SETTINGS = f', scratch: "{ADDRESS}"'


@pytest.fixture
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_folder(monkeypatch, tmp_path / "objects")
    return tmp_path / "objects"


@pytest.mark.parametrize("rows", [0, 200])
@pytest.mark.parametrize("small", [True, False])
def test_results_are_those_of_a_folder(
    tmp_path: Path, spark: SparkSession, objects: Path, monkeypatch: pytest.MonkeyPatch, *, rows: int, small: bool
) -> None:
    """Also where outputs share files, and where rows that were written are read again."""
    if not small:
        monkeypatch.setattr("dobonomodo.engine.size.SMALL_BYTES", 0)
        monkeypatch.setattr("dobonomodo.engine.frames.LEAVES", 2)
    expected = run_close(tmp_path / "plain", spark, rows=rows)
    with addresses_of_spark() as seen:
        found = run_close(tmp_path / "apart", spark, rows=rows, settings=SETTINGS)
    assert found == expected
    assert seen
    assert all(each.startswith(f"file://{objects}/") for each in seen), seen
    assert not any(path.is_file() for path in objects.rglob("*"))
    assert not any((tmp_path / "apart/.dobo/runs").iterdir())


def test_published_rows_are_read_back(
    tmp_path: Path, spark: SparkSession, objects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dobonomodo.engine.size.SMALL_BYTES", 0)
    run_close(tmp_path / "apart", spark, rows=50, settings=SETTINGS)
    workspace = dobo.open(tmp_path / "apart")
    (run,) = workspace.runs()
    with addresses_of_spark() as seen:
        assert workspace.verify(run.id, spark=spark)[1] == ()
        assert workspace.verify(run.id, replay=True, spark=spark)[1] == ()
        frame = workspace.find_run(run.id).outputs["everything"].dataframe(spark)
        assert frame.count() == run.outputs["everything"].rows
    assert all(each.startswith(f"file://{objects}/{run.id}/") for each in seen), seen
    # They are there for whoever still reads them, and are removed once they are a day old.
    assert {path.name for path in (objects / run.id).iterdir() if any(path.rglob("*.parquet"))} == {"verify"}


def test_rows_that_spark_alone_can_read_are_copied(tmp_path: Path, spark: SparkSession, objects: Path) -> None:
    """Such as those of a table in a catalog that has no versions."""
    with addresses_of_spark() as seen:
        files = copy_rows(spark.range(0, 10, 1, 2).toDF("id"), tmp_path / "copy", Transport.of(ADDRESS).below("run"))
    assert seen == [f"file://{objects}/run/inputs/copy"]
    assert [Path(each).parent for each in files] == [tmp_path / "copy"] * 2
    assert sorted(row["id"] for each in files for row in pq.read_table(each).to_pylist()) == list(range(10))


def test_a_spark_without_the_connector(tmp_path: Path, spark: SparkSession, object_server: ObjectServer) -> None:
    """It is told which one, before anything is computed."""
    address = f"{object_server.fresh_bucket()}/scratch"
    run = fail_close(tmp_path, spark, address)
    (problem,) = run.problems
    version = spark.sparkContext._jvm.org.apache.hadoop.util.VersionInfo.getVersion()  # type: ignore[union-attr]
    assert (problem.code, problem.operation) == (WorkersElsewhere.code, None)
    assert f"{address}/{run.id}`: " in problem.message()
    assert "S3AFileSystem not found" in problem.message()
    assert f"`org.apache.hadoop:hadoop-aws:{version}`" in (problem.hint() or "")
    assert [key for key in object_server.keys(address) if "probe" in key or key.endswith("there")] == []


@pytest.mark.parametrize(
    ("address", "said", "remedy"),
    [
        ("gs://b/x", 'No FileSystem for scheme "gs"', "gcs-connector"),
        ("abfss://b@a/x", "ClassNotFoundException: Class org.apache.hadoop.fs.azurebfs.X not found", "hadoop-azure:"),
        (
            "s3a://b/x",
            "getFileStatus on x: software.amazon...S3Exception: Forbidden (Status Code: 403)",
            "role or keys",
        ),
        ("s3a://b/x", "NoAwsCredentialsException: Unable to load credentials from any provider", "role or keys"),
        ("s3a://b/x", "PATH_NOT_FOUND s3a://b/x", "name the same server"),
    ],
)
def test_what_helps(spark: SparkSession, address: str, said: str, remedy: str) -> None:
    assert remedy in find_remedy(spark, address, said)


def test_a_store_that_spark_sees_otherwise(spark: SparkSession, objects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker writes must be found here."""
    transport = Transport.of(ADDRESS).below("run")
    monkeypatch.setattr(Transport, "files", lambda self, place: [])
    problem = failure(require_transport, spark, transport, find_outage=lambda fault: None).problem
    assert isinstance(problem, WorkersElsewhere)
    assert "not seen here" in problem.detail
    assert not any(path.is_file() for path in objects.rglob("*"))


def test_a_store_that_this_machine_does_not_reach(
    tmp_path: Path, spark: SparkSession, object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PATIENCE, "0")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    (problem,) = fail_close(tmp_path, spark, "s3://bucket/scratch").problems
    assert problem.code == ScratchUnreachable.code
    assert "did not answer" in problem.message()
    del object_server


def fail_close(root: Path, spark: SparkSession, address: str) -> RunView:
    """A run that fails, with scratch at an address."""
    with pytest.raises(AssertionError):
        run_close(root, spark, rows=5, settings=f', scratch: "{address}"')
    (run,) = dobo.open(root).runs()
    assert run.status == "failed"
    return run
