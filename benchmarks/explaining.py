"""How long it takes to explain one row among many, and a total of a million: from the shell, and in a Python that has asked before."""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from benchmarks.data import WORK
from benchmarks.measure import cpu_seconds

DEFINITIONS = """
workspace: {name: why, keep_inputs: "no", figures: off}
---
datasource: {id: lake, type: parquet, options: {path_prefix: lake}}
---
datasource: {id: out, type: parquet, options: {path_prefix: out}}
---
resolver:
  id: files
  is_default: true
  rules: [{strategy: {type: path, datasource_id: lake, path: "{{table_name}}.parquet"}}]
---
calendar:
  id: months
  levels: [{name: month, identifier_pattern: "{year}-{sequence:02}"}]
  generate: {from: 2026-01-01, to: 2026-12-31}
---
dataset:
  id: lines
  natural_key_columns: [id]
  main_table:
    name: lines
    columns:
      - {name: id, type: string}
      - {name: customer, type: integer}
      - {name: currency, type: string}
      - {name: region, type: integer}
      - {name: amount, type: "decimal(15,2)"}
---
dataset:
  id: customers
  natural_key_columns: [id]
  main_table: {name: customers, columns: [{name: id, type: integer}, {name: tier, type: string}]}
---
dataset:
  id: rates
  natural_key_columns: [currency]
  main_table: {name: rates, columns: [{name: currency, type: string}, {name: rate, type: "decimal(12,6)"}]}
---
project:
  id: net
  input_dataset_id: lines
  operations:
"""
JOINED = """
    - seq: 1
      type: update
      arguments:
        joins: [{alias: c, dataset_id: customers, on: lines.customer = c.id}]
        assignments: [{column: net, expression: 'IF(c.tier = "gold", ROUND(amount * 0.9, 2), amount)'}]
    - seq: 2
      type: update
      arguments:
        joins: [{alias: r, dataset_id: rates, on: lines.currency = r.currency}]
        assignments: [{column: euro, expression: "ROUND(net * r.rate, 2)"}]
"""
PLAIN = """
    - seq: {seq}
      type: update
      selector: amount > {seq}
      arguments: {{assignments: [{{column: c{seq}, expression: "ROUND(euro * 0.{seq}, 2)"}}]}}
"""
OUTPUT = """
    - {seq: 90, type: output, arguments: {destination: {datasource_id: out, table: net}}}
    - {seq: 91, type: aggregate, arguments: {group_by: [region], aggregations: [{column: euro, expression: SUM(euro)}]}}
    - seq: 92
      type: output
      selector: _operation_seq = 91
      arguments: {destination: {datasource_id: out, table: totals}, columns: [region, euro]}
"""


def explaining(rows: int) -> dict[str, Any]:
    """A row among so many, with eight updates and two joins, by its key and by its id; and a total of a tenth of them."""
    root = WORK / "why"
    load = round(os.getloadavg()[0], 2)
    shutil.rmtree(root, ignore_errors=True)
    _write_inputs(root / "lake", rows)
    updates = "".join(PLAIN.format(seq=seq) for seq in range(3, 9))
    (root / "dobo.yaml").write_text(DEFINITIONS + JOINED + updates + OUTPUT)
    command = [sys.executable, "-m", "dobonomodo.cli", "-C", str(root), "-q"]
    subprocess.run([*command, "run", "net", "-p", "2026-01", "--draft"], check=True, capture_output=True)
    wanted = f"L{rows * 2 // 3:09}"

    import dobonomodo as dobo
    from dobonomodo.engine import open_session

    workspace = dobo.open(root)
    run = workspace.find_run("latest")
    found = run.why("net", key={"id": wanted}, column="c8")
    row_id = str(found.row["_row_id"])
    shell = {"a row by its key": ["--key", f"id={wanted}"], "a row by its id": ["--row-id", row_id]}
    cold = {name: _time(lambda more=more: _ask(command, more)) for name, more in shell.items()}  # type: ignore[misc]
    warm = {
        "a row by its key": _time(lambda: run.why("net", key={"id": wanted}, column="c8")),
        "a row by its id": _time(lambda: run.why("net", row_id=row_id, column="c8")),
    }
    spark = open_session()

    def total(**more: Any) -> object:
        return workspace.why(run.id, "totals", key={"region": 3}, column="euro", spark=spark, **more)

    total()
    members = f"{rows // 10:,}"
    member = f"L{rows // 2 // 10 * 10 + 3:09}"
    group = {
        f"a total of {members} rows and its 20 largest": _time(total),
        f"one of the {members} rows of a total": _time(lambda: total(contributor={"id": member})),
    }
    spark.stop()
    shutil.rmtree(root, ignore_errors=True)
    return {"rows": rows, "load": load, "cold": cold, "warm": warm, "group": group}


def _ask(command: list[str], more: list[str]) -> None:
    subprocess.run([*command, "why", "latest", "net", *more, "--column", "c8"], check=True, capture_output=True)


def _time(work: Callable[[], object]) -> dict[str, float]:
    """Medians of the wall clock and of the processor time, also of commands that were started."""
    walls, cpus = [], []
    for _ in range(5):
        before, started = _processor_time(), time.perf_counter()
        work()
        walls.append(time.perf_counter() - started)
        cpus.append(_processor_time() - before)
    return {"seconds": round(statistics.median(walls), 3), "cpu": round(statistics.median(cpus), 3)}


def _processor_time() -> float:
    """Of this process, those below it, and those that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return cpu_seconds() + used.ru_utime + used.ru_stime


def _write_inputs(folder: Path, rows: int) -> None:
    """Ids in order, as a system that numbers its lines writes them."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    number = pa.array(range(rows), pa.int64())
    ids = pc.binary_join_element_wise("L", pc.utf8_lpad(number.cast(pa.string()), 9, "0"), "")
    customers = pc.bit_wise_and(number, 65_535)
    currencies = pa.array(["EUR", "USD", "GBP", "CHF"]).take(pc.bit_wise_and(number, 3))
    tenths = pc.subtract(number, pc.multiply(pc.divide(number, 10), 10))
    cents = pc.bit_wise_and(pc.multiply(number, 7_919), 1_048_575)
    amounts = pc.divide(cents.cast(pa.decimal128(19, 0)), pa.scalar(100, pa.decimal128(3, 0))).cast(pa.float64())
    lines = pa.table(
        {
            "id": ids,
            "customer": customers,
            "currency": currencies,
            "region": tenths,
            "amount": pc.round(amounts, 2).cast(pa.decimal128(15, 2), safe=False),
        }
    )
    pq.write_table(lines, folder / "lines.parquet", row_group_size=1 << 20)
    known = pa.array(range(65_536), pa.int64())
    tiers = pa.array(["gold", "silver"]).take(pc.bit_wise_and(known, 1))
    pq.write_table(pa.table({"id": known, "tier": tiers}), folder / "customers.parquet")
    ones = pa.array([Decimal(1)] * 4, pa.decimal128(12, 6))
    rates = pa.table({"currency": ["EUR", "USD", "GBP", "CHF"], "rate": ones})
    pq.write_table(rates, folder / "rates.parquet")
