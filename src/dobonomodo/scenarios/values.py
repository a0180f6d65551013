"""Values as a scenario writes them, and as Spark gives them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, TypeGuard

from dobonomodo.formula import Type
from dobonomodo.formula.sql import literal, quote_name
from dobonomodo.formula.typed import Value
from dobonomodo.formula.types import TEXT, TIMESTAMP
from dobonomodo.storage.values import explain_wrong, parse_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TypedRow = dict[str, Value]
"""A row whose values have the types of their columns."""

ANYTHING = "*"
"""In an expected row: any value but NULL."""


class WrongValueError(Exception):
    """A value that its column cannot have."""


def write_text(value: object) -> str | None:
    """A value of YAML as a file would have it."""
    match value:
        case None | str():
            return value
        case bool():
            return str(value).lower()
        case date():
            return value.isoformat()
        case _:
            return str(value)


def is_plain(value: object) -> TypeGuard[str | None]:
    """Whether a value can be in a text column: a text, or none."""
    return value is None or isinstance(value, str)


def read_values(values: Sequence[object], kind: Type) -> list[Value]:
    """Values of a scenario in the type of their column, by the conversion that stored rows pass through."""
    import pyarrow as pa

    if kind == TEXT:
        for value in values:
            if not is_plain(value):
                raise WrongValueError(f"`{write_text(value)}` is not a text; put it in quotes")
        return [value for value in values if is_plain(value)]
    texts = [write_text(value) for value in values]
    parsed = parse_values(pa.array(texts, pa.string()), kind)
    if parsed.wrong:
        text = texts[parsed.wrong[0]] or ""
        raise WrongValueError(f"`{text}` {explain_wrong(text, kind)}")
    found: list[Value] = parsed.values.to_pylist()
    return found


def make_frame(spark: SparkSession, columns: Mapping[str, Type], rows: Sequence[TypedRow]) -> DataFrame:
    """A frame of a few rows, written as SQL so that it is the same on every kind of session."""
    names = ", ".join(quote_name(name) for name in columns)
    if not rows:
        nulls = ", ".join(f"{literal(None, kind)} AS {quote_name(name)}" for name, kind in columns.items())
        return spark.sql(f"SELECT {nulls}").where("FALSE")
    lines = ("(" + ", ".join(literal(row.get(name), kind) for name, kind in columns.items()) + ")" for row in rows)
    casts = ", ".join(f"CAST({quote_name(name)} AS {kind.sql}) AS {quote_name(name)}" for name, kind in columns.items())
    return spark.sql(f"SELECT {casts} FROM VALUES {', '.join(lines)} AS t({names})")


def take_rows(frame: DataFrame, columns: Mapping[str, Type]) -> list[TypedRow]:
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


def show_value(value: object) -> str:
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
