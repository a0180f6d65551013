"""Levels of an aggregate: what is read, how rows are told apart, and what is said of it."""

from __future__ import annotations

from dobonomodo.formula import ColumnRef
from dobonomodo.plan.check import RowCondition
from dobonomodo.plan.levels import LEVEL
from dobonomodo.plan.relation import Ancestors, AssignIds, Expand, Group, Lookup, Scan
from tests.unit.plan.building import WORLD_BUILT, aggregate, codes, nodes, plan_of, step_of, types_after

WORLD = WORLD_BUILT.with_dataset(
    "dataset: {id: regions, main_table: {name: regions, columns: [{name: name, type: string}, {name: above, type: string}]}}"
)
TREE = "hierarchy: {column: region, dataset_id: regions, child: name, parent: above}"


def summed(more: str, *, seq: int = 1) -> str:
    text = aggregate("region, status", "total = SUM(amount)", seq=seq)
    return text + "".join(f"    {line}\n" for line in more.splitlines())


def test_rows_are_read_once_for_all_levels() -> None:
    step = step_of(plan_of(summed("rollup: [all, region]\nlevel_column: level"), world=WORLD), 1)
    assert step.lowered.added is not None
    (expand,) = nodes(step.lowered.added, Expand)
    of_levels = [[name for name, key in each.items() if isinstance(key, ColumnRef)] for each in expand.choices]
    assert of_levels == [[" #region", " #status"], [], [" #region"]]
    assert len(nodes(step.lowered.added, Scan)) == 1
    (group,) = nodes(step.lowered.added, Group)
    assert list(group.keys) == ["#region", "#status", LEVEL]


def test_ids_include_the_level() -> None:
    step = step_of(plan_of(summed("rollup: [all]\nlevel_column: level"), world=WORLD), 1)
    (ids,) = nodes(step.after.node, AssignIds)
    assert ids.by == ("#region", "#status", LEVEL)
    assert step.after.keys[1] == ("region", "status", "level")


def test_the_level_is_a_text_column_of_the_rows() -> None:
    plan = plan_of(summed("rollup: [all]\nlevel_column: level"), world=WORLD)
    assert types_after(plan, 1)["level"] == "string"
    assert step_of(plan, 1).after.origins["level"].operations == (1,)
    into = plan_of(aggregate("region", "n = COUNT(*)") + "    level_column: Status\n", world=WORLD)
    assert "Status" not in types_after(into, 1)
    assert codes(aggregate("region", "n = COUNT(*)") + "    level_column: quantity\n") == ["TYPE_MISMATCH"]


def test_a_tree_has_nodes_on_each_level_that_keeps_its_key() -> None:
    step = step_of(plan_of(summed(f"rollup: [all, region]\n{TREE}\nlevel_column: level"), world=WORLD), 1)
    assert step.lowered.added is not None
    (expand,) = nodes(step.lowered.added, Expand)
    assert [getattr(choice[LEVEL], "value", None) for choice in expand.choices] == [
        "status",
        "status total",
        "all",
        "region",
        "region total",
    ]
    (pairs,) = nodes(step.lowered.added, Ancestors)
    assert (pairs.child.name, pairs.parent.name, pairs.dataset_id) == ("name", "above", "regions")


def test_values_that_are_not_in_the_tree_are_warned_of() -> None:
    check = step_of(plan_of(summed(f"{TREE}\nlevel_column: level"), world=WORLD), 1).lowered.check
    assert check is not None
    assert (check.severity, check.may_be_empty, check.text) == ("warn", True, "region is a node of regions")
    assert isinstance(check.condition, RowCondition)
    assert isinstance(check.condition.rows, Lookup)
    assert check.condition.shown == ("region",)


def test_a_plan_says_levels_and_tree() -> None:
    step = step_of(plan_of(summed(f"rollup: [all]\n{TREE}\nlevel_column: level"), world=WORLD), 1)
    assert step.describe() == [
        "one row for each region, status",
        "on the levels status, status total, all",
        "with the nodes of regions: name below above",
        "with total (new, decimal(25,2)) = SUM(amount)",
    ]
