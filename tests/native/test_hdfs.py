"""Files of HDFS: what is particular to them. The contract suite runs over them like over any other storage."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from dobonomodo.problems import Rejected
from dobonomodo.problems.run import OutputWrite
from dobonomodo.storage import Storages, WrittenOutput
from dobonomodo.storage.access import PATIENCE
from dobonomodo.storage.address import Address
from dobonomodo.storage.faults import is_passing
from dobonomodo.storage.hdfs import HdfsObjects
from dobonomodo.storage.objects import ObjectChangedError, Stamp, do_at_once
from tests.contract.storages import SEQ, Storage, arrow_table, failure, open_source
from tests.contract.test_storages import SIMPLE, make_storage, rows
from tests.local_scratch import addresses_of_spark
from tests.native.hdfs_server import HdfsServer
from tests.spark.test_many_rows import run_close
from tests.world import MONTHS, PERIOD, Folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.native

NAMES = ["a b", "*", "[a]{b}?", "x%20y", "größe-🧾", "a'b\"c", "a+b", "_x", ".x", "#", "~", "run_period=2026-01"]
POINTER = ".dobo-data/current.json"


@pytest.fixture
def address(hdfs_server: HdfsServer) -> Address:
    return Address.parse(hdfs_server.fresh_bucket())


@pytest.fixture
def objects(address: Address) -> HdfsObjects:
    return HdfsObjects.of(address)


@pytest.fixture
def parquet(tmp_path: Path, hdfs_server: HdfsServer) -> Storage:
    return make_storage("parquet in HDFS", tmp_path, None, lambda: hdfs_server)


def test_files_come_back_as_they_were(objects: HdfsObjects, address: Address, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(range(256)) * 40_000)
    base = address.key
    stamp = objects.upload(source, f"{base}/in/large")
    for name in NAMES:
        objects.put(f"{base}/in/names/{name}", name.encode())
    listed = objects.list(f"{base}/in")
    assert [each.key for each in listed] == [
        f"{base}/in/{key}" for key in ["large", *(f"names/{name}" for name in sorted(NAMES))]
    ]
    assert (listed[0].size, listed[0].etag) == (source.stat().st_size, stamp.etag)
    objects.download(f"{base}/in/large", tmp_path / "deep/er", size=listed[0].size, etag=stamp.etag)
    assert (tmp_path / "deep/er").read_bytes() == source.read_bytes()
    read = do_at_once(lambda name: objects.read(f"{base}/in/names/{name}"), NAMES)
    assert [found[0].decode() for found in read if found is not None] == NAMES
    objects.delete([f"{base}/in/large", f"{base}/in/nothing"])
    assert objects.find(f"{base}/in/large") is None
    assert objects.find(f"{base}/in/names") is None, "a folder is no file"
    assert objects.read(f"{base}/in/large") is None
    assert objects.hash(f"{base}/in/large") is None
    assert objects.list(f"{base}/in/lar") == []


def test_a_file_that_was_changed_is_not_downloaded(objects: HdfsObjects, address: Address, tmp_path: Path) -> None:
    key = f"{address.key}/rows"
    before = objects.put(key, b"12345")
    objects.put(key, b"54321")
    with pytest.raises(ObjectChangedError):
        objects.download(key, tmp_path / "rows", size=5, etag=before.etag)
    with pytest.raises(FileNotFoundError):
        objects.download(f"{key}/x", tmp_path / "rows", size=5, etag=before.etag)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_put_where_none_is(objects: HdfsObjects, address: Address) -> None:
    key = f"{address.key}/named.csv"
    done = do_at_once(lambda number: objects.put_if_match(key, b"%d" % number, None), range(8))
    (winner,) = [number for number, stamp in enumerate(done) if stamp is not None]
    found = objects.read(key)
    assert found == (b"%d" % winner, done[winner])
    assert objects.put_if_match(key, b"longer", Stamp("x")) is None
    assert objects.put_if_match(key, b"longer", found[1]) is not None
    assert [each.key for each in objects.list(address.key)] == [key]


class TestThePointer:
    def test_of_many_who_read_the_same_one_wins(self, objects: HdfsObjects, address: Address) -> None:
        key = f"{address.key}/{POINTER}"
        assert objects.read_pointer(key) is None
        stamp: Stamp | None = None
        for turn in range(6):
            contents = [b"%d" % number for number in range(8)]
            done = do_at_once(partial(objects.replace_pointer, key, stamp=stamp), contents)
            ((number, won),) = [(number, each) for number, each in enumerate(done) if each is not None]
            assert objects.read_pointer(key) == (b"%d" % number, won), turn
            assert objects.replace_pointer(key, b"late", stamp) is None
            stamp = won
        folders = {each.key.split("/")[-2] for each in objects.list(address.key)}
        assert folders == {"current", "current-states"}

    def test_no_change_is_lost_and_readers_always_find_one(self, objects: HdfsObjects, address: Address) -> None:
        """Everybody adds one to a number, as often as it takes, while others read it."""
        key, each = f"{address.key}/{POINTER}", 15
        seen: list[int] = []

        def add(_: int) -> None:
            for _ in range(each):
                while True:
                    found = objects.read_pointer(key)
                    content, stamp = found if found is not None else (b"0", None)
                    if objects.replace_pointer(key, b"%d" % (int(content) + 1), stamp) is not None:
                        break

        def read(_: int) -> None:
            while not seen or seen[-1] < 4 * each:
                found = objects.read_pointer(key)
                seen.append(int(found[0]) if found is not None else 0)

        with ThreadPoolExecutor(5) as pool:
            writers, reader = [pool.submit(add, number) for number in range(4)], pool.submit(read, 0)
            for done in (*writers, reader):
                done.result(timeout=600)
        assert objects.read_pointer(key) is not None
        assert seen == sorted(seen)
        assert seen[-1] == 4 * each

    def test_old_states_are_removed(self, objects: HdfsObjects, address: Address, hdfs_server: HdfsServer) -> None:
        key = f"{address.key}/{POINTER}"
        stamp = None
        for number in range(3):
            stamp = objects.replace_pointer(key, b"%d" % number, stamp)
        assert stamp is not None
        hdfs_server.age(str(address), timedelta(hours=2))
        later = objects.replace_pointer(key, b"3", stamp)
        assert later is not None
        states = {each.key.rpartition("/")[2] for each in objects.list(f"{address.key}/.dobo-data/current-states")}
        # Who has read the pointer before may be about to read the state that it named.
        assert states == {f"{stamp.etag}.json", f"{later.etag}.json"}
        assert objects.read_pointer(key) == (b"3", later)


class TestFaults:
    def test_what_goes_wrong_is_like_a_fault_of_a_disk(
        self, objects: HdfsObjects, address: Address, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(PATIENCE, "1")
        silent = HdfsObjects.of(Address.parse("hdfs://127.0.0.1:9/x"))
        with pytest.raises(OSError, match="did not answer") as unreachable:
            silent.list("x")
        assert is_passing(unreachable.value)
        with pytest.raises(OSError, match="InvalidPath") as invalid:
            objects.put(f"{address.key}/10:30", b"")
        assert invalid.value.errno == errno.EINVAL
        assert "at org.apache" not in "".join(traceback.format_exception(invalid.value))

    def test_who_may_not_write_is_told_so(
        self, address: Address, hdfs_server: HdfsServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("HADOOP_USER_NAME", "somebody")
        storage = Storage(tmp_path, open_source("parquet", path_prefix=str(address)), server=hdfs_server)
        failed = failure(lambda: storage.outputs().check(WrittenOutput(SEQ, storage.write(SIMPLE), SIMPLE)))
        assert isinstance(failed.problem, OutputWrite)
        assert "Permission denied: user=somebody" in failed.problem.detail

    def test_a_secret_is_of_no_use(self, address: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SECRET", "hunter2")
        source = open_source("parquet", credential_ref="env://SECRET", path_prefix=str(address))
        with pytest.raises(Rejected) as refusal:
            Storages(tmp_path, {source.id: source}).open(source).call()
        (problem,) = refusal.value.problems
        assert problem.code == "CREDENTIAL_NOT_FOUND"
        assert "hunter2" not in problem.message()


def test_readers_follow_the_pointer(parquet: Storage) -> None:
    """As the page on lake tables shows it."""
    parquet.put(rows("a", "b"), SIMPLE)
    server, address = parquet.server, parquet.address
    assert server is not None
    pointer = json.loads(server.read_pointer(address))
    manifest = json.loads(server.read(f"{address}/{pointer['tables']['out']['periods'][PERIOD]['manifest']}"))
    assert (manifest["table"], manifest["period"], len(manifest["files"])) == ("out", PERIOD, 2)
    assert parquet.see(SIMPLE) == rows("a", "b")


def test_a_killed_attempt_leaves_no_folders_when_it_is_cleaned(parquet: Storage, hdfs_server: HdfsServer) -> None:
    outputs, output = parquet.outputs(), WrittenOutput(SEQ, parquet.write(SIMPLE), SIMPLE)
    outputs.convert(output, parquet.stage_by_hand(outputs, arrow_table(SIMPLE, rows("a")), output), rows=1)
    (leftover,) = outputs.find_leftovers(output)
    leftover.remove()
    assert outputs.find_leftovers(output) == []
    below = [each.path for each in hdfs_server.client().list_status(f"/{Address.parse(parquet.address).key}", True)]
    assert not any("/out/" in path for path in below)


DEFINITIONS = """
datasource: {id: lake, type: parquet, options: {path_prefix: "ADDRESS"}}
---
datasource: {id: people, type: excel, options: {path_prefix: "ADDRESS"}}
---
resolver: {id: files, is_default: true, rules: [{strategy: {type: path, datasource_id: lake, path: "{{table_name}}"}}]}
---
dataset: {id: lines, main_table: {name: lines, columns: [{name: id, type: integer}, {name: value, type: string}]}}
---
project:
  id: close
  input_dataset_id: lines
  operations:
    - {seq: 20, type: output, arguments: {destination: {datasource_id: lake, table: one}, columns: [id, value]}}
    - {seq: 30, type: output, arguments: {destination: {datasource_id: lake, table: two}, columns: [id]}}
    - seq: 40
      type: output
      arguments: {destination: {datasource_id: people, file: "closed-{{period}}.xlsx", sheet: all}, columns: [id, value]}
"""


@pytest.mark.spark
def test_a_run_that_is_killed_is_completed(parquet: Storage, connect_url: str) -> None:
    parquet.plant(SIMPLE, rows("a", "b"), "lines")
    server, root, address = parquet.server, parquet.root, parquet.address
    assert server is not None
    folder = Folder.make(root, MONTHS, DEFINITIONS.replace("ADDRESS", address))
    folder.activate("close").close()

    def dobo(*arguments: str, failpoint: str = "") -> str:
        command = [sys.executable, "-m", "dobonomodo.cli", "-C", str(root), *arguments]
        done = subprocess.run(command, env={**os.environ, "DOBO_FAILPOINT": failpoint}, capture_output=True, text=True)
        assert done.returncode == (-9 if failpoint else 0), done.stderr
        return done.stdout

    assert f"{address} answers" in dobo("doctor")
    for place in ("publish.during", "publish.naming"):
        dobo("run", "close", "-p", PERIOD, "--remote", connect_url, failpoint=place)
        dobo("resume", "latest", "--remote", connect_url)
        assert parquet.see(SIMPLE, "one") == rows("a", "b")
        with server.copied(address, "two") as copies:
            assert [row["id"] for path in copies for row in pq.read_table(path).to_pylist()] == [1, 2]
        assert f"closed-{PERIOD}.xlsx" in server.keys(address)
    dobo("verify", "latest", "--remote", connect_url)


@pytest.mark.parametrize("small", [True, False])
def test_scratch_may_be_there(
    tmp_path: Path,
    spark: SparkSession,
    objects: HdfsObjects,
    address: Address,
    monkeypatch: pytest.MonkeyPatch,
    *,
    small: bool,
) -> None:
    """Spark reads and writes nothing but files of HDFS, and the results are those of a folder."""
    if not small:
        monkeypatch.setattr("dobonomodo.engine.size.SMALL_BYTES", 0)
    expected = run_close(tmp_path / "plain", spark, rows=100)
    with addresses_of_spark() as seen:
        found = run_close(tmp_path / "apart", spark, rows=100, settings=f', scratch: "{address}/scratch"')
    assert found == expected
    assert seen
    assert all(each.startswith(f"{address}/scratch/") for each in seen), seen
    assert objects.list(f"{address.key}/scratch") == []
    assert objects.names(f"{address.key}/scratch") == []
