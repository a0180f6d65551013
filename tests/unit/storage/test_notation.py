"""Numbers and dates as files have them, exactly or not at all."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType
from dobonomodo.storage.notation import DateFormat, Notation, find_date_format, suggest_notation
from dobonomodo.storage.values import explain_wrong, parse_values

MONEY = DecimalType(15, 2)
GERMAN = Notation(",", ".", "dd.mm.yyyy")
COMMA = Notation(",")
ENGLISH = Notation(".", ",", "m/d/yyyy")


def value(text: str, kind: Type, notation: Notation) -> object:
    """The value of a text, or why it has none."""
    parsed = parse_values(pa.array([text], pa.string()), kind, notation)
    return explain_wrong(text, kind, notation) if parsed.wrong else parsed.values[0].as_py()


@pytest.mark.parametrize(
    ("text", "notation", "expected"),
    [
        ("1.234,50", GERMAN, Decimal("1234.50")),
        ("-1.234.567,8", GERMAN, Decimal("-1234567.80")),
        ("1234,5", GERMAN, Decimal("1234.50")),
        ("1.234", GERMAN, Decimal(1234)),
        (",5", GERMAN, Decimal("0.5")),
        (" 12,5 ", GERMAN, Decimal("12.5")),
        ("1,5E2", GERMAN, Decimal(150)),
        ("1,234.50", ENGLISH, Decimal("1234.50")),
        ("1234.5", ENGLISH, Decimal("1234.50")),
        ("12'345.60", Notation(".", "'"), Decimal("12345.60")),
        ("12\u00a0345,60", Notation(",", "\u00a0"), Decimal("12345.60")),
    ],
)
def test_numbers_are_what_they_say(text: str, notation: Notation, expected: Decimal) -> None:
    assert value(text, MONEY, notation) == expected


@pytest.mark.parametrize(
    ("text", "notation"),
    [
        ("1234.50", GERMAN), ("1.50", GERMAN), ("12.34,50", GERMAN), ("1.2345", GERMAN), ("1,234.50", GERMAN), ("1,2,3", GERMAN),
        ("1.234,50", COMMA), ("1.5", COMMA), ("1,23", ENGLISH), ("1.234,50", ENGLISH), ("12,34,567", ENGLISH), ("1,", Notation(".", ",")),
        ("1 234", GERMAN), ("--1", GERMAN), ("", GERMAN), (",", GERMAN), (".", GERMAN),
    ],
)  # fmt: skip
def test_a_number_in_another_notation_is_refused(text: str, notation: Notation) -> None:
    found = value(text, MONEY, notation)
    assert isinstance(found, str)
    assert "is not a number" in found


def test_integers_may_be_grouped_and_never_have_a_decimal_sign() -> None:
    assert value("1.234.567", INTEGER, GERMAN) == 1_234_567
    assert value("+1.234", INTEGER, GERMAN) == 1_234
    assert value("1,5", INTEGER, GERMAN) == "is not a whole number"
    assert value("9.223.372.036.854.775.808", INTEGER, GERMAN) == "does not fit in a 64-bit integer"


def test_too_many_digits_are_refused_in_every_notation() -> None:
    assert value("1.234,505", MONEY, GERMAN) == "has 3 decimal places, decimal(15,2) allows 2"
    assert value("12.345.678.901.234,00", MONEY, GERMAN) == (
        "has 14 digits before the decimal point, decimal(15,2) allows 13"
    )


@pytest.mark.parametrize(
    ("text", "form", "expected"),
    [
        ("31.01.2026", "dd.mm.yyyy", date(2026, 1, 31)),
        ("20260131", "yyyymmdd", date(2026, 1, 31)),
        ("1/31/2026", "m/d/yyyy", date(2026, 1, 31)),
        ("01/02/2026", "d/m/yyyy", date(2026, 2, 1)),
        ("3.4.2026", "d.m.yyyy", date(2026, 4, 3)),
        ("2026 12 31", "YYYY MM DD", date(2026, 12, 31)),
    ],
)
def test_dates(text: str, form: str, expected: date) -> None:
    assert value(text, DATE, Notation(date_format=form)) == expected


@pytest.mark.parametrize("text", ["2026-01-31", "1.1.2026", "30.02.2026", "31.13.2026", "31.01.26", "31.01.2026 10:00"])
def test_another_date_is_refused(text: str) -> None:
    assert "is not a date" in str(value(text, DATE, GERMAN))


@pytest.mark.parametrize("text", ["31/12/2026", "2026-01-31", "2/30/2026"])
def test_the_declared_form_of_dates_is_named(text: str) -> None:
    assert value(text, DATE, ENGLISH) == "is not a date in the form `m/d/yyyy`"
    assert value(text, TIMESTAMP, ENGLISH) == "is not a time in the form `m/d/yyyy`"


def test_times_have_the_day_in_the_format() -> None:
    assert str(value("31.01.2026 08:30:00", TIMESTAMP, GERMAN)) == "2026-01-31 08:30:00+00:00"
    assert str(value("1.2.2026T08:30", TIMESTAMP, Notation(date_format="d.m.yyyy"))) == "2026-02-01 08:30:00+00:00"
    assert value("2026-01-31T08:30:00", TIMESTAMP, GERMAN) == "is not a time in the form `dd.mm.yyyy`"


@pytest.mark.parametrize(
    "form", ["", "dd.mm", "dd.mm.yy", "dd.mm.yyyy.dd", "ddmmyyyyy", "dmyyyy", "dd,mm,yyyy", "dd.mmm.yyyy", "hh:mm", "dd...mm.yyyy"]
)  # fmt: skip
def test_a_format_that_is_unclear_is_refused(form: str) -> None:
    with pytest.raises(ValueError, match=r"^$"):
        DateFormat.parse(form)


def test_what_to_set_is_said_only_if_it_explains_all_values() -> None:
    plain = Notation()
    assert suggest_notation(["31.01.2026", "01.02.2026"], DATE, plain) == (
        "dates look like dd.mm.yyyy: set `date_format: dd.mm.yyyy`"
    )
    assert suggest_notation(["31.01.2026", "soon"], DATE, plain) is None
    assert suggest_notation(["01/02/2026"], DATE, plain) is None, "it may be January or February"
    assert suggest_notation(["01/13/2026", "01/02/2026"], DATE, plain) == (
        "dates look like mm/dd/yyyy: set `date_format: mm/dd/yyyy`"
    )
    assert suggest_notation(["1.234,50", "2,00"], MONEY, plain) == (
        'numbers look like `1.234,50`: set `decimal: ","` and `thousands: "."`'
    )
    assert suggest_notation(["2,50"], MONEY, plain) == 'numbers look like `2,50`: set `decimal: ","`'
    assert suggest_notation(["2.50"], MONEY, COMMA) == 'numbers look like `2.50`: set `decimal: "."`'
    assert suggest_notation(["1,234.50"], MONEY, plain) == (
        'numbers look like `1,234.50`: set `decimal: "."` and `thousands: ","`'
    )
    assert suggest_notation(["1'234.50"], MONEY, plain) == "numbers look like `1'234.50`: set `thousands: \"'\"`"
    assert suggest_notation(["abc"], MONEY, plain) is None
    assert suggest_notation(["31.01.2026 08:30", "01.02.2026T09:00"], TIMESTAMP, plain) == (
        "dates look like dd.mm.yyyy: set `date_format: dd.mm.yyyy`"
    )
    assert suggest_notation(["1.234"], INTEGER, COMMA) == 'numbers look like `1.234`: set `decimal: "."`'
    assert suggest_notation([" 1 234 "], INTEGER, plain) == 'numbers look like `1 234`: set `thousands: " "`'


def test_nothing_is_said_where_the_setting_is_that_already_or_there_is_none() -> None:
    plain = Notation()
    assert suggest_notation([], MONEY, plain) is None
    assert suggest_notation(["1,5"], TEXT, plain) is None
    assert suggest_notation(["true"], BOOLEAN, plain) is None
    assert suggest_notation(["31.01.2026"], DATE, GERMAN) is None
    assert suggest_notation(["2026-01-31"], DATE, plain) is None
    assert suggest_notation(["2026-01-31"], DATE, GERMAN) == "dates look like yyyy-mm-dd: set `date_format: yyyy-mm-dd`"
    assert suggest_notation(["1.234,50"], MONEY, GERMAN) is None
    assert suggest_notation(["1'234", "1 234"], MONEY, plain) is None
    assert suggest_notation(["1'234", "x"], MONEY, plain) is None
    assert suggest_notation(["1'234.5"], MONEY, Notation(".", "'")) is None


def test_values_are_written_as_they_are_read() -> None:
    def written(text: str, kind: Type, notation: Notation) -> object:
        return notation.write(pa.array([text]), kind)[0].as_py()

    assert written("-1234.50", MONEY, GERMAN) == "-1234,50"
    assert written("-1234.50", MONEY, ENGLISH) == "-1234.50"
    assert written("1234", INTEGER, GERMAN) == "1234"
    assert written("2026-01-31", DATE, GERMAN) == "31.01.2026"
    assert written("2026-01-31", DATE, COMMA) == "2026-01-31"
    assert written("2026-01-31T08:30:00Z", TIMESTAMP, GERMAN) == "31.01.2026T08:30:00Z"
    assert written("2026-01-31", TEXT, GERMAN) == "2026-01-31"


def test_the_form_of_a_value_is_described_where_it_is_not_the_plain_one() -> None:
    assert (GERMAN.describe(MONEY), ENGLISH.describe(MONEY)) == ("with decimal sign `,`", None)
    assert (GERMAN.describe(DATE), GERMAN.describe(TIMESTAMP)) == ("in the form `dd.mm.yyyy`",) * 2
    assert (COMMA.describe(DATE), GERMAN.describe(INTEGER), GERMAN.describe(TEXT)) == (None, None, None)
    for kind in (MONEY, INTEGER):
        assert set("-,") <= set(GERMAN.characters(kind))
        assert not set(":/") & set(GERMAN.characters(kind))
    assert set("-:.+ /") <= set(ENGLISH.characters(TIMESTAMP))
    assert find_date_format(["20260131"]) == "yyyymmdd"
