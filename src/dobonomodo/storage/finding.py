"""Rows of Parquet files by the values of some columns, without Spark: by statistics, then by those columns alone."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dobonomodo.formula import Type
from dobonomodo.formula.meaning import Value, fit
from dobonomodo.formula.moment import Day, Moment
from dobonomodo.formula.types import DecimalType
from dobonomodo.problems import RunFailed

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

_NUMBER = (int, Decimal)
FEW = 100
"""Up to this number, rows are read instead of tested by more columns."""
READ = 1 << 16
"""Rows that are decoded at a time."""
BATCH = 1_000
"""Rows that are turned into values of Python at a time."""

Wanted = Mapping[str, Collection[Value]]
"""The values that a column, in lower case, may have."""


class DamagedFileError(Exception):
    """A file whose bytes are not those of Parquet with these columns: it was changed after it was written."""


def find_rows(
    path: Path,
    types: Mapping[str, Type],
    wanted: Wanted,
    *,
    numbers: Collection[int] | None = None,
    columns: Collection[str] | None = None,
) -> Iterator[tuple[int, dict[str, Value]]]:
    """The rows of a file that have wanted values, each with its number in the file, from 0.

    ``types`` are those of the columns to read, by name in lower case; ``columns``: those of them that are enough. A column
    that the file does not have is NULL in all rows, and is not among the values. Raises ``DamagedFileError``.
    """
    with _noticing_damage():
        yield from _find_rows(path, types, wanted, numbers, columns)


@contextmanager
def _noticing_damage() -> Iterator[None]:
    """Raises ``DamagedFileError`` for what Arrow or the conversion of values reports; a missing file is raised as it is."""
    from pyarrow import ArrowException

    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, ArrowException, UnicodeDecodeError, RunFailed) as fault:
        raise DamagedFileError(next(iter(str(fault).splitlines()), "")) from fault


def _find_rows(
    path: Path,
    types: Mapping[str, Type],
    wanted: Wanted,
    numbers: Collection[int] | None,
    columns: Collection[str] | None,
) -> Iterator[tuple[int, dict[str, Value]]]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        stored = {field.name.casefold(): field.name for field in file.schema_arrow}
        if any(None not in allowed for name, allowed in wanted.items() if name not in stored):
            return
        if any(name not in types for name in wanted):
            raise AssertionError("what is looked for has a type")
        tests = {stored[name]: allowed for name, allowed in wanted.items() if name in stored}
        enough = [name for name in types if name in stored and (columns is None or name in columns)]
        chosen = [*enough, *(name for name in wanted if name in stored and name not in enough)]
        first = 0
        for group in range(file.metadata.num_row_groups):
            count = file.metadata.row_group(group).num_rows
            found = _find_in_group(file, group, tests, numbers, first=first)
            if found is None or len(found):
                listed = [(name, stored[name], types[name]) for name in chosen]
                for at, values in _read_found(file, group, found, listed):
                    if all(values[name] in allowed for name, allowed in wanted.items() if name in values):
                        yield first + at, {name: values[name] for name in enough}
            first += count


def _read_found(
    file: pyarrow.parquet.ParquetFile, group: int, found: list[int] | None, columns: list[tuple[str, str, Type]]
) -> Iterator[tuple[int, dict[str, Value]]]:
    """Rows of a row group by their numbers, which are sorted; nothing behind the last of them is decoded."""
    import pyarrow as pa

    names, start = [stored for _, stored, _ in columns], 0
    for batch in file.iter_batches(READ, row_groups=[group], columns=names):
        end = start + batch.num_rows
        here = (
            None if found is None else [at - start for at in found[bisect_left(found, start) : bisect_left(found, end)]]
        )
        if here is None or here:
            for at, values in _take(pa.Table.from_batches([batch]), here, columns):
                yield start + at, values
        start = end
        if found is not None and found[-1] < start:
            return


def count_rows(path: Path) -> int:
    """How many rows a file has. Raises ``DamagedFileError``."""
    import pyarrow.parquet as pq

    with _noticing_damage():
        return int(pq.read_metadata(path).num_rows)


def _find_in_group(
    file: pyarrow.parquet.ParquetFile, group: int, tests: Wanted, numbers: Collection[int] | None, *, first: int
) -> list[int] | None:
    """The numbers of rows in a row group, and of few others, which are tested when they are read; None for all of them."""
    import pyarrow.compute as pc

    metadata = file.metadata.row_group(group)
    chunks = {metadata.column(at).path_in_schema: metadata.column(at) for at in range(metadata.num_columns)}
    if not all(_may_hold(chunks[name], allowed) for name, allowed in tests.items() if name in chunks):
        return []
    here = None
    if numbers is not None:
        here = sorted(number - first for number in numbers if first <= number < first + metadata.num_rows)
        if not here:
            return []
    if not tests:
        return here
    if here is not None and len(here) <= FEW:
        return here
    mask = None
    for name, allowed in tests.items():
        each = _compare(file.read_row_group(group, columns=[name])[name], allowed)
        mask = each if mask is None else pc.and_(mask, each)
        if pc.sum(mask).as_py() in range(FEW + 1):
            break
    found: list[int] = pc.indices_nonzero(mask).to_pylist()
    return found if here is None else sorted(set(found) & set(here))


def _may_hold(chunk: pyarrow.parquet.ColumnChunkMetaData, allowed: Collection[Value]) -> bool:
    """Whether one of the values is within the statistics of a column."""
    statistics = chunk.statistics
    if statistics is None or not statistics.has_min_max or not statistics.has_null_count:
        return True
    low, high = statistics.min, statistics.max
    return any(bool(statistics.null_count) if value is None else _may_be_between(low, value, high) for value in allowed)


def _may_be_between(low: object, value: Value, high: object) -> bool:
    """Whether a value is between two others, as far as they can be compared."""
    if isinstance(value, str) and isinstance(low, str) and isinstance(high, str):
        return low <= value <= high
    if isinstance(value, _NUMBER) and isinstance(low, _NUMBER) and isinstance(high, _NUMBER):
        return low <= value <= high
    return True


def _compare(column: pyarrow.ChunkedArray, allowed: Collection[Value]) -> Any:
    """For each value of a column, whether it is one of those."""
    import pyarrow.compute as pc

    plain = _plain(column)
    values = [found for value in allowed if value is not None and (found := _as_stored(value, plain.type)) is not None]
    mask = pc.is_in(plain, value_set=_array(values, plain.type))
    return pc.or_(mask, pc.is_null(plain)) if None in allowed else mask


def _array(values: list[Any], kind: pyarrow.DataType) -> pyarrow.Array:
    """Values as Arrow has them. Arrow would import pandas for that, which takes longer than finding a row."""
    import pyarrow as pa

    count = len(values)
    if pa.types.is_string(kind):
        texts = [value.encode("utf-8", "surrogatepass") for value in values]
        offsets = array("i", accumulate((len(text) for text in texts), initial=0))
        return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(texts))])
    if pa.types.is_signed_integer(kind):
        content = b"".join(value.to_bytes(kind.bit_width // 8, sys.byteorder, signed=True) for value in values)
        return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(content)])
    return pa.array(values, type=kind)


def _plain(column: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    """The same values in a type that is easy to compare: days and times as numbers."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_date32(kind):
        return column.cast(pa.int32())
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
    return column


def _as_stored(value: Value, kind: pyarrow.DataType) -> object:
    """A value for a column of a type; None if no value of the column can be equal to it."""
    import pyarrow as pa

    if isinstance(value, Day):
        return value.number
    if isinstance(value, Moment):
        return value.micros
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return value
    exact = Decimal(value)
    if pa.types.is_decimal(kind):
        try:
            placed = fit(exact, DecimalType(kind.precision, kind.scale))
        except Exception:  # noqa: BLE001  a number with more digits is not in the column
            return None
        return placed if placed == exact else None
    if exact != exact.to_integral_value() or not -(2 ** (kind.bit_width - 1)) <= exact < 2 ** (kind.bit_width - 1):
        return None
    return int(exact)


def _take(
    rows: pyarrow.Table, found: list[int] | None, columns: list[tuple[str, str, Type]]
) -> Iterator[tuple[int, dict[str, Value]]]:
    total = rows.num_rows if found is None else len(found)
    for start in range(0, total, BATCH):
        end = min(start + BATCH, total)
        at = list(range(start, end)) if found is None else found[start:end]
        part = rows.slice(start, end - start) if found is None else _pick(rows, at)
        listed = [(name, _values(part[stored], kind)) for name, stored, kind in columns]
        for number, place in enumerate(at):
            yield place, {name: values[number] for name, values in listed}


def _pick(rows: pyarrow.Table, at: list[int]) -> pyarrow.Table:
    """Some rows. A list of many numbers would have Arrow import pandas."""
    import pyarrow as pa

    return pa.concat_tables([rows.slice(number, 1) for number in at]) if len(at) <= FEW else rows.take(at)


def _values(column: pyarrow.ChunkedArray, kind: Type) -> list[Value]:
    import pyarrow as pa

    stored = column.type
    found: list[Any] = _plain(column).to_pylist()
    if pa.types.is_date32(stored):
        return [None if each is None else Day(each) for each in found]
    if pa.types.is_timestamp(stored):
        return [None if each is None else Moment(each) for each in found]
    if isinstance(kind, DecimalType):
        return [None if each is None else fit(each, kind) for each in found]
    return found
