"""`dobo test` as far as it needs no Spark: scenarios with problems."""

from __future__ import annotations

from pathlib import Path

from tests.unit.cli.conftest import Dobo

SCENARIO = """\
scenario:
  name: gold customers
  period: {identifier: "2026-01", start_date: 2026-01-01, end_date: 2026-01-31}
  datasets:
    - dataset: {id: orders, main_table: {name: orders, columns: [{name: id, type: string}]}}
      rowz: []
  project:
    input_dataset_id: orders
    operations: [{seq: 20, type: output, arguments: {destination: {type: parquet, path: result}}}]
  expect: {outputs: {result: {rows: []}}}
"""


def test_a_scenario_with_problems_shows_their_places_and_suggestions(dobo: Dobo, sales: Path) -> None:
    (sales / "scenarios").mkdir()
    (sales / "scenarios" / "gold.yaml").write_text(SCENARIO)
    result = dobo("test")
    assert result.code == 1
    lines = result.out.splitlines()
    assert lines[0] == "FAILED  scenarios/gold.yaml: gold customers"
    assert "scenarios/gold.yaml:6:" in result.out
    assert "^" in result.out
    assert "did you mean `rows`?" in result.out
    assert lines[-1] == "0 passed, 1 failed"


def test_its_problems_as_json(dobo: Dobo, sales: Path) -> None:
    (sales / "scenarios").mkdir()
    (sales / "scenarios" / "gold.yaml").write_text(SCENARIO)
    result = dobo("test", "--json")
    assert (result.code, result.document["ok"]) == (1, False)
    (found,) = result.document["data"]
    assert "UNKNOWN_KEY" in found["differences"][0]
    assert "UNKNOWN_KEY" in result.codes
