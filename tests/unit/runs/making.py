"""Figures as a run records them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from dobonomodo.plan.counts import JoinCounts, UnmatchedKey
from dobonomodo.runs.figures import Figures, FirstRows, OutputFigures

WIDE = Decimal("9" * 28 + "." + "9" * 10)


def make_figures(totals: Mapping[str, Decimal | None]) -> Figures:
    return Figures(
        loaded={"amount": Decimal("10.50"), "wide": WIDE},
        outputs=(OutputFigures(90, "out", "lake:out", 3, totals, FirstRows(("id", "x"), ("id",), (("1", None),))),),
        changes={10: {"amount": Decimal("-1.00"), "wide": None}},
        joins=(JoinCounts(10, "rates", "fx-rates", ("currency",), 2, 1, (UnmatchedKey(("XXX", None), 1),)),),
    )
