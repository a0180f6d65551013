"""Wrong values of a reading: all are counted, the first are kept in order."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from dobonomodo.formula.types import INTEGER, TEXT
from dobonomodo.problems.run import CELLS_AT_MOST, WrongCell
from dobonomodo.storage.findings import MISSING, RECORD, Findings, check_batch, is_required
from tests.world import use_of

TYPES = {"id": INTEGER, "note": TEXT}
USE = use_of(TYPES, required=["id"])


def cell(number: int) -> WrongCell:
    return WrongCell(place=f"line {number}", column="id", rule="x")


def test_findings_add_up_and_keep_the_first() -> None:
    many = Findings(tuple(cell(number) for number in range(CELLS_AT_MOST)), {"id": 7})
    both = many + Findings((cell(99),), {"id": 1, "note": 2})
    assert both.cells == many.cells
    assert both.counts == {"id": 8, "note": 2}
    assert (Findings() + Findings((cell(1),), {"id": 1})).cells == (cell(1),)


def test_remedies_are_said_once() -> None:
    one, two = Findings(remedies=("a", "b")), Findings(remedies=("b", "c"))
    assert (one + two).remedies == ("a", "b", "c")


def test_a_file_has_the_name_that_people_know() -> None:
    found = Findings((replace(cell(1), place="/tmp/copy.csv"),), {"id": 3}, ("a",))
    renamed = found.renamed("/tmp/copy.csv", "s3://bucket/rows.csv")
    assert renamed == replace(found, cells=(replace(found.cells[0], place="s3://bucket/rows.csv"),))
    assert found.renamed("/tmp", "/tmp") == found.renamed("elsewhere", "x") == found


def test_long_values_are_cut_and_others_are_not() -> None:
    found = check_batch([pa.array(["x" * length for length in (59, 60, 61)])], {"id": INTEGER}, use=USE, place="f")
    assert [each.value for _, each in found.first] == ["x" * 59, "x" * 60, "x" * 60 + "..."]


def test_many_missing_values_are_counted_with_the_wrong_ones() -> None:
    column = pa.array(["x", *([None] * 100)])
    found = check_batch([column], {"id": INTEGER}, use=USE, place="f")
    assert (len(found.first), found.first[0][0], found.counts) == (CELLS_AT_MOST, 0, {"id": 101})
    assert [at for at, _ in found.first] == list(range(CELLS_AT_MOST))
    assert check_batch([column], {"note": TEXT}, use=USE, place="f").counts == {}


def test_only_counts_make_a_finding() -> None:
    assert not Findings()
    assert Findings(counts={"id": 1})


def test_records_are_summarized_apart_from_values() -> None:
    assert Findings(counts={"id": 1200}).summarize().count("`id`") == 1
    assert "1,200" in Findings(counts={"id": 1200}).summarize()
    both = Findings(counts={"id": 1, RECORD: 3}).summarize()
    assert (both.count(";"), both.endswith("3")) == (1, True)
    assert "`" not in Findings(counts={RECORD: 3}).summarize()


def test_a_batch_is_converted() -> None:
    found = check_batch([pa.array(["1", "2"]), pa.array(["x", None])], TYPES, use=USE, place="a.csv")
    assert [column.to_pylist() for column in found.columns] == [[1, 2], ["x", None]]
    assert (found.first, found.counts) == ((), {})


def test_wrong_and_missing_values_are_found_in_the_order_of_rows() -> None:
    found = check_batch(
        [pa.array(["1", "x", None, "1.5"]), pa.array([None] * 4, pa.string())], TYPES, use=USE, place="f"
    )
    assert [(at, each.column, each.value or each.rule) for at, each in found.first] == [
        (1, "id", "x"),
        (2, "id", MISSING),
        (3, "id", "1.5"),
    ]
    assert found.counts == {"id": 3}


def test_all_are_counted_and_few_are_kept() -> None:
    found = check_batch([pa.array(["x"] * 1000), pa.array(["y" * 100] * 1000)], TYPES, use=USE, place="f")
    assert (len(found.first), found.counts) == (CELLS_AT_MOST, {"id": 1000})


def test_columns_without_a_type_stay() -> None:
    found = check_batch([pa.array(["x"])], {"other": None}, use=USE, place="f")
    assert (found.columns[0].to_pylist(), found.counts) == (["x"], {})


@pytest.mark.parametrize(("name", "expected"), [("id", True), ("ID", True), ("note", False), ("other", False)])
def test_what_is_required(name: str, expected: bool) -> None:
    assert is_required(name, USE) is expected
