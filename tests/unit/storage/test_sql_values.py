"""Values of drivers become values of a declared type, exactly or not at all."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType
from dobonomodo.problems.run import CELLS_AT_MOST
from dobonomodo.storage.findings import CheckedBatch
from dobonomodo.storage.sql_values import check_columns, convert_column
from tests.world import use_of

CENTS = DecimalType(15, 2)
NOON = datetime(2026, 1, 31, 12, 0, 0, 5, tzinfo=UTC)


def check(kind: Type, *values: Any, is_typed: bool = True, name: str = "x", required: bool = False) -> CheckedBatch:
    column = convert_column(values, kind, name=name, is_typed=is_typed)
    use = use_of({name: kind}, required=[name] if required else [])
    return check_columns([column], {name: kind}, use=use, place="t")


def read(kind: Type, value: Any, **more: Any) -> Any:
    """The value that is read; raises if it is refused."""
    checked = check(kind, None, value, **more)
    assert checked.counts == {}, checked.first
    found: list[Any] = checked.columns[0].to_pylist()
    assert found[0] is None
    return found[1]


def rule(kind: Type, value: Any, **more: Any) -> str:
    """Why a value is refused."""
    checked = check(kind, None, value, **more)
    ((at, cell),) = checked.first
    assert (at, cell.column, checked.counts) == (1, "x", {"x": 1})
    return cell.rule


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (TEXT, "a", "a"),
        (TEXT, UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (INTEGER, -(2**63), -(2**63)),
        (INTEGER, Decimal("7.00"), 7),
        (INTEGER, Decimal("1E+3"), 1000),
        (CENTS, Decimal("1234567890123.40"), Decimal("1234567890123.40")),
        (CENTS, Decimal("1E+3"), Decimal("1000.00")),
        (CENTS, 5, Decimal("5.00")),
        (CENTS, "5.1", Decimal("5.10")),
        (BOOLEAN, True, True),
        (BOOLEAN, 0, False),
        (BOOLEAN, 1, True),
        (DATE, date(1, 1, 1), date(1, 1, 1)),
        (DATE, datetime(2026, 1, 31), date(2026, 1, 31)),  # noqa: DTZ001
        (DATE, "2026-01-31", date(2026, 1, 31)),
        (TIMESTAMP, NOON, NOON),
        (TIMESTAMP, NOON.replace(tzinfo=None), NOON),
        (TIMESTAMP, NOON.astimezone(timezone(timedelta(hours=-5))), NOON),
        (TIMESTAMP, "2026-01-31 12:00:00.000005", NOON),
    ],
)
@pytest.mark.parametrize("is_typed", [True, False])
def test_exact_values(kind: Type, value: Any, expected: Any, is_typed: bool) -> None:
    assert read(kind, value, is_typed=is_typed) == expected


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (TEXT, b"a", "binary data"),
        (TEXT, 1.5, "not a text"),
        (INTEGER, True, "not a whole number"),
        (INTEGER, 1.0, "not a whole number"),
        (INTEGER, Decimal("1.5"), "not a whole number"),
        (INTEGER, Decimal("NaN"), "not a whole number"),
        (INTEGER, 2**63, "64-bit"),
        (CENTS, Decimal("0.001"), "decimal places"),
        (CENTS, Decimal("Infinity"), "not a number"),
        (CENTS, 10**13, "digits before the decimal point"),
        (CENTS, True, "not a number"),
        (CENTS, b"1", "binary data"),
        (CENTS, time(), "not a number"),
        (BOOLEAN, 2, "0 or 1"),
        (BOOLEAN, "true", "is a text"),
        (BOOLEAN, Decimal(1), "0 or 1"),
        (BOOLEAN, b"\x01", "binary data"),
        (DATE, NOON, "time of day"),
        (DATE, 20260131, "not a date"),
        (DATE, "0000-00-00", "not a date"),
        (TIMESTAMP, 0, "not a time"),
        (TIMESTAMP, timedelta(1), "not a time"),
    ],
)
@pytest.mark.parametrize("is_typed", [True, False])
def test_other_values_are_refused(kind: Type, value: Any, said: str, is_typed: bool) -> None:
    assert said in rule(kind, value, is_typed=is_typed)


@pytest.mark.parametrize(("kind", "value"), [(TEXT, 4711), (INTEGER, "12"), (CENTS, 0.1)])
def test_columns_with_types_have_values_of_these_types(kind: Type, value: Any) -> None:
    assert rule(kind, value, is_typed=True)
    assert str(read(kind, value, is_typed=False)) in (str(value), "0.10")


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.1, "0.10"), (1234567.89, "1234567.89"), (-9999999999999.99, "-9999999999999.99"), (1e12, "1000000000000.00")],
)
def test_binary_numbers_where_there_are_no_others(value: float, expected: str) -> None:
    assert str(read(CENTS, value, is_typed=False)) == expected


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.1 + 0.2, "17 digits"),
        (12345678901234.56, "16 digits"),
        (1.005, "3 decimal places"),
        (1e300, "digits before the decimal point"),
        (float("inf"), "not a number"),
    ],
)
def test_binary_numbers_that_are_no_exact_amounts(value: float, said: str) -> None:
    assert said in rule(CENTS, value, is_typed=False)


def test_days_of_validity_may_be_times() -> None:
    late = datetime(2026, 1, 31, 23, tzinfo=timezone(timedelta(hours=-5)))
    for name, value in (("_period_from", NOON), ("valid_from", NOON)):
        checked = check(DATE, value, name=name)
        assert bool(checked.counts) == (name == "valid_from")
    assert check(DATE, late, name="_period_to").columns[0].to_pylist() == [date(2026, 2, 1)]


def test_days_may_come_in_several_forms() -> None:
    day = date(2026, 1, 31)
    for name in ("x", "_period_to"):
        checked = check(DATE, day, "2026-01-31", datetime(2026, 1, 31), None, name=name)  # noqa: DTZ001
        assert (checked.columns[0].to_pylist(), checked.counts) == ([day, day, day, None], {})
    assert check(DATE, day, b"x", name="_period_to").counts == {"_period_to": 1}


def test_a_wrong_value_is_not_a_missing_one() -> None:
    checked = check(TEXT, None, b"x", "y", required=True)
    assert [(at, cell.value) for at, cell in checked.first] == [(0, None), (1, None)]
    assert ["NULL" in cell.rule for _, cell in checked.first] == [True, False]
    assert checked.counts == {"x": 2}


def test_all_are_counted_and_the_first_are_kept() -> None:
    for kind in (TEXT, INTEGER):
        checked = check(kind, *[b"x"] * 50)
        assert (len(checked.first), checked.counts) == (CELLS_AT_MOST, {"x": 50})


def test_long_values_are_shortened() -> None:
    for text, shown in (("x" * 1000, "x" * 60 + "..."), ("x" * 61, "x" * 60 + "..."), ("x" * 60, "x" * 60)):
        assert check(BOOLEAN, text).first[0][1].value == shown


def test_wrong_values_of_all_columns_come_in_the_order_of_rows() -> None:
    types: dict[str, Type] = {"a": TEXT, "b": INTEGER, "c": TEXT}
    given: dict[str, list[object]] = {"a": ["x", b"y", "z"], "b": [1.5, 2, Decimal("0.5")], "c": [None, 7, b"x"]}
    columns = [convert_column(given[name], kind, name=name, is_typed=True) for name, kind in types.items()]
    checked = check_columns(columns, types, use=use_of(types, required=["c"]), place="t")
    assert [(at, cell.column, cell.value) for at, cell in checked.first] == [
        (0, "b", "1.5"), (0, "c", None), (1, "a", None), (1, "c", "7"), (2, "b", "0.5"), (2, "c", None),
    ]  # fmt: skip
    assert checked.counts == {"a": 1, "b": 2, "c": 3}
    assert {cell.place for _, cell in checked.first} == {"t"}
