"""Parquet files whose values are not what the files say of themselves."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import DATE, INTEGER, TEXT, DecimalType
from dobonomodo.problems.run import DataLoad
from dobonomodo.storage import Inputs
from dobonomodo.storage.executors import Limits
from dobonomodo.storage.parquet import (
    Given,
    ParquetFile,
    ParquetFormat,
    _position,
    check_files,
    inspect_parquet,
    select_stored,
)
from tests.unit.storage.reading import extract, refused, use_of
from tests.world import JANUARY, failure, source_of


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

    def __init__(
        self, *, able: bool = True, least: int = 0, meanwhile: Mapping[int, Callable[[], object]] | None = None
    ) -> None:
        """``meanwhile`` is what happens before they do what they are asked for the first time, the second time and so on."""
        self.limits = Limits.of(least)
        self._able, self._meanwhile = able, meanwhile or {}
        self.asked = 0

    def do(self, work: Callable[[Any], Any], things: Sequence[Any]) -> list[Any] | None:
        self.asked += 1
        self._meanwhile.get(self.asked, int)()
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


def without_statistics(path: Path, ids: Sequence[int | None]) -> Path:
    pq.write_table(pa.table({"id": ids}), path, write_statistics=False)
    return path


def test_executors_are_asked_for_much_work_alone(tmp_path: Path) -> None:
    paths = [without_statistics(tmp_path / f"{number}.parquet", [number, None]) for number in range(2)]
    groups = [pq.ParquetFile(path).metadata.row_group(0) for path in paths]
    size = sum(group.column(0).total_compressed_size for group in groups)
    assert size > len(paths)
    use, files = use_of({"id": INTEGER}, "*", required=["id"]), [(path, ()) for path in paths]
    asked = []
    for least in (1, 2, size - 1, size):
        executors = Here(least=least)
        assert [each.counts for each in check_files(files, use, executors)] == [{"id": 1}, {"id": 1}]
        asked.append(executors.asked)
    assert asked == [2, 1, 1, 0]


@pytest.mark.parametrize("turn", [1, 2])
@pytest.mark.parametrize("is_gone", [True, False])
def test_a_file_that_executors_do_not_see_as_it_is_here_is_checked_here(
    tmp_path: Path, turn: int, is_gone: bool
) -> None:
    path, away = without_statistics(tmp_path / "a.parquet", [1, None]), tmp_path / "away"

    def hide() -> None:
        path.rename(away)
        if not is_gone:
            without_statistics(path, [None, None, 3])

    class Elsewhere(Here):
        def do(self, work: Callable[[Any], Any], things: Sequence[Any]) -> list[Any] | None:
            done = super().do(work, things)
            if away.exists():
                away.replace(path)
            return done

    use = use_of({"id": INTEGER}, "*", required=["id"])
    (found,) = check_files([(path, ())], use, Elsewhere(meanwhile={turn: hide}))
    assert found.counts == {"id": 1}


def test_what_a_footer_says_is_read_once(tmp_path: Path) -> None:
    """Neither is it read again here, nor are the values read for which it vouches."""
    paths = [tmp_path / f"{number}.parquet" for number in range(2)]
    decimals = [overfull([999_999, -999_999, 0], 6, 2), pa.nulls(3, pa.decimal128(6, 2))]
    for path in paths:
        pq.write_table(pa.table({"id": [1, 2, 3], "full": decimals[0], "empty": decimals[1]}), path)

    class Spoiling(Here):
        def do(self, work: Callable[[Any], Any], things: Sequence[Any]) -> list[Any] | None:
            done = super().do(work, things)
            for path in paths:
                stat = path.stat()
                path.write_bytes(b"x" * stat.st_size)
                os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            return done

    columns: dict[str, Type] = {"id": INTEGER, "full": DecimalType(6, 2), "empty": DecimalType(6, 2)}
    use = use_of(columns, "*", required=["id"])
    found = check_files([(path, ()) for path in paths], use, Spoiling())
    assert [each.counts for each in found] == [{}, {}]
    assert [inspect_parquet(path, use).rows for path in paths] == [3, 3]


@pytest.mark.parametrize("executors", [None, Here()], ids=["here", "there"])
def test_files_are_checked_where_workers_see_them_and_named_as_people_know_them(
    tmp_path: Path, executors: Here | None
) -> None:
    for name, ids in (("a", [1, 2]), ("b", [None, 4])):
        without_statistics(tmp_path / f"{name}.parquet", ids)

    def extract_shared(*required: str) -> list[Path]:
        use, folder = use_of({"id": INTEGER}, "a.parquet", "b.parquet", required=required), tmp_path / ".run"
        source = source_of("parquet", path_prefix=".")
        inputs = Inputs(
            root=tmp_path,
            datasources={"files": source},
            folder=folder,
            facts=JANUARY,
            as_of=None,
            shared=True,
            executors=executors,
        )
        pins = inputs.extract([use], inputs.pin([use]))[use.key]
        assert executors is None or executors.asked > 0
        return [path for paths in inputs.files(use, pins) for path in paths]

    problem = failure(extract_shared, "id").problem
    assert isinstance(problem, DataLoad)
    assert [(cell.place, cell.row) for cell in problem.cells] == [(str(tmp_path / "b.parquet"), "row 1")]
    copies = extract_shared()
    assert all(path.is_relative_to(tmp_path / ".run") for path in copies)
    assert [pq.read_table(path)["id"].to_pylist() for path in copies] == [[1, 2], [None, 4]]
    # They are copied once, and nothing else is left.
    before = [path.stat().st_ino for path in copies]
    assert [path.stat().st_ino for path in extract_shared()] == before
    assert sorted(path for path in (tmp_path / ".run").rglob("*") if path.is_file()) == sorted(copies)
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    copies[1].unlink()
    broken = failure(extract_shared).problem
    assert isinstance(broken, DataLoad)
    assert str(tmp_path / "b.parquet") in broken.detail
    assert str(tmp_path / ".run") not in broken.detail


def test_a_file_is_inspected_with_what_is_known_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1, 2], "Name": ["x", "y"]}), path)
    given = [Given("day", "date", "2026-01-31"), Given("name", "string", "z")]
    use = use_of({"id": INTEGER, "name": TEXT, "day": DATE}, "*")
    columns = (("id", "bigint"), ("Name", "string"))
    assert inspect_parquet(path, use, given) == ParquetFile(path, columns, 2, (given[0],))
    lacking = failure(inspect_parquet, path, use).problem
    assert isinstance(lacking, DataLoad)
    assert lacking.differences == ("column `day` is missing",)


@pytest.mark.parametrize("content", [b"no parquet", None])
def test_a_file_that_is_no_parquet_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "a.parquet"
    if content is not None:
        path.write_bytes(content)
    use = use_of({"id": INTEGER}, "*")
    for act in (lambda: inspect_parquet(path, use), lambda: check_files([(path, ())], use, None)):
        failed = failure(act)
        assert isinstance(failed.problem, DataLoad)
        assert failed.problem.detail.startswith(f"`{path}` cannot be read as Parquet: ")
        assert "\n" not in failed.problem.detail
        assert not failed.retry_helps


def test_declared_columns_are_selected_in_their_types_and_system_columns_as_they_are() -> None:
    use = use_of({"id": INTEGER, "a`b": TEXT, "day": DATE, "gone": TEXT, "_labels": TEXT}, sources={"a`b": "Old"})
    given = [Given("DAY", "date", "it's"), Given("_period", "string", None), Given("other", "string", "x")]
    assert select_stored(["ID", "old", "_Row_Id", "_labels", "more", "_own"], given, use) == [
        "CAST(`ID` AS BIGINT) AS `id`",
        "CAST(`old` AS STRING) AS `a``b`",
        "CAST(CAST('it\\'s' AS date) AS DATE) AS `day`",
        "CAST(NULL AS STRING) AS `gone`",
        "CAST(`_labels` AS STRING) AS `_labels`",
        "`_Row_Id` AS `_Row_Id`",
        "CAST(NULL AS string) AS `_period`",
    ]


def test_a_row_has_its_place_after_the_rows_of_the_files_before() -> None:
    """Files are told apart by the checksums of their names, unless names are the same or Spark spells them otherwise."""
    assert _position(["/a/x.parquet"], [5]) == "5L + _metadata.row_index"
    sums = f"{crc32(b'x.parquet')}L, {crc32(b'y.parquet')}L"
    by_sum = _position(["/a/x.parquet", "/b/y.parquet"], [5, 7])
    assert by_sum.startswith(
        f"element_at(array(5L, 7L), CAST(array_position(array({sums}), crc32(_metadata.file_name))"
    )
    for name in ("/b/x.parquet", "/b/ü.parquet"):
        by_path = _position(["/a/x.parquet", name], [5, 7])
        assert f"array('/a/x.parquet', '{name}'), regexp_replace(" in by_path
        assert "crc32" not in by_path


def test_a_record_of_parquet_files_says_what_older_versions_ask_for() -> None:
    assert ParquetFormat().options == {"delimiter": ",", "has_header": True}
