"""The planner as a whole: the shape of a project, the input and its lookups, the order of problems, warnings about the whole."""

from __future__ import annotations

import pytest

from dobonomodo.formula import ColumnRef
from dobonomodo.plan.expression import ACTIVE
from dobonomodo.plan.operations import OPERATION_BY_TYPE
from dobonomodo.plan.relation import Derive, Keep, Lookup, Scan, Stack
from dobonomodo.problems.definition import InvalidOperation
from dobonomodo.problems.formula import UnknownColumn
from dobonomodo.problems.operation import InputDatasetNotFound, MakerReason, UnknownOperation
from dobonomodo.storage.table_target import StoredTable
from tests.unit.plan.building import (
    SYSTEM,
    WORLD,
    WORLD_BUILT,
    World,
    aggregate,
    append,
    codes,
    delete,
    found,
    join,
    no_problem,
    nodes,
    output,
    plan_of,
    planned,
    problem_in,
    shown,
    step_of,
    types_after,
    update,
    world_from,
)

# --- the shape of a project


def test_synonyms_are_accepted() -> None:
    # C-03, R-050, R-174
    with no_problem(
        "- {order: 3, alias: net, type: update, parameters: {assignments: [{column: a, expression: '1'}]}}\n"
    ) as plan:
        assert (plan.steps[0].spec.seq, plan.steps[0].spec.name) == (3, "net")


def test_synonyms_that_say_the_same_are_accepted() -> None:
    # C-03
    assert codes("- {seq: 3, order: 3, type: delete}\n") == []


@pytest.mark.parametrize(
    "keys", ["seq: 3, order: 4", "seq: 3, name: a, alias: b", "seq: 3, arguments: {}, parameters: {selector: paid}"]
)
def test_synonyms_that_contradict_each_other_are_refused(keys: str) -> None:
    # C-03
    assert "INVALID_OPERATION" in codes(f"- {{{keys}, type: delete}}\n")


def test_selectors_that_contradict_each_other_are_refused() -> None:
    # C-04
    assert codes("- {seq: 1, type: delete, selector: paid, arguments: {selector: NOT paid}}\n") == ["INVALID_OPERATION"]


def test_the_same_selector_in_both_places_is_accepted() -> None:
    # C-04
    assert codes("- {seq: 1, type: delete, selector: paid, arguments: {selector: paid}}\n") == []


def test_operations_run_by_number_whatever_the_order_of_the_list() -> None:
    # C-06, R-073, R-096, R-115
    text = update("gross = net * 2", seq=20) + update("net = amount", seq=10)
    with no_problem(text) as plan:
        assert [step.spec.seq for step in plan.steps] == [10, 20, 900]


def test_a_number_twice_is_refused_and_the_rest_is_checked() -> None:
    # C-06, R-096
    assert codes(update("a = amout", seq=5) + update("b = amout", seq=5)) == [
        "UNKNOWN_COLUMN",
        "DUPLICATE_SEQ",
        "UNKNOWN_COLUMN",
    ]


@pytest.mark.parametrize("seq", ["0", "-1", "1.5", "one", "true", "null"])
def test_a_number_is_positive_and_whole(seq: str) -> None:
    # C-06, R-073
    assert "INVALID_SEQ" in codes(f"- {{seq: {seq}, type: delete}}\n")


def test_a_name_is_made_of_type_and_number() -> None:
    # C-07
    assert plan_of("- {seq: 4, type: delete}\n").steps[0].spec.name == "delete-4"


@pytest.mark.parametrize("kind", ["updat", "UPDATE", "merge"])
def test_an_unknown_type_is_refused(kind: str) -> None:
    #
    assert codes(f"- {{seq: 1, type: {kind}}}\n") == ["INVALID_OPERATION"]


# --- the input


def test_the_input_is_scanned_with_all_system_columns() -> None:
    # C-78, Part 3
    plan = plan_of(delete("paid"))
    assert isinstance(plan.start.node, Scan)
    assert list(plan.start.columns)[9:] == [*SYSTEM, "_period"]
    assert (plan.input.role, plan.input.dataset_id, plan.input.version, plan.input.seq) == ("input", "sales", 1, None)
    assert (plan.input.natural_key, "order_id" in plan.input.nullable) == (("order_id",), False)
    assert plan.uses == (plan.input,)


@pytest.mark.parametrize(
    ("dataset", "columns"),
    [("customers", ()), ("rates", ("_period_from", "_period_to")), ("budget", ("_period",))],
)
def test_time_columns_come_with_the_temporal_mode(dataset: str, columns: tuple[str, ...]) -> None:
    # Part 3, C-57
    assert tuple(plan_of(delete(), input_id=dataset).start.columns)[-len(columns) - 1 :] == ("_labels", *columns)


def test_a_missing_input_is_the_only_report() -> None:
    # R-145, C-22
    text = update("net = anything + 1", selector="whatever") + aggregate("x, y", "t = SUM(net)", seq=2)
    problem = problem_in(text, input_id="sale")
    assert isinstance(problem, InputDatasetNotFound)
    assert (problem.dataset_id, problem.disabled, problem.span and problem.span.line) == ("sale", False, 3)


def test_faults_that_need_no_columns_are_found_without_an_input() -> None:
    text = update("net = VLOOKUP(x)") + output("{datasource_id: nowhere, table: x}")
    assert codes(text, input_id="sale", output=False) == [
        "INPUT_DATASET_NOT_FOUND",
        "UNKNOWN_FUNCTION",
        "INVALID_DESTINATION",
    ]


def test_an_input_without_an_active_version() -> None:
    problem = problem_in(delete(), input_id="sleeping")
    assert (problem.code, problem.disabled) == ("INPUT_DATASET_NOT_FOUND", True)


def test_a_version_of_the_input_that_does_not_exist_is_not_called_inactive() -> None:
    problem = problem_in(delete(), head="input_dataset_version: 9")
    assert problem.code == "INPUT_DATASET_NOT_FOUND"
    assert not problem.disabled


def test_a_broken_input_is_not_reported_again() -> None:
    result = planned(update("net = anything"), world=WORLD_BUILT.without("sales", broken=True))
    assert (result.plan, result.problems) == (None, ())


@pytest.mark.parametrize(
    "text", [update("t = c.x", joins=join("c", "customers", "c.id = customer_id")), append("customers")]
)
def test_there_is_no_plan_with_a_broken_dataset(text: str) -> None:
    result = planned(text, world=WORLD_BUILT.without("customers", broken=True))
    assert (result.plan, result.problems) == (None, ())


def test_a_pinned_version_of_the_input_is_read() -> None:
    # C-55
    world = WORLD_BUILT.with_dataset(
        "dataset: {id: sales, main_table: {name: sold, columns: [{name: a, type: date}]}}", version=2
    )
    assert plan_of(delete(), world=world, head="input_dataset_version: 1").input.table == "orders"
    assert plan_of(delete(), world=world).input.table == "sold"


# --- lookups

LOOKED_UP = """
dataset:
  id: with-lookups
  main_table: {name: orders, temporal_mode: period, columns: [{name: customer_id, type: string}, {name: amount, type: decimal}]}
  lookups:
    - alias: customers
      target: {type: dataset, id: customers}
      join_conditions: [{source_column: customer_id, target_column: id}]
    - alias: countries
      target: {type: table, name: countries, columns: [{name: code, type: string}, {name: zone, type: integer}]}
      join_conditions: [{source_column: customer_id, target_column: code}]
"""


def lookups(text: str = LOOKED_UP) -> World:
    return WORLD_BUILT.with_dataset(text)


def test_lookups_are_joined_before_the_first_operation() -> None:
    # C-82
    plan = plan_of(delete(), world=lookups(), input_id="with-lookups")
    second = plan.start.node
    assert isinstance(second, Lookup)
    first = second.rows
    assert isinstance(first, Lookup)
    assert (first.alias, second.alias) == ("customers", "countries")
    assert isinstance(first.source, Keep)
    assert (first.source.condition, first.only) == (ACTIVE, ACTIVE)
    assert [(use.role, use.dataset_id, use.table, use.alias) for use in plan.uses[1:]] == [
        ("lookup", "customers", "customers", "customers"),
        ("lookup", "with-lookups", "countries", "countries"),
    ]


def test_keys_of_a_lookup_keep_their_digits() -> None:
    """C-90: neither is rounded to the scale of the other, however wide they are."""
    kinds = [("decimal(15,2)", "decimal(12,8)"), ("decimal(38,0)", "decimal(38,30)"), ("integer", "decimal(12,8)")]
    for mine, theirs in kinds:
        text = f"""
dataset:
  id: mixed
  main_table: {{name: orders, columns: [{{name: rate, type: "{mine}"}}]}}
  lookups:
    - alias: r
      target: {{type: table, name: rates, columns: [{{name: rate, type: "{theirs}"}}]}}
      join_conditions: [{{source_column: rate, target_column: rate}}]
"""
        node = plan_of(delete(), world=lookups(text), input_id="mixed").start.node
        assert isinstance(node, Lookup)
        one, other = node.on.operands
        assert [str(one.type), str(other.type)] == [mine.replace("integer", "decimal(19,0)"), theirs]
        assert isinstance(other, ColumnRef)
        assert isinstance(one, ColumnRef) == (mine != "integer")


def test_lookups_are_visible_to_every_operation() -> None:
    # C-82, C-09
    text = (
        update("tier = customers.tier", "zone = countries.zone", selector="customers.tier = 'gold'")
        + aggregate("customers.tier", "total = SUM(countries.zone)", seq=2, selector="countries.zone > 1")
        + delete("Customers.Tier = 'x'", seq=3)
        + output(selector="customers.country = 'NL'")
    )
    assert codes(text, world=lookups(), input_id="with-lookups", output=False) == []


def test_lookups_are_not_columns_of_the_working_dataset() -> None:
    # C-82
    plan = plan_of(output(), world=lookups(), input_id="with-lookups", output=False)
    write = plan.steps[0].lowered.write
    assert write is not None
    assert write.columns == ("customer_id", "amount", *SYSTEM, "_period")
    assert found(update("a = tier"), world=lookups(), input_id="with-lookups") == [("UNKNOWN_COLUMN", "tier")]


def test_lookups_are_not_part_of_alignment() -> None:
    # C-82
    world = lookups().with_dataset("dataset: {id: t, main_table: {name: t, columns: [{name: tier, type: string}]}}")
    assert codes(append("t"), world=world, input_id="with-lookups") == ["APPEND_003"]


def test_lookups_stay_beside_the_rows_that_are_made() -> None:
    # C-82
    plan = plan_of(
        aggregate("customer_id", "t = SUM(amount)") + append("budget2", seq=2),
        input_id="with-lookups",
        world=lookups().with_dataset(
            "dataset: {id: budget2, main_table: {name: b, columns: [{name: amount, type: decimal}]}}"
        ),
    )
    for seq in (1, 2):
        node = step_of(plan, seq).after.node
        assert isinstance(node, Stack)
        assert list(node.schema.joined) == ["customers", "countries"]


def test_a_join_cannot_take_the_alias_of_a_lookup() -> None:
    # C-35
    text = update("a = 1", joins=join("Customers", "customers", "customer_id = 'x'"))
    problem = problem_in(text, world=lookups(), input_id="with-lookups")
    assert (problem.code, problem.alias) == ("JOIN_ALIAS_CONFLICT", "Customers")


def test_a_lookup_compares_columns_of_one_kind() -> None:
    text = LOOKED_UP.replace(
        "source_column: customer_id, target_column: id", "source_column: amount, target_column: id"
    )
    assert codes(delete(), world=lookups(text), input_id="with-lookups") == ["TYPE_MISMATCH"]


def test_a_lookup_of_an_unknown_dataset_is_the_only_report() -> None:
    text = LOOKED_UP.replace("id: customers}", "id: custmers}")
    operations = update("tier = customers.tier & 'x'") + update("zone = countries.zonn", seq=2)
    assert codes(operations, world=lookups(text), input_id="with-lookups") == [
        "JOIN_DATASET_NOT_FOUND",
        "UNKNOWN_COLUMN",
    ]


def test_a_lookup_of_a_broken_dataset_is_not_reported_again() -> None:
    world = lookups()
    assert (
        codes(update("t = customers.tier"), world=world.without("customers", broken=True), input_id="with-lookups")
        == []
    )


# --- registered datasets

MADE = StoredTable("lake", None, "made")


def test_the_rows_of_a_registered_dataset_are_found_without_a_resolver() -> None:
    # C-83
    world = WORLD_BUILT.with_dataset(
        "dataset: {id: made, main_table: {name: made, columns: [{name: region, type: string}]}}",
        registered=MADE,
    ).resolving(default_resolver=None)
    plan = plan_of(append("made"), world=world, head="resolver_overrides: {sales: files}")
    assert (plan.uses[1].resolver_id, plan.uses[1].registered) == (None, MADE)


# --- everything at once


def test_problems_are_ordered_by_place() -> None:
    # Part 4
    text = (
        output("{datasource_id: lak, table: x}", seq=900)
        + update("b = amout", seq=20)
        + append("budgets", seq=30)
        + delete("paid = 1", seq=10)
    )
    result = planned(text, output=False, head="selectors: {unused: paid}")
    lines = [problem.span.line for problem in result.problems if problem.span]
    assert lines == sorted(lines)
    assert [each.code for each in result.problems] == [
        "W-07",
        "INVALID_DESTINATION",
        "UNKNOWN_COLUMN",
        "APPEND_001",
        "TYPE_MISMATCH",
    ]


def test_every_problem_names_its_operation() -> None:
    # Part 4
    text = update("b = amout", seq=20) + append("budgets", seq=30) + aggregate("regon", "t = SUM(x)", seq=40)
    assert {problem.operation and problem.operation.seq for problem in planned(text).problems} == {20, 30, 40}


def test_there_is_no_plan_with_an_error() -> None:
    # C-22
    assert planned(delete("amout = 0")).plan is None


def test_there_is_a_plan_with_warnings() -> None:
    result = planned(delete(""))
    assert ([each.severity for each in result.problems], result.plan is not None) == (["warning"], True)


def test_one_faulty_named_selector_is_found_wherever_it_is_used() -> None:
    # C-19, R-019
    head = "selectors: {big: amout > 1}"
    places = {
        (each.code, each.span.line if each.span else 0)
        for each in planned(delete("{{big}}") + delete("{{big}}", seq=2), head=head).problems
    }
    assert places == {("UNKNOWN_COLUMN", 4)}


# --- operations that could not be read


@pytest.mark.parametrize(
    "lost",
    [
        "- {seq: 1, type: output, arguments: {destination: {datasource_id: lake, table: a}, mode: replce}}\n",
        "- {seq: 1, type: delete, arguments: {where: paid}}\n",
        "- {seq: 1, type: update, arguments: {assignments: [{column: net, expression: '1', note: x}]}}\n",
        "- {seq: 1, type: aggregate, arguments: {group_by: [region], aggregations: [{column: net, expression: COUNT(*)}], by: x}}\n",
        "- {seq: 1, type: append, arguments: {source: {dataset_id: budget}, where: x}}\n",
    ],
    ids=["output", "delete", "update", "aggregate", "append"],
)
def test_columns_are_checked_after_an_operation_with_a_wrong_argument(lost: str) -> None:
    # The columns that it makes can be told, so later faults are found.
    assert codes(lost + update("late = amout", seq=2))[-1] == "UNKNOWN_COLUMN"


def test_columns_that_it_seems_to_make_are_there() -> None:
    lost = "- {seq: 1, type: update, arguments: {assignments: [{column: net, expression: '1', note: x}]}}\n"
    assert codes(lost + update("gross = net * 2", seq=2)) == ["UNKNOWN_KEY"]


def test_what_needs_no_columns_is_found_after_an_operation_that_was_lost() -> None:
    text = (
        "- {seq: 1, type: updat}\n" + update("net = VLOOKUP(amount)", "gross = amout", seq=2) + delete("amount", seq=3)
    )
    assert codes(text) == ["INVALID_OPERATION", "UNKNOWN_FUNCTION", "TYPE_MISMATCH"]


def test_columns_before_an_operation_that_was_lost_are_checked() -> None:
    text = update("net = amout") + "- {seq: 2, type: updat}\n" + update("late = unheard", seq=3)
    assert codes(text) == ["UNKNOWN_COLUMN", "INVALID_OPERATION"]


def test_nothing_is_said_about_the_whole_of_a_project_that_could_not_be_read() -> None:
    # W-06, W-07
    assert codes("- {seq: 1, type: outpt}\n", output=False, head="selectors: {s: paid}") == ["INVALID_OPERATION"]


# --- warnings about the whole


def test_a_project_without_output_is_warned_of() -> None:
    # W-06
    problem = problem_in(delete("paid"), output=False)
    assert (problem.code, problem.no_output) == ("W-06", True)


def test_operations_after_the_last_output_are_warned_of() -> None:
    # W-06
    result = planned(output(seq=1) + delete("paid", seq=2) + update("net = 1", seq=3), output=False)
    assert [(each.code, each.operation and each.operation.seq) for each in result.problems] == [
        ("W-06", 2),
        ("W-06", 3),
    ]


def test_operations_between_outputs_are_not() -> None:
    # W-06
    assert codes(output("{type: csv, path: a}", seq=1) + delete("paid", seq=2)) == []


def test_a_selector_that_nothing_uses_is_warned_of() -> None:
    # W-07
    assert found(delete("{{a}}"), head="selectors: {a: paid, b: '{{c}}', c: paid}") == [("W-07", "b"), ("W-07", "c")]


def test_a_selector_that_another_uses_is_used() -> None:
    # W-07
    assert codes(delete("{{b}}"), head="selectors: {b: '{{c}}', c: paid}") == []


def test_the_faults_of_an_unused_selector() -> None:
    # W-07: nothing says over which columns it would be computed, but it must be a formula
    assert codes(delete("paid"), head="selectors: {a: 'amount >'}") == ["W-07", "EXPRESSION_SYNTAX"]


# --- steps


def test_a_step_says_what_it_adds_and_changes() -> None:
    plan = plan_of(update("net = amount", "quantity = 1.5", "region = 'x'"))
    step = step_of(plan, 1)
    assert list(step.added_columns()) == ["net"]
    changed = {name: tuple(map(str, kinds)) for name, kinds in step.changed_columns().items()}
    assert changed == {
        "quantity": ("integer", "decimal(20,1)"),
        "region": ("string", "string"),
        "_updated_at": ("timestamp", "timestamp"),
    }


def test_the_schema_goes_on_from_step_to_step() -> None:
    plan = plan_of(
        update("net = quantity") + update("net = 1.25", seq=2) + aggregate("region", "net = SUM(net)", seq=3)
    )
    assert [types_after(plan, seq)["net"].split("(")[0] for seq in (1, 2, 3)] == ["integer", "decimal", "decimal"]
    assert all(step.before is before.after for before, step in zip(plan.steps, plan.steps[1:], strict=False))


def test_the_whole_example_of_the_seeds_plans() -> None:
    world = world_from(WORLD)
    text = """
    - seq: 1
      type: update
      selector: 'orders.region = "EMEA"'
      arguments: {assignments: [{column: _labels, expression: 'CONCAT(_labels, "{region:EMEA}")'}]}
    - seq: 2
      type: update
      selector: "{{active_orders}}"
      arguments:
        joins: [{alias: customers, dataset_id: customers, on: "orders.customer_id = customers.id"}]
        assignments:
          - {column: customer_tier, expression: customers.tier}
          - {column: discounted_price, expression: 'IF(customers.tier = "gold", orders.amount * 0.9, orders.amount)'}
    - seq: 3
      type: aggregate
      arguments:
        group_by: [orders._period, orders.region]
        aggregations:
          - {column: total_sales, expression: SUM(orders.amount)}
          - {column: order_count, expression: COUNT(orders.order_id)}
    - {seq: 4, type: delete, selector: orders.amount = 0}
    - seq: 5
      type: output
      selector: "{{active_orders}}"
      arguments: {destination: {datasource_id: warehouse, table: processed_orders}, include_deleted: false}
    """
    head = "selectors: {active_orders: 'orders.status = \"active\"'}"
    with no_problem(text, world=world, head=head, output=False) as plan:
        kinds = [type(step.after.node) for step in plan.steps]
        assert kinds == [Derive, Derive, Stack, Derive, Derive]
        assert len(nodes(plan.steps[-1].after.node, Lookup)) == 1


def test_a_type_that_does_not_exist_hides_no_other_problem() -> None:
    #
    text = update("a = amout") + "- {seq: 2, type: delte}\n" + update("b = amount +", seq=3)
    assert found(text) == [("UNKNOWN_COLUMN", "amout"), ("INVALID_OPERATION", "delte"), ("EXPRESSION_SYNTAX", "+")]


def test_the_example_of_an_unknown_type_shows_it() -> None:
    for text, expected in ((InvalidOperation.example.wrong, 1), (InvalidOperation.example.right, 0)):
        operation = text.partition("operations: [")[2].removesuffix("]}")
        assert codes(f"- {operation}\n").count("INVALID_OPERATION") == expected


def test_after_a_type_that_does_not_exist_columns_may_be_missing() -> None:
    text = "- {seq: 1, type: updat, arguments: {assignments: [{column: a, expression: 1}]}}\n" + update(
        "b = a + c", seq=2
    )
    assert codes(text) == ["INVALID_OPERATION"]


def test_a_type_that_does_not_exist_may_have_been_an_output() -> None:
    text = update("a = 1") + "- {seq: 2, type: outptu, selector: '{{mine}}'}\n"
    problem = problem_in(text, output=False, head="selectors: {mine: paid}")
    assert (problem.code, problem.found, problem.known) == (
        "INVALID_OPERATION",
        "outptu",
        tuple(OPERATION_BY_TYPE),
    )


def test_a_selector_is_checked_though_the_arguments_are_of_no_use() -> None:
    for kind in ("update", "output", "allocate", "check"):
        problems = found(f"- {{seq: 1, type: {kind}, selector: regoin = 1, arguments: {{}}}}\n")
        assert ("UNKNOWN_COLUMN", "regoin") in problems, kind


# --- parameters

PARAMETERS = "parameters: {uplift: {type: 'decimal(5,4)', default: 0.03}, unit: {type: string}}"


def test_parameters_have_their_declared_types_whatever_their_values() -> None:
    plan = plan_of(update("net = amount * param.uplift", "unit = PARAM.Unit"), head=PARAMETERS)
    assert types_after(plan, 1)["net"] == "decimal(21,6)"
    assert types_after(plan, 1)["unit"] == "string"


@pytest.mark.parametrize(
    ("formula", "code", "place"),
    [
        ("amount * param.uplfit", "UNKNOWN_PARAMETER", "param.uplfit"),
        ("param.unit * 2", "TYPE_MISMATCH", "param.unit"),
        ("ROUND(amount, param.uplift)", "TYPE_MISMATCH", "param.uplift"),
        ("SUM(amount) OVER (PARTITION BY param.unit)", "INVALID_WINDOW", "param.unit"),
    ],
)
def test_wrong_uses_of_parameters(formula: str, code: str, place: str) -> None:
    operations = update(f"net = {formula}", "a = param.uplift", "b = param.unit")
    assert (code, place) in found(operations, head=PARAMETERS)


def test_a_parameter_without_its_qualifier_is_told_so() -> None:
    used = update("net = amount * (1 + UPLIFT)", "a = param.uplift", "b = param.unit")
    problem = problem_in(used, head=PARAMETERS)
    assert isinstance(problem, UnknownColumn)
    assert problem.also_under == ("param",)


def test_without_parameters_a_formula_says_how_to_define_one() -> None:
    problem = problem_in(update("net = amount * param.uplift"))
    assert (problem.code, problem.known) == ("UNKNOWN_PARAMETER", ())


def test_a_parameter_that_nothing_uses() -> None:
    assert found(update("net = param.uplift"), head=PARAMETERS) == [("W-15", "unit")]
    used_in_selector = PARAMETERS + "\nselectors: {own: region = param.unit}"
    assert found(update("net = param.uplift", selector="{{own}}"), head=used_in_selector) == []


@pytest.mark.parametrize("name", ["param", "Param"])
def test_an_alias_of_parameters_is_taken_where_the_project_has_parameters(name: str) -> None:
    operations = update(
        "net = param.uplift", "unit = param.unit", joins=join(name, "customers", f"{name}.id = customer_id")
    )
    assert ("JOIN_ALIAS_CONFLICT", name) in found(operations, head=PARAMETERS)
    plain = update("tier = param.tier", joins=join("param", "customers", "param.id = customer_id"))
    assert codes(plain) == []


def test_a_table_with_the_name_of_parameters() -> None:
    text = "dataset: {id: odd, main_table: {name: Param, columns: [{name: a, type: integer}]}}"
    world = world_from().with_dataset(text)
    operations = update("b = a")
    assert "JOIN_ALIAS_CONFLICT" in codes(operations, head=PARAMETERS, world=world, input_id="odd")
    assert codes(operations, world=world, input_id="odd") == []
    appended = update("a = quantity", "b = param.uplift", "c = param.unit") + append("odd", seq=2)
    (place,) = [where for code, where in found(appended, head=PARAMETERS, world=world) if code == "JOIN_ALIAS_CONFLICT"]
    assert place == "odd"
    assert codes(update("a = quantity") + append("odd", seq=2), world=world) == []


# --- rows by the operation that made them


def totals(seq: int) -> str:
    return aggregate("region", "amount = SUM(amount)", seq=seq).replace("type:", "name: Totals\n  type:", 1)


@pytest.mark.parametrize("seq", [2, 40])
def test_rows_are_found_by_the_name_of_the_operation_whatever_its_number(seq: int) -> None:
    plan = plan_of(totals(seq) + delete('made_by("Totals")', seq=50))
    by_number = plan_of(totals(seq) + delete(f"_operation_seq = {seq}", seq=50))
    assert step_of(plan, 50).lowered.selected == step_of(by_number, 50).lowered.selected


def test_details_are_told_from_summaries_by_name() -> None:
    assert codes(totals(2) + aggregate("status", "amount = SUM(amount)", seq=3, selector='NOT MADE_BY("Totals")')) == []


@pytest.mark.parametrize(
    ("formula", "code", "place", "hint"),
    [
        ('MADE_BY("Totls")', "UNKNOWN_OPERATION", '"Totls"', "did you mean `Totals`?"),
        ('MADE_BY("delete-50")', "UNKNOWN_OPERATION", '"delete-50"', "available: `Totals`"),
        ("MADE_BY(region)", "TYPE_MISMATCH", "region", None),
        ("MADE_BY()", "WRONG_ARITY", "MADE_BY()", None),
        ("MADE_BY(*)", "WRONG_ARITY", "MADE_BY(*)", None),
    ],
)
def test_operations_that_make_no_rows(formula: str, code: str, place: str, hint: str | None) -> None:
    (problem,) = planned(totals(2) + delete(formula, seq=50)).problems
    assert (problem.code, shown(problem.span)) == (code, place)
    assert hint is None or problem.hint() == hint


def test_a_name_that_several_operations_have() -> None:
    (problem,) = [
        each
        for each in planned(totals(2) + totals(3) + delete('MADE_BY("Totals")', seq=50)).problems
        if each.severity == "error"
    ]
    assert isinstance(problem, UnknownOperation)
    assert (problem.reason, problem.numbers) == (MakerReason.SEVERAL, (2, 3))


def test_rows_of_another_dataset_were_made_by_no_operation() -> None:
    problem = problem_in(totals(2) + append("budget", where='MADE_BY("Totals")', seq=50))
    assert problem.code == "APPEND_004"
    assert problem.cause.code == "UNKNOWN_OPERATION"
