"""The dataset that an output registers: its columns as they were written, its temporal mode by what was written (C-64)."""

from __future__ import annotations

from collections.abc import Mapping

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType
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
    mode: TemporalMode = "period" if PERIOD in columns else "bitemporal" if PERIOD_FROM in columns else "snapshot"
    declared = tuple(
        Column(name=column, type=declare(kind)) for column, kind in columns.items() if not is_system(column)
    )
    return Dataset(id=name, name=name, main_table=Table(name=name, temporal_mode=mode, columns=declared))


def declare(kind: Type) -> DataType:
    """The declared type of a column that a formula computed."""
    return DataType("decimal", kind.precision, kind.scale) if isinstance(kind, DecimalType) else DataType(_NAMES[kind])
