"""Tables that are lists of files: their records, and columns that are not in the files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dobonomodo.storage.files import PinnedFile
from dobonomodo.storage.parquet import Given
from dobonomodo.storage.table_files import (
    StoredTableFiles,
    TableFile,
    TableFilesPin,
    _complete_file,
    compare_files,
    fold,
    free_key,
    is_key,
    sample_files,
)

GIVEN = (Given("id", "bigint", "7"), Given("day", "date", "2026-01-31"), Given("part", "int", None))


def test_a_copy_has_every_row_and_the_columns_that_the_file_lacks(tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=2)
    target = tmp_path / "copies" / "a.parquet"
    _complete_file(tmp_path / "a.parquet", target, GIVEN)
    copied = pq.read_table(target)
    assert copied.column_names == ["id", "day", "part"]
    assert copied["id"].to_pylist() == [1, 2, 3]
    assert [str(each) for each in copied["day"].to_pylist()] == ["2026-01-31"] * 3
    assert copied["part"].to_pylist() == [None] * 3
    assert list(target.parent.iterdir()) == [target]


def test_a_copy_that_is_there_is_not_written_again(tmp_path: Path) -> None:
    target = tmp_path / "a.parquet"
    target.write_bytes(b"as it was")
    _complete_file(tmp_path / "gone.parquet", target, GIVEN)
    assert target.read_bytes() == b"as it was"


def test_files_are_compared_with_what_was_written() -> None:
    def hash_of(name: str) -> str:
        if name == "gone":
            raise FileNotFoundError(name)
        return {"same": "1", "changed": "3"}[name]

    changed, gone, right = compare_files(["same", "changed", "gone", "same"], ["1", "2", "3", "1"], hash_of)
    assert (len(changed), gone, right) == (1, ["`gone`"], 2)
    assert "changed" in changed[0]


STORED = StoredTableFiles(
    "iceberg", "lake", "sales", "orders", 3, (TableFile("a", 5, (("_run_period", "2026-01"), ("part", None))),)
)
PIN = TableFilesPin(
    "delta",
    "lake:orders",
    "lake",
    "orders",
    3,
    (PinnedFile("/a", 5, 1), PinnedFile("s3://b/c", 7, 2, "tag")),
    (("x", None), ("y", "2")),
    (("part", "string"), ("number", "int")),
    ("id", "part", "number"),
)


@pytest.mark.parametrize(
    "changed",
    [{}, {"schema": None, "hashes": ("h",)}, {"hashes": ()}, {"columns": ("id",)}, {"columns": (), "is_kept": True}],
    ids=str,
)
def test_records_of_written_files_survive_being_written_down(changed: dict[str, Any]) -> None:
    stored = replace(STORED, **changed)
    assert StoredTableFiles.load(json.loads(json.dumps(stored.document()))) == stored


def test_a_version_that_counts_is_a_place_of_its_own() -> None:
    table = ("table", "lake", "sales", "orders")
    assert STORED.place == replace(STORED, version=4).place == table
    assert replace(STORED, columns=()).place == replace(STORED, is_kept=True).place == (*table, "3")


def test_pins_survive_being_written_down() -> None:
    for pin in (PIN, replace(PIN, period="2026-01", native="s3a://b/t")):
        assert TableFilesPin.load(json.loads(json.dumps(pin.document()))) == pin
    assert PIN.size == 12
    assert PIN.given == [
        (Given("part", "string", "x"), Given("number", "int", None)),
        (Given("part", "string", "y"), Given("number", "int", "2")),
    ]


def test_the_column_of_run_periods_is_none_of_the_data() -> None:
    taken = [["id"], ["_RUN_PERIOD"], ["_run_period", "_dobo_run_period"]]
    free = [free_key(columns) for columns in taken]
    assert free == ["_run_period", "_dobo_run_period", "_dobo_dobo_run_period"]
    assert all(map(is_key, free))
    assert not any(map(is_key, ("run_period", "_run_period_", "x_run_period", "_dobo")))
    assert fold(["Id", "GROẞE"]) == ("id", "grosse")


def test_the_first_rows_of_files_have_the_columns_that_are_asked_for(tmp_path: Path) -> None:
    files = []
    for at in range(2):
        path = tmp_path / f"{at}.parquet"
        pq.write_table(pa.table({"id": [at * 300 + each for each in range(300)], "more": [0] * 300}), path)
        files.append((path, TableFile(path.name, 0, (("part", f"p{at}"),))))
    found = sample_files(files, ("part", "id", "none"), 301)
    assert [row["id"] for row in found] == list(range(301))
    assert (found[0], found[-1]) == (
        {"part": "p0", "id": 0, "none": None},
        {"part": "p1", "id": 300, "none": None},
    )
    assert sample_files(files, ("id",), 0) == []
