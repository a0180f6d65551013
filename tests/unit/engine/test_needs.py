"""Which columns the frames of a plan have. That their rows stay the same is tested on Spark."""

from __future__ import annotations

from dobonomodo.engine.engine import read_by_outputs
from dobonomodo.engine.needs import Needs, find_needs
from dobonomodo.engine.observation import Counting, Measuring
from dobonomodo.engine.tracking import Tracked
from dobonomodo.plan import Plan
from dobonomodo.plan.relation import Group, Lookup, Rel, Scan, walk_relation
from tests.unit.plan.building import aggregate, delete, output, plan_of, update

LAKE = "{datasource_id: lake, table: out}"
ALWAYS = {"_deleted", "_operation_seq"}


def plan_with(text: str, columns: str) -> Plan:
    return plan_of(text + output(LAKE, seq=500, columns=columns), output=False)


def needs_of(plan: Plan, *, figures: bool = False) -> Needs:
    counting = Counting(plan)
    tracked = Measuring(plan, counting, digests=False).tracked if figures else Tracked(counting.marks)
    return find_needs(list(read_by_outputs(plan)), tracked)


def scan_of(plan: Plan, dataset: str) -> Rel:
    nodes = (node for step in plan.steps for node in walk_relation(step.before.node))
    return next(node for node in nodes if isinstance(node, Scan) and node.use.dataset_id == dataset)


def loaded(plan: Plan, dataset: str = "sales", *, figures: bool = False) -> set[str]:
    return set(needs_of(plan, figures=figures).of(scan_of(plan, dataset)))


def test_what_is_written_and_what_it_is_computed_from_is_loaded() -> None:
    plan = plan_with(update("net = amount * 2", "region = status", seq=10), "[order_id, net]")
    assert loaded(plan) == {"order_id", "amount", *ALWAYS}


def test_what_selects_rows_is_loaded_since_they_are_counted() -> None:
    plan = plan_with(delete("booked < TODAY()", seq=10), "[order_id]")
    assert loaded(plan) == {"order_id", "booked", *ALWAYS}


def test_a_value_before_an_assignment_is_loaded_where_figures_sum_it() -> None:
    twice = update("quantity = 1", seq=10) + update("quantity = 2", seq=20)
    plan = plan_with(twice, "[order_id, quantity]")
    assert {"order_id", "quantity", *ALWAYS} == loaded(plan, figures=True)


def test_a_join_has_its_key_and_what_is_read_of_it() -> None:
    joins = "[{alias: c, dataset_id: customers, on: orders.customer_id = c.id}]"
    plan = plan_with(update("tier = c.tier", seq=10, joins=joins), "[order_id, tier]")
    assert loaded(plan) == {"order_id", "customer_id", *ALWAYS}
    assert {"id", "tier"} <= loaded(plan, "customers") <= {"id", "tier", "_deleted"}
    (join,) = [node for node in walk_relation(plan.steps[-1].before.node) if isinstance(node, Lookup)]
    assert needs_of(plan).of_alias(join) == ["id", "tier"]


def test_an_aggregate_that_nothing_reads_is_not_computed() -> None:
    plan = plan_with(aggregate("region", "total = SUM(amount)", "most = MAX_AGG(quantity)", seq=10), "[region, total]")
    (group,) = [node for node in walk_relation(plan.steps[-1].before.node) if isinstance(node, Group)]
    assert len(needs_of(plan).of(group)) == 2
    assert loaded(plan) == {"region", "amount", *ALWAYS}


def test_rows_of_which_nothing_is_read_have_one_column() -> None:
    joins = "[{alias: c, dataset_id: customers, on: 1 = 2}]"
    plan = plan_with(update("net = 1", seq=10, joins=joins), "[net]")
    nodes = [node for node in walk_relation(plan.steps[-1].before.node) if isinstance(node, Scan)]
    assert all(needs_of(plan).of(node) for node in nodes)


def test_every_column_of_an_unknown_node_is_read() -> None:
    plan = plan_with("", "[order_id]")
    node = plan.start.node
    assert Needs().of(node) == node.schema.names
