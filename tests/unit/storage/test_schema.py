"""Which stored types hold exactly what is declared, or less."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType
from dobonomodo.storage.schema import (
    arrow_schema,
    find_differences,
    fits_stored,
    spark_type,
    stored_arrow_type,
    stored_type,
    type_of_arrow,
)
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


def test_our_types_and_those_of_arrow_are_the_same() -> None:
    columns: dict[str, Type] = {
        "text": TEXT,
        "whole": INTEGER,
        "flag": BOOLEAN,
        "day": DATE,
        "at": TIMESTAMP,
        "amount": DecimalType(12, 2),
    }
    schema = arrow_schema(columns)
    assert schema.names == list(columns)
    assert [str(kind) for kind in schema.types] == [
        "string", "int64", "bool", "date32[day]", "timestamp[us, tz=UTC]", "decimal128(12, 2)",
    ]  # fmt: skip
    assert [type_of_arrow(kind) for kind in schema.types] == list(columns.values())
    assert type_of_arrow(pa.float64()) is None


NAMED = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "smallint": pa.int16(),
    "tinyint": pa.int8(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "double": pa.float64(),
    "float": pa.float32(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "decimal(12,2)": pa.decimal128(12, 2),
}


def test_what_spark_calls_the_types_of_files() -> None:
    assert {name: stored_arrow_type(name) for name in NAMED} == NAMED
    others = {
        pa.large_string(): "string",
        pa.string_view(): "string",
        pa.dictionary(pa.int32(), pa.string()): "string",
        pa.timestamp("ms"): "timestamp_ntz",
        pa.timestamp("ns", "UTC"): "timestamp in nanoseconds",
        pa.uint64(): "uint64",
    }
    kinds = {kind: name for name, kind in NAMED.items()} | others
    assert {kind: spark_type(kind) for kind in kinds} == kinds
