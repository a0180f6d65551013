"""Whole runs over tables of any kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.world import MONTHS, PERIOD, Folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.runs import RunView

DEFINITIONS = """
datasource: {id: plain, type: parquet, options: {path_prefix: plain}}
---
resolver: {id: tables, is_default: true, rules: [{strategy: %s}]}
---
dataset:
  id: lines
  natural_key_columns: [id]
  main_table:
    name: lines
    columns: [{name: id, type: integer}, {name: title, type: string, nullable: true}]
---
project:
  id: copy
  input_dataset_id: lines
  operations:
    - {seq: 10, type: update, arguments: {assignments: [{column: double, expression: id * 2}]}}
    - {seq: 20, type: output, arguments: {destination: {datasource_id: %s, table: %s}, columns: [%s]}}
"""


def run_copy(
    root: Path,
    spark: SparkSession,
    source: str,
    strategy: str,
    *,
    to: tuple[str, str] = ("plain", "out"),
    columns: str = "id, title, double",
) -> RunView:
    """Run a project that reads a table of a datasource, of which this is the definition."""
    workspace = Folder.make(root, MONTHS, source, DEFINITIONS % (strategy, *to, columns)).activate("copy")
    try:
        return workspace.run("copy", period=PERIOD, spark=spark)
    finally:
        workspace.close()


def digest_of(root: Path, spark: SparkSession, source: str, strategy: str) -> str:
    """The digest of what such a run writes."""
    run = run_copy(root, spark, source, strategy)
    assert run.status == "completed", run.problems
    return run.outputs["out"].digest
