"""Manifests of files that runs wrote: what is recorded comes back, and what no run wrote has none."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dobonomodo.formula.types import INTEGER, TEXT, DecimalType
from dobonomodo.storage.manifest import (
    DATA,
    HIDDEN,
    MANIFEST,
    Part,
    columns_of_file,
    current_versions,
    find_columns,
    read_hashes,
    read_parts,
    version_of,
)

PARTS = (
    Part(("a.parquet",), {"id": INTEGER, "Net": DecimalType(15, 2)}),
    Part(("b.parquet", "c.parquet"), {"id": INTEGER, "note": None}),
)


def make_version(root: Path, name: str = "v1", *, table: str = "out", parts: tuple[Part, ...] = PARTS) -> Path:
    version = root / HIDDEN / table / name
    (version / DATA).mkdir(parents=True)
    (version / MANIFEST).write_text(json.dumps({"parts": [part.document() for part in parts]}))
    return version


def test_parts_come_back(tmp_path: Path) -> None:
    assert tuple(read_parts(make_version(tmp_path))) == PARTS
    assert [Part.load(json.loads(json.dumps(part.document()))) for part in PARTS] == list(PARTS)


def test_a_folder_without_a_manifest_was_not_published(tmp_path: Path) -> None:
    assert read_parts(tmp_path) == []
    assert read_hashes(tmp_path) == {}


def test_hashes_are_known_as_far_as_they_are_recorded(tmp_path: Path) -> None:
    version = make_version(tmp_path)
    assert read_hashes(version) == {}
    (version / MANIFEST).write_text(json.dumps({"parts": [], "sha256": {"a.parquet": "1f"}}))
    assert read_hashes(version) == {"a.parquet": "1f"}


def test_a_manifest_of_an_earlier_version_has_no_types(tmp_path: Path) -> None:
    (tmp_path / DATA).mkdir()
    (tmp_path / MANIFEST).write_text(json.dumps({"columns": ["id", "note"]}))
    pq.write_table(pa.table({"id": pa.array([1], pa.int64()), "note": ["x"]}), tmp_path / DATA / "b.parquet")
    (tmp_path / DATA / "a.csv").write_text("id,note\n1,x\n")
    assert read_parts(tmp_path) == [
        Part(("a.csv",), {"id": None, "note": None}),
        Part(("b.parquet",), {"id": INTEGER, "note": TEXT}),
    ]


def test_only_files_of_a_version_belong_to_one(tmp_path: Path) -> None:
    version = make_version(tmp_path)
    assert version_of(version / DATA / "a.parquet") == version
    for path in (tmp_path / "a.parquet", version / "a.parquet", tmp_path / "x" / "out" / "v1" / DATA / "a.parquet"):
        assert version_of(path) is None
    for short in ("a", f"{DATA}/a", f"/{DATA}/a", f"/x/{DATA}/a", f"/x/y/{DATA}/a", f"{HIDDEN}/v1/{DATA}/a"):
        assert version_of(Path(short)) is None
    assert version_of(Path(f"{HIDDEN}/out/v1/{DATA}/a")) == Path(f"{HIDDEN}/out/v1")


def test_the_columns_of_a_file_are_those_of_its_part(tmp_path: Path) -> None:
    version = make_version(tmp_path)
    assert columns_of_file(version / DATA / "a.parquet") == ["id", "Net"]
    assert columns_of_file(version / DATA / "c.parquet") == ["id", "note"]
    assert columns_of_file(version / DATA / "d.parquet") is None
    assert columns_of_file(tmp_path / "a.parquet") is None


def test_current_versions_are_those_behind_links(tmp_path: Path) -> None:
    version, _ = make_version(tmp_path), make_version(tmp_path, "v0")
    folder = tmp_path / "out"
    assert current_versions(folder) == []
    folder.mkdir()
    (folder / "run_period=2026-01").symlink_to(version / DATA)
    (folder / "notes.txt").write_text("x")
    assert current_versions(folder) == [version]


def test_columns_are_found_in_every_period(tmp_path: Path) -> None:
    first = make_version(tmp_path, "v1", parts=PARTS[:1])
    second = make_version(tmp_path, "v2", parts=(Part(("z.parquet",), {"Later": TEXT}),))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "run_period=2026-02").symlink_to(second / DATA)
    assert find_columns([first / DATA / "a.parquet"]) == ("id", "later", "net")
    assert find_columns([tmp_path / "a.parquet"]) == ()
