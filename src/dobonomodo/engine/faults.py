"""What Spark says when a job fails, as one of our problems; Java's stack stays out of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dobonomodo.engine.frames import MULTIPLE, REPEATED
from dobonomodo.problems import OperationRef, Problem
from dobonomodo.problems.formula import InvalidDate
from dobonomodo.problems.run import ArithmeticOverflow, InvalidNumber, JoinMultipleMatches, SparkFailed

OVERFLOWS = ("ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE", "CAST_OVERFLOW", "BINARY_ARITHMETIC_OVERFLOW")
DATES = ("CANNOT_PARSE_TIMESTAMP", "DATETIME_FIELD_OUT_OF_BOUNDS", "INVALID_DATETIME")

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*)(?:\.[A-Z0-9_]+)*\]")
_MULTIPLE = re.compile(
    rf"{MULTIPLE}\|(?P<seq>\d+)\|(?P<alias>[^|]*)\|(?P<count>\d+)\|(?P<keys>[^\n]*?)(?: SQLSTATE.*)?$", re.MULTILINE
)
_REPEATED = re.compile(rf"{REPEATED}\|(?P<number>\d+)\|")


class ExpressionPlace:
    """An operation and the SQL that it came to, to find it again by a piece of that SQL."""

    __slots__ = ("operation", "sql")

    def __init__(self, operation: OperationRef, sql: str) -> None:
        self.operation, self.sql = operation, sql


def explain_fault(error: Exception) -> Problem:
    """The problem behind an exception of Spark."""
    text = str(error)
    if found := _MULTIPLE.search(text):
        return JoinMultipleMatches(alias=found["alias"], keys=found["keys"].strip(), count=int(found["count"]))
    conditions = tuple(dict.fromkeys(_CONDITION.findall(text)))
    if any(each in OVERFLOWS for each in conditions):
        return ArithmeticOverflow(detail=one_line(text))
    if any(each in DATES for each in conditions) or ("CAST_INVALID_INPUT" in conditions and '"DATE"' in text):
        return InvalidDate(text=_quoted(text))
    if "CAST_INVALID_INPUT" in conditions:
        return InvalidNumber(text=_quoted(text))
    return SparkFailed(detail=one_line(text), conditions=conditions)


def find_repeated(error: Exception) -> int | None:
    """Which natural key is not unique, if that is what stopped the job."""
    found = _REPEATED.search(str(error))
    return int(found["number"]) if found else None


def find_suspects(error: Exception, places: Sequence[ExpressionPlace]) -> list[OperationRef]:
    """The operations that can have raised an error: one when Spark points to its SQL, several when that is not clear."""
    text = str(error)
    if found := _MULTIPLE.search(text):
        seq = int(found["seq"])
        return [each.operation for each in places if each.operation.seq == seq][:1]
    wanted = find_fragments(error)
    pointed = [place.operation for place in places if any(fragment in place.sql for fragment in wanted)]
    return list(dict.fromkeys(pointed or [place.operation for place in places]))


def find_fragments(error: Exception) -> list[str]:
    """The pieces of SQL that Spark points to."""
    fragments = _fragments(error) or re.findall(r"== SQL[^\n]*==\n(.*?)\n\^", str(error), re.DOTALL)
    return [fragment.strip() for fragment in fragments if fragment.strip()]


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
