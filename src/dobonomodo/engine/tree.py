"""Hierarchies: a small tree is collected before the job that needs it, and passed to Spark as (node, ancestor) pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dobonomodo.formula.sql import quote_name
from dobonomodo.plan.relation import ANCESTOR, DEPTH, NODE, Ancestors
from dobonomodo.plan.tree import NODES_AT_MOST, NotATree, find_ancestors
from dobonomodo.problems import RunFailed
from dobonomodo.problems.run import HierarchyCycle, HierarchyReason

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def read_ancestors(node: Ancestors, rows: DataFrame) -> DataFrame:
    """Every node with itself and all totals that it counts for.

    Reads a limited number of rows; raises ``RunFailed`` if they are not a tree.
    """
    kind = node.child.type.sql
    pairs = rows.selectExpr(
        f"{quote_name(node.child.name)} AS {NODE}", f"CAST({quote_name(node.parent.name)} AS {kind}) AS {ANCESTOR}"
    ).distinct()
    read = [(row[NODE], row[ANCESTOR]) for row in pairs.limit(NODES_AT_MOST + 1).collect()]
    try:
        if len(read) > NODES_AT_MOST:
            raise NotATree(HierarchyReason.TOO_LARGE)
        found = find_ancestors(sorted(read, key=str))
    except NotATree as fault:
        raise RunFailed(explain_tree(node, fault)) from None
    schema = f"{NODE} {kind}, {ANCESTOR} {kind}, {DEPTH} BIGINT"
    return rows.sparkSession.createDataFrame([(each.node, each.ancestor, each.depth) for each in found], schema)


def explain_tree(node: Ancestors, fault: NotATree) -> HierarchyCycle:
    """The problem of pairs that do not form a tree."""
    nodes = tuple(map(str, fault.nodes))
    return HierarchyCycle(dataset_id=node.dataset_id, reason=fault.reason, nodes=nodes, operation=node.operation)
