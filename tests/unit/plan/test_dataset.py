"""Datasets as planning sees them."""

from __future__ import annotations

import pytest

from dobonomodo.model.schema import Column, DataType
from dobonomodo.plan.dataset import column_types, type_of, working_columns


@pytest.mark.parametrize(
    ("declared", "computed"),
    [
        ("string", "string"),
        ("integer", "integer"),
        ("boolean", "boolean"),
        ("date", "date"),
        ("timestamp", "timestamp"),
        ("decimal", "decimal(38,10)"),
        ("decimal(15,2)", "decimal(15,2)"),
        ("decimal(38,0)", "decimal(38,0)"),
    ],
)
def test_declared_types(declared: str, computed: str) -> None:
    # C-27
    assert str(type_of(DataType.parse(declared))) == computed


TYPES = column_types(
    [Column.from_data({"name": "Amount", "type": "decimal"}), Column.from_data({"name": "id", "type": "string"})]
)


def test_working_columns_are_found_in_any_case_and_by_synonym() -> None:
    # C-01, C-02, C-10
    columns = working_columns(TYPES, "period")
    assert [columns.spelling(name) for name in ("AMOUNT", "_modified_at", "_Source_Dataset", "_PERIOD", "unheard")] == [
        "Amount",
        "_updated_at",
        "_source_dataset_id",
        "_period",
        None,
    ]
