"""Row ids of rows whose reader knows no positions: by natural key, which must be unique, or by all that is in a row (C-85)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from dobonomodo.engine.engine import SparkEngine
from dobonomodo.engine.reading import StoredRows
from dobonomodo.plan import DatasetUse
from dobonomodo.problems import RunFailed
from tests.world import JANUARY, OUT, Anywhere, define, plan_only_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFINITIONS = """
dataset:
  id: lines
  {key}
  main_table:
    name: lines
    columns: [{{name: a, type: integer}}, {{name: count, type: string}}]
---
project:
  id: ids
  input_dataset_id: lines
  operations:
    {append}
    - {{seq: 2, type: output, arguments: {{destination: {{datasource_id: out, table: ids}}, columns: [{columns}]}}}}
"""
APPEND = "- {seq: 1, type: append, arguments: {source: {dataset_id: lines}}}"

Row = tuple[int | None, str | None, str]
"""Both columns, and `_labels`, which is stored beside them."""


@dataclass
class Lines:
    """Rows in several places, without positions; keeps what is written."""

    spark: SparkSession
    places: Sequence[Sequence[Row]]
    partitions: int = 1
    written: list[dict[str, Any]] = field(default_factory=list)

    def run(
        self, *, key: str = "", columns: str = "a, count, _row_id, _operation_seq", append: str = APPEND
    ) -> list[dict[str, Any]]:
        given = f"natural_key_columns: [{key}]" if key else ""
        text = DEFINITIONS.format(key=given, columns=columns, append=append)
        plan = plan_only_project(define(OUT, text), resolution=Anywhere())
        for output in SparkEngine(self.spark).outputs(plan, JANUARY, reader=self):
            with output.explained():
                self.written += [row.asDict() for row in output.frame.collect()]
                output.finish()
        return self.written

    def read(self, use: DatasetUse) -> list[StoredRows]:
        schema = "a BIGINT, count STRING, _labels STRING"
        frames = [self.spark.createDataFrame(list(rows), schema) for rows in self.places]
        return [StoredRows(frame.repartition(self.partitions)) for frame in frames]


def test_rows_without_a_key_are_told_apart_by_all_that_is_in_them(spark: SparkSession) -> None:
    """Equal rows by their ordinal, rows that differ in a stored system column alone too; partitions do not matter."""
    rows: list[Row] = [(1, "x", ""), (1, "x", ""), (1, "x", "{l:1}"), (None, "x", ""), (None, None, ""), (1, None, "")]
    found = Lines(spark, [rows, rows[:3]]).run()
    assert len(found) == 18
    assert len({row["_row_id"] for row in found}) == 18
    again = Lines(spark, [rows[:3], rows[::-1]], partitions=5).run()
    assert sorted(map(repr, again)) == sorted(map(repr, found))


def test_a_natural_key_gives_ids_where_it_is_unique(spark: SparkSession) -> None:
    rows: list[Row] = [(1, "x", ""), (1, "y", ""), (None, "x", ""), (1, None, ""), (None, None, "")]
    found = Lines(spark, [rows[:2], rows[2:]]).run(key="a, count")
    assert len({row["_row_id"] for row in found}) == 10
    other: list[Row] = [(a, count, "{other:1}") for a, count, _ in rows]
    assert sorted(map(repr, Lines(spark, [other], partitions=3).run(key="a, count"))) == sorted(map(repr, found))


def test_a_natural_key_that_is_not_unique_fails_the_run(spark: SparkSession) -> None:
    """Over all locations, NULL being a key like any other; at most ten are named."""
    places: list[list[Row]] = [[(at, "x", "") for at in range(20)], [(at, "x", "") for at in range(5, 20)]]
    with pytest.raises(RunFailed) as failed:
        Lines(spark, places).run(key="a, count", append="")
    problem = failed.value.problem
    assert (problem.code, problem.dataset_id, len(problem.differences)) == ("DATA_LOAD", "lines", 10)  # type: ignore[attr-defined]
    with pytest.raises(RunFailed) as failed:
        Lines(spark, [[(None, "x", ""), (None, "y", ""), (3, "x", "")]]).run(key="a", append="")
    assert failed.value.problem.differences == ("a = NULL (2 rows)",)  # type: ignore[attr-defined]


def test_nothing_is_asked_of_a_natural_key_where_nobody_asks_for_ids(spark: SparkSession) -> None:
    found = Lines(spark, [[(1, "x", ""), (1, "x", "")]]).run(key="a", columns="a, count")
    assert [row["a"] for row in found] == [1, 1, 1, 1]
