"""The templates as a new user meets them: their scenarios pass, and their runs give what plain Python gives."""

from __future__ import annotations

import csv
from collections import defaultdict
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dobonomodo.cli.init import Template, make_workspace
from dobonomodo.scenarios import find_scenarios, run_suite
from dobonomodo.why.explanation import Summary
from dobonomodo.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.runs import RunView

CENT = Decimal("0.01")
PERIODS = ("2026-01", "2026-02")


@pytest.mark.parametrize("template", [str(template) for template in Template])
def test_scenarios_pass(tmp_path: Path, spark: SparkSession, template: str) -> None:
    make_workspace(tmp_path / "new", template)
    workspace = Workspace.open(tmp_path / "new")
    found, problems = find_scenarios([workspace.root / "scenarios"], root=workspace.root)
    assert problems == []
    assert found
    results = list(run_suite(found, lambda: spark, definitions=workspace.definitions))
    assert {result.name: result.differences for result in results if result.differences} == {}


def _run(workspace: Workspace, project: str, spark: SparkSession) -> list[RunView]:
    runs = [workspace.run(project, period=period, spark=spark) for period in PERIODS]
    assert [run.status for run in runs] == ["completed", "completed"]
    return runs


def _parquet(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("*/*.parquet"))
    rows: list[dict[str, Any]] = pa.concat_tables([pq.ParquetFile(path).read() for path in files]).to_pylist()
    return rows


def _csv(folder: Path) -> list[dict[str, str]]:
    rows = []
    for path in sorted(folder.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            rows += list(csv.DictReader(file))
    return rows


def test_sales(tmp_path: Path, spark: SparkSession) -> None:
    make_workspace(tmp_path, "sales")
    workspace = Workspace.open(tmp_path)
    workspace.apply()
    workspace.activate("monthly-sales")
    _run(workspace, "monthly-sales", spark)

    tiers = {row["id"]: row["tier"] for row in pq.read_table(tmp_path / "data/customers.parquet").to_pylist()}
    totals: dict[tuple[str, str, str], Decimal] = defaultdict(Decimal)
    prices, removed = {}, set()
    for period in PERIODS:
        for row in pq.read_table(tmp_path / f"data/orders/{period}.parquet").to_pylist():
            amount = row["amount"]
            if amount == 0:
                removed.add(row["order_id"])
            if row["status"] == "active":
                gold = tiers[row["customer_id"]] == "gold"
                price = (amount * Decimal("0.9")).quantize(CENT, ROUND_HALF_UP) if gold else amount
                totals[period, row["region"], "total"] += price
                if amount:
                    prices[row["order_id"]] = price
        for row in pq.read_table(tmp_path / f"data/budget/{period}.parquet").to_pylist():
            if row["budget_type"] == "original":
                totals[period, row["region"], "budget"] += row["amount"]

    rows = _parquet(tmp_path / "results/processed_orders")
    assert {row["order_id"]: row["discounted_price"] for row in rows if row["row_type"] == "order"} == prices
    made = [row for row in rows if row["row_type"] != "order"]
    assert {(row["_period"], row["region"], row["row_type"]): row["total_sales"] for row in made} == totals
    assert {row["order_id"] for row in _parquet(tmp_path / "results/removed_orders")} == removed
    assert {row["_labels"] for row in rows if row["region"] != "EMEA"} == {""}

    registered = next(row for row in workspace.listing("dataset") if row.id == "processed-orders")
    assert registered.version == 2


def test_fx(tmp_path: Path, spark: SparkSession) -> None:
    make_workspace(tmp_path, "fx")
    runs = _run(Workspace.open(tmp_path), "group-result", spark)
    sandbox = tmp_path / ".dobo/sandbox/group-result/reports"

    with (tmp_path / "data/rates.csv").open(newline="") as file:
        rates = list(csv.DictReader(file))
    for period in PERIODS:
        day = f"{period}-01"
        valid = {
            row["currency"]: Decimal(row["rate"])
            for row in rates
            if row["valid_from"] <= day and (not row["valid_to"] or row["valid_to"] > day)
        }
        actual: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
        unrated = set()
        with (tmp_path / f"data/lines-{period}.csv").open(newline="") as file:
            for row in csv.DictReader(file):
                if row["currency"] not in valid:
                    unrated.add(row["line_id"])
                    continue
                euro = (Decimal(row["amount"]) * valid[row["currency"]]).quantize(CENT, ROUND_HALF_UP)
                actual[row["entity"], row["account"]] += euro
        found = _csv(sandbox / f"budget_against_actual/run_period={period}")
        assert len(found) == 28
        for row in found:
            assert Decimal(row["actual_eur"]) == actual[row["entity"], row["account"]]
            assert Decimal(row["variance_eur"]) == Decimal(row["actual_eur"]) - Decimal(row["budget_eur"])
        assert {row["line_id"] for row in _csv(sandbox / f"lines_without_rate/run_period={period}")} == unrated
    assert [run.outputs["lines_without_rate"].rows for run in runs] == [0, 2]

    # From a total to the line and its rate.
    total = runs[1].why("budget_against_actual", key={"entity": "DE01", "account": "4000"}, column="variance_eur")
    assert isinstance(total.origin, Summary)
    assert "actual_eur  SUM(actual_eur) = " in str(total)
    largest = max(total.origin.contributors, key=lambda each: each.amounts["actual_eur"] or 0)
    line = str(runs[1].why("lines_in_euro", key=largest.key))
    assert "of exchange-rates v1 (ledger:rates.csv, row" in line
    assert "proved" in line


def test_minimal(tmp_path: Path, spark: SparkSession) -> None:
    make_workspace(tmp_path, "minimal")
    _run(Workspace.open(tmp_path), "totals", spark)
    found = _csv(tmp_path / ".dobo/sandbox/totals/files/results/totals/run_period=2026-01")
    assert sorted((row["account"], row["total"], row["line_count"]) for row in found) == [
        ("4000", "1650.50", "3"),
        ("5000", "-657.25", "2"),
        ("6000", "-950.00", "1"),
    ]
