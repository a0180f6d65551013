"""One transaction for several Iceberg tables: who offers it, what is sent, and what the answers mean.

The first server here says what a test wants it to say, the second has real tables; ``tests/native/test_rest_catalog.py`` asks
one that others made.
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

from dobonomodo.problems.run import DataLoad, OutputWrite
from dobonomodo.storage import Outputs, WrittenOutput
from dobonomodo.storage.iceberg_rest import commit_together, commits_together
from dobonomodo.storage.target import Noted
from tests.contract.lake_tables import Ready, check_replaced_fenced_and_found, see_all, stage_several
from tests.contract.rest_catalog import RestCatalogServer, running_rest_catalog
from tests.contract.storages import Storage, failure, open_source
from tests.contract.test_storages import SIMPLE
from tests.object_server import ObjectServer
from tests.world import PERIOD

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


# --- whole publications

TABLES = ("one", "two")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, RestCatalogServer]]:
    with running_rest_catalog(tmp_path) as found:
        yield found


@pytest.fixture
def server(served: tuple[str, RestCatalogServer]) -> RestCatalogServer:
    return served[1]


@pytest.fixture
def rest(tmp_path: Path, served: tuple[str, RestCatalogServer]) -> Storage:
    return Storage(tmp_path, open_source("iceberg", uri=served[0], warehouse="warehouse"))


def make_ready(storage: Storage, outputs: Outputs, value: str, tables: tuple[str, ...] = TABLES) -> Ready:
    """Outputs to several tables, ready to be published."""
    return stage_several(storage, outputs, value, tables)


def put(storage: Storage, value: str, *, period: str = PERIOD, fence: int = 1) -> None:
    outputs = storage.outputs(run=f"run-{value}", period=period, fence=fence)
    outputs.publish(make_ready(storage, outputs, value))


def see(storage: Storage) -> dict[str, list[str]]:
    return see_all(storage, TABLES)


def last_notes(server: RestCatalogServer, table: str) -> dict[str, Any]:
    """What the last snapshot of a table notes."""
    snapshot = server.catalog.load_table(("default", table)).current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    noted = snapshot.summary.additional_properties
    return {name.removeprefix("dobo."): json.loads(each) for name, each in noted.items() if name.startswith("dobo.")}


def test_what_holds_for_lake_tables(rest: Storage) -> None:
    check_replaced_fenced_and_found(rest)


def test_all_tables_are_changed_by_one_transaction(rest: Storage, server: RestCatalogServer) -> None:
    put(rest, "old")
    outputs = rest.outputs(run="run-new", fence=2)
    ready = make_ready(rest, outputs, "new")
    outputs.claim([each[0] for each in ready])
    server.commits.clear()
    head = Noted("store", 7, "abc")
    outputs.publish(ready, head=head)
    assert server.commits == [["one", "two"]]
    assert see(rest) == {"one": ["new"], "two": ["new"]}
    assert [commit and commit.digest for commit in map(outputs.find_commit, (each[0] for each in ready))] == ["new"] * 2
    for table in TABLES:
        noted = last_notes(server, table)
        assert (noted["together"], noted["history"]) == (["default.one", "default.two"], head._asdict())
    outputs.publish(ready)
    assert server.commits == [["one", "two"]], "what is published is not published again"


def test_tables_that_are_gone_are_made_again(rest: Storage, server: RestCatalogServer) -> None:
    outputs = rest.outputs()
    ready = make_ready(rest, outputs, "new")
    for table in TABLES:
        server.catalog.drop_table(("default", table))
    server.commits.clear()
    outputs.publish(ready)
    assert (server.commits, see(rest)) == ([["one", "two"]], {"one": ["new"], "two": ["new"]})


def test_a_table_that_has_its_rows_is_left_out(rest: Storage, server: RestCatalogServer) -> None:
    outputs = rest.outputs()
    ready = make_ready(rest, outputs, "new")
    outputs.publish(ready[:1])
    outputs.publish(ready)
    assert server.commits == [["one"], ["two"]]
    assert see(rest) == {"one": ["new"], "two": ["new"]}
    assert ("together" in last_notes(server, "one"), last_notes(server, "two")["together"]) == (False, ["default.two"])


def test_a_catalog_that_does_not_offer_it_is_given_one_table_after_the_other(
    rest: Storage, server: RestCatalogServer
) -> None:
    server.offers_together = False
    put(rest, "new")
    assert server.commits == [["one"], ["two"]]
    assert see(rest) == {"one": ["new"], "two": ["new"]}


def test_nothing_is_changed_if_one_table_has_moved_on(rest: Storage, server: RestCatalogServer) -> None:
    """Another period is published in between: the catalog refuses all, then the run looks again."""
    put(rest, "old")
    other = rest.outputs(run="run-other", period="2026-02")
    waiting = make_ready(rest, other, "other", ("two",))
    seen = []

    def meanwhile() -> None:
        other.publish(waiting)
        seen.append(see(rest))

    server.before_commit = meanwhile
    server.commits.clear()
    put(rest, "new", fence=2)
    assert server.commits == [["one", "two"], ["two"], ["one", "two"]]
    assert (seen, see(rest)) == ([{"one": ["old"], "two": ["old", "other"]}], {"one": ["new"], "two": ["new", "other"]})


def test_a_run_that_a_later_one_has_overtaken_changes_no_table(rest: Storage) -> None:
    put(rest, "old")
    late = rest.outputs(run="run-late", fence=2)
    ready = make_ready(rest, late, "late")
    next_one = rest.outputs(run="run-next", fence=3)
    next_one.claim([WrittenOutput(20, rest.write(SIMPLE, table="two"), SIMPLE)])
    assert failure(lambda: late.publish(ready)).problem.code == "LEASE_LOST"
    assert see(rest) == {"one": ["old"], "two": ["old"]}


def test_an_answer_that_got_lost_can_be_asked_for_again(rest: Storage, server: RestCatalogServer) -> None:
    outputs = rest.outputs()
    ready = make_ready(rest, outputs, "new")
    server.after_commit = lambda: 502
    failed = failure(lambda: outputs.publish(ready))
    assert (type(failed.problem), failed.retry_helps) == (OutputWrite, True)
    outputs.publish(ready)
    assert (server.commits, see(rest)) == ([["one", "two"]], {"one": ["new"], "two": ["new"]})


def test_whether_a_catalog_answers(rest: Storage) -> None:
    answer = rest.port.open(rest.source).call()
    assert answer is not None
    assert (answer.detail, answer.works) == ("the catalog answers", True)
    away = rest.with_options(uri="http://127.0.0.1:9")
    answer = away.port.open(away.source).call()
    assert answer is not None
    assert (answer.works, "\n" in answer.detail) == (False, False)
    reading = failure(lambda: away.extract(away.use(SIMPLE)))
    assert (type(reading.problem), reading.retry_helps) == (DataLoad, True)
    writing = failure(lambda: away.outputs().check(WrittenOutput(10, away.write(SIMPLE), SIMPLE)))
    assert (type(writing.problem), writing.retry_helps) == (OutputWrite, True)


def test_a_catalog_and_a_store_both_answer(rest: Storage, object_server: ObjectServer) -> None:
    bucket = object_server.fresh_bucket()
    for warehouse, works in ((f"{bucket}/x", True), ("s3://nobody-has-this/x", False)):
        both = rest.with_options(warehouse=warehouse)
        answer = both.port.open(both.source).call()
        assert answer is not None
        assert (answer.detail.startswith(f"the catalog answers; {warehouse}"), answer.works) == (True, works)
