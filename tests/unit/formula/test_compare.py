"""Comparison of decimals in Spark SQL: which side is rounded, and which way (C-90)."""

from __future__ import annotations

import pytest

from dobonomodo.formula import Scope
from dobonomodo.formula.compare import match_keys
from dobonomodo.formula.functions.signature import Argument
from dobonomodo.formula.typed import ColumnRef
from dobonomodo.formula.types import DecimalType
from tests.unit.formula.orders import columns_from, sql_in

COLUMNS = columns_from(big="decimal(38,0)", d="decimal(38,10)", tiny="decimal(38,30)", a="decimal(15,2)", n="integer")


@pytest.mark.parametrize(
    ("formula", "sql"),
    [
        # A common type of 38 digits: Spark compares by itself.
        ("a > d", "(`a` > `d`)"),
        ("n = d", "(CAST(`n` AS DECIMAL(19,0)) = `d`)"),
        ("a IN (1, d)", "(`a` IN (1BD, `d`))"),
        # The finer side is rounded to the places of the other: down for > and <=, up for < and >=.
        ("big > tiny", "(`big` > floor(`tiny`, 0))"),
        ("big <= tiny", "(`big` <= floor(`tiny`, 0))"),
        ("big < tiny", "(`big` < ceil(`tiny`, 0))"),
        ("big >= tiny", "(`big` >= ceil(`tiny`, 0))"),
        ("tiny < big", "(`big` > floor(`tiny`, 0))"),
        ("tiny >= big", "(`big` <= floor(`tiny`, 0))"),
        ("tiny > big", "(`big` < ceil(`tiny`, 0))"),
        ("tiny <= big", "(`big` >= ceil(`tiny`, 0))"),
        ("d = tiny", "(`d` >= ceil(`tiny`, 10) AND `d` <= floor(`tiny`, 10))"),
        ("tiny <> d", "(`d` < ceil(`tiny`, 10) OR `d` > floor(`tiny`, 10))"),
        ("d > 0.00000000005", "(`d` > floor(0.00000000005BD, 10))"),
        ("big BETWEEN tiny AND 7", "((`big` >= ceil(`tiny`, 0)) AND (`big` <= 7BD))"),
        ("big NOT BETWEEN 1 AND tiny", "(NOT ((`big` >= 1BD) AND (`big` <= floor(`tiny`, 0))))"),
        ("big IN (1, tiny)", "(`big` IN (1BD) OR (`big` >= ceil(`tiny`, 0) AND `big` <= floor(`tiny`, 0)))"),
        ("big NOT IN (tiny)", "(NOT ((`big` >= ceil(`tiny`, 0) AND `big` <= floor(`tiny`, 0))))"),
        ("NULLIF(a, d)", "nullif(`a`, `d`)"),
        (
            "NULLIF(tiny, big)",
            "CASE WHEN (`big` >= ceil(`tiny`, 0) AND `big` <= floor(`tiny`, 0)) THEN NULL ELSE `tiny` END",
        ),
        (
            "SWITCH(big, tiny, 1, 2)",
            "CASE WHEN (`big` >= ceil(`tiny`, 0) AND `big` <= floor(`tiny`, 0)) THEN 1L ELSE 2L END",
        ),
    ],
)
def test_comparison(formula: str, sql: str) -> None:
    assert sql_in(formula, Scope(columns=COLUMNS)) == sql


def test_items_of_a_list_are_together_only_while_one_type_holds_all() -> None:
    columns = columns_from(x="decimal(1,0)", whole="decimal(38,0)", part="decimal(37,37)")
    assert sql_in("x IN (whole, part)", Scope(columns=columns)) == "(`x` IN (`whole`) OR (`x` = `part`))"


def _column(name: str, precision: int, scale: int) -> Argument:
    return Argument(f"`{name}`", ColumnRef(name, None, DecimalType(precision, scale)))


def test_keys_of_a_join() -> None:
    narrow, mixed = _column("narrow", 15, 2), _column("mixed", 12, 8)
    big, tiny = _column("big", 38, 0), _column("tiny", 38, 30)
    rounded = "CASE WHEN floor(`tiny`, 0) = ceil(`tiny`, 0) THEN floor(`tiny`, 0) END"
    assert match_keys(narrow, mixed) == ("`narrow`", "`mixed`"), "neither side is rounded"
    assert match_keys(big, tiny) == ("`big`", rounded)
    assert match_keys(tiny, big) == (rounded, "`big`")
