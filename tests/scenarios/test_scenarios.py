"""Every scenario of this folder on classic Spark, and some or all of them over Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dobonomodo.model import Definitions
from dobonomodo.scenarios import find_scenarios, run_suite

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.scenarios.suite import Found

FOLDER = Path(__file__).parent
FOUND, PROBLEMS = find_scenarios([FOLDER], root=FOLDER)
FIRST_OF_EACH_FILE = list({found.file: found for found in reversed(FOUND)}.values())
OVER_CONNECT = FOUND if os.environ.get("DOBO_TEST_ALL") else FIRST_OF_EACH_FILE


def test_every_file_is_sound() -> None:
    assert PROBLEMS == []
    assert len(FOUND) > 100


def test_names_are_unique() -> None:
    names = [found.name for found in FOUND]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("found", FOUND, ids=lambda found: f"{found.file}: {found.name}")
def test_scenario(found: Found, spark: SparkSession) -> None:
    (result,) = run_suite([found], lambda: spark, definitions=Definitions())
    assert result.differences == ()


def test_some_at_a_time_in_their_order(spark: SparkSession) -> None:
    results = list(run_suite(FIRST_OF_EACH_FILE, lambda: spark, definitions=Definitions()))
    assert [(each.name, each.differences) for each in results] == [(found.name, ()) for found in FIRST_OF_EACH_FILE]


WRONG = """\
scenario:
  name: {name}
  datasets: [{{dataset: {{id: a, main_table: {{name: a, columns: [{{name: x, type: integer}}]}}}}, rows: [{{x: 1}}]}}]
  project:
    input_dataset_id: a
    operations: [{{seq: 1, type: output, arguments: {{destination: {{datasource_id: lake, table: t}}, columns: [x]}}}}]
  period: {{identifier: "2026-01", start_date: 2026-01-01, end_date: 2026-01-31}}
  expect: {{outputs: {{t: {{columns: [x], rows: [{{x: {found}}}]}}}}}}
"""


def test_the_first_that_fails_is_the_last_if_wanted(spark: SparkSession, tmp_path: Path) -> None:
    wanted = {"one": 1, "two": 2, "three": 1, "four": 3}
    text = "---\n".join(WRONG.format(name=name, found=found) for name, found in wanted.items())
    (tmp_path / "some.yaml").write_text(text, encoding="utf-8")
    found, problems = find_scenarios([tmp_path], root=tmp_path)
    assert problems == []
    every = list(run_suite(found, lambda: spark, definitions=Definitions()))
    assert [(each.name, each.passed) for each in every] == [
        ("one", True), ("two", False), ("three", True), ("four", False)
    ]  # fmt: skip
    some = list(run_suite(found, lambda: spark, definitions=Definitions(), stop_at_first=True))
    assert [(each.name, each.passed) for each in some] == [("one", True), ("two", False)]


@pytest.mark.parametrize("stop", [False, True])
def test_spark_is_not_started_if_no_scenario_is_sound(tmp_path: Path, *, stop: bool) -> None:
    (tmp_path / "some.yaml").write_text("scenario: {name: a, rows: 1}\n---\nscenario: {name: b, rows: 1}\n")
    found, _ = find_scenarios([tmp_path], root=tmp_path)

    def spark() -> SparkSession:
        raise AssertionError("started")

    results = list(run_suite(found, spark, definitions=Definitions(), stop_at_first=stop))
    assert [each.name for each in results] == (["a"] if stop else ["a", "b"])
    assert all("the scenario is invalid" in line for each in results for line in each.differences[:1])


def test_over_connect(connect_url: str) -> None:
    """In a process of its own: PySpark cannot be a classic and a Connect client in one."""
    names = [found.name for found in OVER_CONNECT]
    command = [sys.executable, str(FOLDER / "over_connect.py"), connect_url]
    done = subprocess.run(command, input=json.dumps(names), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    results = json.loads(done.stdout.splitlines()[-1])
    assert {name: lines for name, lines in results.items() if lines} == {}
    assert sorted(results) == sorted(names)
