"""Iceberg tables with Spark's own connector: what a list of files does not tell, and tables of either way read by the other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import INTEGER, TEXT
from dobonomodo.problems.run import DataLoad
from tests.contract.storages import Storage, failure, in_order, rows_of
from tests.contract.test_storages import SIMPLE, make_storage, rows
from tests.native.connectors import iceberg_catalog
from tests.native.whole_runs import digest_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.native

NAMED: dict[str, Type] = {"id": INTEGER, "title": TEXT}


CATALOG = "default"
"""Tables of a catalog in a database are known by the name of the catalog."""


@pytest.fixture
def session(tmp_path: Path, spark: SparkSession) -> SparkSession:
    """A session that knows the catalog of the datasource; one that has used a catalog keeps it."""
    own = spark.newSession()
    for key, value in iceberg_catalog(CATALOG, tmp_path / "catalog.db", tmp_path / "warehouse").items():
        own.conf.set(key, value)
    return own


@pytest.fixture
def iceberg(tmp_path: Path, session: SparkSession) -> Storage:
    return replace(make_storage("iceberg", tmp_path), session=lambda: session)


def test_what_a_list_of_files_does_not_tell(iceberg: Storage, session: SparkSession) -> None:
    iceberg.plant(SIMPLE, rows("a", "b", "c", None), "rich")
    iceberg.plant(NAMED, [{"id": 1, "title": "a"}, {"id": 3, "title": "c"}, {"id": 4, "title": None}], "plain")
    table = f"{CATALOG}.default.rich"
    session.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    session.sql(f"ALTER TABLE {table} RENAME COLUMN value TO title")
    refused = failure(lambda: replace(iceberg, session=None).extract(iceberg.use(NAMED, "rich"))).problem
    assert isinstance(refused, DataLoad)
    assert "renamed columns" in refused.detail
    assert "iceberg-spark-runtime" in (refused.remedy or "")
    session.sql(f"DELETE FROM {table} WHERE id = 2")
    refused = failure(lambda: replace(iceberg, session=None).extract(iceberg.use(NAMED, "rich"))).problem
    assert isinstance(refused, DataLoad)
    assert "delete files" in refused.detail

    use, inputs = iceberg.use(NAMED, "rich"), iceberg.inputs()
    pinned = inputs.pin([use])
    session.sql(f"INSERT INTO {table} VALUES (5, 'later')")
    (found,) = inputs.read(session, use, inputs.extract([use], pinned)[use.key])
    expected = [{"id": 1, "title": "a"}, {"id": 3, "title": "c"}, {"id": 4, "title": None}]
    assert in_order(rows_of(found.frame, NAMED)) == expected
    assert inputs.count([use], pinned) == 3

    session.sql(f"DELETE FROM {table} WHERE id = 5")
    source = 'datasource: {id: ice, type: iceberg, options: {uri: "sqlite:///catalog.db", warehouse: warehouse}}'
    strategy = "{type: table, datasource_id: ice, table: %s}"
    rich, plain = (digest_of(iceberg.root, session, source, strategy % each) for each in ("rich", "plain"))
    assert rich == plain


def test_columns_that_files_have_and_the_table_has_not(iceberg: Storage, session: SparkSession) -> None:
    """One that was dropped is not read; one that was dropped and made again is empty in rows from before."""
    iceberg.plant(SIMPLE, rows("a", "b"))
    table = f"{CATALOG}.default.out"
    session.sql(f"ALTER TABLE {table} DROP COLUMN value")
    assert iceberg.get(session, {"id": INTEGER}) == [{"id": 1}, {"id": 2}]
    session.sql(f"ALTER TABLE {table} ADD COLUMN value STRING")
    session.sql(f"INSERT INTO {table} VALUES (3, 'c')")
    assert iceberg.get(session, SIMPLE) == [*rows(None, None), {"id": 3, "value": "c"}]


def test_each_way_reads_what_the_other_wrote(iceberg: Storage, session: SparkSession) -> None:
    iceberg.put(rows("a", "b"), SIMPLE, period="2026-01")
    ours = session.table(f"{CATALOG}.default.out")
    assert in_order(row.asDict() for row in ours.collect()) == [
        {**row, "_run_period": "2026-01"} for row in rows("a", "b")
    ]
    ours.select("id", "value").writeTo(f"{CATALOG}.default.theirs").create()
    assert replace(iceberg, session=None).get(session, SIMPLE, "theirs") == rows("a", "b")
