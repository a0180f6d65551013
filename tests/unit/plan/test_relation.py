"""Walking through nodes."""

from __future__ import annotations

from dobonomodo.plan.relation import AssignIds, Derive, Group, Keep, Lookup, Scan, Stack, inputs_of, walk_relation
from tests.unit.plan.building import aggregate, join, plan_of, update


def test_a_walk_meets_every_node_once() -> None:
    plan = plan_of(
        update("t = c.tier", joins=join("c", "customers", "c.id = customer_id"))
        + aggregate("region", "n = COUNT(*)", seq=2)
    )
    met = list(walk_relation(plan.steps[1].after.node))
    assert len(met) == len({id(node) for node in met})
    assert sorted(type(node).__name__ for node in met) == sorted(
        each.__name__ for each in (Stack, Derive, Derive, AssignIds, Group, Keep, Derive, Lookup, Scan, Keep, Scan)
    )


def test_the_rows_before_are_shared() -> None:
    plan = plan_of(aggregate("region", "n = COUNT(*)"))
    node = plan.steps[0].after.node
    assert isinstance(node, Stack)
    assert [isinstance(each, Derive) for each in inputs_of(node)] == [True, True]
    (scan,) = [each for each in walk_relation(node) if isinstance(each, Scan)]
    assert scan is plan.start.node
    assert inputs_of(scan) == ()
