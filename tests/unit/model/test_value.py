"""The small values, each with the texts that are one and the texts that are not."""

from datetime import date
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from dobonomodo.model.value import Count, Day, FileName, Filled, Flag, Id, Identifier, Setting, is_name, parse_date


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Id, "ds-warehouse"), (Id, "550e8400-e29b-41d4-a716-446655440000"), (Identifier, "größe_1"), (FileName, "Sales orders"),
        (Filled, "x"), (Flag, True), (Count, 1), (Day, "2024-02-29"), (Setting, 4), (Setting, True), (Setting, "4g"),
    ],
)  # fmt: skip
def test_accepted(kind: Any, value: object) -> None:
    TypeAdapter(kind).validate_python(value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Id, ""), (Id, "a b"), (Id, "a\tb"), (Id, 5), (Id, "a${b}"), (Identifier, "1a"), (Identifier, "a-b"), (FileName, "a/b"),
        (FileName, ".."), (FileName, "a\\b"), (FileName, "${x}"), (FileName, " a"), (FileName, "a`b"), (Filled, "  "),
        (Flag, "true"), (Flag, 1), (Count, 0), (Count, True), (Count, "1"), (Count, 2**31), (Day, "2026-02-30"),
        (Day, "20260101"), (Day, "2026-W01-1"), (Day, 20260101), (Setting, ["x"]),
    ],
)  # fmt: skip
def test_refused(kind: Any, value: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(kind).validate_python(value)


def test_a_setting_becomes_the_text_that_spark_wants() -> None:
    assert TypeAdapter(Setting).validate_python(True) == "true"
    assert TypeAdapter(Setting).validate_python(8) == "8"


def test_a_date_may_be_one_already() -> None:
    assert parse_date(date(2026, 1, 31)) == parse_date("2026-01-31")


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a`b", "a${b", "x" * 256])
def test_names_that_cannot_be_stored(name: str) -> None:
    assert not is_name(name)
