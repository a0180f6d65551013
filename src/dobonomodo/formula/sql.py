"""Spark SQL text for names and values. Nothing a user wrote reaches Spark except through these functions."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from dobonomodo.formula.typed import Value, literal_decimal
from dobonomodo.formula.types import DecimalType, Type
from dobonomodo.problems import InternalError


def quote_name(name: str) -> str:
    """An identifier in backticks.

    Spark replaces ``${..}`` anywhere in SQL text before it parses it, and backticks know no escapes for that.
    """
    if "${" in name:
        raise InternalError(f"the column name {name!r} cannot be given to Spark")
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    """A text literal; ``$`` before a brace is escaped because of Spark's variable substitution."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\u0000").replace("${", "\\u0024{")
    return f"'{escaped}'"


def literal(value: Value, kind: Type) -> str:
    """A typed value; what Spark would type otherwise is cast."""
    match value:
        case None:
            return f"CAST(NULL AS {kind.sql})"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return quote_text(value)
        case datetime():
            return f"TIMESTAMP'{value:%Y-%m-%dT%H:%M:%S.%f}Z'".replace(f"{value:%Y}-", f"{value.year:04d}-", 1)
        case date():
            return f"DATE'{value.isoformat()}'"
        case int() if not isinstance(kind, DecimalType):
            return f"{value}L"
        case int() | Decimal():
            exact = Decimal(value)
            written = f"{exact:f}BD"
            return written if literal_decimal(exact) == kind else cast(written, kind)


def cast(sql: str, kind: Type) -> str:
    """A conversion; in ANSI mode it fails rather than lose a digit before the point."""
    return f"CAST({sql} AS {kind.sql})"


EXACT_SIGN_DIGITS = 34
"""Digits up to which Spark's own minus and abs are exact; beyond, they round (4.3), and the sign is changed in writing."""


def negate(sql: str, kind: Type) -> str:
    """A number with the other sign."""
    if not isinstance(kind, DecimalType) or kind.precision <= EXACT_SIGN_DIGITS:
        return f"(- {sql})"
    return cast(f"replace(concat('-', CAST({sql} AS STRING)), '--', '')", kind)


def absolute(sql: str, kind: Type) -> str:
    """A number without its sign."""
    if not isinstance(kind, DecimalType) or kind.precision <= EXACT_SIGN_DIGITS:
        return f"abs({sql})"
    return cast(f"replace(CAST({sql} AS STRING), '-', '')", kind)


def is_negative(sql: str, kind: DecimalType) -> str:
    """Whether a decimal is below zero. Beside ``0BD``, which has a digit before the point, Spark drops a 38th place."""
    return f"{sql} < {'0BD' if kind.whole else literal(0, kind)}"
