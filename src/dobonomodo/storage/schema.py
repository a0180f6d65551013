"""The columns that files or tables have, against those that a dataset declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dobonomodo.formula import Type
from dobonomodo.formula.types import INTEGER, DecimalType
from dobonomodo.plan.dataset import DatasetUse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WHOLE = ("bigint", "int", "smallint", "tinyint")


def find_differences(frame: DataFrame, use: DatasetUse) -> tuple[str, ...]:
    """Every difference that matters: a missing column, a column more, another type. System columns may be there or not."""
    found = {field.name.casefold(): field.dataType.simpleString() for field in frame.schema.fields}
    differences = []
    for name, kind in use.columns.items():
        stored = found.get(name.casefold())
        if stored is None:
            differences.append(f"column `{name}` is missing")
        elif not fits_stored(stored, kind):
            differences.append(f"column `{name}` is {stored}, declared {kind}")
    declared = {name.casefold() for name in use.columns}
    differences += [
        f"column `{field.name}` is not declared"
        for field in frame.schema.fields
        if field.name.casefold() not in declared and not field.name.startswith("_")
    ]
    return tuple(differences)


def fits_stored(stored: str, kind: Type) -> bool:
    """Whether a stored type holds exactly what is declared, or less that can be widened without loss."""
    if stored == kind.sql.lower():
        return True
    if kind == INTEGER:
        return stored in _WHOLE
    if isinstance(kind, DecimalType):
        if stored in _WHOLE:
            return kind.whole >= 19
        if stored.startswith("decimal("):
            precision, scale = (int(part) for part in stored[8:-1].split(","))
            return precision - scale <= kind.whole and scale <= kind.scale
    return False
