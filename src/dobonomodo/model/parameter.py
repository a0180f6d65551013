"""Parameters of a project: values that each run receives, and how they are parsed."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import ClassVar, NamedTuple

from pydantic import Field

from dobonomodo.model.document import Places
from dobonomodo.model.entity import Entity
from dobonomodo.model.schema import MAX_PRECISION, ColumnType, DataType, TypeName, check_type
from dobonomodo.model.value import Setting, Text, is_identifier, parse_date
from dobonomodo.problems import Problem, Span
from dobonomodo.problems.definition import InvalidValue
from dobonomodo.problems.parameter import InvalidParameter, ParameterMissing, UnknownParameter

ParameterValue = bool | int | Decimal | str | date | datetime

BARE_SCALE = 10
"""Digits behind the point of a decimal that does not say how many it has."""
_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?")
_WHOLE = re.compile(r"[-+]?[0-9]+")
_LONGEST = 1_000
"""Characters of a text."""
_EXAMPLES: Mapping[TypeName, str] = {
    "string": "a text of at most 1,000 characters",
    "integer": "a whole number such as `12`",
    "decimal": "a number such as `0.05`, with no more digits than its type has",
    "boolean": "`true` or `false`",
    "date": "a date such as `2026-01-31`",
    "timestamp": "a time such as `2026-01-31T08:00:00Z`",
}
"""The form of the values of a type."""


class Parameter(Entity):
    """A value that a run receives and that formulas read as `param.name`."""

    cosmetic: ClassVar[frozenset[str]] = frozenset({"description"})

    type: ColumnType = Field(
        description="string, integer, decimal, decimal(precision,scale), boolean, date or timestamp."
    )
    default: Setting | None = Field(
        default=None, description="The value of runs that are given none; without it, each run must be given one."
    )
    description: Text | None = Field(default=None, description="What the parameter means.")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """A type that there is."""
        yield from check_type(places)


def check_parameters(places: Places) -> Iterable[Problem]:
    """Names that can be written behind `param.`, each once whatever its case, and defaults that have their type."""
    first: dict[str, str] = {}
    for name in places.keys:
        if not is_identifier(name):
            expected, span = "names of letters, digits and `_`", places.key_span(name)
            yield InvalidValue(key="parameters", expected=expected, found=f"`{name}`", span=span)
        other = first.setdefault(name.casefold(), name)
        if other != name:
            expected, span = f"names that differ by more than case from `{other}`", places.key_span(name)
            yield InvalidValue(key="parameters", expected=expected, found=f"`{name}`", span=span)
        if places.get(name, "default") is not None:
            yield from _check_default(name, places)


def _check_default(name: str, places: Places) -> Iterable[Problem]:
    try:
        kind = DataType.parse(places.get(name, "type"))
    except ValueError:
        return
    found = settle_value(name, kind, places.get(name, "default"), span=places.span(name, "default"))
    if isinstance(found, Problem):
        yield found


class Settled(NamedTuple):
    """The values of a project's parameters, and what is wrong with those that were given."""

    values: Mapping[str, ParameterValue]
    problems: tuple[Problem, ...]


def settle_parameters(
    project: str,
    parameters: Mapping[str, Parameter],
    given: Mapping[str, object],
    *,
    otherwise: Mapping[str, object] | None = None,
    spans: Mapping[str, Span | None] | None = None,
) -> Settled:
    """The value of each parameter: the one that is given, else ``otherwise``, else the default.

    ``spans`` are the places of what is given, where it is written in a file.
    """
    placed = spans or {}
    stored = {name.casefold(): name for name in parameters}
    problems: list[Problem] = []
    chosen: dict[str, object] = {name: each.default for name, each in parameters.items() if each.default is not None}
    for values in (otherwise or {}, given):
        for name, value in values.items():
            if name.casefold() in stored:
                chosen[stored[name.casefold()]] = value
            else:
                known, span = tuple(parameters), placed.get(name)
                problems.append(UnknownParameter(name=name, known=known, project=project, span=span))
    settled: dict[str, ParameterValue] = {}
    for name, parameter in parameters.items():
        if name not in chosen:
            kind, meaning = str(parameter.type), parameter.description
            problems.append(ParameterMissing(name=name, type=kind, description=meaning))
            continue
        found = settle_value(name, parameter.type, chosen[name], span=placed.get(name))
        if isinstance(found, Problem):
            problems.append(found)
        else:
            settled[name] = found
    return Settled(settled, tuple(problems))


def settle_value(name: str, kind: DataType, value: object, *, span: Span | None = None) -> ParameterValue | Problem:
    """A value in the type of a parameter, or what is wrong with it."""
    try:
        return read_value(value, kind)
    except ValueError as wrong:
        written = show_value(value)
        shown = written if len(written) <= 80 else f"{written[:77]}..."
        reason, instead = (*wrong.args, _EXAMPLES[kind.name])[:2]
        return InvalidParameter(name=name, value=shown, type=str(kind), wrong=reason, instead=instead, span=span)


def read_value(value: object, kind: DataType) -> ParameterValue:
    """A value in a type, never rounded; raises ValueError with what is wrong and perhaps what to write instead."""
    if kind.name == "string":
        if not isinstance(value, str):
            raise ValueError("is not a text", "it in quotes")
        if len(value) > _LONGEST:
            raise ValueError(f"is longer than {_LONGEST:,} characters")
        return value
    text = show_value(value).strip()
    match kind.name:
        case "integer":
            return _read_integer(text)
        case "decimal":
            return _read_decimal(text, kind)
        case "boolean":
            if text.lower() not in ("true", "false"):
                raise ValueError("is not `true` or `false`")
            return text.lower() == "true"
        case "date":
            try:
                return parse_date(text)
            except ValueError:
                raise ValueError("is not a date") from None
        case "timestamp":
            return _read_time(text)


def show_value(value: object) -> str:
    """A value as it is written in files and on the command line; reading that gives the same value."""
    match value:
        case bool():
            return str(value).lower()
        case Decimal():
            return f"{value:f}"
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case _:
            return str(value)


def _read_integer(text: str) -> int:
    if not _WHOLE.fullmatch(text) or len(text) > MAX_PRECISION:
        raise ValueError("is not a whole number")
    if not -(2**63) <= (number := int(text)) < 2**63:
        raise ValueError("has more than 64 bits")
    return number


def _read_decimal(text: str, kind: DataType) -> Decimal:
    if not _NUMBER.fullmatch(text):
        if text.endswith("%") and _NUMBER.fullmatch(text[:-1]):
            raise ValueError("is not a number", f"`{Decimal(text[:-1]).scaleb(-2):f}`")
        raise ValueError("is not a number")
    whole, _, fraction = text.lstrip("+-").partition(".")
    precision = kind.precision if kind.precision is not None else MAX_PRECISION
    scale = kind.scale if kind.scale is not None else BARE_SCALE
    if len(fraction.rstrip("0")) > scale:
        raise ValueError(f"has more than {scale} digits behind the point")
    if len(whole.lstrip("0")) > precision - scale:
        raise ValueError(f"has more than {precision - scale} digits before the point")
    sign = "-" if text.startswith("-") else ""
    return Decimal(f"{sign}{whole}.{fraction.rstrip('0')}" if fraction.rstrip("0") else f"{sign}{whole}")


def _read_time(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
        if "T" not in text.upper() and " " not in text:
            raise ValueError
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("is not a time") from None
