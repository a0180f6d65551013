"""The types of the language and their common types.

Decimals carry precision and scale, because Spark's result types depend on them and cents must add up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MAX_DIGITS = 38
KEPT_SCALE = 10
"""Fractional digits that a product, a quotient or a mixture of wide decimals keeps at least."""
ROOMY_DIGITS = 13
"""Integer digits that an operand of wide arithmetic may have at least."""
INTEGER_DIGITS = 19
"""Digits of the largest 64-bit integer."""


@dataclass(frozen=True, slots=True)
class SimpleType:
    """A type that is fully said by its name."""

    name: str
    sql: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class DecimalType:
    """An exact number with ``precision`` digits, ``scale`` of them behind the point."""

    precision: int
    scale: int

    @property
    def whole(self) -> int:
        """Digits before the point."""
        return self.precision - self.scale

    @property
    def sql(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})"

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


Type = SimpleType | DecimalType

TEXT = SimpleType("string", "STRING")
INTEGER = SimpleType("integer", "BIGINT")
BOOLEAN = SimpleType("boolean", "BOOLEAN")
DATE = SimpleType("date", "DATE")
TIMESTAMP = SimpleType("timestamp", "TIMESTAMP")
NULL = SimpleType("null", "STRING")
"""The type of a bare NULL; a column of nothing else becomes text, since Parquet cannot store void."""
UNKNOWN = SimpleType("unknown", "STRING")
"""The type of an expression with a reported problem; it fits anywhere, so that the problem is reported once."""

DECIMAL = DecimalType(MAX_DIGITS, KEPT_SCALE)
"""What a column declared plainly as ``decimal`` is."""

_SIMPLE_BY_NAME = {kind.name: kind for kind in (TEXT, INTEGER, BOOLEAN, DATE, TIMESTAMP)}
TYPE_NAMES = (*_SIMPLE_BY_NAME, "decimal", "decimal(p,s)")


def parse_type(text: str) -> Type | None:
    """The type that a definition names, such as ``decimal(15,2)``; None when there is none."""
    name = text.strip().lower()
    if name == "decimal":
        return DECIMAL
    if found := re.fullmatch(r"decimal\(\s*([0-9]{1,2})\s*,\s*([0-9]{1,2})\s*\)", name):
        precision, scale = int(found[1]), int(found[2])
        return DecimalType(precision, scale) if 1 <= precision <= MAX_DIGITS and scale <= precision else None
    return _SIMPLE_BY_NAME.get(name)


def describe(kind: Type) -> str:
    """A type in the words of a message: ``text``, ``a number``, ``a date``."""
    if isinstance(kind, DecimalType) or kind == INTEGER:
        return "a number"
    return {
        TEXT: "text",
        BOOLEAN: "true or false",
        DATE: "a date",
        TIMESTAMP: "a time",
        NULL: "NULL",
        UNKNOWN: "unknown",
    }[kind]


def is_number(kind: Type) -> bool:
    """Whether a type can be computed with."""
    return isinstance(kind, DecimalType) or kind == INTEGER


def fits(kind: Type, wanted: Type) -> bool:
    """Whether a value of one type may be used where another is wanted, without loss."""
    if kind in (NULL, UNKNOWN) or wanted == UNKNOWN or kind == wanted:
        return True
    if isinstance(wanted, DecimalType):
        return is_number(kind)
    return (kind, wanted) == (DATE, TIMESTAMP)


def as_decimal(kind: Type) -> DecimalType:
    """A number's type as a decimal that holds all its values."""
    return kind if isinstance(kind, DecimalType) else DecimalType(INTEGER_DIGITS, 0)


def unify(kinds: Iterable[Type]) -> Type | None:
    """The type that holds the values of all, or None if there is none."""
    result: Type = NULL
    for kind in kinds:
        if kind == UNKNOWN or result == UNKNOWN:
            result = UNKNOWN
        elif fits(kind, result) and not isinstance(result, DecimalType):
            continue
        elif (fits(result, kind) and not isinstance(kind, DecimalType)) or result == NULL:
            result = kind
        elif kind != NULL and is_number(result) and is_number(kind):
            result = _unify_decimals(as_decimal(result), as_decimal(kind))
        elif kind != NULL:
            return None
    return result


def unify_keys(kinds: Sequence[Type]) -> Type | None:
    """The type in which keys are compared: none loses a digit behind the point, since two of them could become one."""
    if all(map(is_number, kinds)) and len(set(kinds)) > 1:
        decimals = [as_decimal(kind) for kind in kinds]
        return common_decimal(decimals) or DecimalType(MAX_DIGITS, max(each.scale for each in decimals))
    return unify(kinds)


def widen_column(existing: Type, given: Type) -> Type | None:
    """The type of a column after values of another type are put into it; None if they cannot be.

    The values that are there lose no digit behind the point (C-26). Where 38 digits are not enough for both, a value that has too
    many before the point is refused.
    """
    if existing == given or not is_number(existing) or not is_number(given):
        return unify((existing, given))
    one, other = as_decimal(existing), as_decimal(given)
    room = MAX_DIGITS - min(one.whole, ROOMY_DIGITS)
    return common_decimal((one, other)) or DecimalType(MAX_DIGITS, max(one.scale, min(other.scale, room)))


def _unify_decimals(one: DecimalType, other: DecimalType) -> DecimalType:
    if (exact := common_decimal((one, other))) is not None:
        return exact
    whole, scale = max(one.whole, other.whole), max(one.scale, other.scale)
    return DecimalType(MAX_DIGITS, min(scale, max(KEPT_SCALE, MAX_DIGITS - whole)))


def common_decimal(kinds: Iterable[DecimalType]) -> DecimalType | None:
    """The narrowest type that holds every value of all; None where that takes more than 38 digits."""
    listed = tuple(kinds)
    scale = max(kind.scale for kind in listed)
    precision = max(kind.whole for kind in listed) + scale
    return DecimalType(precision, scale) if precision <= MAX_DIGITS else None


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The types to bring two operands to, and the type that Spark then gives the result, rounding at most once."""

    left: DecimalType
    right: DecimalType
    result: DecimalType


def type_sum(left: DecimalType, right: DecimalType) -> Arithmetic:
    """``+`` and ``-``: exact; wide operands give up a leading digit, and a value that has it is an error."""
    whole, scale = max(left.whole, right.whole) + 1, max(left.scale, right.scale)
    if whole + scale <= MAX_DIGITS:
        return Arithmetic(left, right, DecimalType(whole + scale, scale))
    scale = min(scale, MAX_DIGITS - 1 - ROOMY_DIGITS)
    whole = min(whole, MAX_DIGITS - scale)
    return Arithmetic(
        _narrow(left, whole=whole - 1, scale=scale),
        _narrow(right, whole=whole - 1, scale=scale),
        DecimalType(whole + scale, scale),
    )


def type_product(left: DecimalType, right: DecimalType) -> Arithmetic:
    """``*``: exact while it fits; else at least ten fractional digits, rounded once.

    Spark gives a product that needs more than 38 digits the scale ``38 - (whole1 + whole2 + 1)``, so the
    operands' integer digits are chosen to make that the scale we want, and no second rounding follows.
    """
    scale = left.scale + right.scale
    digits = MAX_DIGITS - 1 - min(scale, KEPT_SCALE)
    if left.whole + right.whole > digits:
        right_whole = min(right.whole, max(digits // 2, digits - left.whole))
        left, right = _narrow(left, whole=digits - right_whole), _narrow(right, whole=right_whole)
    whole = left.whole + right.whole + 1
    scale = min(scale, MAX_DIGITS - whole)
    return Arithmetic(left, right, DecimalType(whole + scale, scale))


def type_quotient(left: DecimalType, right: DecimalType) -> Arithmetic:
    """``/``: always ten fractional digits, rounded once.

    Spark's scale is ``38 - (whole1 + scale2)`` as soon as the exact one does not fit: making that sum 28 gives
    ten digits whatever the operands were declared as.
    """
    whole_and_scale = MAX_DIGITS - KEPT_SCALE
    right_scale = min(right.scale, max(whole_and_scale - left.whole, whole_and_scale - ROOMY_DIGITS))
    divisor = _narrow(right, whole=min(right.whole, MAX_DIGITS - right_scale), scale=right_scale)
    whole = whole_and_scale - divisor.scale
    scale = min(max(left.scale, KEPT_SCALE - 1 - divisor.precision), MAX_DIGITS - whole)
    return Arithmetic(DecimalType(whole + scale, scale), divisor, DECIMAL)


def _narrow(kind: DecimalType, *, whole: int, scale: int | None = None) -> DecimalType:
    """The same type with at most so many digits before and behind the point."""
    scale = kind.scale if scale is None else min(kind.scale, scale)
    return DecimalType(max(1, min(kind.whole, whole) + scale), scale)
