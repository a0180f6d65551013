"""Many rows are measured once they are written, and outputs with the same columns share files: the results are those of few rows."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dobonomodo as dobo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLOCK = datetime(2026, 4, 1, 8, tzinfo=UTC)

DEFINITIONS = """
workspace: {name: ledger, figures: columns}
---
datasource: {id: lake, type: parquet, options: {path_prefix: lake}}
---
datasource: {id: out, type: parquet, options: {path_prefix: out}}
---
datasource: {id: sheets, type: csv, options: {path_prefix: sheets}}
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
    temporal_mode: snapshot
    columns:
      - {name: id, type: integer, nullable: false}
      - {name: account, type: string}
      - {name: amount, type: "decimal(15,2)"}
---
project:
  id: close
  input_dataset_id: lines
  operations:
    - seq: 10
      name: Correct
      type: update
      selector: amount < 0
      arguments: {assignments: [{column: amount, expression: amount * 2}]}
    - {seq: 20, name: Drop, type: delete, selector: account = "x"}
    - seq: 30
      name: Sum up
      type: aggregate
      arguments: {group_by: [account], aggregations: [{column: total, expression: SUM(amount)}]}
    - seq: 40
      name: Active rows
      type: output
      arguments:
        destination: {datasource_id: out, table: active}
        columns: &columns [id, account, amount, total, _deleted, _operation_seq]
    - seq: 50
      name: All rows
      type: output
      arguments: {destination: {datasource_id: out, table: everything}, include_deleted: true, columns: *columns}
    - seq: 60
      name: One account
      type: output
      selector: account = "a"
      arguments: {destination: {datasource_id: sheets, table: one}, columns: *columns}
    - seq: 70
      name: No account
      type: output
      selector: account = "nobody"
      arguments: {destination: {datasource_id: out, table: none}, columns: *columns}
    - seq: 80
      name: Amounts
      type: output
      arguments: {destination: {datasource_id: out, table: amounts}, columns: [account, amount]}
    - seq: 90
      name: Titles
      type: output
      arguments:
        destination: {datasource_id: out, table: titles}
        columns: [id, account, {column: amount, as: betrag}, total, _deleted, _operation_seq]
"""

ACCOUNTS = ("a", "b", None, "x", "a")


def test_rows_digests_and_figures_are_those_of_few_rows(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same project in both ways, over five files."""
    few = run_close(tmp_path / "few", spark, rows=200)
    monkeypatch.setattr("dobonomodo.engine.size.SMALL_BYTES", 0)
    many = run_close(tmp_path / "many", spark, rows=200)

    assert many["outputs"] == few["outputs"]
    assert many["outputs"]["none"]["rows"] == 0
    assert (
        many["outputs"]["everything"]["rows"] > many["outputs"]["active"]["rows"] > many["outputs"]["one"]["rows"] > 0
    )
    assert many["operations"] == few["operations"]
    assert many["figures"] == few["figures"]
    kinds = {each["table"]: each["kinds"] for each in many["figures"]["outputs"]}
    assert [(kind["seq"], kind["name"]) for kind in kinds["active"]] == [(0, ""), (30, "Sum up")]
    assert kinds["one"] != kinds["active"]
    assert kinds["none"] == []
    assert kinds["amounts"] is None
    (active,) = [each for each in many["figures"]["outputs"] if each["table"] == "active"]
    for name, total in active["totals"].items():
        assert sum(Decimal(kind["totals"][name]) for kind in kinds["active"]) == Decimal(total), name


def test_outputs_with_the_same_columns_share_files(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of both are on the disk once; those of the larger one alone are in files of their own."""
    monkeypatch.setattr("dobonomodo.engine.size.SMALL_BYTES", 0)
    run_close(tmp_path, spark, rows=200)
    inodes = {
        table: {path.stat().st_ino for path in _find_files(tmp_path, table)}
        for table in ("active", "everything", "none", "amounts")
    }
    assert inodes["active"] < inodes["everything"]
    assert inodes["none"]
    assert not inodes["everything"] & (inodes["none"] | inodes["amounts"])


def test_no_rows_at_all(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers still find out which columns there are."""
    monkeypatch.setattr("dobonomodo.engine.size.SMALL_BYTES", 0)
    run = run_close(tmp_path, spark, rows=0)
    assert {name: output["rows"] for name, output in run["outputs"].items()}["everything"] == 0
    for table in ("active", "everything"):
        (file,) = _find_files(tmp_path, table)
        assert pq.read_schema(file).names == ["id", "account", "amount", "total", "_deleted", "_operation_seq"]


def run_close(root: Path, spark: SparkSession, *, rows: int, settings: str = "") -> dict[str, Any]:
    """What a run of the project records, with some more settings of the workspace."""
    (root / "lake" / "lines.parquet").mkdir(parents=True)
    (root / "dobo.yaml").write_text(DEFINITIONS.replace("figures: columns", f"figures: columns{settings}"))
    schema = pa.schema([("id", pa.int64()), ("account", pa.string()), ("amount", pa.decimal128(15, 2))])
    lines = [{"id": at, "account": ACCOUNTS[at % 5], "amount": at - 50 if at % 7 else None} for at in range(rows)]
    for number in range(5):
        part = pa.Table.from_pylist(lines[number::5], schema=schema)
        pq.write_table(part, root / "lake" / "lines.parquet" / f"{number}.parquet")
    run = dobo.open(root).run("close", period="2026-03", spark=spark, started_at=CLOCK)
    assert run.status == "completed", run.problems
    document: dict[str, Any] = run.to_dict()
    return {
        "outputs": {name: {"rows": each.rows, "digest": each.digest} for name, each in run.outputs.items()},
        "operations": [
            {key: value for key, value in each.items() if "second" not in key} for each in document["operations"]
        ],
        "figures": document["figures"],
    }


def _find_files(root: Path, table: str) -> list[Path]:
    return [path for path in root.rglob("*.parquet") if path.parent.name == "data" and path.parents[2].name == table]
