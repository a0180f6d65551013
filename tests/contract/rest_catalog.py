"""A REST catalog on loopback whose tables are real: behind it is a catalog of the library in a file."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.rest import DEFAULT_ENDPOINTS, CreateTableRequest
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.table import CommitTableRequest, Table

TOGETHER = "POST /v1/{prefix}/transactions/commit"
_STATUS: dict[type[Exception], int] = {
    NoSuchTableError: 404,
    NoSuchNamespaceError: 404,
    CommitFailedException: 409,
    NamespaceAlreadyExistsError: 409,
    TableAlreadyExistsError: 409,
}


@dataclass
class RestCatalogServer:
    """What the server has and offers, and what was committed to it."""

    catalog: Catalog
    offers_together: bool = True
    commits: list[list[str]] = field(default_factory=list)
    """The tables of every commit that was asked for."""
    before_commit: Callable[[], None] | None = None
    """What happens once, just before the next commit."""
    after_commit: Callable[[], int] | None = None
    """Gives, once, the status in place of that of a commit that went well."""
    lock: threading.RLock = field(default_factory=threading.RLock)

    def answer(self, method: str, path: list[str], body: Any) -> tuple[int, Any]:
        """The status and the content; ``path`` is what follows the version."""
        match method, path:
            case "GET", ["config"]:
                offered = [str(each) for each in DEFAULT_ENDPOINTS] + ([TOGETHER] if self.offers_together else [])
                return 200, {"defaults": {}, "overrides": {"prefix": "main"}, "endpoints": offered}
            case "GET", ["main", "namespaces"]:
                return 200, {"namespaces": [list(each) for each in self.catalog.list_namespaces()]}
            case "POST", ["main", "namespaces"]:
                self.catalog.create_namespace(tuple(body["namespace"]))
                return 200, body
            case "GET", ["main", "namespaces", namespace]:
                return 200, {
                    "namespace": namespace.split("."),
                    "properties": self.catalog.load_namespace_properties(namespace),
                }
            case "GET", ["main", "namespaces", namespace, "tables"]:
                listed = self.catalog.list_tables(namespace)
                return 200, {"identifiers": [{"namespace": list(each[:-1]), "name": each[-1]} for each in listed]}
            case "POST", ["main", "namespaces", namespace, "tables"]:
                asked = CreateTableRequest.model_validate({"location": None, **body})
                assert asked.partition_spec is not None
                name = (*namespace.split("."), asked.name)
                made = self.catalog.create_table(name, asked.table_schema, partition_spec=asked.partition_spec)
                return 200, _describe(made)
            case "GET", ["main", "namespaces", namespace, "tables", name]:
                return 200, _describe(self.catalog.load_table((*namespace.split("."), name)))
            case "POST", ["main", "namespaces", namespace, "tables", name]:
                named = {"identifier": {"namespace": namespace.split("."), "name": name}}
                status = self._commit([CommitTableRequest.model_validate({**body, **named})])
                return status, _describe(self.catalog.load_table((*namespace.split("."), name)))
            case "POST", ["main", "transactions", "commit"]:
                return self._commit([CommitTableRequest.model_validate(each) for each in body["table-changes"]]), {}
            case _:
                raise AssertionError(f"nobody asks for {method} {path}")

    def _commit(self, requests: list[CommitTableRequest]) -> int:
        """All or nothing."""
        names = [(*each.identifier.namespace.root, each.identifier.name) for each in requests]
        self.commits.append([name[-1] for name in names])
        before, self.before_commit = self.before_commit, None
        if before is not None:
            before()
        with self.lock:
            tables = [self.catalog.load_table(name) for name in names]
            for table, request in zip(tables, requests, strict=True):
                for requirement in request.requirements:
                    requirement.validate(table.metadata)
            for table, request in zip(tables, requests, strict=True):
                self.catalog.commit_table(table, request.requirements, request.updates)
        after, self.after_commit = self.after_commit, None
        return after() if after is not None else 200


def _describe(table: Table) -> dict[str, Any]:
    return {
        "metadata-location": table.metadata_location,
        "metadata": json.loads(table.metadata.model_dump_json()),
        "config": {},
    }


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, server: RestCatalogServer, *rest: Any) -> None:
        self.catalog = server
        super().__init__(*rest)

    def _handle(self) -> None:
        path = [unquote(part) for part in urlparse(self.path).path.removeprefix("/v1/").split("/")]
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        try:
            status, content = self.catalog.answer(self.command, path, body)
        except tuple(_STATUS) as fault:
            status = _STATUS[type(fault)]
            content = {"error": {"message": str(fault), "type": type(fault).__name__, "code": status}}
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@contextmanager
def running_rest_catalog(root: Path) -> Iterator[tuple[str, RestCatalogServer]]:
    """The address of a server with an empty catalog, and the server."""
    warehouse = root / "warehouse"
    warehouse.mkdir()
    behind = load_catalog("behind", type="sql", uri=f"sqlite:///{root}/behind.db", warehouse=str(warehouse))
    with closing(behind):
        server = RestCatalogServer(behind)
        with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, server)) as http:
            thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield f"http://127.0.0.1:{http.server_address[1]}", server
            finally:
                http.shutdown()
                thread.join()
