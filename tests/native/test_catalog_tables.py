"""Tables that Spark knows by the name of a catalog: whole runs, what was pinned, what is refused, what a kill leaves."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import DATE, INTEGER, TEXT, DecimalType
from dobonomodo.problems import RunFailed
from dobonomodo.problems.run import DataLoad, OutputWrite
from dobonomodo.storage import WrittenOutput, catalog_target, load_pin
from dobonomodo.storage.kept import KeptInputs
from tests.contract.storages import SEQ, Storage, arrow_table, catalog_name, failure, fault_of, publish
from tests.contract.test_storages import CATALOGS, SIMPLE, make_storage, rows
from tests.native.whole_runs import run_copy
from tests.world import PERIOD, Folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.native


@pytest.fixture(params=[each.values[0] for each in CATALOGS])
def catalog(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> Storage:
    return make_storage(request.param, tmp_path / "some folder", spark=lambda: spark)


@pytest.fixture
def delta(tmp_path: Path, spark: SparkSession) -> Storage:
    return make_storage("table of delta", tmp_path, spark=lambda: spark)


def columns_of(storage: Storage, columns: dict[str, Type]) -> WrittenOutput:
    return WrittenOutput(SEQ, storage.write(columns), columns)


def test_a_whole_run_reads_and_writes_tables_and_is_replayed(catalog: Storage, spark: SparkSession) -> None:
    named: dict[str, Type] = {"id": INTEGER, "title": TEXT}
    catalog.plant(named, [{"id": 1, "title": "a"}, {"id": 2, "title": None}], "lines")
    options = dict(catalog.source.options)
    source = f"datasource: {{id: hub, type: table, options: {options}}}"
    strategy = "{type: table, datasource_id: hub, table: lines}"
    plain = run_copy(catalog.root, spark, source, strategy)
    run = run_copy(catalog.root, spark, source, strategy, to=("hub", "gold"))
    assert run.status == "completed", run.problems
    assert run.outputs["gold"].digest == plain.outputs["out"].digest
    found = spark.table(catalog_name(catalog, "gold")).orderBy("id").collect()
    assert [(row["id"], row["double"], row["_run_period"]) for row in found] == [(1, 2, PERIOD), (2, 4, PERIOD)]

    spark.sql(f"DELETE FROM {catalog_name(catalog, 'lines')} WHERE id = 1")
    with closing(Folder(catalog.root).open()) as workspace:
        # The table has moved on: a replay reads the version that was pinned.
        assert workspace.verify(run.id, replay=True, spark=spark)[1] == ()
        assert workspace.verify(run.id, spark=spark)[1] == ()


def test_a_pinned_version_is_read_when_the_table_has_moved_on(catalog: Storage, spark: SparkSession) -> None:
    catalog.plant(SIMPLE, rows("a", "b"), "lines")
    use, inputs = catalog.use(SIMPLE, "lines"), catalog.inputs()
    pinned = inputs.pin([use])
    spark.sql(f"INSERT INTO {catalog_name(catalog, 'lines')} VALUES (9, 'later')")
    pinned = {use.key: tuple(load_pin(dict(pin.document())) for pin in pinned[use.key])}
    assert inputs.find_changes(pinned, listing=True) == ()
    (found,) = inputs.read(spark, use, inputs.extract([use], pinned)[use.key])
    assert sorted(row["value"] for row in found.frame.collect()) == ["a", "b"]
    assert not found.has_positions
    refused = failure(lambda: replace(catalog, session=None).extract(use)).problem
    assert isinstance(refused, DataLoad)
    assert "Spark is not started" in refused.detail


def test_a_version_whose_files_are_gone_is_a_change(catalog: Storage, spark: SparkSession) -> None:
    catalog.plant(SIMPLE, rows("a"), "lines")
    inputs, use = catalog.inputs(), catalog.use(SIMPLE, "lines")
    pinned = inputs.pin([use])
    # As VACUUM and the expiry of snapshots do: the log still has the version.
    for (file,) in spark.table(catalog_name(catalog, "lines")).selectExpr("input_file_name()").collect():
        Path(urlparse(file).path).unlink()
    spark.sql(f"INSERT OVERWRITE {catalog_name(catalog, 'lines')} VALUES (2, 'b')")
    (change,) = inputs.find_changes(pinned, listing=False)
    assert "VACUUM, the expiry of snapshots" in change


@pytest.mark.parametrize("made", ["TABLE {} USING parquet", "VIEW {}"])
def test_what_has_no_versions_is_copied_when_it_is_read_and_never_written(
    delta: Storage, spark: SparkSession, made: str
) -> None:
    name = catalog_name(delta, "lines")
    spark.sql(f"CREATE {made.format(name)} AS SELECT id, CAST(id AS STRING) AS value FROM range(1, 3)")
    use, inputs, kept = delta.use(SIMPLE, "lines"), delta.inputs("first"), KeptInputs.of(delta.root)
    pinned = inputs.extract([use], inputs.pin([use]))
    hashes = inputs.keep([use], pinned, kept)
    spark.sql(f"DROP {made.split()[0]} {name}")
    again = inputs.extract([use], pinned)
    assert again == pinned
    (found,) = inputs.read(spark, use, again[use.key])
    assert sorted(row["value"] for row in found.frame.collect()) == ["1", "2"]
    assert inputs.count([use], again) == 2
    later = delta.inputs("later")
    restored = later.restore([use], pinned, hashes, kept)
    assert len(restored.used) == 1
    assert later.extract([use], restored.pinned) == pinned
    lost = fault_of(lambda: delta.inputs("without").extract([use], pinned))
    assert "no versions" in lost.detail
    spark.sql(f"CREATE {made.format(name)} AS SELECT 1L AS id")
    refused = fault_of(lambda: delta.outputs().check(WrittenOutput(SEQ, delta.write(SIMPLE, table="lines"), SIMPLE)))
    assert (refused.code, "versions" in refused.detail) == ("OUTPUT_WRITE", True)


def test_what_cannot_be_written_is_refused_before_anything_is_computed(catalog: Storage, spark: SparkSession) -> None:
    check = catalog.outputs().check
    catalog.plant(SIMPLE, rows("a"), "theirs")
    foreign = failure(lambda: check(WrittenOutput(SEQ, catalog.write(SIMPLE, table="theirs"), SIMPLE))).problem
    assert isinstance(foreign, OutputWrite)
    assert "`_run_period`" in foreign.detail
    if catalog.source.options["catalog"] == "spark_catalog":
        odd = WrittenOutput(SEQ, catalog.write(SIMPLE, table="no-name"), SIMPLE)
        assert "letters, digits" in fault_of(lambda: check(odd)).detail
    elsewhere = catalog.with_options(schema="nowhere_at_all")
    assert fault_of(lambda: elsewhere.outputs().check(columns_of(elsewhere, SIMPLE))).code == "OUTPUT_WRITE"
    catalog.put([{"id": 1, "n": 1}], {"id": INTEGER, "n": DecimalType(5, 2)})
    wider: dict[str, Type] = {"id": INTEGER, "n": DecimalType(9, 4)}
    assert "`n`" in fault_of(lambda: check(columns_of(catalog, wider))).detail
    more: dict[str, Type] = {"id": INTEGER, "n": DecimalType(5, 2), "day": DATE}
    check(columns_of(catalog, more))


@pytest.mark.parametrize("place", ["publish.during", "publish.before"])
def test_a_commit_that_was_overtaken_is_not_made(catalog: Storage, place: str, tmp_path: Path) -> None:
    """It has looked at the fencing number, and waits just before its commit."""
    from dobonomodo import failpoint

    catalog.put(rows("old"), SIMPLE, run="run-0")
    output = columns_of(catalog, SIMPLE)

    def put(value: str, fence: int) -> None:
        outputs = catalog.outputs(run=f"run-{value}", fence=fence)
        staged = catalog.stage_by_hand(outputs, arrow_table(SIMPLE, rows(value)), output)
        outputs.claim([output])
        publish(outputs, output, staged, rows=1, digest=value)

    codes: list[str] = []
    go = tmp_path / "go"
    late = threading.Thread(target=lambda: codes.append(fault_of(partial(put, "late", 2)).code))
    failpoint._reached.clear()
    # A claim is a commit too: the second one is the publication.
    number = 2 if place == "publish.during" else 1
    os.environ[failpoint.VARIABLE] = f"{place}:{number}@{go}"
    try:
        late.start()
        while late.is_alive() and not Path(f"{go}.waiting").exists():
            late.join(0.01)
        put("next", 3)
    finally:
        go.touch()
        late.join()
        del os.environ[failpoint.VARIABLE]
    assert codes == ["LEASE_LOST"]
    assert catalog.see(SIMPLE) == rows("next")


def test_runs_of_several_periods_meet_in_a_table_that_they_make(catalog: Storage, spark: SparkSession) -> None:
    """Each makes the table, claims its key, adds a column of its own and replaces its period, all at the same moment."""
    periods = ["2026-01", "2026-02", "2026-03"]

    def put(period: str) -> None:
        columns: dict[str, Type] = {"id": INTEGER, "value": TEXT, f"of_{period[-2:]}": INTEGER}
        outputs = catalog.outputs(run=f"run-{period}", period=period)
        output = columns_of(catalog, columns)
        row = {"id": int(period[-2:]), "value": period, f"of_{period[-2:]}": 1}
        staged = catalog.stage_by_hand(outputs, arrow_table(columns, [row]), output)
        outputs.claim([output])
        publish(outputs, output, staged, rows=1, digest=period)

    assert at_once([partial(put, each) for each in periods]) == []
    found = spark.table(catalog_name(catalog)).orderBy("id").collect()
    assert [(row["value"], row["_run_period"], row["of_01"], row["of_02"], row["of_03"]) for row in found] == [
        ("2026-01", "2026-01", 1, None, None),
        ("2026-02", "2026-02", None, 1, None),
        ("2026-03", "2026-03", None, None, 1),
    ]


def test_of_claims_at_the_same_moment_the_latest_stays(catalog: Storage) -> None:
    output = columns_of(catalog, SIMPLE)

    def claim(fence: int) -> None:
        catalog.outputs(run=f"run-{fence}", fence=fence).claim([output])

    faults = at_once([partial(claim, fence) for fence in (1, 2, 3)])
    assert {each.problem.code for each in faults if isinstance(each, RunFailed)} <= {"LEASE_LOST"}
    assert all(isinstance(each, RunFailed) for each in faults)
    claim(3)
    for late in (1, 2):
        assert fault_of(partial(claim, late)).code == "LEASE_LOST"


def test_a_folder_of_somebody_else_in_the_place_of_a_table_is_refused(
    delta: Storage, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run that is about to make the table leaves the same trace for a moment, so it is waited for."""
    monkeypatch.setattr(catalog_target, "_PATIENCE_SECONDS", 1)
    told = spark.sql(f"DESCRIBE SCHEMA {catalog_name(delta).rpartition('.')[0]}").collect()
    (place,) = (Path(urlparse(row[1]).path) for row in told if row[0] == "Location")
    (place / "out").mkdir(parents=True)
    (place / "out" / "theirs.txt").write_text("precious")
    refused = fault_of(lambda: delta.put(rows("a"), SIMPLE))
    assert (refused.code, "not empty" in refused.detail) == ("OUTPUT_WRITE", True)
    assert [path.name for path in (place / "out").iterdir()] == ["theirs.txt"]


def at_once(calls: Sequence[Callable[[], None]]) -> list[BaseException]:
    """What calls end with that begin at the same moment, of those that do not succeed."""
    faults: list[BaseException] = []
    start = threading.Barrier(len(calls))

    def follow(call: Callable[[], None]) -> None:
        try:
            start.wait()
            call()
        except BaseException as fault:  # noqa: BLE001  it is raised where it is seen
            faults.append(fault)

    threads = [threading.Thread(target=follow, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return faults


def test_branches_of_killed_runs_are_leftovers(tmp_path: Path, spark: SparkSession) -> None:
    iceberg = make_storage("table of iceberg", tmp_path, spark=lambda: spark)
    iceberg.put(rows("a"), SIMPLE)
    name = catalog_name(iceberg)
    for branch in ("dobo-run-1-10-1", "dobo-run-1-10-9", "dobo-run-2-10-1", "theirs"):
        spark.sql(f"ALTER TABLE {name} CREATE BRANCH `{branch}`")
    (left,) = iceberg.outputs(fence=3).find_leftovers(columns_of(iceberg, SIMPLE))
    assert left.place.endswith(" dobo-run-1-10-1")
    left.remove()
    assert iceberg.outputs(fence=3).find_leftovers(columns_of(iceberg, SIMPLE)) == []
