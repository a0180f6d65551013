"""A project with all five operations over files, and the digests of its outputs."""

from __future__ import annotations

import json
import random
import sys
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow
import pyarrow.parquet

from dobonomodo.engine import open_session
from dobonomodo.engine.engine import SparkEngine, discard
from dobonomodo.engine.reading import StoredRows
from dobonomodo.plan import DatasetUse
from dobonomodo.storage import read_parquet
from dobonomodo.storage.files import list_files
from dobonomodo.storage.links import Links
from tests.world import JANUARY, OUT, Anywhere, define, plan_only_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFINITIONS = """
dataset:
  id: orders
  natural_key_columns: [order_id]
  main_table:
    name: orders
    temporal_mode: period
    columns:
      - {name: order_id, type: string}
      - {name: customer, type: string}
      - {name: city, type: string}
      - {name: amount, type: "decimal(15,2)"}
      - {name: ordered_on, type: date}
---
dataset:
  id: customers
  natural_key_columns: [id]
  main_table:
    name: customers
    columns: [{name: id, type: string}, {name: tier, type: string}]
---
project:
  id: monthly
  input_dataset_id: orders
  operations:
    - seq: 1
      type: update
      selector: amount > 10
      arguments:
        joins: [{alias: c, dataset_id: customers, on: customer = c.id}]
        assignments:
          - {column: tier, expression: c.tier}
          - {column: net, expression: 'ROUND(amount * IF(c.tier = "gold", 0.9, 1), 2)'}
          - {column: place, expression: UPPER(city)}
          - {column: seen, expression: NOW()}
    - {seq: 2, type: aggregate, arguments: {group_by: [_period, tier], aggregations: [{column: total, expression: SUM(net)}]}}
    - seq: 3
      type: append
      arguments:
        source: {dataset_id: orders}
        source_selector: 'city = "iğdır"'
    - seq: 4
      type: update
      selector: _operation_seq <> 2
      arguments:
        assignments:
          - {column: number, expression: ROW_NUMBER() OVER (PARTITION BY city ORDER BY customer)}
          - {column: before, expression: LAG(order_id) OVER (ORDER BY ordered_on DESC)}
          - {column: first, expression: FIRST(order_id) OVER (PARTITION BY customer ORDER BY ordered_on)}
          - {column: running, expression: SUM(amount) OVER (PARTITION BY tier ORDER BY ordered_on)}
          - {column: share, expression: amount / SUM(amount) OVER (PARTITION BY city)}
    - {seq: 5, type: delete, selector: MONTH(ordered_on) = 1 AND DAY(ordered_on) > 20}
    - {seq: 6, type: output, arguments: {destination: {datasource_id: out, table: active}}}
    - {seq: 7, type: output, arguments: {destination: {datasource_id: out, table: everything}, include_deleted: true}}
    - seq: 8
      type: output
      arguments:
        destination: {datasource_id: out, table: values}
        include_deleted: true
        columns: [order_id, customer, city, amount, ordered_on, tier, net, place, seen, total, number, before,
                  first, running, share, _period, _deleted]
"""

CITIES = ("iğdır", "Izmir", "straße", "İstanbul", None)


def write_inputs(folder: Path, *, files: int, order: int = 1, rows: int = 600) -> Path:
    """The same rows every time, in so many files, one order after the other."""
    chance = random.Random(7)
    orders = [
        {
            "order_id": f"A{number:05}",
            "customer": chance.choice(["C1", "C2", "C3", None]),
            "city": chance.choice(CITIES),
            "amount": Decimal(chance.randrange(100_00)) / 100,
            "ordered_on": date(2026, 1, 1 + chance.randrange(28)),
            "_period": chance.choice(["2026-01", "2026-01", "2025-12"]),
        }
        for number in range(rows)
    ]
    random.Random(order).shuffle(orders)
    types = pyarrow.schema(
        {
            "order_id": pyarrow.string(),
            "customer": pyarrow.string(),
            "city": pyarrow.string(),
            "amount": pyarrow.decimal128(15, 2),
            "ordered_on": pyarrow.date32(),
            "_period": pyarrow.string(),
        }
    )
    for number in range(files):
        path = folder / "orders" / f"part-{number:03}.parquet"
        path.parent.mkdir(exist_ok=True)
        part = orders[number * rows // files : (number + 1) * rows // files]
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(part, schema=types), path)
    customers = [{"id": "C1", "tier": "gold"}, {"id": "C2", "tier": "silver"}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(customers), folder / "customers.parquet")
    return folder


@dataclass(frozen=True)
class _Files:
    """Rows in the files of one folder."""

    spark: SparkSession
    folder: Path

    def read(self, use: DatasetUse) -> list[StoredRows]:
        path = self.folder / use.table if use.table == "orders" else self.folder / f"{use.table}.parquet"
        return [StoredRows(read_parquet(self.spark, list_files(path), use, links=Links(self.folder / "links")))]


def run_monthly(spark: SparkSession, folder: Path) -> dict[str, str]:
    """The digest of each output."""
    plan = plan_only_project(define(OUT, DEFINITIONS), resolution=Anywhere())
    tables = {step.spec.seq: step.lowered.write.destination.name for step in plan.steps if step.lowered.write}
    outputs = discard(SparkEngine(spark).outputs(plan, JANUARY, reader=_Files(spark, folder)))
    return {tables[output.seq]: output.digest for output in outputs}


if __name__ == "__main__":
    session = open_session(
        master=f"local[{sys.argv[1]}]", conf={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    )
    sys.stdout.write(json.dumps(run_monthly(session, Path(sys.argv[2]))) + "\n")
