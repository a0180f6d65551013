"""CSV files: all wrong values at once, with their places."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import DATE, INTEGER, TEXT, DecimalType
from dobonomodo.problems.render import render_full
from dobonomodo.problems.run import DataLoad
from dobonomodo.storage import csv
from dobonomodo.storage.files import PinnedFile
from dobonomodo.storage.findings import Findings
from tests.unit.storage.reading import extract, refused, use_of
from tests.world import source_of

COLUMNS: dict[str, Type] = {"id": INTEGER, "amount": DecimalType(5, 2), "day": DATE}


def places(problem: DataLoad) -> list[tuple[str, int | None, str | None, str | None]]:
    return [(Path(cell.place).name, cell.line, cell.column, cell.value) for cell in problem.cells]


def test_every_wrong_value_of_every_file_is_shown(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,amount,day\n1,1.005,2026-01-01\nx,2.00,2026-02-30\n3,,\n")
    (tmp_path / "b.csv").write_text("id,amount,day\n1,1.00,2026-01-01\n")
    (tmp_path / "c.csv").write_text('id,amount,day\n1,1.00\n"2\n",9999,01.01.2026\n4,1,2026-01-01,5\n5,abc,\n')
    problem = refused(tmp_path, use_of(COLUMNS, "a.csv", "b.csv", "c.csv", required=["amount"]))
    assert places(problem) == [
        ("a.csv", 2, "amount", "1.005"),
        ("a.csv", 3, "id", "x"),
        ("a.csv", 3, "day", "2026-02-30"),
        ("a.csv", 4, "amount", None),
        ("c.csv", 2, None, None),
        ("c.csv", 3, "amount", "9999"),
        ("c.csv", 3, "day", "01.01.2026"),
        ("c.csv", 5, None, None),
        ("c.csv", 6, "amount", "abc"),
    ]
    assert dict(problem.counts) == {"id": 1, "amount": 4, "day": 2, "": 2}


def test_many_wrong_values_are_counted_and_the_first_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv, "BLOCK", 4096)
    lines = [
        f"{number},{'1.005' if number % 3 == 0 else '1'},{'soon' if number % 5 == 0 else ''}" for number in range(3_000)
    ]
    (tmp_path / "a.csv").write_text("id,amount,day\n" + "\n".join(lines))
    problem = refused(tmp_path, use_of(COLUMNS, "a.csv"))
    expected = [
        ("a.csv", number + 2, column, value)
        for number in range(100)
        for column, value, every in (("amount", "1.005", 3), ("day", "soon", 5))
        if number % every == 0
    ]
    assert places(problem) == expected[:20]
    assert dict(problem.counts) == {"amount": 1_000, "day": 600}
    assert len(problem.notes()) == 21
    shown: Any = problem.to_dict()
    assert len(shown["cells"]) == 20
    assert shown["cells"][0] == {
        "place": str(tmp_path / "a.csv"), "line": 2, "row": None, "column": "amount", "value": "1.005",
        "rule": problem.cells[0].rule,
    }  # fmt: skip
    assert shown["counts"] == {"amount": 1_000, "day": 600}
    assert len(render_full([problem]).splitlines()) < 30


@pytest.mark.parametrize("wrong", [1, 7, 500])
def test_lines_are_right_beside_records_of_another_width(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: int
) -> None:
    """Arrow leaves such records out, so that the rows behind them have other numbers."""
    monkeypatch.setattr(csv, "BLOCK", 1024)
    lines = ["1,2" if number % 2 and number < 2 * wrong else "1,2,2026-01-01" for number in range(2_000)]
    lines[1_990] = "x,2,2026-01-01"
    (tmp_path / "a.csv").write_text("id,amount,day\n" + "\n".join(lines) + "\n")
    problem = refused(tmp_path, use_of(COLUMNS, "a.csv"))
    assert dict(problem.counts) == {"id": 1, "": wrong}
    expected = [("a.csv", 2 * number + 3, None, None) for number in range(wrong)]
    assert places(problem) == [*expected, ("a.csv", 1_992, "id", "x")][:20]


def test_a_long_value_is_cut(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,amount,day\n" + "9" * 100_000 + ",1,\n")
    (cell,) = refused(tmp_path, use_of(COLUMNS, "a.csv")).cells
    assert cell.value is not None
    assert len(cell.value) < 100
    assert len(cell.rule) < 200


@pytest.mark.parametrize("required", [True, False])
def test_a_required_value_that_is_missing(tmp_path: Path, required: bool) -> None:
    (tmp_path / "a.csv").write_text("id,amount,day\n1,1,\n2,,\n")
    use = use_of(COLUMNS, "a.csv", required=["amount"] if required else [])
    if required:
        assert places(refused(tmp_path, use)) == [("a.csv", 3, "amount", None)]
    else:
        (path,) = extract(tmp_path, use)
        assert pq.read_table(path)["amount"].to_pylist() == [Decimal(1), None]


def test_a_required_value_may_be_the_empty_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,name\n1,""\n')
    (path,) = extract(tmp_path, use_of({"id": INTEGER, "name": TEXT}, "a.csv", required=["id", "name"]))
    assert pq.read_table(path)["name"].to_pylist() == [""]


@pytest.mark.parametrize(
    ("content", "diagnosis"),
    [
        (b'id,amount,day\n1,"2"3,\n', "quotes"),
        (b'id,amount,day\n1,"2\n3,4,\n', "quotes"),
        (b'id,amount,day\n1,"a\\"b",\n', "escapes"),
        (b"id,amount,day\n1,gr\xf6\xdfe,\n", "encoding"),
        (b"id;amount;day\n1;2;\n", "separator"),
        (b"PK\x03\x04", "zip"),
    ],
)
def test_a_file_that_is_not_what_its_datasource_says(tmp_path: Path, content: bytes, diagnosis: str) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    problem = refused(tmp_path, use_of(COLUMNS, "a.csv"))
    assert problem.diagnosis == diagnosis
    assert problem.hint() is not None
    assert str(tmp_path / "a.csv") in problem.message()


def test_no_row_is_lost_by_an_open_quote(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,name\n1,"a\n2,b\n3,"c\n4,d\n')
    problem = refused(tmp_path, use_of({"id": INTEGER, "name": TEXT}, "a.csv"))
    assert problem.diagnosis == "quotes"
    assert "line 2" in problem.detail


def test_a_file_of_another_period_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "2025-12.csv").write_text("id\n1\n")
    paths = ("2025-11.csv", "2025-12.csv")
    assert "2025-11.csv" in refused(tmp_path, use_of({"id": INTEGER}, *paths)).message()
    assert len(extract(tmp_path, use_of({"id": INTEGER}, *paths, may_be_missing=True))) == 1
    assert extract(tmp_path, use_of({"id": INTEGER}, "2025-11.csv", may_be_missing=True)) == []


def test_a_file_that_is_wrong_is_refused_even_if_it_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "2025-12.csv").write_text("id\nx\n")
    assert refused(tmp_path, use_of({"id": INTEGER}, "2025-12.csv", may_be_missing=True)).counts == (("id", 1),)


def test_nothing_is_read_for_periods_that_do_not_exist(tmp_path: Path) -> None:
    (tmp_path / "2025-12.csv").write_text("id\n1\n")
    assert extract(tmp_path, use_of({"id": INTEGER}, "2025-12.csv", may_be_missing=True, periods=())) == []


@pytest.mark.parametrize(("text", "separator"), [("1;a\n2;b\n", True), ("1,a\n2;b\n", False)])
def test_a_file_without_a_header_is_suspected_by_its_first_record(tmp_path: Path, text: str, separator: bool) -> None:
    (tmp_path / "a.csv").write_text(text)
    problem = refused(tmp_path, use_of({"id": INTEGER, "name": TEXT}, "a.csv"), has_header=False)
    assert problem.diagnosis == ("separator" if separator else None)


def test_an_executor_extracts_the_file_that_the_driver_saw_and_no_other(tmp_path: Path) -> None:
    path, target = tmp_path / "a.csv", tmp_path / "run" / "a.parquet"
    target.parent.mkdir()
    path.write_text("id,amount,day\n1,1.00,2026-01-01\n")
    storage = csv.CsvStorage.open(source_of("csv", path_prefix="."), root=str(tmp_path))
    assert isinstance(storage, csv.CsvStorage)
    use, pinned = use_of(COLUMNS, "a.csv"), PinnedFile.of(path)

    def extracted(file: PinnedFile) -> Findings | None:
        return csv._extract_in_task(storage, use, (file, path, target))

    assert extracted(replace(pinned, size=1)) is None
    assert extracted(replace(pinned, modified=1)) is None
    assert not target.exists()
    assert extracted(pinned) == Findings()
    assert pq.read_table(target).num_rows == 1
    target.unlink()
    path.write_text("id,amount,day\nx,1.00,2026-01-01\n")
    found = extracted(PinnedFile.of(path))
    assert found is not None
    assert dict(found.counts) == {"id": 1}
    assert list(target.parent.iterdir()) == []
