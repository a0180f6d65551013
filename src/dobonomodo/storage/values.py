"""Parses texts to values of a declared type, exactly or not at all: nothing is rounded or truncated.

Arrow's own casts are not enough: a decimal with more digits than 128 bits hold wraps around without an error. So digits are
counted here, and Arrow gets only what fits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, MAX_DIGITS, TEXT, DecimalType
from dobonomodo.storage.notation import PLAIN, Notation
from dobonomodo.storage.schema import arrow_type

if TYPE_CHECKING:
    import pyarrow

_INTEGER = r"^[+-]?[0-9]+$"
_DECIMAL = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
_DAY = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = r"([01][0-9]|2[0-3])(:[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?)?"
_ZONE = r"(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)"
_DATE = f"^{_DAY}$"
_TIMESTAMP = f"^{_DAY}([ T]{_TIME}{_ZONE}?)?$"
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}

_FORMS = {
    "integer": ("a whole number", ""),
    "boolean": ("`true` or `false`", ""),
    "date": ("a date", ", year-month-day"),
    "timestamp": ("a time", " such as `2026-01-31T08:30:00.123456Z`"),
}
"""What a value of a type is, and how it is written unless a datasource says otherwise."""
_LARGEST, _SMALLEST = str(2**63 - 1), str(2**63)
"""The digits of the whole numbers at both ends."""
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""In days since 1970."""
_MICROSECONDS = 86_400_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    """Values of a type. NULL where a text could not be parsed."""

    values: pyarrow.Array
    wrong: tuple[int, ...]
    """The positions of all texts that could not be parsed, in order."""


def parse_values(texts: pyarrow.Array, kind: Type, notation: Notation = PLAIN) -> Parsed:
    """Parse texts; NULL stays NULL, white space around a number or date is ignored."""
    import pyarrow.compute as pc

    if kind == TEXT:
        return Parsed(texts, ())
    trimmed = notation.read(pc.utf8_trim_whitespace(texts), kind)
    if kind == INTEGER:
        values = _parse_integers(trimmed)
    elif isinstance(kind, DecimalType):
        values = _parse_decimals(trimmed, kind)
    elif kind == BOOLEAN:
        values = _parse_booleans(trimmed)
    elif kind == DATE:
        values = _in_calendar(_cast(_keep(trimmed, _matches(trimmed, _DATE)), kind))
    else:
        values = _in_calendar(_cast(_in_utc(_keep(trimmed, _matches(trimmed, _TIMESTAMP))), kind))
    return _compare(texts, values)


def convert_values(column: pyarrow.Array, kind: Type, notation: Notation = PLAIN) -> Parsed:
    """The same for a column that may have another type than text already."""
    import pyarrow as pa

    if pa.types.is_string(column.type):
        return parse_values(column, kind, notation)
    if pa.types.is_decimal(column.type) and isinstance(kind, DecimalType):
        return _compare(column, _within(column, kind))
    values = column.cast(arrow_type(kind))
    return _compare(column, _in_calendar(values)) if pa.types.is_temporal(values.type) else Parsed(values, ())


def show_value(column: pyarrow.Array, position: int) -> str:
    """A value of a column as text, also one that no type of Python holds."""
    import pyarrow as pa

    return str(column.slice(position, 1).cast(pa.string())[0].as_py())


def explain_wrong(text: str, kind: Type, notation: Notation = PLAIN) -> str:
    """Why a text is not of a type, in words that follow the text."""
    import pyarrow as pa

    form = _describe_form(kind, notation)
    if not text.strip():
        return f"is not {form}, but an empty text"
    (plain,) = notation.read(pa.array([text.strip()], pa.string()), kind).to_pylist()
    if isinstance(kind, DecimalType) and re.search(_DECIMAL, plain or ""):
        return _explain_digits(Decimal(plain), kind)
    if kind == INTEGER and re.search(_INTEGER, plain or ""):
        return "does not fit in a 64-bit integer"
    return f"is not {form}"


def _describe_form(kind: Type, notation: Notation) -> str:
    how = notation.describe(kind)
    if isinstance(kind, DecimalType):
        return f"a number ({kind})" + (f" {how}" if how is not None else "")
    what, form = _FORMS[kind.name]
    return f"{what} {how}" if how is not None else f"{what}{form}"


def _explain_digits(number: Decimal, kind: DecimalType) -> str:
    _, digits, exponent = number.as_tuple()
    significant = "".join(map(str, digits)).rstrip("0")
    last = int(exponent) + len(digits) - len(significant)
    behind, before = max(0, -last), max(0, len(significant) + last)
    if behind > kind.scale:
        return f"has {behind} decimal places, {kind} allows {kind.scale}"
    return f"has {before} digits before the decimal point, {kind} allows {kind.whole}"


def _compare(texts: pyarrow.Array, values: pyarrow.Array) -> Parsed:
    import pyarrow.compute as pc

    if values.null_count == texts.null_count:
        return Parsed(values, ())
    return Parsed(values, tuple(pc.indices_nonzero(pc.and_(values.is_null(), texts.is_valid())).to_pylist()))


def _matches(text: pyarrow.Array, pattern: str) -> pyarrow.Array:
    import pyarrow.compute as pc

    return pc.match_substring_regex(text, pattern)


def _keep(values: pyarrow.Array, wanted: pyarrow.Array) -> pyarrow.Array:
    """NULL where a value is not wanted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.all(wanted, min_count=0).as_py():
        return values
    return pc.if_else(wanted, values, pa.scalar(None, values.type))


def _parse_integers(text: pyarrow.Array) -> pyarrow.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    text = _keep(text, _matches(text, _INTEGER))
    digits = pc.ascii_ltrim(text, "+-0")
    length = pc.binary_length(digits)
    limit = pc.if_else(pc.starts_with(text, "-"), _SMALLEST, _LARGEST)
    fits = pc.or_(
        pc.less(length, len(_LARGEST)), pc.and_(pc.equal(length, len(_LARGEST)), pc.less_equal(digits, limit))
    )
    # Arrow knows no plus in front of whole numbers.
    return pc.ascii_ltrim(_keep(text, fits), "+").cast(pa.int64())


def _parse_decimals(text: pyarrow.Array, kind: DecimalType) -> pyarrow.Array:
    import pyarrow.compute as pc

    whole = f"[0-9]{{1,{kind.whole}}}" if kind.whole else "0"
    usual = _matches(text, rf"^[+-]?{whole}(\.[0-9]{{0,{kind.scale}}})?$")
    if pc.all(usual, min_count=0).as_py():
        return text.cast(arrow_type(kind))
    text = _expand(_keep(text, _matches(text, _DECIMAL)))
    digits = pc.ascii_ltrim(text, "+-0")
    digits = pc.if_else(pc.match_substring(digits, "."), pc.ascii_rtrim(digits, "0"), digits)
    length, point = pc.binary_length(digits), pc.find_substring(digits, ".")
    before = pc.if_else(pc.less(point, 0), length, point)
    behind = pc.max_element_wise(pc.subtract(pc.subtract(length, before), 1), 0, skip_nulls=False)
    fits = pc.and_(pc.less_equal(before, kind.whole), pc.less_equal(behind, kind.scale))
    sign = pc.if_else(pc.starts_with(text, "-"), "-0", "0")
    return _keep(pc.binary_join_element_wise(sign, digits, ""), fits).cast(arrow_type(kind))


def _expand(text: pyarrow.Array) -> pyarrow.Array:
    """Numbers without exponents; NULL where one has more digits than any type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    short = pc.match_substring(text, "e", ignore_case=True).fill_null(False)
    if not pc.any(short, min_count=0).as_py():
        return text
    plain = [_expand_one(Decimal(each)) for each in text.filter(short).to_pylist()]
    return pc.replace_with_mask(text, short, pa.array(plain, text.type))


def _expand_one(number: Decimal) -> str | None:
    if not number:
        return "0"
    return f"{number:f}" if abs(number.adjusted()) <= MAX_DIGITS else None


def _parse_booleans(text: pyarrow.Array) -> pyarrow.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.index_in(text, value_set=pa.array(list(_BOOLEANS), text.type), skip_nulls=True)
    return pa.array(list(_BOOLEANS.values())).take(found)


def _within(column: pyarrow.Array, kind: DecimalType) -> pyarrow.Array:
    """NULL for decimals that have more digits than they say."""
    import pyarrow as pa
    import pyarrow.compute as pc

    target = arrow_type(kind)
    most = pa.scalar(Decimal((0, (9,) * kind.precision, -kind.scale)), target)
    least = pa.scalar(Decimal((1, (9,) * kind.precision, -kind.scale)), target)
    return _keep(column, pc.and_(pc.greater_equal(column, least), pc.less_equal(column, most))).cast(target)


def _in_utc(text: pyarrow.Array) -> pyarrow.Array:
    """Times with a zone as they say, times without one and plain dates in UTC: Arrow wants a zone in all or in none."""
    import pyarrow.compute as pc

    full = pc.if_else(
        pc.equal(pc.binary_length(text), len("2026-01-31")), pc.binary_join_element_wise(text, "T00:00:00", ""), text
    )
    return pc.if_else(_matches(full, f"{_ZONE}$"), full, pc.binary_join_element_wise(full, "Z", ""))


def _cast(text: pyarrow.Array, kind: Type) -> pyarrow.Array:
    """Cast to days and times; NULL for days that do not exist, such as February 30."""
    import pyarrow as pa

    target = arrow_type(kind)
    try:
        return text.cast(target)
    except pa.ArrowInvalid:
        encoded = text.dictionary_encode()
        return _cast_apart(encoded.dictionary, target).take(encoded.indices)


def _cast_apart(text: pyarrow.Array, target: pyarrow.DataType) -> pyarrow.Array:
    import pyarrow as pa

    try:
        return text.cast(target)
    except pa.ArrowInvalid:
        if len(text) == 1:
            return pa.nulls(1, target)
        middle = len(text) // 2
        return pa.concat_arrays([_cast_apart(text.slice(0, middle), target), _cast_apart(text.slice(middle), target)])


def _in_calendar(values: pyarrow.Array) -> pyarrow.Array:
    """NULL for days and times outside of the years 1 to 9999, which is all that Spark and Python agree on."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_date(values.type):
        number, first, end = values.cast(pa.int32()), _FIRST_DAY, _LAST_DAY + 1
    else:
        number, first, end = values.cast(pa.int64()), _FIRST_DAY * _MICROSECONDS, (_LAST_DAY + 1) * _MICROSECONDS
    return _keep(values, pc.and_(pc.greater_equal(number, first), pc.less(number, end)))
