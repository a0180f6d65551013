"""The key of a question: columns of an output with values, given as text or as Python values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

from dobonomodo.formula import Type, parse_moment
from dobonomodo.formula.meaning import Value, as_value
from dobonomodo.formula.types import BOOLEAN, INTEGER, TEXT, TIMESTAMP, DecimalType
from dobonomodo.problems import Rejected
from dobonomodo.problems.why import InvalidKey
from dobonomodo.why.explanation import show


def read_key(
    key: Mapping[str, object], columns: Mapping[str, Type], *, owner: str = "the output has"
) -> dict[str, Value]:
    """A key in the spelling and the types of the columns, which ``owner`` has; every wrong part is reported."""
    spelled = {name.casefold(): name for name in columns}
    found: dict[str, Value] = {}
    problems = []
    for name, given in key.items():
        column = spelled.get(name.casefold())
        if column is None:
            problems.append(InvalidKey(column=name, known=tuple(columns), owner=owner))
            continue
        try:
            found[column] = read_value(given, columns[column])
        except (ValueError, InvalidOperation):
            problems.append(InvalidKey(column=column, value=str(given), kind=str(columns[column])))
    if problems:
        raise Rejected(problems)
    return found


def read_value(given: object, kind: Type) -> Value:
    """A value of a type; the text NULL is NULL. ``ValueError`` for what the type cannot hold."""
    if given is None or given == "NULL":
        return None
    if not isinstance(given, str):
        return as_value(given)
    if kind == TEXT:
        return given
    text = given.strip()
    if kind == INTEGER:
        return int(text)
    if isinstance(kind, DecimalType):
        number = Decimal(text)
        if not number.is_finite():
            raise ValueError(text)
        return number
    if kind == BOOLEAN:
        return {"true": True, "false": False}[text.lower()] if text.lower() in ("true", "false") else _refuse(text)
    if kind == TIMESTAMP:
        moment = parse_moment(text)
        return as_value(moment) if isinstance(moment, datetime) else _refuse(text)
    return as_value(date.fromisoformat(text))


def _refuse(text: str) -> Value:
    raise ValueError(text)


def show_key(key: Mapping[str, Value]) -> str:
    """A key for people."""
    return ", ".join(f"{name} = {show(value)}" for name, value in key.items())
