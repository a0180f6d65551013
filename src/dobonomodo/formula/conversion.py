"""Conversions: how a value of one type becomes one of another without loss, and what written texts and numbers are.

Checking decides where they are needed; here nothing is reported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

from dobonomodo.formula.typed import Cast, Literal, Typed, decimal_of, is_integer, literal_decimal
from dobonomodo.formula.types import INTEGER, NULL, TIMESTAMP, UNKNOWN, DecimalType, Type, is_number, unify

_ISO = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<time>[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?)?"
)


def parse_moment(text: str) -> date | datetime | None:
    """Parse an ISO date or time; a time without zone is UTC. None if it could not be parsed."""
    found = _ISO.fullmatch(text)
    try:
        if not found:
            return None
        if not found["time"]:
            return date.fromisoformat(found["day"])
        moment = datetime.fromisoformat(f"{found['day']}T{found['time']}{found['zone'] or 'Z'}")
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def number_literal(value: Decimal) -> Literal:
    """A written number: an integer if it is one of 64 bits, else a decimal with its digits."""
    if is_integer(value):
        return Literal(int(value), INTEGER)
    if int(value.as_tuple().exponent) > 0:
        value = Decimal(int(value))
    return Literal(value, literal_decimal(value))


def number_for_null(operand: Typed, other: Type) -> Typed:
    """A bare NULL in arithmetic is a number like the other."""
    return convert(operand, other if is_number(other) else INTEGER) if operand.type == NULL else operand


def convert(node: Typed, kind: Type) -> Typed:
    """The same value in another type; literals are converted immediately (constant folding)."""
    if node.type in (kind, UNKNOWN) or kind in (NULL, UNKNOWN):
        return node
    if isinstance(node, Literal):
        value = node.value
        if value is None:
            return Literal(None, kind)
        if kind == TIMESTAMP and isinstance(value, date) and not isinstance(value, datetime):
            return Literal(datetime(value.year, value.month, value.day, tzinfo=UTC), TIMESTAMP)
        if isinstance(kind, DecimalType) and isinstance(value, int | Decimal):
            exact = Decimal(value)
            narrow = literal_decimal(exact)
            if narrow.whole <= kind.whole and narrow.scale <= kind.scale:
                return Literal(exact, kind)
    return Cast(node, kind)


def narrowest_type(operands: Sequence[Typed]) -> Type:
    """The decimal type of several numbers, literals counted by their digits."""
    numbers = [each for each in operands if is_number(each.type)]
    common = unify(decimal_of(each) for each in numbers)
    return common or UNKNOWN


def make_comparable(operands: Sequence[Typed], common: Type) -> list[Typed]:
    """Operands to compare: decimals keep their digits, as rounding one to the type of another could make them equal."""
    if not isinstance(common, DecimalType):
        return [convert(each, common) for each in operands]
    null = next(decimal_of(each) for each in operands if is_number(each.type))
    return [convert(each, null if each.type == NULL else decimal_of(each)) for each in operands]
