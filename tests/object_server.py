"""A real S3 server on loopback, from PyPI, with a bucket for each test. Its conditional writes are acts of one step."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
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
