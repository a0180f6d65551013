"""Rows of a plan that are looked for: they come with the values that a run gives them, and little else is read."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dobonomodo.why.interpret import SeveralMatches, constants_of, find_keys
from tests.unit.why.orders import AGGREGATE, ALL, OUTPUT, ROWS, UPDATE, Asked


def test_an_updated_row_with_its_join() -> None:
    asked = Asked(ALL)
    (row,) = asked.find(id="A1", _operation_seq=0)
    assert (row.values["net"], row.values["total"], row.values["_period"]) == (Decimal("90.00"), None, "2026-01")


def test_only_the_rows_of_the_key_are_read() -> None:
    asked = Asked(ALL)
    asked.find(id="A2", _operation_seq=0)
    assert [(dataset, wanted) for dataset, wanted, _ in asked.rows.asked] == [
        ("orders", {"id": frozenset(["A2"])}),
        ("customers", {"id": frozenset(["C2"])}),
    ]


def test_a_loaded_row_is_found_by_the_place_in_its_id() -> None:
    asked = Asked(ALL)
    (row,) = asked.find(id="A2", _operation_seq=0)
    (again,) = asked.find(_row_id=row.values["_row_id"], _operation_seq=0)
    assert again.identity == row.identity
    assert frozenset([1]) in [numbers for _, _, numbers in asked.rows.asked]


def test_a_summary_row_with_its_members() -> None:
    asked = Asked(ALL)
    (row,) = asked.find(status="active", _operation_seq=20)
    assert (row.values["total"], row.values["number"]) == (Decimal("120.00"), 3)
    assert row.values["net"] is None


def test_the_members_of_a_group_are_read_by_its_key() -> None:
    asked = Asked(ALL)
    asked.find(status="active", _operation_seq=20)
    assert asked.rows.asked[0] == ("orders", {"status": frozenset(["active"])}, None)


def test_an_appended_row() -> None:
    (row,) = Asked(ALL).find(_operation_seq=30)
    assert (row.values["customer"], row.values["amount"], row.values["id"]) == ("C1", Decimal("90.00"), None)


@pytest.mark.parametrize("key", [{"id": "A4"}, {"id": "A5"}, {"id": "A9"}, {"customer": "C2", "_operation_seq": 30}])
def test_rows_that_are_not_written(key: dict[str, str | int]) -> None:
    # Deleted, of another period, not stored, not selected by the append.
    assert Asked(ALL).find(**key) == []


def test_a_dropped_row_is_remembered() -> None:
    asked = Asked(ALL)
    asked.find(id="A4")
    assert [row.values["_deleted"] for row in asked.interpreter.dropped if row.values.get("id") == "A4"] == [True]


def test_a_join_without_a_match_is_null() -> None:
    rows = {**ROWS, "customers": []}
    (row,) = Asked(ALL, rows).find(id="A1")
    assert row.values["net"] == Decimal("100.00")


def test_several_matches() -> None:
    twice = {"id": "C1", "tier": "gold", "_period_from": "2025-06-01", "_period_to": None}
    with pytest.raises(SeveralMatches):
        Asked(ALL, {**ROWS, "customers": [*ROWS["customers"], twice]}).find(id="A1")


def test_a_window_sees_its_partition() -> None:
    window = """
    - seq: 10
      type: update
      arguments:
        assignments:
          - {column: share, expression: "amount / SUM(amount) OVER (PARTITION BY customer)"}
          - {column: place, expression: "ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount DESC)"}
"""
    rows = {**ROWS, "orders": [*ROWS["orders"], {**ROWS["orders"][0], "id": "A6", "amount": 300}]}
    asked = Asked(window + OUTPUT, rows)
    (row,) = asked.find(id="A1")
    assert (row.values["share"], row.values["place"]) == (Decimal("0.2500000000"), 2)


def test_keys_of_a_condition() -> None:
    step = Asked(UPDATE + OUTPUT).plan.steps[0]
    (key,) = find_keys(step.lowered.conditions["c"].tree, "c")
    assert key[1] == "id"


def test_what_an_output_selects_is_known_of_its_rows() -> None:
    chosen = OUTPUT.replace(
        "type: output,", "type: output, selector: '_operation_seq = 20 AND status = \"active\" AND number > 1',"
    )
    known = dict(constants_of(Asked(UPDATE + AGGREGATE + chosen).output.write.rows))
    assert known == {"_operation_seq": 20, "status": "active"}
    assert dict(constants_of(Asked(ALL).output.write.rows)) == {}
