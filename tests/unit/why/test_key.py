"""Keys are read in the types of their columns."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from dobonomodo.formula.meaning import Value, as_value
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType, Type
from dobonomodo.why.key import read_key, show_key
from tests.world import refusal

MONEY = DecimalType(15, 2)
COLUMNS: dict[str, Type] = {"Id": TEXT, "n": INTEGER, "m": MONEY, "b": BOOLEAN, "d": DATE, "t": TIMESTAMP}


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("id", "007", "007"),
        ("Id", "NULL", None),
        ("n", " 7", 7),
        ("m", "7.5", Decimal("7.50")),
        ("m", Decimal("7.5"), Decimal("7.5")),
        ("b", "TRUE", True),
        ("d", "2026-01-31", as_value(date(2026, 1, 31))),
        ("d", date(2026, 1, 31), as_value(date(2026, 1, 31))),
    ],
)
def test_values(name: str, given: object, value: Value) -> None:
    assert list(read_key({name: given}, COLUMNS).values()) == [value]


def test_names_are_spelled_as_stored() -> None:
    assert list(read_key({"ID": "x"}, COLUMNS)) == ["Id"]


@pytest.mark.parametrize(("name", "given"), [("n", "x"), ("m", "NaN"), ("b", "yes"), ("d", "31.1.2026"), ("t", "noon")])
def test_wrong_values(name: str, given: str) -> None:
    (problem,) = refusal(read_key, {name: given}, COLUMNS)
    assert (problem.code, problem.value) == ("INVALID_KEY", given)  # type: ignore[attr-defined]


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    (problem,) = refusal(read_key, {"idd": "x"}, COLUMNS)
    assert problem.hint() == "did you mean `Id`?"


def test_a_key_for_people() -> None:
    assert show_key(read_key({"id": "x", "n": None}, COLUMNS)) == "Id = x, n = NULL"
