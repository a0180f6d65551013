"""Tables and their columns: names, types, and how rows belong to a time."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from dobonomodo.model.document import Places
from dobonomodo.model.entity import Entity, check_unique
from dobonomodo.model.shape import CheckedApart
from dobonomodo.model.value import Expected, FileName, Filled, Flag, Text, is_name
from dobonomodo.problems import Problem
from dobonomodo.problems.definition import InvalidColumnName, InvalidValue, LimitExceeded, ReservedColumn
from dobonomodo.problems.problem import nearest

MAX_COLUMNS = 2_000
MAX_PRECISION = 38

TypeName = Literal["string", "integer", "decimal", "boolean", "date", "timestamp"]
TYPE_NAMES: tuple[TypeName, ...] = ("string", "integer", "decimal", "boolean", "date", "timestamp")
TemporalMode = Literal["period", "bitemporal", "snapshot"]
AsOf = Literal["period_start", "period_end"]
"""The day of a period on which the rows of a bitemporal dataset must be valid (C-94)."""
AS_OF = (
    "The day on which bitemporal rows must be valid: the first of the period (period_start) or the last (period_end)."
)

_TYPE_BY_HABIT: dict[str, TypeName] = {
    "text": "string", "str": "string", "varchar": "string", "char": "string", "uuid": "string",
    "int": "integer", "bigint": "integer", "long": "integer", "smallint": "integer",
    "number": "decimal", "numeric": "decimal", "float": "decimal", "double": "decimal", "money": "decimal",
    "bool": "boolean", "datetime": "timestamp",
}  # fmt: skip
_DECIMAL = re.compile(r"decimal\s*\(\s*([0-9]{1,3})\s*,\s*([0-9]{1,3})\s*\)")


@dataclass(frozen=True, slots=True)
class DataType:
    """The declared type of a column; a decimal may say its digits, and how many of them are behind the point."""

    name: TypeName
    precision: int | None = None
    scale: int | None = None

    @classmethod
    def parse(cls, text: object) -> "DataType":
        """The type a definition names, such as ``decimal(15,2)``; raises ValueError for an unknown type."""
        if isinstance(text, DataType):
            return text
        if not isinstance(text, str):
            raise ValueError
        wanted = text.strip().lower()
        for name in TYPE_NAMES:
            if wanted == name:
                return cls(name)
        found = _DECIMAL.fullmatch(wanted)
        if not found or not 1 <= int(found[1]) <= MAX_PRECISION or int(found[2]) > int(found[1]):
            raise ValueError
        return cls("decimal", int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return self.name if self.precision is None else f"{self.name}({self.precision},{self.scale})"


ColumnType = Annotated[
    DataType,
    BeforeValidator(DataType.parse),
    PlainSerializer(str, return_type=str),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(TYPE_NAMES)},
                {"type": "string", "pattern": r"^decimal\(\s*[0-9]{1,2}\s*,\s*[0-9]{1,2}\s*\)$"},
            ]
        }
    ),
    CheckedApart(),
    Expected("a type"),
]


class Column(Entity):
    """A column of a table."""

    cosmetic: ClassVar[frozenset[str]] = frozenset({"description"})

    name: Annotated[str, CheckedApart()] = Field(
        description="How formulas refer to the column. Unique ignoring case; names that start with `_` are reserved."
    )
    type: ColumnType = Field(
        description="string, integer, decimal, decimal(precision,scale), boolean, date or timestamp."
    )
    nullable: Flag = Field(default=True, description="Whether values may be NULL.")
    source: Filled | None = Field(
        default=None, description="What the column is called where it is stored, such as the header of a file."
    )
    description: Text | None = Field(default=None, description="What the column means.")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """A name that can be used, and a type that there is."""
        if places.at("name") is not None:
            yield from check_column_name(places, "name")
        yield from check_type(places)


class Table(Entity):
    """A table with its columns, as formulas know it."""

    cosmetic: ClassVar[frozenset[str]] = frozenset({"description"})

    name: FileName = Field(description="The name of the table in formulas and resolvers: `orders.amount`.")
    temporal_mode: TemporalMode | None = Field(
        default=None,
        description="How rows belong to a time: by `_period`, by an interval (bitemporal), or not (snapshot). "
        "Left out: rows are not filtered by period.",
    )
    as_of: AsOf | None = Field(default=None, description=f"{AS_OF} Left out: period_start.")
    columns: tuple[Column, ...] = Field(description="The columns, in order.")
    description: Text | None = Field(default=None, description="What the table contains.")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """Columns that can be told apart, at least one and not too many."""
        yield from check_columns(places)
        yield from check_as_of(places, places.get("temporal_mode"))


def check_type(places: Places) -> Iterable[Problem]:
    """A valid type under the key `type`."""
    declared = places.get("type")
    if declared is not None:
        try:
            DataType.parse(declared)
        except ValueError:
            yield _wrong_type(places, declared)


def check_as_of(places: Places, temporal_mode: object) -> Iterable[Problem]:
    """A day is named only where rows are chosen by a day."""
    named = places.text("as_of")
    if named is not None and temporal_mode != "bitemporal":
        yield InvalidValue(
            key="as_of",
            expected="a bitemporal dataset",
            found=f"one of mode `{temporal_mode}`" if temporal_mode else "one without temporal mode",
            advice="remove `as_of`, or set `temporal_mode: bitemporal`",
            span=places.key_span("as_of"),
        )


def check_columns(places: Places) -> Iterable[Problem]:
    """The rules for the key `columns` of a table."""
    columns = places.at("columns")
    if columns is None or not columns.is_list:
        return
    elements = tuple(columns.elements())
    if not elements:
        yield InvalidValue(key="columns", expected="at least one column", found="an empty list", span=columns.span())
    if len(elements) > MAX_COLUMNS:
        yield LimitExceeded(what="columns in a table", limit=MAX_COLUMNS, span=places.key_span("columns"))
        return
    names = ((element.text("name"), element.at("name") or element) for element in elements)
    yield from check_unique(names, kind="column", ignore_case=True)
    if any(element.text("source") is not None for element in elements):
        stored = ((element.text("source") or element.text("name"), element) for element in elements)
        yield from check_unique(
            ((name, element.at("source") or element.at("name") or element) for name, element in stored),
            kind="source",
            ignore_case=True,
        )


def check_column_name(places: Places, key: str) -> Iterable[Problem]:
    """The name of a user's own column: usable, and not one of the system's."""
    name = places.get(key)
    if name is None:
        return
    if not isinstance(name, str):
        yield InvalidColumnName(name=str(name), span=places.span(key))
    elif name.startswith("_"):
        yield ReservedColumn(name=name, span=places.span(key))
    elif not is_name(name):
        yield InvalidColumnName(name=name, span=places.span(key))


def column_names(places: Places, *path: str) -> tuple[str, ...]:
    """The names of the columns at a path, those that are texts."""
    columns = places.at(*path)
    found = (element.text("name") for element in columns.elements()) if columns is not None else ()
    return tuple(name for name in found if name is not None)


def _wrong_type(places: Places, declared: object) -> InvalidValue:
    known = (*TYPE_NAMES, "decimal(15,2)")
    text = declared if isinstance(declared, str) else str(declared)
    word = text.partition("(")[0].strip().lower()
    meant = _TYPE_BY_HABIT.get(word) or nearest(word, TYPE_NAMES)
    advice = None
    if word == "decimal":
        advice = f"write `decimal(p,s)` with p from 1 to {MAX_PRECISION} and s from 0 to p, such as `decimal(15,2)`"
    elif meant:
        advice = f"did you mean `{meant}`?"
    return InvalidValue(
        key="type",
        expected="a type",
        found=f"`{text}`",
        known=known,
        text=text,
        advice=advice,
        span=places.span("type"),
    )
