"""Differences as records: what counts as one, and how they are written."""

from __future__ import annotations

import json
from decimal import Decimal

from dobonomodo.plan.counts import KindTotals, merge_kinds
from dobonomodo.runs.difference import ColumnDifference, KindDifference, RunDifference, TableDifference, ValueChange
from dobonomodo.workspace.diffing import compare_kinds


def table(**more: object) -> TableDifference:
    given = {"rows_before": 2, "rows_after": 2, "added": 0, "removed": 0, "changed": 0, "columns": ()}
    return TableDifference(table="t", key=("id",), unpaired=None, **{**given, **more})  # type: ignore[arg-type]


def test_a_column_differs_by_its_rows_or_by_its_total() -> None:
    assert not ColumnDifference("a", 0, Decimal(1), Decimal("1.0")).differs
    assert ColumnDifference("a", 1, Decimal(1), Decimal(1)).differs
    assert ColumnDifference("a", None, Decimal(1), Decimal(2)).difference == 1
    assert ColumnDifference("a", None, Decimal(1), None).difference is None


def test_a_row_that_is_not_there_counts_as_zero() -> None:
    assert ValueChange(("1",), "a", None, "7.00", "added").difference == Decimal("7.00")
    assert ValueChange(("1",), "a", "x", "y", "changed").difference is None


def test_a_text_of_digits_is_no_number() -> None:
    change = ValueChange(("1",), "account", "4000", "4100", "changed", is_number=False)
    assert (change.difference, change.shown) == (None, ("4000", "4100"))
    assert ValueChange.load(change.to_dict()) == change


def test_values_are_shown_as_totals_are() -> None:
    assert ValueChange(("1",), "a", "2650850.74", None, "changed").shown == ("2,650,850.74", "NULL")
    assert ValueChange(("1",), "a", None, "1234.5", "added").shown == ("", "1,234.5")
    assert ValueChange(("1",), "a", "-1234.5", None, "removed").shown == ("-1,234.5", "")


def test_totals_of_38_digits_are_exact() -> None:
    large, small = Decimal("9" * 38), Decimal("-" + "9" * 38)
    assert ColumnDifference("a", 1, small, large).difference == Decimal("1" + "9" * 37 + "8")


def test_a_run_differs_if_a_table_does() -> None:
    assert not RunDifference("a", "b", (table(),)).differs
    assert RunDifference("a", "b", (table(new_columns=("x",)),)).differs
    assert RunDifference("a", "b", (), only_after=("t",)).differs
    written = json.dumps(RunDifference("a", "b", (table(changed=3),)).to_dict(), default=str)
    assert json.loads(written)["tables"][0]["changed"] == 3


def test_operations_of_the_same_name_are_one_kind() -> None:
    large = Decimal("9" * 37 + ".9")
    kinds = [
        KindTotals(seq, "Totals", level, 2, {"net": net, "tax": tax})
        for seq, level, net, tax in (
            (20, None, large, None),
            (30, None, large, Decimal(1)),
            (30, "all", large, Decimal(1)),
        )
    ]
    assert merge_kinds(kinds) == {
        "Totals": (4, {"net": Decimal("1" + "9" * 37 + ".8"), "tax": None}),
        "Totals, all": (2, {"net": large, "tax": Decimal(1)}),
    }


def test_a_column_has_the_totals_of_all_kinds_or_of_none() -> None:
    one, two, three = Decimal(1), Decimal(2), Decimal(3)
    before = {
        ("a", None): one,
        ("a", "net"): two,
        ("a", "tax"): one,
        ("a", "old"): one,
        ("b", None): one,
        ("b", "tax"): None,
    }
    after = {("b", None): three, ("b", "net"): three, ("b", "tax"): two}
    # Of `tax` one total has too many digits; `old` is written by one of the runs alone.
    assert compare_kinds(before, after, ["net", "tax"]) == (
        KindDifference("a", None, one, Decimal(0)),
        KindDifference("a", "net", two, Decimal(0)),
        KindDifference("b", None, one, three),
        KindDifference("b", "net", Decimal(0), three),
    )
    assert compare_kinds({}, after, ["net"]) == ()
