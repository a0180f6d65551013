"""Delta tables with Spark's own connector: features that a list of files does not tell, and tables of either way read by the other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import INTEGER, TEXT
from dobonomodo.problems.run import DataLoad
from dobonomodo.storage import load_pin
from dobonomodo.storage.rows import ROW_NUMBER
from tests.contract.storages import Storage, failure, in_order, rows_of
from tests.contract.test_storages import SIMPLE, make_storage, rows
from tests.native.whole_runs import digest_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.native

NAMED: dict[str, Type] = {"id": INTEGER, "title": TEXT}


@pytest.fixture
def delta(tmp_path: Path, spark: SparkSession) -> Storage:
    return replace(make_storage("delta", tmp_path / "some folder"), session=lambda: spark)


def make_rich(storage: Storage, spark: SparkSession, name: str = "out") -> str:
    """A table with a column that was renamed and rows that are deleted in their files: 1 to 4, without 2."""
    table = f"delta.`{storage.folder / name}`"
    features = "'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name'"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, value STRING) USING delta TBLPROPERTIES ({features})")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, NULL)")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN value TO title")
    spark.sql(f"DELETE FROM {table} WHERE id = 2")
    return table


def test_what_a_list_of_files_does_not_tell(delta: Storage, spark: SparkSession) -> None:
    table = make_rich(delta, spark)
    expected = [{"id": 1, "title": "a"}, {"id": 3, "title": "c"}, {"id": 4, "title": None}]

    refused = failure(lambda: replace(delta, session=None).extract(delta.use(NAMED))).problem
    assert isinstance(refused, DataLoad)
    assert "`columnMapping`" in refused.detail
    assert "io.delta:delta-spark" in (refused.remedy or "")

    use, inputs = delta.use(NAMED), delta.inputs()
    pinned = inputs.pin([use])
    spark.sql(f"INSERT INTO {table} VALUES (5, 'later')")
    # As a resumed run finds it: the pin comes from its record, the table has moved on.
    pinned = {use.key: tuple(load_pin(dict(pin.document())) for pin in pinned[use.key])}
    assert inputs.find_changes(pinned, listing=True) == ()
    (found,) = inputs.read(spark, use, inputs.extract([use], pinned)[use.key])
    assert in_order(rows_of(found.frame, NAMED)) == expected
    assert not found.has_positions
    assert ROW_NUMBER not in found.frame.columns
    assert inputs.count([use], pinned) == 3
    assert inputs.keep([use], pinned, None) == {use.key: ((),)}
    assert {path.suffix for paths in inputs.files(use, pinned[use.key]) for path in paths} == {".parquet"}

    problem = failure(lambda: delta.extract(delta.use(NAMED, required=["title"]))).problem
    assert isinstance(problem, DataLoad)
    assert (problem.counts, [cell.column for cell in problem.cells]) == ((("title", 1),), ["title"])
    unknown = failure(lambda: delta.extract(delta.use({**NAMED, "value": TEXT}))).problem
    assert isinstance(unknown, DataLoad)
    assert unknown.differences

    for path in (delta.folder / "out").rglob("*.parquet"):
        path.unlink()
    assert all("VACUUM" in each for each in inputs.find_changes(pinned, listing=False))
    assert inputs.restore([use], pinned, {use.key: ((),)}, None).changes  # type: ignore[arg-type]


def test_each_way_reads_what_the_other_wrote(delta: Storage, spark: SparkSession) -> None:
    delta.put(rows("a", "b"), SIMPLE, period="2026-01", spark=spark)
    delta.put(rows("c", start=3), SIMPLE, run="run-2", period="FY 26/Q1 ü%", spark=spark)
    ours = spark.read.format("delta").load(str(delta.folder / "out"))
    assert in_order(row.asDict() for row in ours.collect()) == [
        {"id": 1, "value": "a", "_run_period": "2026-01"},
        {"id": 2, "value": "b", "_run_period": "2026-01"},
        {"id": 3, "value": "c", "_run_period": "FY 26/Q1 ü%"},
    ]
    ours.select("value", "id").write.format("delta").partitionBy("value").save(str(delta.folder / "theirs"))
    assert replace(delta, session=None).get(spark, SIMPLE, "theirs") == rows("a", "b", "c")


def test_both_ways_give_the_same_digest(tmp_path: Path, spark: SparkSession) -> None:
    storage = make_storage("delta", tmp_path)
    make_rich(storage, spark, "rich")
    plain = spark.createDataFrame([(1, "a"), (3, "c"), (4, None)], "id BIGINT, title STRING")
    plain.write.format("delta").save(str(storage.folder / "plain"))
    source = "datasource: {id: lake, type: delta, options: {path_prefix: data}}"
    location = "{type: path, datasource_id: lake, path: %s}"
    assert digest_of(tmp_path, spark, source, location % "rich") == digest_of(
        tmp_path, spark, source, location % "plain"
    )
