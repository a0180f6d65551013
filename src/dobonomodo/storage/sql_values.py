"""Values as drivers of databases give them, for the checks that texts of files pass: exact or refused, never rounded.

The type of a value says as much as the type of its column: a driver gives a `Decimal` for an exact number and a `float` for
an inexact one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from types import NoneType
from typing import TYPE_CHECKING
from uuid import UUID

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, DecimalType
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.problems.run import CELLS_AT_MOST, WrongCell
from dobonomodo.storage.findings import CheckedBatch, check_batch
from dobonomodo.storage.schema import SYSTEM, arrow_type

if TYPE_CHECKING:
    import pyarrow

_UNREADABLE = "?"
"""What stands for a value that is wrong by its type: no number, day or boolean is written so."""
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Wrong:
    """A value that its type rules out."""

    shown: str | None
    rule: str


@dataclass(frozen=True, slots=True, eq=False)
class Converted:
    """A column for the checks of texts and values."""

    values: pyarrow.Array
    wrong: Mapping[int, Wrong] = field(default_factory=dict)
    """By position, what was replaced by a text that cannot be parsed."""


def convert_column(values: Sequence[object], kind: Type, *, name: str, is_typed: bool) -> Converted:
    """Values of a driver; ``is_typed``: the columns of the database have types, which its values follow.

    Where they have none, as in SQLite, a text or a binary number may stand for any value that it can be converted to exactly.
    """
    import pyarrow as pa

    if set(map(type, values)) <= {NoneType, _PLAIN.get(kind, NoneType)}:
        try:
            return Converted(pa.array(values, arrow_type(kind)))
        except OverflowError:
            pass
    render = _find_renderer(kind, name=name, is_typed=is_typed)
    wrong: dict[int, Wrong] = {}
    texts: list[str | None] = []
    for position, value in enumerate(values):
        text = None if value is None else render(value)
        if isinstance(text, Wrong):
            wrong[position] = text
            text = _UNREADABLE
        texts.append(text)
    return Converted(pa.array(texts, pa.string()), wrong)


_PLAIN: Mapping[Type, type] = {TEXT: str, INTEGER: int, BOOLEAN: bool, DATE: date}
"""By type, the values that Arrow takes as they are."""

_Render = Callable[[object], str | Wrong]


def _find_renderer(kind: Type, *, name: str, is_typed: bool) -> _Render:
    if kind == TEXT:
        return _render_text if is_typed else _render_any_text
    if kind == INTEGER:
        return _render_integer if is_typed else _render_any_integer
    if kind == BOOLEAN:
        return _render_boolean
    if isinstance(kind, DecimalType):
        return _render_decimal if is_typed else _render_any_decimal
    if kind == DATE:
        # Dates of validity are often stored as times; the engine takes their day.
        return _render_day if name.casefold() in SYSTEM else _render_date
    return _render_time


def _render_text(value: object) -> str | Wrong:
    return str(value) if isinstance(value, str | UUID) else _refuse(value, "not a text")


def _render_any_text(value: object) -> str | Wrong:
    if isinstance(value, int):
        return str(value)
    return _render_text(value)


def _render_integer(value: object) -> str | Wrong:
    match value:
        case bool():
            return _refuse(value, "not a whole number")
        case int():
            return str(value)
        case Decimal() if value.is_finite() and value == value.to_integral_value():
            return f"{value.to_integral_value():f}"
        case _:
            return _refuse(value, "not a whole number")


def _render_any_integer(value: object) -> str | Wrong:
    return value if isinstance(value, str) else _render_integer(value)


def _render_boolean(value: object) -> str | Wrong:
    """Databases without booleans have 0 and 1."""
    if isinstance(value, int) and value in (0, 1):
        return "true" if value else "false"
    return _refuse(value, "not a boolean; as a number it is 0 or 1")


def _render_decimal(value: object) -> str | Wrong:
    match value:
        case bool():
            return _refuse(value, "not a number")
        case int() | str():
            return str(value)
        case Decimal():
            return f"{value:f}"
        case float():
            return Wrong(repr(value), "is a binary floating-point number, which is not exact")
        case _:
            return _refuse(value, "not a number")


def _render_any_decimal(value: object) -> str | Wrong:
    """The shortest decimal that a binary number stands for. With more digits, several decimals would give the same number."""
    if not isinstance(value, float):
        return _render_decimal(value)
    shortest, exact = repr(value), sys.float_info.dig
    digits = len(shortest.partition("e")[0].replace(".", "").lstrip("-0").rstrip("0"))
    if digits > exact:
        return Wrong(shortest, f"is a binary floating-point number of {digits} digits, {exact} are exact")
    return shortest


def _render_date(value: object) -> str | Wrong:
    match value:
        case datetime() if value.timetz() != time():
            return Wrong(value.isoformat(sep=" "), "has a time of day, and is not a date")
        case datetime():
            return value.date().isoformat()
        case date():
            return value.isoformat()
        case str():
            return value
        case _:
            return _refuse(value, "not a date")


def _render_day(value: object) -> str | Wrong:
    """The day of a time, in UTC."""
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo is not None else value).date().isoformat()
    return _render_date(value)


def _render_time(value: object) -> str | Wrong:
    match value:
        case datetime() | date():
            return value.isoformat()
        case str():
            return value
        case _:
            return _refuse(value, "not a time")


def _refuse(value: object, what: str) -> Wrong:
    match value:
        case bytes() | bytearray() | memoryview():
            return Wrong(None, f"is binary data, {what}")
        case str():
            return Wrong(_shorten(value), f"is a text, {what}")
        case _:
            return Wrong(_shorten(str(value)), f"is {what}")


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def check_columns(
    columns: Sequence[Converted], types: Mapping[str, Type], *, use: DatasetUse, place: str
) -> CheckedBatch:
    """Check a batch, and say of values that are wrong by their type what they are."""
    checked = check_batch([each.values for each in columns], types, use=use, place=place)
    by_column = dict(zip(types, columns, strict=True))
    if not any(each.wrong for each in columns):
        return checked
    first = [(at, _explain(cell, by_column[cell.column or ""].wrong.get(at))) for at, cell in checked.first]
    counts = dict(checked.counts)
    for name, kind in types.items():
        wrong = by_column[name].wrong
        if kind == TEXT and wrong:
            counts[name] = counts.get(name, 0) + len(wrong)
            cells = list(wrong.items())[:CELLS_AT_MOST]
            first += [(at, WrongCell(place=place, column=name, value=each.shown, rule=each.rule)) for at, each in cells]
    first.sort(key=lambda found: found[0])
    return CheckedBatch(checked.columns, tuple(first[:CELLS_AT_MOST]), counts)


def _explain(cell: WrongCell, wrong: Wrong | None) -> WrongCell:
    return cell if wrong is None else replace(cell, value=wrong.shown, rule=wrong.rule)
