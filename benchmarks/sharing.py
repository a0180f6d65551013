"""An allocation against the same written by hand: orders of one priority are distributed to nations, to the cent."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benchmarks.data import WORK, make_data
from benchmarks.measure import measure, ratio, ratio_of_cpu

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

DEFINITIONS = """
workspace: {name: sharing}
---
datasource: {id: tpch, type: parquet, options: {path_prefix: data}}
---
datasource: {id: out, type: parquet, options: {path_prefix: out}}
---
resolver:
  id: files
  is_default: true
  rules: [{strategy: {type: path, datasource_id: tpch, path: "{{table_name}}.parquet"}}]
---
calendar:
  id: months
  levels: [{name: month, identifier_pattern: "{year}-{sequence:02}"}]
  generate: {from: 2026-01-01, to: 2026-12-31}
---
dataset:
  id: orders
  natural_key_columns: [o_orderkey]
  main_table:
    name: orders
    temporal_mode: period
    columns:
      - {name: o_orderkey, type: integer}
      - {name: o_custkey, type: integer}
      - {name: o_orderstatus, type: string}
      - {name: o_totalprice, type: "decimal(15,2)"}
      - {name: o_orderdate, type: date}
      - {name: o_orderpriority, type: string}
      - {name: o_clerk, type: string}
      - {name: o_shippriority, type: integer}
      - {name: o_comment, type: string}
---
dataset:
  id: nation
  natural_key_columns: [n_nationkey]
  main_table:
    name: nation
    columns:
      - {name: n_nationkey, type: integer}
      - {name: n_name, type: string}
      - {name: n_regionkey, type: integer}
      - {name: n_comment, type: string}
---
project:
  id: sharing
  input_dataset_id: orders
  operations:
    - seq: 10
      type: allocate
      selector: o_orderpriority = "1-URGENT"
      arguments:
        amount: o_totalprice
        receivers: {dataset_id: nation, selector: n_regionkey = 3}
        driver: receivers.n_nationkey + 1
        set: [{column: o_clerk, expression: receivers.n_name}]
        round: 2
    - seq: 20
      type: output
      arguments:
        destination: {datasource_id: out, table: shared}
        columns: [o_orderkey, o_custkey, o_totalprice, o_clerk]
"""


def sharing(spark: SparkSession, scale: float, warm: int) -> dict[str, Any]:
    """A fifth of the orders, each to five nations; both from Parquet to Parquet."""
    from dobonomodo.workspace import Workspace

    data, root = make_data(scale), WORK / "sharing"
    shutil.rmtree(root, ignore_errors=True)
    (root / "workspace").mkdir(parents=True)
    (root / "workspace" / "data").symlink_to(data)
    (root / "workspace" / "dobo.yaml").write_text(DEFINITIONS)
    workspace = Workspace.open(root / "workspace")
    chosen: dict[str, Callable[[], object]] = {
        "expert": lambda: share_by_hand(spark, data, root / "expert"),
        "dobo": lambda: workspace.run("sharing", period="2026-01", draft=True, spark=spark, figures=False),
    }
    measured, _ = measure(chosen, warm=warm, cold=2)
    run = workspace.find_run("latest")
    same = _total(run.outputs["shared"].dataframe(spark)) == _total(spark.read.parquet(str(root / "expert")))
    workspace.close()
    return {
        "scale": scale,
        "rows": run.outputs["shared"].rows,
        "same": same,
        "measured": {name: each.document() for name, each in measured.items()},
        "ratio": round(ratio(measured["dobo"], measured["expert"]), 3),
        "ratio_cpu": round(ratio_of_cpu(measured["dobo"], measured["expert"]), 3),
    }


def share_by_hand(spark: SparkSession, data: Path, to: Path) -> None:
    """What somebody writes who knows how: whole cents, the rest to those that lost most."""
    orders = spark.read.parquet(str(data / "orders.parquet")).where("_period = '2026-01'")
    names = ["o_orderkey", "o_custkey", "o_totalprice", "o_clerk"]
    nations = spark.read.parquet(str(data / "nation.parquet")).where("n_regionkey = 3")
    drivers = nations.selectExpr(
        "n_nationkey",
        "n_name",
        "CAST(n_nationkey + 1 AS BIGINT) AS d",
        "CAST(sum(n_nationkey + 1) OVER () AS BIGINT) AS total",
    )
    pools = orders.where("o_orderpriority = '1-URGENT'").selectExpr(
        "o_orderkey", "o_custkey", "CAST(o_totalprice * 100 AS BIGINT) AS cents"
    )
    parts = pools.crossJoin(drivers.hint("broadcast")).selectExpr(
        "*", "cents * d div total AS part", "(cents * d) % total AS lost"
    )
    ranked = parts.selectExpr(
        "*",
        "cents - sum(part) OVER (PARTITION BY o_orderkey) AS left",
        "row_number() OVER (PARTITION BY o_orderkey ORDER BY lost DESC, d DESC, n_nationkey) AS place",
    )
    shared = ranked.selectExpr(
        "o_orderkey",
        "o_custkey",
        "CAST((part + CASE WHEN place <= left THEN 1 ELSE 0 END) / 100 AS DECIMAL(15,2)) AS o_totalprice",
        "n_name AS o_clerk",
    )
    rest = orders.where("o_orderpriority <> '1-URGENT' OR o_orderpriority IS NULL").select(*names)
    rest.unionByName(shared).write.mode("overwrite").parquet(str(to))


def _total(frame: Any) -> object:
    """Rows, and what tells whether amounts went to the same clerks."""
    return frame.selectExpr(
        "count(1)", "sum(o_totalprice)", "sum(hash(o_orderkey, o_clerk, CAST(o_totalprice AS STRING)))"
    ).first()
