"""Exact shares."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dobonomodo.formula.typed import Literal, Operation
from dobonomodo.formula.types import BOOLEAN, DecimalType, as_decimal
from dobonomodo.plan.shares import in_units, power
from tests.unit.plan.parts import compute, part


@pytest.mark.parametrize(
    ("amount", "drivers", "parts"),
    [
        ("0.05", [1, 1, 1], ["0.02", "0.02", "0.01"]),
        ("-0.05", [1, 1, 1], ["-0.02", "-0.02", "-0.01"]),
        ("0.01", [1, 2, 2], ["0.00", "0.01", "0.00"]),
        ("0.02", [0, 1, 0, 1, 1], ["0.00", "0.01", "0.00", "0.01", "0.00"]),
        ("0.00", [3, 1], ["0.00", "0.00"]),
        ("1.00", [7], ["1.00"]),
    ],
)
def test_units_that_are_left_go_by_remainder_driver_and_key(amount: str, drivers: list[int], parts: list[str]) -> None:
    assert part(Decimal(amount), drivers, places=2, digits=19) == [Decimal(each) for each in parts]


def test_numbers_in_units() -> None:
    value = in_units(Literal(Decimal("12.34"), DecimalType(4, 2)), 2, 10)
    assert compute(value, {}) == 1234
    assert value.type == DecimalType(10, 0)
    assert as_decimal(power(-2).type) == DecimalType(2, 2)
    assert compute(Operation(">", (power(3), power(-3)), BOOLEAN), {}) is True
