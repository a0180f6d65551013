"""A real HDFS on loopback, from Maven Central: a name node and a data node in one process, with a folder for each test."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from tests.native.connectors import find_server, free_port, start_java
from tests.object_server import ObjectServer

if TYPE_CHECKING:
    from hdfs_native import Client

PARTS = ("hadoop-client-minicluster", "junit", "hamcrest-core")


@dataclass(frozen=True)
class HdfsServer(ObjectServer):
    """A running name node."""

    def fresh_bucket(self) -> str:
        """The address of an empty folder."""
        address = f"{self.endpoint}/folder-{uuid4()}"
        self.client().mkdirs(_path(address))
        return address

    def client(self) -> Client:
        """The library itself."""
        from hdfs_native import Client

        return Client(self.endpoint)

    def put(self, address: str, content: bytes) -> None:
        from hdfs_native import WriteOptions

        with self.client().create(_path(address), WriteOptions(overwrite=True)) as file:
            file.write(content)

    def read(self, address: str) -> bytes:
        return self.client().read(_path(address)).read()

    def keys(self, address: str) -> list[str]:
        try:
            found = [*self.client().list_status(_path(address), recursive=True)]
        except FileNotFoundError:
            return []
        return [each.path.removeprefix(f"{_path(address)}/") for each in found if not each.isdir]

    def remove(self, address: str) -> None:
        self.client().delete(_path(address), recursive=True)

    def age(self, address: str, by: timedelta) -> None:
        """Of data, which are known by their time, the marks alone."""
        client = self.client()
        for key in self.keys(address):
            if key.endswith("/replaced") or "-states/" in key:
                path = f"{_path(address)}/{key}"
                status = client.get_file_info(path)
                earlier = status.modification_time - int(by.total_seconds() * 1000)
                client.set_times(path, earlier, earlier)

    def read_pointer(self, address: str) -> bytes:
        """As the page on lake tables shows it."""
        (token,) = self.keys(f"{address}/.dobo-data/current")
        return self.read(f"{address}/.dobo-data/current-states/{token}.json")


def _path(address: str) -> str:
    return "/" + address.removeprefix("hdfs://").partition("/")[2]


@pytest.fixture(scope="session")
def hdfs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    folder, port = tmp_path_factory.mktemp("hdfs"), free_port()
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    jars = [*map(find_server, PARTS), Path(spec.origin).parent / "jars" / "*"]
    classes = ":".join(map(str, jars))
    options = ["-format", "-datanodes", "1", "-nnport", str(port), "-writeDetails", str(folder / "ready")]
    process = start_java(["-cp", classes, "org.apache.hadoop.test.MiniDFSClusterManager", *options], folder=folder)
    try:
        while not (folder / "ready").exists():
            assert process.poll() is None, (folder / "java.log").read_text()
            time.sleep(0.1)
        yield HdfsServer(f"hdfs://127.0.0.1:{port}", None)  # type: ignore[arg-type]
    finally:
        process.terminate()
        process.wait(60)
