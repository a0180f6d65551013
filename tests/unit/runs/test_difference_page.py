"""The page of what changed: nothing is taken for HTML, and a waterfall has a bar for each part."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

from dobonomodo.problems.run import InputChanged
from dobonomodo.runs.attribution import Attribution, Line
from dobonomodo.runs.difference import (
    ColumnDifference,
    KindDifference,
    LockedComparison,
    RunDifference,
    TableDifference,
    ValueChange,
)
from dobonomodo.runs.report import render_report
from dobonomodo.runs.report.difference import WIDTH, find_waterfalls, render_difference
from tests.unit.runs.reporting import make_view

AT = datetime(2026, 2, 3, tzinfo=UTC)
LINE = Line("sales", "net", Decimal("10.00"), Decimal("12.00"), (Decimal("6.00"), Decimal("-4.00"), Decimal("0.00")))
SAME = Line("sales", None, Decimal(3), Decimal(3), (Decimal(0), Decimal(0), Decimal(0)))
WHY = Attribution("r1", "r2", ("rows of <b>", "operation 3", "clock"), (("input",),) * 3, (LINE, SAME))
TABLE = TableDifference(
    table="sales",
    key=("id",),
    unpaired=None,
    rows_before=3,
    rows_after=3,
    added=1,
    removed=1,
    changed=1,
    columns=(ColumnDifference("net", 1, Decimal("10.00"), Decimal("1234.50"), is_number=True),),
    largest=(ValueChange((None,), "net", None, "<i>", "changed", is_number=False),),
)


def test_the_page() -> None:
    found = RunDifference("r1", "r2", (TABLE,), attribution=WHY)
    page = render_difference(found, title="What <changed>", made_at=AT)
    assert ("rows of &lt;b&gt;" in page, "<b>" in page, "<i>" in page) == (True, False, False)
    bars = re.findall(r'<rect x="(\d+)" y="3" width="(\d+)"', page)
    assert bars == [("0", "1000"), ("333", "667")]
    assert "1,224.50" in page
    assert page.index("before</td>") < page.index("<svg") < page.index("after</td>")
    assert "<script" not in page


def test_small_parts_have_bars_that_can_be_seen_within_the_picture() -> None:
    parts = (Decimal("0.01"), Decimal("1000.00"), Decimal("-0.01"))
    line = replace(LINE, before=Decimal("0.00"), after=Decimal("1000.00"), parts=parts)
    (waterfall,) = find_waterfalls(RunDifference("r1", "r2", (TABLE,), attribution=replace(WHY, lines=(line,))))
    assert [(each.x, each.width) for each in waterfall.bars] == [(0, 4), (0, WIDTH), (WIDTH - 4, 4)]


def test_kinds_of_rows_are_shown_one_by_one() -> None:
    """A sum over details and totals is not shown: it says nothing."""
    kinds = (
        KindDifference("loaded rows", "net", Decimal("5.00"), Decimal("617.25")),
        KindDifference("Totals", "net", Decimal("5.00"), Decimal("617.25")),
    )
    lines = tuple(replace(LINE, kind=kind.kind) for kind in kinds)
    found = RunDifference("r1", "r2", (replace(TABLE, kinds=kinds),), attribution=replace(WHY, by_kind=lines))
    page = render_difference(found, title="by kind", made_at=AT)
    assert ("612.25" in page, "1,224.50" in page, page.count("<svg")) == (True, False, 4)
    assert "sales, net: Totals" in page
    kept = LockedComparison("r0", found)
    assert LockedComparison.load(json.loads(json.dumps(kept.to_dict(), default=str))) == kept


def test_a_page_without_differences() -> None:
    page = render_difference(RunDifference("r1", "r1", ()), title="same", made_at=AT)
    assert "are the same" in page
    assert "<svg" not in page


def report(locked: LockedComparison | None) -> str:
    return render_report(make_view(locked=locked), plan=None, resumable=False, made_at=AT)


def test_the_report_of_a_run_shows_what_it_changed_in_a_locked_result() -> None:
    page = report(LockedComparison("r0", RunDifference("r0", "r2", (TABLE,), attribution=WHY)))
    assert len(re.findall("<svg", page)) == 2
    assert "sales: 1 rows added, 1 removed, 1 changed." in page
    assert 'href="#locked"' in page
    assert "The rows are the same." in report(LockedComparison("r0", RunDifference("r0", "r2", ())))
    assert "INPUT_CHANGED" in report(LockedComparison("r0", None, (InputChanged(changes=("a file is gone",)),)))
    assert "locked" not in report(None)


def test_what_was_kept_of_a_comparison_is_read_again() -> None:
    found = LockedComparison("r0", RunDifference("r0", "r2", (TABLE,), ("old",), ("new",), ("note",), WHY))
    text = json.dumps(found.to_dict(), default=str)
    assert LockedComparison.load(json.loads(text)) == found
    refused = LockedComparison("r0", None, (InputChanged(changes=("a file is gone",)),))
    read = LockedComparison.load(json.loads(json.dumps(refused.to_dict())))
    assert [problem.code for problem in read.problems] == ["INPUT_CHANGED"]
