"""The system columns, as the table of the semantics has them (Part 3)."""

from __future__ import annotations

import pytest

from dobonomodo.plan.system import ASSIGNABLE, GROUPABLE, RESERVED, SYNONYMS, is_comparable, is_system, system_columns
from tests.unit.plan.building import SYSTEM


def test_every_row_has_these() -> None:
    assert {name: str(kind) for name, kind in system_columns(None).items()} == {
        "_row_id": "string",
        "_deleted": "boolean",
        "_created_at": "timestamp",
        "_updated_at": "timestamp",
        "_source_dataset_id": "string",
        "_source_table": "string",
        "_operation_seq": "integer",
        "_labels": "string",
    }


@pytest.mark.parametrize(
    ("mode", "more"),
    [
        ("period", {"_period": "string"}),
        ("bitemporal", {"_period_from": "date", "_period_to": "date"}),
        ("snapshot", {}),
        (None, {}),
    ],
)
def test_time_columns_come_with_the_mode(mode: str | None, more: dict[str, str]) -> None:
    added = {name: str(kind) for name, kind in system_columns(mode).items() if name not in SYSTEM}
    assert added == more


def test_synonyms() -> None:
    # C-01, C-02
    assert SYNONYMS == {"_modified_at": "_updated_at", "_source_dataset": "_source_dataset_id"}


def test_what_is_reserved_besides() -> None:
    # C-65, Part 3
    assert RESERVED - set(SYSTEM) == {
        *SYNONYMS,
        "_period",
        "_period_from",
        "_period_to",
        "_run_period",
        "_created_by_project_id",
        "_created_by_run_id",
        "_valid_from",
        "_valid_to",
    }


def test_what_may_be_assigned_and_grouped_by() -> None:
    # C-18, C-41, C-47
    assert (set(ASSIGNABLE), set(GROUPABLE)) == ({"_labels"}, {"_period", "_period_from", "_period_to"})


@pytest.mark.parametrize(
    ("name", "expected"), [("_Row_ID", True), ("_note", False), ("row_id", False), ("_modified_at", True)]
)
def test_system_names_in_any_case(name: str, expected: bool) -> None:
    assert is_system(name) is expected


def test_values_of_two_runs_are_compared_where_they_follow_from_definitions_and_inputs() -> None:
    compared = ["amount", "_note", "_deleted", "_labels", "_period", "_period_from", "_period_to"]
    differ = ["_row_id", "_created_at", "_updated_at", "_source_dataset_id", "_source_table", "_operation_seq"]
    assert [name for name in [*compared, *differ] if is_comparable(name)] == compared
