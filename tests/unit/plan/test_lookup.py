"""Lookups of datasets: joined to the rows of the input and to those of an append source, found or reported."""

from __future__ import annotations

from dobonomodo.plan.expression import ACTIVE
from dobonomodo.plan.relation import Lookup
from tests.unit.plan.building import WORLD_BUILT, append, codes, nodes, plan_of, step_of, update

PLAN = """\
    dataset:
      id: plan
      main_table: {name: plan, columns: [{name: region, type: string}, {name: amount, type: "decimal(15,2)"}]}
      lookups:
        - alias: land
          target: {type: dataset, id: TARGET}
          join_conditions: [{source_column: region, target_column: country}]
"""
KNOWN = WORLD_BUILT.with_dataset(PLAN.replace("TARGET", "customers"))
UNKNOWN = WORLD_BUILT.with_dataset(PLAN.replace("TARGET", "nobody"))


def test_a_lookup_of_the_input_is_joined_to_every_active_row() -> None:
    plan = plan_of(update("tier = land.tier"), world=KNOWN, input_id="plan")
    (lookup,) = nodes(plan.start.node, Lookup)
    assert (lookup.alias, lookup.only) == ("land", ACTIVE)
    assert step_of(plan, 1).after.origins["tier"].inputs == {"customers.tier"}


def test_a_lookup_of_a_source_belongs_to_the_operation() -> None:
    plan = plan_of(append("plan", where="land.tier = 'gold'"), world=KNOWN)
    added = step_of(plan, 1).lowered.added
    assert added is not None
    assert [node.alias for node in nodes(added, Lookup)] == ["land"]
    assert [use.seq for use in plan.uses if use.role == "lookup"] == [1]


def test_a_lookup_of_an_unknown_dataset_is_reported_where_it_is_used() -> None:
    assert codes(update("tier = land.tier"), world=UNKNOWN, input_id="plan") == ["JOIN_DATASET_NOT_FOUND"]
    assert codes(append("plan", where="land.tier = 'gold'"), world=UNKNOWN) == ["JOIN_DATASET_NOT_FOUND"]
    assert codes(append("plan"), world=UNKNOWN) == []
