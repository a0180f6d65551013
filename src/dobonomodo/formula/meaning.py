"""The implementation of functions and operators in plain Python: values, errors, exact numbers, lazy operands.

A row of the catalogue holds this implementation and its Spark SQL. Both must return the same value for every row.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any

from dobonomodo.formula.moment import Day, Moment, day_of, moment_of
from dobonomodo.formula.types import DecimalType, Type
from dobonomodo.problems import RunFailed
from dobonomodo.problems.formula import InvalidDate
from dobonomodo.problems.run import ArithmeticOverflow, InvalidNumber

if TYPE_CHECKING:
    from dobonomodo.formula.functions.signature import RunValues
    from dobonomodo.formula.typed import Apply, Typed

Value = None | bool | int | Decimal | str | Day | Moment
Number = int | Decimal

Steps = Generator["Typed", Value, Value]
"""Yields an operand and is sent its value, or thrown its fault; returns the value of the whole."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """The meaning of a function over one row."""

    steps: Callable[[Apply, RunValues], Steps]


Arguments = Sequence[Sequence[Value]]
"""For each row of a group, the values of the arguments."""


@dataclass(frozen=True, slots=True)
class Total:
    """The meaning of an aggregate over the rows of a group: a function of its type and the arguments."""

    of: Callable[[Type, Arguments], Value]
    of_row: Callable[[Apply], Typed] | None = None
    """What one row adds, if the total is the sum of that over all rows; NULL adds nothing."""


@dataclass(frozen=True, slots=True)
class Place:
    """A row among those of its partition, which are in order."""

    at: int
    arguments: Arguments
    """For each row of the partition, the values of the arguments."""
    keys: Sequence[object]
    """For each row, what it is sorted by; equal for peers."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The meaning of a function that needs the other rows of a partition, in their order."""

    of: Callable[[Place], Value]


Meaning = Scalar | Total | Neighbour


def each(function: Callable[..., Any]) -> Scalar:
    """A function of values; NULL where one of them is."""

    def steps(node: Apply, run: RunValues) -> Steps:
        values = yield from present(node.operands)
        return None if values is None else function(*values)

    return Scalar(steps)


def typed(function: Callable[..., Any]) -> Scalar:
    """A function of the call and of values; NULL where one of the values is."""

    def steps(node: Apply, run: RunValues) -> Steps:
        values = yield from present(node.operands)
        return None if values is None else function(node, *values)

    return Scalar(steps)


def lazy(function: Callable[[Sequence[Typed]], Steps]) -> Scalar:
    """A function with lazy operands: it evaluates only those that it needs."""
    return Scalar(lambda node, run: function(node.operands))


def of_run(function: Callable[[RunValues], object]) -> Scalar:
    """What the run says."""

    def steps(node: Apply, run: RunValues) -> Steps:
        yield from ()
        return as_value(function(run))

    return Scalar(steps)


def present(operands: Sequence[Typed]) -> Generator[Typed, Value, list[Any] | None]:
    """The values of all operands, None where one of them is NULL.

    A NULL decides the result, whatever the other operands are: Spark may then skip an error, and its stored result counts.
    """
    values, fault = yield from attempt(operands)
    if None in values:
        return None
    if fault is not None:
        raise fault
    return values


def attempt(operands: Sequence[Typed]) -> Generator[Typed, Value, tuple[list[Any], RunFailed | None]]:
    """The values of those operands that have one, and the first fault of the others."""
    found = []
    for operand in operands:
        found.append((yield from attempt_one(operand)))
    faults = [each for each in found if isinstance(each, RunFailed)]
    return [each for each in found if not isinstance(each, RunFailed)], faults[0] if faults else None


def attempt_one(operand: Typed) -> Generator[Typed, Value, Any]:
    """The value of an operand, or its fault."""
    try:
        return (yield operand)
    except RunFailed as fault:
        return fault


def all_true(operands: Sequence[Typed]) -> Steps:
    """AND: one FALSE decides, then one NULL."""
    return (yield from _decide(operands, by=False))


def any_true(operands: Sequence[Typed]) -> Steps:
    """OR: one TRUE decides, then one NULL."""
    return (yield from _decide(operands, by=True))


def _decide(operands: Sequence[Typed], *, by: bool) -> Steps:
    values, fault = yield from attempt(operands)
    if by in values:
        return by
    if fault is not None:
        raise fault
    return None if None in values else not by


def choose(branches: Sequence[Typed], *, subject: Typed | None = None) -> Steps:
    """Tests and values in turn, then perhaps a value for the case that no test holds: the value of the first that does.

    A test is a condition, or a value that the subject must be equal to.
    """
    tests, values = branches[: len(branches) // 2 * 2 : 2], branches[1::2]
    otherwise = branches[-1] if len(branches) % 2 else None
    for at, (test, value) in enumerate(zip(tests, values, strict=True)):
        try:
            wanted: Value = True if subject is None else (yield subject)
            holds = wanted is not None and (yield test) == wanted
        except RunFailed as fault:
            return (yield from _agree([*values[at:], otherwise], fault))
        if holds:
            return (yield value)
    return None if otherwise is None else (yield otherwise)


def _agree(possible: Sequence[Typed | None], fault: RunFailed) -> Steps:
    """The value of all that a fault leaves open, where they are the same: then Spark need not evaluate the test."""
    values, other = yield from attempt([each for each in possible if each is not None])
    if None in possible:
        values.append(None)
    if other is not None or any(value != values[0] for value in values):
        raise fault
    return values[0]  # type: ignore[no-any-return]


def is_null(operands: Sequence[Typed]) -> Steps:
    """IS NULL."""
    return (yield operands[0]) is None


def or_null(function: Callable[..., Value]) -> Callable[..., Value]:
    """The same function, with NULL in place of a fault."""

    def tried(*given: Any) -> Value:
        try:
            return function(*given)
        except RunFailed:
            return None

    return tried


# --- faults


def overflow(value: object) -> RunFailed:
    """A value that its type cannot hold."""
    return RunFailed(ArithmeticOverflow(detail=f"the value {value} does not fit"))


def not_a_date(text: object) -> RunFailed:
    """A text, or three numbers, could not be converted to a date."""
    return RunFailed(InvalidDate(text=str(text)))


def not_a_number(text: str) -> RunFailed:
    """A text value could not be parsed as a number."""
    return RunFailed(InvalidNumber(text=text))


# --- values


def as_value(value: object) -> Value:
    """A value of Python's own types."""
    match value:
        case datetime():
            return moment_of(value)
        case date():
            return day_of(value)
        case None | bool() | int() | Decimal() | str() | Day() | Moment():
            return value
        case _:
            raise TypeError(f"a formula has no values of {type(value).__name__}")


EXACT = Context(prec=2_000, rounding=ROUND_HALF_UP, Emin=-999_999, Emax=999_999, traps=[])
"""Decimal arithmetic with room for every digit of any two values."""


def fit(value: Number, kind: Type) -> Number:
    """A number in a type: rounded to its scale, halves away from zero; refused if it has more digits before the point."""
    if not isinstance(kind, DecimalType):
        return int64(int(value))
    if not value:
        return Decimal((0, (0,), -kind.scale))
    exact = Decimal(value)
    if exact.adjusted() > kind.whole:
        raise overflow(value)
    rounded = exact.quantize(Decimal((0, (1,), -kind.scale)), ROUND_HALF_UP, EXACT)
    if rounded and rounded.adjusted() >= kind.whole:
        raise overflow(value)
    return rounded if rounded else rounded.copy_abs()


def divide(left: Number, right: Number, kind: DecimalType) -> Number:
    """A quotient in a type, rounded once."""
    dividend, divisor = Decimal(left), Decimal(right)
    shift = kind.scale + int(dividend.as_tuple().exponent) - int(divisor.as_tuple().exponent)
    top, bottom = abs(_digits(dividend)), abs(_digits(divisor))
    top, bottom = (top * 10**shift, bottom) if shift >= 0 else (top, bottom * 10**-shift)
    units, rest = divmod(top, bottom)
    units += 2 * rest >= bottom
    quotient = EXACT.scaleb(Decimal(units), -kind.scale)
    return fit(quotient.copy_negate() if dividend.is_signed() != divisor.is_signed() else quotient, kind)


def _digits(value: Decimal) -> int:
    return int(value.scaleb(-int(value.as_tuple().exponent), EXACT))


def int64(value: int) -> int:
    """An integer of 64 bits."""
    return _bits(value, 63)


def int32(value: int) -> int:
    """An integer of 32 bits, which is all that Spark takes for some arguments."""
    return _bits(value, 31)


def _bits(value: int, bits: int) -> int:
    if not -(1 << bits) <= value < 1 << bits:
        raise overflow(value)
    return value


def write_number(value: Number) -> str:
    """All digits and no exponent."""
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
