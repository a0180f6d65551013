"""One project, run in every way that must not matter, gives one digest of its rows, row ids included."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dobonomodo.engine import adapt_session
from dobonomodo.engine.engine import SparkEngine
from dobonomodo.engine.reading import StoredRows
from dobonomodo.plan import DatasetUse
from dobonomodo.scenarios.values import take_rows
from tests.spark.monthly import run_monthly, write_inputs
from tests.world import JANUARY, OUT, Anywhere, define, plan_only_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

USUAL = {"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false"}

SETTINGS = [
    {"spark.sql.shuffle.partitions": "3"},
    {"spark.sql.shuffle.partitions": "8", "spark.sql.adaptive.enabled": "true"},
    {"spark.sql.autoBroadcastJoinThreshold": "-1"},
    {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"},
    {"spark.sql.files.maxPartitionBytes": "4096", "spark.sql.files.openCostInBytes": "0"},
]


@pytest.fixture(scope="module")
def inputs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """The same rows in the same order, in 1, 7 and 50 files."""
    return {number: write_inputs(tmp_path_factory.mktemp(f"in{number}"), files=number) for number in (1, 7, 50)}


@pytest.fixture(scope="module")
def expected(spark: SparkSession, inputs: dict[int, Path]) -> dict[str, str]:
    return run_monthly(spark, inputs[1])


@pytest.fixture
def other_settings(spark: SparkSession, request: pytest.FixtureRequest) -> SparkSession:
    session = spark.newSession()
    for name, value in {**USUAL, **request.param}.items():
        session.conf.set(name, value)
    for name in ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.variable.substitute"):
        session.conf.set(name, spark.conf.get(name))  # type: ignore[arg-type]
    return session


@pytest.mark.parametrize("other_settings", SETTINGS, indirect=True, ids=lambda each: "+".join(each))
def test_settings_do_not_matter(
    other_settings: SparkSession, inputs: dict[int, Path], expected: dict[str, str]
) -> None:
    assert run_monthly(other_settings, inputs[1]) == expected


@pytest.mark.parametrize("files", [7, 50])
def test_the_number_of_files_does_not_matter(
    spark: SparkSession, inputs: dict[int, Path], expected: dict[str, str], files: int
) -> None:
    """The place of a row is counted over all files (C-85)."""
    assert run_monthly(spark, inputs[files]) == expected


@pytest.mark.parametrize("files", [1, 7, 50])
def test_the_order_of_rows_matters_to_ids_alone(
    spark: SparkSession, tmp_path: Path, expected: dict[str, str], files: int
) -> None:
    found = run_monthly(spark, write_inputs(tmp_path, files=files, order=files + 1))
    same = {table for table, digest in found.items() if digest == expected[table]}
    assert same == {"values"}


@pytest.mark.parametrize(
    ("cores", "environment"),
    [
        ("1", {"PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo"}),
        ("2", {"PYTHONHASHSEED": "2", "TZ": "America/New_York", "LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"}),
        ("2", {"PYTHONHASHSEED": "3", "JAVA_TOOL_OPTIONS": "-Duser.language=tr -Duser.country=TR"}),
    ],
    ids=["one core in Tokyo", "two cores in New York, Turkish", "a Turkish Java"],
)
def test_machines_do_not_matter(
    inputs: dict[int, Path], expected: dict[str, str], cores: str, environment: dict[str, str]
) -> None:
    """In a process of its own, with the hash seed, time zone and locale of another machine."""
    command = [sys.executable, "-m", "tests.spark.monthly", cores, str(inputs[1])]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == expected


def test_a_session_that_is_handed_in_is_not_changed_and_does_not_matter(
    spark: SparkSession, inputs: dict[int, Path], expected: dict[str, str]
) -> None:
    theirs = spark.newSession()
    settings = {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "Asia/Tokyo"}
    for name, value in settings.items():
        theirs.conf.set(name, value)
    assert run_monthly(adapt_session(theirs), inputs[1]) == expected
    assert {name: theirs.conf.get(name) for name in settings} == settings
    assert adapt_session(spark) is spark


TIES = """\
dataset: {id: ties, main_table: {name: ties, columns: [{name: k, type: string}, {name: v, type: integer}]}}
---
project:
  id: numbered
  input_dataset_id: ties
  operations:
    - seq: 1
      type: update
      arguments:
        assignments:
          - {column: number, expression: ROW_NUMBER() OVER (ORDER BY k)}
          - {column: before, expression: LAG(v) OVER (PARTITION BY k ORDER BY k)}
    - {seq: 2, type: output, arguments: {destination: {datasource_id: out, table: numbered}, columns: [k, v, number, before]}}
"""


@dataclass(frozen=True)
class WithoutPositions:
    """Rows of which nobody knows the place in their source, in so many partitions."""

    spark: SparkSession
    partitions: int

    def read(self, use: DatasetUse) -> list[StoredRows]:
        values = ", ".join(f"('{'abc'[number % 3]}', {number * 7 % 60}L)" for number in range(60))
        return [StoredRows(self.spark.sql(f"SELECT * FROM VALUES {values} AS t(k, v)").repartition(self.partitions))]


def test_rows_without_positions_are_numbered_alike_in_any_partitions(spark: SparkSession) -> None:
    """Ties are broken by what is in the rows, where their place is not known."""
    plan = plan_only_project(define(OUT, TIES), resolution=Anywhere())

    def numbered(partitions: int) -> list[tuple[object, ...]]:
        reader = WithoutPositions(spark, partitions)
        rows: list[tuple[object, ...]] = []
        for output in SparkEngine(spark).outputs(plan, JANUARY, reader=reader):
            rows += [tuple(row.values()) for row in take_rows(output.frame, output.columns)]
            output.finish()
        return sorted(rows, key=str)

    first = numbered(1)
    assert len({row[2] for row in first}) == 60
    assert [row[3] for row in first].count(None) == 3
    assert numbered(4) == numbered(7) == first


def test_the_digest_would_notice(spark: SparkSession, inputs: dict[int, Path]) -> None:
    """A control: ids by chance give another digest every time."""
    digests = {_digest_with_chance(spark, inputs[1]) for _ in range(2)}
    assert len(digests) == 2


def _digest_with_chance(spark: SparkSession, folder: Path) -> str:
    from dobonomodo.engine.digest import digest_columns, hash_rows, render_digest

    frame = spark.read.parquet(str(folder / "orders")).selectExpr("*", "uuid() AS _row_id")
    hashed = frame.selectExpr(*(f"{sql} AS `{name}`" for name, sql in hash_rows(frame.columns).items()))
    row: Any = hashed.selectExpr(*(f"{sql} AS {name}" for name, sql in digest_columns().items())).first()
    return render_digest(row.asDict())
