"""Names and values as Spark SQL."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from dobonomodo.formula.sql import absolute, cast, is_negative, literal, negate, quote_name, quote_text
from dobonomodo.formula.typed import Value, is_integer, literal_decimal
from dobonomodo.formula.types import BOOLEAN, DATE, DECIMAL, INTEGER, NULL, TEXT, TIMESTAMP, DecimalType, Type


@pytest.mark.parametrize(
    ("name", "sql"),
    [
        ("amount", "`amount`"),
        ("net amount", "`net amount`"),
        ("a`b", "`a``b`"),
        ("a.b", "`a.b`"),
        ("`", "````"),
        ("$x", "`$x`"),
    ],
)
def test_names(name: str, sql: str) -> None:
    assert quote_name(name) == sql


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("", "''"),
        ("a", "'a'"),
        ("it's", r"'it\'s'"),
        ("\\", r"'\\'"),
        (r"\'", r"'\\\''"),
        ("a\nb", "'a\nb'"),
        ("{{x}}", "'{{x}}'"),
        ("$", "'$'"),
        # Spark replaces ${..} before it parses.
        ("${x}", r"'\u0024{x}'"),
        (r"\${x}", r"'\\\u0024{x}'"),
        ("%_", "'%_'"),
        ("😀", "'😀'"),
    ],
)
def test_texts(text: str, sql: str) -> None:
    assert quote_text(text) == sql


def test_nul_does_not_run_into_the_digits_behind_it() -> None:
    r"""Spark reads ``\012`` as a line end."""
    assert "\0" not in quote_text("\0")
    assert r"\012" not in quote_text("\x0012")


@pytest.mark.parametrize(
    ("value", "kind", "sql"),
    [
        (None, TEXT, "CAST(NULL AS STRING)"),
        (None, NULL, "CAST(NULL AS STRING)"),
        (None, DECIMAL, "CAST(NULL AS DECIMAL(38,10))"),
        (True, BOOLEAN, "TRUE"),
        (False, BOOLEAN, "FALSE"),
        (0, INTEGER, "0L"),
        (-5, INTEGER, "-5L"),
        (5, DecimalType(1, 0), "5BD"),
        (5, DECIMAL, "CAST(5BD AS DECIMAL(38,10))"),
        (Decimal("0.1"), DecimalType(1, 1), "0.1BD"),
        (Decimal("0.10"), DecimalType(2, 2), "0.10BD"),
        (Decimal("1E+3"), DecimalType(4, 0), "1000BD"),
        (Decimal("1E-7"), DecimalType(7, 7), "0.0000001BD"),
        (Decimal("0.1"), DecimalType(15, 2), "CAST(0.1BD AS DECIMAL(15,2))"),
        ("a", TEXT, "'a'"),
        (date(2026, 1, 31), DATE, "DATE'2026-01-31'"),
        (date(1, 1, 1), DATE, "DATE'0001-01-01'"),
        (datetime(2026, 1, 31, 8, 30, 5, 7, tzinfo=UTC), TIMESTAMP, "TIMESTAMP'2026-01-31T08:30:05.000007Z'"),
        (datetime(1, 1, 1, tzinfo=UTC), TIMESTAMP, "TIMESTAMP'0001-01-01T00:00:00.000000Z'"),
    ],
)
def test_literals(value: Value, kind: Type, sql: str) -> None:
    assert literal(value, kind) == sql


def test_casts() -> None:
    assert cast("x", DECIMAL) == "CAST(x AS DECIMAL(38,10))"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("0", (1, 0)),
        ("7", (1, 0)),
        ("70", (2, 0)),
        ("7E+1", (2, 0)),
        ("0.5", (1, 1)),
        ("0.05", (2, 2)),
        ("0.00", (2, 2)),
        ("12.50", (4, 2)),
    ],
)
def test_type_of_a_decimal_literal(text: str, kind: tuple[int, int]) -> None:
    assert literal_decimal(Decimal(text)) == literal_decimal(-Decimal(text)) == DecimalType(*kind)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", True),
        ("-0", True),
        ("1E+3", True),
        ("1.0", False),
        ("9223372036854775807", True),
        ("9223372036854775808", False),
        ("-9223372036854775808", True),
        ("-9223372036854775809", False),
        ("1E+300", False),
    ],
)
def test_what_is_an_integer(text: str, expected: bool) -> None:
    assert is_integer(Decimal(text)) is expected


def test_spark_changes_the_sign_of_34_digits_and_loses_some_of_35() -> None:
    """Its minus and abs round to 34 digits (4.3)."""
    assert negate("`x`", DecimalType(34, 10)) == "(- `x`)"
    assert absolute("`x`", DecimalType(34, 10)) == "abs(`x`)"
    assert negate("`x`", INTEGER) == "(- `x`)"
    for kind in (DecimalType(35, 10), DecimalType(38, 0)):
        assert negate("`x`", kind) == f"CAST(replace(concat('-', CAST(`x` AS STRING)), '--', '') AS {kind.sql})"
        assert absolute("`x`", kind) == f"CAST(replace(CAST(`x` AS STRING), '-', '') AS {kind.sql})"


def test_zero_has_no_digit_before_the_point_where_the_type_has_none() -> None:
    assert is_negative("`x`", DecimalType(38, 37)) == "`x` < 0BD"
    assert is_negative("`x`", DecimalType(38, 38)) == "`x` < CAST(0BD AS DECIMAL(38,38))"
