from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dobonomodo.model.locale import LOCALES
from dobonomodo.plan.check import CheckResult
from dobonomodo.plan.counts import JoinCounts, OperationCounts, UnmatchedKey
from dobonomodo.plan.dataset import recorded_key
from dobonomodo.problems.recorded import load_problem
from dobonomodo.runs.comparison import Other
from dobonomodo.runs.control import Overridden, Signed
from dobonomodo.runs.figures import Figures, FirstRows, OutputFigures
from dobonomodo.runs.progress import Progress
from dobonomodo.runs.report import Link, Links, render_index, render_report
from dobonomodo.storage.table_target import StoredTable
from dobonomodo.workspace import Workspace
from tests.unit.runs.reporting import SNAPSHOT, Page, make_figures, make_output, make_view
from tests.world import CLOCK

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
    page = make_page(warnings=(load_problem({"code": "W", "severity": "warning", "message": "look"}),))
    wanted = [
        "Close, 2026-01completed",
        "Result",
        "How it was computed",
        "Warnings",
        "Overrides and sign-offs",
        "For engineers",
    ]
    assert [each for each in page.headings if each in wanted] == wanted
    assert page.words.index("d-3") > page.words.index("For engineers")


def test_what_people_decided_is_shown() -> None:
    override = Overridden("late invoice", "ann", CLOCK, ("bob",))
    signed = (Signed("cy", CLOCK, "totals agree"), Signed("dora", CLOCK, None, "run 7 came later"))
    words = make_page(override=override, signed=signed).words
    for expected in ("late invoice", "approved by bob", "totals agree", "run 7 came later"):
        assert expected in words
    assert "Nobody has signed" in make_page().words


def test_the_top_says_that_nobody_has_signed() -> None:
    assert "not signed" in make_page().words
    assert "not signed" in make_page(signed=(Signed("dora", CLOCK, None, "run 7 came later"),)).words
    signed = make_page(signed=(Signed("cy", CLOCK, "totals agree"),)).words
    assert "not signed" not in signed
    assert "signed by cy" in signed
    assert "not signed" not in make_page(draft=True).words
    assert "not signed" not in make_page(status="failed").words
    assert ["of a failed run" in make_page(status=status).words for status in ("failed", "completed")] == [True, False]


def test_the_top_says_whether_checks_hold_and_who_signed() -> None:
    kinds = (("passed", "stop"), ("passed", "stop"), ("failed", "warn"), ("failed", "stop"))
    checks = tuple(
        CheckResult(seq, "c", "TRUE", severity, status, "rows", 1)  # type: ignore[arg-type]
        for seq, (status, severity) in enumerate(kinds)
    )
    signed = (Signed("cy", CLOCK, None), Signed("dora", CLOCK, None, "run 7 came later"))
    top = make_page(checks=checks, signed=signed).words.split("Result")[0]
    assert "1 check failed 1 check warned 2 checks passed signed by cy" in " ".join(top.split())
    assert "dora" not in top
    assert "Overrides and sign-offs" not in make_page(draft=True).words


@pytest.mark.parametrize(
    "where",
    ["project", "by", "operation", "table", "destination", "problem", "period", "version", "figures", "decision"],
)
def test_whatever_was_typed_is_text(where: str) -> None:
    project = {**SNAPSHOT["project"], "name": NASTY, "document": {"name": NASTY}}
    words = {"code": NASTY, "message": NASTY, "hint": NASTY, "notes": [NASTY], "expression": NASTY}
    problem = load_problem({"severity": "error", **words})
    reading = {"operation_seq": 0, "alias": NASTY, "role": "input", "dataset": NASTY, "version": 1, "table": "t"}
    first = FirstRows((NASTY,), (NASTY,), ((NASTY,),))
    join = JoinCounts(10, NASTY, NASTY, (NASTY,), 0, 1, (UnmatchedKey((NASTY,), 1),))
    nasty = Figures(
        {NASTY: None}, (OutputFigures(90, NASTY, NASTY, 3, {NASTY: None}, first),), {10: {NASTY: None}}, (join,)
    )
    changes: dict[str, dict[str, Any]] = {
        "project": {"project": NASTY, "snapshot": {**SNAPSHOT, "project": project}},
        "by": {"by": NASTY},
        "decision": {
            "override": Overridden(NASTY, NASTY, CLOCK, (NASTY,)),
            "signed": (Signed(NASTY, CLOCK, NASTY, NASTY),),
        },
        "operation": {"operations": (OperationCounts(1, NASTY, "update", 1, 1, 0, 0, 1),)},
        "table": {"outputs": {NASTY: make_output(NASTY, columns={NASTY: NASTY}, digest=NASTY)}},
        "figures": {"figures": nasty},
        "destination": {"outputs": {"t": make_output(destination=NASTY, location=StoredTable("lake", None, "t"))}},
        "problem": {"problems": (problem,), "warnings": (problem,)},
        "period": {"period": NASTY, "snapshot": {**SNAPSHOT, "readings": [reading]}},
        "version": {"snapshot": {**SNAPSHOT, "versions": {NASTY: NASTY}}},
    }  # fmt: skip
    page = make_page(**changes[where])
    assert "script" not in page.tags
    shown = json.dumps(NASTY, ensure_ascii=False)[1:-1]
    assert NASTY in page.words or shown in page.words


def test_letters_of_any_language_are_shown_as_they_are() -> None:
    project = {**SNAPSHOT["project"], "document": {"name": "Größe"}}
    page = make_page(snapshot={**SNAPSHOT, "project": project, "versions": {"Übung": 1}})
    assert page.words.count('"name": "Größe"') == 2
    assert "Übung" in page.words


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


# --- figures


def make_figured(**changes: Any) -> Page:
    others = (
        Other("previous run", "run-1", "2026-01", make_figures("1234567.00")),
        Other("period 2025-12", "run-0", "2025-12", make_figures("-1.00", rows=2)),
        Other("unknown run", "run-9", "2025-11", None),
    )
    view = make_view(figures=make_figures(), **changes.pop("view", {}))
    return Page(render_report(view, plan=None, resumable=False, made_at=CLOCK, others=others, **changes))


def test_totals_are_beside_those_of_other_runs() -> None:
    words = make_figured().cells
    at = words.index("amount")
    assert words[at : at + 8] == [
        "amount", "1,234,567.80", "1,234,567.00", "+0.80", "0.0", "-1.00", "+1,234,568.80", "+123,456,880.0",
    ]  # fmt: skip
    assert words[words.index("wide") + 1] == "unknown"
    assert words[words.index("rows") : words.index("rows") + 8] == ["rows", "3", "3", "0", "0.0", "2", "+1", "+50.0"]
    assert "unknown run" not in words


def test_numbers_are_written_as_the_locale_says() -> None:
    words = make_figured(locale=LOCALES["de"]).words
    assert "1.234.567,80" in words
    assert "1,234,567.80" not in words


def test_first_rows_joins_and_deleted_rows_are_shown() -> None:
    deleting = OperationCounts(20, "Drop", "delete", 3, 1, 0, 1, 3)
    page = make_figured(view={"operations": (*make_view().operations[:1], deleting)})
    assert {"Joins", "What was deleted"} <= set(page.headings)
    assert "currency = XXX" in page.words
    assert "currency = NULL" in page.words
    assert "by id" in page.words
    at = page.cells.index("7")
    assert page.cells[at : at + 4] == ["7", "1,234,567.80", "8", "–"]
    assert {"7", "8", "1,234,567.80"} <= set(page.numbers)


def test_texts_of_the_first_rows_are_not_aligned_as_numbers() -> None:
    page = make_figured(view={"outputs": {"out": make_output(columns={"id": "string", "amount": "decimal(15,2)"})}})
    assert "7" in page.cells
    assert "7" not in page.numbers


def test_the_files_that_were_read_are_listed() -> None:
    read = {"role": "input", "dataset": "sales", "version": 1, "table": "sales", "operation_seq": None, "alias": None}
    file = {"path": "data/2026/sales.csv", "size": 12345, "modified": 1767225600 * 10**9}
    pinned = {recorded_key(read): [{"name": "lake:2026", "files": [file] * 11}]}
    page = make_page(snapshot={**SNAPSHOT, "readings": [read], "inputs": pinned})
    (shown,) = [cell for cell in page.cells if "sales.csv" in cell]
    assert shown.count("sales.csv, 12,345 bytes, 2026-01-01 00:00") == 10
    assert shown.endswith("and 1 more files")


def test_an_operation_shows_the_totals_that_it_changed() -> None:
    page = make_figured()
    at = page.cells.index("+567.80")
    assert page.cells[at - 1] == "amount"
    assert "same" not in page.cells
    assert page.cells[page.cells.index("1,234,000.00") - 1] == "amount"


def test_a_run_without_figures_says_what_it_wrote() -> None:
    page = make_page()
    assert "Joins" not in page.headings
    assert "3 rows" in page.words


def test_figures_of_what_was_not_published_are_not_a_result() -> None:
    page = make_figured(view={"status": "failed", "outputs": {}})
    assert "Nothing was published" in page.words
    assert "1,234,567.80" not in page.words


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


def test_checks_are_in_the_report_with_what_they_found() -> None:
    sample = ((("id", "<3>"), ("rate", "NULL")),)
    failed = CheckResult(10, "Rates", "rate > 0", "stop", "failed", "rows", 4, 1, sample=sample)
    html, without = (
        render_report(make_view(checks=each), plan=None, resumable=False, made_at=CLOCK, links=Links())
        for each in ((failed,), ())
    )
    assert "1 of 4 rows violate it" in html
    assert "id = &lt;3&gt;, rate = NULL" in html
    assert "Checks" not in without


def test_parameters_are_shown_with_their_defaults_and_in_the_command() -> None:
    declared = {"uplift": {"type": "decimal(5,4)", "default": "0.03", "description": "Planned <increase>"}}
    project = {**SNAPSHOT["project"], "document": {"parameters": declared}}
    view = make_view(snapshot={**SNAPSHOT, "project": project, "parameters": {"uplift": "0.05"}})
    page = render_report(view, plan=None, resumable=False, made_at=CLOCK)
    assert "<td>uplift</td><td>0.05</td><td>0.03</td><td>Planned &lt;increase&gt;</td>" in page
    assert "--set uplift=0.05" in page
    assert "Parameters" not in render_report(make_view(), plan=None, resumable=False, made_at=CLOCK)
