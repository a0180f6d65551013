"""A real REST catalog of Iceberg tables in a process of its own, and a proxy that does to its answers what networks do."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import requests

from tests.native.connectors import find_server, free_port, start_java

COMMIT = "/v1/transactions/commit"
Forward = Callable[[bytes], tuple[int, bytes] | None]
"""Hands a request to the catalog, whatever it then says is the answer; None loses the answer."""


@contextmanager
def running_catalog(folder: Path, warehouse: str) -> Iterator[str]:
    """A catalog in an SQLite database; gives its address."""
    port = free_port()
    settings = {"WAREHOUSE": warehouse, "URI": f"jdbc:sqlite:{folder / 'rest.db'}", "REST_PORT": str(port)}
    process = start_java(
        ["-jar", find_server("iceberg-open-api")],
        folder=folder,
        **{f"CATALOG_{name}": value for name, value in settings.items()},
    )
    try:
        address = f"http://127.0.0.1:{port}"
        _wait(process, address, folder / "java.log")
        yield address
    finally:
        process.terminate()
        process.wait(30)


def _wait(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    for _ in range(600):
        try:
            requests.get(f"{address}/v1/config", timeout=10).raise_for_status()
        except requests.RequestException:
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
        else:
            return
    raise AssertionError(log.read_text())


@dataclass
class Proxy:
    """What is between a run and its catalog."""

    behind: str
    commits: list[str] = field(default_factory=list)
    """The requests that change tables, by their paths."""
    hides: bool = False
    """Whether it is kept from the run that the catalog commits several tables at once."""
    on_commit: Callable[[bytes, Forward], tuple[int, bytes] | None] | None = None
    """What becomes of the next transaction of several tables."""

    def answer(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes] | None:
        """The status and content of an answer; None if it is lost."""

        def forward(content: bytes) -> tuple[int, bytes]:
            said = requests.request(method, f"{self.behind}{path}", data=content, headers=headers, timeout=60)
            return said.status_code, said.content

        if method == "POST" and (path == COMMIT or "/tables/" in path):
            self.commits.append(path)
        if path == COMMIT and self.on_commit is not None:
            act, self.on_commit = self.on_commit, None
            return act(body, forward)
        status, content = forward(body)
        if self.hides and path.startswith("/v1/config"):
            config = json.loads(content)
            config["endpoints"] = [each for each in config["endpoints"] if not each.endswith("transactions/commit")]
            content = json.dumps(config).encode()
        return status, content

    @contextmanager
    def running(self) -> Iterator[str]:
        """Gives the address of the proxy."""
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def _do(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                passed = {"Content-Type": self.headers.get("Content-Type") or "application/json"}
                answer = proxy.answer(self.command, self.path, body, passed)
                if answer is None:
                    self.close_connection = True
                    return
                status, content = answer
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_HEAD = do_DELETE = _do  # noqa: N815  as the library calls them

            def log_message(self, *_: object) -> None:
                """Nobody reads it."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
