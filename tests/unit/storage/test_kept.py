"""Copies of inputs: each content once, found by its hash, never trusted."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path

import pytest

from dobonomodo.storage.kept import InputFile, KeptInputs
from dobonomodo.storage.manifest import columns_of_file


@pytest.fixture
def kept(tmp_path: Path) -> KeptInputs:
    return KeptInputs.of(tmp_path)


def put(path: Path, content: bytes) -> InputFile:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return InputFile(str(path))


def test_a_copy_stays_when_the_original_changes(kept: KeptInputs, tmp_path: Path) -> None:
    file = put(tmp_path / "in/rows.csv", b"one")
    sha256 = kept.keep(file)
    assert sha256 == hashlib.sha256(b"one").hexdigest()
    put(tmp_path / "in/rows.csv", b"two")
    found = kept.find(sha256, name="rows.csv")
    assert found is not None
    assert found.suffix == ".csv"
    assert found.read_bytes() == b"one"


def test_the_same_content_is_there_once(kept: KeptInputs, tmp_path: Path) -> None:
    hashes = {kept.keep(put(tmp_path / name, b"same")) for name in ("a.parquet", "b.parquet", "c.parquet")}
    assert [file.sha256 for file in kept.files()] == list(hashes)
    hashes.add(kept.keep(put(tmp_path / "d.parquet", b"other")))
    assert {file.sha256 for file in kept.files()} == hashes
    assert len(hashes) == 2


def test_a_copy_that_was_changed_is_not_there(kept: KeptInputs, tmp_path: Path) -> None:
    sha256 = kept.keep(put(tmp_path / "a.parquet", b"same"))
    (file,) = kept.files()
    file.path.write_bytes(b"sane")
    assert kept.find(sha256, name="a.parquet") is None
    assert kept.has(sha256, name="a.parquet")


def test_a_file_of_somebody_else_is_never_linked(kept: KeptInputs, tmp_path: Path) -> None:
    """Whoever writes into it in place would change the copy."""
    original = put(tmp_path / "a.parquet", b"same")
    sha256 = kept.keep(original)
    with open(original.path, "r+b") as file:
        file.write(b"S")
    assert kept.find(sha256, name="a.parquet") is not None


def test_a_file_of_ours_is_linked_and_keeps_its_time(kept: KeptInputs, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    put(path, b"rows")
    os.utime(path, (1, 1))
    kept.keep(InputFile(str(path), is_ours=True))
    (file,) = kept.files()
    assert os.path.samefile(file.path, path)
    assert path.stat().st_mtime == 1
    assert file.since > 1


def test_an_output_of_a_run_keeps_its_manifest(kept: KeptInputs, tmp_path: Path) -> None:
    version = tmp_path / "out/.dobo-data/table/2026-01~run-1"
    file = put(version / "data/part-0.csv", b"1,2")
    parts = [{"files": ["part-0.csv"], "columns": {"a": "INTEGER", "b": "INTEGER"}}]
    (version / "manifest.json").write_text(json.dumps({"parts": parts}))
    sha256 = kept.keep(file)
    found = kept.find(sha256, name="part-0.csv")
    assert found is not None
    assert columns_of_file(found) == ["a", "b"]
    (copy,) = kept.files()
    assert (copy.sha256, copy.place) == (sha256, found.parents[1])
    assert kept.has(sha256, name="part-0.csv")
    assert not kept.has(sha256, name="part-1.csv")


def test_a_disk_that_takes_no_copy_does_not_stop_the_run(kept: KeptInputs, tmp_path: Path) -> None:
    file = put(tmp_path / "a.parquet", b"same")
    kept.folder.parent.mkdir(exist_ok=True)
    kept.folder.write_text("not a folder")
    assert kept.keep(file) == hashlib.sha256(b"same").hexdigest()
    assert list(kept.files()) == []


def test_a_file_that_cannot_be_read_has_no_hash(kept: KeptInputs, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        kept.keep(InputFile(str(tmp_path / "gone.parquet")))


def test_nothing_is_left_of_a_file_that_changed_while_it_was_copied(
    kept: KeptInputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put(tmp_path / "in/rows.csv", b"one")
    monkeypatch.setattr("dobonomodo.storage.kept.hash_file", lambda path: hashlib.sha256(b"before").hexdigest())
    monkeypatch.setattr("dobonomodo.storage.kept._clone", lambda original, copy: False)
    kept.keep(file)
    assert list(kept.folder.iterdir()) == []


def test_a_file_of_ours_is_copied_where_no_link_can_be_made(
    kept: KeptInputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError(errno.EXDEV, f"{source} and {target} are on different disks")

    monkeypatch.setattr(os, "link", refuse)
    content = os.urandom(3_000_000)
    put(tmp_path / "x.parquet", content)
    sha256 = kept.keep(InputFile(str(tmp_path / "x.parquet"), is_ours=True))
    found = kept.find(sha256, name="x.parquet")
    assert found is not None
    assert found.read_bytes() == content
    assert not os.path.samefile(found, tmp_path / "x.parquet")
    assert [path.name for path in kept.folder.iterdir()] == [found.name]
