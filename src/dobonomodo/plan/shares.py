"""Exact shares: an amount divided in proportion to drivers by the largest remainder method, in whole units of its last digit.

Where ``amount * total`` is a long integer, so is ``amount * driver``, and it is divided as such. Else ``amount * driver /
total`` can have more digits than Spark computes with, and is divided as on paper. Where ``amount`` is ``whole * total +
rest``, a share is ``whole * driver + rest * driver / total``, the last part taken for some digits of the driver after the
other. Every number on the way is an integer of at most 38 digits. Amounts and drivers for which that is not so are refused
before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from dobonomodo.formula import ColumnRef, Typed, convert
from dobonomodo.formula.typed import Cast, Literal, Operation, Order, literal_decimal
from dobonomodo.formula.types import BOOLEAN, INTEGER, MAX_DIGITS, DecimalType, as_decimal
from dobonomodo.plan.expression import apply, if_else, null, over
from dobonomodo.plan.relation import Derive, Rel, Window

TOTAL_DIGITS = 27
"""Digits that drivers of one amount, and their total, may have, counted in units of their last digit."""
GROUP_DIGITS = 10
"""Digits of a driver that one step of the division takes. With those of a total they are one less than Spark has."""
SHORT_DIGITS = 18
"""Digits that every long integer has."""
AMOUNT_DIGITS = 32
"""Digits that an amount may have at most: a quotient of Spark has six digits behind the point."""

ZERO = Literal(Decimal(0), DecimalType(1, 0))


@dataclass(frozen=True, slots=True)
class Shares:
    """A planned allocation."""

    column: str
    """What is distributed."""
    places: int
    """Digits behind the point of each part."""
    deletes: bool
    """Whether a row whose amount is distributed is marked as deleted."""
    offsets: bool
    """Whether a row with the negative amount is added for it."""
    may_lack_receivers: bool

    @property
    def conserves(self) -> bool:
        """Whether the total of the column stays."""
        return self.deletes or self.offsets


def amount_digits(places: int) -> int:
    """Digits of an amount in units, such that a part of it fits a decimal with so many places."""
    return min(AMOUNT_DIGITS, MAX_DIGITS - 1 - places)


def power(exponent: int) -> Literal:
    """A power of ten."""
    value = Decimal(1).scaleb(exponent)
    exact = Decimal(int(value)) if exponent >= 0 else value
    return Literal(exact, literal_decimal(exact))


def compare(operator: str, left: Typed, right: Typed) -> Typed:
    """A comparison of two numbers."""
    return Operation(operator, (_decimal(left), _decimal(right)), BOOLEAN)


def in_units(value: Typed, places: int, digits: int) -> Typed:
    """A number, which has at most so many places, as a whole number of its last place."""
    exact = _decimal(value)
    return _whole(_times(exact, power(places)) if places else exact, digits)


def part_amounts(
    pairs: Rel,
    *,
    pool: Sequence[ColumnRef],
    amount: Typed,
    weight: ColumnRef,
    total: ColumnRef,
    places: int,
    ties: Sequence[Order],
) -> tuple[Rel, Typed]:
    """The pairs of amounts and receivers with what is needed for the part of each, and the part.

    ``weight`` is the driver in units, ``total`` the sum over the pairs of a ``pool``; it is above zero. Units that are left go to
    the largest remainders, then the largest drivers, then by ``ties``.
    """
    # Numbers of at most 18 digits are long integers for Spark, so no type is wider than it must be.
    digits = min(amount_digits(places), as_decimal(amount.type).whole + places)
    units, sum_ = ColumnRef(UNITS, None, DecimalType(digits, 0)), ColumnRef(TOTAL, None, DecimalType(TOTAL_DIGITS, 0))
    prepared = Derive(
        pairs,
        {
            units.name: in_units(apply("ABS", _decimal(amount)), places, digits),
            # NULL for rows that are refused: Spark may compute them in any case, and division by zero is an error.
            sum_.name: if_else(compare(">", total, ZERO), _whole(total, TOTAL_DIGITS), null(sum_.type)),
        },
    )
    divided, floor, remainders = _divide(prepared, units, weight, sum_)
    largest = (Order(each, descending=True) for each in (*remainders, weight))
    # The order of the places serves the sums above them: Spark sorts once.
    ranked = Window(divided, RANKED, {PLACE: over("ROW_NUMBER", partition=pool, order=(*largest, *ties))})
    summed = Window(ranked, FLOORS, {SUM: over("SUM", floor, partition=pool)})
    floors = ColumnRef(SUM, FLOORS, summed.schema.joined[FLOORS][SUM])
    place = ColumnRef(PLACE, RANKED, INTEGER)
    gets_more = compare("<=", place, _minus(units, floors))
    part = _plus(floor, if_else(gets_more, power(0), ZERO))
    # No part has more digits than the amount, so that most have a type whose sign Spark changes by itself.
    narrow = _whole(part, digits)
    exact = _times(narrow, power(-places)) if places else narrow
    negative = compare("<", amount, ZERO)
    return summed, if_else(negative, Operation("NEGATE", (exact,), exact.type), exact)


RANKED, FLOORS = " ranked", " floors"
PLACE, SUM = "place", "sum"
"""The place of a pair by its remainder, and the sum of the parts before the units that are left."""
UNITS, TOTAL, FLOOR = " units", " total", " floor"
"""Of a pair: the amount without its sign, the total of drivers, and the part before the units that are left, all in units."""


def _divide(
    pairs: Rel, units: ColumnRef, weight: ColumnRef, total: ColumnRef
) -> tuple[Rel, ColumnRef, tuple[ColumnRef, ...]]:
    """``units * weight / total`` as a whole number, and the remainder in several columns, by which the pairs of a pool are sorted.

    Amounts and totals whose product is a long integer are divided as such, many times as fast. The others are NULL there,
    and the former where decimals are divided.
    """
    node, short = _shorten(pairs, units, weight, total)
    digits = as_decimal(units.type).precision
    wide = ColumnRef(" wide units", None, units.type)
    is_wide = Operation("IS NULL", (short.units,), BOOLEAN)
    node = Derive(node, {wide.name: if_else(is_wide, units, null(units.type))})
    by_decimals = _divide_at_once if digits + as_decimal(weight.type).precision < MAX_DIGITS else _divide_by_groups
    node, quotient, remainder = by_decimals(node, wide, weight, total)
    product = Operation("*", (short.units, short.weight), INTEGER)
    fast = _whole(Operation("DIV", (product, short.total), INTEGER), digits)
    rest = ColumnRef(" short remainder", None, INTEGER)
    floor = ColumnRef(FLOOR, None, DecimalType(digits, 0))
    values = {
        floor.name: if_else(is_wide, quotient, fast),
        rest.name: Operation("%", (product, short.total), INTEGER),
    }
    return Derive(node, values), floor, (rest, remainder)


@dataclass(frozen=True, slots=True)
class _Short:
    """Long integers; units and driver are NULL where a product would have too many digits, for all pairs of an amount alike."""

    units: ColumnRef
    weight: ColumnRef
    total: ColumnRef


def _shorten(pairs: Rel, units: ColumnRef, weight: ColumnRef, total: ColumnRef) -> tuple[Rel, _Short]:
    short = _Short(*(ColumnRef(f" short {name}", None, INTEGER) for name in ("units", "weight", "total")))
    limit = power(SHORT_DIGITS)
    node: Rel = Derive(
        pairs,
        {
            own.name: if_else(compare("<", each, limit), Cast(each, INTEGER), null(INTEGER))
            for own, each in ((short.units, units), (short.total, total))
        },
    )
    # A driver is at most the total.
    most = Operation("DIV", (Literal(10**SHORT_DIGITS - 1, INTEGER), short.total), INTEGER)
    fits = Operation("<=", (short.units, most), BOOLEAN)
    node = Derive(node, {short.units.name: if_else(fits, short.units, null(INTEGER))})
    known = Operation("IS NOT NULL", (short.units,), BOOLEAN)
    return Derive(node, {short.weight.name: if_else(known, Cast(weight, INTEGER), null(INTEGER))}), short


def _divide_at_once(pairs: Rel, units: ColumnRef, weight: ColumnRef, total: ColumnRef) -> tuple[Rel, Typed, ColumnRef]:
    """Where the product of an amount and a driver has a type."""
    digits = as_decimal(units.type).precision
    step, remainder = _hidden("step", MAX_DIGITS), _hidden("remainder", TOTAL_DIGITS)
    node: Rel = Derive(pairs, {step.name: _whole(_times(units, weight), MAX_DIGITS)})
    node = Derive(node, {remainder.name: _whole(_remainder(step, total), TOTAL_DIGITS)})
    return node, _whole(_quotient(step, total), digits), remainder


def _divide_by_groups(
    pairs: Rel, units: ColumnRef, weight: ColumnRef, total: ColumnRef
) -> tuple[Rel, Typed, ColumnRef]:
    """By long division."""
    digits = as_decimal(units.type).precision
    least = min(digits, TOTAL_DIGITS)
    whole, rest = _hidden("whole", digits), _hidden("rest", least)
    node: Rel = Derive(
        pairs,
        {
            whole.name: _whole(_quotient(units, total), digits),
            rest.name: _whole(_remainder(units, total), least),
        },
    )
    # A driver is at most the total, so what a rest is divided into is at most the rest.
    quotient, remainder = _hidden("quotient", least), _hidden("remainder", TOTAL_DIGITS)
    step = _hidden("step", MAX_DIGITS)
    for number, group in enumerate(_groups(weight)):
        product = _times(rest, group)
        before = _times(remainder, power(GROUP_DIGITS)) if number else None
        node = Derive(node, {step.name: _whole(_plus(before, product) if before else product, MAX_DIGITS)})
        found = _quotient(step, total)
        shifted = _times(quotient, power(GROUP_DIGITS)) if number else None
        node = Derive(
            node,
            {
                quotient.name: _whole(_plus(shifted, found) if shifted else found, least),
                remainder.name: _whole(_remainder(step, total), TOTAL_DIGITS),
            },
        )
    return node, _whole(_plus(_times(whole, weight), quotient), digits), remainder


def _groups(weight: ColumnRef) -> list[Typed]:
    """The digits of a driver in groups, the highest first."""
    count = -(-as_decimal(weight.type).precision // GROUP_DIGITS)
    if count == 1:
        return [weight]
    found: list[Typed] = []
    for number in reversed(range(count)):
        below = power(GROUP_DIGITS * number)
        upper = _remainder(weight, power(GROUP_DIGITS * (number + 1))) if number < count - 1 else weight
        found.append(_whole(_quotient(upper, below) if number else upper, GROUP_DIGITS))
    return found


# --- integers as decimals, with the types that Spark gives results


def _hidden(name: str, digits: int) -> ColumnRef:
    """A column that no user can have."""
    return ColumnRef(f" {name}", None, DecimalType(digits, 0))


def _decimal(value: Typed) -> Typed:
    return convert(value, as_decimal(value.type))


def _whole(value: Typed, digits: int) -> Typed:
    """A whole number in a type of so many digits."""
    kind = DecimalType(digits, 0)
    return value if value.type == kind else Cast(value, kind)


def _times(left: Typed, right: Typed) -> Typed:
    one, other = as_decimal(left.type), as_decimal(right.type)
    return Operation("*", (left, right), _adjust(one.precision + other.precision + 1, one.scale + other.scale))


def _plus(left: Typed, right: Typed) -> Typed:
    return Operation("+", (left, right), _type_of_sum(left, right))


def _minus(left: Typed, right: Typed) -> Typed:
    return Operation("-", (left, right), _type_of_sum(left, right))


def _type_of_sum(left: Typed, right: Typed) -> DecimalType:
    one, other = as_decimal(left.type), as_decimal(right.type)
    scale = max(one.scale, other.scale)
    return _adjust(max(one.whole, other.whole) + scale + 1, scale)


def _remainder(dividend: Typed, divisor: Typed) -> Typed:
    """The remainder of a division of non-negative whole numbers."""
    one, other = as_decimal(dividend.type), as_decimal(divisor.type)
    return Operation("%", (dividend, divisor), DecimalType(min(one.precision, other.precision), 0))


def _quotient(dividend: Typed, divisor: Typed) -> Typed:
    """A whole number without what is left divides without a remainder, so that Spark rounds nothing."""
    even = _minus(dividend, _remainder(dividend, divisor))
    one, other = as_decimal(even.type), as_decimal(divisor.type)
    scale = max(6, one.scale + other.precision + 1)
    return Operation("/", (even, divisor), _adjust(one.whole + other.scale + scale, scale))


def _adjust(precision: int, scale: int) -> DecimalType:
    """Spark's type for a result that would need so many digits: those before the point come first."""
    if precision <= MAX_DIGITS:
        return DecimalType(precision, scale)
    return DecimalType(MAX_DIGITS, max(MAX_DIGITS - (precision - scale), min(scale, 6)))
