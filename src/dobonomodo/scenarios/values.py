"""Values as a scenario writes them, and as Spark gives them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from dobonomodo.formula import Type, parse_moment
from dobonomodo.formula.sql import literal, quote_name
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ANYTHING = "*"
"""In an expected row: any value but NULL."""


class WrongValueError(Exception):
    """A value that its column cannot have."""


def read_value(value: Any, kind: Type) -> Any:
    """A value of a scenario in the type of its column."""
    if value is None:
        return None
    try:
        if isinstance(kind, DecimalType):
            return Decimal(str(value)) if not isinstance(value, bool) else _refuse(value, kind)
        if kind == INTEGER:
            return value if isinstance(value, int) and not isinstance(value, bool) else int(str(value))
        if kind == BOOLEAN:
            return value if isinstance(value, bool) else _refuse(value, kind)
        if kind in (DATE, TIMESTAMP):
            return _read_moment(value, kind)
        return value if isinstance(value, str) else _refuse(value, kind)
    except (ValueError, InvalidOperation) as fault:
        raise WrongValueError(f"`{value}` is not {kind}") from fault


def _read_moment(value: Any, kind: Type) -> Any:
    found = parse_moment(str(value))
    if kind == DATE and type(found) is date:
        return found
    if kind == TIMESTAMP and isinstance(found, date):
        return found if isinstance(found, datetime) else datetime(found.year, found.month, found.day, tzinfo=UTC)
    return _refuse(value, kind)


def _refuse(value: Any, kind: Type) -> Any:
    raise WrongValueError(
        f"`{value}` is not {kind}; put text in quotes" if kind == TEXT else f"`{value}` is not {kind}"
    )


def make_frame(spark: SparkSession, columns: Mapping[str, Type], rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """A frame of a few rows, written as SQL so that it is the same on every kind of session."""
    names = ", ".join(quote_name(name) for name in columns)
    if not rows:
        nulls = ", ".join(f"{literal(None, kind)} AS {quote_name(name)}" for name, kind in columns.items())
        return spark.sql(f"SELECT {nulls}").where("FALSE")
    lines = ("(" + ", ".join(literal(row.get(name), kind) for name, kind in columns.items()) + ")" for row in rows)
    casts = ", ".join(f"CAST({quote_name(name)} AS {kind.sql}) AS {quote_name(name)}" for name, kind in columns.items())
    return spark.sql(f"SELECT {casts} FROM VALUES {', '.join(lines)} AS t({names})")


def take_rows(frame: DataFrame, columns: Mapping[str, Type]) -> list[dict[str, Any]]:
    """All rows of a small frame. Times go as microseconds, since PySpark would shift them to the machine's zone."""
    selected = [
        f"unix_micros({quote_name(name)}) AS {quote_name(name)}" if kind == TIMESTAMP else quote_name(name)
        for name, kind in columns.items()
    ]
    taken = frame.selectExpr(*selected).collect()
    return [
        {
            name: _from_micros(row[at]) if kind == TIMESTAMP else row[at]
            for at, (name, kind) in enumerate(columns.items())
        }
        for row in taken
    ]


def _from_micros(value: int | None) -> datetime | None:
    return None if value is None else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)


def show_value(value: Any) -> str:
    """A value in a report."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case Decimal():
            return f"{value:f}"
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case str():
            return f'"{value}"'
        case _:
            return str(value)
