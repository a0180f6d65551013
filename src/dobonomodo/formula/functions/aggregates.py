"""Aggregates: many rows become one value. The result never depends on the order of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from dobonomodo.formula.functions.signature import (
    RUNNING,
    Argument,
    Function,
    RunValues,
    anything,
    condition,
    constant,
    fn,
    number,
    ordered,
    same_as_first,
    sig,
    text,
)
from dobonomodo.formula.meaning import EXACT, Arguments, Number, Total, Value, divide, fit
from dobonomodo.formula.sql import cast
from dobonomodo.formula.typed import Apply, Cast, Literal, Operation, Typed
from dobonomodo.formula.types import BOOLEAN, INTEGER, MAX_DIGITS, TEXT, DecimalType, Type, as_decimal

AVERAGE_EXTRA = 4
"""Fractional digits that Spark's avg adds to those of its input."""
AVERAGE_SCALE = 6


def _sum_type(arguments: Sequence[Typed]) -> Type:
    kind = as_decimal(arguments[0].type)
    return DecimalType(min(MAX_DIGITS, kind.precision + 10), kind.scale)


def _sum(arguments: Sequence[Argument], run: RunValues) -> str:
    (argument,) = arguments
    return f"sum({argument.sql if argument.type != INTEGER else cast(argument.sql, as_decimal(INTEGER))})"


def _average_input(kind: Type) -> DecimalType:
    exact = as_decimal(kind)
    scale = min(max(exact.scale, AVERAGE_SCALE), MAX_DIGITS - AVERAGE_EXTRA)
    return DecimalType(min(exact.whole + scale, MAX_DIGITS - AVERAGE_EXTRA), scale)


def _average_type(arguments: Sequence[Typed]) -> Type:
    kind = _average_input(arguments[0].type)
    return DecimalType(kind.precision + AVERAGE_EXTRA, kind.scale + AVERAGE_EXTRA)


def _average(arguments: Sequence[Argument], run: RunValues) -> str:
    return f"avg({cast(arguments[0].sql, _average_input(arguments[0].type))})"


def _keyed(function: str, arguments: Sequence[Argument]) -> str:
    """Ties go by the value itself, so that the order of rows never shows; rows without a key do not count."""
    value, key = arguments
    return f"{function}(CASE WHEN {key.sql} IS NOT NULL THEN struct({key.sql} AS k, {value.sql} AS v) END).v"


def _first_by(arguments: Sequence[Argument], run: RunValues) -> str:
    return _keyed("min", arguments)


def _last_by(arguments: Sequence[Argument], run: RunValues) -> str:
    return _keyed("max", arguments)


_COUNT_IF = "count(CASE WHEN {0} THEN 1L END)"
"""Spark's own ``count_if`` fails inside BETWEEN and ``nullif`` where rows are grouped (4.3)."""

_summed = replace(number, label="number")
_key = replace(ordered, shared=None)

# --- in plain Python


def _present(rows: Arguments) -> list[Any]:
    """The first arguments that are not NULL."""
    return [row[0] for row in rows if row[0] is not None]


def _exact_sum(numbers: Sequence[Number]) -> Decimal:
    total = Decimal(0)
    for each in numbers:
        total = EXACT.add(total, Decimal(each))
    return total


def _total(kind: Type, rows: Arguments) -> Value:
    numbers = _present(rows)
    return fit(_exact_sum(numbers), kind) if numbers else None


def _mean(kind: Type, rows: Arguments) -> Value:
    exact = as_decimal(kind)
    given = DecimalType(exact.precision - AVERAGE_EXTRA, exact.scale - AVERAGE_EXTRA)
    numbers = [fit(each, given) for each in _present(rows)]
    return divide(_exact_sum(numbers), len(numbers), exact) if numbers else None


def _by_key(choose: Callable[..., Any], rows: Arguments) -> Value:
    keyed = [(key, value is not None, value) for value, key in rows if key is not None]
    found: tuple[object, bool, Value] | None = choose(keyed, key=_without_null, default=None)
    return found[2] if found is not None else None


def _without_null(row: tuple[object, bool, object]) -> tuple[object, ...]:
    """A NULL is smaller than any value, and is not compared itself."""
    return row if row[1] else row[:2]


def _joined(kind: Type, rows: Arguments) -> Value:
    texts = sorted(_present(rows))
    return str(rows[0][1]).join(texts) if texts else None


# --- what one row adds


def _summand(node: Apply) -> Typed:
    (value,) = node.operands
    return value if value.type == node.type else Cast(value, node.type)


def _one_if(test: Typed) -> Typed:
    return Operation("CASE", (test, Literal(1, INTEGER), Literal(0, INTEGER)), INTEGER)


def _one_if_present(node: Apply) -> Typed:
    return _one_if(Operation("IS NOT NULL", node.operands, BOOLEAN))


AGGREGATES: tuple[Function, ...] = (
    fn("SUM", sig(_summed, to=_sum_type), _sum,
       "The exact sum. NULLs are ignored; NULL if there are no other values.",
       "SUM(amount) = 30.50", "SUM(quantity) = 6", 'ISNULL(SUM(IF(region = "X", amount, NULL)))', 'SUM(IF(region = "N", quantity, 0)) = 3',
       window=RUNNING, python=Total(_total, _summand)),
    fn("COUNT", [(sig(anything, to=INTEGER), "count({0})")],
       "The number of rows with a value; COUNT(*) counts all rows.",
       "COUNT(amount) = 2", "COUNT(*) = 3",
       window=RUNNING, python=Total(lambda kind, rows: len(_present(rows)), _one_if_present)),
    fn("COUNT_ALL", sig(to=INTEGER), "count(1)", "The number of rows, the same as COUNT(*).", "COUNT_ALL() = 3",
       "COUNT_ALL() = COUNT(*)",
       window=RUNNING, python=Total(lambda kind, rows: len(rows), lambda node: Literal(1, INTEGER))),
    fn("COUNT_IF", sig(condition, to=INTEGER), _COUNT_IF, "The number of rows for which a condition is true.",
       "COUNT_IF(quantity > 1) = 2", "COUNT_IF(amount > 0) = 2",
       python=Total(lambda kind, rows: sum(value is True for (value,) in rows), lambda node: _one_if(node.operands[0]))),
    fn("COUNT_DISTINCT", sig(anything, to=INTEGER), "count(DISTINCT {0})", "The number of distinct values. NULLs are ignored.",
       "COUNT_DISTINCT(region) = 2", "COUNT_DISTINCT(amount) = 2",
       python=Total(lambda kind, rows: len(set(_present(rows))))),
    fn("AVG", sig(_summed, to=_average_type), _average,
       "The average, with at least ten decimal places. NULLs are ignored.",
       "AVG(amount) = 15.25", "AVG(quantity) = 2",
       window=RUNNING, python=Total(_mean)),
    fn("MIN_AGG", sig(_key, to=same_as_first), "min({0})", "The smallest value. NULLs are ignored; text is ordered by character code.",
       "MIN_AGG(amount) = 10.50", 'MIN_AGG(region) = "N"',
       window=RUNNING, python=Total(lambda kind, rows: min(_present(rows), default=None))),
    fn("MAX_AGG", sig(_key, to=same_as_first), "max({0})", "The largest value. NULLs are ignored.",
       "MAX_AGG(quantity) = 3", 'MAX_AGG(region) = "S"', "MAX_AGG(amount) = 20",
       window=RUNNING, python=Total(lambda kind, rows: max(_present(rows), default=None))),
    fn("FIRST_BY", sig(anything, _key, to=same_as_first), _first_by,
       "The value in the row with the smallest key: FIRST_BY(value, key). Among equal keys, the smaller value.",
       'FIRST_BY(region, quantity) = "N"', "FIRST_BY(amount, quantity) = 10.50",
       python=Total(lambda kind, rows: _by_key(min, rows))),
    fn("LAST_BY", sig(anything, _key, to=same_as_first), _last_by,
       "The value in the row with the largest key: LAST_BY(value, key). Among equal keys, the larger value.",
       'LAST_BY(region, quantity) = "S"', "ISNULL(LAST_BY(amount, quantity))",
       python=Total(lambda kind, rows: _by_key(max, rows))),
    fn("STRING_AGG", sig(text, constant(text), to=TEXT), "array_join(nullif(sort_array(collect_list({0})), array()), {1})",
       "All texts in sorted order, joined with a separator. NULLs are ignored.",
       'STRING_AGG(region, "+") = "N+N+S"', 'ISNULL(STRING_AGG(IF(quantity > 9, region, NULL), ","))',
       python=Total(_joined)),
)  # fmt: skip
