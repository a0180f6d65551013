"""`dobo ls` and `dobo show`."""

from __future__ import annotations

from pathlib import Path

import pytest

from dobonomodo.workspace import Workspace
from dobonomodo.workspace.sampling import Sample
from tests.unit.cli.conftest import Dobo, change


def test_a_table(dobo: Dobo, sales: Path) -> None:
    result = dobo("ls", "projects")
    head, row = result.out.splitlines()
    assert (result.code, head.split(), row.split()) == (
        0,
        ["ID", "VERSION", "STATUS", "NAME"],
        ["monthly-sales", "-*", "draft", "Monthly", "sales"],
    )


@pytest.mark.parametrize(
    ("kind", "ids"),
    [
        ("projects", ["monthly-sales"]),
        ("datasets", ["d5e6f7g8-0000-0000-0000-000000000010", "sales-orders"]),
        ("resolvers", ["lake"]),
        ("datasources", ["ds-lake", "ds-warehouse"]),
        ("calendars", ["fiscal"]),
    ],
)
def test_only_names(dobo: Dobo, sales: Path, kind: str, ids: list[str]) -> None:
    assert dobo("ls", kind, "-o", "name").out.splitlines() == ids


@pytest.mark.parametrize("flags", [("--json",), ("-o", "json")])
def test_as_json(dobo: Dobo, sales: Path, flags: tuple[str, ...]) -> None:
    document = dobo("ls", "resolvers", *flags).document
    assert (document["schema"], document["data"][0]["id"]) == ("dobo/ls/1", "lake")


def test_versions_and_status(dobo: Dobo, stored: Path) -> None:
    dobo("apply", "--yes")
    dobo("activate", "monthly-sales")
    (row,) = dobo("ls", "projects", "--json").document["data"]
    assert (row["version"], row["changed"]) == (1, False)
    change(stored, "projects/monthly-sales.yaml", "orders.amount = 0", "orders.amount < 0")
    (row,) = dobo("ls", "projects", "--json").document["data"]
    assert row["changed"]


def test_the_status_is_one_word_for_programs(dobo: Dobo, stored: Path) -> None:
    dobo("apply", "--yes")
    dobo("activate", "monthly-sales")
    (row,) = dobo("ls", "projects", "--json").document["data"]
    assert row["status"] == "active"


def test_nothing_matched(dobo: Dobo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dobo.yaml").write_text("workspace: {}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert dobo("ls", "projects").code == 5
    result = dobo("ls", "projects", "--json")
    assert (result.code, result.document["data"]) == (5, [])


def test_all_about_one_thing(dobo: Dobo, sales: Path) -> None:
    result = dobo("show", "sales-orders")
    assert (result.code, result.err) == (0, "")
    assert "kind: dataset" in result.out
    assert "decimal(15,2)" in result.out
    document = dobo("show", "monthly-sales", "--json").document
    assert (document["schema"], document["data"]["kind"]) == ("dobo/show/1", "project")


def test_rows_of_what_there_is_not(dobo: Dobo, sales: Path) -> None:
    result = dobo("show", "sales-order", "--rows", "2", "--json")
    (problem,) = result.document["problems"]
    assert problem["code"] == "NOT_DEFINED"
    assert "sales-orders" in problem["hint"]


@pytest.mark.parametrize("failed_run", [None, "20260201-080000-000001"])
def test_rows_of_a_failed_run_are_marked(
    dobo: Dobo, sales: Path, monkeypatch: pytest.MonkeyPatch, failed_run: str | None
) -> None:
    sample = Sample({"failed_run": ({"id": 1},)}, failed_run=failed_run)
    monkeypatch.setattr(Workspace, "sample", lambda *_, **__: sample)
    document = dobo("show", "latest", "--rows", "1", "--json").document
    assert (document["schema"], document["failed_run"]) == ("dobo/show/1", failed_run)
    assert document["data"] == {"failed_run": [{"id": 1}]}
    assert ("which failed" in dobo("show", "latest", "--rows", "1").out) == (failed_run is not None)
