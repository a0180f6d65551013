"""Checks in runs of whole workspaces: what is published, what readers find, and what the record says."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import pytest

import dobonomodo as dobo
from dobonomodo.problems import Rejected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFINITIONS = """
workspace: {name: ledger}
---
datasource: {id: lake, type: parquet, options: {path_prefix: lake}}
---
datasource: {id: out, type: parquet, options: {path_prefix: out}}
---
resolver: {id: all, is_default: true, rules: [{strategy: {type: path, datasource_id: lake, path: "{{table_name}}/{{identifier}}.parquet"}}]}
---
calendar:
  id: months
  levels: [{name: month, identifier_pattern: "{year}-{sequence:02}"}]
  generate: {from: 2026-01-01, to: 2026-12-31}
---
dataset:
  id: lines
  natural_key_columns: [id]
  checks: CONTRACTS
  main_table: {name: lines, columns: [{name: id, type: integer}, {name: side, type: string}, {name: amount, type: "decimal(15,2)"}]}
---
project:
  id: close
  input_dataset_id: lines
  operations:
    - seq: 10
      name: Every line has a side
      type: check
      arguments: {expect: 'side IN ("debit", "credit")', quarantine: {datasource_id: out, table: bad}}
    - seq: 20
      name: Debit equals credit
      type: check
      arguments: {expect: 'SUM(IF(side = "debit", amount, 0)) = SUM(IF(side = "credit", amount, 0))'}
    - {seq: 30, type: output, arguments: {destination: {datasource_id: out, table: closed}}}
    - {seq: 40, type: output, arguments: {destination: {datasource_id: out, table: again}, columns: [id]}}
"""

Line = tuple[int, str | None, str]
GOOD: list[Line] = [(1, "debit", "10.00"), (2, "credit", "10.00")]


def put(root: Path, lines: list[Line], period: str = "2026-01") -> None:
    ids, sides, amounts = zip(*lines, strict=True)
    table = pyarrow.table(
        {
            "id": pyarrow.array(ids, pyarrow.int64()),
            "side": pyarrow.array(sides, pyarrow.string()),
            "amount": pyarrow.array([Decimal(each) for each in amounts], pyarrow.decimal128(15, 2)),
        }
    )
    path = root / "lake/lines" / f"{period}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(table, path)


def make(root: Path, contracts: str = "[]") -> dobo.Workspace:
    (root / "dobo.yaml").write_text(DEFINITIONS.replace("CONTRACTS", contracts))
    workspace = dobo.open(root)
    assert [problem.message() for problem in workspace.problems()] == []
    workspace.apply()
    workspace.activate("close")
    return workspace


def ids(root: Path, table: str) -> list[Any]:
    found = pyarrow.dataset.dataset(root / "out" / table, format="parquet", partitioning="hive").to_table()
    return sorted(found["id"].to_pylist())


def test_a_failing_check_leaves_what_was_published(tmp_path: Path, spark: SparkSession) -> None:
    put(tmp_path, GOOD)
    workspace = make(tmp_path)
    first = workspace.run("close", period="2026-01", spark=spark)
    assert (first.status, [each.status for each in first.checks]) == ("completed", ["passed", "passed"])
    put(tmp_path, [*GOOD, (3, None, "5.00"), (4, "credit", "1.00")])
    failed = workspace.run("close", period="2026-01", spark=spark)
    assert failed.status == "failed"
    assert [each.code for each in failed.problems] == ["CHECK_FAILED", "CHECK_FAILED"]
    rows, total = failed.checks
    assert (rows.violations, rows.reached, rows.sample) == (1, 4, ((("id", "3"), ("side", "NULL")),))
    assert (total.left, total.right, total.difference) == ("10.00", "11.00", "-1.00")
    assert (ids(tmp_path, "closed"), ids(tmp_path, "again"), ids(tmp_path, "bad")) == ([1, 2], [1, 2], [3])
    assert list(failed.outputs) == ["bad"]
    with pytest.raises(Rejected) as refused:
        workspace.resume(failed.id, spark=spark)
    assert refused.value.problems[0].code == "RESUME_REFUSED"
    put(tmp_path, [(5, "debit", "1.00"), (6, "credit", "1.00")])
    assert workspace.run("close", period="2026-01", spark=spark).status == "completed"
    assert (ids(tmp_path, "closed"), ids(tmp_path, "bad")) == ([5, 6], [])


@pytest.mark.parametrize(
    ("contract", "lines", "holds"),
    [
        ("{unique: [id]}", GOOD, True),
        ("{unique: [id]}", [*GOOD, (2, "debit", "0.00")], False),
        ("{not_null: [side]}", GOOD, True),
        ("{not_null: [side]}", [*GOOD, (3, None, "0.00")], False),
        ("{values: {side: [debit, credit]}}", [*GOOD, (3, None, "0.00")], True),
        ("{values: {side: [debit]}}", GOOD, False),
        ("{range: {amount: {min: 10, max: 10.00}}}", GOOD, True),
        ("{range: {amount: {min: 10.01}}}", GOOD, False),
    ],
)
def test_contracts_of_datasets(
    tmp_path: Path, spark: SparkSession, contract: str, lines: list[Line], *, holds: bool
) -> None:
    put(tmp_path, lines)
    run = make(tmp_path, f"[{contract}]").run("close", period="2026-01", spark=spark)
    assert run.checks[0].holds is holds
    if not holds:
        assert (run.status, [each.code for each in run.problems]) == ("failed", ["CHECK_FAILED"])
        assert not (tmp_path / "out" / "closed").exists()


def test_the_number_of_rows_is_compared_with_the_previous_period(tmp_path: Path, spark: SparkSession) -> None:
    workspace = make(tmp_path, "[{rows_against_previous: 50%}]")
    for period, pairs in (("2026-01", 2), ("2026-02", 3), ("2026-03", 1)):
        lines: list[Line] = [(2 * at + of, ("debit", "credit")[of], "1.00") for at in range(pairs) for of in (0, 1)]
        put(tmp_path, lines, period)
    first, second, third = (
        workspace.run("close", period=period, spark=spark) for period in ("2026-01", "2026-02", "2026-03")
    )
    assert [run.status for run in (first, second, third)] == ["completed", "completed", "failed"]
    assert (third.checks[0].left, third.checks[0].right, third.checks[0].difference) == ("2", "6", "-4")
