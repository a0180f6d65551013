"""Converts Spark exceptions to problems, without the Java stack trace."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dobonomodo.engine.joins import MULTIPLE
from dobonomodo.engine.loading import REPEATED
from dobonomodo.engine.requirement import REQUIRED
from dobonomodo.problems import OperationRef, Problem, RunFailed
from dobonomodo.problems.formula import InvalidDate
from dobonomodo.problems.run import (
    REQUIREMENTS,
    ArithmeticOverflow,
    InvalidNumber,
    JoinMultipleMatches,
    SparkFailed,
    SparkLost,
)
from dobonomodo.storage.faults import is_of_spark

OVERFLOWS = (
    "ARITHMETIC_OVERFLOW",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "NUMERIC_OUT_OF_SUPPORTED_RANGE",
    "CAST_OVERFLOW",
    "BINARY_ARITHMETIC_OVERFLOW",
)
DATES = ("CANNOT_PARSE_TIMESTAMP", "DATETIME_FIELD_OUT_OF_BOUNDS", "INVALID_DATETIME")

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*)(?:\.[A-Z0-9_]+)*\]")
_MULTIPLE = re.compile(
    rf"{MULTIPLE}\|(?P<seq>\d+)\|(?P<alias>[^|]*)\|(?P<count>\d+)\|(?P<keys>[^\n]*?)(?: SQLSTATE.*)?$", re.MULTILINE
)
_REQUIRED = re.compile(
    rf"{REQUIRED}\|(?P<seq>\d+)\|(?P<code>\w+)\|(?P<reason>[^|]*)\|(?P<rows>[^\n]*?)(?: SQLSTATE.*)?$", re.MULTILINE
)
_REPEATED = re.compile(rf"{REPEATED}\|(?P<number>\d+)\|")

_JAVA_ENDED = "its Java process ended"
_CUT_OFF = "the connection to its Java process was cut"
_LOSSES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\[CANNOT_OPEN_SOCKET\]"), _CUT_OFF),
    (re.compile(r"StatusCode\.UNAVAILABLE"), "the Spark Connect server does not respond"),
    (re.compile(r"\[INVALID_HANDLE\.(SESSION|OPERATION)_"), "the Spark Connect server ended the session"),
    (
        re.compile(
            r"ExecutorLostFailure \(executor|FetchFailed(Exception)?\b|CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"
            r"|has failed the maximum allowable number of times"
        ),
        "its executors ended more often than Spark restarts tasks",
    ),
    (
        re.compile(
            r"SparkContext was shut down|stopped SparkContext|Master removed our application"
            r"|All masters are unresponsive|Spark cluster looks down"
        ),
        "the cluster ended the application or cannot be reached",
    ),
)


class ExpressionPlace:
    """An operation and the SQL it was rendered to, to find it by a fragment of that SQL."""

    __slots__ = ("operation", "sql")

    def __init__(self, operation: OperationRef, sql: str) -> None:
        self.operation, self.sql = operation, sql


def find_loss(error: BaseException) -> RunFailed | None:
    """The problem if Spark or a part of it is lost; None if Spark is alive, and the data may be the cause."""
    if not is_of_spark(error):
        return None
    lost = _find_lost(error)
    return RunFailed(SparkLost(detail=lost)) if lost is not None else None


def _find_lost(error: BaseException) -> str | None:
    name, text = type(error).__name__, text_of(error)
    # Py4J has no exception class for this: a closed socket, or an error without a stack trace.
    if isinstance(error, OSError | EOFError) or name == "Py4JNetworkError":
        return _JAVA_ENDED
    if isinstance(error, UnboundLocalError):
        return _CUT_OFF
    if name == "Py4JError" and "Trace:" not in text:
        return _JAVA_ENDED
    # The text of an error in the data may hold anything.
    if _explain_data(text) is not None or _REPEATED.search(text):
        return None
    return next((lost for pattern, lost in _LOSSES if pattern.search(text)), None)


@contextmanager
def noticing_loss() -> Iterator[None]:
    """Raise ``RunFailed`` if Spark is lost in the block."""
    try:
        yield
    except Exception as error:
        if (failed := find_loss(error)) is not None:
            raise failed from error
        raise


def text_of(error: BaseException) -> str:
    """The message of an error. Py4J requests it from Java, which may have ended."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001  a report about a fault must not fail itself
        return ""


def explain_fault(error: Exception) -> Problem:
    """The problem that a Spark exception stands for."""
    text = text_of(error)
    found = _explain_data(text)
    return found if found is not None else SparkFailed(detail=one_line(text), conditions=_find_conditions(text))


def _find_conditions(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_CONDITION.findall(text)))


def _explain_data(text: str) -> Problem | None:
    """The data problem that Spark reports, if any."""
    if found := _MULTIPLE.search(text):
        return JoinMultipleMatches(alias=found["alias"], keys=found["keys"].strip(), count=int(found["count"]))
    if found := _REQUIRED.search(text):
        unmet = next(kind for kind in REQUIREMENTS if kind.code == found["code"])
        return unmet(reason=found["reason"], rows=found["rows"].strip())
    conditions = _find_conditions(text)
    if any(each in OVERFLOWS for each in conditions):
        return ArithmeticOverflow(detail=one_line(text))
    if any(each in DATES for each in conditions) or ("CAST_INVALID_INPUT" in conditions and '"DATE"' in text):
        return InvalidDate(text=_quoted(text))
    if "CAST_INVALID_INPUT" in conditions:
        return InvalidNumber(text=_quoted(text))
    return None


def find_repeated(error: Exception) -> int | None:
    """The natural key that is not unique, if this stopped the job."""
    found = _REPEATED.search(text_of(error))
    return int(found["number"]) if found else None


def find_joining(error: Exception) -> int | None:
    """The number of the operation whose join found several rows, if this stopped the job; 0 for a lookup of the input."""
    found = _MULTIPLE.search(text_of(error))
    return int(found["seq"]) if found else None


def find_suspects(error: Exception, places: Sequence[ExpressionPlace]) -> list[OperationRef]:
    """The operations that may have raised an error: one if Spark points to its SQL, several if that is ambiguous."""
    text = text_of(error)
    if found := _MULTIPLE.search(text) or _REQUIRED.search(text):
        seq = int(found["seq"])
        return [each.operation for each in places if each.operation.seq == seq][:1]
    wanted = find_fragments(error)
    pointed = [place.operation for place in places if any(fragment in place.sql for fragment in wanted)]
    return list(dict.fromkeys(pointed or [place.operation for place in places]))


def find_fragments(error: Exception) -> list[str]:
    """The SQL fragments that a Spark error points to."""
    fragments = _fragments(error) or re.findall(r"== SQL[^\n]*==\n(.*?)\n\^", text_of(error), re.DOTALL)
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
