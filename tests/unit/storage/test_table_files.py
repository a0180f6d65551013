"""Files of tables whose partition columns are not in the files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dobonomodo.storage.parquet import Given
from dobonomodo.storage.table_files import _complete_file, compare_files

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
