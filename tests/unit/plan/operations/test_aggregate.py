"""``aggregate``: keys, results, and the summary rows it puts below the rows."""

from __future__ import annotations

import pytest

from dobonomodo.formula.typed import ColumnRef, Literal
from dobonomodo.plan.expression import ACTIVE, CLOCK, FALSE
from dobonomodo.plan.relation import AssignIds, Derive, Group, Keep, Reshape, Stack
from dobonomodo.problems.formula import AggregateReason
from dobonomodo.problems.operation import DuplicateAggColumn, SystemColumnConflict
from tests.unit.plan.building import (
    SYSTEM,
    aggregate,
    append,
    codes,
    delete,
    found,
    no_problem,
    nodes,
    plan_of,
    planned,
    problem_in,
    step_of,
    types_after,
    update,
)

TOTAL = "total = SUM(amount)"


def aggregate_with(arguments: str) -> str:
    return f"- {{seq: 1, type: aggregate, arguments: {arguments}}}\n"


# --- keys


@pytest.mark.parametrize("keys", ["group_by: [], ", "", "group_by: null, "])
def test_keys_are_needed(keys: str) -> None:
    # R-121, C-47
    text = aggregate_with(f"{{{keys}aggregations: [{{column: a, expression: COUNT(*)}}]}}")
    assert codes(text) == ["EMPTY_GROUP_BY"]


@pytest.mark.parametrize("results", [", aggregations: []", "", ", aggregations: null"])
def test_aggregations_are_needed(results: str) -> None:
    #
    assert codes(aggregate_with(f"{{group_by: [region]{results}}}")) == ["EMPTY_AGGREGATIONS"]


def test_both_can_be_missing() -> None:
    assert codes("- {seq: 1, type: aggregate}\n") == ["EMPTY_GROUP_BY", "EMPTY_AGGREGATIONS"]


@pytest.mark.parametrize("second", ["region", "orders.region", "REGION", "Orders.Region", "`region`"])
def test_a_key_twice_is_refused_after_resolution(second: str) -> None:
    # R-123, C-47
    text = aggregate(f'region, "{second}"', TOTAL)
    assert found(text) == [("DUPLICATE_GROUP_BY", f'"{second}"')]


@pytest.mark.parametrize("key", ["regon", "customers.region", "orders.regon"])
def test_a_key_that_is_no_column_is_refused(key: str) -> None:
    # R-124, C-09
    assert found(aggregate(f"{key}, status", TOTAL)) == [("UNKNOWN_COLUMN", key)]


@pytest.mark.parametrize("key", ["region || status", "1", "UPPER(region)"])
def test_a_key_is_a_column_and_no_formula(key: str) -> None:
    #
    assert codes(aggregate(f'"{key}"', TOTAL)) == ["EXPRESSION_SYNTAX"]


@pytest.mark.parametrize("key", ["_period", "orders._period"])
def test_the_period_can_be_a_key(key: str) -> None:
    # C-47
    assert codes(aggregate(key, TOTAL)) == []


@pytest.mark.parametrize("key", [*SYSTEM, "_modified_at", "_source_dataset", "_ROW_ID"])
def test_other_system_columns_cannot_be_keys(key: str) -> None:
    # C-47
    problem = problem_in(aggregate(key, TOTAL))
    assert isinstance(problem, SystemColumnConflict)
    assert problem.grouped


def test_a_time_column_that_the_rows_do_not_have_is_unknown() -> None:
    assert codes(aggregate("_period_from", TOTAL)) == ["UNKNOWN_COLUMN"]


# --- results


@pytest.mark.parametrize(
    "name",
    [
        "_row_id",
        "_created_at",
        "_updated_at",
        "_source_dataset_id",
        "_source_table",
        "_deleted",
        "_period",
        "_labels",
        "_mine",
    ],
)
def test_a_result_is_no_system_column(name: str) -> None:
    # R-125, C-42
    assert found(aggregate("region", f"{name} = SUM(amount)")) == [("SYSTEM_COLUMN_CONFLICT", name)]


def test_two_results_need_two_columns() -> None:
    #
    problem = problem_in(aggregate("region", TOTAL, "Total = COUNT(*)"))
    assert isinstance(problem, DuplicateAggColumn)
    assert (problem.name, problem.is_key) == ("Total", False)


@pytest.mark.parametrize("name", ["region", "REGION"])
def test_a_result_is_no_key(name: str) -> None:
    # C-45
    problem = problem_in(aggregate("orders.region", f"{name} = COUNT(*)"))
    assert (problem.code, problem.is_key) == ("DUPLICATE_AGG_COLUMN", True)


@pytest.mark.parametrize("name", ["1st", "a b", '""'])
def test_a_result_is_an_identifier(name: str) -> None:
    assert codes(
        aggregate_with(f"{{group_by: [region], aggregations: [{{column: {name}, expression: COUNT(*)}}]}}")
    ) == ["INVALID_COLUMN_NAME"]


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("amount", AggregateReason.NONE),
        ("1", AggregateReason.NONE),
        ("region", AggregateReason.NONE),
        ("SUM(SUM(amount))", AggregateReason.NESTED),
        ("SUM(amount) + quantity", AggregateReason.UNGROUPED),
    ],
)
def test_an_expression_aggregates_exactly_once(expression: str, reason: AggregateReason) -> None:
    # C-15, R-086, R-125
    problem = problem_in(aggregate("region", f"total = {expression}"))
    assert (problem.code, problem.reason) == ("INVALID_AGGREGATE", reason)


@pytest.mark.parametrize(
    "expression",
    [
        "SUM(amount * quantity)",
        "SUM(amount) / COUNT(*)",
        "IF(region = 'N', SUM(amount), 0)",
        "COUNT_ALL()",
        "COUNT(region)",
    ],
)
def test_any_expression_over_keys_and_aggregates_is_fine(expression: str) -> None:
    # C-14, C-15
    assert codes(aggregate("region", f"total = {expression}")) == []


@pytest.mark.parametrize("expression", ["COUNT()", "SUM(*)", "AVG(*)", "MEDIAN(amount)", "MIN(amount)", "MAX(amount)"])
def test_what_is_no_aggregate_function_is_refused(expression: str) -> None:
    # C-14, C-16
    assert codes(aggregate("region", f"total = {expression}")) in (["INVALID_AGGREGATE"], ["WRONG_ARITY"])


def test_median_is_an_invalid_aggregate() -> None:
    # C-16
    assert codes(aggregate("region", "total = MEDIAN(amount)")) == ["INVALID_AGGREGATE"]


@pytest.mark.parametrize("expression", ["SUM(region)", "AVG(paid)", "SUM(paid)", "AVG(booked)"])
def test_sums_are_of_numbers(expression: str) -> None:
    # R-136, C-46
    assert codes(aggregate("status", f"total = {expression}")) == ["TYPE_MISMATCH"]


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("SUM(quantity)", "decimal"),
        ("SUM(amount)", "decimal"),
        ("AVG(quantity)", "decimal"),
        ("COUNT(*)", "integer"),
        ("COUNT(region)", "integer"),
        ("MIN_AGG(booked)", "date"),
        ("MAX_AGG(shipped_at)", "timestamp"),
        ("MAX_AGG(region)", "string"),
        ("MIN_AGG(quantity)", "integer"),
    ],
)
def test_the_type_of_a_new_result(expression: str, kind: str) -> None:
    #
    assert types_after(plan_of(aggregate("status", f"fresh = {expression}")), 1)["fresh"].split("(")[0] == kind


def test_a_result_widens_an_existing_number() -> None:
    # C-45
    kind = types_after(plan_of(aggregate("region", "quantity = SUM(amount)")), 1)["quantity"]
    assert kind.startswith("decimal(")


def test_a_count_stays_whole_in_an_integer_column() -> None:
    # C-45
    assert types_after(plan_of(aggregate("region", "quantity = COUNT(*)")), 1)["quantity"] == "integer"


@pytest.mark.parametrize("result", ["region = COUNT(*)", "amount = MAX_AGG(region)", "booked = MAX_AGG(shipped_at)"])
def test_a_result_of_another_kind_is_refused(result: str) -> None:
    # C-45
    assert codes(aggregate("status", result)) == ["TYPE_MISMATCH"]


def test_aggregate_adds_columns() -> None:
    # C-43, C-44, R-025
    columns = list(step_of(plan_of(aggregate("region", TOTAL, "n = COUNT(*)")), 1).after.columns)
    assert columns[-11:] == ["total", "n", *SYSTEM, "_period"]


# --- warnings


def test_summaries_of_summaries_are_warned_of() -> None:
    # W-01, C-48
    result = planned(aggregate("region", TOTAL) + aggregate("status", "n = SUM(amount)", seq=2))
    (problem,) = result.problems
    assert (problem.code, problem.earlier, problem.operation and problem.operation.seq) == ("W-01", 1, 2)  # type: ignore[attr-defined]
    assert result.plan is not None


@pytest.mark.parametrize("selector", ["_operation_seq = 0", "paid AND _operation_seq = 0"])
def test_the_idiom_for_loaded_rows_is_not_warned_of(selector: str) -> None:
    # W-01, C-48
    assert codes(aggregate("region", TOTAL) + aggregate("status", "n = COUNT(*)", seq=2, selector=selector)) == []


def test_the_idiom_behind_a_name_is_not_warned_of() -> None:
    # W-01
    text = aggregate("region", TOTAL) + aggregate("status", "n = COUNT(*)", seq=2, selector="{{loaded}}")
    assert codes(text, head="selectors: {loaded: _operation_seq = 0}") == []


def test_other_operations_on_summaries_are_not_warned_of() -> None:
    # C-48: they are ordinary rows
    text = (
        aggregate("region", TOTAL)
        + update("total = total * 2", seq=2)
        + delete("total = 0", seq=3)
        + append("budget", seq=4)
    )
    assert codes(text) == []


# --- what it comes down to


def test_summary_rows_are_stacked_below_the_rows() -> None:
    # ..R-131
    plan = plan_of(aggregate("_period, region", TOTAL, selector="paid", seq=7))
    step = step_of(plan, 7)
    node = step.after.node
    assert isinstance(node, Stack)
    kept, added = node.rows, node.more
    assert isinstance(kept, Derive)
    assert (kept.rows is plan.start.node, list(kept.values)) == (True, ["total"])
    assert isinstance(added, Reshape)
    assert added is step.lowered.added
    identified = added.rows
    assert isinstance(identified, AssignIds)
    assert (identified.seq, identified.by) == (7, ("#_period", "#region"))
    grouped = identified.rows
    assert isinstance(grouped, Group)
    assert (list(grouped.keys), list(grouped.values)) == (["#_period", "#region"], ["=total"])
    selected = grouped.rows
    assert isinstance(selected, Keep)
    assert selected.rows is plan.start.node
    assert selected.condition == step.lowered.selected
    assert list(kept.schema.columns.items()) == list(added.schema.columns.items()) == list(node.schema.columns.items())


def test_the_columns_of_a_summary_row() -> None:
    #
    added = step_of(plan_of(aggregate("region", TOTAL, seq=7)), 7).lowered.added
    assert isinstance(added, Reshape)
    values = {name: value.value if isinstance(value, Literal) else value for name, value in added.values.items()}
    assert isinstance(values["region"], ColumnRef)
    assert isinstance(values["total"], ColumnRef)
    assert (values["region"].name, values["total"].name) == ("#region", "=total")
    expected = {
        "_source_dataset_id": "sales",
        "_source_table": "orders",
        "_operation_seq": 7,
        "_labels": "",
        "_period": None,
    }
    assert {name: values[name] for name in expected} == expected
    assert (added.values["_deleted"], added.values["_created_at"], added.values["_updated_at"]) == (FALSE, CLOCK, CLOCK)
    others = {"order_id", "customer_id", "status", "quantity", "amount", "booked", "shipped_at", "paid"}
    assert {values[name] for name in others} == {None}
    assert added.values["_row_id"] == added.handed_on("_row_id")


def test_the_period_of_a_summary_row_is_its_key() -> None:
    #
    added = step_of(plan_of(aggregate("_period", TOTAL)), 1).lowered.added
    assert isinstance(added, Reshape)
    value = added.values["_period"]
    assert isinstance(value, ColumnRef)
    assert value.name == "#_period"


def test_a_result_may_have_the_name_of_the_column_it_reads() -> None:
    with no_problem(aggregate("region", "amount = SUM(amount)")) as plan:
        (group,) = nodes(step_of(plan, 1).after.node, Group)
        assert list(group.values) == ["=amount"]


def test_deleted_rows_are_not_counted() -> None:
    # R-055, C-40
    (keep,) = nodes(step_of(plan_of(aggregate("region", TOTAL)), 1).after.node, Keep)
    assert keep.condition == ACTIVE


def test_reads_are_selector_keys_and_inputs() -> None:
    text = aggregate("region", TOTAL, selector="paid")
    assert step_of(plan_of(text), 1).lowered.reads == {"_deleted", "paid", "region", "amount"}


# --- one fault, one report


def test_the_other_aggregations_are_checked_too() -> None:
    text = aggregate("region, regon", "a = SUM(amout)", "b = MEDIAN(amount)", "_c = COUNT(*)")
    assert codes(text) == ["UNKNOWN_COLUMN", "UNKNOWN_COLUMN", "INVALID_AGGREGATE", "SYSTEM_COLUMN_CONFLICT"]


def test_a_faulty_result_is_still_a_column() -> None:
    text = aggregate("region", "total = SUM(amout)") + update("half = total / 2", seq=2)
    assert found(text) == [("UNKNOWN_COLUMN", "amout")]


@pytest.mark.parametrize("result", ["amount = SUM(amout)", "amount = MAX(region)"])
def test_a_column_with_a_faulty_result_keeps_its_type(result: str) -> None:
    text = aggregate("region", result) + update("net = amount * 2", "wrong = paid AND amount", seq=2)
    assert codes(text)[1:] == ["TYPE_MISMATCH"]


def test_the_selector_is_checked_though_the_arguments_cannot_be_read() -> None:
    text = "- {seq: 1, type: aggregate, selector: regoin = 1, arguments: {group_by: [region], aggregations: []}}\n"
    assert codes(text) == ["UNKNOWN_COLUMN", "EMPTY_AGGREGATIONS"]


def test_aggregate_functions_do_not_belong_into_the_selector() -> None:
    #
    assert codes(aggregate("region", TOTAL, selector="SUM(amount) > 1")) == ["AGGREGATE_NOT_ALLOWED"]
