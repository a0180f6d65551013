"""Comparison in Spark SQL: exact for any two decimals, also where no type of 38 digits holds both (C-90).

Two such decimals are a coarse one with more digits before the point and a fine one with more digits behind it. Values
of the coarse type are multiples of its last place, so the fine value may be rounded down or up to that place first:
``coarse > fine`` means ``coarse > floor(fine)``. What is rounded has fewer digits before the point than the coarse type,
so it always fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Protocol

from dobonomodo.formula.sql import cast, literal
from dobonomodo.formula.types import DecimalType, Type, common_decimal


class Operand(Protocol):
    """A rendered value and its type."""

    @property
    def sql(self) -> str: ...
    @property
    def type(self) -> Type: ...


def compare(operator: str, left: Operand, right: Operand) -> str:
    """``left operator right``; unknown where one is NULL."""
    if have_common_type((left, right)):
        return f"({left.sql} {operator} {right.sql})"
    coarse, fine = _by_fineness(left, right)
    lower, upper = _to_places_of(coarse, fine)
    match operator if coarse is left else _MIRRORED[operator]:
        case ">" | "<=" as ordered:
            return f"({coarse.sql} {ordered} {lower})"
        case "<" | ">=" as ordered:
            return f"({coarse.sql} {ordered} {upper})"
        case "=":
            return f"({coarse.sql} >= {upper} AND {coarse.sql} <= {lower})"
        case "<>":
            return f"({coarse.sql} < {upper} OR {coarse.sql} > {lower})"
        case other:
            raise AssertionError(other)


def compare_range(operator: str, subject: Operand, low: Operand, high: Operand) -> str:
    """``subject BETWEEN low AND high``, or NOT BETWEEN."""
    if have_common_type((subject, low, high)):
        return f"({subject.sql} {operator} {low.sql} AND {high.sql})"
    within = f"({compare('>=', subject, low)} AND {compare('<=', subject, high)})"
    return within if operator == "BETWEEN" else f"(NOT {within})"


def compare_list(operator: str, subject: Operand, items: Sequence[Operand]) -> str:
    """``subject IN (items)``, or NOT IN. Spark brings all operands of an IN to one type, so items that have none are compared apart."""
    together, apart = _split(subject, items)
    listed = ", ".join(item.sql for item in together)
    if not apart:
        return f"({subject.sql} {operator} ({listed}))"
    tests = [f"{subject.sql} IN ({listed})"] if together else []
    found = " OR ".join([*tests, *(compare("=", subject, item) for item in apart)])
    return f"({found})" if operator == "IN" else f"(NOT ({found}))"


def _split(subject: Operand, items: Sequence[Operand]) -> tuple[Sequence[Operand], Sequence[Operand]]:
    """The items that have one common type with the subject, and the others."""
    common = subject.type
    if not isinstance(common, DecimalType):
        return items, ()
    together: list[Operand] = []
    apart: list[Operand] = []
    for item in items:
        wider = common_decimal((common, item.type)) if isinstance(item.type, DecimalType) else common
        (apart if wider is None else together).append(item)
        common = wider or common
    return together, apart


def match_keys(left: Operand, right: Operand) -> tuple[str, str]:
    """Two values that Spark finds equal by ``=`` where the given ones are equal; a value that can have no match is NULL."""
    if have_common_type((left, right)):
        return left.sql, right.sql
    coarse, fine = _by_fineness(left, right)
    lower, upper = _to_places_of(coarse, fine)
    rounded = f"CASE WHEN {lower} = {upper} THEN {lower} END"
    return (coarse.sql, rounded) if coarse is left else (rounded, coarse.sql)


def least_of(operands: Sequence[Operand], kind: Type) -> str:
    """The smallest value in the type of the result; NULLs are skipped."""
    return _extreme("least", "<=", operands, kind)


def greatest_of(operands: Sequence[Operand], kind: Type) -> str:
    """The largest value in the type of the result; NULLs are skipped."""
    return _extreme("greatest", ">=", operands, kind)


def _extreme(function: str, within: str, operands: Sequence[Operand], kind: Type) -> str:
    """Of values that the result cannot hold, those beyond the far end cannot be the one that is chosen and are left out.

    If nothing is left, the value that is chosen does not fit, and its conversion fails.
    """
    converted = [cast(each.sql, kind) if each.type != kind else each.sql for each in operands]
    plain = f"{function}({', '.join(converted)})"
    if not isinstance(kind, DecimalType) or have_common_type(operands):
        return plain
    end = Decimal((int(within == ">="), (9,) * kind.precision, -kind.scale))
    limit = _Rendered(literal(end, kind), kind)
    guarded = [
        sql if each.type == kind else f"CASE WHEN {compare(within, each, limit)} THEN {sql} END"
        for each, sql in zip(operands, converted, strict=True)
    ]
    return f"coalesce({function}({', '.join(guarded)}), {plain})"


def have_common_type(operands: Sequence[Operand]) -> bool:
    """Whether Spark compares the operands exactly by itself."""
    kinds = [each.type for each in operands if isinstance(each.type, DecimalType)]
    return not kinds or common_decimal(kinds) is not None


class _Rendered:
    def __init__(self, sql: str, kind: Type) -> None:
        self.sql, self.type = sql, kind


_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _by_fineness(one: Operand, other: Operand) -> tuple[Operand, Operand]:
    return (one, other) if _scale(one) < _scale(other) else (other, one)


def _to_places_of(coarse: Operand, fine: Operand) -> tuple[str, str]:
    places = _scale(coarse)
    return f"floor({fine.sql}, {places})", f"ceil({fine.sql}, {places})"


def _scale(operand: Operand) -> int:
    if not isinstance(operand.type, DecimalType):
        raise AssertionError(operand.type)
    return operand.type.scale
