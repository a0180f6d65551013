"""Delta tables: those of others are read by their versions, those of runs are tables like any other."""

from __future__ import annotations

import json
import shutil
import threading
import time
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, DecimalType
from dobonomodo.problems.run import DataLoad, OutputWrite
from dobonomodo.storage import Storages, WrittenOutput, load_stored
from dobonomodo.storage.access import Access
from dobonomodo.storage.address import Address
from dobonomodo.storage.delta_home import ObjectHome
from dobonomodo.storage.delta_target import explain_fault, is_passing_fault
from dobonomodo.storage.kept import KeptInputs
from dobonomodo.storage.objects import open_objects
from dobonomodo.storage.rows import ROW_NUMBER
from dobonomodo.storage.table_files import TableFilesPin
from dobonomodo.storage.target import Inspected, Noted
from tests.contract.lake_tables import (
    check_column_of_run_periods_that_comes_later,
    check_columns_of_rows_that_stay,
    check_drafts_are_files,
    check_nothing_is_published_upon_what_nobody_looked_at,
    check_replaced_by_nothing,
    check_replaced_fenced_and_found,
    check_staged_files_that_are_not_as_they_should_be,
)
from tests.contract.storages import (
    LOOPBACK,
    SEQ,
    Storage,
    arrow_table,
    delta_uri,
    failure,
    fault_of,
    in_order,
    open_delta,
    publish,
    rows_of,
)
from tests.contract.test_storages import SIMPLE, make_storage, rows
from tests.object_server import ObjectServer
from tests.world import PERIOD

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def delta(tmp_path: Path) -> Storage:
    return make_storage("delta", tmp_path)


@pytest.fixture(params=["delta", "delta in S3"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return make_storage(request.param, tmp_path, None, lambda: request.getfixturevalue("object_server"))


REGIONS: dict[str, Type] = {
    "id": INTEGER,
    "region": TEXT,
    "day": DATE,
    "number": INTEGER,
    "flag": BOOLEAN,
    "rate": DecimalType(5, 2),
}
PARTED = ["region", "day", "number", "flag", "rate"]


def plant_parted(storage: Storage) -> list[dict[str, Any]]:
    """A table of somebody else, whose partition columns are in no file."""
    regions = ["a b", "ü/%=\\'", None, "x:y", "a b"]
    planted = [
        {
            "id": at,
            "region": each,
            "day": date(2026, 1, at),
            "number": -at,
            "flag": at % 2 == 0,
            "rate": Decimal("1.50"),
        }
        for at, each in enumerate(regions, 1)
    ]
    write_deltalake(storage.folder / "out", arrow_table(REGIONS, planted), partition_by=PARTED)
    return planted


class TestForeignTables:
    def test_columns_that_are_in_no_file_have_their_values(self, delta: Storage, spark: SparkSession) -> None:
        planted = plant_parted(delta)
        write_deltalake(delta.folder / "out", arrow_table(REGIONS, [{"id": 6}]), mode="append")
        (frame,) = delta.frames(spark, delta.use(REGIONS))
        assert in_order(rows_of(frame, REGIONS)) == [*planted, {**dict.fromkeys(REGIONS), "id": 6}]
        assert sorted(row[0] for row in frame.select(ROW_NUMBER).collect()) == list(range(6))

    def test_columns_that_are_in_no_file_are_seen_without_spark(self, delta: Storage) -> None:
        planted = plant_parted(delta)
        use, inputs = delta.use(REGIONS), delta.inputs()
        (pin,) = inputs.pin([use])[use.key]
        assert isinstance(pin, TableFilesPin)
        found = [dict(zip(PARTED, values, strict=True)) for values in pin.values]
        assert [each["region"] for each in found] == [None, "a b", "a b", "x:y", "ü/%=\\'"]
        assert found[1] == {"region": "a b", "day": "2026-01-01", "number": "-1", "flag": "false", "rate": "1.50"}
        (files,) = inputs.files(use, (pin,))
        assert in_order(row for path in files for row in pq.read_table(path).to_pylist()) == planted
        assert inputs.files(use, inputs.pin([use])[use.key]) == [files]

    def test_a_run_reads_the_version_that_it_pinned(self, delta: Storage, spark: SparkSession) -> None:
        planted = plant_parted(delta)
        use, inputs = delta.use(REGIONS), delta.inputs()
        pinned = inputs.pin([use])
        write_deltalake(delta.folder / "out", arrow_table(REGIONS, [{"id": 9}]), mode="overwrite")
        assert inputs.find_changes(pinned, listing=True) == ()
        (found,) = inputs.read(spark, use, inputs.extract([use], pinned)[use.key])
        assert in_order(rows_of(found.frame, REGIONS)) == planted

    def test_a_version_that_was_removed_is_said_to_be(self, delta: Storage) -> None:
        plant_parted(delta)
        use, inputs, kept = delta.use(REGIONS), delta.inputs(), KeptInputs.of(delta.root)
        pinned = inputs.pin([use])
        hashes = inputs.keep([use], pinned, kept)
        write_deltalake(delta.folder / "out", arrow_table(REGIONS, [{"id": 9}]), mode="overwrite")
        vacuum(delta)
        changes = inputs.find_changes(pinned, listing=False)
        assert len(changes) == 5
        assert all("version 0 of table `out`: VACUUM" in each for each in changes)
        restored = inputs.restore([use], pinned, hashes, kept)
        assert (len(restored.used), restored.changes) == (1, ())
        inputs.extract([use], restored.pinned)

    def test_a_value_that_must_be_there_and_is_in_no_file(self, delta: Storage) -> None:
        plant_parted(delta)
        problem = failure(lambda: delta.extract(delta.use(REGIONS, required=["region"]))).problem
        assert isinstance(problem, DataLoad)
        assert (problem.counts, [cell.column for cell in problem.cells]) == ((("region", 1),), ["region"])

    def test_files_may_lack_columns_that_the_table_got_later(self, delta: Storage, spark: SparkSession) -> None:
        delta.plant({"id": INTEGER}, [{"id": 1}])
        later = arrow_table(SIMPLE, rows("b", start=2))
        write_deltalake(delta.folder / "out", later, mode="append", schema_mode="merge")
        assert delta.get(spark, SIMPLE) == [{"id": 1, "value": None}, *rows("b", start=2)]
        problem = failure(lambda: delta.extract(delta.use(SIMPLE, required=["value"]))).problem
        assert problem.code == "DATA_LOAD"

    @pytest.mark.parametrize(
        ("protocol", "configuration", "feature"),
        [
            ({"minReaderVersion": 2, "minWriterVersion": 5}, {"delta.columnMapping.mode": "name"}, "columnMapping"),
            (
                {
                    "minReaderVersion": 3,
                    "minWriterVersion": 7,
                    "readerFeatures": ["variantType"],
                    "writerFeatures": ["variantType"],
                },
                {},
                "variantType",
            ),
            (
                {
                    "minReaderVersion": 3,
                    "minWriterVersion": 7,
                    "readerFeatures": ["lookingGlass"],
                    "writerFeatures": ["lookingGlass"],
                },
                {},
                "lookingGlass",
            ),
        ],
        ids=["columnMapping", "variantType", "lookingGlass"],
    )
    def test_what_a_list_of_files_does_not_tell_is_refused_by_name(
        self, delta: Storage, protocol: dict[str, Any], configuration: dict[str, str], feature: str
    ) -> None:
        delta.plant(SIMPLE, rows("a"))
        change_log(delta, protocol=protocol, configuration=configuration)
        problem = failure(lambda: delta.extract(delta.use(SIMPLE))).problem
        assert isinstance(problem, DataLoad)
        is_known = feature != "lookingGlass"
        assert (f"uses `{feature}`" if is_known else f"'{feature}' is not supported") in problem.detail
        assert ("io.delta:delta-spark" in (problem.remedy or "")) is is_known

    @pytest.mark.parametrize("used", [True, False])
    def test_rows_that_are_deleted_in_their_files(self, delta: Storage, used: bool) -> None:
        """A table may have the feature and not use it: many are made with it."""
        delta.plant(SIMPLE, rows("a", "b"))
        features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
        inline = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
        vector = {"storageType": "i", "pathOrInlineDv": inline, "sizeInBytes": 40, "cardinality": 6}
        change_log(
            delta,
            protocol={"minReaderVersion": 3, "minWriterVersion": 7, **features},
            add={"deletionVector": vector} if used else {},
        )
        if used:
            problem = failure(lambda: delta.extract(delta.use(SIMPLE))).problem
            assert isinstance(problem, DataLoad)
            assert "deletionVectors" in problem.detail
        else:
            delta.extract(delta.use(SIMPLE))

    def test_what_is_no_table(self, delta: Storage) -> None:
        (delta.folder / "out").mkdir(parents=True)
        assert "_delta_log" in getattr(failure(lambda: delta.extract(delta.use(SIMPLE))).problem, "detail", "")
        delta.plant(SIMPLE, rows("a"), "broken")
        (delta.folder / "broken/_delta_log" / f"{0:020}.json").write_text("no log")
        broken = failure(lambda: delta.extract(delta.use(SIMPLE, "broken")))
        assert (broken.problem.code, broken.retry_helps) == ("DATA_LOAD", False)
        (delta.folder / "file").touch()
        expected = {"file": "it is a file", "file/out": "Not a directory", "a[b]": "`[`", "gone": "does not exist"}
        for name, said in expected.items():
            failed = failure(partial(delta.extract, delta.use(SIMPLE, name)))
            assert isinstance(failed.problem, DataLoad)
            assert said in failed.problem.detail
            assert (failed.problem.present, failed.retry_helps) == (
                ("broken", "file", "out") if name == "gone" else (),
                False,
            )

    def test_a_file_that_a_version_has_and_the_disk_has_not(self, delta: Storage) -> None:
        path = delta.plant(SIMPLE, rows("a"))
        next(path.glob("*.parquet")).unlink()
        assert "VACUUM" in getattr(failure(lambda: delta.extract(delta.use(SIMPLE))).problem, "detail", "")

    def test_a_table_that_a_link_leads_out_to(self, delta: Storage, tmp_path: Path) -> None:
        write_deltalake(tmp_path / "elsewhere", arrow_table(SIMPLE, rows("a")))
        delta.folder.mkdir()
        (delta.folder / "out").symlink_to(tmp_path / "elsewhere")
        assert failure(lambda: delta.extract(delta.use(SIMPLE))).problem.code == "DATA_LOAD"
        assert failure(lambda: delta.target(SIMPLE)).problem.code == "OUTPUT_WRITE"
        assert failure(lambda: delta.target(SIMPLE, table=".")).problem.code == "OUTPUT_WRITE"
        port = delta.port.open(delta.source)
        assert [port.leaves(delta.location(name)) for name in ("out", "other")] == [True, False]

    def test_a_file_that_a_link_leads_out_to(self, delta: Storage, tmp_path: Path) -> None:
        path = delta.plant(SIMPLE, rows("a"))
        (file,) = path.glob("*.parquet")
        file.rename(tmp_path / "elsewhere")
        file.symlink_to(tmp_path / "elsewhere")
        fault = fault_of(lambda: delta.extract(delta.use(SIMPLE)))
        assert (fault.code, fault.retry_helps) == ("DATA_LOAD", False)
        assert f"file `{file.name}`: it points outside its datasource" in fault.detail


def vacuum(storage: Storage) -> None:
    DeltaTable(storage.folder / "out").vacuum(
        retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True
    )


def map_columns(schema: str) -> str:
    """A schema whose columns have other names in files."""
    document = json.loads(schema)
    for number, field in enumerate(document["fields"], 1):
        field["metadata"] |= {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": field["name"]}
    return json.dumps(document)


def change_log(
    storage: Storage, *, protocol: dict[str, Any], configuration: dict[str, str] | None = None, **more: dict[str, Any]
) -> None:
    """Change what the first version of a table says of itself."""
    path = storage.folder / "out/_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            action["protocol"] = protocol
        if "metaData" in action:
            action["metaData"]["configuration"] |= configuration or {}
            if configuration and "delta.columnMapping.mode" in configuration:
                action["metaData"]["schemaString"] = map_columns(action["metaData"]["schemaString"])
        for name, fields in more.items():
            action.get(name, {}).update(fields)
    path.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


class TestOwnTables:
    def test_files_that_fit_are_uploaded_as_spark_wrote_them(self, tmp_path: Path, object_server: ObjectServer) -> None:
        storage = make_storage("delta in S3", tmp_path, None, lambda: object_server)
        outputs, output = storage.outputs(), WrittenOutput(SEQ, storage.write(SIMPLE), SIMPLE)
        staged = storage.stage_by_hand(outputs, arrow_table(SIMPLE, rows("a", "b")), output)
        files = outputs.files_of(staged)
        for each in files:
            pq.write_table(pq.read_table(each), each, compression="gzip")
        stored = publish(outputs, output, staged, rows=2, digest="d")
        uploaded = [object_server.read(f"{delta_uri(storage)}/{each['path']}") for each in stored["files"]]
        assert uploaded == [Path(each).read_bytes() for each in files]

    def test_other_tools_read_them_as_tables(self, delta: Storage) -> None:
        polars = pytest.importorskip("polars")
        delta.put(rows("old"), SIMPLE, run="run-1")
        delta.put(rows("a", "b"), SIMPLE, run="run-2")
        delta.put(rows("c", start=3), SIMPLE, run="run-3", period="FY 26/Q1 ü%")
        expected = [{**row, "_run_period": PERIOD} for row in rows("a", "b")]
        expected += [{**row, "_run_period": "FY 26/Q1 ü%"} for row in rows("c", start=3)]
        path = str(delta.folder / "out")
        assert in_order(polars.read_delta(path).to_dicts()) == expected
        table = DeltaTable(path)
        assert in_order(table.to_pyarrow_table().to_pylist()) == expected
        assert table.metadata().partition_columns == ["_run_period"]
        noted = [(entry["version"], entry["dobo"]) for entry in table.history() if "dobo" in entry]
        assert [(version, note["version"]) for version, note in noted] == [(3, 3), (2, 2), (1, 1)]
        assert [note["period"] for _, note in noted] == ["FY 26/Q1 ü%", PERIOD, PERIOD]
        notes = [note["outputs"] for _, note in noted]
        assert [[(each["run"], each["rows"], each["digest"]) for each in found] for found in notes] == [
            [("run-3", 1, f"run-3/{SEQ}")],
            [("run-2", 2, f"run-2/{SEQ}")],
            [("run-1", 1, f"run-1/{SEQ}")],
        ]

    def test_the_log_says_of_files_what_readers_need(self, delta: Storage) -> None:
        delta.put(rows("a"), SIMPLE)
        text = (delta.folder / "out/_delta_log" / f"{1:020}.json").read_text()
        adds = [action["add"] for action in map(json.loads, text.splitlines()) if "add" in action]
        found = [(delta.folder / "out" / add["path"]).stat() for add in adds]
        assert [(add["size"], add["modificationTime"]) for add in adds] == [
            (each.st_size, each.st_mtime_ns // 1_000_000) for each in found
        ]
        assert sorted(add["stats"] for add in adds) == ['{"numRecords": 0}', '{"numRecords": 1}']
        assert all(add["dataChange"] for add in adds)
        assert {add["partitionValues"]["_run_period"] for add in adds} == {PERIOD}

    def test_two_outputs_of_a_run_are_one_version(self, anywhere: Storage) -> None:
        outputs = anywhere.outputs()
        group = []
        for seq, mode, value in ((10, "replace", "a"), (20, "append", "b")):
            output = WrittenOutput(seq, anywhere.write(SIMPLE, mode=mode), SIMPLE)
            staged = anywhere.stage_by_hand(outputs, arrow_table(SIMPLE, rows(value, start=seq)), output)
            group.append((output, outputs.convert(output, staged, rows=1), 1, value))
        outputs.publish(group)
        assert anywhere.see(SIMPLE) == [*rows("a", start=10), *rows("b", start=20)]
        assert open_delta(anywhere).version() == 1
        assert [commit and commit.digest for commit in map(outputs.find_commit, (each[0] for each in group))] == [
            "a",
            "b",
        ]

    def test_a_name_for_the_run_period_that_is_free(self, delta: Storage) -> None:
        columns: dict[str, Type] = {**SIMPLE, "_run_period": TEXT}
        delta.put([{"id": 1, "value": "a", "_run_period": "mine"}], columns)
        assert DeltaTable(delta.folder / "out").metadata().partition_columns == ["_dobo_run_period"]
        assert delta.see(columns) == [{"id": 1, "value": "a", "_run_period": "mine"}]

    @pytest.mark.parametrize("what", ["table", "folder", "file", "feature", "writer", "path"])
    def test_what_no_run_made_is_refused_before_anything_is_computed(self, delta: Storage, what: str) -> None:
        name = "out"
        match what:
            case "table":
                delta.plant(SIMPLE, rows("a"))
            case "folder":
                (delta.folder / "out").mkdir(parents=True)
                (delta.folder / "out/report.txt").touch()
            case "file":
                delta.folder.mkdir()
                (delta.folder / "out").touch()
            case "feature":
                delta.put(rows("a"), SIMPLE, run="run-0")
                features = {"readerFeatures": [], "writerFeatures": ["changeDataFeed"]}
                change_log(delta, protocol={"minReaderVersion": 3, "minWriterVersion": 7, **features})
            case "writer":
                delta.put(rows("a"), SIMPLE, run="run-0")
                change_log(delta, protocol={"minReaderVersion": 1, "minWriterVersion": 3})
            case _:
                name = "a[b]"
        problem = failure(
            lambda: delta.outputs().check(WrittenOutput(SEQ, delta.write(SIMPLE, table=name), SIMPLE))
        ).problem
        assert isinstance(problem, OutputWrite)
        expected = {
            "table": "_run_period",
            "folder": "report.txt",
            "file": "it is a file",
            "feature": "changeDataFeed",
            "writer": "a writer of version 3",
            "path": "`[`",
        }
        assert expected[what] in problem.detail

    def test_a_place_where_no_table_can_be(self, delta: Storage) -> None:
        delta.folder.touch()
        failed = failure(lambda: delta.outputs().claim([WrittenOutput(SEQ, delta.write(SIMPLE), SIMPLE)]))
        assert (type(failed.problem), failed.retry_helps) == (OutputWrite, False)

    def test_periods_that_are_published_at_once_are_both_there(self, anywhere: Storage) -> None:
        faults: list[BaseException] = []

        def put(period: str) -> None:
            try:
                for number in range(4):
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

    def test_what_attempts_left_and_no_commit_has(self, anywhere: Storage) -> None:
        output = WrittenOutput(SEQ, anywhere.write(SIMPLE), SIMPLE)
        table = arrow_table(SIMPLE, rows("a"))
        for fence in (1, 2, 3):
            outputs = anywhere.outputs(fence=fence)
            outputs.convert(output, anywhere.stage_by_hand(outputs, table, output), rows=1)
        first = anywhere.outputs(fence=2)
        assert [Path(each.place).name for each in first.find_leftovers(output)] == [
            "dobo-run-1-10-1",
            "dobo-run-1-10-2",
        ]
        staged = anywhere.stage_by_hand(first, table, output)
        publish(first, output, staged, rows=1, digest="d")
        found = anywhere.outputs(fence=3).find_leftovers(output)
        assert [Path(each.place).name for each in found] == ["dobo-run-1-10-1", "dobo-run-1-10-3"]
        for each in found:
            each.remove()
        assert anywhere.see(SIMPLE) == rows("a")
        assert anywhere.outputs(fence=3).find_leftovers(output) == []

    def test_rows_are_found_after_files_were_put_together(self, delta: Storage, spark: SparkSession) -> None:
        stored = load_stored(delta.put(rows("a", "b"), SIMPLE))
        DeltaTable(delta.folder / "out").optimize.compact()
        vacuum(delta)
        port = Storages(delta.root, {delta.source.id: delta.source}).of_record(stored)
        inputs, use = delta.inputs(), delta.use(SIMPLE)
        pin = port.pin_output(stored, name="out", period=PERIOD)
        (found,) = inputs.read(spark, use, inputs.extract([use], {use.key: (pin,)})[use.key])
        assert in_order(rows_of(found.frame, SIMPLE)) == rows("a", "b")
        assert port.keep(stored, period=PERIOD, run="run-1", seq=SEQ) is None

    def test_files_that_were_changed_or_removed_are_noticed(self, delta: Storage) -> None:
        outputs, output = delta.outputs(), WrittenOutput(SEQ, delta.write(SIMPLE), SIMPLE)
        staged = outputs.convert(
            output, delta.stage_by_hand(outputs, arrow_table(SIMPLE, rows("a", "b")), output), rows=2
        )
        head = Noted("store", 7, "abc")
        outputs.publish([(output, staged, 2, "d")], head=head)
        stored = outputs.stored(output)
        port = Storages(delta.root, {delta.source.id: delta.source}).of_record(stored)
        inspect = partial(port.inspect, stored, run="run-1", seq=SEQ)
        assert inspect() == Inspected((head,), files=2)
        one, other = sorted((delta.folder / "out").glob("*/dobo-*/*.parquet"))
        one.write_bytes(b"x")
        other.unlink()
        found = inspect()
        assert (len(found.changed), len(found.gone), found.files) == (1, 1, 0)

    def test_notes_that_were_changed_or_removed_are_noticed(self, delta: Storage) -> None:
        stored = load_stored(delta.put(rows("a"), SIMPLE))
        inspect = partial(delta.port.of_record(stored).inspect, stored, seq=SEQ)
        (gone,) = inspect(run="run-2").gone
        assert "the commit of the run" in gone
        log = delta.folder / "out/_delta_log"
        commit = sorted(log.glob("*.json"))[-1]
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        for noted in ({"store": "s"}, "x", 7):
            for action in actions:
                if "commitInfo" in action:
                    action["commitInfo"]["dobo"]["history"] = noted
            commit.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
            (changed,) = inspect(run="run-1").changed
            assert "cannot be read" in changed
        open_delta(delta).create_checkpoint()
        remove_log(delta)
        assert inspect(run="run-1") == Inspected(files=2), "what is not there any more was not changed"
        shutil.rmtree(log)
        found = inspect(run="run-1")
        assert (found.gone, found.files) == (("the log of table `out`",), 2)

    def test_what_is_published_is_not_converted_again(self, anywhere: Storage) -> None:
        anywhere.put(rows("a"), SIMPLE)
        outputs, output = anywhere.outputs(fence=2), WrittenOutput(SEQ, anywhere.write(SIMPLE), SIMPLE)
        staged = anywhere.stage_by_hand(outputs, arrow_table(SIMPLE, rows("b")), output)
        assert outputs.convert(output, staged, rows=1) == staged
        assert outputs.find_leftovers(output) == []

    def test_a_log_with_checkpoints_says_the_same(self, anywhere: Storage) -> None:
        """The library sums up every hundred commits, and may then forget single ones."""
        anywhere.put(rows("a"), SIMPLE, run="run-1")
        open_delta(anywhere).create_checkpoint()
        output = WrittenOutput(SEQ, anywhere.write(SIMPLE), SIMPLE)
        commit = anywhere.outputs().find_commit(output)
        assert commit is not None
        remove_log(anywhere)
        # Nobody can say what was written, but it is not written twice.
        assert failure(lambda: anywhere.outputs().find_commit(output)).problem.code == "OUTPUT_WRITE"
        staged = anywhere.stage_by_hand(anywhere.outputs(), arrow_table(SIMPLE, rows("b")), output)
        anywhere.outputs().publish([(output, staged, 1, "d")])
        assert anywhere.see(SIMPLE) == rows("a")


def remove_log(storage: Storage) -> None:
    """All commits, but not what sums them up."""
    if storage.server is None:
        for path in (storage.folder / "out/_delta_log").glob("*.json"):
            path.unlink()
        return
    for name in storage.server.keys(f"{storage.address}/out/_delta_log"):
        if name.endswith(".json"):
            bucket, _, key = f"{storage.address}/out/_delta_log/{name}".removeprefix("s3://").partition("/")
            storage.server.client().delete_object(Bucket=bucket, Key=key)


def test_tables_in_an_object_store_are_read_as_they_were_pinned(anywhere: Storage) -> None:
    anywhere.plant(SIMPLE, rows("a", "b"))
    use, inputs = anywhere.use(SIMPLE), anywhere.inputs()
    pinned = inputs.pin([use])
    write_deltalake(delta_uri(anywhere), arrow_table(SIMPLE, rows("c")), mode="overwrite", storage_options=LOOPBACK)
    assert inputs.find_changes(pinned, listing=True) == ()
    (files,) = inputs.files(use, inputs.extract([use], pinned)[use.key])
    assert in_order(row for path in files for row in pq.read_table(path).to_pylist()) == rows("a", "b")
    open_delta(anywhere).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
    (change,) = inputs.find_changes(pinned, listing=False)
    assert "VACUUM" in change


def test_rows_are_replaced_fenced_and_found_again(anywhere: Storage) -> None:
    check_replaced_fenced_and_found(anywhere)


def test_drafts_are_written_to_files_in_place_of_tables(delta: Storage) -> None:
    check_drafts_are_files(delta)


def test_a_publication_looks_again_if_others_were_faster(delta: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    check_nothing_is_published_upon_what_nobody_looked_at(delta, monkeypatch)


def test_rows_that_are_replaced_by_nothing(anywhere: Storage) -> None:
    check_replaced_by_nothing(anywhere)


def test_columns_of_rows_that_stay(delta: Storage) -> None:
    check_columns_of_rows_that_stay(delta)


def test_staged_files_that_the_table_does_not_fit_any_more(anywhere: Storage) -> None:
    check_staged_files_that_are_not_as_they_should_be(anywhere)


def test_a_column_of_run_periods_that_comes_later_is_refused(delta: Storage) -> None:
    check_column_of_run_periods_that_comes_later(delta)


def test_a_table_of_numbers_that_get_wider_is_one_table_for_all(anywhere: Storage) -> None:
    """Files that are there are written again, in the commit that adds wider numbers."""
    narrow: dict[str, Type] = {"id": INTEGER, "amount": DecimalType(5, 2)}
    wide: dict[str, Type] = {"id": INTEGER, "amount": DecimalType(9, 4)}
    anywhere.put([{"id": 1, "amount": Decimal("1.25")}], narrow, run="run-1", period="2026-01")
    anywhere.put([{"id": 2, "amount": Decimal("2.1234")}], wide, run="run-2", period="2026-02")
    anywhere.put([{"id": 3, "amount": Decimal("3.50")}], narrow, run="run-3", period="2026-03")
    table = open_delta(anywhere).to_pyarrow_table(columns=["id", "amount"])
    assert table.schema.field("amount").type == pa.decimal128(9, 4)
    assert in_order(table.to_pylist()) == [
        {"id": 1, "amount": Decimal("1.2500")},
        {"id": 2, "amount": Decimal("2.1234")},
        {"id": 3, "amount": Decimal("3.5000")},
    ]


class TestObjects:
    """The place of a table in an object store."""

    @pytest.fixture
    def home(self, tmp_path: Path, object_server: ObjectServer) -> ObjectHome:
        address = Address.parse(f"{object_server.fresh_bucket()}/some folder/out")
        return ObjectHome(open_objects(address, Access()), address, tmp_path / "copies")

    def test_files_are_uploaded_unless_they_are_there(self, home: ObjectHome) -> None:
        folder = home.data / "p=1" / "run-1-1"
        folder.mkdir(parents=True)
        path = folder / "a.parquet"
        path.write_bytes(b"rows")
        address = f"{home.uri}/p=1/run-1-1/a.parquet"
        assert (home.locate(path), home.is_remote) == (address, True)
        home.put([path])
        path.write_bytes(b"ROWS")
        home.put([path])
        assert home.read("p=1/run-1-1/a.parquet") == b"rows"
        path.write_bytes(b"more rows")
        home.put([path])
        for name in ("p=1/run-1-1/a.parquet", address):
            assert home.hash(name) == sha256(b"more rows").hexdigest()
            assert home.fetch(name).read_bytes() == b"more rows"
            pinned = home.pin(name)
            assert (pinned.path, pinned.size) == (address, 9)
            assert abs(pinned.modified / 1e9 - time.time()) < 3600
            assert pinned.etag

    def test_what_is_not_there(self, home: ObjectHome) -> None:
        assert (home.read("gone"), home.find_foreign(), home.open()) == (None, None, None)
        for act in (home.pin, home.hash, home.fetch):
            with pytest.raises(FileNotFoundError) as missing:
                act("gone")
            assert missing.value.filename == f"{home.uri}/gone"
        with pytest.raises(FileNotFoundError) as missing:
            home.pin(f"{home.uri}/gone")
        assert missing.value.filename == f"{home.uri}/gone"
        with pytest.raises(OSError, match="another bucket"):
            home.pin("s3://other/gone")

    def test_folders_of_runs_are_found_below_their_periods(self, home: ObjectHome) -> None:
        for name in (
            "p=2/run-1-2/a",
            "p=1/run-1-1/a",
            "p=1/run-1-1/b",
            "p=1/run-2-1/a",
            "run-1-3/a",
            "p=1/run-1-4/x/a",
        ):
            home.write(name, b"rows")
        found = list(home.find_folders("run-1-"))
        assert [(name, left.place, left.bytes) for name, left in found] == [
            ("run-1-1", f"{home.uri}/p=1/run-1-1", 8),
            ("run-1-2", f"{home.uri}/p=2/run-1-2", 4),
        ]
        found[0][1].remove()
        assert [name for name, _ in home.find_folders("run-1-")] == ["run-1-2"]

    def test_what_somebody_else_put_there_is_named(self, home: ObjectHome) -> None:
        home.write("_run_period=2026-01/run-1-1/a", b"rows")
        home.write("_delta_log/x", b"")
        assert home.find_foreign() is None
        home.write("report/x.txt", b"text")
        assert home.find_foreign() == "report"

    def test_how_the_library_and_spark_reach_it(self, home: ObjectHome) -> None:
        assert (home.options, home.explain()) == ({"AWS_ALLOW_HTTP": "true"}, None)
        assert home.spark_uri == f"s3a://{home.uri.removeprefix('s3://')}"
        access = Access("http://127.0.0.1:9", "eu-central-1", "key:secret:token:more")
        objects = open_objects(home.address, access)
        assert replace(home, objects=objects).options == {
            "AWS_ALLOW_HTTP": "true",
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
            "AWS_REGION": "eu-central-1",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_SESSION_TOKEN": "token:more",
        }
        wrong = replace(home, address=home.address / "a^b").explain()
        assert wrong is not None
        assert "`^`" in wrong

    def test_a_store_says_what_it_has(self, anywhere: Storage) -> None:
        answer = anywhere.port.open(anywhere.source).call()
        assert (answer is not None and answer.works) is anywhere.is_remote


@pytest.mark.parametrize(
    ("said", "shown", "passes"),
    [
        ("Generic error: no log\n   0: <unknown>", "Generic error: no log", False),
        (
            "Kernel error -> Generic S3 error\\n    \\x1b[31m↳\\x1b[0m tcp\\n  \\x1b[31m↳\\x1b[0m Connection refused (os error 111)\\n",
            "Kernel error -> Generic S3 error: Connection refused (os error 111)",
            True,
        ),
        ("No space left on device", "No space left on device", True),
        ("", "ValueError", False),
    ],
)
def test_what_the_library_says_is_one_line(said: str, shown: str, passes: bool) -> None:
    assert (explain_fault(ValueError(said)), is_passing_fault(ValueError(said))) == (shown, passes)
