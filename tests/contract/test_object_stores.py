"""What is particular to files in an object store: a pointer that readers follow, conditions, and servers that go away."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import INTEGER, TEXT
from dobonomodo.problems import Rejected
from dobonomodo.problems.problem import LISTED_AT_MOST
from dobonomodo.problems.run import DataLoad, InputChanged, OutputWrite
from dobonomodo.storage import Outputs, Storages, WrittenOutput, load_pin, load_stored, named_object
from dobonomodo.storage.access import PATIENCE
from dobonomodo.storage.file_storage import file_pin
from dobonomodo.storage.folder import GRACE_SECONDS
from dobonomodo.storage.target import Noted
from tests.contract.storages import SEQ, Storage, arrow_table, failure, open_source, publish
from tests.contract.test_storages import (
    FILES_IN_HDFS,
    FILES_IN_S3,
    SIMPLE,
    expire,
    make_storage,
    rows,
    server_for,
    unreadable,
    unwritable,
)
from tests.object_server import KEY, SECRET, ObjectServer
from tests.searching import tries


@pytest.fixture(params=[*FILES_IN_S3, *FILES_IN_HDFS])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return make_storage(request.param, tmp_path, None, server_for(request))


@pytest.fixture(params=FILES_IN_S3)
def in_s3(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return make_storage(request.param, tmp_path, None, server_for(request))


@pytest.fixture
def parquet(tmp_path: Path, object_server: ObjectServer) -> Storage:
    return make_storage("parquet in S3", tmp_path, None, lambda: object_server)


class Killed(BaseException):
    """What a failpoint raises here in place of a signal."""


def server_of(storage: Storage) -> ObjectServer:
    assert storage.server is not None
    return storage.server


def extracted(storage: Storage, *names: str) -> list[dict[str, Any]]:
    """The rows of Parquet files as they are extracted."""
    use, inputs = storage.use(SIMPLE, *names), storage.inputs(f"reading-{len(list(storage.root.rglob('*')))}")
    pins = inputs.extract([use], inputs.pin([use]))[use.key]
    files = [path for paths in inputs.files(use, pins) for path in paths]
    return [row for path in files for row in pq.ParquetFile(path).read(columns=["id", "value"]).to_pylist()]


class TestReading:
    def test_objects_of_others(self, parquet: Storage) -> None:
        parquet.plant(SIMPLE, rows("a"), "in/1")
        parquet.plant(SIMPLE, rows("b", start=2), "in/2/deep [er]")
        parquet.plant(SIMPLE, rows("hidden"), "in/_temporary")
        assert extracted(parquet, "in") == rows("a", "b")
        assert extracted(parquet, "in/2/deep [er]/rows.parquet") == rows("b", start=2)

    def test_a_table_is_found_with_its_periods(self, storage: Storage) -> None:
        storage.put(rows("a"), SIMPLE, table="deep/out")
        storage.put(rows("b", start=2), SIMPLE, table="deep/out", run="run-2", period="2026-02")
        storage.put(rows("c", start=3), SIMPLE, table="other")
        assert extracted(storage, "deep/out") == rows("a", "b")
        assert extracted(storage, "deep/out/run_period=2026-02") == rows("b", start=2)
        assert extracted(storage, "deep") == rows("a", "b")
        assert "2026-03" in unreadable(storage, SIMPLE, "deep/out/run_period=2026-03").detail

    def test_what_is_beside_a_missing_object_is_named(self, parquet: Storage) -> None:
        parquet.plant(SIMPLE, rows("a"), "orders/2026-01")
        assert unreadable(parquet, SIMPLE, "orders/2026-02").present == ("2026-01",)

    def test_published_tables_and_periods_are_beside_too(self, parquet: Storage) -> None:
        parquet.outputs().claim([output_of(parquet, table="claimed")])
        parquet.put(rows("a"), SIMPLE, table="orders")
        parquet.put(rows("b"), SIMPLE, table="deep/out", run="run-2", period="2026-02")
        parquet.plant_text("x", "files/x")
        assert unreadable(parquet, SIMPLE, "order").present == ("orders", "deep", "files")
        assert unreadable(parquet, SIMPLE, "deep/in").present == ("out",)
        assert unreadable(parquet, SIMPLE, "orders/run_period=2026-02").present == ("run_period=2026-01",)

    def test_what_is_beside_is_looked_for_in_the_nearest_folder_that_has_something(self, parquet: Storage) -> None:
        parquet.plant_text("x", "_temporary/x")
        assert unreadable(parquet, SIMPLE, "orders/2026/02/x").present == ()
        parquet.plant_text("x", "orders/_temporary/x")
        parquet.plant_text("x", "orders/2026/01/x")
        assert unreadable(parquet, SIMPLE, "orders/2026/02/x").present == ("01",)
        for number in range(LISTED_AT_MOST + 1):
            parquet.plant_text("x", f"{number:02}")
        beside = unreadable(parquet, SIMPLE, "sales/2026/02/x").present
        assert beside == tuple(f"{number:02}" for number in range(LISTED_AT_MOST))

    def test_all_of_a_bucket_is_read_together(self, tmp_path: Path, object_server: ObjectServer) -> None:
        source = open_source("parquet", path_prefix=object_server.fresh_bucket())
        storage = Storage(tmp_path, source, server=object_server)
        storage.put(rows("a"), SIMPLE, table="1/out")
        storage.plant(SIMPLE, rows("b", start=2), "2")
        storage.put(rows("c", start=3), SIMPLE, table="3")
        assert extracted(storage, ".") == rows("a", "b", "c")
        assert extracted(storage, "1") == extracted(storage, "1/out/run_period=2026-01") == rows("a")
        assert extracted(storage, "2") == rows("b", start=2)
        assert {"1", "2"} <= {*unreadable(storage, SIMPLE, "4").present}

    def test_a_table_that_no_run_has_published_is_not_there(self, parquet: Storage) -> None:
        parquet.outputs().claim([output_of(parquet, table="claimed")])
        parquet.put(rows("a"), SIMPLE, table="out")
        for name in ("claimed", "claimed/run_period=2026-01", "out/other=2026-01", "out/2026-01", "ou"):
            assert "does not exist" in unreadable(parquet, SIMPLE, name).detail
        parquet.plant(SIMPLE, rows("b"), "claimed")
        assert extracted(parquet, "claimed") == rows("b")

    def test_the_sizes_of_a_changed_object_are_named(self, parquet: Storage) -> None:
        parquet.plant_text("12345", "in/x")
        use, inputs = parquet.use(SIMPLE, "in"), parquet.inputs()
        pinned = inputs.pin([use])
        (file,) = file_pin(pinned[use.key][0]).files
        assert abs(file.modified / 1e9 - time.time()) < 600
        parquet.plant_text("1234567", "in/x")
        changed = f"`{parquet.address}/in/x` had 5 bytes, now 7"
        assert inputs.find_changes(pinned, listing=True) == (changed,)

    def test_files_without_a_header_are_read_with_the_columns_that_were_written(
        self, tmp_path: Path, object_server: ObjectServer
    ) -> None:
        csv = make_storage("csv in S3", tmp_path, None, lambda: object_server).with_options(has_header=False)
        turned: dict[str, Type] = {"value": TEXT, "id": INTEGER}
        csv.put(rows("a"), turned)
        csv.put(rows("b", start=2), SIMPLE, run="run-2", period="2026-02")
        assert extracted(csv, "out") == rows("a", "b")

    def test_columns_of_other_periods_may_be_missing(self, parquet: Storage) -> None:
        """But none of other tables, nor any of files that no run wrote."""
        more: dict[str, Type] = {**SIMPLE, "More": TEXT}
        parquet.put(rows("a"), SIMPLE, period="2026-01")
        parquet.put(rows("b", start=2), more, run="run-2", period="2026-02")
        parquet.put([], {**SIMPLE, "foreign": TEXT}, table="other")
        parquet.plant(SIMPLE, rows("c"), "in")

        def optional(name: str) -> tuple[str, ...]:
            use = parquet.use(SIMPLE, name)
            ((pin,),) = parquet.inputs().pin([use]).values()
            return file_pin(pin).optional

        for name in ("out", "out/run_period=2026-01"):
            assert optional(name) == ("id", "more", "value")
            parquet.extract(parquet.use(more, name))
        assert optional("in") == ()

    @pytest.mark.parametrize("gone", ["data.json", ".parquet"])
    def test_an_output_of_which_something_is_gone_is_not_kept(self, parquet: Storage, gone: str) -> None:
        stored = load_stored(parquet.put(rows("a", "b"), SIMPLE))
        store = f"{parquet.address}/.dobo-data/out"
        key = next(key for key in server_of(parquet).keys(store) if key.endswith(gone))
        bucket, _, folder = store.removeprefix("s3://").partition("/")
        server_of(parquet).client().delete_object(Bucket=bucket, Key=f"{folder}/{key}")
        assert parquet.port.of_record(stored).keep(stored, period="2026-01", run="run-1", seq=SEQ) is None

    def test_an_output_of_which_the_record_is_gone(self, parquet: Storage) -> None:
        stored = load_stored(parquet.put(rows("a"), SIMPLE))
        server_of(parquet).remove(f"{parquet.address}/.dobo-data/out")
        port = parquet.port.of_record(stored)
        with pytest.raises(FileNotFoundError) as missing:
            port.pin_output(stored, name="out", period="2026-01")
        assert missing.value.filename == f"{parquet.address}/.dobo-data/out/2026-01~run-1-{SEQ}-1/data.json"
        assert port.keep(stored, period="2026-01", run="run-1", seq=SEQ) is None

    def test_a_changed_object_is_not_read(self, storage: Storage) -> None:
        storage.plant(SIMPLE, rows("a"), "in")
        use, inputs = storage.use(SIMPLE, "in"), storage.inputs()
        pinned = inputs.pin([use])
        assert load_pin(json.loads(json.dumps(pinned[use.key][0].document()))) == pinned[use.key][0]
        assert inputs.find_changes(pinned, listing=True) == ()
        storage.plant(SIMPLE, rows("b"), "in")
        changed = f"`{storage.address}/in/rows.{storage.kind}` was changed"
        assert inputs.find_changes(pinned, listing=False) == (changed,)
        failed = failure(lambda: inputs.extract([use], pinned))
        assert isinstance(failed.problem, InputChanged)
        assert failed.problem.changes == (changed,)
        storage.plant(SIMPLE, rows("c"), "in/more")
        assert inputs.find_changes(inputs.pin([use]), listing=True) == ()
        assert len(inputs.find_changes(pinned, listing=True)) == 2
        storage.remove("in")
        assert inputs.find_changes(pinned, listing=True) == (changed.replace("was changed", "is gone"),)
        assert isinstance(failure(lambda: inputs.extract([use], pinned)).problem, InputChanged)

    def test_what_was_downloaded_is_not_downloaded_again(self, parquet: Storage) -> None:
        parquet.plant(SIMPLE, rows("a"), "in")
        use, inputs = parquet.use(SIMPLE, "in"), parquet.inputs()
        pinned = inputs.extract([use], inputs.pin([use]))
        parquet.remove("in")
        inputs.extract([use], pinned)

    def test_a_wrong_file_is_named_by_its_address(self, storage: Storage) -> None:
        storage.plant_text("id,value\n1,a\n2,b,c\n" if storage.kind == "csv" else "no parquet", "in/rows")
        problem = unreadable(storage, SIMPLE, "in")
        shown = f"{storage.address}/in/rows"
        assert shown in problem.message()
        assert str(storage.root) not in problem.message()


class TestWriting:
    def test_readers_follow_the_pointer(self, parquet: Storage) -> None:
        """As the page on object stores shows it."""
        parquet.put(rows("a", "b"), SIMPLE)
        server, address = server_of(parquet), parquet.address
        pointer = json.loads(server.read(f"{address}/.dobo-data/current.json"))
        manifest = json.loads(server.read(f"{address}/{pointer['tables']['out']['periods']['2026-01']['manifest']}"))
        assert (manifest["table"], manifest["period"], len(manifest["files"])) == ("out", "2026-01", 2)
        assert [each["rows"] for each in manifest["commits"]] == [2]
        assert parquet.see(SIMPLE) == rows("a", "b")

    def test_all_outputs_of_a_run_change_in_one_act(self, parquet: Storage) -> None:
        tables = ("one", "two", "three")
        for run in ("run-1", "run-2"):
            outputs = parquet.outputs(run=run)
            written = [
                WrittenOutput(number, parquet.write(SIMPLE, table=table), SIMPLE) for number, table in enumerate(tables)
            ]
            staged = [
                outputs.convert(each, parquet.stage_by_hand(outputs, arrow_table(SIMPLE, rows(run)), each), rows=1)
                for each in written
            ]
            with counted_changes(parquet) as states:
                outputs.publish([(each, rows_, 1, run) for each, rows_ in zip(written, staged, strict=True)])
            assert len(states) == 1, "one pointer, put once"
        assert [parquet.see(SIMPLE, table) for table in tables] == [rows("run-2")] * 3

    def test_many_writers_of_one_datasource_lose_nothing(self, parquet: Storage) -> None:
        count = tries(sample=6, full=40)

        def put(number: int) -> None:
            table, run, period = f"table-{number % 3}", f"run-{number}", f"p-{number}"
            parquet.put(rows(f"{number}"), SIMPLE, table=table, run=run, period=period)

        with ThreadPoolExecutor(count) as pool:
            list(pool.map(put, range(count)))
        seen = sorted(int(row["value"]) for table in range(3) for row in parquet.see(SIMPLE, f"table-{table}"))
        assert seen == list(range(count))

    def test_what_somebody_else_put_there_is_not_replaced(self, storage: Storage) -> None:
        storage.plant(SIMPLE, rows("a"), "out")
        assert "which no run wrote" in unwritable(lambda: storage.outputs().check(output_of(storage))).detail
        storage.plant_text("x", "file")
        assert "it is a file" in unwritable(lambda: storage.outputs().check(output_of(storage, table="file"))).detail

    def test_what_was_replaced_stays_for_an_hour_and_then_goes(self, storage: Storage) -> None:
        server = server_of(storage)
        for number in range(1, 5):
            storage.put(rows(str(number)), SIMPLE, run=f"run-{number}")
        assert len(versions(storage)) == 4
        expire(storage)
        storage.put(rows("5"), SIMPLE, run="run-5")
        assert versions(storage) == ["2026-01~run-4-10-1", "2026-01~run-5-10-1"]
        assert storage.see(SIMPLE) == rows("5")
        assert not [key for key in server.keys(storage.address) if "probe" in key]

    def test_what_was_replaced_stays_while_a_run_that_began_before_is_going_on(self, parquet: Storage) -> None:
        for number in range(1, 3):
            parquet.put(rows(str(number)), SIMPLE, run=f"run-{number}")
        server_of(parquet).age(parquet.address, timedelta(seconds=GRACE_SECONDS // 2))
        parquet.put(rows("3"), SIMPLE, run="run-3")
        expire(parquet)
        output = output_of(parquet)
        old = Outputs(
            parquet.port,
            folder=parquet.root / ".dobo/runs/run-4",
            period="2026-01",
            run="run-4",
            fence=parquet.outputs().fence,
            started=time.time() - 4 * GRACE_SECONDS,
        )
        publish(old, output, parquet.stage_by_hand(old, arrow_table(SIMPLE, rows("4")), output), rows=1, digest="d")
        assert len(versions(parquet)) == 4
        parquet.put(rows("5"), SIMPLE, run="run-5")
        assert versions(parquet) == [f"2026-01~run-{number}-{SEQ}-1" for number in (3, 4, 5)]

    def test_what_was_published_is_not_published_again(self, parquet: Storage) -> None:
        outputs, output = parquet.outputs(), output_of(parquet)
        staged = outputs.convert(output, parquet.stage_by_hand(outputs, arrow_table(SIMPLE, rows("a")), output), rows=1)
        assert outputs.find_commit(output) is None
        outputs.publish([(output, staged, 1, "d")])
        before, commit = server_of(parquet).keys(parquet.address), outputs.find_commit(output)
        assert commit is not None
        assert (commit.run, commit.seq, commit.rows, commit.fence) == ("run-1", SEQ, 1, 1)
        # A later attempt finds it done, and what it uploads is nothing.
        later = parquet.outputs(fence=2)
        assert later.convert(output, staged, rows=1) == staged
        later.claim([output])
        with counted_changes(parquet) as changes:
            later.publish([(output, staged, 1, "d")])
        assert changes == []
        assert server_of(parquet).keys(parquet.address) == before
        assert later.stored(output) == outputs.stored(output)

    def test_columns_that_cannot_be_read_together_are_refused(self, parquet: Storage) -> None:
        other: dict[str, Type] = {"id": INTEGER, "value": INTEGER}
        parquet.put(rows("a"), SIMPLE)

        def put(run: str, **more: Any) -> Any:
            return parquet.put([{"id": 1, "value": 1}], other, run=run, **more)

        def check(period: str, mode: str) -> None:
            output = WrittenOutput(SEQ, parquet.write(other, mode=mode), other)
            parquet.outputs(run="run-2", period=period).check(output)

        for period, mode in (("2026-01", "append"), ("2026-02", "replace")):
            assert "`value`" in unwritable(partial(check, period, mode)).detail
            assert "`value`" in unwritable(partial(put, "run-2", period=period, mode=mode)).detail
        assert parquet.see(SIMPLE) == rows("a")
        check("2026-01", "replace")
        put("run-3")
        assert parquet.see(other) == [{"id": 1, "value": 1}]

    def test_the_record_of_an_output_stays_when_rows_are_appended(self, parquet: Storage) -> None:
        record = parquet.put(rows("a"), SIMPLE, mode="append")
        parquet.put(rows("b", start=2), SIMPLE, run="run-2", mode="append")
        stored = parquet.outputs().stored(output_of(parquet))
        assert stored.document() == record
        inspected = port_of(parquet).inspect(stored, run="run-1", seq=SEQ)
        assert (inspected.changed, inspected.gone, inspected.files) == ((), (), 3)

    def test_appended_rows_stay_where_they_are(self, storage: Storage) -> None:
        for number in range(1, 4):
            storage.put(rows(str(number), start=number), SIMPLE, run=f"run-{number}", mode="append")
        expire(storage)
        storage.put(rows("4", start=4), SIMPLE, run="run-4", mode="append")
        assert len(versions(storage)) == 4
        assert storage.see(SIMPLE) == rows("1", "2", "3", "4")

    def test_what_a_killed_run_uploaded_is_a_leftover(self, storage: Storage) -> None:
        outputs, output = storage.outputs(), output_of(storage)
        staged = storage.stage_by_hand(outputs, arrow_table(SIMPLE, rows("lost")), output)
        outputs.convert(output, staged, rows=1)
        (leftover,) = outputs.find_leftovers(output)
        assert leftover.place.startswith(storage.address)
        assert leftover.bytes > 0
        leftover.remove()
        assert outputs.find_leftovers(output) == []
        publish(outputs, output, staged, rows=1, digest="d")
        assert outputs.find_leftovers(output) == []
        assert storage.see(SIMPLE) == rows("lost")

    def test_what_was_uploaded_and_is_gone_is_uploaded_again(self, parquet: Storage) -> None:
        outputs, output = parquet.outputs(), output_of(parquet)
        staged = parquet.stage_by_hand(outputs, arrow_table(SIMPLE, rows("a", "b")), output)
        staged = outputs.convert(output, staged, rows=2)
        (leftover,) = outputs.find_leftovers(output)
        leftover.remove()
        outputs.publish([(output, staged, 2, "d")])
        assert parquet.see(SIMPLE) == rows("a", "b")
        # What an attempt left behind before it began again is no data.
        other = parquet.outputs(run="run-2")
        parquet.plant_text("x", f".dobo-data/out/2026-01~run-2-{SEQ}-1/data/half.parquet")
        publish(other, output, parquet.stage_by_hand(other, arrow_table(SIMPLE, rows("c")), output), rows=1, digest="d")
        assert not [key for key in server_of(parquet).keys(parquet.address) if "half" in key]

    def test_leftovers_are_those_of_this_attempt_and_earlier_ones(self, parquet: Storage) -> None:
        output = output_of(parquet)
        for run, fence, seq in (("run-1", 1, SEQ), ("run-1", 2, SEQ), ("run-1", 1, SEQ + 1), ("run-10", 1, SEQ)):
            outputs, written = parquet.outputs(run=run, fence=fence), replace(output, seq=seq)
            staged = parquet.stage_by_hand(outputs, arrow_table(SIMPLE, rows("lost")), written)
            outputs.convert(written, staged, rows=1)
        store = f"{parquet.address}/.dobo-data/out"

        def leftovers(fence: int) -> list[str]:
            return [each.place for each in parquet.outputs(fence=fence).find_leftovers(output)]

        assert leftovers(1) == [f"{store}/2026-01~run-1-{SEQ}-1"]
        assert leftovers(2) == [f"{store}/2026-01~run-1-{SEQ}-{fence}" for fence in (1, 2)]
        (first, _) = parquet.outputs(fence=2).find_leftovers(output)
        sizes = [len(server_of(parquet).read(f"{first.place}/{key}")) for key in server_of(parquet).keys(first.place)]
        assert first.bytes == sum(sizes)
        first.remove()
        assert leftovers(2) == [f"{store}/2026-01~run-1-{SEQ}-2"]

    def test_a_destination_notes_the_history(self, parquet: Storage) -> None:
        output, outputs = output_of(parquet), parquet.outputs()
        head = Noted("store", 7, "hash")
        staged = parquet.stage_by_hand(outputs, arrow_table(SIMPLE, rows("a")), output)
        outputs.publish([(output, outputs.convert(output, staged, rows=1), 1, "d")], head=head)
        parquet.put(rows("b"), SIMPLE, run="run-2", period="2026-02")
        stored = outputs.stored(output)
        inspect = partial(port_of(parquet).inspect, stored, run="run-1", seq=SEQ)
        assert (inspect().heads, inspect().changed, inspect().files) == ((head,), (), 3)
        # What of another output cannot be read is no fault of this one's files, and is said.
        (manifest,) = [key for key in server_of(parquet).keys(parquet.address) if "run-2" in key and "manifest-" in key]
        parquet.plant_text("{}", manifest)
        assert (inspect().heads, inspect().files) == ((head,), 3)
        assert inspect().changed == (f"`{parquet.address}/{manifest}` cannot be read",)
        older = load_stored({**stored.document(), "hashes": None, "manifest": None})
        found = port_of(parquet).inspect(older, run="run-1", seq=SEQ)
        assert (found.files, found.gone) == (0, ())

    def test_an_audit_finds_what_was_changed(self, storage: Storage) -> None:
        stored = load_stored(storage.put(rows("a", "b"), SIMPLE))
        port = Storages(storage.root, {storage.source.id: storage.source}).of_record(stored)
        inspect = partial(port.inspect, stored, run="run-1", seq=SEQ)
        assert (inspect().changed, inspect().gone, inspect().files) == ((), (), 3)
        one, two = server_of(storage).list_files(storage.address, "out")
        server_of(storage).put(one, b"other")
        server_of(storage).put(f"{one}.more", b"more")
        assert inspect().changed == (
            f"`{one}` is not what the run wrote",
            f"`{one}.more` was put there by somebody else",
        )
        server_of(storage).remove(two.rpartition("/")[0])
        assert len(inspect().gone) == 2

    def test_the_first_rows_are_shown(self, storage: Storage) -> None:
        stored = load_stored(storage.put(rows("a", "b", "c"), SIMPLE))
        port = Storages(storage.root, {storage.source.id: storage.source}).of_record(stored)
        assert port.sample(stored, SIMPLE, 3) == rows("a", "b", "c")

    def test_a_file_with_a_name_of_its_own(self, tmp_path: Path, object_server: ObjectServer) -> None:
        csv = make_storage("csv in S3", tmp_path, None, lambda: object_server)
        outputs = partial(put_named, csv, "reports/orders.csv")
        outputs(rows("a"), run="run-1")
        assert object_server.read(f"{csv.address}/reports/orders.csv").splitlines()[1:] == [b'1,"a"']
        outputs(rows("b"), run="run-2")
        assert object_server.read(f"{csv.address}/reports/orders.csv").splitlines()[1:] == [b'1,"b"']
        stored = csv.outputs(run="run-2").stored(named_output(csv, "reports/orders.csv"))
        inspect = partial(Storages(csv.root, {csv.source.id: csv.source}).inspect_named, stored)
        assert (inspect().changed, inspect().gone, inspect().files) == ((), (), 1)
        csv.plant_text("mine", "reports/orders.csv")
        assert inspect().changed == (f"`{csv.address}/reports/orders.csv` is not what the run wrote",)
        # Earlier versions have the hash in the mark alone.
        older = load_stored({**stored.document(), "named_sha256": None})
        assert Storages(csv.root, {csv.source.id: csv.source}).inspect_named(older).changed == inspect().changed
        assert "not as a run wrote it" in unwritable(lambda: outputs(rows("c"), run="run-3")).detail
        assert object_server.read(f"{csv.address}/reports/orders.csv") == b"mine"
        destination = replace(csv.write(SIMPLE).destination, file="reports/orders.csv")
        output = WrittenOutput(SEQ, replace(csv.write(SIMPLE), destination=destination), SIMPLE)
        assert "not as a run wrote it" in unwritable(lambda: csv.outputs(run="run-3").check(output)).detail
        # What is done needs no rows that were staged.
        shutil.rmtree(csv.root / ".dobo/staged-run-2")
        done = csv.outputs(run="run-2")
        staged = done.staged_in(csv.root / ".dobo/staged-run-2/rows")
        done.publish([(output, staged, 1, "run-2")])
        assert object_server.read(f"{csv.address}/reports/orders.csv") == b"mine"
        # An output is published once people find its file.
        assert csv.outputs(run="run-2").find_commit(output) is not None
        (mark,) = [key for key in object_server.keys(csv.address) if "run-2" in key and key.endswith("/named.json")]
        csv.plant_text(object_server.read(f"{csv.address}/{mark}").replace(b"true", b"false"), mark)
        assert csv.outputs(run="run-2").find_commit(output) is None

    def test_a_named_file_is_complete_or_somebody_elses(
        self, tmp_path: Path, object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        csv = make_storage("csv in S3", tmp_path, None, lambda: object_server)
        address = f"{csv.address}/reports/orders.csv"
        put = partial(put_named, csv, "reports/orders.csv")
        put(rows("a"), run="run-1")
        before = object_server.read(address)

        def is_published(run: str) -> bool:
            return csv.outputs(run=run).find_commit(named_output(csv, "reports/orders.csv")) is not None

        def kill(*moment: object) -> None:
            del moment
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(named_object, "reach", kill)
            with pytest.raises(Killed):
                put(rows("b"), run="run-2")
        assert (object_server.read(address), is_published("run-2")) == (before, False)
        with monkeypatch.context() as patch:
            # The file has its name, and nobody has noted it yet.
            patch.setattr(named_object, "reach", lambda name: patch.setattr(named_object.NamedObject, "_mark", kill))
            with pytest.raises(Killed):
                put(rows("b"), run="run-2")
        assert (object_server.read(address) != before, is_published("run-2")) == (True, False)
        put(rows("b"), run="run-2")
        assert (object_server.read(address).splitlines()[1:], is_published("run-2")) == ([b'1,"b"'], True)
        # Somebody saves the file at the very moment at which it is to be replaced.
        with monkeypatch.context() as patch:
            patch.setattr(named_object, "reach", lambda name: object_server.put(address, b"mine"))
            assert "not as a run wrote it" in unwritable(lambda: put(rows("c"), run="run-3")).detail
        assert (object_server.read(address), is_published("run-3")) == (b"mine", False)

    def test_a_named_file_is_not_inside_of_a_table(self, tmp_path: Path, object_server: ObjectServer) -> None:
        csv = make_storage("csv in S3", tmp_path, None, lambda: object_server)
        inside = named_output(csv, ".dobo-data/out/orders.csv")
        assert "inside the folder of a table" in unwritable(lambda: csv.outputs().check(inside)).detail
        csv.outputs().check(named_output(csv, "a.dobo-data/orders.csv"))

    def test_workbooks(self, tmp_path: Path, object_server: ObjectServer) -> None:
        address = f"{object_server.fresh_bucket()}/books"
        excel = Storage(tmp_path, open_source("excel", path_prefix=address), server=object_server)
        excel.plant(SIMPLE, rows("a", "b"), "in")
        assert extracted(excel, "in") == rows("a", "b")
        put_named(excel, "report.xlsx", rows("c"), run="run-1")
        assert object_server.read(f"{address}/report.xlsx").startswith(b"PK")
        assert excel.see(SIMPLE) == rows("c")
        put_named(excel, "report.xlsx", rows("d"), run="run-2")
        assert extracted(excel, "out") == rows("d")

    def test_a_server_that_ignores_conditions_is_refused(
        self, parquet: Storage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = server_of(parquet).app
        inner = app.app

        def without_conditions(environment: dict[str, Any], start_response: Any) -> Any:
            environment.pop("HTTP_IF_NONE_MATCH", None)
            return inner(environment, start_response)

        monkeypatch.setattr(app, "app", without_conditions)
        assert "`If-None-Match`" in unwritable(lambda: parquet.outputs().check(output_of(parquet))).detail


class TestServers:
    def test_a_server_that_does_not_answer(self, storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(PATIENCE, "0.1")
        is_hdfs = storage.address.startswith("hdfs:")
        nowhere = {"path_prefix": "hdfs://127.0.0.1:9/x"} if is_hdfs else {"endpoint": "http://127.0.0.1:9"}
        away = storage.with_options(**nowhere)
        reading = failure(lambda: away.inputs().pin([away.use(SIMPLE, "in")]))
        assert (type(reading.problem), reading.retry_helps) == (DataLoad, True)
        writing = failure(lambda: away.outputs().check(output_of(away)))
        assert isinstance(writing.problem, OutputWrite)
        assert (writing.problem.destination, writing.retry_helps) == (f"{away.address}/out", True)
        assert not writing.problem.detail.startswith("[Errno")
        answer = port_of(away).call()
        assert answer is not None
        assert (answer.works, "did not answer" in answer.detail) == (False, True)

    def test_a_bucket_that_is_not_there(self, in_s3: Storage) -> None:
        other = in_s3.with_options(path_prefix="s3://bucket-that-is-not-there/x")
        assert "NoSuchBucket" in unwritable(lambda: other.outputs().check(output_of(other))).detail

    def test_a_store_says_what_it_has(self, storage: Storage) -> None:
        storage.plant(SIMPLE, rows("a"), "in")
        answer = port_of(storage).call()
        assert answer is not None
        assert answer.works
        assert answer.detail.endswith(" answers, 1 object")

    def test_a_secret_that_the_datasource_refers_to(
        self, in_s3: Storage, monkeypatch: pytest.MonkeyPatch, object_server: ObjectServer
    ) -> None:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
            monkeypatch.delenv(name)
        options = {**in_s3.source.options, "endpoint": object_server.endpoint, "region": "us-east-1"}
        source = open_source(in_s3.kind, credential_ref="env://KEYS", **options)
        referring = replace(in_s3, source=source)
        monkeypatch.setenv("KEYS", f"{KEY}:{SECRET}")
        record = referring.put(rows("a"), SIMPLE)
        assert SECRET not in json.dumps(record)
        assert referring.see(SIMPLE) == rows("a")
        for wrong in ("", "no colon"):
            monkeypatch.setenv("KEYS", wrong)
            with pytest.raises(Rejected) as refused:
                referring.inputs().pin([referring.use(SIMPLE)])
            assert [problem.code for problem in refused.value.problems] == ["CREDENTIAL_NOT_FOUND"]


def port_of(storage: Storage) -> Any:
    return Storages(storage.root, {storage.source.id: storage.source}).open(storage.source)


def output_of(storage: Storage, *, table: str = "out") -> WrittenOutput:
    return WrittenOutput(SEQ, storage.write(SIMPLE, table=table), SIMPLE)


def versions(storage: Storage) -> list[str]:
    keys = server_of(storage).keys(f"{storage.address}/.dobo-data/out")
    return sorted({key.partition("/")[0] for key in keys})


def named_output(storage: Storage, file: str) -> WrittenOutput:
    destination = replace(storage.write(SIMPLE).destination, file=file)
    return WrittenOutput(SEQ, replace(storage.write(SIMPLE), destination=destination), SIMPLE)


def put_named(storage: Storage, file: str, found: Any, *, run: str) -> None:
    output, outputs = named_output(storage, file), storage.outputs(run=run)
    folder = storage.root / ".dobo" / f"staged-{run}" / "rows"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(found), folder / "part-0.parquet")
    publish(outputs, output, outputs.staged_in(folder), rows=len(found), digest=run)


@contextmanager
def counted_changes(storage: Storage) -> Iterator[list[str]]:
    """The requests that replaced the pointer."""
    app, seen = server_of(storage).app, []
    inner = app.app

    def counting(environment: dict[str, Any], start_response: Any) -> Any:
        if environment["REQUEST_METHOD"] == "PUT" and environment["PATH_INFO"].endswith("current.json"):
            seen.append(environment["PATH_INFO"])
        return inner(environment, start_response)

    app.app = counting
    try:
        yield seen
    finally:
        app.app = inner
