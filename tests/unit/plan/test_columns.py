"""Columns of the working dataset: the type of an assigned column, the order of columns, names that are columns."""

from __future__ import annotations

import pytest

from dobonomodo.formula import Columns
from dobonomodo.formula.types import NULL, UNKNOWN, Type
from dobonomodo.plan.columns import AnyColumns, assigned_type, columns_with, is_hole, joined_columns, new_column_type
from dobonomodo.plan.dataset import working_columns
from dobonomodo.plan.expression import null
from tests.unit.formula.orders import type_of


def kind(text: str) -> Type:
    return {"null": NULL, "unknown": UNKNOWN}.get(text) or type_of(text)


@pytest.mark.parametrize(
    ("existing", "given", "after"),
    [
        ("integer", "decimal(10,2)", "decimal(21,2)"),
        ("decimal(10,2)", "integer", "decimal(21,2)"),
        ("decimal(10,2)", "decimal(8,4)", "decimal(12,4)"),
        # No digit behind the point is lost; one too many before it is refused when it comes.
        ("decimal(20,12)", "decimal(38,10)", "decimal(38,12)"),
        ("decimal(38,10)", "decimal(20,12)", "decimal(38,12)"),
        ("decimal(38,20)", "integer", "decimal(38,20)"),
        ("timestamp", "date", "timestamp"),
        ("date", "null", "date"),
        ("unknown", "date", "date"),
        ("date", "unknown", "date"),
    ],
)
def test_the_type_after_an_assignment(existing: str, given: str, after: str) -> None:
    # C-26
    assert str(assigned_type(kind(existing), kind(given))) == after


@pytest.mark.parametrize(
    ("existing", "given"),
    [
        ("date", "timestamp"),
        ("string", "integer"),
        ("integer", "string"),
        ("boolean", "integer"),
        ("string", "boolean"),
    ],
)
def test_what_does_not_fit(existing: str, given: str) -> None:
    # C-26
    assert assigned_type(kind(existing), kind(given)) is None


def test_a_new_column_has_room() -> None:
    assert [str(new_column_type(kind(each))) for each in ("decimal(3,2)", "decimal(30,2)", "integer", "null")] == [
        "decimal(18,2)",
        "decimal(30,2)",
        "integer",
        "string",
    ]


def test_new_columns_come_before_those_of_the_system() -> None:
    # C-63
    columns = Columns(
        {"a": kind("string"), "_note": kind("string"), "_row_id": kind("string"), "_period": kind("string")}
    )
    after = columns_with(columns, {"b": kind("date"), "a": kind("integer"), "_mine": kind("date")})
    assert list(after) == ["a", "_note", "b", "_mine", "_row_id", "_period"]
    assert str(after["a"]) == "integer"


def test_behind_an_alias_there_are_business_and_time_columns() -> None:
    types = {"Amount": kind("decimal"), "id": kind("string")}
    assert list(joined_columns(working_columns(types, "bitemporal"))) == ["Amount", "id", "_period_from", "_period_to"]
    assert list(joined_columns(working_columns(types, None))) == ["Amount", "id"]
    assert list(joined_columns(working_columns(types, None), more=("_row_id",))) == ["Amount", "id", "_row_id"]


def test_of_an_unknown_dataset_every_name_is_a_column() -> None:
    columns = joined_columns(working_columns(AnyColumns({}), None))
    assert (columns.spelling("Amount"), columns["Amount"]) == ("Amount", UNKNOWN)
    assert list(columns) == []


def test_holes() -> None:
    assert is_hole(null(UNKNOWN))
    assert not is_hole(null(kind("string")))
