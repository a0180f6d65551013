"""What an operation can change of the outputs after it."""

from __future__ import annotations

import pytest

from dobonomodo.plan.influence import find_influence
from tests.unit.plan.building import plan_of


def assign(seq: int, column: str, expression: str, more: str = "") -> str:
    return f"- {{seq: {seq}, type: update, {more}arguments: {{assignments: [{{column: {column}, expression: '{expression}'}}]}}}}\n"


OUTPUT = "- {seq: 90, type: output, arguments: {destination: {datasource_id: lake, table: written}}}\n"
DELETE = "- {seq: 20, type: delete, selector: quantity > 3}\n"
SUMS = "- {seq: 20, type: aggregate, arguments: {group_by: [region], aggregations: [{column: total, expression: SUM(quantity)}]}}\n"
JOIN = """
- seq: 20
  type: update
  arguments:
    joins: [{alias: c, dataset_id: customers, on: customer_id = c.id}]
    assignments: [{column: tier, expression: c.tier}, {column: plain, expression: 1}]
"""
EXCLUDE = "- {seq: 20, type: check, arguments: {expect: quantity > 3, exclude: true, severity: warn}}\n"
WARN = "- {seq: 20, type: check, arguments: {expect: quantity > 3, severity: warn}}\n"
OF_SUMS = OUTPUT.replace("type: output,", "type: output, selector: _operation_seq = 20,")
OF_DETAILS = OUTPUT.replace("type: output,", "type: output, selector: _operation_seq = 0,")


def reached(operations: str, *more: str, seq: int = 10) -> set[str] | None:
    """The columns of the output that operation 10 can change; None for all, and the number of rows."""
    plans = [plan_of(each, output=False) for each in (operations, *more)]
    found = [columns for _, columns in find_influence([step for plan in plans for step in plan.steps], seq)]
    if None in found:
        return None
    return {name for columns in found for name in columns or () if not name.startswith("_")}


@pytest.mark.parametrize(
    ("operations", "columns"),
    [
        pytest.param(assign(20, "other", "amount"), {"quantity"}, id="nobody reads it"),
        pytest.param(assign(20, "other", "quantity + 1"), {"quantity", "other"}, id="a formula reads it"),
        pytest.param(
            assign(20, "other", "1", "selector: quantity > 3, "), {"quantity", "other"}, id="a selector reads it"
        ),
        pytest.param(
            assign(20, "other", "quantity + 1") + assign(30, "last", "other * 2"),
            {"quantity", "other", "last"},
            id="through another column",
        ),
        pytest.param(assign(5, "other", "quantity + 1"), {"quantity"}, id="it was read before"),
        pytest.param(
            assign(20, "other", "SUM(quantity) OVER (PARTITION BY region)"),
            {"quantity", "other"},
            id="a window reads it",
        ),
        pytest.param(JOIN, {"quantity"}, id="a join by another column"),
        pytest.param(DELETE, None, id="rows are deleted by it"),
        pytest.param(EXCLUDE, None, id="a check excludes rows by it"),
        pytest.param(WARN, {"quantity"}, id="a check warns of it"),
        pytest.param(SUMS, None, id="it is summed"),
    ],
)
def test_an_update_reaches_what_is_computed_from_its_columns(operations: str, columns: set[str] | None) -> None:
    assert reached(assign(10, "quantity", "5") + operations + OUTPUT) == columns


def test_only_what_reads_it_of_several_assignments() -> None:
    both = "- {seq: 20, type: update, arguments: {assignments: [{column: a, expression: quantity}, {column: b, expression: 1}]}}\n"
    assert reached(assign(10, "quantity", "5") + both + OUTPUT) == {"quantity", "a"}
    assert reached(assign(10, "customer_id", "region") + JOIN + OUTPUT) == {"customer_id", "tier", "plain"}


def test_sums_reach_outputs_that_can_write_them() -> None:
    update = assign(10, "quantity", "5")
    assert reached(update + SUMS + OF_SUMS) is None
    assert reached(update + SUMS + OF_DETAILS) == {"quantity"}
    assert reached(SUMS + OF_DETAILS, seq=20) == set()
    assert reached(SUMS + OUTPUT, seq=20) is None


def test_sums_of_sums_are_reached() -> None:
    again = SUMS.replace("seq: 20", "seq: 30").replace("SUM(quantity)", "SUM(amount)").replace("total", "grand")
    output = OF_SUMS.replace("= 20", "= 30")
    assert reached(SUMS + again + output, seq=20) is None
    only = again.replace("type: aggregate,", "type: aggregate, selector: _operation_seq = 0,")
    assert reached(SUMS + only + output, seq=20) == set()


def test_a_window_reaches_rows_that_were_added_before_it() -> None:
    window = assign(30, "rank", "COUNT(order_id) OVER (PARTITION BY region)")
    assert reached(SUMS + window + OF_DETAILS, seq=20) == {"rank"}


def test_an_output_of_its_own_and_a_selector_that_reads_it() -> None:
    assert reached(OUTPUT, seq=90) is None
    assert reached(assign(10, "paid", "TRUE") + OUTPUT.replace("output,", "output, selector: paid,")) is None


def test_rows_may_be_told_apart_by_ids_that_any_change_makes_anew() -> None:
    numbered = assign(5, "number", "ROW_NUMBER() OVER (ORDER BY _row_id)")
    assert reached(numbered + assign(10, "paid", "TRUE") + OUTPUT) == {"number", "paid"}


def test_an_operation_is_followed_through_the_versions_of_all_others() -> None:
    """Neither plan has both: the first sets the quantity, the second reads it. A run with some of each has."""
    one = assign(10, "quantity", "5") + assign(20, "other", "1") + OUTPUT
    other = assign(10, "amount", "5") + assign(20, "other", "quantity") + OUTPUT
    assert reached(one) == {"quantity"}
    assert reached(one, other) == {"quantity", "amount", "other"}
