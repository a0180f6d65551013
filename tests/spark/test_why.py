"""Rows that Spark wrote, explained without Spark: from files of both kinds, with proof, or refused where something changed."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dobonomodo as dobo
from dobonomodo.cli.main import run as run_command
from dobonomodo.model import Definitions
from dobonomodo.problems import Problem
from dobonomodo.scenarios import find_scenarios, run_suite
from dobonomodo.why.explanation import StoredPlace, Summary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.runs import RunView

DEFINITIONS = """
workspace: {name: orders, keep_inputs: "no"}
---
datasource: {id: lake, type: parquet, options: {path_prefix: lake}}
---
datasource: {id: texts, type: csv, options: {path_prefix: texts}}
---
datasource: {id: out, type: parquet, options: {path_prefix: out}}
---
datasource: {id: lists, type: csv, options: {path_prefix: lists}}
---
resolver:
  id: files
  is_default: true
  rules:
    - {name: text, when: 'table.name = "customers"', strategy: {type: path, datasource_id: texts, path: "{{table_name}}.csv"}}
    - {name: lake, strategy: {type: path, datasource_id: lake, path: "{{table_name}}"}}
---
calendar:
  id: months
  levels: [{name: month, identifier_pattern: "{year}-{sequence:02}"}]
  generate: {from: 2026-01-01, to: 2026-12-31}
---
dataset:
  id: orders
  natural_key_columns: [id]
  main_table:
    name: orders
    temporal_mode: period
    columns:
      - {name: id, type: string}
      - {name: customer, type: string}
      - {name: amount, type: "decimal(15,2)"}
---
dataset:
  id: customers
  natural_key_columns: [id]
  main_table:
    name: customers
    columns: [{name: id, type: string}, {name: tier, type: string}]
---
project:
  id: net
  input_dataset_id: orders
  operations:
    - seq: 10
      name: Price
      type: update
      selector: amount > 0
      arguments:
        joins: [{alias: c, dataset_id: customers, on: orders.customer = c.id}]
        assignments:
          - {column: net, expression: 'IF(c.tier = "gold", ROUND(amount * 0.9, 2), amount)'}
          - {column: place, expression: ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount DESC)}
    - seq: 20
      name: Totals
      type: aggregate
      selector: _operation_seq = 0
      arguments: {group_by: [customer], aggregations: [{column: total, expression: SUM(net)}]}
    - {seq: 30, name: Returns, type: delete, selector: amount < 0}
    - seq: 90
      name: Write
      type: output
      arguments: {destination: {datasource_id: out, table: net}, register_as_dataset: net-orders}
    - seq: 91
      name: List
      type: output
      selector: _operation_seq = 0
      arguments: {destination: {datasource_id: lists, table: list}, columns: [id, customer, net, place], include_deleted: true}
---
project:
  id: twice
  input_dataset_id: net-orders
  operations:
    - {seq: 10, type: update, selector: _operation_seq = 0, arguments: {assignments: [{column: double, expression: net * 2}]}}
    - {seq: 90, type: output, arguments: {destination: {datasource_id: out, table: twice}, columns: [id, customer, double]}}
---
project:
  id: totals
  input_dataset_id: orders
  operations:
    - {seq: 5, type: update, arguments: {assignments: [{column: amount, expression: "ROUND(amount * 2, 2)"}]}}
    - seq: 10
      type: aggregate
      arguments:
        group_by: [customer]
        aggregations:
          - {column: amount, expression: SUM(amount)}
          - {column: rest, expression: COUNT(*) * 100 - SUM(amount)}
          - {column: quarter, expression: "ROUND(SUM(amount) / 4, 1)"}
          - {column: mean, expression: AVG(amount)}
    - seq: 90
      type: output
      selector: _operation_seq = 10
      arguments: {destination: {datasource_id: out, table: totals}, columns: [customer, amount, rest, quarter, mean]}
"""


def write_inputs(root: Path) -> None:
    """Six orders in two files; the last is of another month."""
    amounts = ["100.00", "30.50", "-5.00", "0.00", "7.25", "9.99"]
    rows = [
        {
            "id": f"A{n + 1}",
            "customer": f"C{n % 2 + 1}",
            "amount": Decimal(amount),
            "_period": "2026-01" if n < 5 else "2026-02",
        }
        for n, amount in enumerate(amounts)
    ]
    schema = pa.schema(
        {"id": pa.string(), "customer": pa.string(), "amount": pa.decimal128(15, 2), "_period": pa.string()}
    )
    for number, part in enumerate((rows[:2], rows[2:])):
        path = root / "lake" / "orders" / f"part-{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(part, schema=schema), path)
    (root / "texts").mkdir(exist_ok=True)
    (root / "texts" / "customers.csv").write_text("id,tier\nC1,gold\nC2,silver\n")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> tuple[Path, str]:
    """A workspace with a run that has published."""
    root = tmp_path_factory.mktemp("why")
    (root / "dobo.yaml").write_text(DEFINITIONS)
    write_inputs(root)
    workspace = dobo.open(root)
    view = workspace.run("net", period="2026-01", spark=spark, draft=True)
    assert view.status == "completed", view.problems
    second = workspace.run("twice", period="2026-01", spark=spark, draft=True)
    assert second.status == "completed", second.problems
    workspace.close()
    return root, view.id


@pytest.fixture
def run(ran: tuple[Path, str]) -> RunView:
    return dobo.open(ran[0]).find_run(ran[1])


def refused(call: Callable[[], object]) -> Problem:
    with pytest.raises(dobo.Rejected) as caught:
        call()
    return caught.value.problems[0]


def test_a_row_with_join_and_window(run: RunView) -> None:
    found = run.why("net", key={"id": "A1"})
    update = next(each for each in found.operations if each.seq == 10)
    assert {name: each.value for name, each in update.values.items()} == {"net": Decimal("90.00"), "place": 1}
    assert update.joins[0].row is not None
    assert (update.joins[0].row.place, update.joins[0].row.values["tier"]) == ("texts:customers.csv, row 1", "gold")
    assert isinstance(found.origin, StoredPlace)
    assert found.origin.place == "lake:orders/part-0.parquet, row 1"


def test_a_row_of_the_second_file_by_its_id(run: RunView) -> None:
    (row,) = [row for row in pq.read_table(data_of(run, "net")).to_pylist() if row["id"] == "A5"]
    found = run.why("net", row_id=row["_row_id"])
    assert isinstance(found.origin, StoredPlace)
    assert found.origin.place == "lake:orders/part-1.parquet, row 3"


def data_of(run: RunView, table: str) -> Path:
    """The file that an output wrote."""
    document: Any = run.outputs[table].location.document()
    return ROOT[0] / str(document["data"]) / str(document["files"][0])


ROOT: list[Path] = []
"""The workspace."""


@pytest.fixture(autouse=True)
def _root(ran: tuple[Path, str]) -> None:
    ROOT[:] = [ran[0]]


def test_a_summary_row(run: RunView) -> None:
    found = run.why("net", key={"customer": "C1", "_operation_seq": 20})
    assert isinstance(found.origin, Summary)
    assert (found.origin.rows, found.origin.totals["total"].value) == (3, Decimal("96.53"))
    assert [each.key["id"] for each in found.origin.contributors] == ["A1", "A5", "A3"]


def test_a_contributor_is_explained_up_to_the_total(run: RunView) -> None:
    total = {"customer": "C1", "_operation_seq": 20}
    found = run.why("net", key=total, column="total", contributor={"id": "A5"})
    assert found.contribution is not None
    assert (found.contribution.amounts, found.contribution.rows) == ({"total": Decimal("6.53")}, 3)
    shown = str(found)
    assert "total 6.53 of 96.53    id A5, one of 3 rows of customer C1, _operation_seq 20 of net" in shown
    assert "ROUND(6.525, 2)" in shown
    assert "texts:customers.csv, row 1" in shown
    assert "0   loaded from orders v1 (lake:orders/part-1.parquet, row 3)" in shown
    document: Any = found.to_dict()
    assert (document["amounts"], document["part_of"]["summary"]["rows"]) == ({"total": "6.53"}, 3)
    assert "one of 3 rows of" in found.to_html()
    for contributor, code in (({"id": "A2"}, "NOT_A_CONTRIBUTOR"), ({"i": "A1"}, "INVALID_KEY"), ({}, "SEVERAL_ROWS")):
        assert refused(lambda wanted=contributor: run.why("net", key=total, contributor=[wanted])).code == code  # type: ignore[misc]
    wrong = refused(lambda: run.why("net", key={"id": "A1"}, contributor={"id": "A1"}))
    assert (wrong.code, wrong.rows) == ("NOT_A_CONTRIBUTOR", None)  # type: ignore[attr-defined]


def test_a_summary_of_many_rows_whose_output_has_nothing_else(
    ran: tuple[Path, str], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what the output selects, its rows are summaries, though it does not write the number of the operation."""
    workspace = dobo.open(ran[0])
    run = workspace.run("totals", period="2026-01", spark=spark, draft=True)
    small = workspace.why(run.id, "totals", key={"customer": "C1"}, column="rest").origin
    monkeypatch.setattr("dobonomodo.why.loading.AT_MOST", 2)
    found = workspace.why(run.id, "totals", key={"customer": "C1"}, column="rest", spark=spark)
    assert isinstance(found.origin, Summary)
    assert (found.origin.rows, found.row["amount"]) == (3, Decimal("204.50"))
    # What its rows add to it is the same as with few rows.
    assert isinstance(small, Summary)
    assert found.origin.sums == small.sums == {"amount", "rest"}
    assert [each.amounts for each in found.origin.contributors] == [each.amounts for each in small.contributors]
    assert [each.reads for each in found.origin.contributors] == [each.reads for each in small.contributors]


def test_a_summary_of_many_rows_by_spark(
    ran: tuple[Path, str], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = {"customer": "C1", "_operation_seq": 20}
    workspace, told = dobo.open(ran[0]), list[str]()
    small = workspace.why(ran[1], "net", key=key)
    monkeypatch.setattr("dobonomodo.why.loading.AT_MOST", 2)
    large = workspace.why(ran[1], "net", key=key, spark=spark, contributors=2, report=told.append)
    assert isinstance(small.origin, Summary)
    assert isinstance(large.origin, Summary)
    assert len(told) == 1
    assert large.operations == small.operations
    assert (large.origin.key, large.origin.rows) == (small.origin.key, small.origin.rows)
    assert large.origin.totals["total"].value == small.origin.totals["total"].value
    shown = [(each.key, each.amounts) for each in small.origin.contributors[:2]]
    assert [(each.key, each.amounts) for each in large.origin.contributors] == shown
    # A window over as many rows is refused.
    assert refused(lambda: workspace.why(ran[1], "net", key={"id": "A1"})).code == "TOO_MANY_ROWS"


def test_a_deleted_row_in_a_list(run: RunView) -> None:
    found = run.why("list", key={"id": "A3"})
    assert [(each.seq, each.effect) for each in found.operations] == [
        (91, "selected"),
        (30, "deleted"),
        (10, "not selected"),
    ]


def test_every_row_of_every_output(run: RunView) -> None:
    rows = pq.read_table(data_of(run, "net")).to_pylist()
    assert len(rows) == 6
    for row in rows:
        assert run.why("net", row_id=row["_row_id"]).row["net"] == row["net"]
    with data_of(run, "list").open(newline="") as file:
        for line in csv.DictReader(file):
            run.why("list", key={"id": line["id"]})


def test_questions_without_an_answer(run: RunView) -> None:
    assert refused(lambda: run.why("net", key={"id": "A6"})).code == "ROW_NOT_FOUND"
    assert refused(lambda: run.why("net", key={"customer": "C1"})).code == "SEVERAL_ROWS"
    assert refused(lambda: run.why("nett", key={"id": "A1"})).code == "OUTPUT_NOT_FOUND"
    assert refused(lambda: run.why(key={"id": "A1"})).code == "OUTPUT_NOT_FOUND"
    assert refused(lambda: run.why("net", key={"amount": "x"})).code == "INVALID_KEY"
    assert refused(lambda: run.why("net", key={"id": "A1"}, column="nett")).code == "INVALID_KEY"


def test_rows_that_are_not_there(run: RunView) -> None:
    kinds = {key: run.why_not("net", key={"id": key}).reasons[0].kind for key in ("A1", "A3", "A6", "A7")}
    assert kinds == {"A1": "there", "A3": "deleted", "A6": "outside", "A7": "not in the input"}
    (reason,) = run.why_not("list", key={"id": "A4"}, column="net").reasons
    assert reason.text == "operation 10 did not set it: not selected"


def test_a_row_is_followed_into_the_run_that_wrote_it(ran: tuple[Path, str]) -> None:
    run = dobo.open(ran[0]).find_run("latest:twice")
    near = run.why(key={"id": "A1"})
    assert isinstance(near.origin, StoredPlace)
    assert near.origin.further is None
    far = run.why(key={"id": "A1"}, depth=5)
    assert isinstance(far.origin, StoredPlace)
    assert far.origin.further is not None
    assert (far.origin.further.run, far.origin.further.row["net"]) == (ran[1], Decimal("90.00"))
    assert "    | 0   loaded from orders v1 (lake:orders/part-0.parquet, row 1)" in str(far)


def test_exported_scenarios_pass(ran: tuple[Path, str], spark: SparkSession, tmp_path: Path) -> None:
    root, run_id = ran
    key = "customer=C1,_operation_seq=20"
    for name, more in {"row": ["id=A1"], "masked": ["id=A5", "--mask"], "sum": [key]}.items():
        file = tmp_path / f"{name}.yaml"
        command = ["-C", str(root), "why", run_id, "net", "--as-scenario", str(file), "--key", *more]
        assert run_command(command) == 0
    assert "A5" not in (tmp_path / "masked.yaml").read_text()
    found, problems = find_scenarios([tmp_path], root=tmp_path)
    assert (len(found), problems) == (3, [])
    for result in run_suite(found, lambda: spark, definitions=Definitions()):
        assert result.differences == ()


def test_an_edited_output_is_not_explained(run: RunView) -> None:
    path = data_of(run, "net")
    kept = path.read_bytes()
    table = pq.read_table(path)
    at = table["id"].to_pylist().index("A1")
    values = table["net"].to_pylist()
    values[at] = Decimal("91.00")
    column = table.schema.get_field_index("net")
    try:
        pq.write_table(table.set_column(column, table.schema.field("net"), pa.array(values, table["net"].type)), path)
        problem = refused(lambda: run.why("net", key={"id": "A1"}))
    finally:
        path.write_bytes(kept)
    assert (problem.code, problem.reason) == ("NOT_PROVED", "differs")  # type: ignore[attr-defined]
    assert problem.notes() == ("net: stored 91.00, computed 90.00",)


def test_a_changed_input_is_not_explained(run: RunView) -> None:
    path = ROOT[0] / "texts" / "customers.csv"
    kept, times = path.read_text(), path.stat()
    try:
        path.write_text("id,tier\nC1,silver\nC2,silver\n")
        assert refused(lambda: run.why("net", key={"id": "A1"})).code == "INPUT_CHANGED"
        # A row that was not selected needs no customer.
        assert run.why("list", key={"id": "A3"}).row["net"] is None
    finally:
        path.write_text(kept)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_the_command(ran: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    root, run_id = ran
    assert run_command(["-C", str(root), "why", run_id, "net", "--key", "id=A1", "--column", "net"]) == 0
    assert "proved: recomputed net equals the stored value" in capsys.readouterr().out
    assert run_command(["-C", str(root), "why", run_id, "net", "--key", "id=A1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["data"]["row"]["net"]) == ("dobo/why/1", "90.00")
    assert run_command(["-C", str(root), "why", run_id, "net", "--key", "id=A9"]) == 5
    assert run_command(["-C", str(root), "why-not", run_id, "net", "--key", "id=A3"]) == 0
    assert "deleted by operation 30" in capsys.readouterr().out
    assert run_command(["-C", str(root), "why", run_id, "net"]) == 2
    assert run_command(["-C", str(root), "why", run_id, "net", "--key", "A9"]) == 2


def test_the_command_says_how_to_go_on_from_a_total(
    ran: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, run_id = ran
    asked = ["-C", str(root), "why", run_id, "net", "--key", "customer=C1,_operation_seq=20"]
    assert run_command(asked) == 0
    said = capsys.readouterr()
    assert said.err.endswith("next: add --contributor id=A1 for what this row adds, and where it comes from\n")
    assert "A5" in said.out
    assert run_command([*asked, "--contributor", "id=A1"]) == 0
    assert "next:" not in capsys.readouterr().err
    # What a file has is not listed as well.
    monkeypatch.setattr("dobonomodo.cli.why.LISTED", 1)
    assert run_command([*asked, "--contributors", "all", "--csv", str(tmp_path / "rows.csv")]) == 0
    assert "the largest contributor:" in (out := capsys.readouterr().out)
    assert "A5" not in out
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 4


def test_files_of_the_command(ran: tuple[Path, str], tmp_path: Path) -> None:
    root, run_id = ran
    page, rows = tmp_path / "why.html", tmp_path / "rows.csv"
    more = ["--contributors", "all", "--csv", str(rows), "--html", str(page)]
    key = "customer=C1,_operation_seq=20"
    assert run_command(["-C", str(root), "why", run_id, "net", "--key", key, *more]) == 0
    assert page.read_text().startswith("<!doctype html>")
    listed = list(csv.DictReader(rows.read_text().splitlines()))
    assert [(each["id"], each["total"]) for each in listed] == [("A1", "90.00"), ("A5", "6.53"), ("A3", "")]
    assert run_command(["-C", str(root), "why", run_id, "net", "--key", "id=A1", "--csv", str(rows)]) == 2
    assert run_command(["-C", str(root), "why", run_id, "net", "--key", "id=A1", "--mask"]) == 2
