"""One transaction for several Iceberg tables: who offers it, what is sent, and what the answers mean.

The server here says what a test wants it to say; ``tests/native/test_rest_catalog.py`` asks a real one.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitStateUnknownException, ForbiddenError
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.types import LongType, NestedField

from dobonomodo.storage.iceberg_rest import commit_together, commits_together

OFFERED = "POST /v1/{prefix}/transactions/commit"


@dataclass
class Said:
    """What the server says, and what was said to it."""

    endpoints: list[str] | None
    status: int = 204
    heard: list[tuple[str, Any]] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    def __init__(self, said: Said, *rest: Any) -> None:
        self.said = said
        super().__init__(*rest)

    def _send(self, status: int, content: dict[str, Any]) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def do_GET(self) -> None:
        listed = {"endpoints": self.said.endpoints} if self.said.endpoints is not None else {}
        self._send(200, {"defaults": {}, "overrides": {"prefix": "main"}, **listed})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.said.heard.append((self.path, json.loads(body)))
        self._send(self.said.status, {"error": {"message": "m", "type": "t", "code": self.said.status}})

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def said() -> Said:
    return Said(["GET /v1/{prefix}/namespaces", OFFERED])


@pytest.fixture
def address(said: Said) -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), partial(Handler, said)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def open_rest(address: str) -> Catalog:
    return load_catalog("default", type="rest", uri=address)


@pytest.fixture
def sql(tmp_path: Path) -> Iterator[Catalog]:
    with closing(load_catalog("c", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))) as catalog:
        catalog.create_namespace("a")
        yield catalog


def make_transaction(sql: Catalog, rest: Catalog, name: str) -> tuple[Table, Transaction]:
    """A table whose metadata is real, in the catalog of the server."""
    table = sql.create_table(("a", name), Schema(NestedField(1, "id", LongType())))
    table.catalog = rest
    transaction = table.transaction()
    transaction.set_properties({"x": name})
    with transaction.update_snapshot().fast_append():
        pass
    return table, transaction


@pytest.mark.parametrize(
    ("endpoints", "offers"), [([OFFERED], True), (["GET /v1/{prefix}/namespaces"], False), (None, False)]
)
def test_a_catalog_offers_it_by_saying_so(address: str, said: Said, endpoints: list[str] | None, offers: bool) -> None:
    said.endpoints = endpoints
    assert commits_together(open_rest(address)) is offers


def test_a_catalog_in_a_database_does_not(sql: Catalog) -> None:
    assert not commits_together(sql)


def test_each_table_has_its_conditions_and_changes(address: str, said: Said, sql: Catalog) -> None:
    rest = open_rest(address)
    pair = [make_transaction(sql, rest, name) for name in ("one", "two")]
    assert commit_together(pair)
    ((path, body),) = said.heard
    assert path == "/v1/main/transactions/commit"
    assert [each["identifier"] for each in body["table-changes"]] == [
        {"namespace": ["a"], "name": name} for name in ("one", "two")
    ]
    for change, (table, _) in zip(body["table-changes"], pair, strict=True):
        conditions = {each["type"]: each for each in change["requirements"]}
        assert conditions["assert-table-uuid"]["uuid"] == str(table.metadata.table_uuid)
        assert conditions["assert-ref-snapshot-id"]["snapshot-id"] is None
        assert [each["action"] for each in change["updates"]] == ["set-properties", "add-snapshot", "set-snapshot-ref"]


def test_what_answers_mean(address: str, said: Said, sql: Catalog) -> None:
    pair = [make_transaction(sql, open_rest(address), "one")]
    said.status = 409
    assert not commit_together(pair)
    said.status = 500
    with pytest.raises(CommitStateUnknownException):
        commit_together(pair)
    said.status = 403
    with pytest.raises(ForbiddenError):
        commit_together(pair)
