"""Audits of files that people open: what was changed or is gone is found, what a later run replaced is not."""

from __future__ import annotations

from typing import Any

from dobonomodo.problems.audit import OutputChanged
from dobonomodo.store import Run
from dobonomodo.workspace import package
from tests.unit.workspace.conftest import Office

NAMED = "results/out.csv"


def put(office: Office, content: str, *, status: str = "completed", **progress: Any) -> Run:
    """A run that wrote the file that people open."""
    path = office.root / NAMED
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    location = {"kind": "csv", "folder": "lake/out", "data": "lake/out/1/data", "files": [], "named": NAMED}
    location["named_sha256"] = package.sha256(content.encode())
    output = {"seq": 90, "table": "out", "destination": "lake:out", "rows": 3, "digest": "d-3", "location": location}
    return office.put_run(status=status, progress={"outputs": [output], **progress})


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


def test_a_run_that_is_publishing_may_have_replaced_the_file(office: Office) -> None:
    put(office, "1")
    put(office, "2", status="running", outputs=[], intent=[90])
    assert find_details(office) == []
