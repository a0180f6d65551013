"""The operation types there are, and the schemas that editors get of their arguments."""

from __future__ import annotations

import pytest

from dobonomodo.formula import Scope, check_formula
from dobonomodo.plan import Step
from dobonomodo.plan.operations import OPERATION_BY_TYPE, OPERATIONS, Effect, find_facts
from dobonomodo.plan.operations.catalogue import argument_schemas
from dobonomodo.problems import Passage
from tests.unit.plan.building import aggregate, append, delete, join, output, plan_of, update


def test_every_type_that_can_be_written_has_a_meaning() -> None:
    #
    assert set(OPERATION_BY_TYPE) == {"update", "aggregate", "append", "delete", "output", "check", "allocate"}
    assert len(OPERATIONS) == len(OPERATION_BY_TYPE)


def test_every_argument_is_described() -> None:
    for name, schema in argument_schemas().items():
        parts = [schema, *schema.get("$defs", {}).values()]
        for part in parts:
            for key, value in part.get("properties", {}).items():
                assert value.get("description"), (name, key)


def test_unknown_arguments_are_refused() -> None:
    for schema in argument_schemas().values():
        assert schema["additionalProperties"] is False


def test_the_keys_of_the_seeds_are_there() -> None:
    #
    schemas = argument_schemas()
    keys = {name: set(schema.get("properties", {})) for name, schema in schemas.items()}
    assert keys == {
        "update": {"joins", "assignments"},
        "aggregate": {"group_by", "aggregations", "rollup", "hierarchy", "level_column"},
        "append": {"source", "source_selector", "aggregation"},
        "delete": set(),
        "output": {"destination", "mode", "columns", "order_by", "include_deleted", "register_as_dataset"},
        "check": {"expect", "group_by", "severity", "empty", "against", "quarantine", "exclude"},
        "allocate": {"amount", "receivers", "driver", "match", "set", "round", "pool", "no_receivers"},
    }


def test_what_the_types_do_with_rows() -> None:
    # C-50
    assert {name: operation.facts.effect for name, operation in OPERATION_BY_TYPE.items()} == {
        "update": Effect.SELECTS,
        "aggregate": Effect.SELECTS | Effect.ADDS,
        "append": Effect.ADDS,
        "delete": Effect.SELECTS | Effect.DELETES,
        "output": Effect.WRITES,
        "check": Effect.SELECTS | Effect.CHECKS,
        "allocate": Effect.SELECTS | Effect.ADDS,
    }


def test_badges_tell_types_apart() -> None:
    facts = [operation.facts for operation in OPERATIONS]
    assert len({each.badge for each in facts}) == len({each.color for each in facts}) == len(OPERATIONS)


def test_a_record_may_have_a_type_of_another_version() -> None:
    assert find_facts("pivot").badge == "?"


PLAN = plan_of(
    update(
        "total = ROUND(amount * 1.5, 2)",
        "status = c.tier",
        selector="paid",
        joins=join("c", "customers", "orders.customer_id = c.id"),
    )
    + aggregate("orders.region", "total = SUM(amount)", seq=2)
    + append("budget", seq=3, where="amount > 1 AND region IS NOT NULL")
    + append(
        "budget",
        seq=4,
        grouping="{group_by: [region], aggregations: [{column: Amount, expression: 'SUM( amount )'}]}",
    )
    + delete("total < 0", seq=5)
    + output("{datasource_id: lake, table: rest}", seq=6, columns="[region, amount]")
)


def test_a_step_describes_itself() -> None:
    assert {step.spec.seq: step.describe() for step in PLAN.steps} == {
        1: [
            "joins customers as c on orders.customer_id = c.id",
            "sets total (new, decimal(18,2)) = ROUND(amount * 1.5, 2)",
            "sets status = c.tier",
        ],
        2: ["one row for each region", "with total (decimal(18,2) becomes decimal(25,2)) = SUM(amount)"],
        3: [
            "takes rows of budget where amount > 1 AND region IS NOT NULL",
            "widens amount (decimal(15,2) becomes decimal(38,10))",
        ],
        4: ["takes rows of budget", "one row for each region", "with Amount = SUM( amount )"],
        5: ["marks them as deleted"],
        6: ["writes 2 columns to lake:rest"],
        900: ["writes 19 columns to lake:out"],
    }


@pytest.mark.parametrize("step", PLAN.steps, ids=lambda step: step.spec.name)
def test_the_text_of_a_formula_is_the_text_of_its_tree(step: Step) -> None:
    lowered = step.lowered
    formulas = [*lowered.formulas.values(), *lowered.conditions.values()]
    assert bool(formulas) == (step.spec.type not in ("delete", "output"))
    customers = {"c": PLAN.uses[1].columns}
    for formula in formulas:
        scopes = [
            Scope(columns=rows.columns, table=rows.table, joined=customers, group_by=group)
            for rows in (step.before,)
            for group in (None, ())
        ]
        budget = Scope(columns=PLAN.uses[2].columns, group_by=() if lowered.formulas else None)
        trees = [check_formula(Passage.alone(formula.text), scope).tree for scope in (*scopes, budget)]
        assert formula.tree in trees
