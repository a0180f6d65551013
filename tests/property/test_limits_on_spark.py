"""Formulas as large as they may be still compile and run on Spark as it is configured by default."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from dobonomodo.formula import Columns, Scope, check_formula
from dobonomodo.formula.parse import MAX_DEPTH
from dobonomodo.problems import Passage
from tests.property.on_spark import COMPILED, INTERPRETED, Formula, compare, settings_of
from tests.property.strategies import OWN, SCOPE, Drawing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEPTH = MAX_DEPTH - 3


def nested(opening: str, inner: str, closing: str, *, most: int = DEPTH) -> str:
    """As many levels as are accepted."""
    for levels in range(most, 0, -1):
        text = opening * levels + inner + closing * levels
        if check_formula(Passage.alone(text), SCOPE).tree is not None:
            return text
    raise AssertionError(opening)


LARGE = {
    "IF in the last place": nested("IF(paid, 1, ", "quantity", ")"),
    "IF in the condition": nested("IF(", "paid", ", in_scope, fx.live)"),
    "CASE": nested("CASE WHEN quantity > 3 THEN 1 ELSE ", "count_of", " END"),
    "IFS": nested("IFS(in_scope, ", "quantity", ", paid, 0)"),
    "SWITCH": nested("SWITCH(quantity, 1, ", "2", ", 3)"),
    "parentheses": nested("(", "quantity", ")"),
    "sum of integers": " + ".join(["small"] * (DEPTH - 1)),
    "sum of wide decimals": " + ".join(["wide"] * (DEPTH - 1)),
    "sum to the right": nested("rate + (", "wide", ")"),
    "sum of every type": " + ".join(("amount", "rate", "fine", "small", "share")[at % 5] for at in range(DEPTH - 1)),
    "product": "rate" + " * share" * (DEPTH - 2),
    "product to the right": nested("1.00000001 * (", "wide", ")"),
    "quotient": "wide" + " / 1.1" * (DEPTH - 2),
    "ROUND": nested("ROUND(", "wide", ", 2)"),
    "ROUNDUP": nested("ROUNDUP(", "wide", ", 2)", most=5),
    "MOD": nested("MOD(", "wide", ", 7.5)"),
    "MOD to the right": nested("MOD(7.5, ", "wide", ")", most=4),
    "ABS": nested("ABS(", "wide", ")"),
    "negation": nested("- ", "wide", ""),
    "NOT": nested("NOT ", "paid", ""),
    "UPPER": nested("UPPER(", "note", ")"),
    "REPLACE": nested("REPLACE(", "note", ', "a", "b")'),
    "MID": nested("MID(", "note", ", quantity, 3)"),
    "CONCAT": nested("CONCAT(", "note", ', "x")'),
    "text joined": " & ".join(["note"] * (DEPTH - 1)),
    "COALESCE": nested("COALESCE(NULL, ", "note", ")"),
    "MIN": nested("MIN(3, ", "wide", ")"),
    "TEXT and VALUE": nested("VALUE(TEXT(", "wide", ', "0.00"))'),
    "TEXT with zeros": nested("VALUE(TEXT(", "wide", ', "000.00"))', most=3),
    "DATEADD": nested("DATEADD(", "day", ", 1)"),
    "EDATE": nested("EDATE(", "day", ", 1)"),
    "comparisons": nested("(", "paid", " = in_scope)"),
    "300 AND": " AND ".join(f"quantity <> {at}" for at in range(300)),
    "300 OR": " OR ".join(f"wide = {at}.5" for at in range(300)),
    "300 AND of calls": "AND(" + ", ".join(f"quantity <> {at}" for at in range(300)) + ")",
    "2,000 IN": "quantity IN (" + ", ".join(map(str, range(2_000))) + ")",
    "2,000 IN of decimals": "wide IN (" + ", ".join(f"{at}.{at}" for at in range(2_000)) + ")",
    "2,000 IN of texts": "note IN (" + ", ".join(f'"{at}"' for at in range(2_000)) + ")",
    "300 branches": "CASE " + " ".join(f"WHEN quantity = {at} THEN {at}" for at in range(300)) + " END",
    "300 arguments": "COALESCE(" + ", ".join(["quantity"] * 300) + ")",
    "300 MAX": "MAX(" + ", ".join(["wide"] * 300) + ")",
}


INTERPRETED_TOO = (
    "IF in the last place",
    "product",
    "MOD",
    "REPLACE",
    "300 OR",
    "2,000 IN of decimals",
    "300 branches",
)


@pytest.mark.parametrize(
    ("name", "mode"), [*((name, COMPILED) for name in LARGE), *((name, INTERPRETED) for name in INTERPRETED_TOO)]
)
def test_the_largest_formulas_run(spark: SparkSession, name: str, mode: dict[str, str]) -> None:
    checked = check_formula(Passage.alone(LARGE[name]), SCOPE)
    assert checked.tree is not None, checked.problems
    drawing = Drawing(random.Random(7).randint)
    rows = [drawing.row() for _ in range(4)]
    with settings_of(spark, mode):
        assert compare(spark, [Formula(name, checked.tree)], rows) == []


def test_selectors_count_as_what_they_stand_for(spark: SparkSession) -> None:
    """As deep as an expression with selectors may be."""
    inner = nested("IF(paid, ", "in_scope", ", fx.live)")
    scope = Scope(
        columns=Columns(OWN),
        joined=SCOPE.joined,
        selectors={"INNER": Passage.alone(inner), "OUTER": Passage.alone("NOT {{INNER}}")},
    )
    for levels in range(DEPTH, 0, -1):
        text = "IF(paid, " * levels + "{{INNER}}" + ", fx.live)" * levels
        checked = check_formula(Passage.alone(text), scope)
        if checked.tree is not None:
            break
    else:
        text = "{{INNER}}"
        checked = check_formula(Passage.alone(text), scope)
    assert checked.tree is not None
    drawing = Drawing(random.Random(7).randint)
    assert compare(spark, [Formula(text, checked.tree)], [drawing.row() for _ in range(4)]) == []
