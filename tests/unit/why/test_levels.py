"""Explanations of subtotals: their formulas have the keys of their level."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dobonomodo.formula.meaning import Value
from dobonomodo.why.explain import Explainer
from dobonomodo.why.explanation import Summary
from tests.unit.why.orders import DATASETS, OUTPUT, ROWS, Asked
from tests.world import JANUARY

TREE = """
---
dataset:
  id: amounts
  main_table:
    name: amounts
    columns: [{name: node, type: "decimal(15,2)"}, {name: above, type: "decimal(15,2)"}]
"""
NODES = {"amounts": [{"node": 100, "above": 1000}, {"node": 30, "above": 1000}]}
LEVELS = """
    - seq: 20
      type: aggregate
      selector: status = "active"
      arguments:
        group_by: [status, amount]
        rollup: [status]
        level_column: level
        aggregations: [{column: total, expression: COUNT(*) * amount}]
"""
HIERARCHY = "        hierarchy: {column: amount, dataset_id: amounts, child: node, parent: above}\n"


def explain(operation: str, **key: Value) -> tuple[Value, Summary]:
    """The total as it is computed, and what it is made of."""
    asked = Asked(operation + OUTPUT, {**ROWS, **NODES}, DATASETS + TREE)
    (row,) = asked.find(_operation_seq=20, **key)
    _, origin = Explainer(asked.plan, JANUARY).explain(row, asked.output, contributors=None)
    assert isinstance(origin, Summary)
    return row.values["total"], origin


@pytest.mark.parametrize("more", ["", HIERARCHY])
def test_a_product_with_a_key_that_the_level_keeps_is_a_sum(more: str) -> None:
    total, found = explain(LEVELS + more, level="amount", amount=Decimal(30))
    assert (found.totals["total"].value, set(found.sums)) == (total, {"total"})
    assert [each.amounts["total"] for each in found.contributors] == [Decimal(30)]


def test_a_key_that_the_level_does_not_keep_is_null_in_its_formulas() -> None:
    total, found = explain(LEVELS, level="status", status="active")
    assert total is None
    assert (found.rows, found.totals["total"].value) == (3, None)
    assert all(each.amounts["total"] is None for each in found.contributors)


def test_the_total_of_a_node_has_the_node_for_its_key() -> None:
    total, found = explain(LEVELS + HIERARCHY, level="amount total", amount=Decimal(1000))
    assert (total, found.totals["total"].value, set(found.sums)) == (Decimal(2000), total, {"total"})
    assert [each.amounts["total"] for each in found.contributors] == [Decimal(1000), Decimal(1000)]
