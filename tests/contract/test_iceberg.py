"""Iceberg tables: those of others are read by their snapshots, those of runs are tables like any other."""

from __future__ import annotations

import json
import threading
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import DataFileContent, FileFormat, write_manifest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import IdentityTransform

from dobonomodo.formula import Type
from dobonomodo.formula.types import DATE, INTEGER, TEXT, DecimalType
from dobonomodo.problems.run import DataLoad, OutputWrite
from dobonomodo.storage import Storages, WrittenOutput, load_stored
from dobonomodo.storage.iceberg_target import load_table
from dobonomodo.storage.table_files import TableFilesPin
from dobonomodo.storage.target import Inspected, Noted
from tests.contract.lake_tables import (
    check_column_of_run_periods_that_comes_later,
    check_columns_of_rows_that_stay,
    check_nothing_is_published_upon_what_nobody_looked_at,
    check_replaced_by_nothing,
    check_replaced_fenced_and_found,
    check_staged_files_that_are_not_as_they_should_be,
)
from tests.contract.storages import (
    SEQ,
    Storage,
    arrow_table,
    failure,
    in_order,
    open_catalog,
    open_source,
    publish,
    rows_of,
)
from tests.contract.test_storages import CATALOG, SIMPLE, database, make_storage, rows
from tests.object_server import KEY, SECRET, ObjectServer
from tests.postgresql import PASSWORD
from tests.world import PERIOD

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession


__all__ = ["database"]


@pytest.fixture
def iceberg(tmp_path: Path) -> Storage:
    return make_storage("iceberg", tmp_path)


@pytest.fixture(params=["iceberg", "iceberg in S3"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return make_storage(request.param, tmp_path, None, lambda: request.getfixturevalue("object_server"))


def load(storage: Storage, name: str = "out") -> Table:
    return open_catalog(storage).load_table(("default", name))


REGIONS: dict[str, Type] = {"id": INTEGER, "region": TEXT, "day": DATE, "rate": DecimalType(5, 2)}
PLANTED = [
    {"id": at, "region": region, "day": date(2026, 1, at), "rate": Decimal("1.50")}
    for at, region in enumerate(["a b", "ü/%", None, "a b"], 1)
]


def plant_parted(storage: Storage) -> Table:
    """A table of somebody else that is partitioned by region and day."""
    table = arrow_table(REGIONS, PLANTED)
    storage.plant(REGIONS, [], "schema")
    schema = load(storage, "schema").schema()
    fields = [
        PartitionField(number, 1000 + number, IdentityTransform(), name) for number, name in ((2, "region"), (3, "day"))
    ]
    made = open_catalog(storage).create_table(("default", "out"), schema, partition_spec=PartitionSpec(*fields))
    made.append(table)
    return made


def list_file_again(table: Table, changed: dict[int, object]) -> None:
    """Have the only file of a table listed a second time, with other fields, as another tool may list a file of its own."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    (manifest,) = snapshot.manifests(table.io)
    (entry,) = manifest.fetch_manifest_entry(table.io)
    (again,) = manifest.fetch_manifest_entry(table.io)
    for at, value in changed.items():
        again.data_file[at] = value
    file = table.io.new_output(manifest.manifest_path)
    with write_manifest(2, table.spec(), table.schema(), file, snapshot.snapshot_id, "deflate") as writer:
        writer.add_entry(entry)
        writer.add_entry(again)


class TestForeignTables:
    def test_a_run_reads_the_snapshot_that_it_pinned(self, iceberg: Storage, spark: SparkSession) -> None:
        made = plant_parted(iceberg)
        use, inputs = iceberg.use(REGIONS), iceberg.inputs()
        pinned = inputs.pin([use])
        made.overwrite(arrow_table(REGIONS, [{"id": 9}]))
        assert inputs.find_changes(pinned, listing=True) == ()
        (found,) = inputs.read(spark, use, inputs.extract([use], pinned)[use.key])
        assert in_order(rows_of(found.frame, REGIONS)) == PLANTED
        (file, *_) = [Path(each.path) for each in pinned[use.key][0].files]  # type: ignore[attr-defined]
        file.unlink()
        (change,) = inputs.find_changes(pinned, listing=False)
        assert "the expiry of snapshots" in change

    def test_values_of_partitions_stand_in_for_columns_that_files_lack(
        self, iceberg: Storage, spark: SparkSession
    ) -> None:
        """Files that were taken over from a table of Hive have no partition columns."""
        plant_parted(iceberg)
        use, inputs = iceberg.use(REGIONS), iceberg.inputs()
        pinned = inputs.pin([use])
        for file in pinned[use.key][0].files:  # type: ignore[attr-defined]
            table = pq.ParquetFile(file.path).read()
            pq.write_table(table.drop_columns(["region", "day"]), file.path)
        (found,) = inputs.read(spark, use, inputs.extract([use], pinned)[use.key])
        assert in_order(rows_of(found.frame, REGIONS)) == PLANTED
        (files,) = inputs.files(use, pinned[use.key])
        assert (
            in_order(row for path in files for row in pq.read_table(path).select(list(REGIONS)).to_pylist()) == PLANTED
        )

    def test_columns_that_the_table_got_later(self, iceberg: Storage, spark: SparkSession) -> None:
        iceberg.plant({"id": INTEGER}, [{"id": 1}])
        table = load(iceberg)
        with table.update_schema() as update:
            update.union_by_name(arrow_table(SIMPLE, []).schema)
        table.append(arrow_table(SIMPLE, rows("b", start=2)))
        assert iceberg.get(spark, SIMPLE) == [{"id": 1, "value": None}, *rows("b", start=2)]

    def test_columns_that_were_renamed_are_refused(self, iceberg: Storage) -> None:
        iceberg.plant(SIMPLE, rows("a"))
        with load(iceberg).update_schema() as update:
            update.rename_column("value", "text")
        problem = failure(lambda: iceberg.extract(iceberg.use({"id": INTEGER, "text": TEXT}))).problem
        assert isinstance(problem, DataLoad)
        assert "`text` is `value`" in problem.detail

    def test_columns_that_were_dropped_need_the_connector(self, iceberg: Storage) -> None:
        """The table does not have them, its older files do."""
        iceberg.plant(SIMPLE, rows("a"))
        with load(iceberg).update_schema() as update:
            update.delete_column("value")
        problem = failure(lambda: iceberg.extract(iceberg.use({"id": INTEGER}))).problem
        assert isinstance(problem, DataLoad)
        assert "uses dropped columns (`value` is in `" in problem.detail
        assert "spark.jars.packages" in str(problem.remedy)

    @pytest.mark.parametrize(
        ("numbers", "refused"),
        [((1, 2), False), ((1, 0), True), ((1, 7), True), ((2, 1), True), ((None, None), False)],
        ids=str,
    )
    def test_columns_of_files_are_known_by_their_numbers(
        self, iceberg: Storage, numbers: tuple[int | None, int | None], refused: bool
    ) -> None:
        """A column that was replaced by another of the same name has another number; files of Hive have none."""
        iceberg.plant(SIMPLE, rows("a"))
        use, inputs = iceberg.use(SIMPLE), iceberg.inputs()
        (file,) = inputs.pin([use])[use.key][0].files  # type: ignore[attr-defined]
        table = pq.ParquetFile(file.path).read()
        fields = [
            field.with_metadata({"PARQUET:field_id": str(number)} if number is not None else {})
            for field, number in zip(table.schema, numbers, strict=True)
        ]
        pq.write_table(table.cast(pa.schema(fields)), file.path)
        if refused:
            assert "renamed columns" in getattr(failure(lambda: iceberg.extract(use)).problem, "detail", "")
        else:
            iceberg.extract(use)

    def test_partitions_are_pinned_with_their_values(self, iceberg: Storage) -> None:
        plant_parted(iceberg)
        (pin,) = iceberg.extract(iceberg.use(REGIONS))
        assert isinstance(pin, TableFilesPin)
        assert pin.partitions == (("region", "string"), ("day", "date"))
        assert sorted(pin.values, key=str) == [
            ("a b", "2026-01-01"),
            ("a b", "2026-01-04"),
            ("ü/%", "2026-01-02"),
            (None, "2026-01-03"),
        ]
        assert pin.version == load(iceberg).metadata.current_snapshot_id

    def test_a_table_without_any_rows(self, iceberg: Storage) -> None:
        iceberg.plant(SIMPLE, rows("a"), "other")
        open_catalog(iceberg).create_table(("default", "out"), arrow_table(SIMPLE, []).schema)
        (pin,) = iceberg.extract(iceberg.use(SIMPLE))
        assert isinstance(pin, TableFilesPin)
        assert (pin.version, pin.files) == (0, ())

    def test_metadata_that_are_gone(self, iceberg: Storage) -> None:
        iceberg.plant(SIMPLE, rows("a"))
        Path(load(iceberg).metadata_location).unlink()
        failed = failure(lambda: iceberg.extract(iceberg.use(SIMPLE)))
        assert isinstance(failed.problem, DataLoad)
        assert "table `default.out` cannot be read" in failed.problem.detail
        assert not failed.retry_helps

    @pytest.mark.parametrize(
        ("changed", "said"), [({0: DataFileContent.POSITION_DELETES}, "delete files"), ({2: FileFormat.ORC}, "ORC")]
    )
    def test_what_a_list_of_files_does_not_tell_is_refused_by_name(
        self, iceberg: Storage, changed: dict[int, object], said: str
    ) -> None:
        """Rows that are deleted in their files, and files of other formats."""
        iceberg.plant(SIMPLE, rows("a"))
        list_file_again(load(iceberg), changed)
        problem = failure(lambda: iceberg.extract(iceberg.use(SIMPLE))).problem
        assert isinstance(problem, DataLoad)
        assert said in problem.detail
        assert "iceberg-spark-runtime" in (problem.remedy or "")

    def test_a_later_format_is_refused_by_name(self, iceberg: Storage) -> None:
        iceberg.plant(SIMPLE, rows("a"))
        path = Path(load(iceberg).metadata_location)
        document = json.loads(path.read_text())
        path.write_text(json.dumps({**document, "format-version": 3, "next-row-id": 0}))
        problem = failure(lambda: iceberg.extract(iceberg.use(SIMPLE))).problem
        assert isinstance(problem, DataLoad)
        assert "format version 3" in problem.detail

    def test_a_catalog_or_a_table_that_is_not_there(self, iceberg: Storage) -> None:
        missing = failure(lambda: iceberg.extract(iceberg.use(SIMPLE))).problem
        assert isinstance(missing, DataLoad)
        assert "catalog.db" in missing.detail
        iceberg.plant(SIMPLE, rows("a"), "other")
        problem = failure(lambda: iceberg.extract(iceberg.use(SIMPLE))).problem
        assert isinstance(problem, DataLoad)
        assert problem.present == ("other",)


class TestOwnTables:
    def test_other_tools_read_them_as_tables(self, iceberg: Storage) -> None:
        iceberg.put(rows("old"), SIMPLE, run="run-1")
        iceberg.put(rows("a", "b"), SIMPLE, run="run-2")
        iceberg.put(rows("c", start=3), SIMPLE, run="run-3", period="FY 26/Q1 ü%")
        expected = [{**row, "_run_period": PERIOD} for row in rows("a", "b")]
        expected += [{**row, "_run_period": "FY 26/Q1 ü%"} for row in rows("c", start=3)]
        table = load(iceberg)
        assert in_order(table.scan().to_arrow().to_pylist()) == expected
        only = table.scan(row_filter="_run_period == '2026-01'")
        assert in_order(only.to_arrow().to_pylist()) == expected[:2]
        notes = [
            json.loads(each.summary.additional_properties["dobo.outputs"])
            for each in table.snapshots()
            if each.summary is not None and "dobo.outputs" in each.summary.additional_properties
        ]
        assert [(each["run"], each["rows"]) for (each,) in notes] == [("run-1", 1), ("run-2", 2), ("run-3", 1)]

    def test_nothing_is_committed_upon_a_snapshot_that_nobody_looked_at(self, anywhere: Storage) -> None:
        """The library would try again by itself, upon what it finds then."""
        anywhere.put(rows("a"), SIMPLE, run="run-1")
        stale = load_table(open_catalog(anywhere), ("default", "out"))
        assert stale is not None
        anywhere.put(rows("b"), SIMPLE, run="run-2")
        transaction = stale.transaction()
        transaction.set_properties({"dobo.fence.x": "1"})
        with transaction.update_snapshot().fast_append():
            pass
        with pytest.raises(CommitFailedException):
            transaction.commit_transaction()
        assert "commit.retry.num-retries" not in load(anywhere).properties

    @pytest.mark.parametrize("what", ["table", "format"])
    def test_what_no_run_made_is_refused_before_anything_is_computed(self, iceberg: Storage, what: str) -> None:
        if what == "table":
            iceberg.plant(SIMPLE, rows("a"))
        else:
            iceberg.put(rows("a"), SIMPLE, run="run-0")
            path = Path(load(iceberg).metadata_location)
            document = json.loads(path.read_text())
            path.write_text(json.dumps({**document, "format-version": 3, "next-row-id": 0}))
        problem = failure(lambda: iceberg.outputs().check(WrittenOutput(SEQ, iceberg.write(SIMPLE), SIMPLE))).problem
        assert isinstance(problem, OutputWrite)
        assert {"table": "_run_period", "format": "version 3"}[what] in problem.detail

    def test_periods_that_are_published_at_once_are_both_there(self, anywhere: Storage) -> None:
        faults: list[BaseException] = []

        def put(period: str) -> None:
            try:
                for number in range(2):
                    anywhere.put(rows(period), SIMPLE, run=f"run-{period}-{number}", period=period)
            except BaseException as fault:  # noqa: BLE001  it is raised where it is seen
                faults.append(fault)

        threads = [threading.Thread(target=partial(put, f"2026-0{month}")) for month in (1, 2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert faults == []
        assert sorted(row["value"] for row in anywhere.see(SIMPLE)) == ["2026-01", "2026-02", "2026-03"]

    def test_what_attempts_left_and_no_transaction_has(self, anywhere: Storage) -> None:
        output = WrittenOutput(SEQ, anywhere.write(SIMPLE), SIMPLE)
        table = arrow_table(SIMPLE, rows("a"))
        for fence in (1, 2, 3):
            outputs = anywhere.outputs(fence=fence)
            staged = outputs.convert(output, anywhere.stage_by_hand(outputs, table, output), rows=1)
        names = ["dobo-run-1-10-1", "dobo-run-1-10-2"]
        assert [Path(each.place).name for each in anywhere.outputs(fence=2).find_leftovers(output)] == names
        outputs.publish([(output, staged, 1, "d")])
        assert [Path(each.place).name for each in outputs.find_leftovers(output)] == names
        for each in outputs.find_leftovers(output):
            each.remove()
        assert anywhere.see(SIMPLE) == rows("a")
        assert outputs.find_leftovers(output) == []

    def test_what_an_earlier_snapshot_has_is_not_left(self, anywhere: Storage) -> None:
        """A later run has replaced the rows, and its note; who reads the earlier snapshot finds its files."""
        anywhere.put(rows("a"), SIMPLE, run="run-1")
        anywhere.put(rows("b"), SIMPLE, run="run-2")
        output = WrittenOutput(SEQ, anywhere.write(SIMPLE), SIMPLE)
        assert anywhere.outputs(run="run-1", fence=9).find_leftovers(output) == []

    def test_files_that_were_changed_or_removed_are_noticed(self, iceberg: Storage) -> None:
        outputs, output = iceberg.outputs(), WrittenOutput(SEQ, iceberg.write(SIMPLE), SIMPLE)
        by_hand = iceberg.stage_by_hand(outputs, arrow_table(SIMPLE, rows("a", "b")), output)
        head = Noted("store", 7, "abc")
        outputs.publish([(output, outputs.convert(output, by_hand, rows=2), 2, "d")], head=head)
        stored = outputs.stored(output)
        assert load_stored(json.loads(json.dumps(stored.document()))) == stored
        port = Storages(iceberg.root, {iceberg.source.id: iceberg.source}).of_record(stored)
        inspect = partial(port.inspect, stored, run="run-1", seq=SEQ)
        assert inspect() == Inspected((head,), files=2)
        one, other = sorted(iceberg.folder.glob("out/data/*/dobo-*/*.parquet"))
        one.write_bytes(b"x")
        other.unlink()
        found = inspect()
        assert (len(found.changed), len(found.gone), found.files) == (1, 1, 0)

    def test_notes_that_were_changed_or_removed_are_noticed(self, iceberg: Storage) -> None:
        output = WrittenOutput(SEQ, iceberg.write(SIMPLE), SIMPLE)
        stored = load_stored(iceberg.put(rows("a"), SIMPLE))
        inspect = partial(iceberg.port.of_record(stored).inspect, stored, seq=SEQ)
        assert inspect(run="run-1") == Inspected(files=2)
        (gone,) = inspect(run="run-2").gone
        assert "the snapshot of the run" in gone
        for noted in ("no JSON", "{}", "7"):
            transaction = load(iceberg).transaction()
            with transaction.update_snapshot(snapshot_properties={"dobo.history": noted}).fast_append():
                pass
            transaction.commit_transaction()
            (changed,) = inspect(run="run-1").changed
            assert "cannot be read" in changed
        (note,) = iceberg.folder.glob("out/data/*/dobo-*/dobo.json")
        note.unlink()
        problem = failure(lambda: iceberg.outputs().stored(output)).problem
        assert isinstance(problem, OutputWrite)
        assert "dobo.json` is gone" in problem.detail
        open_catalog(iceberg).drop_table(("default", "out"))
        found = inspect(run="run-1")
        assert (found.gone, found.files) == (("table `out`",), 2)
        assert (iceberg.outputs().find_leftovers(output), iceberg.outputs().find_commit(output)) == ([], None)

    def test_tables_are_in_the_namespace_that_is_named(self, iceberg: Storage) -> None:
        iceberg.put(rows("a"), SIMPLE)
        named = iceberg.with_options(namespace="sales.eu", catalog="default")
        document = named.put(rows("b"), SIMPLE)
        assert (document["schema"], iceberg.see(SIMPLE)) == ("sales.eu", rows("a"))
        found = open_catalog(iceberg).load_table(("sales", "eu", "out")).scan(selected_fields=tuple(SIMPLE))
        assert found.to_arrow().to_pylist() == rows("b")
        (pin,) = named.extract(named.use(SIMPLE))
        assert isinstance(pin, TableFilesPin)
        assert pin.table == "sales.eu.out"
        assert named.target(SIMPLE).place != iceberg.target(SIMPLE).place

    def test_numbers_that_get_wider_are_one_column_for_all(self, anywhere: Storage) -> None:
        narrow: dict[str, Type] = {"id": INTEGER, "amount": INTEGER}
        wide: dict[str, Type] = {"id": INTEGER, "amount": DecimalType(9, 4)}
        anywhere.put([{"id": 1, "amount": 7}], narrow, run="run-1", period="2026-01")
        anywhere.put([{"id": 2, "amount": Decimal("2.1234")}], wide, run="run-2", period="2026-02")
        anywhere.put([{"id": 3, "amount": 5}], narrow, run="run-3", period="2026-03")
        found: list[dict[str, Any]] = load(anywhere).scan().to_arrow().select(["id", "amount"]).to_pylist()
        assert in_order(found) == [
            {"id": 1, "amount": Decimal(7)},
            {"id": 2, "amount": Decimal("2.1234")},
            {"id": 3, "amount": Decimal(5)},
        ]
        assert load(anywhere).schema().as_arrow().field("amount").type == pa.decimal128(23, 4)


def test_a_group_of_outputs_is_one_transaction(anywhere: Storage) -> None:
    outputs = anywhere.outputs()
    group = []
    for seq, mode, value in ((10, "replace", "a"), (20, "append", "b")):
        output = WrittenOutput(seq, anywhere.write(SIMPLE, mode=mode), SIMPLE)
        staged = anywhere.stage_by_hand(outputs, arrow_table(SIMPLE, rows(value, start=seq)), output)
        group.append((output, outputs.convert(output, staged, rows=1), 1, value))
    outputs.publish(group)
    assert anywhere.see(SIMPLE) == [*rows("a", start=10), *rows("b", start=20)]
    found = [outputs.find_commit(each[0]) for each in group]
    assert [commit and commit.digest for commit in found] == ["a", "b"]
    publish(outputs, group[0][0], group[0][1], rows=1, digest="a")
    assert len(anywhere.see(SIMPLE)) == 2


def test_tables_are_read_as_they_were_pinned(anywhere: Storage) -> None:
    anywhere.plant(SIMPLE, rows("a", "b"))
    use, inputs = anywhere.use(SIMPLE), anywhere.inputs()
    pinned = inputs.pin([use])
    load(anywhere).overwrite(arrow_table(SIMPLE, rows("c")))
    assert inputs.find_changes(pinned, listing=True) == ()
    (files,) = inputs.files(use, inputs.extract([use], pinned)[use.key])
    assert in_order(row for path in files for row in pq.read_table(path).to_pylist()) == rows("a", "b")
    anywhere.remove("out")
    (change,) = inputs.find_changes(pinned, listing=False)
    assert "the expiry of snapshots" in change


def test_rows_are_replaced_fenced_and_found_again(anywhere: Storage) -> None:
    check_replaced_fenced_and_found(anywhere)


def test_a_publication_looks_again_if_others_were_faster(iceberg: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    check_nothing_is_published_upon_what_nobody_looked_at(iceberg, monkeypatch)


def test_rows_that_are_replaced_by_nothing(anywhere: Storage) -> None:
    check_replaced_by_nothing(anywhere)


def test_columns_of_rows_that_stay(iceberg: Storage) -> None:
    check_columns_of_rows_that_stay(iceberg)


def test_staged_files_that_the_table_does_not_fit_any_more(anywhere: Storage) -> None:
    check_staged_files_that_are_not_as_they_should_be(anywhere)


def test_a_column_of_run_periods_that_comes_later_is_refused(iceberg: Storage) -> None:
    check_column_of_run_periods_that_comes_later(iceberg)


class TestObjectStores:
    def test_a_bucket_that_is_not_there_is_refused_before_anything_is_computed(
        self, tmp_path: Path, object_server: ObjectServer
    ) -> None:
        source = open_source("iceberg", uri=CATALOG, warehouse="s3://nobody-has-this/x")
        storage = Storage(tmp_path, source, server=object_server)
        output = WrittenOutput(SEQ, storage.write(SIMPLE), SIMPLE)
        problem = failure(lambda: storage.outputs().check(output)).problem
        assert isinstance(problem, OutputWrite)
        assert "NoSuchBucket" in problem.detail

    def test_keys_that_the_datasource_refers_to(
        self, tmp_path: Path, object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("KEYS", f"{KEY}:{SECRET}")
        places = {"warehouse": f"{object_server.fresh_bucket()}/x", "endpoint": object_server.endpoint}
        source = open_source("iceberg", credential_ref="env://KEYS", uri=CATALOG, **places)
        storage = Storage(tmp_path, source, server=object_server)
        assert SECRET not in json.dumps(storage.put(rows("a"), SIMPLE))
        assert storage.see(SIMPLE) == rows("a")
        assert SECRET not in json.dumps(load(storage).metadata.model_dump(mode="json"))
        answer = Storages(tmp_path, {source.id: source}).open(source).call()
        assert answer is not None
        assert answer.works

    @pytest.mark.postgresql
    def test_a_catalog_in_postgresql(
        self, tmp_path: Path, object_server: ObjectServer, database: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
        places = {"uri": database.replace(f":{PASSWORD}", ""), "warehouse": f"{object_server.fresh_bucket()}/x"}
        storage = Storage(tmp_path, open_source("iceberg", **places), database, object_server)
        storage.put(rows("a"), SIMPLE, run="run-1")
        storage.put(rows("b", "c"), SIMPLE, run="run-2")
        assert storage.see(SIMPLE) == rows("b", "c")
        (pin,) = storage.extract(storage.use(SIMPLE))
        assert pin.size > 0
