"""Rows and totals of outputs without Spark, or not at all."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from dobonomodo.why import totals
from tests.unit.why.orders import ALL, ROWS, Asked, Given
from tests.world import JANUARY


def sums(rows: Given = ROWS) -> Any:
    asked = Asked(ALL, rows)
    return totals.sum_outputs(asked.plan, JANUARY, asked.rows, as_of=None)


def test_rows_and_totals_of_an_output() -> None:
    # Three orders that are not empty, two totals of them, one budget.
    columns = {"amount": Decimal("225.00"), "net": Decimal("120.00"), "total": Decimal("120.00"), "number": Decimal(4)}
    found = sums()[90]
    assert (found.rows, found.totals) == (6, columns)


def test_totals_of_no_rows_have_the_digits_of_their_columns() -> None:
    found = sums({"orders": [], "customers": [], "budget": []})
    zero = {"amount": "0.00", "net": "0.00", "total": "0.00", "number": "0"}
    assert (found[90].rows, found[90].kinds) == (0, ())
    assert {name: str(value) for name, value in found[90].totals.items()} == zero


def test_each_kind_of_rows_has_its_totals() -> None:
    found = sums()[90]
    assert [(kind.label, kind.rows, kind.totals["amount"], kind.totals["total"]) for kind in found.kinds] == [
        ("loaded rows", 3, Decimal("135.00"), Decimal("0.00")),
        ("Totals", 2, Decimal("0.00"), Decimal("120.00")),
        ("Budget", 1, Decimal("90.00"), Decimal("0.00")),
    ]


def test_many_rows_and_rows_that_stop_a_run_are_for_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    repeated = [*ROWS["customers"], {"id": "C2", "tier": "gold", "_period_from": "2025-06-01", "_period_to": None}]
    assert sums({**ROWS, "customers": repeated}) is None
    monkeypatch.setattr(totals, "FEW_ROWS", 3)
    assert sums() is None
