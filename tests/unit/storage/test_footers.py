from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dobonomodo.storage import footers
from dobonomodo.storage.footers import Footer, count_rows, read_footer, take_footer


def write(path: Path, rows: int, *, column: str = "id") -> Path:
    pq.write_table(pa.table({column: pa.array(range(rows), pa.int64())}), path)
    return path


def test_a_footer_is_read_once_for_a_file_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.parquet", 3)
    first = read_footer(path)
    assert (first.columns, first.rows) == ((("id", "bigint"),), 3)
    opened: list[Path] = []
    real = pq.ParquetFile

    def open_noted(file: Path) -> pq.ParquetFile:
        opened.append(file)
        return real(file)

    monkeypatch.setattr(pq, "ParquetFile", open_noted)
    assert read_footer(path) is first
    assert opened == []
    write(path, 5)
    assert read_footer(path).rows == 5
    assert opened == [path]
    assert read_footer(write(tmp_path / "b.parquet", 1)).columns is read_footer(path).columns
    assert count_rows([path, tmp_path / "b.parquet"]) == 6


def test_a_footer_that_another_has_read_is_taken_if_the_file_is_the_same(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", 3)
    seen, told = path.stat(), Footer((("id", "bigint"),), 7)
    assert not take_footer(path, told, size=seen.st_size, modified=seen.st_mtime_ns - 1)
    assert not take_footer(path, told, size=seen.st_size + 1, modified=seen.st_mtime_ns)
    assert read_footer(path).rows == 3
    assert take_footer(path, told, size=seen.st_size, modified=seen.st_mtime_ns)
    assert read_footer(path).rows == 7


def test_no_more_are_kept_than_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footers, "KEPT_AT_MOST", 2)
    for number in range(5):
        path = write(tmp_path / f"{number}.parquet", number, column=f"column {number}")
        footer = read_footer(path)
        assert len(footers._kept) <= 2
        assert len(footers._shared) <= 2
        seen = path.with_suffix(".seen")
        path.rename(seen)
        assert take_footer(seen, footer, size=seen.stat().st_size, modified=seen.stat().st_mtime_ns)
        assert len(footers._kept) <= 2
