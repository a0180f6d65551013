"""The columns of several periods as those of one dataset (C-86)."""

from __future__ import annotations

import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType
from dobonomodo.plan.registration import unite_columns, widen


@pytest.mark.parametrize(
    ("one", "other", "wide"),
    [
        (INTEGER, INTEGER, INTEGER),
        (INTEGER, DecimalType(9, 2), DecimalType(21, 2)),
        (DecimalType(9, 2), DecimalType(15, 2), DecimalType(15, 2)),
        (DecimalType(9, 2), DecimalType(9, 4), DecimalType(11, 4)),
        (INTEGER, DecimalType(38, 19), DecimalType(38, 19)),
        (INTEGER, DecimalType(38, 20), None),
        (DecimalType(38, 0), DecimalType(1, 1), None),
        (TEXT, INTEGER, None),
        (DecimalType(9, 2), DATE, None),
        (DATE, TIMESTAMP, None),
        (BOOLEAN, INTEGER, None),
    ],
    ids=str,
)
def test_the_wider_of_two_types(one: Type, other: Type, wide: Type | None) -> None:
    assert (widen(one, other), widen(other, one)) == (wide, wide)


def test_columns_of_all_come_together() -> None:
    united = unite_columns([{"id": INTEGER, "a": TEXT}, {"b": DATE, "ID": DecimalType(5, 2)}, {"A": TEXT}])
    assert list(united.columns.items()) == [("id", DecimalType(21, 2)), ("a", TEXT), ("b", DATE)]
    assert united.conflicts == ()


def test_every_conflict_is_named_with_both_types() -> None:
    united = unite_columns([{"a": INTEGER, "b": DATE}, {"A": TEXT, "b": BOOLEAN}])
    assert united.conflicts == (("a", INTEGER, TEXT), ("b", DATE, BOOLEAN))


def test_a_type_that_nobody_recorded_is_that_of_the_others_or_text() -> None:
    united = unite_columns([{"a": None, "b": None}, {"a": INTEGER}, {"a": None}])
    assert dict(united.columns) == {"a": INTEGER, "b": TEXT}
