"""Waterfalls as text."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from dobonomodo.cli.waterfall import draw_bar, list_differences, name_number, render_waterfall
from dobonomodo.runs.attribution import Attribution, Line

UP = Line("t", "net", Decimal("10.00"), Decimal("12.00"), (Decimal("6.00"), Decimal("-4.00"), Decimal("0.00")))
SAME = Line("t", None, Decimal(3), Decimal(3), (Decimal(0), Decimal(0), Decimal(0)))
CANCELLED = Line("t", "tax", Decimal(3), Decimal(3), (Decimal(1), Decimal(-1), Decimal(0)))
FOUND = Attribution("a", "b", ("rows", "formula", "clock"), (("input",),) * 3, (UP, SAME, CANCELLED))


def test_a_number_from_before_to_after() -> None:
    assert list(render_waterfall(FOUND, UP)) == [
        ("before", "10.00", ""),
        ("rows", "+6.00", "+" * 32),
        ("formula", "-4.00", " " * 11 + "-" * 21),
        ("clock", "0", ""),
        ("after", "12.00", ""),
    ]


def test_numbers_that_differ_in_parts_are_shown_too() -> None:
    assert list_differences(FOUND) == [UP, CANCELLED]


def test_each_kind_of_rows_has_a_waterfall_of_its_own() -> None:
    details, totals = (replace(UP, kind=kind) for kind in ("loaded rows", "Totals"))
    found = replace(FOUND, by_kind=(details, totals))
    assert list_differences(found) == [details, totals, CANCELLED]
    assert [name_number(line) for line in list_differences(found)] == [
        "t, net: loaded rows",
        "t, net: Totals",
        "t, tax",
    ]


def test_a_bar_is_never_empty_and_never_too_long() -> None:
    assert draw_bar(1.0, 1.0, grows=True) == " " * 31 + "+"
    assert draw_bar(0.0, 0.0001, grows=False) == "-"
