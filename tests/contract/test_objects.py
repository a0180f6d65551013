from __future__ import annotations

import hashlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from dobonomodo.storage import object_pointer
from dobonomodo.storage.access import PATIENCE, Access
from dobonomodo.storage.address import Address
from dobonomodo.storage.executors import Limits
from dobonomodo.storage.faults import is_passing
from dobonomodo.storage.kept import hash_file
from dobonomodo.storage.object_copies import Copy, Uploaded, download_all, upload_all
from dobonomodo.storage.object_pointer import ObjectPointer, State, TableState
from dobonomodo.storage.object_store import StoreObjects
from dobonomodo.storage.objects import ObjectChangedError, Stamp, do_at_once
from tests.object_server import KEY, SECRET, ObjectServer

HURTFUL = [
    "a b",
    "*",
    "[a]{b}?",
    "x%20y",
    "größe-🧾",
    "a'b\"c",
    "back\\slash",
    "a+b",
    "10:30",
    "_x",
    ".x",
    "#",
    "~",
    "run_period=2026-01",
]


@pytest.fixture
def objects(object_server: ObjectServer) -> StoreObjects:
    return StoreObjects.of(Address.parse(object_server.fresh_bucket()), Access())


def test_objects_come_back_as_they_were(objects: StoreObjects, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(range(256)) * 40_000)
    stamp = objects.upload(source, "in/large")
    for name in HURTFUL:
        objects.put(f"in/names/{name}", name.encode())
    listed = objects.list("in")
    assert [each.key for each in listed] == ["in/large", *(f"in/names/{name}" for name in sorted(HURTFUL))]
    assert (listed[0].size, listed[0].etag) == (source.stat().st_size, stamp.etag)
    objects.download("in/large", tmp_path / "deep/er", size=listed[0].size, etag=stamp.etag)
    assert (tmp_path / "deep/er").read_bytes() == source.read_bytes()
    read = do_at_once(lambda name: objects.read(f"in/names/{name}"), HURTFUL)
    assert [found[0].decode() for found in read if found is not None] == HURTFUL
    objects.delete(["in/large", "in/nothing"])
    assert objects.find("in/large") is None
    assert objects.read("in/large") is None
    assert objects.list("in/lar") == []


def test_an_object_is_replaced_only_by_whoever_read_it(objects: StoreObjects) -> None:
    first = objects.put_if_match("pointer", b"1", None)
    assert first is not None
    assert objects.put_if_match("pointer", b"2", None) is None
    second = objects.put_if_match("pointer", b"2", first)
    assert second is not None
    assert objects.put_if_match("pointer", b"3", first) is None
    assert objects.read("pointer") == (b"2", second)
    assert objects.put_if_match("nowhere", b"3", Stamp(first.etag)) is None


def test_one_of_many_wins(objects: StoreObjects) -> None:
    before = objects.put("pointer", b"0")
    done = do_at_once(lambda number: objects.put_if_match("pointer", str(number).encode(), before), range(1, 9))
    (winner,) = [number for number, stamp in enumerate(done, 1) if stamp is not None]
    read = objects.read("pointer")
    assert read is not None
    assert read[0] == str(winner).encode()


def test_an_object_that_was_changed_is_not_downloaded(objects: StoreObjects, tmp_path: Path) -> None:
    before = objects.put("rows", b"12345")
    objects.put("rows", b"54321")
    with pytest.raises(ObjectChangedError):
        objects.download("rows", tmp_path / "rows", size=5, etag=before.etag)
    assert list(tmp_path.iterdir()) == []


def test_a_pointer_is_changed_by_one_after_the_other(objects: StoreObjects, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever finds it changed begins again, until that takes too long."""
    pointer, begun = ObjectPointer(objects, Address.parse(f"{objects.uri('lake')}")), []

    def add(name: str, others: int, state: State) -> State:
        if others:
            pointer.change(lambda found: found.having(f"other-{len(found.tables)}", TableState({"p": "x"})))
        return state.having(name, TableState({"p": "x"}))

    assert pointer.read() == (State(), None)
    left = iter([1, 1, 0])
    pointer.change(lambda state: add("mine", next(left), state), before=lambda: begun.append(1))
    assert (sorted(pointer.read()[0].tables), len(begun)) == (["mine", "other-0", "other-1"], 3)
    before = pointer.read()
    pointer.change(lambda state: add("mine", 0, state), before=lambda: begun.append(1))
    assert (pointer.read(), len(begun)) == (before, 3)
    monkeypatch.setattr(object_pointer, "_PATIENCE_SECONDS", 0.2)
    with pytest.raises(OSError, match="others change it all the time") as late:
        pointer.change(lambda state: add("late", 1, state))
    assert late.value.filename == f"{objects.uri('lake')}/.dobo-data/current.json"
    assert "late" not in pointer.read()[0].tables


def test_an_object_is_replaced_in_a_bucket_that_keeps_versions(
    objects: StoreObjects, object_server: ObjectServer
) -> None:
    status = {"Status": "Enabled"}
    object_server.client().put_bucket_versioning(Bucket=objects.bucket.bucket, VersioningConfiguration=status)
    first = objects.put("pointer", b"1")
    assert first.version is not None
    second = objects.put_if_match("pointer", b"2", first)
    assert second is not None
    assert objects.put_if_match("pointer", b"3", first) is None
    assert objects.read("pointer") == (b"2", second)


def test_a_listing_of_a_whole_bucket(objects: StoreObjects) -> None:
    assert (objects.list(""), objects.look(""), objects.names("")) == ([], [], [])
    objects.put("a/b/c", b"123")
    objects.put("d", b"4")
    assert [(each.key, each.size) for each in objects.list("")] == [("a/b/c", 3), ("d", 1)]
    assert objects.look("") == objects.list("")
    assert objects.look("a") == objects.list("a") == objects.list("a/b")
    assert (objects.names(""), objects.names("a"), objects.names("d")) == (["a", "d"], ["b"], [])
    assert objects.hash("d") == hashlib.sha256(b"4").hexdigest()
    assert (objects.hash("e"), objects.read_pointer("e")) == (None, None)
    objects.delete([])
    objects.delete_tree("a")
    assert [each.key for each in objects.list("")] == ["d"]


def test_what_goes_wrong_is_like_a_fault_of_a_disk(
    object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bucket = Address.parse(object_server.fresh_bucket())
    with pytest.raises(FileNotFoundError, match="NoSuchKey"):
        StoreObjects.of(bucket, Access()).download("x", tmp_path / "x", size=1, etag="x")
    with pytest.raises(FileNotFoundError, match="NoSuchBucket") as missing:
        StoreObjects.of(Address("s3", "bucket-that-is-not-there"), Access()).list("x")
    assert not is_passing(missing.value)
    monkeypatch.setenv(PATIENCE, "0.2")
    silent = StoreObjects.of(bucket, Access(endpoint="http://127.0.0.1:9"))
    with pytest.raises(OSError, match="did not answer") as unreachable:
        silent.list("x")
    assert is_passing(unreachable.value)
    shown = "".join(traceback.format_exception(unreachable.value)) + repr(Access(secret=f"{KEY}:{SECRET}"))
    assert SECRET not in shown
    assert KEY not in shown


@pytest.mark.parametrize(
    ("status", "code"),
    [(403, "AccessDenied"), (403, "RequestTimeTooSkewed"), (401, "Other"), (400, "InvalidAccessKeyId")],
)
def test_a_store_that_refuses_by_whatever_code(monkeypatch: pytest.MonkeyPatch, status: int, code: str) -> None:
    monkeypatch.setenv(PATIENCE, "0")
    with answering(status, f"<Error><Code>{code}</Code><Message>no</Message></Error>") as endpoint:
        access = Access(endpoint=endpoint, region="eu-central-1", secret=f"{KEY}:{SECRET}")
        with pytest.raises(PermissionError, match="refuses") as refused:
            StoreObjects.of(Address("s3", "bucket"), access).put("x", b"")
    assert code in str(refused.value)
    assert refused.value.filename == "s3://bucket/x"


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (400, "<Error><Code>Odd</Code><Message>not so</Message></Error>", OSError, "did not answer: Odd: not so"),
        (400, "<Error><Code>Odd</Code></Error>", OSError, "did not answer: Odd"),
        (400, "", OSError, "did not answer: 400 Bad Request"),
        (403, "", PermissionError, "refuses: 403 Forbidden"),
        (404, "", FileNotFoundError, "404 Not Found"),
    ],
)
def test_what_a_store_says_is_passed_on(
    monkeypatch: pytest.MonkeyPatch, status: int, body: str, kind: type[OSError], said: str
) -> None:
    monkeypatch.setenv(PATIENCE, "0")
    with answering(status, body) as endpoint:
        access = Access(endpoint=endpoint, region="eu-central-1", secret=f"{KEY}:{SECRET}")
        with pytest.raises(kind) as failed:
            StoreObjects.of(Address("s3", "bucket"), access).put("x", b"")
    assert (type(failed.value), failed.value.filename) == (kind, "s3://bucket/x")
    assert (failed.value.strerror or "").endswith(said)


@contextmanager
def answering(status: int, body: str) -> Iterator[str]:
    """A server that gives every request the same answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_a_profile_has_keys_and_an_address(
    object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bucket = Address.parse(object_server.fresh_bucket())
    (tmp_path / "credentials").write_text(f"[other]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
    (tmp_path / "config").write_text(
        f"[profile other]\nregion = eu-central-1\nendpoint_url = {object_server.endpoint}\n"
    )
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_REGION"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_PROFILE", "other")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    StoreObjects.of(bucket, Access()).put("x", b"by a profile")
    carried = StoreObjects.of(bucket, Access()).for_tasks()
    for name in ("AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.delenv(name)
    assert carried.read("x") is not None
    assert SECRET not in repr(carried)
    named = Access(endpoint=object_server.endpoint, region="eu-central-1", secret=f"{KEY}:{SECRET}")
    assert StoreObjects.of(bucket, named).read("x") is not None


def test_another_machine_gets_the_keys_that_we_have(
    object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = Address.parse(object_server.fresh_bucket())
    own = StoreObjects.of(bucket, Access())
    own.put("x", b"")
    carried = own.for_tasks()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_REGION"):
        monkeypatch.delenv(name)
    assert carried.find("x") is not None
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "else")
    named = Access(endpoint=object_server.endpoint, secret=f"{KEY}:{SECRET}")
    assert StoreObjects.of(bucket, named).for_tasks().access.secret == f"{KEY}:{SECRET}"


def test_a_profile_says_which_program_has_the_keys(
    object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bucket = Address.parse(object_server.fresh_bucket())
    answer = {"Version": 1, "AccessKeyId": KEY, "SecretAccessKey": SECRET}
    (tmp_path / "keys.json").write_text(json.dumps(answer))
    show = f"{sys.executable} -c 'print(open(\"{tmp_path / 'keys.json'}\").read())'"
    (tmp_path / "config").write_text(f"[profile asks]\ncredential_process = {show}\n[profile odd]\nregion = here\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    # No other machine is asked for its role.
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv(PATIENCE, "0")
    monkeypatch.setenv("AWS_PROFILE", "asks")
    StoreObjects.of(bucket, Access()).put("x", b"by a program")
    found = StoreObjects.of(bucket, Access(secret=f"{KEY}:{SECRET}")).read("x")
    assert found is not None
    assert found[0] == b"by a program"
    monkeypatch.setenv("AWS_PROFILE", "odd")
    with pytest.raises(OSError, match="the object store"):
        StoreObjects.of(bucket, Access()).put("x", b"by nobody")


class Here:
    """Executors in this process, which do all that they are asked or nothing."""

    def __init__(self, *, able: bool = True, least: int = 0, before: Callable[[], object] = int) -> None:
        self.limits = Limits.of(least)
        self._able, self._before = able, before
        self.done: list[Any] = []

    def do(self, work: Callable[[Any], Any], things: Sequence[Any]) -> list[Any] | None:
        self._before()
        self.done = [work(each) for each in things] if self._able else []
        return self.done if self._able else None


@pytest.fixture
def copies(objects: StoreObjects, tmp_path: Path) -> list[Copy]:
    """Three objects, and where they go."""
    found = []
    for number in range(3):
        content = b"x" * (10 + number)
        stamp = objects.put(f"in/{number}", content)
        found.append(Copy(f"in/{number}", tmp_path / f"copies/{number}/x", len(content), stamp.etag))
    return found


def contents(copies: Sequence[Copy]) -> list[int]:
    return [len(each.path.read_bytes()) for each in copies]


@pytest.mark.parametrize(("least", "asked"), [(0, 3), (32, 3), (33, 0)])
def test_executors_download_what_is_large(objects: StoreObjects, copies: list[Copy], least: int, asked: int) -> None:
    executors = Here(least=least)
    download_all(objects, copies, executors)
    assert executors.done == [True] * asked
    assert contents(copies) == [10, 11, 12]


def test_what_executors_cannot_download_is_downloaded_here(
    objects: StoreObjects, copies: list[Copy], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    download_all(objects, copies, Here(able=False))
    assert contents(copies) == [10, 11, 12]

    # One does not see a folder of ours, and of another machine is a file of the same name.
    class Elsewhere(Here):
        def do(self, work: Callable[[Any], Any], things: Sequence[Any]) -> list[Any] | None:
            away = [each._replace(path=tmp_path / "away" / each.path.name) for each in things[:1]]
            done = [*(super().do(work, away) or ()), *(super().do(work, things[1:]) or ())]
            things[1].path.unlink()
            things[2].path.write_bytes(b"cut")
            self.done = done
            return done

    for each in copies:
        each.path.unlink()
    executors = Elsewhere()
    download_all(objects, copies, executors)
    assert executors.done == [False, True, True]
    assert contents(copies) == [10, 11, 12]

    # They do not reach the store.
    for each in copies:
        each.path.unlink()
    with monkeypatch.context() as patch:
        patch.setenv(PATIENCE, "0")
        silent = Here()
        own = StoreObjects.of(objects.bucket, Access(endpoint="http://127.0.0.1:9"))
        with pytest.raises(OSError, match="did not answer"):
            download_all(own, copies, silent)
        assert silent.done == [False] * 3


def test_executors_say_that_an_object_has_changed(objects: StoreObjects, copies: list[Copy]) -> None:
    executors = Here(before=lambda: objects.put("in/1", b"y" * 11))
    with pytest.raises(ObjectChangedError):
        download_all(objects, copies, executors)
    with pytest.raises(FileNotFoundError):
        download_all(objects, copies, Here(before=lambda: objects.delete(["in/0"])))


@pytest.fixture
def files(tmp_path: Path) -> list[Copy]:
    """Three files, and the objects that are made of them."""
    found = []
    for number in range(3):
        path = tmp_path / f"file-{number}"
        path.write_bytes(os.urandom(10 + number))
        found.append(Copy(f"out/{number}", path, 10 + number))
    return found


def check_uploads(objects: StoreObjects, files: Sequence[Copy], done: Sequence[Uploaded]) -> None:
    assert [each.sha256 for each in done] == [hash_file(each.path) for each in files]
    assert [objects.hash(each.key) for each in files] == [each.sha256 for each in done]
    found = [objects.find(each.key) for each in files]
    assert [each.stamp.etag for each in done] == [each.etag for each in found if each is not None]


@pytest.mark.parametrize(("least", "asked"), [(0, 3), (32, 3), (33, 0)])
def test_executors_upload_what_is_large(objects: StoreObjects, files: list[Copy], least: int, asked: int) -> None:
    executors = Here(least=least)
    done = upload_all(objects, files, executors)
    check_uploads(objects, files, done)
    assert len(executors.done) == asked
    assert done == (executors.done or done)


def test_what_executors_cannot_upload_is_uploaded_here(objects: StoreObjects, files: list[Copy]) -> None:
    check_uploads(objects, files, upload_all(objects, files, Here(able=False)))
    objects.delete(each.key for each in files)

    # One does not see a file, another sees one that is cut off.
    class Elsewhere(Here):
        def do(self, work: Callable[[Any], Any], things: Sequence[Any]) -> list[Any] | None:
            gone = things[0]._replace(path=things[0].path.with_name("gone"))
            cut = things[1]._replace(path=things[0].path)
            return super().do(work, [gone, cut, things[2]])

    executors = Elsewhere()
    check_uploads(objects, files, upload_all(objects, files, executors))
    assert [each is None for each in executors.done] == [True, True, False]


def test_what_a_task_has_uploaded_is_not_uploaded_again(objects: StoreObjects, files: list[Copy]) -> None:
    """Spark may repeat a task; an object that is cut off is none of its."""
    earlier = objects.put(files[0].key, b"z" * files[0].size)
    objects.put(files[1].key, b"cut")
    done = upload_all(objects, files, Here())
    assert objects.read(files[0].key) == (b"z" * files[0].size, earlier)
    assert done[0].stamp.etag == earlier.etag
    check_uploads(objects, files[1:], done[1:])


def test_tasks_that_do_not_reach_the_store_upload_nothing(
    objects: StoreObjects, files: list[Copy], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PATIENCE, "0")
    away, executors = StoreObjects.of(objects.bucket, Access(endpoint="http://127.0.0.1:9")), Here()
    with pytest.raises(OSError, match="did not answer"):
        upload_all(away, files, executors)
    assert executors.done == [None] * 3
