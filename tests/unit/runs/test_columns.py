"""Which columns changed, as records tell it; `tests/spark/test_records.py` compares it with reading the rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dobonomodo.plan.counts import ColumnDigests
from dobonomodo.runs.columns import compare_columns
from dobonomodo.runs.figures import Figures, OutputFigures

KEY = ((0, ("id",)),)
TYPES = {"id": "integer", "net": "decimal(15,2)", "name": "string"}


def run(
    columns: dict[str, str | None] | None,
    *,
    rows: str | None = "aa",
    key: Any = KEY,
    types: dict[str, str] = TYPES,
    digest: str = "d",
    count: int = 3,
) -> Any:
    digests = ColumnDigests(key, rows, columns) if columns is not None else None
    figures = Figures(outputs=(OutputFigures(9, "out", "lake:out", 3, {}, None, digests),))
    output = SimpleNamespace(seq=9, rows=count, columns=types, digest=digest)
    return SimpleNamespace(id="r", figures=figures, outputs={"out": output})


def compare(before: Any, after: Any) -> Any:
    return compare_columns("out", before, after)


def test_nothing_but_one_column_changed() -> None:
    found = compare(run({"net": "1", "name": "2"}), run({"net": "3", "name": "2"}, digest="e"))
    assert (found.same_rows, found.changed, found.unchanged, found.differs) == (True, ("net",), ("name",), True)


def test_the_same_numbers_in_another_type_are_a_change() -> None:
    other = run({"net": "1", "name": "2"}, types={**TYPES, "net": "integer"}, digest="e")
    assert compare(run({"net": "1", "name": "2"}), other).changed == ("net",)


def test_a_column_whose_digest_is_not_known_counts_as_changed() -> None:
    assert compare(run({"net": None}), run({"net": None}, digest="e")).changed == ("net",)


def test_rows_with_other_keys() -> None:
    found = compare(run({"net": "1"}), run({"net": "2"}, rows="bb", digest="e"))
    assert (found.same_rows, found.differs) == (False, True)


def test_columns_that_one_run_has_alone() -> None:
    found = compare(run({"net": "1", "old": "2"}), run({"net": "1", "new": "2"}, digest="e"))
    assert (found.new_columns, found.lost_columns, found.changed) == (("new",), ("old",), ())


def test_what_records_do_not_tell() -> None:
    for other in (run(None, digest="e"), run({"net": "1"}, key=((0, ("no",)),), digest="e"), run({}, rows=None)):
        found = compare(run({"net": "1"}, digest="x"), other)
        assert found.unknown is not None
        assert found.differs is None


def test_the_same_rows_need_no_digests_of_columns() -> None:
    found = compare(run(None), run(None))
    assert (found.differs, found.unchanged) == (False, ("id", "net", "name"))


def test_the_same_digest_over_other_columns_is_a_change() -> None:
    found = compare(run({"net": "1"}, types={**TYPES, "net": "integer"}), run({"net": "1"}))
    assert (found.changed, found.unknown) == (("net",), None)


def test_the_rows_of_each_run_are_counted() -> None:
    found = compare(run({"net": "1"}, count=3), run({"net": "1"}, count=4, digest="e"))
    assert (found.rows_before, found.rows_after) == (3, 4)
