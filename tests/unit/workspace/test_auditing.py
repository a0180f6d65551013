"""Audits of files that people open: what was changed or is gone is found, what a later run replaced is not."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from typing import Any

import pytest

from dobonomodo.problems.audit import OutputChanged
from dobonomodo.runs import take_snapshot
from dobonomodo.runs.snapshot import FORMAT
from dobonomodo.storage import Inspected, Storages
from dobonomodo.store import Run
from dobonomodo.workspace import package
from tests.unit.plan.building import WORLD_BUILT, output, plan_of
from tests.unit.workspace.conftest import Office
from tests.world import FIRST_QUARTER

NAMED = "results/out-2026-01.csv"
PLAN = plan_of(
    output('{type: csv, file: "results/out-{{period}}.csv"}', seq=1) + output("{datasource_id: lake, table: t}", seq=2)
)


def put(office: Office, content: str, *, data: Mapping[str, Any] | None = None) -> Run:
    """A run that wrote the file that people open."""
    path = office.root / NAMED
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    location = {"kind": "csv", "folder": "lake/out", "data": "lake/out/1/data", "files": [], "named": NAMED}
    location |= {"named_sha256": package.sha256(content.encode()), **(data or {})}
    output = {"seq": 90, "table": "out", "destination": "lake:out", "rows": 3, "digest": "d-3", "location": location}
    return office.put_run(progress={"outputs": [output]})


def find_details(office: Office) -> list[tuple[str, str]]:
    problems = office.at_desk("ann").audit().problems
    assert all(isinstance(each, OutputChanged) for each in problems), problems
    return [(each.run, each.detail) for each in problems if isinstance(each, OutputChanged)]


def test_a_file_that_was_changed_or_is_gone_is_found(office: Office) -> None:
    run, path = put(office, "1"), office.root / NAMED
    assert find_details(office) == []
    assert office.at_desk("ann").audit().files == 1
    path.write_text("2")
    assert find_details(office) == [(run.id, f"`{path}` is not what the run wrote")]
    path.unlink()
    assert find_details(office) == [(run.id, f"`{path}` is missing")]


def test_a_later_run_replaces_the_file(office: Office) -> None:
    put(office, "1")
    later = put(office, "2")
    assert find_details(office) == []
    (office.root / NAMED).write_text("1")
    assert find_details(office) == [(later.id, f"`{office.root / NAMED}` is not what the run wrote")]


def publish(office: Office, intent: list[int], **changes: Any) -> Run:
    """A run that stopped while it published outputs."""
    snapshot = take_snapshot(
        PLAN,
        FIRST_QUARTER,
        as_of=None,
        version=1,
        status="active",
        datasets=WORLD_BUILT.datasets.by_id["sales"],
        resolvers=[],
        datasources=WORLD_BUILT.definitions.datasources,
        together=None,
        inputs=None,
        versions={},
    )
    changed = json.loads(json.dumps({**snapshot, **changes}))
    return office.put_run(status="running", snapshot=changed, progress={"outputs": [], "intent": intent})


@pytest.mark.parametrize("changes", [{}, {"format": FORMAT + 1}], ids=["known", "of a later program"])
def test_a_run_that_is_publishing_may_have_replaced_the_file(office: Office, changes: dict[str, Any]) -> None:
    first = put(office, "1")
    (office.root / NAMED).write_text("2")
    later = publish(office, [1], **changes)
    found = office.at_desk("ann").audit()
    assert found.problems == ()
    assert f"output out of run {first.id}: run {later.id} is publishing to `{NAMED}`" in found.unproved


@pytest.mark.parametrize("intent", [[2], []], ids=["another output", "all is recorded"])
def test_a_run_that_publishes_something_else_hides_no_damage(office: Office, intent: list[int]) -> None:
    first = put(office, "1")
    (office.root / NAMED).write_text("2")
    publish(office, intent)
    assert find_details(office) == [(first.id, f"`{office.root / NAMED}` is not what the run wrote")]


def test_a_file_that_cannot_be_read_hides_no_other_damage(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    run = put(office, "1", data={"files": ["part.csv"], "hashes": ["0" * 64]})

    def refuse(_: Storages, stored: object) -> Inspected:
        del stored
        raise OSError(errno.EIO, "the store does not answer")

    monkeypatch.setattr(Storages, "inspect_named", refuse)
    assert find_details(office) == [(run.id, f"`{office.root}/lake/out/1/data/part.csv` is missing")]
    told = f"output out of run {run.id}: `{NAMED}` cannot be read ([Errno 5] the store does not answer)"
    assert told in office.at_desk("ann").audit().unproved
