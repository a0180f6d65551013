"""What a row adds to a total: exact amounts that add up, or none."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dobonomodo.formula import ColumnRef, Typed
from dobonomodo.formula.evaluate import compute, evaluate_group
from dobonomodo.formula.print import print_checked
from dobonomodo.formula.types import TEXT
from dobonomodo.why.amount import adds_up, amount_of, arguments_of, simplify_amount
from tests.unit.why.orders import OUTPUT, Asked
from tests.world import JANUARY

ROWS = [
    {"status": "x", "amount": Decimal("100.00"), "net": Decimal("90.00")},
    {"status": "x", "amount": Decimal("30.05"), "net": None},
    {"status": "x", "amount": Decimal("-7.01"), "net": Decimal("0.50")},
]


KEYS = [ColumnRef("status", None, TEXT)]


def plan_total(expression: str) -> Typed:
    """A checked formula over groups by `status`."""
    step = Asked(
        f"""
    - seq: 10
      type: update
      arguments: {{assignments: [{{column: net, expression: amount}}]}}
    - seq: 20
      type: aggregate
      arguments: {{group_by: [status], aggregations: [{{column: total, expression: '{expression}'}}]}}
{OUTPUT}"""
    ).plan.steps[1]
    return step.lowered.formulas["total"].tree


@pytest.mark.parametrize(
    ("expression", "amounts"),
    [
        ("SUM(amount)", ["100.00", "30.05", "-7.01"]),
        ("SUM(net)", ["90.00", None, "0.50"]),
        ("SUM(amount) - SUM(net)", ["10.00", "30.05", "-7.51"]),
        ("-SUM(net)", ["-90.00", None, "-0.50"]),
        ("SUM(amount) * 1.25 + COUNT(net)", ["126.00", "37.5625", "-7.7625"]),
        ("2 * (SUM(amount) - SUM(net) - SUM(net))", ["-160.00", "60.10", "-16.02"]),
        ("SUM(amount) / 1000", ["0.1", "0.03005", "-0.00701"]),
        ("COUNT(*)", ["1", "1", "1"]),
        ("COUNT(net)", ["1", "0", "1"]),
        ("COUNT_IF(amount > 50)", ["1", "0", "0"]),
        ("COUNT_IF(amount > 50) - COUNT(*) / 4", ["0.75", "-0.25", "-0.25"]),
        ("ROUND(SUM(amount), 2)", ["100.00", "30.05", "-7.01"]),
        ("ZEROIFNULL(SUM(net))", ["90.00", None, "0.50"]),
        ("COALESCE(SUM(net), 0) + SUM(amount)", ["190.00", "30.05", "-6.51"]),
        ('SUM(IF(status = "x", amount, 0)) * LEN(status)', ["100.00", "30.05", "-7.01"]),
    ],
)
def test_amounts_of_rows_add_up_to_the_total(expression: str, amounts: list[str | None]) -> None:
    tree = plan_total(expression)
    amount = amount_of(tree, KEYS, JANUARY)
    assert amount is not None
    found = [compute(amount, row, JANUARY) for row in ROWS]
    assert found == [None if each is None else Decimal(each) for each in amounts]
    assert adds_up(evaluate_group(tree, ROWS, JANUARY).value, found)


@pytest.mark.parametrize(
    "expression",
    [
        "AVG(amount)",
        "SUM(amount) / SUM(net)",
        "SUM(amount) / 3",
        "SUM(amount) * COUNT(*)",
        "SUM(amount) + 1",
        "MAX_AGG(amount)",
        "COUNT_DISTINCT(amount)",
        "ABS(SUM(amount))",
        "ROUND(SUM(amount), 0) - SUM(net)",
        "IF(SUM(amount) > 0, SUM(amount), 0)",
        "MAX_AGG(status)",
    ],
)
def test_other_totals_have_no_amounts(expression: str) -> None:
    assert amount_of(plan_total(expression), (), JANUARY) is None


def test_a_total_that_was_rounded_is_not_the_sum() -> None:
    tree = plan_total("ROUND(SUM(amount), 1)")
    amount = amount_of(tree, (), JANUARY)
    assert amount is not None
    assert not adds_up(evaluate_group(tree, ROWS, JANUARY).value, [compute(amount, row, JANUARY) for row in ROWS])


def test_a_sum_with_no_values_at_all() -> None:
    rows = [{**row, "net": None} for row in ROWS]
    tree = plan_total("SUM(amount) - SUM(net)")
    amount = amount_of(tree, (), JANUARY)
    assert amount is not None
    assert not adds_up(evaluate_group(tree, rows, JANUARY).value, [compute(amount, row, JANUARY) for row in rows])
    assert adds_up(None, [None, None])


def test_the_text_of_an_amount_has_zeros_only_for_missing_numbers() -> None:
    amount = amount_of(plan_total("SUM(amount) - SUM(net)"), (), JANUARY)
    assert amount is not None
    shown = [print_checked(simplify_amount(amount, row, JANUARY)) for row in ROWS[:2]]
    assert shown == ["amount - net", "amount - CASE WHEN net IS NULL THEN 0 ELSE net END"]


def test_what_a_total_reads() -> None:
    tree = plan_total("ROUND(SUM(amount) / SUM(net) + AVG(net), 1) + COUNT(*)")
    assert list(arguments_of(tree)) == ["amount", "net"]
