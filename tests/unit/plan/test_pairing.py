"""The columns by which rows of two runs are paired."""

from __future__ import annotations

import pytest

from dobonomodo.plan.pairing import find_pairing
from tests.unit.plan.building import plan_of, step_of
from tests.unit.plan.operations.test_allocate import WORLD, allocate

ROLLED_UP = """
- seq: 10
  type: aggregate
  arguments:
    group_by: [region, status]
    rollup: [all]
    level_column: level
    aggregations: [{column: amount, expression: SUM(amount)}]
"""


def pairing(operations: str, *, selector: str = "TRUE", columns: str = "") -> dict[int, tuple[str, ...]]:
    output = f"""
- seq: 90
  type: output
  selector: '{selector}'
  arguments: {{destination: {{datasource_id: lake, table: written}}{columns}}}
"""
    return find_pairing(step_of(plan_of(operations + output, world=WORLD, output=False), 90))


def test_loaded_rows_and_subtotals() -> None:
    assert pairing(ROLLED_UP) == {0: ("order_id",), 10: ("region", "status", "level")}


def test_a_level_that_is_not_written_is_left_out() -> None:
    found = pairing(ROLLED_UP, columns=", columns: [order_id, region, status, amount]")
    assert found[10] == ("region", "status")


@pytest.mark.parametrize(
    ("selector", "seqs"),
    [
        ("_operation_seq = 10", {10}),
        ("_operation_seq IN (10, 20) AND amount > 0", {10}),
        ("_operation_seq = 10 AND _operation_seq = 0", set()),
        ("NOT _operation_seq = 10", {0, 10}),
        ("_operation_seq = 10 OR amount > 0", {0, 10}),
    ],
)
def test_only_rows_count_that_the_output_can_write(selector: str, seqs: set[int]) -> None:
    assert set(pairing(ROLLED_UP, selector=selector)) == seqs


def test_parts_are_told_apart_by_what_was_distributed_and_who_received_it() -> None:
    given = "set: [{column: region, expression: receivers.region}, {column: quantity, expression: 0}]"
    assert pairing(allocate(given))[1] == ("order_id", "region")
