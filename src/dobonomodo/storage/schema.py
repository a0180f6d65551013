"""Compares the columns of files or tables with those that a dataset declares, and maps both to Arrow types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.plan.system import ALWAYS, PERIOD, PERIOD_FROM, PERIOD_TO, RUN_PERIOD, SYNONYMS

if TYPE_CHECKING:
    import pyarrow

SYSTEM: Mapping[str, Type] = {
    **ALWAYS,
    PERIOD: TEXT,
    PERIOD_FROM: DATE,
    PERIOD_TO: DATE,
    RUN_PERIOD: TEXT,
    **{synonym: ALWAYS[name] for synonym, name in SYNONYMS.items()},
}
"""The system columns that stored rows may carry."""

_WHOLE = ("bigint", "int", "smallint", "tinyint")


def find_differences(stored: Iterable[tuple[str, str]], use: DatasetUse) -> tuple[str, ...]:
    """Every difference that matters: a missing column, a column more, another type. System columns may be there or not.

    ``stored`` are names and types, the types as Spark calls them.
    """
    found: dict[str, str] = {}
    differences = []
    declared = {name.casefold() for name in use.columns}
    extra = []
    for name, kind in stored:
        folded = name.casefold()
        if folded in found:
            differences.append(f"column `{name}` occurs twice; names are compared without regard to case")
        found[folded] = kind
        if folded not in declared and not name.startswith("_"):
            extra.append(f"column `{name}` is not declared")
        elif folded in SYSTEM and not _fits_system(kind, SYSTEM[folded]):
            extra.append(f"system column `{name}` is {kind}, should be {SYSTEM[folded]}")
    for name, wanted in use.columns.items():
        kind = found.get(name.casefold(), "")
        if not kind and name.casefold() in use.optional and name in use.nullable:
            continue
        if not kind:
            differences.append(f"column `{name}` is missing")
        elif not fits_stored(kind, wanted):
            differences.append(f"column `{name}` is {kind}, declared {wanted}")
    return (*differences, *extra)


def stored_type(name: str, use: DatasetUse) -> Type:
    """The type in which a stored column is read: as declared, as the system's, else as text."""
    declared = next((each for each in use.columns if each.casefold() == name.casefold()), None)
    return use.columns[declared] if declared is not None else SYSTEM.get(name.casefold(), TEXT)


def fits_stored(stored: str, kind: Type) -> bool:
    """Whether a stored type holds exactly what is declared, or less that can be widened without loss."""
    if stored == kind.sql.lower() or (kind == TIMESTAMP and stored == "timestamp_ntz"):
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


def _fits_system(stored: str, kind: Type) -> bool:
    # Dates of validity are often stored as times; the engine takes their day.
    return fits_stored(stored, kind) or (kind == DATE and stored in ("timestamp", "timestamp_ntz"))


def arrow_type(kind: Type) -> pyarrow.DataType:
    """The type of Arrow that holds exactly the values of one of ours."""
    import pyarrow as pa

    if isinstance(kind, DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    return {
        TEXT: pa.string(),
        INTEGER: pa.int64(),
        BOOLEAN: pa.bool_(),
        DATE: pa.date32(),
        TIMESTAMP: pa.timestamp("us", "UTC"),
    }[kind]


def arrow_schema(columns: Mapping[str, Type]) -> pyarrow.Schema:
    """Columns as Arrow has them."""
    import pyarrow as pa

    return pa.schema([(name, arrow_type(kind)) for name, kind in columns.items()])


def type_of_arrow(kind: pyarrow.DataType) -> Type | None:
    """The type of ours that a file's type holds; None for one that we do not write."""
    import pyarrow as pa

    if pa.types.is_decimal(kind):
        return DecimalType(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return TIMESTAMP
    known = {arrow_type(each): each for each in (TEXT, INTEGER, BOOLEAN, DATE)}
    return known.get(kind)


def spark_type(kind: pyarrow.DataType) -> str:
    """What Spark calls a type of a Parquet file; a type that it cannot read exactly is called as Arrow does."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        if kind.unit == "ns":
            return "timestamp in nanoseconds"
        return "timestamp" if kind.tz else "timestamp_ntz"
    names = {
        pa.string(): "string",
        pa.large_string(): "string",
        pa.string_view(): "string",
        pa.int64(): "bigint",
        pa.int32(): "int",
        pa.int16(): "smallint",
        pa.int8(): "tinyint",
        pa.bool_(): "boolean",
        pa.date32(): "date",
        pa.float64(): "double",
        pa.float32(): "float",
        pa.binary(): "binary",
    }
    return names.get(kind, str(kind))


def stored_arrow_type(name: str) -> pyarrow.DataType:
    """The type of Arrow that Spark calls by a name."""
    import pyarrow as pa

    if name.startswith("decimal("):
        return pa.decimal128(*(int(part) for part in name[8:-1].split(",")))
    simple = [pa.string(), pa.int64(), pa.int32(), pa.int16(), pa.int8(), pa.bool_(), pa.date32(), pa.float64()]
    simple += [pa.float32(), pa.binary(), pa.timestamp("us", "UTC"), pa.timestamp("us")]
    return {spark_type(each): each for each in simple}[name]
