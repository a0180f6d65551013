"""``update``: what it refuses, what types its columns get, and what it comes down to."""

from __future__ import annotations

import pytest

from dobonomodo.formula import columns_of, render_formula
from dobonomodo.formula.typed import Cast, ColumnRef, Literal, Operation
from dobonomodo.plan.expression import ACTIVE, CLOCK
from dobonomodo.plan.relation import Derive, Keep, Lookup, Scan
from dobonomodo.problems import OperationRef
from dobonomodo.problems.formula import TypeMismatch, UnknownColumn
from dobonomodo.problems.operation import DuplicateTarget, JoinAliasConflict, JoinDatasetNotFound, JoinVersionNotFound
from tests.unit.plan.building import (
    SYSTEM,
    WORLD_BUILT,
    aggregate,
    codes,
    found,
    join,
    no_problem,
    nodes,
    plan_of,
    planned,
    problem_in,
    step_of,
    types_after,
    update,
)
from tests.world import JANUARY

CUSTOMERS = join("c", "customers", "c.id = customer_id")


# --- assignments


@pytest.mark.parametrize("arguments", ["{assignments: []}", "{assignments: null}", "{}", "{joins: []}"])
def test_an_update_without_assignments_is_refused(arguments: str) -> None:
    #
    assert codes(f"- {{seq: 1, type: update, arguments: {arguments}}}\n") == ["EMPTY_ASSIGNMENTS"]


def test_an_update_without_arguments_is_refused() -> None:
    # R-002, C-08
    assert codes("- {seq: 1, type: update}\n") == ["EMPTY_ASSIGNMENTS"]


@pytest.mark.parametrize("name", ["1st", "net amount", "net-amount", '""', "12", "ab.cd", "größe"])
def test_a_target_is_an_identifier(name: str) -> None:
    #
    assert codes(
        f"- {{seq: 1, type: update, arguments: {{assignments: [{{column: {name}, expression: '1'}}]}}}}\n"
    ) == ["INVALID_COLUMN_NAME"]


def test_an_assignment_has_a_column_and_an_expression() -> None:
    #
    text = "- {seq: 1, type: update, arguments: {assignments: [{column: a}, {expression: '1'}]}}\n"
    assert codes(text) == ["MISSING_KEY", "MISSING_KEY"]


@pytest.mark.parametrize("expression", ["''", "' '"])
def test_an_expression_is_not_empty(expression: str) -> None:
    #
    text = f"- {{seq: 1, type: update, arguments: {{assignments: [{{column: a, expression: {expression}}}]}}}}\n"
    assert codes(text) == ["EXPRESSION_SYNTAX"]


@pytest.mark.parametrize("written", ["5", "1.5", "true"])
def test_an_expression_may_be_a_bare_number_or_truth(written: str) -> None:
    text = f"- {{seq: 1, type: update, arguments: {{assignments: [{{column: a, expression: {written}}}]}}}}\n"
    assert codes(text) == []


def test_an_exact_decimal_keeps_its_digits() -> None:
    text = "- {seq: 1, type: update, arguments: {assignments: [{column: a, expression: 1.50}]}}\n"
    assert types_after(plan_of(text), 1)["a"] == "decimal(18,2)"


def test_one_target_twice_is_refused_in_any_case() -> None:
    # C-24
    problem = problem_in(update("Net = amount", "nET = quantity"))
    assert isinstance(problem, DuplicateTarget)
    assert (problem.name, problem.first and problem.first.line, problem.span and problem.span.line) == ("nET", 9, 10)


def test_an_existing_target_twice_is_refused() -> None:
    # C-24
    assert found(update("amount = 1", "AMOUNT = 2")) == [("DUPLICATE_TARGET", "AMOUNT")]


def test_an_assignment_keeps_the_stored_spelling() -> None:
    # C-10
    plan = plan_of(update("AMOUNT = amount * 2"))
    assert [name for name in step_of(plan, 1).after.columns if name.casefold() == "amount"] == ["amount"]


@pytest.mark.parametrize(
    "name",
    [
        "_row_id",
        "_deleted",
        "_created_at",
        "_updated_at",
        "_modified_at",
        "_source_dataset_id",
        "_source_dataset",
        "_source_table",
        "_operation_seq",
        "_period",
        "_period_from",
        "_period_to",
        "_run_period",
        "_created_by_project_id",
        "_created_by_run_id",
        "_valid_from",
        "_valid_to",
        "_ROW_ID",
    ],
)
def test_system_columns_cannot_be_assigned(name: str) -> None:
    # C-41
    assert found(update(f"{name} = NULL")) == [("RESERVED_COLUMN", name)]


@pytest.mark.parametrize("name", ["_labels", "_Labels"])
def test_labels_can_be_assigned(name: str) -> None:
    # C-18
    with no_problem(update(f'{name} = CONCAT(_labels, "{{region:EMEA}}")')) as plan:
        assert list(step_of(plan, 1).after.columns)[-9:] == [*SYSTEM, "_period"]


def test_labels_are_text() -> None:
    # C-18
    assert found(update("_labels = amount")) == [("TYPE_MISMATCH", "amount")]


def test_labels_are_never_null() -> None:
    # C-18: a value that can be NULL would swallow every label that was there.
    plan = plan_of(update("_labels = CONCAT(_labels, region)"))
    value = nodes(step_of(plan, 1).after.node, Derive)[0].values["_labels"]
    assert "coalesce(" in render_formula(value, JANUARY).lower()


def test_an_unknown_name_with_an_underscore_is_accepted_with_a_warning() -> None:
    # C-42, W-08
    result = planned(update("_note = region"))
    assert [(each.code, each.severity) for each in result.problems] == [("W-08", "warning")]
    assert result.plan is not None
    assert list(types_after(result.plan, 1))[-1] == "_note"


def test_a_column_with_an_underscore_is_warned_of_once() -> None:
    # W-08
    assert codes(update("_note = region") + update("_note = status", seq=2)) == ["W-08"]


# --- types


@pytest.mark.parametrize(
    ("assignment", "kind"),
    [
        ("quantity = quantity + 1", "integer"),
        ("quantity = amount", "decimal(21,2)"),
        ("quantity = 4.5", "decimal(20,1)"),
        ("amount = quantity", "decimal(21,2)"),
        ("amount = amount * 1.125", "decimal(20,5)"),
        ("shipped_at = booked", "timestamp"),
        ("shipped_at = NOW()", "timestamp"),
        ("booked = TODAY()", "date"),
        ("paid = NOT paid", "boolean"),
        ("region = NULL", "string"),
        ("quantity = NULL", "integer"),
        ("booked = NULL", "date"),
        ("paid = NULL", "boolean"),
    ],
)
def test_the_type_of_an_existing_column(assignment: str, kind: str) -> None:
    # C-26
    assert types_after(plan_of(update(assignment)), 1)[assignment.split()[0]] == kind


@pytest.mark.parametrize(
    ("assignment", "expected", "given"),
    [
        ('amount = "1"', "a number", "text"),
        ('quantity = "1"', "a number", "text"),
        ("region = 1", "text", "a number"),
        ("region = booked", "text", "a date"),
        ("region = paid", "text", "true or false"),
        ("booked = shipped_at", "a date", "a time"),
        ('booked = "2026-01-31"', "a date", "text"),
        ("shipped_at = quantity", "a time", "a number"),
        ("paid = 1", "true or false", "a number"),
        ("amount = paid", "a number", "true or false"),
    ],
)
def test_a_value_of_another_kind_is_refused(assignment: str, expected: str, given: str) -> None:
    # C-26, R-021
    problem = problem_in(update(assignment))
    assert isinstance(problem, TypeMismatch)
    column, _, expression = assignment.partition(" = ")
    assert (problem.expected, problem.found, problem.expression) == (expected, given, expression)
    assert column in problem.what


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("NULL", "string"),
        ("1", "integer"),
        ("1.5", "decimal(18,1)"),
        ("amount", "decimal(18,2)"),
        ("amount * amount", "decimal(31,4)"),
        ("booked", "date"),
        ("NOW()", "timestamp"),
        ("paid", "boolean"),
        ('"x"', "string"),
        ("IF(paid, NULL, 1)", "integer"),
    ],
)
def test_the_type_of_a_new_column(expression: str, kind: str) -> None:
    # C-26: a bare NULL makes text
    assert types_after(plan_of(update(f"fresh = {expression}")), 1)["fresh"] == kind


def test_a_new_column_comes_after_the_business_columns_and_before_the_system_columns() -> None:
    # R-025, C-63
    columns = list(step_of(plan_of(update("one = 1", "two = 2") + update("three = 3", seq=2)), 2).after.columns)
    assert columns[9:] == ["one", "two", "three", *SYSTEM, "_period"]


def test_later_operations_see_a_new_column() -> None:
    #
    assert codes(update("net = amount * 2") + update("gross = net * 2", seq=2)) == []


def test_an_assignment_does_not_see_a_column_that_the_same_update_makes() -> None:
    # C-25
    problem = problem_in(update("net = amount * 2", "gross = Net * 2"))
    assert isinstance(problem, UnknownColumn)
    assert (problem.name, problem.made_by_this_update) == ("Net", True)


def test_the_selector_does_not_see_a_column_that_the_update_makes() -> None:
    # C-23, C-25
    problem = problem_in(update("net = amount * 2", selector="net > 1"))
    assert (problem.code, problem.made_by_this_update) == ("UNKNOWN_COLUMN", True)


# --- names


@pytest.mark.parametrize("written", ["amount", "orders.amount", "Orders.AMOUNT", "`amount`", "orders.`amount`"])
def test_bare_and_qualified_names_are_equal(written: str) -> None:
    # C-09, C-10, R-027
    assert codes(update(f"net = {written}")) == []


@pytest.mark.parametrize("written", ["customers.amount", "sales.amount", "c.amount"])
def test_any_other_qualifier_is_refused(written: str) -> None:
    # C-09
    problem = problem_in(update(f"net = {written}"))
    assert (problem.code, problem.qualifier, problem.known_qualifiers) == (
        "UNKNOWN_COLUMN",
        written.split(".")[0],
        ("orders",),
    )


def test_an_unknown_column_is_placed_inside_the_expression() -> None:
    #
    problem = problem_in(update("net = ROUND(amout * 2, 2)"))
    assert (problem.code, problem.span.line, problem.span.column) == ("UNKNOWN_COLUMN", 9, 46)
    assert (problem.operation, problem.expression) == (OperationRef(1, "update-1"), "ROUND(amout * 2, 2)")
    assert "amount" in problem.known


@pytest.mark.parametrize("synonym", ["_modified_at", "_source_dataset"])
def test_synonyms_of_system_columns_can_be_read(synonym: str) -> None:
    # C-01, C-02
    assert codes(update(f"fresh = {synonym}")) == []


@pytest.mark.parametrize("expression", ["SUM(amount)", "COUNT(*)", "MIN_AGG(amount)"])
def test_aggregate_functions_are_refused(expression: str) -> None:
    #
    assert codes(update(f"net = {expression}")) == ["AGGREGATE_NOT_ALLOWED"]
    assert codes(update("net = 1", selector=f"{expression} > 1")) == ["AGGREGATE_NOT_ALLOWED"]


@pytest.mark.parametrize("name", ["MIN", "MAX"])
def test_one_argument_min_and_max_are_refused(name: str) -> None:
    # C-16
    assert codes(update(f"net = {name}(amount)")) in (["WRONG_ARITY"], ["AGGREGATE_NOT_ALLOWED"])


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("amount +", "EXPRESSION_SYNTAX"),
        ("VLOOKUP(amount)", "UNKNOWN_FUNCTION"),
        ("ROUND(amount, 1, 2)", "WRONG_ARITY"),
        ("amount + region", "TYPE_MISMATCH"),
        ('booked > "2026-02-30"', "INVALID_DATE"),
    ],
)
def test_faults_of_expressions(expression: str, code: str) -> None:
    #
    assert codes(update(f"net = {expression}")) == [code]


# --- selectors


def test_a_selector_is_a_condition() -> None:
    #
    assert found(update("net = 1", selector="amount")) == [("TYPE_MISMATCH", "amount")]


def test_a_selector_must_parse() -> None:
    #
    problem = problem_in(update("net = 1", selector="amount >"))
    assert (problem.code, problem.operation) == ("EXPRESSION_SYNTAX", OperationRef(1, "update-1"))


def test_an_undefined_named_selector_is_refused() -> None:
    #
    problem = problem_in(update("net = 1", selector="{{ activ }}"))
    assert (problem.code, problem.name) == ("SELECTOR_UNDEFINED", "activ")


HEAD = """
selectors:
  active: 'status = "active"'
  mine: '{{active}} AND region = "EMEA"'
"""


@pytest.mark.parametrize("selector", ["{{mine}}", "{{ mine }}", "NOT {{mine}}", "{{mine}} AND paid"])
def test_named_selectors_nest_and_combine(selector: str) -> None:
    # C-19
    assert codes(update("net = 1", selector=selector), head=HEAD) == []


def test_a_named_selector_is_one_boolean() -> None:
    # C-19: NOT binds to the whole of it
    plan = plan_of(update("net = 1", selector="NOT {{either}}"), head="selectors: {either: 'paid OR amount > 1'}")
    selected = step_of(plan, 1).lowered.selected
    assert isinstance(selected, Operation)
    negated = selected.operands[1]
    assert isinstance(negated, Operation)
    assert (negated.operator, getattr(negated.operands[0], "operator", None)) == ("NOT", "OR")


def test_selector_names_are_case_sensitive() -> None:
    # C-19
    assert codes(update("net = 1", selector="{{Mine}} AND {{mine}}"), head=HEAD) == ["SELECTOR_UNDEFINED"]


def test_a_selector_that_leads_back_to_itself_is_refused() -> None:
    # C-19
    head = "selectors: {a: '{{b}}', b: 'paid AND {{a}}'}"
    problem = problem_in(update("net = 1", selector="{{a}}"), head=head)
    assert (problem.code, problem.names) == ("SELECTOR_CYCLE", ("a", "b", "a"))


def test_a_reference_in_a_text_is_text() -> None:
    # C-19
    assert codes(update('region = "{{nothing}}"')) == []


def test_named_selectors_work_in_expressions_and_joins() -> None:
    # C-19
    text = update("net = IF({{active}}, 1, 2)", joins=join("c", "customers", "c.id = customer_id AND {{active}}"))
    assert codes(text, head="selectors: {active: 'status = \"active\"'}") == []


def test_a_blank_selector_selects_everything_without_a_word() -> None:
    # C-20
    with no_problem(update("net = 1", selector="  ")) as plan:
        assert step_of(plan, 1).lowered.selected == ACTIVE


def test_a_comparison_with_null_is_warned_of() -> None:
    # W-03, C-31
    result = planned(update("net = 1", selector="region = NULL"))
    assert ([each.code for each in result.problems], result.plan is not None) == (["W-03"], True)


# --- joins


def test_a_join_makes_columns_visible_under_its_alias() -> None:
    #
    assert codes(update("tier = c.tier", "place = C.Country", joins=CUSTOMERS)) == []


def test_a_bare_name_is_never_a_joined_column() -> None:
    # C-36
    problem = problem_in(update("fresh = tier", joins=CUSTOMERS))
    assert (problem.code, problem.also_under) == ("UNKNOWN_COLUMN", ("c",))


def test_an_alias_is_gone_after_the_operation() -> None:
    # R-102, C-36
    text = update("tier = c.tier", joins=CUSTOMERS) + update("again = c.tier", seq=2)
    assert found(text) == [("UNKNOWN_COLUMN", "c.tier")]


def test_joined_columns_do_not_stay() -> None:
    # C-36
    after = step_of(plan_of(update("rank = c.tier", joins=CUSTOMERS)), 1).after
    assert (dict(after.joined), "tier" in after.columns) == ({}, False)


@pytest.mark.parametrize(
    ("alias", "taken_by"),
    [("orders", "the main table"), ("ORDERS", "the main table"), ("C", "another join of this operation")],
)
def test_an_alias_that_is_taken_is_refused(alias: str, taken_by: str) -> None:
    # C-35
    joins = CUSTOMERS + join(alias, "customers", "customer_id = order_id")
    problem = problem_in(update("tier = c.tier", joins=joins))
    assert isinstance(problem, JoinAliasConflict)
    assert (problem.alias, problem.taken_by, problem.span and problem.span.line) == (alias, taken_by, 10)


def test_a_join_may_use_earlier_aliases_only() -> None:
    # C-35
    chain = CUSTOMERS + join("r", "rates", "r.country = c.country")
    assert codes(update("net = amount * r.rate", joins=chain)) == []
    backwards = join("r", "rates", "r.country = c.country") + CUSTOMERS
    assert found(update("net = amount * r.rate", joins=backwards)) == [("UNKNOWN_COLUMN", "c.country")]


@pytest.mark.parametrize("on", ["TRUE", "c.id < customer_id AND paid", "c.id IN (customer_id, order_id)"])
def test_on_is_any_condition(on: str) -> None:
    # C-35
    assert codes(update("tier = c.tier", joins=join("c", "customers", on))) == []


def test_on_is_a_condition() -> None:
    assert codes(update("tier = c.tier", joins=join("c", "customers", "c.id"))) == ["TYPE_MISMATCH"]


def test_on_compares_values_of_one_kind() -> None:
    assert codes(update("tier = c.tier", joins=join("c", "customers", "c.id = amount"))) == ["TYPE_MISMATCH"]


def test_a_join_needs_its_condition() -> None:
    #
    text = update("a = 1", joins="- {alias: c, dataset_id: customers}")
    assert codes(text) == ["MISSING_KEY"]


def test_the_time_columns_of_a_joined_dataset_are_visible() -> None:
    #
    joins = join("r", "rates", "r._period_from <= booked")
    assert codes(update("since = r._period_from", joins=joins)) == []


@pytest.mark.parametrize("name", ["_row_id", "_deleted", "_labels"])
def test_other_system_columns_of_a_joined_dataset_are_not(name: str) -> None:
    assert codes(update(f"fresh = c.{name}", joins=CUSTOMERS)) == ["UNKNOWN_COLUMN"]


def test_a_missing_join_dataset_is_the_only_report() -> None:
    # R-103, C-37
    problem = problem_in(
        update("tier = c.tier + 1", selector="c.anything", joins=join("c", "customer", "c.id = customer_id"))
    )
    assert isinstance(problem, JoinDatasetNotFound)
    assert (problem.dataset_id, problem.disabled) == ("customer", False)
    assert "customers" in problem.known


def test_faults_beside_a_missing_join_dataset_are_found() -> None:
    text = update("tier = amout", joins=join("c", "customer", "c.id = custmer_id"))
    assert found(text) == [
        ("JOIN_DATASET_NOT_FOUND", "customer"),
        ("UNKNOWN_COLUMN", "custmer_id"),
        ("UNKNOWN_COLUMN", "amout"),
    ]


def test_a_selector_used_in_a_join_of_a_missing_dataset_is_used() -> None:
    # W-07
    text = update("tier = c.tier", joins=join("c", "customer", "c.id = customer_id AND {{active}}"))
    assert codes(text, head="selectors: {active: paid}") == ["JOIN_DATASET_NOT_FOUND"]


def test_a_join_dataset_without_an_active_version_is_refused() -> None:
    # C-37
    problem = problem_in(update("a = s.id", joins=join("s", "sleeping", "s.id = order_id")))
    assert (problem.code, problem.disabled) == ("JOIN_DATASET_NOT_FOUND", True)


def test_a_missing_version_of_a_join_dataset_is_refused() -> None:
    # C-37, R-105
    problem = problem_in(update("tier = c.tier", joins=join("c", "customers", "c.id = customer_id", version=7)))
    assert isinstance(problem, JoinVersionNotFound)
    assert (problem.version, problem.versions, problem.span and problem.span.line) == (7, (1,), 9)


TWO_VERSIONS = WORLD_BUILT.with_dataset(
    "dataset: {id: customers, main_table: {name: customers, columns: [{name: id, type: string}, {name: grade, type: integer}]}}",
    version=2,
)


def test_a_pin_reads_exactly_that_version() -> None:
    # C-55, R-083
    pinned = join("c", "customers", "c.id = customer_id", version=1)
    plan = plan_of(update("tier = c.tier", joins=pinned), world=TWO_VERSIONS)
    assert [(use.dataset_id, use.version) for use in plan.uses] == [("sales", 1), ("customers", 1)]


def test_without_a_pin_the_highest_active_version_is_read() -> None:
    # C-55, R-083
    plan = plan_of(update("grade = c.grade", joins=CUSTOMERS), world=TWO_VERSIONS)
    assert plan.uses[1].version == 2


def test_the_input_dataset_can_be_joined() -> None:
    # C-37, R-119: it reads the stored rows, so columns made before are not there
    joins = join("other", "sales", "other.order_id = order_id")
    assert codes(update("before = other.amount", joins=joins)) == []
    later = update("net = 1") + update("before = other.net", joins=joins, seq=2)
    assert found(later) == [("UNKNOWN_COLUMN", "other.net")]


# --- what it comes down to


def test_an_update_is_one_node_with_a_case_per_target() -> None:
    # C-23
    plan = plan_of(update("amount = quantity", "quantity = amount", selector="paid"))
    step = step_of(plan, 1)
    node = step.after.node
    assert isinstance(node, Derive)
    assert node.rows is plan.start.node
    assert list(node.values) == ["amount", "quantity", "_updated_at"]
    selected = step.lowered.selected
    assert isinstance(selected, Operation)
    assert (selected.operator, selected.operands[0]) == ("AND", ACTIVE)
    for name, value in node.values.items():
        assert isinstance(value, Operation)
        condition, _, old = value.operands
        assert (value.operator, condition) == ("CASE", selected)
        assert [each.name for each in columns_of(old)] == [name]


def test_assignments_read_the_row_before() -> None:
    # C-23: a swap works
    plan = plan_of(update("region = status", "status = region"))
    values = nodes(step_of(plan, 1).after.node, Derive)[0].values
    assert [value.operands[1] for value in (values["region"], values["status"])] == [
        ColumnRef("status", None, plan.start.columns["status"]),
        ColumnRef("region", None, plan.start.columns["region"]),
    ]


def test_unselected_rows_get_null_in_a_new_column() -> None:
    #
    value = nodes(step_of(plan_of(update("net = amount", selector="paid")), 1).after.node, Derive)[0].values["net"]
    old = value.operands[2]
    assert isinstance(old, Literal)
    assert (old.value, old.type) == (None, value.type)


def test_a_widened_column_is_converted_on_every_row() -> None:
    # C-26
    plan = plan_of(update("quantity = 4.5", selector="paid"))
    value = nodes(step_of(plan, 1).after.node, Derive)[0].values["quantity"]
    kinds = {str(each.type) for each in value.operands[1:]}
    assert kinds == {"decimal(20,1)"}
    assert isinstance(value.operands[2], Cast)


def test_the_time_of_change_is_the_clock_on_selected_rows() -> None:
    # R-013, C-01, C-17
    value = nodes(step_of(plan_of(update("net = 1")), 1).after.node, Derive)[0].values["_updated_at"]
    assert value.operands[:2] == (ACTIVE, CLOCK)


def test_only_selected_rows_are_joined() -> None:
    # C-32
    step = step_of(plan_of(update("tier = c.tier", selector="paid", joins=CUSTOMERS)), 1)
    (lookup,) = nodes(step.after.node, Lookup)
    assert (lookup.alias, lookup.only) == ("c", step.lowered.selected)


def test_every_active_row_is_joined_when_the_selector_uses_the_alias() -> None:
    # C-32, C-35
    chain = CUSTOMERS + join("r", "rates", "r.country = c.country")
    step = step_of(plan_of(update("net = r.rate", selector="c.tier = 'gold'", joins=chain)), 1)
    assert [lookup.only for lookup in nodes(step.after.node, Lookup)] == [ACTIVE, ACTIVE]


def test_joins_are_made_in_their_order() -> None:
    # C-35
    chain = CUSTOMERS + join("r", "rates", "r.country = c.country")
    node = step_of(plan_of(update("net = r.rate", joins=chain)), 1).after.node
    assert isinstance(node, Derive)
    second = node.rows
    assert isinstance(second, Lookup)
    first = second.rows
    assert isinstance(first, Lookup)
    assert (first.alias, second.alias) == ("c", "r")
    assert (list(first.schema.joined), list(second.schema.joined)) == (["c"], ["c", "r"])


def test_deleted_rows_of_a_join_are_invisible() -> None:
    # C-37
    (lookup,) = nodes(step_of(plan_of(update("tier = c.tier", joins=CUSTOMERS)), 1).after.node, Lookup)
    assert isinstance(lookup.source, Keep)
    assert lookup.source.condition == ACTIVE
    assert isinstance(lookup.source.rows, Scan)


def test_a_use_says_who_reads_it_and_as_what() -> None:
    plan = plan_of(update("tier = c.tier", joins=CUSTOMERS, seq=7))
    use = plan.uses[1]
    assert (use.role, use.alias, use.seq, use.table, use.temporal_mode) == ("join", "c", 7, "customers", "snapshot")


def test_reads_are_the_columns_that_it_cannot_do_without() -> None:
    text = update("net = amount", selector="paid", joins=join("c", "customers", "c.id = customer_id"))
    assert step_of(plan_of(text), 1).lowered.reads == {"_deleted", "paid", "customer_id", "amount"}


# --- one fault, one report


def test_a_fault_leaves_a_hole_and_no_further_reports() -> None:
    text = (
        update("net = amout * 2")
        + update("gross = net + 1", "label = CONCAT(net)", seq=2)
        + aggregate("net, gross", "total = SUM(net)", seq=3)
        + update("late = net + regoin", selector="net", seq=4)
    )
    assert found(text) == [("UNKNOWN_COLUMN", "amout"), ("UNKNOWN_COLUMN", "regoin")]


def test_a_target_of_another_kind_keeps_its_type() -> None:
    text = update('amount = "x"') + update("net = amount * 2", seq=2)
    assert codes(text) == ["TYPE_MISMATCH"]


def test_every_assignment_is_checked_though_one_cannot_be_read() -> None:
    text = "- {seq: 1, type: update, arguments: {assignments: [{column: 1a, expression: '1'}, {column: b, expression: amout}]}}\n"
    assert found(text) == [("INVALID_COLUMN_NAME", "1a"), ("UNKNOWN_COLUMN", "amout")]


def test_the_selector_is_checked_though_the_arguments_cannot_be_read() -> None:
    text = "- {seq: 1, type: update, selector: 'regoin = 1', arguments: {assignments: []}}\n"
    assert found(text) == [("UNKNOWN_COLUMN", "regoin"), ("EMPTY_ASSIGNMENTS", "assignments")]


def test_a_selector_is_used_though_the_arguments_cannot_be_read() -> None:
    # W-07
    text = "- {seq: 1, type: update, selector: '{{s}}', arguments: {assignments: []}}\n"
    assert codes(text, head="selectors: {s: paid}") == ["EMPTY_ASSIGNMENTS"]


def test_unknown_keys_are_refused_at_every_depth() -> None:
    text = """
    - seq: 1
      type: update
      arguments:
        join: []
        assignments: [{column: a, expression: '1', colour: red}]
    """
    assert found(text) == [("UNKNOWN_KEY", "join"), ("UNKNOWN_KEY", "colour")]
