"""Scratch in an object store, with a real server: what travels between the driver and the workers, and what is removed."""

from __future__ import annotations

import json
import os
import traceback
from datetime import timedelta
from pathlib import Path

import pytest

from dobonomodo.cli.main import run as run_command
from dobonomodo.problems.run import ScratchUnreachable
from dobonomodo.storage import Outputs, Storages
from dobonomodo.storage.access import PATIENCE
from dobonomodo.storage.fence import Fence
from dobonomodo.storage.links import Links
from dobonomodo.storage.transport import Transport
from tests.object_server import SECRET, ObjectServer
from tests.world import PERIOD, Folder, change_file, copy_workspace, failure


@pytest.fixture
def address(object_server: ObjectServer) -> str:
    return f"{object_server.fresh_bucket()}/scratch/_of=us"


@pytest.fixture
def run(address: str) -> Transport:
    return Transport.of(address).below("run-1")


def write(path: Path, text: str = "rows") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_file_is_uploaded_once(run: Transport, address: str, object_server: ObjectServer, tmp_path: Path) -> None:
    one, other = write(tmp_path / "a/same.parquet", "one"), write(tmp_path / "b/same.parquet", "other")
    brought = run.bring([one, other, one])
    assert brought[0] == brought[2] != brought[1]
    assert brought[0].startswith(f"{address.replace('s3://', 's3a://')}/run-1/inputs/")
    assert object_server.read(brought[1].replace("s3a://", "s3://")) == b"other"

    # What an earlier attempt uploaded is there for the next one, unless the file was written to.
    object_server.put(brought[0].replace("s3a://", "s3://"), b"ONE")
    object_server.remove(f"{address}/run-1/outputs")
    resumed = Transport.of(address).below("run-1")
    assert resumed.bring([one]) == brought[:1]
    assert object_server.read(brought[0].replace("s3a://", "s3://")) == b"ONE"
    write(one, "new")
    os.utime(one, ns=(1, 1))
    (again,) = resumed.bring([one])
    assert again != brought[0]
    assert object_server.read(again.replace("s3a://", "s3://")) == b"new"


def test_what_spark_wrote_is_downloaded(
    run: Transport, address: str, object_server: ObjectServer, tmp_path: Path
) -> None:
    there = f"{address}/run-1/outputs/3/20"
    files = {" part=0/part-0.parquet": b"zero", " part=1/part-0.parquet": b"one!", "part-0.parquet": b"none"}
    marks = {
        "_SUCCESS": b"",
        "_temporary/0/x/part-0.parquet": b"half",
        "_temporary/0/": b"",
        ".part-0.parquet.crc": b"x",
    }
    for name, content in {**files, **marks}.items():
        object_server.put(f"{there}/{name}", content)
    run.fetch("outputs/3/20", tmp_path / "own")
    found = {path.name: path.read_bytes() for path in (tmp_path / "own").iterdir()}
    assert found == {"0~part-0.parquet": b"zero", "1~part-0.parquet": b"one!", "part-0.parquet": b"none"}
    assert run.files("outputs/3/20") == ["part-0.parquet"] * 3

    # It is read where Spark wrote it, by whoever has the file under that name: another attempt, another output.
    before = object_server.keys(f"{address}/run-1")
    (tmp_path / "shared").mkdir()
    os.link(tmp_path / "own/1~part-0.parquet", tmp_path / "shared/1~part-0.parquet")
    spark = there.replace("s3://", "s3a://")
    for transport in (run, Transport.of(address).below("run-1")):
        assert transport.bring([tmp_path / "shared/1~part-0.parquet"]) == [f"{spark}/ part=1/part-0.parquet"]
    assert object_server.keys(f"{address}/run-1") == before
    # A file that was changed, or whose rows are gone there, is uploaded.
    (changed,) = run.bring([write(tmp_path / "shared/0~part-0.parquet", "another")])
    object_server.remove(there)
    (gone,) = Transport.of(address).below("run-1").bring([tmp_path / "own/0~part-0.parquet"])
    assert "/run-1/inputs/" in changed
    assert "/run-1/inputs/" in gone


def test_everything_of_a_run_is_removed(run: Transport, address: str, object_server: ObjectServer) -> None:
    """With the empty objects by which Hadoop marks folders, and nothing else."""
    mine = ["store", "inputs/a.parquet", "outputs/1/10/part.parquet", "verify/20/b.parquet"]
    marks = ["", "outputs/1/10/_temporary/0/", "inputs/"]
    other = ["run-10/inputs/a.parquet", "run-10/", "mine.txt"]
    for name in (*(f"run-1/{each}" for each in (*mine, *marks)), *other):
        object_server.put(f"{address}/{name}", b"" if name.endswith("/") else b"12345")
    root = Transport.of(address)
    assert root.names() == ["mine.txt", "run-1", "run-10"]
    assert run.names() == ["inputs", "outputs", "store", "verify"]
    left = run.find_leftover(kind="objects of a run", run="run-1")
    assert (left.place, left.bytes) == (f"{address}/run-1", 20)
    run.clear(but="verify")
    assert run.names() == ["verify"]
    run.clear(but="nothing")
    # Removing marks the folder above as one.
    assert {*object_server.keys(address)} - {""} == {*other}
    run.remove()
    left.remove()
    assert {*object_server.keys(address)} - {""} == {*other}
    assert root.names() == ["mine.txt", "run-10"]


def test_another_machine_downloads_what_was_staged(
    run: Transport, address: str, object_server: ObjectServer, tmp_path: Path
) -> None:
    """What an output staged at its destination is there or is not."""
    object_server.put(f"{address}/run-1/outputs/3/20/ part=1/part-0.parquet", b"rows")
    folder = tmp_path / ".dobo/runs/run-1"
    fence = Fence("store", "closing", PERIOD, 4)
    outputs = Outputs(
        Storages(tmp_path, {}), folder=folder, period=PERIOD, run="run-1", fence=fence, started=0.0, transport=run
    )
    staged = outputs.staged_in(folder / "outputs/3/20")
    # Of a download that was killed.
    write(folder / "outputs/3/20.part/0~part-0.parquet")
    (file,) = outputs.files_of(staged)
    assert Path(file) == folder / "outputs/3/20/1~part-0.parquet"
    assert Path(file).read_bytes() == b"rows"
    object_server.remove(f"{address}/run-1")
    assert outputs.files_of(staged) == (file,)
    assert outputs.files_of(outputs.staged_in(tmp_path / "lake/orders/dobo-run-1")) == ()


def test_the_last_change_is_that_of_the_newest_object(
    run: Transport, address: str, object_server: ObjectServer
) -> None:
    assert run.find_last_change("outputs") == 0
    object_server.put(f"{address}/run-1/outputs/1/a.parquet", b"old")
    object_server.age(f"{address}/run-1/outputs", timedelta(days=2))
    old = run.find_last_change("outputs")
    object_server.put(f"{address}/run-1/outputs/2/b.parquet", b"new")
    assert 2 * 86_400 - 60 < run.find_last_change("outputs") - old < 2 * 86_400 + 60
    assert run.find_last_change("outputs/1") == old


def test_a_file_is_put_where_one_says(
    run: Transport, address: str, object_server: ObjectServer, tmp_path: Path
) -> None:
    put = run.put("verify/20/a.parquet", write(tmp_path / "x.parquet"))
    assert put == f"{address.replace('s3://', 's3a://')}/run-1/verify/20/a.parquet"
    assert object_server.read(put.replace("s3a://", "s3://")) == b"rows"
    assert run.files("verify/20") == ["a.parquet"]
    left = run.find_leftover("verify", kind="objects of a run", run="run-1")
    assert (left.kind, left.place, left.run, left.bytes) == ("objects of a run", f"{address}/run-1/verify", "run-1", 4)
    left.remove()
    assert run.files("verify/20") == []


def test_what_spark_writes_later_is_read_where_it_is(
    run: Transport, address: str, object_server: ObjectServer, tmp_path: Path
) -> None:
    run.bring([write(tmp_path / "a.parquet")])
    object_server.put(f"{address}/run-1/outputs/3/20/part-0.parquet", b"rows")
    run.fetch("outputs/3/20", tmp_path / "own")
    (brought,) = run.bring([tmp_path / "own/part-0.parquet"])
    assert brought.endswith("/run-1/outputs/3/20/part-0.parquet")
    # Of no rows there may be no file.
    object_server.put(f"{address}/run-1/outputs/3/30/_SUCCESS", b"")
    for _ in range(2):
        run.fetch("outputs/3/30", tmp_path / "deep/none")
    assert list((tmp_path / "deep/none").iterdir()) == []


def test_what_was_removed_is_uploaded_again(run: Transport, object_server: ObjectServer, tmp_path: Path) -> None:
    file = write(tmp_path / "a.parquet")
    (brought,) = run.bring([file])
    run.remove("inputs")
    assert run.bring([file]) == [brought]
    assert object_server.read(brought.replace("s3a://", "s3://")) == b"rows"
    # An upload that was cut off is none.
    object_server.put(brought.replace("s3a://", "s3://"), b"cut")
    assert Transport(run.objects, run.prefix).bring([file]) == [brought]
    assert object_server.read(brought.replace("s3a://", "s3://")) == b"rows"


def test_notes(run: Transport) -> None:
    assert run.read_note("store") is None
    run.note("store", "größe")
    assert run.read_note("store") == "größe"


def test_a_store_that_refuses(run: Transport, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(PATIENCE, "0")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    for act in (
        lambda: run.bring([write(tmp_path / "a.parquet")]),
        lambda: run.put("x", write(tmp_path / "a.parquet")),
        lambda: run.fetch("outputs/1/10", tmp_path / "own"),
        lambda: run.note("store", "x"),
        lambda: run.remove(),
        lambda: run.names(),
    ):
        failed = failure(act)
        assert isinstance(failed.problem, ScratchUnreachable)
        assert failed.problem.address == str(run)
        assert failed.problem.detail.startswith("the object store did not answer")
        assert failed.retry_helps
        assert SECRET not in "".join(traceback.format_exception(failed))


@pytest.mark.parametrize(
    "name", ["plain.parquet", "_a.parquet", ".b.parquet", "c[1].parquet", "d*.parquet", "größe.parquet", "e f.parquet"]
)
def test_objects_have_plain_names(tmp_path: Path, object_server: ObjectServer, name: str) -> None:
    (tmp_path / name).write_text("rows")
    transport = Transport.of(f"{object_server.fresh_bucket()}/dobo").below("run")
    (address,) = Links(tmp_path / "links", transport).addresses([tmp_path / name])
    assert Path(address).name.removesuffix(".parquet").isalnum()
    assert object_server.read(address.replace("s3a://", "s3://")) == b"rows"
    assert not (tmp_path / "links").exists()


def _workspace(root: Path, scratch: str) -> Folder:
    return Folder(root).put("dobo.yaml", f'workspace: {{scratch: "{scratch}"}}\n')


def test_objects_of_runs_that_are_over_are_listed_and_removed(tmp_path: Path, object_server: ObjectServer) -> None:
    address = f"{object_server.fresh_bucket()}/dobo"
    workspace = _workspace(tmp_path, address).with_store().open()
    mine, others = "20260101-000000-aaaaaa", ("20260101-000000-bbbbbb", "20260101-000000-cccccc", "data")
    for run in (mine, *others):
        object_server.put(f"{address}/{run}/inputs/a.parquet", b"12345")
        object_server.put(f"{address}/{run}/outputs/1/10/_temporary/0/", b"")
    object_server.put(f"{address}/{mine}/store", workspace.store.id.encode())
    object_server.put(f"{address}/{others[0]}/store", b"another store")
    object_server.age(address, timedelta(days=400))

    listed = workspace.clean(dry_run=True)
    size = 5 + len(workspace.store.id)
    assert [(each.kind, each.place, each.run, each.bytes) for each in listed.leftovers] == [
        ("objects of a run", f"{address}/{mine}", mine, size)
    ]
    assert workspace.clean() == listed.__class__(listed.leftovers)
    assert {key.partition("/")[0] for key in object_server.keys(address)} - {""} == {*others}
    assert workspace.clean().leftovers == ()


def test_a_store_that_does_not_answer_is_reported(
    tmp_path: Path, object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is on this machine is removed all the same."""
    workspace = _workspace(tmp_path, "s3://bucket/dobo").with_store().open()
    folder = tmp_path / ".dobo/runs/20260101-000000-aaaaaa"
    folder.mkdir(parents=True)
    (folder / "store").write_text(workspace.store.id)
    (folder / "inputs").mkdir()
    monkeypatch.setenv(PATIENCE, "0")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    cleaned = workspace.clean()
    assert [each.place for each in cleaned.leftovers] == [str(folder)]
    assert not folder.exists()
    (problem,) = cleaned.problems
    assert isinstance(problem, ScratchUnreachable)
    del object_server


def test_the_doctor_tries_it(
    object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"{object_server.fresh_bucket()}/dobo"
    sales = copy_workspace("sales", tmp_path / "sales")
    monkeypatch.chdir(sales)

    def scratch() -> tuple[str, str]:
        run_command(["doctor", "--json"])
        checks = {each["check"]: each for each in json.loads(capsys.readouterr().out)["data"]}
        return checks["scratch"]["status"], checks["scratch"]["detail"]

    change_file(sales / "dobo.yaml", "{name: sales", f'{{name: sales, scratch: "{address}"')
    assert scratch()[0] == "ok"
    assert object_server.keys(address) == []
    monkeypatch.setenv(PATIENCE, "0")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    status, detail = scratch()
    assert (status, address in detail) == ("failed", True)
    change_file(sales / "dobo.yaml", "s3://", "hdfs://")
    assert scratch()[0] == "failed"
