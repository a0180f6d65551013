"""A real S3 server on loopback, from PyPI, with a bucket for each test. Its conditional writes are acts of one step."""

from __future__ import annotations

import json
import logging
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

KEY = "AKIAOPENSESAME00"
SECRET = "open-sesame-of-the-object-store"


@dataclass(frozen=True)
class ObjectServer:
    """A running server. Its address and keys are in the environment, where processes that tests start find them."""

    endpoint: str
    app: _OneAtATime = field(repr=False)

    def fresh_bucket(self) -> str:
        """The address of an empty bucket."""
        name = f"bucket-{uuid4()}"
        self.client().create_bucket(Bucket=name)
        return f"s3://{name}"

    def client(self) -> Any:
        """Another tool."""
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )

    def put(self, address: str, content: bytes) -> None:
        """Behind the product's back."""
        bucket, _, key = address.removeprefix("s3://").partition("/")
        self.client().put_object(Bucket=bucket, Key=key, Body=content)

    def read(self, address: str) -> bytes:
        bucket, _, key = address.removeprefix("s3://").partition("/")
        content: bytes = self.client().get_object(Bucket=bucket, Key=key)["Body"].read()
        return content

    def keys(self, address: str) -> list[str]:
        """The keys below an address, relative to it."""
        bucket, _, key = address.removeprefix("s3://").partition("/")
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{key}/")
        return [each["Key"].removeprefix(f"{key}/") for page in pages for each in page.get("Contents", ())]

    def remove(self, address: str) -> None:
        """All objects below an address."""
        bucket, _, key = address.removeprefix("s3://").partition("/")
        for name in self.keys(address):
            self.client().delete_object(Bucket=bucket, Key=f"{key}/{name}")

    def age(self, address: str, by: timedelta) -> None:
        """Make the objects below an address older than they are."""
        from moto.core.models import DEFAULT_ACCOUNT_ID
        from moto.s3.models import s3_backends

        bucket, _, key = address.removeprefix("s3://").partition("/")
        for name in self.keys(address):
            held = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[bucket].keys[f"{key}/{name}"]
            held.last_modified -= by

    def read_pointer(self, address: str) -> bytes:
        """The pointer of a datasource."""
        return self.read(f"{address}/.dobo-data/current.json")

    def list_files(self, address: str, table: str) -> list[str]:
        """The files of a table as another tool finds them: pointer, manifests, files."""
        pointer = json.loads(self.read_pointer(address))
        periods = pointer["tables"].get(table, {"periods": {}})["periods"]
        manifests = [json.loads(self.read(f"{address}/{each['manifest']}")) for each in periods.values()]
        return [f"{address}/{file}" for each in manifests for file in each["files"]]

    @contextmanager
    def copied(self, address: str, table: str) -> Iterator[list[Path]]:
        """Copies of the files of a table."""
        with tempfile.TemporaryDirectory() as folder:
            copies = []
            for number, file in enumerate(self.list_files(address, table)):
                copies.append(Path(folder) / f"{number}-{file.rpartition('/')[2]}")
                copies[-1].write_bytes(self.read(file))
            yield copies


@dataclass
class _OneAtATime:
    """Requests one after the other: the server checks a condition in one step and writes in the next."""

    app: Callable[..., Iterable[bytes]]
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, environment: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        with self.lock:
            return list(self.app(environment, start_response))


@pytest.fixture(scope="session")
def object_server() -> Iterator[ObjectServer]:
    with running_server() as server:
        yield server


@contextmanager
def running_server() -> Iterator[ObjectServer]:
    """A server, with its address and keys in the environment."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    app = _OneAtATime(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", KEY)
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patch.setenv("AWS_REGION", "us-east-1")
        patch.setenv("AWS_ENDPOINT_URL", endpoint)
        patch.delenv("AWS_PROFILE", raising=False)
        yield ObjectServer(endpoint, app)
    server.shutdown()
    thread.join()
    server.server_close()
