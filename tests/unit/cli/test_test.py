"""`dobo test` as far as it needs no Spark: scenarios with problems."""

from __future__ import annotations

from pathlib import Path

import pytest

from dobonomodo.cli.test import keep_rows
from dobonomodo.scenarios import Result
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


def test_each_failed_scenario_keeps_its_rows(tmp_path: Path) -> None:
    found = [
        Result("gold customers", "scenarios/a.yaml", ("differs",), actual={"out": [{"id": 1}]}),
        Result("silver/customers", "scenarios/a.yaml", ("differs",), actual={"out": [{"id": 2}]}),
        Result("gold: customers", "scenarios/more/a.yaml", ("differs",), actual={"out": [{"id": 3}]}),
        Result("x" * 1000, "scenarios/a.yaml", ("differs",), actual={"out": [{"id": 4}]}),
    ]
    taken: set[str] = set()
    kept = [keep_rows(each, tmp_path, taken) for each in found]
    assert [path.name for path in kept[:3]] == [
        "a-gold-customers.json",
        "a-silver-customers.json",
        "a-gold-customers-2.json",
    ]
    assert [f'"id": {number}' in path.read_text() for number, path in enumerate(kept, start=1)] == [True] * 4


@pytest.mark.parametrize("arguments", [("-k", "nothing"), ("nowhere",)], ids=["no such name", "no such file"])
def test_no_scenario_as_json(dobo: Dobo, sales: Path, arguments: tuple[str, ...]) -> None:
    assert dobo("test", "--json").document["ok"] is False  # there is no folder of scenarios
    (sales / "scenarios").mkdir()
    (sales / "scenarios" / "gold.yaml").write_text(SCENARIO)
    result = dobo("--json", "test", *arguments)
    assert (result.code, result.document["ok"], result.document["data"]) == (5, False, [])


def test_a_file_that_is_no_yaml_as_json(dobo: Dobo, sales: Path) -> None:
    (sales / "scenarios").mkdir()
    (sales / "scenarios" / "gold.yaml").write_text("scenario: [")
    result = dobo("test", "--json")
    assert (result.code, result.codes) == (1, ["YAML_SYNTAX"])
