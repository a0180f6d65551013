"""The templates as a new user meets them: their scenarios pass, and their runs give what plain Python gives."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from collections import defaultdict
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from dobonomodo.cli.init import Template, make_workspace
from dobonomodo.scenarios import find_scenarios, run_suite
from dobonomodo.why.explanation import StoredPlace, Summary
from dobonomodo.workspace import Workspace
from dobonomodo.workspace.package import EVIDENCE, check, unpack
from tests.searching import tries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.runs import RunView
    from tests.object_server import ObjectServer

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


def test_sales_in_an_object_store(tmp_path: Path, spark: SparkSession, object_server: ObjectServer) -> None:
    """From S3 to S3, with the digests of a run on this machine, which is what the rows and their ids are."""
    make_workspace(tmp_path, "sales")
    at = datetime(2026, 2, 3, tzinfo=UTC)
    local = Workspace.open(tmp_path).run("monthly-sales", period=PERIODS[0], spark=spark, draft=True, started_at=at)
    address = f"{object_server.fresh_bucket()}/sales"
    for path in (tmp_path / "data").rglob("*.parquet"):
        object_server.put(f"{address}/in/{path.relative_to(tmp_path / 'data')}", path.read_bytes())
    shutil.rmtree(tmp_path / "data")
    file = tmp_path / "datasources/files.yaml"
    definitions = file.read_text().replace("path_prefix: data", f"path_prefix: {address}/in")
    file.write_text(definitions.replace("path_prefix: results", f"path_prefix: {address}/out"))
    workspace = Workspace.open(tmp_path)
    workspace.apply()
    workspace.activate("monthly-sales")
    remote = workspace.run("monthly-sales", period=PERIODS[0], spark=spark, started_at=at)
    assert [each.digest for each in remote.outputs.values()] == [each.digest for each in local.outputs.values()]
    with object_server.copied(f"{address}/out", "processed_orders") as files:
        assert sum(pq.read_metadata(path).num_rows for path in files) == remote.outputs["processed_orders"].rows
    assert workspace.verify(remote.id, spark=spark)[1] == ()
    assert workspace.audit().problems == ()
    assert len(workspace.sample(remote.id, 3).rows["removed_orders"]) == 3


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


# --- close


def _german(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="cp1252", newline="") as file:
        return list(csv.DictReader(file, delimiter=";"))


def _number(text: str) -> Decimal:
    return Decimal(text.replace(".", "").replace(",", "."))


class _Books:
    """The close once more, in plain Python, from the same files."""

    def __init__(self, data: Path) -> None:
        self.rates = {(row["Monat"], row["Währung"]): row for row in _german(data / "rates.csv")}
        self.chart = {row["Konto"]: row for row in _german(data / "accounts.csv")}
        self.lines = {row["Zeile"]: row for row in _german(data / "report_lines.csv")}
        self.heads = _german(data / "headcount.csv")
        self.budgets = _german(data / "budget.csv")
        self.ledger = {path.stem.removeprefix("gl-"): _german(path) for path in sorted(data.glob("gl-*.csv"))}

    def amount(self, month: str, row: dict[str, str]) -> Decimal:
        rate = self.rates[month, row["Währung"]]
        kind = "Stichtag" if self.chart[row["Konto"]]["Bericht"] == "BS" else "Durchschnitt"
        return (_number(row["Betrag"]) * _number(rate[kind])).quantize(CENT, ROUND_HALF_UP)

    def by_line(self, month: str, report: str) -> dict[tuple[str, str], Decimal]:
        found: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
        for row in self.ledger[month]:
            account = self.chart[row["Konto"]]
            if account["Bericht"] == report:
                found[row["Gesellschaft"], account["Zeile"]] += self.amount(month, row)
        return found

    def rolled(self, values: dict[tuple[str, str], Decimal]) -> dict[tuple[str, str], Decimal]:
        """By entity and over all, for each line and all lines above it."""
        found: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
        for (entity, line), value in values.items():
            here = line
            while here:
                found[entity, here] += value
                found["Group", here] += value
                here = self.lines[here]["Summe"]
        return found

    def profit_and_loss(self, month: str) -> list[list[Any]]:
        year, number = month.split("-")
        actual = self.by_line(month, "PL")
        prior = self.by_line(f"{int(year) - 1}-{number}", "PL")
        to_date: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
        for each in range(1, int(number) + 1):
            for key, value in self.by_line(f"{year}-{each:02}", "PL").items():
                to_date[key] += value
        names = list(self.budgets[0])[2:]
        budget = {(row["Gesellschaft"], row["Zeile"]): _number(row[names[int(number) - 1]]) for row in self.budgets}
        columns = [self.rolled(values) for values in (actual, budget, to_date, prior)]
        rows: list[list[Any]] = []
        for entity, line in {key for each in columns for key in each}:
            now, planned, so_far, before = (each.get((entity, line), Decimal(0)) for each in columns)
            percent = (
                (100 * (now - planned) / abs(planned)).quantize(Decimal("0.1"), ROUND_HALF_UP) if planned else None
            )
            place = int(self.lines[line]["Position"])
            rows.append(
                [entity, place, line, self.lines[line]["Titel"], now, planned, now - planned, percent, so_far, before]
            )
        return sorted(rows, key=lambda row: row[:2])

    def balance_sheet(self, month: str) -> list[list[Any]]:
        found = self.rolled(self.by_line(month, "BS"))
        rows = [
            [entity, int(self.lines[line]["Position"]), line, self.lines[line]["Titel"], value]
            for (entity, line), value in found.items()
        ]
        return sorted(rows, key=lambda row: row[:2])

    def cost_centres(self, month: str) -> list[list[Any]]:
        """Lines of IT are shared out one by one: whole cents first, then one more to the largest remainders."""
        found: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
        for row in self.ledger[month]:
            entity, centre = row["Gesellschaft"], row["Kostenstelle"]
            if not centre or self.chart[row["Konto"]]["Bericht"] != "PL":
                continue
            value = self.amount(month, row)
            if centre != "IT":
                found[entity, centre] += value
                continue
            heads = {
                each["Kostenstelle"]: Fraction(_number(each["Köpfe"]))
                for each in self.heads
                if each["Monat"] == month and each["Gesellschaft"] == entity and each["Kostenstelle"] != "IT"
            }
            cents = int(abs(value) * 100)
            exact = {name: cents * number / sum(heads.values()) for name, number in heads.items()}
            parts = {name: int(share) for name, share in exact.items()}
            order = sorted(heads, key=lambda name: (parts[name] - exact[name], -heads[name], name))
            for name in order[: cents - sum(parts.values())]:
                parts[name] += 1
            for name, part in parts.items():
                found[entity, name] += Decimal(part).scaleb(-2).copy_sign(value)
        for (entity, _), value in list(found.items()):
            found[entity, "Total"] += value
        return sorted([entity, centre, value] for (entity, centre), value in found.items())


@pytest.mark.spark
@pytest.mark.search
def test_close(tmp_path: Path) -> None:
    """Months to the end of a year in one command, twelve with ``DOBO_SEARCH``; every cell of every workbook."""
    import python_calamine

    make_workspace(tmp_path, "close")
    months = [f"2026-{number:02}" for number in range(13 - tries(sample=2, full=12), 13)]
    for arguments in (
        ["apply", "--yes"],
        ["activate", "close", "--no-test", "--reason", "tested beside it"],
        ["run", "close", "--period", f"{months[0]}..{months[-1]}"],
    ):
        command = [sys.executable, "-m", "dobonomodo.cli", "-C", str(tmp_path), *arguments]
        # A month takes seconds, and minutes where several searches share the machine.
        done = subprocess.run(command, capture_output=True, text=True, timeout=300 * (len(months) + 1), check=False)
        assert done.returncode == 0, done.stderr[-3000:]
    books = _Books(tmp_path / "data")
    for month in months:
        workbook = python_calamine.CalamineWorkbook.from_path(tmp_path / "results" / f"close-{month}.xlsx")
        assert workbook.sheet_names == ["Profit and loss", "Balance sheet", "Cost centres"]
        wanted = [books.profit_and_loss(month), books.balance_sheet(month), books.cost_centres(month)]
        for name, rows in zip(workbook.sheet_names, wanted, strict=True):
            header, *found = workbook.get_sheet_by_name(name).to_python()
            assert header[0] == "Entity"
            assert [[_cell(value) for value in row] for row in found] == rows, (month, name)
    _check_explained(Workspace.open(tmp_path).find_run(f"close@{months[-1]}"), books)


def _check_explained(run: RunView, books: _Books) -> None:
    """From a figure of the report to lines of the ledger and their rates, which no output has."""
    figure: Any = {"table": "Profit and loss", "key": {"Entity": "Group", "Line": "EBIT"}}
    total = run.why(**figure, column="Actual", contributors=None)
    assert isinstance(total.origin, Summary)
    line = next(each for each in total.origin.contributors if each.key["document"].endswith("1-1"))  # type: ignore[union-attr]
    found = run.why(**figure, column="Actual", contributor=line.key)
    (written,) = [each for each in books.ledger[run.period] if each["Belegnummer"] == line.key["document"]]
    assert found.contribution is not None
    assert found.contribution.amounts == {"actual": books.amount(run.period, written)}
    rate = books.rates[run.period, written["Währung"]]["Durchschnitt"]
    assert str(_number(rate)) in str(found)
    assert "of rates v1 (exports:rates.csv, row" in str(found)
    (unset,) = run.why_not(**figure, column="Variance %").reasons
    assert (unset.kind, unset.operation is None) == ("set", False)
    (unknown,) = {each.kind for each in run.why_not("Profit and loss", key={"document": "999-1"}).reasons}
    assert unknown == "not in the input"
    # The year to date is a total of totals.
    months = run.why(**figure, column="Year to date", contributors=1)
    assert isinstance(months.origin, Summary)
    (largest,) = months.origin.contributors
    deeper = run.why(**figure, column="Year to date", contributor=largest.key)
    assert isinstance(deeper.origin, Summary)
    assert deeper.origin.rows == int(run.period[-2:])
    lines = [
        run.why(**figure, column="Year to date", contributor=[largest.key, each.key])
        for each in deeper.origin.contributors
    ]
    assert sum(each.contribution.amounts["year_to_date"] for each in lines) == largest.amounts["year_to_date"]  # type: ignore[misc, union-attr]


def _cell(value: object) -> object:
    """A cell as it is compared: numbers as they are shown."""
    if value == "":
        return None
    return Decimal(repr(value)) if isinstance(value, float) else value


def test_lake(tmp_path: Path, spark: SparkSession) -> None:
    """Tables of every layer hold what plain Python computes, and what the same project writes from and to Parquet files."""
    make_workspace(tmp_path / "lake", "lake")
    workspace = Workspace.open(tmp_path / "lake")
    assert workspace.problems() == ()
    workspace.apply()
    workspace.activate("silver")
    runs = _run(workspace, "silver", spark)
    workspace.activate("gold")
    assert workspace.run("gold", period=PERIODS[1], spark=spark).status == "completed"

    tables = {
        name: DeltaTable(tmp_path / "lake/data" / name) for name in ("bronze/orders", "silver/orders", "gold/sales")
    }
    orders = tables["bronze/orders"].to_pyarrow_table().to_pylist()
    tiers = {
        row["id"]: row["tier"]
        for row in DeltaTable(tmp_path / "lake/data/bronze/customers").to_pyarrow_table().to_pylist()
    }
    totals: dict[tuple[str, str, str], Decimal] = defaultdict(Decimal)
    for row in orders:
        if row["status"] == "active":
            tier = tiers[row["customer_id"]]
            net = (row["amount"] * Decimal("0.9")).quantize(CENT, ROUND_HALF_UP) if tier == "gold" else row["amount"]
            totals[row["_period"], row["region"], tier] += net
    found = tables["gold/sales"].to_pyarrow_table().to_pylist()
    february = {key: total for key, total in totals.items() if key[0] == PERIODS[1]}
    assert {(row["_period"], row["region"], row["tier"]): row["sales"] for row in found} == february
    active = sum(row["status"] == "active" for row in orders)
    assert tables["silver/orders"].to_pyarrow_table().num_rows == active

    figure: Any = {"key": {"region": "AMER", "tier": "gold"}, "column": "discount"}
    total = workspace.why("gold@2026-02", **figure, contributors=None)
    assert isinstance(total.origin, Summary)
    amounts = [each.amounts["discount"] for each in total.origin.contributors]
    assert sum(each for each in amounts if isinstance(each, Decimal)) == total.row["discount"]
    line = workspace.why("gold@2026-02", **figure, contributor=total.origin.contributors[0].key, depth=2)
    assert isinstance(line.origin, StoredPlace)
    assert line.origin.further is not None
    assert line.origin.further.run == runs[1].id

    files = unpack(workspace.write_evidence("gold@2026-02", tmp_path / "gold.zip", sample=0).path.read_bytes())
    lines = check(files, str(tmp_path / "lake"))
    assert all(right for _, right, _ in lines), lines
    (written,) = [file for output in json.loads(files[EVIDENCE])["outputs"] for file in output["files"]]
    (tmp_path / "lake" / written["path"]).write_bytes(b"")
    assert [right for _, right, _ in check(files, str(tmp_path / "lake"))].count(False) == 1

    again = _parquet_twin(tmp_path).run("silver", period=PERIODS[0], spark=spark)
    digests = [{name: output.digest for name, output in run.outputs.items()} for run in (runs[0], again)]
    assert digests[0] == digests[1]


def _parquet_twin(root: Path) -> Workspace:
    """The same workspace with the same rows in Parquet files."""
    make_workspace(root / "twin", "lake")
    source = root / "twin/datasources/lake.yaml"
    source.write_text(source.read_text().replace("type: delta", "type: parquet"))
    for name in ("orders", "customers"):
        folder = root / "twin/data/bronze" / name
        table = DeltaTable(folder).to_pyarrow_table()
        shutil.rmtree(folder)
        folder.mkdir()
        pq.write_table(table, folder / "rows.parquet")
    workspace = Workspace.open(root / "twin")
    workspace.apply()
    workspace.activate("silver")
    return workspace
