"""The page of what changed: nothing is taken for HTML, and a waterfall has a bar for each part."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal

from dobonomodo.runs.attribution import Attribution, Line
from dobonomodo.runs.difference import ColumnDifference, RunDifference, TableDifference, ValueChange
from dobonomodo.runs.report.difference import render_difference

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
    largest=(ValueChange((None,), "net", None, "<i>", "changed"),),
)


def test_the_page() -> None:
    found = RunDifference("r1", "r2", (TABLE,), attribution=WHY)
    page = render_difference(found, title="What <changed>", made_at=AT)
    assert ("rows of &lt;b&gt;" in page, "<b>" in page, "<i>" in page) == (True, False, False)
    bars = re.findall(r'<rect x="(\d+)" y="3" width="(\d+)"', page)
    assert bars == [("0", "1000"), ("333", "667")]
    assert "1,224.50" in page
    assert "<script" not in page


def test_a_page_without_differences() -> None:
    page = render_difference(RunDifference("r1", "r1", ()), title="same", made_at=AT)
    assert "are the same" in page
    assert "<svg" not in page
