"""Parquet files whose values are not what the files say of themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dobonomodo.formula.types import INTEGER, TEXT, DecimalType
from dobonomodo.storage.executors import Limits
from dobonomodo.storage.parquet import Given, check_files
from tests.unit.storage.reading import extract, refused, use_of


def overfull(unscaled: list[int], precision: int, scale: int) -> pa.Array:
    """Decimals without regard to their precision."""
    data = b"".join(each.to_bytes(16, "little", signed=True) for each in unscaled)
    return pa.Array.from_buffers(pa.decimal128(precision, scale), len(unscaled), [None, pa.py_buffer(data)])


@pytest.mark.parametrize("options", [{}, {"write_statistics": False}, {"store_decimal_as_integer": True}], ids=str)
@pytest.mark.parametrize("declared", [DecimalType(6, 2), DecimalType(38, 2)], ids=str)
def test_a_decimal_with_more_digits_than_its_type(
    tmp_path: Path, declared: DecimalType, options: dict[str, Any]
) -> None:
    table = pa.table({"id": [1, 2, 3], "amount": overfull([999_999, 1_000_000, -1_000_000], 6, 2)})
    pq.write_table(table, tmp_path / "a.parquet", **options)
    problem = refused(tmp_path, use_of({"id": INTEGER, "amount": declared}, "a.parquet"), kind="parquet")
    assert [(cell.row, cell.column, cell.value) for cell in problem.cells] == [
        ("row 2", "amount", "10000.00"),
        ("row 3", "amount", "-10000.00"),
    ]
    assert problem.counts == (("amount", 2),)


def test_all_digits_may_be_used(tmp_path: Path) -> None:
    for statistics in (True, False):
        table = pa.table({"amount": overfull([10**38 - 1, 1 - 10**38, 0], 38, 2)})
        pq.write_table(table, tmp_path / "a.parquet", write_statistics=statistics)
        assert extract(tmp_path, use_of({"amount": DecimalType(38, 2)}, "a.parquet"), kind="parquet") == []


def test_every_missing_value_of_every_file_is_counted(tmp_path: Path) -> None:
    for name in ("a", "b"):
        table = pa.table(
            {"_n": [[1], [2], [3]], "id": [1, None, 3], "value": pa.array([None, "x", None]).dictionary_encode()}
        )
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=2)
    columns = {"id": INTEGER, "value": TEXT}
    problem = refused(tmp_path, use_of(columns, "a.parquet", "b.parquet", required=["id", "value"]), kind="parquet")
    assert [(Path(cell.place).name, cell.row, cell.column) for cell in problem.cells] == [
        (name, *place)
        for name in ("a.parquet", "b.parquet")
        for place in (("row 1", "value"), ("row 2", "id"), ("row 3", "value"))
    ]
    assert problem.counts == (("id", 2), ("value", 4))


class Here:
    """Executors in this process, which do all that they are asked or nothing."""

    limits = Limits.of(0)

    def __init__(self, *, able: bool) -> None:
        self._able = able
        self.asked = 0

    def do(self, work: Callable[[Any], Any], things: Sequence[Any]) -> list[Any] | None:
        self.asked += 1
        return [work(each) for each in things] if self._able else None


@pytest.mark.parametrize("able", [True, False])
def test_executors_find_what_the_driver_finds(tmp_path: Path, able: bool) -> None:
    files: list[tuple[Path, Sequence[Given]]] = []
    for number in range(3):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"id": [1, None, number]}), path, write_statistics=number == 0)
        files.append((path, [Given("value", "string", "x" if number else None)]))
    use, executors = use_of({"id": INTEGER, "value": TEXT}, "*", required=["id", "value"]), Here(able=able)
    found = check_files(files, use, executors)
    assert found == check_files(files, use, None)
    assert [each.counts for each in found] == [{"id": 1, "value": 3}, {"id": 1}, {"id": 1}]
    assert executors.asked == 2
