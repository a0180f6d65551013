"""The patterns of TEXT: few, checked before a row is read, and without the traps of the patterns they become."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from dobonomodo.formula.functions.signature import Argument, RunValues
from dobonomodo.formula.meaning import EXACT, Number, fit, write_number
from dobonomodo.formula.moment import Day, Moment, write_year
from dobonomodo.formula.sql import absolute, cast, is_negative, quote_text
from dobonomodo.formula.typed import Apply, Value
from dobonomodo.formula.types import MAX_DIGITS, TEXT, DecimalType, as_decimal, type_product
from dobonomodo.problems import InternalError

_NUMBER = re.compile(r"(?P<groups>#,##)?(?P<whole>0+)(?:\.(?P<places>0+))?(?P<percent>%)?")
_DATE_WORDS = ("yyyy", "yy", "MM", "dd")
_TIME_WORDS = ("HH", "mm", "ss")


_WORD = r"([A-Za-z])\1*"
"""One letter, once or more: ``yyyyMM`` is two words."""


def _words(value: Value) -> list[str]:
    return [found[0] for found in re.finditer(_WORD, str(value))]


def check_number(value: Value) -> str | None:
    """The form of a number pattern, unless this is one."""
    found = _NUMBER.fullmatch(str(value))
    fine = found and not (found["groups"] and len(found["whole"]) > 1) and len(found["places"] or "") <= 10
    return None if fine and len(str(value)) <= 30 else 'a pattern such as "0.00", "#,##0.00", "000" or "0.0%"'


def check_date(value: Value) -> str | None:
    """The form of a date pattern, unless this is one. Minutes make no sense in a date: ``mm`` was meant as ``MM``."""
    words = _words(value)
    return (
        None
        if words and all(word in _DATE_WORDS for word in words)
        else 'a pattern such as "yyyy-MM-dd" (MM is the month)'
    )


def check_time(value: Value) -> str | None:
    """The form of a time pattern, unless this is one; ``mm`` only directly after ``HH``."""
    words = _words(value)
    known = words and all(word in _DATE_WORDS + _TIME_WORDS for word in words)
    minutes = all(words[at - 1] == "HH" for at, word in enumerate(words) if word == "mm" and at) and words[:1] != ["mm"]
    return None if known and minutes else 'a pattern such as "yyyy-MM-dd HH:mm" (MM is the month, mm the minute)'


def format_moment(arguments: Sequence[Argument], run: RunValues) -> str:
    """Everything that is not one of the known words is quoted for Spark."""
    parts = [found[0] for found in re.finditer(rf"{_WORD}|[^A-Za-z]+", str(arguments[1].value))]
    pattern = "".join(
        part if part.isalpha() and part.isascii() else "'" + part.replace("'", "''") + "'" for part in parts
    )
    return f"date_format({arguments[0].sql}, {quote_text(pattern)})"


def format_number(arguments: Sequence[Argument], run: RunValues) -> str:
    """Rounded first, halves away from zero: Spark's own formatting rounds halves to even."""
    found = _NUMBER.fullmatch(str(arguments[1].value))
    if found is None:
        raise InternalError(f"the pattern {arguments[1].value!r} was not checked")
    places = len(found["places"] or "")
    sql, kind = arguments[0].sql, as_decimal(arguments[0].type)
    sql = cast(sql, kind)
    if found["percent"]:
        kind = _before_percent(kind, places)
        types = type_product(kind, DecimalType(3, 0))
        sql, kind = f"({cast(f'round({sql}, {places + 2})', types.left)} * 100BD)", types.result
    exact = DecimalType(min(MAX_DIGITS, kind.whole + 1 + places), places)
    sql = cast(f"round({sql}, {places})", exact)
    if found["groups"]:
        written = f"format_number({sql}, {places})"
    elif len(found["whole"]) == 1:
        written = cast(sql, TEXT)
    else:
        digits = cast(absolute(sql, exact), TEXT)
        width = len(found["whole"]) + (places + 1 if places else 0)
        sign = f"CASE WHEN {is_negative(sql, exact)} THEN '-' ELSE '' END"
        written = f"concat({sign}, lpad({digits}, greatest({width}, char_length({digits})), '0'))"
    return f"concat({written}, '%')" if found["percent"] else written


def _before_percent(kind: DecimalType, places: int) -> DecimalType:
    """A number is rounded before it is multiplied, as the product could otherwise be rounded twice."""
    scale = min(kind.scale, places + 2)
    return DecimalType(min(MAX_DIGITS, kind.whole + 1 + scale), scale)


# --- in plain Python


def write(node: Apply, value: Number | Day | Moment, pattern: str) -> str:
    """A number or a date by a pattern."""
    if isinstance(value, Day | Moment):
        return _write_moment(value, pattern)
    return _write_number(value, as_decimal(node.operands[0].type), pattern)


def _write_moment(value: Day | Moment, pattern: str) -> str:
    year, month, day = (value.day if isinstance(value, Moment) else value).parts
    hour, minute, second, _ = value.clock if isinstance(value, Moment) else (0, 0, 0, 0)
    numbers = {"yy": abs(year) % 100, "MM": month, "dd": day, "HH": hour, "mm": minute, "ss": second}
    words = {"yyyy": write_year(year)} | {word: f"{number:02d}" for word, number in numbers.items()}
    return re.sub(_WORD, lambda found: words[found[0]], pattern)


def _write_number(value: Number, kind: DecimalType, pattern: str) -> str:
    """In the steps, types and roundings of the SQL."""
    found = _NUMBER.fullmatch(pattern)
    if found is None:
        raise InternalError(f"the pattern {pattern!r} was not checked")
    places = len(found["places"] or "")
    if found["percent"]:
        kind = _before_percent(kind, places)
        types = type_product(kind, DecimalType(3, 0))
        value, kind = Decimal(fit(fit(value, kind), types.left)).scaleb(2, EXACT), types.result
    rounded = Decimal(fit(value, DecimalType(min(MAX_DIGITS, kind.whole + 1 + places), places)))
    whole, _, fraction = write_number(rounded.copy_abs()).partition(".")
    whole = f"{int(whole):,}" if found["groups"] else whole.rjust(len(found["whole"]), "0")
    sign = "-" if rounded.is_signed() else ""
    return f"{sign}{whole}{'.' if places else ''}{fraction}{'%' if found['percent'] else ''}"
