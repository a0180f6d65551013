"""Expected rows against actual ones: without regard to order unless it is asked for, and a difference that can be read."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from dobonomodo.formula.types import INTEGER, TEXT, DecimalType, Type
from dobonomodo.scenarios.compare import SHOWN_AT_MOST, compare_output
from dobonomodo.scenarios.scenario import ExpectedOutput

COLUMNS: dict[str, Type] = {"id": INTEGER, "net": DecimalType(5, 2), "note": TEXT}


def row(number: int, net: str | None = "1.50", note: str | None = None) -> dict[str, object]:
    return {"id": number, "net": None if net is None else Decimal(net), "note": note}


def expect(*rows: dict[str, Any], **more: Any) -> ExpectedOutput:
    return ExpectedOutput.from_data({"rows": list(rows), **more})


def differences(expected: ExpectedOutput, *actual: dict[str, object]) -> list[str]:
    return compare_output(expected, actual, COLUMNS)


def kinds(lines: list[str]) -> list[str]:
    return [line.split()[0] for line in lines]


def test_the_order_of_rows_does_not_matter_unless_it_is_asked_for() -> None:
    rows = [{"id": 1, "net": "1.5"}, {"id": 2, "net": "1.50"}]
    assert differences(expect(*rows), row(2), row(1)) == []
    assert kinds(differences(expect(*rows, ordered=True), row(2), row(1))) == ["changed", "changed"]
    assert kinds(differences(expect(*rows, ordered=True), row(1))) == ["missing"]
    assert kinds(differences(expect(*rows, ordered=True), row(1), row(2), row(3))) == ["extra"]


def test_columns_that_are_not_named_must_be_null() -> None:
    assert differences(expect({"id": 1, "net": "1.5"}), row(1)) == []
    assert kinds(differences(expect({"id": 1, "net": "1.5"}), row(1, note="x"))) == ["changed"]


def test_equal_rows_count() -> None:
    one = {"id": 1, "net": "1.5"}
    assert differences(expect(one, one), row(1), row(1)) == []
    assert kinds(differences(expect(one), row(1), row(1))) == ["extra"]
    assert kinds(differences(expect(one, one), row(1))) == ["missing"]


def test_anything_is_a_value_and_leaves_the_others_their_match() -> None:
    assert differences(expect({"id": "*", "net": "1.5"}, {"id": 1, "net": "1.5"}), row(1), row(2)) == []
    assert kinds(differences(expect({"id": 1, "net": "*"}), row(1, None))) == ["changed"]


def test_contained_rows_need_only_what_they_name() -> None:
    assert differences(expect({"id": 1}, match="subset"), row(1, note="x"), row(2)) == []
    assert kinds(differences(expect({"id": 3}, match="subset"), row(1))) == ["missing"]


def test_a_row_that_is_far_from_all_others_is_missing() -> None:
    assert kinds(differences(expect({"id": 9, "net": "7", "note": "z"}), row(1))) == ["missing", "extra"]


def test_counts_and_columns() -> None:
    assert differences(expect(count=2), row(1), row(2)) == []
    assert len(differences(expect(count=2), row(1))) == 1
    assert differences(expect(columns=["id", "net", "note"], count=1), row(1)) == []
    assert len(differences(expect(columns=["net", "id", "note"], count=1), row(1))) == 1


@pytest.mark.parametrize("wanted", [{"idd": 1}, {"id": "x"}])
def test_what_cannot_be_compared_is_one_line(wanted: dict[str, Any]) -> None:
    assert len(differences(expect(wanted), row(1))) == 1


def test_many_differences_are_counted() -> None:
    lines = differences(expect({"id": 0, "net": "0", "note": "zero"}), *(row(number) for number in range(1, 100)))
    assert len(lines) == SHOWN_AT_MOST + 1
    assert str(100 - SHOWN_AT_MOST) in lines[-1]
