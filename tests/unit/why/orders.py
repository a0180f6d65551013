"""A project whose rows are in memory, and what can be asked about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from dobonomodo.engine.rowid import IdSeed, seed_of
from dobonomodo.formula.meaning import Value, as_value, fit
from dobonomodo.formula.types import DecimalType
from dobonomodo.plan import DatasetUse, Plan, Step
from dobonomodo.why.explain import names_of
from dobonomodo.why.interpret import Interpreter
from dobonomodo.why.loading import Loader
from dobonomodo.why.row import StoredRow, Traced, Wanted
from tests.world import JANUARY, OUT, Anywhere, define, plan_only_project

DATASETS = """
dataset:
  id: orders
  natural_key_columns: [id]
  main_table:
    name: orders
    temporal_mode: period
    columns:
      - {name: id, type: string}
      - {name: customer, type: string}
      - {name: status, type: string}
      - {name: amount, type: "decimal(15,2)"}
---
dataset:
  id: customers
  natural_key_columns: [id]
  main_table:
    name: customers
    temporal_mode: bitemporal
    columns: [{name: id, type: string}, {name: tier, type: string}]
---
dataset:
  id: budget
  main_table:
    name: budget
    columns: [{name: customer, type: string}, {name: amount, type: "decimal(15,2)"}]
"""

KEY = "  natural_key_columns: [id]\n"

Given = Mapping[str, Sequence[Mapping[str, object]]]

ROWS: Given = {
    "orders": [
        {"id": "A1", "customer": "C1", "status": "active", "amount": 100, "_period": "2026-01"},
        {"id": "A2", "customer": "C2", "status": "active", "amount": 30, "_period": "2026-01"},
        {"id": "A3", "customer": "C9", "status": "closed", "amount": 5, "_period": "2026-01"},
        {"id": "A4", "customer": "C1", "status": "active", "amount": 0, "_period": "2026-01"},
        {"id": "A5", "customer": "C1", "status": "active", "amount": 7, "_period": "2025-12"},
    ],
    "customers": [
        {"id": "C1", "tier": "silver", "_period_from": "2025-01-01", "_period_to": "2026-01-01"},
        {"id": "C1", "tier": "gold", "_period_from": "2026-01-01", "_period_to": None},
        {"id": "C2", "tier": "silver", "_period_from": "2025-01-01", "_period_to": None},
    ],
    "budget": [{"customer": "C1", "amount": 90}, {"customer": "C2", "amount": 20}],
}


class MemoryRows:
    """Stored rows that a test has, and what was asked of them."""

    def __init__(self, rows: Given) -> None:
        self.asked: list[tuple[str, dict[str, frozenset[Value]], frozenset[int] | None]] = []
        self._rows = {
            dataset: [{name: _read(name, value) for name, value in row.items()} for row in listed]
            for dataset, listed in rows.items()
        }

    def find(
        self, use: DatasetUse, wanted: Wanted, *, numbers: frozenset[int] | None, columns: frozenset[str] | None
    ) -> Iterator[StoredRow]:
        del columns
        self.asked.append((use.dataset_id, dict(wanted), numbers))
        for number, row in enumerate(self._rows[use.dataset_id]):
            if numbers is not None and number not in numbers:
                continue
            if all(row.get(name) in allowed for name, allowed in wanted.items()):
                yield StoredRow(row, number, f"{use.dataset_id}.parquet, row {number + 1}")


def _read(name: str, value: object) -> Value:
    if isinstance(value, int) and not isinstance(value, bool):
        return fit(value, DecimalType(15, 2))
    if name in ("_period_from", "_period_to") and isinstance(value, str):
        return as_value(date.fromisoformat(value))
    return as_value(value)


class Asked:
    """A plan and its rows."""

    def __init__(self, operations: str, rows: Given = ROWS, datasets: str = DATASETS) -> None:
        project = f"project:\n  id: p\n  input_dataset_id: orders\n  operations:\n{operations}"
        self.plan: Plan = plan_only_project(define(datasets, OUT, project), resolution=Anywhere())
        self.rows = MemoryRows(rows)
        self.seed: IdSeed = seed_of("p", self.plan.project.fingerprint(), JANUARY)
        self.loader = Loader(self.rows, JANUARY, None, self.seed)
        always = names_of(self.plan.steps) | {"_operation_seq"}
        self.interpreter = Interpreter(self.loader, facts=JANUARY, seed=self.seed, always=always)

    @property
    def output(self) -> Step:
        return next(step for step in self.plan.steps if step.lowered.write is not None)

    def find(self, **wanted: Value) -> list[Traced]:
        known = {name: frozenset([value]) for name, value in wanted.items()}
        return self.interpreter.find(self.output.write.rows, known)


UPDATE = """
    - seq: 10
      name: Price
      type: update
      selector: status = "active"
      arguments:
        joins: [{alias: c, dataset_id: customers, on: orders.customer = c.id}]
        assignments:
          - {column: net, expression: 'IF(c.tier = "gold", ROUND(amount * 0.9, 2), amount)'}
"""
AGGREGATE = """
    - seq: 20
      name: Totals
      type: aggregate
      selector: _operation_seq = 0
      arguments:
        group_by: [status]
        aggregations: [{column: total, expression: SUM(net)}, {column: number, expression: COUNT(*)}]
"""
APPEND = """
    - seq: 30
      name: Budget
      type: append
      arguments: {source: {dataset_id: budget}, source_selector: amount > 50}
"""
DELETE = """
    - {seq: 40, name: Empty, type: delete, selector: amount = 0}
"""
OUTPUT = """
    - {seq: 90, name: Write, type: output, arguments: {destination: {datasource_id: out, table: net}}}
"""
ALL = UPDATE + AGGREGATE + APPEND + DELETE + OUTPUT
