"""Which stored types hold exactly what is declared, or less."""

from __future__ import annotations

import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType
from dobonomodo.storage.schema import find_differences, fits_stored, stored_type
from tests.world import use_of


@pytest.mark.parametrize(
    ("stored", "kind", "fits"),
    [
        ("bigint", INTEGER, True),
        ("tinyint", INTEGER, True),
        ("decimal(18,0)", INTEGER, False),
        ("double", INTEGER, False),
        ("int", DecimalType(21, 2), True),
        ("int", DecimalType(20, 2), False),
        ("decimal(10,2)", DecimalType(12, 2), True),
        ("decimal(10,2)", DecimalType(12, 4), True),
        ("decimal(10,2)", DecimalType(11, 4), False),
        ("decimal(10,2)", DecimalType(12, 1), False),
        ("string", DecimalType(12, 2), False),
        ("timestamp_ntz", TIMESTAMP, True),
        ("timestamp", DATE, False),
        ("date", DATE, True),
        ("boolean", BOOLEAN, True),
        ("string", TEXT, True),
        ("int", TEXT, False),
    ],
)
def test_a_stored_type_holds_what_is_declared(stored: str, kind: Type, fits: bool) -> None:
    assert fits_stored(stored, kind) is fits


def test_every_difference_is_found() -> None:
    use = use_of(
        {"id": INTEGER, "amount": DecimalType(15, 2), "note": TEXT}, required=["id"], optional=frozenset({"note"})
    )
    stored = [("ID", "string"), ("id", "bigint"), ("more", "int"), ("_period_from", "timestamp"), ("_deleted", "int")]
    assert find_differences(stored, use) == (
        "column `id` occurs twice; names are compared without regard to case",
        "column `amount` is missing",
        "column `more` is not declared",
        "system column `_deleted` is int, should be boolean",
    )


def test_the_type_in_which_a_column_is_read() -> None:
    use = use_of({"Id": INTEGER})
    assert [stored_type(name, use) for name in ("ID", "_DELETED", "_other")] == [INTEGER, BOOLEAN, TEXT]
