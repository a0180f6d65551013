"""Which definition made a run fail, by what Spark says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dobonomodo.engine.culprit import explain_failure
from dobonomodo.engine.joins import MULTIPLE
from dobonomodo.plan import Plan
from dobonomodo.problems.run import JoinMultipleMatches
from tests.world import FILES, JANUARY, LAKE, OUT, define, plan_only_project

ORDERS = """\
dataset:
  id: orders
  main_table: {name: orders, columns: [{name: k, type: string}]}
  lookups: [{alias: n, target: {type: dataset, id: names}, join_conditions: [{source_column: k, target_column: k}]}]"""
NAMES = "dataset: {id: names, main_table: {name: names, columns: [{name: k, type: string}]}}"
PROJECT = """\
project:
  id: p
  input_dataset_id: INPUT
  operations:
    - OPERATION
    - {seq: 9, type: output, arguments: {destination: {datasource_id: out, table: result}}}"""
UPDATE = """\
{seq: 5, type: update, arguments: {joins: [{alias: n, dataset_id: names, on: orders.k = n.k}],
      assignments: [{column: v, expression: n.k}]}}"""
APPEND = "{seq: 5, type: append, arguments: {source: {dataset_id: orders}, source_selector: n.k = k}}"


def explain(operation: str, *, seq: int, dataset: str = "orders", orders: str = ORDERS) -> JoinMultipleMatches:
    """The problem for two matches of the alias `n` in an operation; 0 is the input."""
    project = PROJECT.replace("OPERATION", operation).replace("INPUT", dataset)
    plan: Plan = plan_only_project(define(LAKE, OUT, FILES, orders, NAMES, project))
    frames: Any = SimpleNamespace(facts=JANUARY)
    found = explain_failure(Exception(f"{MULTIPLE}|{seq}|n|2|k=a"), plan, frames, until=plan.steps[-1])
    assert isinstance(found, JoinMultipleMatches)
    return found


def test_a_lookup_of_the_input_belongs_to_its_dataset() -> None:
    # C-67: no operation has defined it
    problem = explain("{seq: 5, type: delete}", seq=0)
    assert (problem.operation, problem.lookup_of, problem.alias) == (None, "orders", "n")
    assert "`join_conditions`" in (problem.hint() or "")


def test_a_lookup_of_appended_rows_belongs_to_their_dataset_and_to_the_append() -> None:
    problem = explain(APPEND, seq=5, dataset="names")
    assert (problem.operation and problem.operation.seq, problem.lookup_of) == (5, "orders")


def test_a_join_belongs_to_its_operation() -> None:
    problem = explain(UPDATE, seq=5, orders=ORDERS.partition("\n  lookups")[0])
    assert (problem.operation and problem.operation.seq, problem.lookup_of) == (5, None)
    assert "`on`" in (problem.hint() or "")
