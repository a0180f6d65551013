from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dobonomodo.plan.counts import OperationCounts
from dobonomodo.runs.progress import Progress
from dobonomodo.runs.report import Link, Links, render_index, render_report
from dobonomodo.storage.table_target import StoredTable
from dobonomodo.workspace import Workspace
from tests.unit.runs.reporting import CLOCK, SNAPSHOT, Page, make_output, make_view

NASTY = "</style><script>alert(1)</script>{{ 7 * 7 }} & \"quoted\" 'so'"


def make_page(**changes: Any) -> Page:
    links = changes.pop("links", None)
    resumable = changes.pop("resumable", False)
    return Page(render_report(make_view(**changes), plan=None, resumable=resumable, made_at=CLOCK, links=links))


def test_a_page_needs_nothing_else() -> None:
    page = make_page()
    assert {"script", "link", "img", "iframe"}.isdisjoint(page.tags)
    assert page.links == []
    assert page.tags.count("style") == 1


def test_what_a_controller_asks_comes_first_and_what_an_engineer_asks_last() -> None:
    page = make_page(warnings=({"code": "W", "severity": "warning", "message": "look"},))
    wanted = ["Close, 2026-01completed", "Result", "How it was computed", "Warnings", "For engineers"]
    assert [each for each in page.headings if each in wanted] == wanted
    assert page.words.index("d-3") > page.words.index("For engineers")


@pytest.mark.parametrize(
    "where", ["project", "by", "operation", "table", "destination", "problem", "period", "version"]
)
def test_whatever_was_typed_is_text(where: str) -> None:
    project = {**SNAPSHOT["project"], "name": NASTY, "document": {"name": NASTY}}
    problem = {
        "code": NASTY,
        "severity": "error",
        "message": NASTY,
        "hint": NASTY,
        "notes": [NASTY],
        "expression": NASTY,
    }
    reading = {"operation_seq": 0, "alias": NASTY, "role": "input", "dataset": NASTY, "version": 1, "table": "t"}
    changes: dict[str, dict[str, Any]] = {
        "project": {"project": NASTY, "snapshot": {**SNAPSHOT, "project": project}},
        "by": {"by": NASTY},
        "operation": {"operations": (OperationCounts(1, NASTY, "update", 1, 1, 0, 0, 1),)},
        "table": {"outputs": {NASTY: make_output(NASTY, columns={NASTY: NASTY}, digest=NASTY)}},
        "destination": {"outputs": {"t": make_output(destination=NASTY, location=StoredTable("lake", None, "t"))}},
        "problem": {"problems": (problem,), "warnings": (problem,)},
        "period": {"period": NASTY, "snapshot": {**SNAPSHOT, "readings": [reading]}},
        "version": {"snapshot": {**SNAPSHOT, "versions": {NASTY: NASTY}}},
    }  # fmt: skip
    page = make_page(**changes[where])
    assert "script" not in page.tags
    shown = json.dumps(NASTY, ensure_ascii=False)[1:-1]
    assert NASTY in page.words or shown in page.words


def test_links_lead_to_reports_that_are_there() -> None:
    links = Links(
        previous=Link("run-1", "2026-01", "run-1.html"),
        next=Link("run-3", "2026-01", None),
        previous_period=Link("run-0", "2025-12", "run-0.html"),
        index="index.html",
    )
    page = make_page(links=links)
    assert page.links == ["run-1.html", "run-0.html", "index.html"]
    assert "run-3" in page.words


def test_an_operation_says_what_it_was_told_to_do() -> None:
    workspace = Workspace.open(Path(__file__).parents[2] / "data/workspaces/sales")
    plan = workspace.plan("monthly-sales", period="2026-01").plan
    view = make_view(operations=Progress.begin(plan).operations)
    words = Page(render_report(view, plan=plan, resumable=False, made_at=CLOCK)).words
    assert 'where orders.region = "EMEA"' in words
    assert '{{active_orders}} is orders.status = "active"' in words
    assert 'IF(customers.tier = "gold", orders.amount * 0.9, orders.amount)' in words


def test_rows_that_were_changed_added_and_deleted_have_bars() -> None:
    operations = (
        OperationCounts(10, "Double", "update", 80, 20, 0, 0, 80),
        OperationCounts(20, "More", "append", 80, 20, 20, 0, 100),
        OperationCounts(30, "Less", "delete", 100, 50, 0, 50, 100),
        OperationCounts(40, "Later", "update"),
    )
    html = render_report(make_view(operations=operations), plan=None, resumable=False, made_at=CLOCK)
    bars = re.findall(r'<i class="(\w+)" style="width:([\d.]+)%"', html)
    assert bars == [
        ("blue", "20.0"),
        ("bar", "60.0"),
        ("bar", "80.0"),
        ("green", "20.0"),
        ("red", "50.0"),
        ("bar", "50.0"),
    ]
    assert "not reached" in Page(html).words


@pytest.mark.parametrize("resumable", [True, False])
def test_a_run_that_can_be_resumed_says_how(resumable: bool) -> None:
    assert ("dobo resume 20260203-080000-000001" in make_page(resumable=resumable).words) == resumable


def test_an_index_marks_the_runs_that_count() -> None:
    runs = [
        make_view(id="e", status="failed"),
        make_view(id="d", draft=True),
        make_view(id="c"),
        make_view(id="b"),
        make_view(id="a", period="2025-12"),
    ]
    html = render_index(runs, title=NASTY, links={"c": "c.html", "a": "a.html"}, made_at=CLOCK)
    page = Page(html)
    assert page.links == ["c.html", "a.html"]
    rows = html.split("<tr")[2:]
    assert [("font-weight" in row) for row in rows] == [False, False, True, False, True]
    assert "script" not in page.tags
