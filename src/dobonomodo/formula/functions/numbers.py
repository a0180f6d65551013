"""Numbers: exact, rounded the way Excel rounds."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from decimal import (
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    ROUND_UP,
    Decimal,
)
from typing import Any

from dobonomodo.formula.compare import greatest_of, least_of
from dobonomodo.formula.functions.signature import (
    Argument,
    Function,
    RunValues,
    constant,
    fn,
    integer,
    maybe,
    more,
    number,
    ordered,
    same_as_first,
    sig,
    text,
)
from dobonomodo.formula.meaning import (
    EXACT,
    Number,
    Scalar,
    Steps,
    Value,
    attempt_one,
    each,
    fit,
    int64,
    not_a_number,
    or_null,
    overflow,
    present,
    typed,
)
from dobonomodo.formula.sql import absolute, cast, is_negative
from dobonomodo.formula.typed import Apply, Literal, Typed, decimal_of
from dobonomodo.formula.typed import Value as Written
from dobonomodo.formula.types import (
    DECIMAL,
    INTEGER,
    INTEGER_DIGITS,
    MAX_DIGITS,
    ROOMY_DIGITS,
    UNKNOWN,
    DecimalType,
    Type,
    as_decimal,
    common_decimal,
    unify,
)


def _digits(value: Written) -> str | None:
    fine = isinstance(value, int) and -MAX_DIGITS <= value <= MAX_DIGITS
    return None if fine else f"a whole number between -{MAX_DIGITS} and {MAX_DIGITS}"


places = constant(integer, _digits)


def _places(arguments: Sequence[Typed]) -> int:
    last = arguments[1] if len(arguments) > 1 else None
    return last.value if isinstance(last, Literal) and isinstance(last.value, int) else 0


def rounded(arguments: Sequence[Typed]) -> Type:
    """Spark's type for a number rounded to so many places."""
    kind = arguments[0].type
    if not isinstance(kind, DecimalType):
        return kind
    count = _places(arguments)
    whole = kind.whole + 1
    if count < 0:
        return DecimalType(min(MAX_DIGITS, max(whole, -count + 1)), 0)
    scale = min(kind.scale, count)
    return DecimalType(min(MAX_DIGITS, whole + scale), scale)


def _round_with(template: str) -> Callable[[Sequence[Argument], RunValues], str]:
    """Rounding that leaves integers integers; Spark's two-argument ceil and floor would make them decimals."""

    def render(arguments: Sequence[Argument], run: RunValues) -> str:
        count = _places([argument.node for argument in arguments])
        sql, kind = arguments[0].sql, arguments[0].type
        if isinstance(kind, DecimalType):
            return template.format(sql, count, negative=is_negative(sql, kind))
        if count >= 0:
            return sql
        kind = DecimalType(INTEGER_DIGITS, 0)
        sql = cast(sql, kind)
        return cast(template.format(sql, count, negative=is_negative(sql, kind)), INTEGER)

    return render


def _absolute(arguments: Sequence[Argument], run: RunValues) -> str:
    return absolute(arguments[0].sql, arguments[0].type)


def _whole(arguments: Sequence[Typed]) -> Type:
    kind = arguments[0].type
    return DecimalType(min(MAX_DIGITS, kind.whole + 1), 0) if isinstance(kind, DecimalType) and kind.scale else kind


def _whole_with(function: str) -> Callable[[Sequence[Argument], RunValues], str]:
    def render(arguments: Sequence[Argument], run: RunValues) -> str:
        kind = arguments[0].type
        return f"{function}({arguments[0].sql})" if isinstance(kind, DecimalType) and kind.scale else arguments[0].sql

    return render


def _remainder_type(arguments: Sequence[Typed]) -> Type:
    kinds = [argument.type for argument in arguments]
    if UNKNOWN in kinds:
        return UNKNOWN
    if kinds == [INTEGER, INTEGER]:
        return INTEGER
    both = [decimal_of(argument) for argument in arguments]
    scale = max(kind.scale for kind in both)
    common = common_decimal(both) or DecimalType(MAX_DIGITS, min(scale, MAX_DIGITS - ROOMY_DIGITS))
    return DecimalType(min(common.precision, MAX_DIGITS - 1), min(common.scale, MAX_DIGITS - 1))


def _remainder(arguments: Sequence[Argument], run: RunValues) -> str:
    """Spark's ``%`` has the sign of the dividend and its ``pmod`` is only right for positive divisors."""
    dividend, divisor = arguments
    if dividend.type == divisor.type == INTEGER and isinstance(divisor.value, int) and divisor.value > 0:
        return f"pmod({dividend.sql}, {divisor.sql})"
    kind = as_decimal(_remainder_type([dividend.node, divisor.node]))
    left, right = cast(dividend.sql, kind), cast(divisor.sql, kind)
    sql = f"((({left} % nullif({right}, 0BD)) + {right}) % nullif({right}, 0BD))"
    return cast(sql, INTEGER) if dividend.type == divisor.type == INTEGER else cast(sql, kind)


def _chosen_type(arguments: Sequence[Typed]) -> Type:
    """The type of the value that is chosen among several."""
    kinds = [argument.type for argument in arguments]
    return (unify(kinds) if isinstance(kinds[0], DecimalType) else kinds[0]) or UNKNOWN


def _least(arguments: Sequence[Argument], run: RunValues) -> str:
    return least_of(arguments, _chosen_type([argument.node for argument in arguments]))


def _greatest(arguments: Sequence[Argument], run: RunValues) -> str:
    return greatest_of(arguments, _chosen_type([argument.node for argument in arguments]))


_ROUND = _round_with("round({0}, {1})")
_BROUND = _round_with("bround({0}, {1})")
_ROUNDUP = _round_with("CASE WHEN {negative} THEN floor({0}, {1}) ELSE ceil({0}, {1}) END")
_ROUNDDOWN = _round_with("CASE WHEN {negative} THEN ceil({0}, {1}) ELSE floor({0}, {1}) END")

# --- in plain Python


def _rounding(mode: str) -> Callable[..., Value]:
    def round_number(node: Apply, number: Number, count: int = 0) -> Number:
        if not isinstance(number, Decimal) and count >= 0:
            return number
        place = Decimal(number).quantize(Decimal((0, (1,), -count)), mode, EXACT)
        return fit(place, node.type)

    return round_number


def _modulo(node: Apply, run: RunValues) -> Steps:
    """Of the operands in the type of the result, which may have fewer digits than they. A divisor of zero decides."""
    divisor = yield from attempt_one(node.operands[1])
    if isinstance(divisor, int | Decimal) and not fit(divisor, node.type):
        return None
    values = yield from present(node.operands)
    if values is None:
        return None
    left, right = (Decimal(fit(value, node.type)) for value in values)
    return fit(_remainder_of(left, right), node.type)


def _remainder_of(left: Decimal, right: Decimal) -> Decimal:
    rest = EXACT.remainder(left, right)
    return EXACT.add(rest, right) if rest and rest.is_signed() != right.is_signed() else rest


def _choose(choose: Callable[..., Any]) -> Callable[[Apply, RunValues], Steps]:
    def steps(node: Apply, run: RunValues) -> Steps:
        values = []
        for operand in node.operands:
            value = yield operand
            if value is not None:
                values.append(value)
        found: Value = choose(values, default=None)
        return fit(found, node.type) if isinstance(found, int | Decimal) else found

    return steps


_DECIMAL_TEXT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE](?P<exponent>[+-]?[0-9]+))?")
_BLANKS = "".join(map(chr, range(33)))


def read_decimal(written: str) -> Value:
    """The number that a text says. As Java does, it reads the digits of all scripts."""
    text = written.strip(_BLANKS)
    if not text.isascii():
        text = "".join(_ascii_digit(character) for character in text)
    found = _DECIMAL_TEXT.fullmatch(text)
    if found is None:
        raise not_a_number(written)
    mantissa = Decimal(text[: found.start(2)] if found["exponent"] else text)
    exponent = _read_exponent(found["exponent"] or "0")
    if exponent is None or -int(mantissa.as_tuple().exponent) - exponent >= 2**31:
        raise not_a_number(written)
    if mantissa.adjusted() + exponent > MAX_DIGITS and mantissa:
        raise overflow(written)
    if mantissa.adjusted() + exponent < -MAX_DIGITS:
        return fit(0, DECIMAL)
    _, digits, places = mantissa.as_tuple()
    return fit(Decimal((int(mantissa.is_signed()), digits, int(places) + exponent)), DECIMAL)


def _ascii_digit(character: str) -> str:
    digit = unicodedata.decimal(character, None) if character <= "\uffff" else None
    return character if digit is None else str(digit)


def _read_exponent(text: str) -> int | None:
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > 10:
        return None
    exponent = int(digits or "0") * (-1 if text.startswith("-") else 1)
    return exponent if -(2**31) <= exponent < 2**31 else None


def _as_decimal(value: Number | str) -> Value:
    return read_decimal(value) if isinstance(value, str) else fit(value, DECIMAL)


def _as_integer(value: Number | str) -> Value:
    if not isinstance(value, str):
        return int64(int(value))
    text = value.strip(_BLANKS + "\x7f")
    if not re.fullmatch("[+-]?[0-9]+", text) or len(text.lstrip("+-0")) > INTEGER_DIGITS:
        raise not_a_number(value)
    exact = int(Decimal(text))
    if not -(2**63) <= exact < 2**63:
        raise not_a_number(value)
    return exact


NUMBERS: tuple[Function, ...] = (
    fn("ABS", sig(number, to=same_as_first), _absolute,
       "The absolute value of a number.",
       "ABS(-2.5) = 2.5", "ABS(3) = 3", "ISNULL(ABS(NULL))",
       python=typed(lambda node, number: fit(Decimal(number).copy_abs(), node.type))),
    fn("SIGN", sig(number, to=INTEGER), "CAST(sign({0}) AS BIGINT)",
       "The sign of a number: 1, 0 or -1.",
       "SIGN(-0.01) = -1", "SIGN(0) = 0", "SIGN(38.5) = 1", "ISNULL(SIGN(NULL))",
       python=each(lambda number: (number > 0) - (number < 0))),
    fn("ROUND", sig(number, maybe(places), to=rounded), _ROUND,
       "A number rounded to a number of decimal places, halves away from zero. Negative places round left of the decimal point.",
       "ROUND(2.345, 2) = 2.35", "ROUND(-2.5) = -3", "ROUND(1250, -2) = 1300", "ROUND(1.1, 5) = 1.1", "ISNULL(ROUND(NULL, 2))",
       python=typed(_rounding(ROUND_HALF_UP)), keeps_number=True),
    fn("ROUNDUP", sig(number, maybe(places), to=rounded), _ROUNDUP,
       "A number rounded away from zero.",
       "ROUNDUP(2.341, 2) = 2.35", "ROUNDUP(-2.1) = -3", "ROUNDUP(1201, -2) = 1300", "ROUNDUP(2.0) = 2", "ISNULL(ROUNDUP(NULL, 1))",
       python=typed(_rounding(ROUND_UP)), keeps_number=True),
    fn("ROUNDDOWN", sig(number, maybe(places), to=rounded), _ROUNDDOWN,
       "A number rounded toward zero (truncated).",
       "ROUNDDOWN(2.349, 2) = 2.34", "ROUNDDOWN(-2.9) = -2", "TRUNC(1299, -2) = 1200", "ISNULL(ROUNDDOWN(NULL))", aliases=("TRUNC",),
       python=typed(_rounding(ROUND_DOWN)), keeps_number=True),
    fn("BROUND", sig(number, maybe(places), to=rounded), _BROUND,
       "A number rounded with halves to even (bankers' rounding).",
       "BROUND(2.5) = 2", "BROUND(3.5) = 4", "BROUND(2.345, 2) = 2.34", "ISNULL(BROUND(NULL))",
       python=typed(_rounding(ROUND_HALF_EVEN)), keeps_number=True),
    fn("FLOOR", sig(number, to=_whole), _whole_with("floor"),
       "The largest whole number that is not greater than the number.",
       "FLOOR(2.7) = 2", "FLOOR(-2.1) = -3", "FLOOR(5) = 5", "ISNULL(FLOOR(NULL))",
       python=typed(_rounding(ROUND_FLOOR))),
    fn("CEIL", sig(number, to=_whole), _whole_with("ceil"),
       "The smallest whole number that is not less than the number.",
       "CEIL(2.1) = 3", "CEIL(-2.9) = -2", "CEILING(5) = 5", "ISNULL(CEIL(NULL))", aliases=("CEILING",),
       python=typed(_rounding(ROUND_CEILING))),
    fn("MOD", sig(number, number, to=_remainder_type), _remainder,
       "The remainder of a division, with the sign of the divisor. NULL if the divisor is zero.",
       "MOD(7, 3) = 1", "MOD(-7, 2) = 1", "MOD(7, -8) = -1", "MOD(5.5, 2) = 1.5", "ISNULL(MOD(5, 0))", "MOD(6, -3) = 0",
       python=Scalar(_modulo)),
    fn("MIN", sig(ordered, ordered, more(ordered), to=_chosen_type), _least,
       "The smallest of two or more values of one row; NULLs are skipped. For a group of rows see MIN_AGG.",
       "MIN(3, 1, 2) = 1", "MIN(NULL, 5) = 5", 'MIN("b", "a") = "a"', "MIN(1, 0.5) = 0.5",
       python=Scalar(_choose(min))),
    fn("MAX", sig(ordered, ordered, more(ordered), to=_chosen_type), _greatest,
       "The largest of two or more values of one row; NULLs are skipped. For a group of rows see MAX_AGG.",
       "MAX(3, 1, 2) = 3", "MAX(5, NULL) = 5", 'MAX(DATE("2026-01-01"), DATE("2026-02-01")) = "2026-02-01"',
       python=Scalar(_choose(max))),
    fn("VALUE", sig(text, to=DECIMAL), "CAST({0} AS DECIMAL(38,10))",
       "A text converted to a number, with a decimal point. A text that is not a number fails the run.",
       'VALUE("12.5") = 12.5', 'VALUE(" -3 ") = -3', "ISNULL(VALUE(NULL))",
       python=each(read_decimal)),
    fn("TRY_VALUE", sig(text, to=DECIMAL), "try_cast({0} AS DECIMAL(38,10))",
       "A text converted to a number, or NULL if it is not a number.",
       'TRY_VALUE("12.5") = 12.5', 'ISNULL(TRY_VALUE("twelve"))',
       python=each(or_null(read_decimal))),
    fn("TO_DECIMAL", [(sig(number, to=DECIMAL), "CAST({0} AS DECIMAL(38,10))"), (sig(text, to=DECIMAL), "CAST({0} AS DECIMAL(38,10))")],
       "A number or a text converted to a decimal with ten decimal places.",
       'TO_DECIMAL("1.25") = 1.25', "TO_DECIMAL(3) = 3", "ISNULL(TO_DECIMAL(NULL))",
       python=each(_as_decimal)),
    fn("TRY_TO_DECIMAL", sig(text, to=DECIMAL), "try_cast({0} AS DECIMAL(38,10))",
       "A text converted to a decimal, or NULL if it is not a number.",
       'TRY_TO_DECIMAL("1.25") = 1.25', 'ISNULL(TRY_TO_DECIMAL("1,25"))',
       python=each(or_null(read_decimal))),
    fn("TO_INTEGER", [(sig(number, to=INTEGER), "CAST({0} AS BIGINT)"), (sig(text, to=INTEGER), "CAST({0} AS BIGINT)")],
       "A number without its fraction, or a text converted to a whole number.",
       "TO_INTEGER(4.9) = 4", "TO_INTEGER(-4.9) = -4", 'TO_INTEGER("42") = 42', "ISNULL(TO_INTEGER(NULL))",
       python=each(_as_integer)),
    fn("TRY_TO_INTEGER", sig(text, to=INTEGER), "try_cast({0} AS BIGINT)",
       "A text converted to a whole number, or NULL if it is not one.",
       'TRY_TO_INTEGER("42") = 42', 'ISNULL(TRY_TO_INTEGER("4.2"))',
       python=each(or_null(_as_integer))),
)  # fmt: skip
