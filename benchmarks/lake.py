"""The pipeline into tables of Delta and Iceberg and into an object store, against the same into Parquet files of this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.data import WORK, make_data, make_workspace
from benchmarks.measure import measure, ratio, ratio_of_cpu

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARQUET = "datasource: {id: out, type: parquet, options: {path_prefix: out}}"
PLACES = {
    "parquet": PARQUET,
    "delta": "datasource: {id: out, type: delta, options: {path_prefix: out}}",
    "iceberg": 'datasource: {id: out, type: iceberg, options: {uri: "sqlite:///catalog.db", warehouse: out}}',
    "parquet in S3": 'datasource: {id: out, type: parquet, options: {path_prefix: "s3://lake/parquet"}}',
    "delta in S3": 'datasource: {id: out, type: delta, options: {path_prefix: "s3://lake/delta"}}',
    "iceberg in S3": 'datasource: {id: out, type: iceberg, options: {uri: "sqlite:///catalog.db", warehouse: "s3://lake/ice"}}',
}
"""Where the outputs go."""


def lake(spark: SparkSession, scale: float, warm: int) -> dict[str, Any]:
    """Whole runs, in turns, with the digests of their outputs. The server of the object store is on this machine."""
    data, root = make_data(scale), WORK / "lake"
    shutil.rmtree(root, ignore_errors=True)
    folders = {name: _make_place(root / name.replace(" ", "-"), data, place) for name, place in PLACES.items()}
    digests: dict[str, list[str]] = {}

    def run(name: str) -> None:
        import dobonomodo as dobo

        done = dobo.open(folders[name]).run("pipeline", period="2026-01", spark=spark)
        if done.status != "completed":
            raise RuntimeError(str(done.problems))
        digests[name] = [each.digest for each in done.outputs.values()]

    with object_server():
        chosen: dict[str, Callable[[], object]] = {name: partial(run, name) for name in PLACES}
        measured, _ = measure(chosen, warm=warm, cold=2)
    shutil.rmtree(root)
    local = measured["parquet"]
    return {
        "scale": scale,
        "same": len({tuple(each) for each in digests.values()}) == 1,
        "places": {
            name: {
                **each.document(),
                "ratio": round(ratio(each, local), 3),
                "ratio_cpu": round(ratio_of_cpu(each, local), 3),
            }
            for name, each in measured.items()
        },
    }


def _make_place(folder: Path, data: Path, place: str) -> Path:
    """A workspace with the pipeline, whose project is active: drafts write to the sandbox."""
    import dobonomodo as dobo

    make_workspace(folder, data)
    definitions = folder / "dobo.yaml"
    definitions.write_text(definitions.read_text().replace(PARQUET, place))
    workspace = dobo.open(folder)
    workspace.apply()
    workspace.activate("pipeline")
    return folder


@contextmanager
def object_server() -> Iterator[None]:
    """An S3 server on loopback, with a bucket `lake`; its address and keys are in the environment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
    }
    try:
        _make_bucket(port)
        yield
    finally:
        process.kill()
        process.wait()


def _make_bucket(port: int) -> None:
    """Wait for the server, and make the bucket."""
    import boto3
    from botocore.exceptions import ConnectionError as NoAnswer

    client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1")
    for _ in range(600):
        try:
            client.create_bucket(Bucket="lake")
        except NoAnswer:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError("the object store does not answer")
