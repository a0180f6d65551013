"""What Spark says when a job fails, as one of our problems; Java's stack stays out of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dobonomodo.engine.frames import MULTIPLE
from dobonomodo.problems import OperationRef, Problem
from dobonomodo.problems.formula import InvalidDate
from dobonomodo.problems.run import ArithmeticOverflow, InvalidNumber, JoinMultipleMatches, SparkFailed

OVERFLOWS = ("ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE", "CAST_OVERFLOW", "BINARY_ARITHMETIC_OVERFLOW")
DATES = ("CANNOT_PARSE_TIMESTAMP", "DATETIME_FIELD_OUT_OF_BOUNDS", "INVALID_DATETIME")

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*)(?:\.[A-Z0-9_]+)*\]")
_MULTIPLE = re.compile(
    rf"{MULTIPLE}\|(?P<alias>[^|]*)\|(?P<count>\d+)\|(?P<keys>[^\n]*?)(?: SQLSTATE.*)?$", re.MULTILINE
)


class ExpressionPlace:
    """An operation and the SQL that it came to, to find it again by a piece of that SQL."""

    __slots__ = ("expression", "operation", "sql")

    def __init__(self, operation: OperationRef, sql: str, expression: str | None) -> None:
        self.operation, self.sql, self.expression = operation, sql, expression


def explain_fault(error: Exception, places: Sequence[ExpressionPlace]) -> Problem:
    """The problem behind an exception of Spark, with the operation that defined what failed, where that is known."""
    text = str(error)
    found = _MULTIPLE.search(text)
    place = _find_place(error, text, places)
    operation = place.operation if place else None
    expression = place.expression if place else None
    if found:
        alias = found["alias"]
        joined = next((each for each in places if each.sql.startswith(f"{MULTIPLE}|{alias}|")), None)
        return JoinMultipleMatches(
            alias=alias,
            keys=found["keys"].strip(),
            count=int(found["count"]),
            operation=joined.operation if joined else operation,
            expression=joined.expression if joined else expression,
        )
    conditions = tuple(dict.fromkeys(_CONDITION.findall(text)))
    detail = one_line(text)
    if any(each in OVERFLOWS for each in conditions):
        return ArithmeticOverflow(detail=detail, operation=operation, expression=expression)
    if any(each in DATES for each in conditions) or ("CAST_INVALID_INPUT" in conditions and '"DATE"' in text):
        return InvalidDate(text=_quoted(text), operation=operation, expression=expression)
    if "CAST_INVALID_INPUT" in conditions:
        return InvalidNumber(text=_quoted(text), operation=operation, expression=expression)
    return SparkFailed(detail=detail, conditions=conditions, operation=operation, expression=expression)


def _find_place(error: Exception, text: str, places: Sequence[ExpressionPlace]) -> ExpressionPlace | None:
    """By the piece of SQL that Spark points to, else by what it quotes."""
    fragments = _fragments(error) or re.findall(r"== SQL[^\n]*==\n(.*?)\n\^", text, re.DOTALL)
    for fragment in fragments:
        wanted = fragment.strip()
        for place in reversed(places):
            if wanted and wanted in place.sql:
                return place
    return None


def _fragments(error: Exception) -> list[str]:
    contexts = getattr(error, "getQueryContext", None)
    if contexts is None:
        return []
    try:
        return [context.fragment() for context in contexts()]
    except Exception:  # noqa: BLE001  a report about a fault must not fail itself
        return []


def one_line(text: str) -> str:
    """The first sentence of Spark's message, without its condition and state."""
    first = next((line for line in text.splitlines() if line.strip()), text).strip()
    first = _CONDITION.sub("", first)
    return re.sub(r"\s*(SQLSTATE: \w+|If necessary set .*)", "", first).strip()[:300]


def _quoted(text: str) -> str:
    found = re.search(r"[Tt]ext '((?:[^'\\]|\\.)*)'|value '((?:[^'\\]|\\.)*)'|date '((?:[^'\\]|\\.)*)'", text)
    return next((group for group in found.groups() if group is not None), "") if found else one_line(text)
