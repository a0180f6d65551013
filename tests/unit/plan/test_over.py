"""Values over partitions: their types, their SQL, and what they refuse."""

from __future__ import annotations

import pytest

from dobonomodo.formula import ColumnRef, render_formula
from dobonomodo.formula.types import DATE, INTEGER, TEXT, DecimalType
from dobonomodo.plan.over import Order, Over, WindowFunction
from dobonomodo.problems import InternalError
from tests.world import JANUARY

REGION = ColumnRef("region", None, TEXT)
DAY = ColumnRef("day", None, DATE)
AMOUNT = ColumnRef("amount", None, DecimalType(15, 2))
NUMBER = ColumnRef("n", None, INTEGER)
RANK = Over(WindowFunction.ROW_NUMBER, partition=(REGION,), order=(Order(DAY), Order(AMOUNT, descending=True)))


@pytest.mark.parametrize(
    ("over", "kind", "sql"),
    [
        (Over(WindowFunction.SUM, AMOUNT), "decimal(25,2)", "sum(`amount`) OVER ()"),
        (Over(WindowFunction.COUNT, DAY, (REGION,)), "integer", "count(`day`) OVER (PARTITION BY `region`)"),
        (Over(WindowFunction.SMALLEST, DAY, (REGION, DAY)), "date", "min(`day`) OVER (PARTITION BY `region`, `day`)"),
        (
            Over(WindowFunction.SUM, NUMBER, (REGION,), (Order(DAY),), running=True),
            "decimal(29,0)",
            "sum(CAST(`n` AS DECIMAL(19,0))) OVER (PARTITION BY `region` ORDER BY `day` ASC NULLS FIRST "
            "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
        ),
        (
            RANK,
            "integer",
            "CAST(row_number() OVER (PARTITION BY `region` ORDER BY `day` ASC NULLS FIRST, `amount` DESC NULLS LAST) AS BIGINT)",
        ),
    ],
)
def test_type_and_sql(over: Over, kind: str, sql: str) -> None:
    assert str(over.type) == kind
    assert over.render(lambda expression: render_formula(expression, JANUARY)) == sql


def test_what_it_reads() -> None:
    assert RANK.expressions == (REGION, DAY, AMOUNT)


@pytest.mark.parametrize(
    "given",
    [
        {"function": WindowFunction.SUM},
        {"function": WindowFunction.ROW_NUMBER},
        {"function": WindowFunction.ROW_NUMBER, "argument": AMOUNT, "order": (Order(DAY),)},
        {"function": WindowFunction.ROW_NUMBER, "order": (Order(DAY),), "running": True},
        {"function": WindowFunction.SUM, "argument": AMOUNT, "running": True},
        {"function": WindowFunction.SUM, "argument": AMOUNT, "order": (Order(DAY),)},
    ],
)
def test_what_makes_no_sense(given: dict[str, object]) -> None:
    with pytest.raises(InternalError):
        Over(**given)  # type: ignore[arg-type]
