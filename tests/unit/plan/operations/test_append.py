"""``append``: its codes and their order, the alignment of columns, and the rows it makes."""

from __future__ import annotations

from typing import Any

import pytest

from dobonomodo.formula.typed import ColumnRef, Literal, Operation
from dobonomodo.formula.types import TEXT
from dobonomodo.plan.expression import ACTIVE, CLOCK, FALSE
from dobonomodo.plan.relation import AssignIds, Derive, Group, Keep, Lookup, Reshape, Scan, Stack
from dobonomodo.problems.definition import InvalidOperation, OperationReason, UnknownKey
from dobonomodo.problems.operation import (
    AppendColumnMismatch,
    AppendDatasetNotFound,
    AppendResolverNotFound,
    AppendVersionNotFound,
)
from tests.unit.plan.building import (
    SYSTEM,
    WORLD_BUILT,
    World,
    append,
    codes,
    found,
    no_problem,
    nodes,
    output,
    plan_of,
    planned,
    problem_in,
    quoted,
    step_of,
    types_after,
    update,
)

GROUPED = "{group_by: [region], aggregations: [{column: amount, expression: SUM(amount)}]}"


def grouping(expression: str, column: str = "amount", keys: str = "region") -> str:
    quoted = "'" + expression.replace("'", "''") + "'"
    return f"{{group_by: [{keys}], aggregations: [{{column: {column}, expression: {quoted}}}]}}"


def source(columns: str, *, mode: str | None = "period", **facts: Any) -> World:
    temporal = f"temporal_mode: {mode}, " if mode else ""
    return WORLD_BUILT.with_dataset(
        f"dataset: {{id: more, main_table: {{name: extra, {temporal}columns: [{columns}]}}}}", **facts
    )


# --- the codes


def test_the_dataset_must_exist() -> None:
    # APPEND_001, R-145
    problem = problem_in(append("budgets"))
    assert isinstance(problem, AppendDatasetNotFound)
    assert (problem.code, problem.dataset_id, problem.disabled) == ("APPEND_001", "budgets", False)
    assert (problem.span and problem.span.line, problem.span and problem.span.column) == (8, 30)
    assert "budget" in problem.known


def test_the_dataset_must_have_an_active_version() -> None:
    # APPEND_001, R-146
    problem = problem_in(append("sleeping"))
    assert (problem.code, problem.disabled) == ("APPEND_001", True)


def test_a_pinned_version_must_exist() -> None:
    # APPEND_002, R-146
    problem = problem_in(append("budget", version=5))
    assert isinstance(problem, AppendVersionNotFound)
    assert (problem.code, problem.version, problem.versions) == ("APPEND_002", 5, (1,))


def test_a_version_of_an_unknown_dataset_is_an_unknown_dataset() -> None:
    #
    assert codes(append("budgets", version=5)) == ["APPEND_001"]


def test_a_column_that_the_working_dataset_lacks_is_refused() -> None:
    # APPEND_003, R-089, R-153
    problem = problem_in(
        append("more"), world=source("{name: region, type: string}, {name: budget_type, type: string}")
    )
    assert isinstance(problem, AppendColumnMismatch)
    assert (problem.code, problem.name, problem.working_type) == ("APPEND_003", "budget_type", None)
    assert problem.known == (
        "order_id",
        "customer_id",
        "region",
        "status",
        "quantity",
        "amount",
        "booked",
        "shipped_at",
        "paid",
    )


def test_every_such_column_is_named() -> None:
    #
    world = source("{name: a, type: string}, {name: region, type: string}, {name: b, type: string}")
    assert [each.name for each in planned(append("more"), world=world).problems] == ["a", "b"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("column", "kind"),
    [("amount", "string"), ("region", "integer"), ("paid", "string"), ("booked", "string"), ("quantity", "date")],
)
def test_a_column_of_another_kind_is_refused(column: str, kind: str) -> None:
    # APPEND_003, C-52
    problem = problem_in(append("more"), world=source(f"{{name: {column}, type: {kind}}}"))
    assert (problem.code, problem.name, problem.source_type) == ("APPEND_003", column, kind)


@pytest.mark.parametrize(
    ("column", "kind", "after"),
    [
        ("quantity", "integer", "integer"),
        ("quantity", '"decimal(10,2)"', "decimal(21,2)"),
        ("amount", "integer", "decimal(21,2)"),
        ("amount", "decimal", "decimal(38,10)"),
        ("shipped_at", "date", "timestamp"),
        ("booked", "timestamp", "timestamp"),
        ("AMOUNT", '"decimal(15,2)"', "decimal(15,2)"),
    ],
)
def test_numbers_and_dates_unify(column: str, kind: str, after: str) -> None:
    # C-52, C-10
    plan = plan_of(append("more"), world=source(f"{{name: {column}, type: {kind}}}"))
    assert types_after(plan, 1)[column.lower()] == after


@pytest.mark.parametrize(
    "selector",
    [
        "invalid syntax here",
        "amount >",
        "amount",
        "amount = 'x'",
        "VLOOKUP(amount) = 1",
        "SUM(amount) > 1",
        "ROUND() = 1",
    ],
)
def test_a_source_selector_is_a_condition(selector: str) -> None:
    # APPEND_004, C-54, R-112
    problem = problem_in(append("budget", where=selector))
    assert (problem.code, problem.expression) == ("APPEND_004", selector)


def test_a_fault_of_the_selector_keeps_its_cause_and_place() -> None:
    problem = problem_in(append("budget", where="amount > 1 AND (region = 1)"))
    assert (problem.code, problem.cause.code) == ("APPEND_004", "TYPE_MISMATCH")
    assert (problem.span.line, problem.operation.seq) == (9, 1)


@pytest.mark.parametrize(
    "expression",
    ["MEDIAN(amount)", "amount", "SUM(SUM(amount))", "SUM(status)", "FOO(amount)", "COUNT()", "SUM(amount) + amount"],
)
def test_an_aggregation_is_one(expression: str) -> None:
    # APPEND_005, C-15, C-16, C-54, R-151, R-152
    assert codes(append("budget", grouping=grouping(expression))) == ["APPEND_005"]


@pytest.mark.parametrize("expression", ["SUM(*)", "MIN(amount)"])
def test_a_call_that_cannot_be_is_reported_once(expression: str) -> None:
    # C-14, C-16
    assert codes(append("budget", grouping=grouping(expression))) == ["APPEND_005"]


@pytest.mark.parametrize(
    "where",
    [
        "arguments: {selector: paid, source: {dataset_id: budget}}",
        "selector: paid, arguments: {source: {dataset_id: budget}}",
    ],
)
def test_an_append_has_no_selector(where: str) -> None:
    # C-05
    problem = problem_in(f"- {{seq: 1, type: append, {where}}}\n")
    assert isinstance(problem, InvalidOperation)
    assert problem.reason == OperationReason.SELECTOR_ON_APPEND


def test_a_named_selector_on_an_append_is_not_unused() -> None:
    text = "- {seq: 1, type: append, selector: '{{mine}}', arguments: {source: {dataset_id: budget}}}\n"
    assert codes(text, head="selectors: {mine: paid}") == ["INVALID_OPERATION"]


@pytest.mark.parametrize("expression", ["SUM(amount", "SUM amount", "+"])
def test_an_aggregation_that_does_not_parse(expression: str) -> None:
    # APPEND_005: all faults of an aggregation but unknown columns
    assert codes(append("budget", grouping=grouping(expression))) == ["APPEND_005"]


@pytest.mark.parametrize("where", ["amout > 1", "orders.amount > 1", "customer_id = 'x'", "budget.amount > 1"])
def test_a_source_selector_sees_only_source_columns(where: str) -> None:
    # APPEND_006, R-144, R-155, C-09
    assert codes(append("budget", where=where)) == ["APPEND_006"]


@pytest.mark.parametrize("where", ["budgets.amount > 1", "BUDGETS.Amount > 1", "_period = '2026-01'", "_labels = ''"])
def test_the_source_goes_by_the_name_of_its_table(where: str) -> None:
    # C-09
    assert codes(append("budget", where=where)) == []


def test_keys_and_inputs_are_columns_of_the_source() -> None:
    # APPEND_006, R-147, R-154
    text = append("budget", grouping=grouping("SUM(quantity)", keys="customer_id, region"))
    assert found(text) == [("APPEND_006", "customer_id"), ("APPEND_006", "quantity")]


def test_a_result_is_a_column_of_the_working_dataset() -> None:
    # APPEND_003, R-148, C-43
    text = append("budget", grouping=grouping("SUM(amount)", column="total"))
    assert found(text) == [("APPEND_003", "total")]


def test_a_result_of_another_kind_is_refused() -> None:
    # APPEND_003, C-52
    problem = problem_in(append("budget", grouping=grouping("COUNT(*)", column="status")))
    assert (problem.code, problem.name, problem.working_type, problem.source_type) == (
        "APPEND_003",
        "status",
        "string",
        "integer",
    )


def test_a_key_is_a_column_of_the_working_dataset() -> None:
    # APPEND_003, R-153
    world = source("{name: account, type: string}, {name: amount, type: decimal}")
    problem = problem_in(append("more", grouping=grouping("SUM(amount)", keys="account")), world=world)
    assert (problem.code, problem.name) == ("APPEND_003", "account")


def test_columns_that_the_aggregation_leaves_out_need_not_exist() -> None:
    #
    world = source("{name: region, type: string}, {name: amount, type: decimal}, {name: kind, type: string}")
    assert codes(append("more", where="kind = 'x'", grouping=GROUPED), world=world) == []


def test_something_must_say_where_the_rows_are() -> None:
    # APPEND_007, R-168
    world = WORLD_BUILT.with_dataset(
        "dataset: {id: far, resolver_id: nowhere, main_table: {name: far, columns: [{name: region, type: string}]}}"
    )
    problem = problem_in(append("far"), world=world)
    assert isinstance(problem, AppendResolverNotFound)
    assert (problem.code, problem.resolver_id, problem.known) == ("APPEND_007", "nowhere", ("files",))


def test_without_any_resolver() -> None:
    # APPEND_007
    head = "resolver_overrides: {sales: files}"
    problem = problem_in(append("budget"), world=WORLD_BUILT.resolving(default_resolver=None), head=head)
    assert (problem.code, problem.resolver_id, problem.dataset_id) == ("APPEND_007", None, "budget")


def test_a_named_selector_that_is_undefined_keeps_its_code() -> None:
    #
    assert codes(append("budget", where="{{big}}")) == ["SELECTOR_UNDEFINED"]


def test_a_named_selector_is_checked_against_the_source() -> None:
    #
    head = "selectors: {big: amount > 1, mine: quantity > 1}"
    assert codes(append("budget", where="{{big}} AND NOT {{mine}}"), head=head) == ["APPEND_006"]


@pytest.mark.parametrize("blank", ["", "  "])
def test_a_blank_source_selector_is_none(blank: str) -> None:
    # C-20
    with no_problem(append("budget", where=blank)) as plan:
        (keep,) = nodes(step_of(plan, 1).after.node, Keep)
        assert keep.condition == ACTIVE


@pytest.mark.parametrize(
    ("arguments", "code"),
    [("{}", "MISSING_KEY"), ("{source: {}}", "MISSING_KEY"), ("{source: budget}", "INVALID_VALUE")],
)
def test_a_source_is_needed(arguments: str, code: str) -> None:
    #
    assert codes(f"- {{seq: 1, type: append, arguments: {arguments}}}\n") == [code]


def test_a_selector_of_the_operation_is_refused() -> None:
    # C-05
    text = "- {seq: 1, type: append, selector: amount > 1, arguments: {source: {dataset_id: budget}}}\n"
    assert found(text) == [("INVALID_OPERATION", "selector")]


@pytest.mark.parametrize(
    ("aggregation", "code"),
    [
        ("{group_by: [], aggregations: [{column: amount, expression: SUM(amount)}]}", "EMPTY_GROUP_BY"),
        ("{group_by: [region], aggregations: []}", "EMPTY_AGGREGATIONS"),
        (
            "{group_by: [region, budgets.region], aggregations: [{column: amount, expression: SUM(amount)}]}",
            "DUPLICATE_GROUP_BY",
        ),
        ("{group_by: [region], aggregations: [{column: region, expression: MAX_AGG(region)}]}", "DUPLICATE_AGG_COLUMN"),
        (
            "{group_by: [region], aggregations: [{column: _labels, expression: MAX_AGG(region)}]}",
            "SYSTEM_COLUMN_CONFLICT",
        ),
        ("{group_by: [_row_id], aggregations: [{column: amount, expression: SUM(amount)}]}", "SYSTEM_COLUMN_CONFLICT"),
    ],
)
def test_a_grouping_follows_the_rules_of_aggregate(aggregation: str, code: str) -> None:
    # C-47
    assert codes(append("budget", grouping=aggregation)) == [code]


# --- the order


def test_a_missing_dataset_hides_what_depends_on_it() -> None:
    #
    text = append("budgets", where="amout >", grouping=grouping("MEDIAN(x)", column="nothing", keys="y"))
    assert codes(text) == ["APPEND_001"]


def test_a_missing_version_hides_what_depends_on_it() -> None:
    #
    assert codes(append("budget", version=9, where="amout >", grouping=grouping("MEDIAN(x)"))) == ["APPEND_002"]


def test_all_the_rest_is_found_at_once_and_in_order() -> None:
    # selector syntax, selector columns, keys, aggregation syntax, inputs, outputs
    text = append(
        "budget",
        where="amout > 1",
        grouping="{group_by: [regon], aggregations: [{column: amount, expression: MEDIAN(amount)}, "
        "{column: amount2, expression: SUM(quantity)}]}",
    )
    assert found(text) == [
        ("APPEND_006", "amout"),
        ("APPEND_006", "regon"),
        ("APPEND_005", "MEDIAN"),
        ("APPEND_003", "amount2"),
        ("APPEND_006", "quantity"),
    ]


def test_columns_are_checked_before_the_resolver() -> None:
    # C-54, R-170: at one place, the order of the checks shows
    world = source("{name: nothing, type: string}").resolving(default_resolver=None)
    head = "resolver_overrides: {sales: files}"
    assert codes(append("more"), world=world, head=head) == ["APPEND_003", "APPEND_007"]


def test_columns_are_checked_whatever_the_rows() -> None:
    # C-53
    assert codes(append("more", where="FALSE"), world=source("{name: nothing, type: string}")) == ["APPEND_003"]


def test_an_undefined_input_does_not_lead_to_column_reports() -> None:
    text = update("a = 1") + append("budget", seq=2)
    assert codes(text, input_id="nothing") == ["INPUT_DATASET_NOT_FOUND"]


def test_columns_of_an_operation_that_was_lost_are_not_missed() -> None:
    world = source("{name: fresh, type: integer}")
    text = "- {seq: 1, type: updat, arguments: {assignments: [{column: fresh, expression: '1'}]}}\n" + append(
        "more", seq=2
    )
    assert codes(text, world=world) == ["INVALID_OPERATION"]


# --- the rows


def test_rows_are_stacked_below_the_rows() -> None:
    # C-56
    plan = plan_of(append("budget", where="amount > 1", seq=7))
    step = step_of(plan, 7)
    node = step.after.node
    assert isinstance(node, Stack)
    added = node.more
    assert isinstance(added, Reshape)
    assert added is step.lowered.added
    identified = added.rows
    assert isinstance(identified, AssignIds)
    assert (identified.seq, identified.by) == (7, ("_row_id",))
    keep = identified.rows
    assert isinstance(keep, Keep)
    assert isinstance(keep.rows, Scan)
    assert isinstance(keep.condition, Operation)
    assert keep.condition.operands[0] == ACTIVE
    assert keep.rows.use.role == "append"
    assert list(node.schema.columns) == list(plan.start.columns)


def test_the_system_columns_of_appended_rows() -> None:
    # C-51, R-157, R-159
    added = step_of(plan_of(append("budget", seq=7)), 7).lowered.added
    assert isinstance(added, Reshape)
    values = {name: value.value if isinstance(value, Literal) else value for name, value in added.values.items()}
    expected = {"_source_dataset_id": "budget", "_source_table": "budgets", "_operation_seq": 7, "order_id": None}
    assert {name: values[name] for name in expected} == expected
    assert (added.values["_deleted"], added.values["_created_at"], added.values["_updated_at"]) == (FALSE, CLOCK, CLOCK)
    carried = [values["_labels"], values["_period"]]
    assert [each.name for each in carried if isinstance(each, ColumnRef)] == ["_labels", "_period"]
    assert added.values["_row_id"] == added.handed_on("_row_id")


def test_labels_of_summarised_rows_are_empty() -> None:
    # C-51
    added = step_of(plan_of(append("budget", grouping=GROUPED)), 1).lowered.added
    assert isinstance(added, Reshape)
    assert added.values["_labels"] == Literal("", added.schema.columns["_labels"])


@pytest.mark.parametrize("mode", [None, "snapshot", "period", "bitemporal"])
def test_the_period_is_carried_whatever_the_mode_of_the_source(mode: str | None) -> None:
    # C-87: whether the stored rows have one is seen when they are read
    plan = plan_of(append("more"), world=source("{name: region, type: string}", mode=mode))
    added = step_of(plan, 1).lowered.added
    assert isinstance(added, Reshape)
    assert added.values["_period"] == ColumnRef("_period", None, TEXT)
    assert [name for name in added.schema.columns if name.startswith("_period")] == ["_period"]


@pytest.mark.parametrize(("mode", "warned"), [(None, ["W-05"]), ("snapshot", ["W-05"]), ("period", [])])
def test_rows_of_a_source_that_may_lack_periods_are_registered_with_a_warning(
    mode: str | None, warned: list[str]
) -> None:
    # W-05
    world = source("{name: region, type: string}", mode=mode)
    assert codes(append("more") + output(seq=2, register_as_dataset="kept"), world=world, output=False) == warned


def test_time_columns_that_the_working_dataset_lacks_are_dropped() -> None:
    # C-51
    with no_problem(append("more"), world=source("{name: region, type: string}", mode="bitemporal")) as plan:
        assert list(step_of(plan, 1).after.columns)[-9:] == [*SYSTEM, "_period"]


def test_the_period_can_be_a_key() -> None:
    # C-47, C-51
    added = step_of(plan_of(append("budget", grouping=grouping("SUM(amount)", keys="_period"))), 1).lowered.added
    assert isinstance(added, Reshape)
    value = added.values["_period"]
    assert isinstance(value, ColumnRef)
    assert value.name == "#_period"


def test_a_time_key_that_the_working_dataset_lacks_is_dropped() -> None:
    # C-51
    world = source("{name: amount, type: decimal}", mode="bitemporal")
    assert codes(append("more", grouping=grouping("SUM(amount)", keys="_period_from")), world=world) == []


def test_groups_are_of_the_filtered_rows() -> None:
    #
    plan = plan_of(append("budget", where="status = 'x'", grouping=GROUPED))
    (group,) = nodes(step_of(plan, 1).after.node, Group)
    assert isinstance(group.rows, Keep)
    assert isinstance(group.rows.rows, Scan)
    (mint,) = nodes(step_of(plan, 1).after.node, AssignIds)
    assert mint.by == ("#region",)


def test_the_input_can_be_appended() -> None:
    # C-61: it reads the stored rows
    text = update("net = 1") + append("sales", seq=2)
    with no_problem(text) as plan:
        added = step_of(plan, 2).lowered.added
        assert isinstance(added, Reshape)
        assert added.values["net"] == Literal(None, added.schema.columns["net"])


def test_a_pin_reads_exactly_that_version() -> None:
    # C-55, R-146
    world = WORLD_BUILT.with_dataset(
        "dataset: {id: budget, main_table: {name: budgets, columns: [{name: unheard, type: string}]}}", version=2
    )
    assert codes(append("budget", version=1), world=world) == []
    assert codes(append("budget"), world=world) == ["APPEND_003"]


def test_a_widened_column_is_converted_on_the_rows_before() -> None:
    # C-52
    plan = plan_of(append("budget"))
    node = step_of(plan, 1).after.node
    assert isinstance(node, Stack)
    assert isinstance(node.rows, Derive)
    assert list(node.rows.values) == ["amount"]


def test_without_widening_the_rows_before_are_left_alone() -> None:
    plan = plan_of(append("more"), world=source("{name: region, type: string}"))
    node = step_of(plan, 1).after.node
    assert isinstance(node, Stack)
    assert node.rows is plan.start.node


def test_a_source_without_mode_that_has_a_period_is_warned_of() -> None:
    # W-04, C-58
    world = source("{name: region, type: string}", mode=None, has_period=True)
    result = planned(append("more"), world=world)
    assert ([each.code for each in result.problems], result.plan is not None) == (["W-04"], True)


@pytest.mark.parametrize("mode", ["snapshot", "period"])
def test_a_source_with_a_mode_is_not_warned_of(mode: str) -> None:
    # W-04
    assert codes(append("more"), world=source("{name: region, type: string}", mode=mode, has_period=True)) == []


def test_a_selector_used_in_an_append_of_a_missing_dataset_is_used() -> None:
    # W-07
    assert codes(append("budgets", where="{{s}}"), head="selectors: {s: amount > 1}") == ["APPEND_001"]


def test_a_broken_source_is_not_reported_again() -> None:
    assert codes(append("budget"), world=WORLD_BUILT.without("budget", broken=True)) == []


# --- joins and lookups of the source

WITH_LOOKUP = """\
    dataset:
      id: plan
      main_table: {name: plan, columns: [{name: region, type: string}, {name: amount, type: "decimal(15,2)"}]}
      lookups:
        - alias: land
          target: {type: dataset, id: customers}
          join_conditions: [{source_column: region, target_column: country}]
"""
PLANS = WORLD_BUILT.with_dataset(WITH_LOOKUP)
GOLD = "[{alias: c, dataset_id: customers, on: c.country = region}]"


def joining(selector: str, joins: str = GOLD, *, dataset: str = "budget", grouping: str = "") -> str:
    more = f"\n    aggregation: {grouping}" if grouping else ""
    return (
        f"- seq: 1\n  type: append\n  arguments:\n    source: {{dataset_id: {dataset}, joins: {joins}}}\n"
        f"    source_selector: {quoted(selector)}{more}\n"
    )


def test_a_join_comes_before_the_selector_and_the_aggregation() -> None:
    grouping = "{group_by: [c.tier], aggregations: [{column: amount, expression: SUM(budgets.amount * LEN(c.id))}]}"
    appending = joining("c.tier <> ''", grouping=grouping).replace("seq: 1", "seq: 3")
    plan = plan_of(update("tier = status", seq=2) + appending)
    step = step_of(plan, 3)
    assert step.lowered.added is not None
    (lookup,) = nodes(step.lowered.added, Lookup)
    assert (lookup.alias, lookup.only) == ("c", ACTIVE)
    origin = step.after.origins["tier"]
    assert {"customers.tier", "sales.status"} <= origin.inputs
    assert {"customers.country", "budget.region", "customers.tier"} <= origin.conditions
    assert [use.role for use in plan.uses] == ["input", "append", "join"]
    assert "joins customers as c on c.country = region" in step.describe()


def test_only_selected_rows_need_a_match_unless_the_join_selects_them() -> None:
    added = step_of(plan_of(joining("amount > 0")), 1).lowered.added
    assert added is not None
    (lookup,) = nodes(added, Lookup)
    assert lookup.only != ACTIVE


def test_joined_columns_are_not_appended() -> None:
    assert codes(joining("c.tier = 'gold'")) == []


@pytest.mark.parametrize(
    ("operation", "problem"),
    [
        (joining("tier = 'gold'"), ("APPEND_006", "tier")),
        (joining("orders.region = 'N'"), ("APPEND_006", "orders.region")),
        (
            joining("TRUE", GOLD.replace("alias: c", "alias: budgets").replace("c.c", "budgets.c")),
            ("JOIN_ALIAS_CONFLICT", "budgets"),
        ),
        (joining("TRUE", GOLD.replace("customers", "custmers")), ("JOIN_DATASET_NOT_FOUND", "custmers")),
        (joining("TRUE", GOLD.replace("c.country = region", "c.country = regoin")), ("UNKNOWN_COLUMN", "regoin")),
        (joining("TRUE", GOLD.replace("c.country = region", "c.country")), ("TYPE_MISMATCH", "c.country")),
    ],
)
def test_faults_of_joins(operation: str, problem: tuple[str, str]) -> None:
    assert problem in found(operation)


def test_two_keys_that_become_one_column() -> None:
    grouping = "{group_by: [c.country, region], aggregations: [{column: amount, expression: SUM(amount)}]}"
    assert "APPEND_003" in codes(joining("TRUE", grouping=grouping))
    same = grouping.replace("c.country, region", "region, d.region")
    twice = "[{alias: d, dataset_id: sales, on: d.order_id = region}]"
    assert "DUPLICATE_GROUP_BY" in codes(joining("TRUE", twice, grouping=same))
    result = "{group_by: [d.status], aggregations: [{column: status, expression: MIN_AGG(status)}]}"
    assert "DUPLICATE_AGG_COLUMN" in codes(joining("TRUE", twice, grouping=result))


def test_lookups_of_the_source_are_joined_where_they_are_mentioned() -> None:
    used = plan_of(joining("land.tier = 'gold'", "[]", dataset="plan"), world=PLANS)
    assert [(use.role, use.alias, use.seq) for use in used.uses[1:]] == [("append", None, 1), ("lookup", "land", 1)]
    unused = plan_of(joining("amount > 0", "[]", dataset="plan"), world=PLANS)
    assert [use.role for use in unused.uses] == ["input", "append"]
    selectors = 'selectors: {gold: land.tier = "gold"}'
    assert len(plan_of(joining("{{gold}}", "[]", dataset="plan"), world=PLANS, head=selectors).uses) == 3
    assert ("JOIN_ALIAS_CONFLICT", "land") in found(
        joining("land.tier = 'gold'", GOLD.replace("alias: c", "alias: land").replace("c.", "land."), dataset="plan"),
        world=PLANS,
    )


def test_joins_belong_to_the_source() -> None:
    misplaced = append("budget") + "    joins: [{alias: fx, dataset_id: rates, on: fx.currency = budget.region}]\n"
    problem = problem_in(misplaced)
    assert isinstance(problem, UnknownKey)
    assert problem.advice is not None
    assert "`source`" in problem.advice
