"""The dataset that an output registers: its columns as they were written, its temporal mode by what was written (C-64)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dobonomodo.formula import Type
from dobonomodo.formula.types import (
    BOOLEAN,
    DATE,
    INTEGER,
    TEXT,
    TIMESTAMP,
    DecimalType,
    as_decimal,
    is_number,
    unify,
)
from dobonomodo.model.dataset import Dataset
from dobonomodo.model.schema import Column, DataType, Table, TemporalMode, TypeName
from dobonomodo.plan.system import PERIOD, PERIOD_FROM, is_system

_NAMES: dict[Type, TypeName] = {
    TEXT: "string",
    INTEGER: "integer",
    BOOLEAN: "boolean",
    DATE: "date",
    TIMESTAMP: "timestamp",
}


def registered_dataset(name: str, columns: Mapping[str, Type]) -> Dataset:
    """The dataset of some written columns; the system's are stored and recognised, and not declared."""
    mode = _temporal_mode(columns)
    declared = tuple(
        Column(name=column, type=declare(kind)) for column, kind in columns.items() if not is_system(column)
    )
    return Dataset(id=name, name=name, main_table=Table(name=name, temporal_mode=mode, columns=declared))


def declare(kind: Type) -> DataType:
    """The declared type of a column that a formula computed."""
    return DataType("decimal", kind.precision, kind.scale) if isinstance(kind, DecimalType) else DataType(_NAMES[kind])


def _temporal_mode(columns: Iterable[str]) -> TemporalMode:
    """The temporal mode of rows with these columns."""
    names = set(columns)
    return "period" if PERIOD in names else "bitemporal" if PERIOD_FROM in names else "snapshot"


def explain_modes(there: Mapping[str, Type], here: Mapping[str, Type]) -> str | None:
    """Why rows cannot be registered together with others; None if all have the same temporal mode.

    Rows without a period would never be read, and no error would show it.
    """
    one, other = _temporal_mode(there), _temporal_mode(here)
    if not there or one == other:
        return None
    return f"the existing rows have the temporal mode {one}, and these have {other}; choose another table"


@dataclass(frozen=True, slots=True)
class United:
    """The columns of all periods of a destination, each of a type that holds the values of all (C-86)."""

    columns: Mapping[str, Type]
    conflicts: tuple[tuple[str, Type, Type], ...] = ()
    """Columns of two types that cannot be read as one, with the earlier type and the later one."""

    def explain(self) -> str:
        """The conflicts in words."""
        shown = "; ".join(f"column `{name}` is {one} there and {other} here" for name, one, other in self.conflicts)
        return f"{shown}; the two cannot be read as one column: convert it, choose another table, or remove the existing rows"


def unite_columns(schemas: Iterable[Mapping[str, Type | None]]) -> United:
    """The columns of several writings, in the order in which they come; a type that is None is unknown and fits any."""
    found: dict[str, Type | None] = {}
    spelled: dict[str, str] = {}
    conflicts = []
    for schema in schemas:
        for each, kind in schema.items():
            name = spelled.setdefault(each.casefold(), each)
            before = found.get(name)
            if before is None or kind is None:
                found[name] = before or kind
            elif (wide := widen(before, kind)) is not None:
                found[name] = wide
            else:
                conflicts.append((name, before, kind))
    return United({name: kind or TEXT for name, kind in found.items()}, tuple(conflicts))


def widen(one: Type, other: Type) -> Type | None:
    """The type as which the values of both can be read without loss: for numbers alone, if 38 digits are enough."""
    if one == other:
        return one
    wide = unify((one, other)) if is_number(one) and is_number(other) else None
    if not isinstance(wide, DecimalType):
        return None
    parts = [as_decimal(each) for each in (one, other)]
    return wide if all(each.whole <= wide.whole and each.scale <= wide.scale for each in parts) else None
