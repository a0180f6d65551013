"""Check that a session computes as Spark does: some compatible servers wrap, truncate or round differently, without an error."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING
from weakref import WeakSet

from dobonomodo.engine.faults import find_loss, one_line, text_of
from dobonomodo.problems import RunFailed
from dobonomodo.problems.run import SparkDiffers
from dobonomodo.storage.faults import is_of_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ANSWERS: Mapping[str, str] = MappingProxyType(
    {
        # The digits of a quotient, the rounding of an average, of a product that loses digits, and of a half.
        "CAST(max(n) AS DECIMAL(10,2)) / 3": "0.333333",
        "avg(d)": "1.006667",
        "CAST(max(d) + 0.000001 AS DECIMAL(38,18)) * CAST(0.5 AS DECIMAL(38,18))": "0.505001",
        "round(max(d) - 0.985, 2)": "0.03",
        # The time zone of the session, and the locale of the machine that computes.
        "max(s)": "2026-01-01 00:30:00",
        "upper(max(t))": "IĞDIR",
        # Digests and row ids use this hash. Names are case-insensitive.
        "xxhash64(max(T), max(D), max(n) IS NULL)": "4708226919461608863",
    }
)
"""Expressions over the three rows below, and what Spark gives for them, as text."""

_THREE = ", ".join(
    f"(1L, {amount}BD, 'iğdır', TIMESTAMP '2026-01-01 00:30:00Z')" for amount in ("1.00", "1.01", "1.01")
)
_ROWS = f"VALUES {_THREE} AS v(n, d, t, s)"
_OVERFLOW = "9223372036854775807 + 1"


_PROVEN: WeakSet[object] = WeakSet()
"""The sessions that were asked before: a server does not change its arithmetic while it runs."""


def require_arithmetic(spark: SparkSession, *, of: object) -> None:
    """Raise ``RunFailed`` if a session computes differently from Spark. Runs two queries without data.

    ``of`` is the session that the user gave, which is asked once.
    """
    if of in _PROVEN:
        return
    columns = ", ".join(f"CAST({sql} AS STRING) AS a{number}" for number, sql in enumerate(ANSWERS))
    try:
        row = spark.sql(f"SELECT {columns} FROM {_ROWS}").first()
        answers = dict(zip(ANSWERS, row or (), strict=False))
        differences = find_differences(answers, overflow=_find_overflow(spark))
    except Exception as fault:
        if not is_of_spark(fault) or find_loss(fault) is not None:
            raise
        differences = (f"it fails with: {one_line(text_of(fault))}",)
    if differences:
        raise RunFailed(SparkDiffers(differences=differences))
    _PROVEN.add(of)


def find_differences(answers: Mapping[str, str | None], *, overflow: str | None) -> tuple[str, ...]:
    """How results differ from those of Spark; ``overflow`` is None if the session raised an error for the sum that overflows."""
    found = [
        f"`{sql}` is `{answers.get(sql)}` instead of `{expected}`"
        for sql, expected in ANSWERS.items()
        if answers.get(sql) != expected
    ]
    if overflow is not None:
        found.append(f"`{_OVERFLOW}` is `{overflow}` instead of an error")
    return tuple(found)


def _find_overflow(spark: SparkSession) -> str | None:
    from pyspark.errors import ArithmeticException

    try:
        row = spark.sql(f"SELECT 9223372036854775807L + max(n) AS n FROM {_ROWS}").first()
    except ArithmeticException:
        return None
    return str(row["n"] if row is not None else None)
