"""Conversions: written texts and numbers, and values in other types."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from dobonomodo.formula import convert, parse_moment
from dobonomodo.formula.conversion import number_literal
from dobonomodo.formula.typed import Cast, Literal
from dobonomodo.formula.types import DATE, DECIMAL, INTEGER, TEXT, TIMESTAMP, DecimalType


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-01-31", date(2026, 1, 31)),
        ("2024-02-29", date(2024, 2, 29)),
        ("0001-01-01", date(1, 1, 1)),
        ("2026-01-31T08:30", datetime(2026, 1, 31, 8, 30, tzinfo=UTC)),
        ("2026-01-31 08:30:15", datetime(2026, 1, 31, 8, 30, 15, tzinfo=UTC)),
        ("2026-01-31T08:30:15.5Z", datetime(2026, 1, 31, 8, 30, 15, 500_000, tzinfo=UTC)),
        ("2026-01-31T08:30:00+02:00", datetime(2026, 1, 31, 6, 30, tzinfo=UTC)),
        ("2026-02-30", None),
        ("2025-02-29", None),
        ("2026-13-01", None),
        ("2026", None),
        ("2026-1-31", None),
        ("20260131", None),
        ("31.01.2026", None),
        ("2026-01-31T25:00", None),
        ("2026-W05-6", None),
        ("", None),
        ("0000-01-01", None),
        ("9999-12-31T23:59:59-01:00", None),
        ("２０２６-01-31", None),
    ],
)
def test_moments(text: str, value: date | datetime | None) -> None:
    assert parse_moment(text) == value
    assert type(parse_moment(text)) is type(value)


def test_conversions_of_literals_happen_on_the_spot() -> None:
    assert convert(Literal(None, TEXT), DATE) == Literal(None, DATE)
    assert convert(Literal(date(2026, 1, 31), DATE), TIMESTAMP) == Literal(datetime(2026, 1, 31, tzinfo=UTC), TIMESTAMP)
    assert convert(Literal(5, INTEGER), DECIMAL).type == DECIMAL


def test_a_literal_that_has_no_room_is_cast() -> None:
    assert convert(Literal(12345, INTEGER), DecimalType(4, 2)) == Cast(Literal(12345, INTEGER), DecimalType(4, 2))


@pytest.mark.parametrize(
    ("written", "kind"),
    [("5", "integer"), ("9223372036854775808", "decimal(19,0)"), ("0.05", "decimal(2,2)"), ("1E+20", "decimal(21,0)")],
)
def test_written_numbers(written: str, kind: str) -> None:
    literal = number_literal(Decimal(written))
    assert (str(literal.type), literal.value) == (kind, Decimal(written))
