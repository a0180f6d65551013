"""Texts become exactly what they say, or are refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Any

import pyarrow as pa
import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType
from dobonomodo.storage.values import convert_values, explain_wrong, parse_values, show_value

MONEY = DecimalType(15, 2)
EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def parse(kind: Type, *texts: str | None) -> tuple[list[Any], list[int]]:
    parsed = parse_values(pa.array(texts, pa.string()), kind)
    return parsed.values.to_pylist(), list(parsed.wrong)


class TestDecimals:
    @pytest.mark.parametrize(
        "text",
        [
            "340282366920938463463374607431768211457", "9" * 154, "-" + "9" * 154, "0." + "0" * 40 + "1", "1e38", "1e-40",
            "1e999", "-1e-999", "10000000000000", "0.001", "1e1000", "NaN", "Infinity", "-inf", "sNaN1", "1_000", "", " ", ".", "+", "e5",
            "1,000.00", "1.2.3", "0x1p3", "\u0661", "--1", "1-", "1e", "1e+", "1 2", "34028236692093846346337460743176821145600",
        ],
    )  # fmt: skip
    def test_what_does_not_fit_is_refused(self, text: str) -> None:
        assert parse(MONEY, "1", text, None, "2.5") == ([Decimal(1), None, None, Decimal("2.5")], [1])

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("0" * 200 + "1.5" + "0" * 200, "1.5"), ("-" + "0" * 500, "0"), ("9999999999999.99", "9999999999999.99"),
            ("-9999999999999.990", "-9999999999999.99"), ("1e12", "1e12"), ("0e999", "0"), ("-0.0e-999", "0"), ("+.5", "0.5"),
            ("5.", "5"), ("15000e-4", "1.5"), ("1" + "0" * 50 + "e-50", "1"), ("0." + "0" * 50 + "1e51", "1"), ("\t7\n", "7"),
        ],
    )  # fmt: skip
    def test_what_fits_is_exact(self, text: str, value: str) -> None:
        assert parse(MONEY, text) == ([Decimal(value)], [])

    @pytest.mark.parametrize(("precision", "scale"), [(38, 0), (38, 38), (38, 10), (1, 0), (1, 1)])
    def test_all_digits_are_used(self, precision: int, scale: int) -> None:
        most = Decimal(10**precision - 1).scaleb(-scale, EXACT)
        kind = DecimalType(precision, scale)
        assert parse(kind, f"{most:f}", f"-{most:f}") == ([most, EXACT.minus(most)], [])
        more = Decimal(10**precision).scaleb(-scale, EXACT)
        assert parse(kind, f"{more:f}", f"{most:f}1" if scale else f"{most:f}.1") == ([None, None], [0, 1])


class TestOtherTypes:
    @pytest.mark.parametrize(
        "text", ["9223372036854775808", "-9223372036854775809", "9" * 60, "1.0", "+", "+-5", "++5", "1e3", ""]
    )
    def test_integers_of_more_than_64_bits(self, text: str) -> None:
        assert parse(INTEGER, "1", text, "2") == ([1, None, 2], [1])

    def test_integers_at_both_ends(self) -> None:
        texts = ("9223372036854775807", "-9223372036854775808", "-" + "0" * 80 + "9223372036854775808", "-0", "007")
        assert parse(INTEGER, *texts) == ([2**63 - 1, -(2**63), -(2**63), 0, 7], [])

    def test_a_plus_is_no_part_of_an_integer(self) -> None:
        texts = ("+5", "+007", "+9223372036854775807", "+9223372036854775808", None, "-3")
        assert parse(INTEGER, *texts) == ([5, 7, 2**63 - 1, None, None, -3], [3])

    def test_days(self) -> None:
        texts = ("2024-02-29", "2026-02-29", None, "0001-01-01", "0000-12-31", "9999-12-31", "2026-13-01", "2026-04-31")
        expected = [date(2024, 2, 29), None, None, date(1, 1, 1), None, date(9999, 12, 31), None, None]
        assert parse(DATE, *texts) == (expected, [1, 4, 6, 7])

    def test_times(self) -> None:
        values = {
            "2026-01-31T08:30:00.123456Z": datetime(2026, 1, 31, 8, 30, 0, 123456, tzinfo=UTC),
            "2026-01-31T08:30:00.1234567Z": None,
            "2026-01-31 08:30": datetime(2026, 1, 31, 8, 30, tzinfo=UTC),
            "2026-01-31 08:30-05": datetime(2026, 1, 31, 13, 30, tzinfo=UTC),
            "2026-01-31": datetime(2026, 1, 31, tzinfo=UTC),
            "2026-02-30T00:00:00": None,
            "2026-01-31T24:00:00": None,
            "0001-01-01T00:00:00+01:00": None,
            "9999-12-31T23:59:59.999999-00:01": None,
            "NaT": None,
            "0001-01-01T00:00:00Z": datetime(1, 1, 1, tzinfo=UTC),
            "9999-12-31T23:59:59.999999Z": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        }
        assert parse(TIMESTAMP, *values) == (list(values.values()), [1, 5, 6, 7, 8, 9])

    def test_many_days_that_do_not_exist(self) -> None:
        texts = [f"2026-02-{day}" for day in (27, 28, 29, 30, 31)] * 1_000
        _, wrong = parse(DATE, *texts)
        assert wrong == [at for at in range(5_000) if at % 5 >= 2]

    def test_true_and_false(self) -> None:
        assert parse(BOOLEAN, "true", "FALSE", "yes", None, "1", " True ") == (
            [True, False, None, None, None, True],
            [2, 4],
        )

    def test_text_is_text(self) -> None:
        assert parse(TEXT, " a ", "", None) == ([" a ", "", None], [])

    @pytest.mark.parametrize("kind", [INTEGER, MONEY, BOOLEAN, DATE, TIMESTAMP], ids=str)
    def test_no_values(self, kind: Type) -> None:
        assert parse(kind) == ([], [])
        assert parse(kind, None, None) == ([None, None], [])


class TestColumnsOfADatabase:
    def test_numbers_come_as_text(self) -> None:
        parsed = convert_values(pa.array(["1.50", "NaN", None, "340282366920938463463374607431768211457"]), MONEY)
        assert (parsed.values.to_pylist(), parsed.wrong) == ([Decimal("1.5"), None, None, None], (1, 3))

    def test_decimals_with_more_digits_than_the_type(self) -> None:
        stored = pa.array([Decimal(text) for text in ("99.99", "-99.99", "100.00", "-100.00")], pa.decimal128(38, 2))
        parsed = convert_values(stored, DecimalType(4, 2))
        assert parsed.values.to_pylist() == [Decimal("99.99"), Decimal("-99.99"), None, None]
        assert (parsed.wrong, parsed.values.type) == ((2, 3), pa.decimal128(4, 2))

    def test_days_at_both_ends(self) -> None:
        days = pa.array([-719_163, -719_162, 2_932_896, 2_932_897], pa.int32()).cast(pa.date32())
        parsed = convert_values(days, DATE)
        assert (parsed.values.to_pylist(), parsed.wrong) == ([None, date(1, 1, 1), date(9999, 12, 31), None], (0, 3))

    def test_values_are_shown_that_python_has_not(self) -> None:
        assert show_value(pa.array([0, 3_000_000], pa.int32()).cast(pa.date32()), 1).startswith("10183-")
        assert [show_value(pa.array([7, None, 8]), at) for at in range(3)] == ["7", "None", "8"]

    def test_infinite_days(self) -> None:
        parsed = convert_values(pa.array([0, 2**31 - 1, -(2**31), None], pa.date32()), DATE)
        assert (parsed.values.to_pylist(), parsed.wrong) == ([date(1970, 1, 1), None, None, None], (1, 2))

    def test_infinite_times(self) -> None:
        stored = pa.array([0, 2**63 - 1, None], pa.timestamp("us", "UTC"))
        parsed = convert_values(stored, TIMESTAMP)
        assert (parsed.values.to_pylist(), parsed.wrong) == ([datetime(1970, 1, 1, tzinfo=UTC), None, None], (1,))

    def test_narrow_integers(self) -> None:
        assert convert_values(pa.array([1, None], pa.int16()), INTEGER).values.to_pylist() == [1, None]

    def test_whole_numbers_among_decimals(self) -> None:
        stored = pa.array([Decimal(5), None], pa.decimal128(38, 0))
        assert convert_values(stored, INTEGER).values.to_pylist() == [5, None]
        assert convert_values(pa.array([5, None], pa.int32()), MONEY).values.to_pylist() == [Decimal("5.00"), None]


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("1.234", DecimalType(5, 2), ("3 decimal places", "allows 2")),
        ("1234e1", DecimalType(5, 2), ("5 digits before", "allows 3")),
        ("100e-5", DecimalType(5, 2), ("3 decimal places", "allows 2")),
        ("x", DecimalType(5, 2), ("number",)),
        ("9223372036854775808", INTEGER, ("64",)),
        ("1.0", INTEGER, ("whole number",)),
        ("-120.0", DecimalType(3, 1), ("has 3 digits before the decimal point, decimal(3,1) allows 2",)),
        ("1200", DecimalType(3, 0), ("has 4 digits before the decimal point, decimal(3,0) allows 3",)),
        ("0.00100", DecimalType(3, 2), ("has 3 decimal places, decimal(3,2) allows 2",)),
        ("x", DATE, ("is not a date, year-month-day",)),
        ("x", BOOLEAN, ("is not `true` or `false`",)),
        ("", DecimalType(5, 2), ("is not a number (decimal(5,2)), but an empty text",)),
        (" ", DATE, ("is not a date, year-month-day, but an empty text",)),
        ("+9223372036854775808", INTEGER, ("64",)),
    ],
)
def test_the_rule_that_a_text_breaks(text: str, kind: Type, words: tuple[str, ...]) -> None:
    assert all(word in explain_wrong(text, kind) for word in words)
