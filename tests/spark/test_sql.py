"""Whole runs over databases that are only read: what they compute, why, and once more when the table has changed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import dobonomodo as dobo
from dobonomodo.workspace.cells import Cell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKSPACE = """
workspace: {default_resolver: tables}
---
datasource: {id: ledger, type: sql, options: {OPTIONS}}
---
datasource: {id: out, type: parquet, options: {path_prefix: results}}
---
resolver: {id: tables, rules: [{strategy: {type: table, datasource_id: ledger, table: "{{table_name}}"}}]}
---
calendar:
  id: c
  levels: [{name: month}]
  periods: [{identifier: "2026-01", level: month, start_date: 2026-01-01, end_date: 2026-01-31}]
---
dataset:
  id: lines
  main_table:
    name: lines
    columns:
      - {name: id, type: integer, nullable: false}
      - {name: account, type: string}
      - {name: amount, type: "decimal(15,2)"}
---
dataset:
  id: accounts
  natural_key_columns: [account]
  main_table:
    name: accounts
    columns: [{name: account, type: string, nullable: false}, {name: title, type: string, source: Name}]
---
project:
  id: close
  input_dataset_id: lines
  operations:
    - seq: 10
      name: title
      type: update
      arguments:
        joins: [{alias: a, dataset_id: accounts, on: lines.account = a.account}]
        assignments: [{column: title, expression: a.title}, {column: net, expression: "ROUND(amount * LARGE, 2)"}]
    - {seq: 20, type: output, arguments: {destination: {datasource_id: out, table: closed}, columns: [id, title, net, _row_id]}}
"""
MADE = """
    CREATE TABLE lines (id INTEGER PRIMARY KEY, account TEXT, amount DECIMAL(15,2));
    INSERT INTO lines VALUES (2, 'B', 0.1), (1, 'a', 1234567.89), (3, 'a', -5);
    CREATE TABLE accounts (account TEXT, Name TEXT);
    INSERT INTO accounts VALUES ('a', 'Revenue'), ('B', 'Costs');
"""


@pytest.fixture(
    params=['url: "sqlite:///ledger.db"', "url: ledger.db, driver: adbc_driver_sqlite"], ids=["url", "adbc"]
)
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    text = WORKSPACE.replace("OPTIONS", request.param).replace("LARGE", "2")
    (tmp_path / "dobo.yaml").write_text(text, encoding="utf-8")
    change(tmp_path, MADE)
    return tmp_path


def change(root: Path, statements: str) -> None:
    with closing(sqlite3.connect(root / "ledger.db")) as connection:
        connection.executescript(statements)


def rows_of(run: Any, workspace: dobo.Workspace) -> list[tuple[Any, ...]]:
    found = workspace.sample(run.id, 10)["closed"]
    return sorted((row["id"], row["title"], row["net"]) for row in found)


def test_a_run_and_what_can_be_asked_of_it(root: Path, spark: SparkSession) -> None:
    with closing(dobo.open(root)) as workspace:
        assert list(workspace.problems()) == []
        workspace.apply()
        workspace.activate("close")
        run = workspace.run("close", period="2026-01", spark=spark)
        assert run.problems == ()
        expected = [
            (1, "Revenue", Decimal("2469135.78")),
            (2, "Costs", Decimal("0.20")),
            (3, "Revenue", Decimal("-10.00")),
        ]
        assert rows_of(run, workspace) == expected
        again = workspace.run("close", period="2026-01", spark=spark)
        pins = [pin["fingerprint"] for pins in run.snapshot["inputs"].values() for pin in pins]
        assert pins == [pin["fingerprint"] for pins in again.snapshot["inputs"].values() for pin in pins]
        assert None not in pins
        why = workspace.why(run.id, "closed", key={"id": 1}, column="net").to_dict()
        assert why["proved"]
        change(root, "UPDATE lines SET amount = 7; DROP TABLE accounts")
        said: list[str] = []
        _, problems = workspace.verify(run.id, replay=True, spark=spark, report=said.append)
        assert (problems, len(said)) == ((), 2)
        assert workspace.why(run.id, "closed", key={"id": 1}, column="net").to_dict() == why
        made = workspace.write_evidence(run.id, root / "evidence.zip", cells=[Cell({"id": 2}, "closed")])
        assert made.path.exists()


def test_a_run_goes_on_with_the_rows_that_it_has_read(root: Path, spark: SparkSession) -> None:
    path = root / "dobo.yaml"
    path.write_text(
        path.read_text(encoding="utf-8").replace("amount * 2", "(id + 1) * 3074457345618258602"), encoding="utf-8"
    )
    with closing(dobo.open(root)) as workspace:
        workspace.apply()
        workspace.activate("close")
        failed = workspace.run("close", period="2026-01", spark=spark)
        assert [problem.code for problem in failed.problems] == ["ARITHMETIC_OVERFLOW"]
        change(root, "DELETE FROM lines WHERE id > 1")
        again = workspace.resume(failed.id, spark=spark)
        # The rows that are too large are gone from the table, but not from what the run has read.
        assert ([problem.code for problem in again.problems], again.attempts) == (["ARITHMETIC_OVERFLOW"], 2)
        assert workspace.run("close", period="2026-01", spark=spark).problems == ()


def test_bad_values_stop_a_run_before_anything_is_computed(root: Path, spark: SparkSession) -> None:
    change(root, "INSERT INTO lines VALUES (7, 'a', 0.001), (8, x'00', 'x')")
    with closing(dobo.open(root)) as workspace:
        workspace.apply()
        workspace.activate("close")
        run = workspace.run("close", period="2026-01", spark=spark)
    (problem,) = run.problems
    assert (run.status, problem.code) == ("failed", "DATA_LOAD")
    assert (run.outputs, run.last_completed_operation) == ({}, None)
