"""CSV files: read strictly and exactly into Parquet, and written so that reading gives the same rows.

A value without quotes that is empty is NULL; ``""`` is the empty text. Blank lines are no records, except in a file with one
column, where each is a NULL.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.formula import Type
from dobonomodo.formula.types import TEXT, TIMESTAMP
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.problems import RunFailed
from dobonomodo.problems.failpoint import reach
from dobonomodo.storage.faults import is_passing, loading_failed, writing_failed
from dobonomodo.storage.schema import SYSTEM, arrow_type, find_differences

if TYPE_CHECKING:
    import pyarrow

BLOCK = 4 << 20
_ROW = re.compile(r"Row #(\d+)")
_PREFIX = re.compile(r"^(CSV parse error: |In CSV column #(\d+): )*(Row #\d+: )?(CSV conversion error to [^:]*: )?")


def extract_csv(source: Path, target: Path, use: DatasetUse, *, delimiter: str, has_header: bool) -> None:
    """Turn a CSV file into a Parquet file with the same rows in the same order; raises on the first fault, with its line."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = _read_header(source, use, delimiter=delimiter) if has_header else list(use.columns)
    types = {name: _type_of(name, use) for name in names}
    required = [name for name in names if _declared(name, use) and _declared(name, use) not in use.nullable]
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in types.items()])
    unfinished = target.with_name(target.name + ".part")
    row = 1 + has_header
    try:
        with pq.ParquetWriter(unfinished, schema) as writer:
            for batch in _batches(source, types, delimiter=delimiter, has_header=has_header):
                columns = []
                for name, column in zip(names, batch.columns, strict=True):
                    if name in required and column.null_count:
                        at = column.is_null().to_pylist().index(True)
                        raise _fault(
                            use, source, delimiter, row + at, f"column `{name}` has no value, and is not nullable"
                        )
                    columns.append(_to_time(column) if types[name] == TIMESTAMP else column)
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
                row += batch.num_rows
                reach("input.extracting")
    except pa.ArrowInvalid as fault:
        text = next(iter(str(fault).splitlines()), "")
        found = _ROW.search(text)
        at = re.search(r"In CSV column #(\d+)", text)
        column = f"column `{names[int(at[1])]}`: " if at and int(at[1]) < len(names) else ""
        detail = column + _PREFIX.sub("", text).replace("Expected", "expected", 1)
        raise _fault(use, source, delimiter, int(found[1]) if found else None, detail) from fault
    except OSError as fault:
        raise loading_failed(use, f"`{source}`: {fault.strerror or fault}", retry_helps=is_passing(fault)) from fault
    unfinished.replace(target)


def _batches(
    source: Path, types: Mapping[str, Type], *, delimiter: str, has_header: bool
) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow as pa
    import pyarrow.csv as pc

    if source.stat().st_size == 0:
        return
    # Times are parsed by us, since Arrow wants a zone in all of them or in none.
    read = {name: pa.string() if kind == TIMESTAMP else arrow_type(kind) for name, kind in types.items()}
    reader = pc.open_csv(
        source,
        read_options=pc.ReadOptions(block_size=BLOCK, column_names=None if has_header else list(types)),
        parse_options=pc.ParseOptions(delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=len(types) > 1),
        convert_options=pc.ConvertOptions(
            column_types=read,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["true", "True", "TRUE"],
            false_values=["false", "False", "FALSE"],
        ),
    )
    with reader:
        yield from reader


def _read_header(source: Path, use: DatasetUse, *, delimiter: str) -> list[str]:
    try:
        with source.open(encoding="utf-8-sig", newline="") as file:
            names = next(csv.reader(file, delimiter=delimiter, strict=True), [])
    except UnicodeDecodeError as fault:
        raise loading_failed(use, f"`{source}`, line 1: byte {fault.start} is not UTF-8") from fault
    except csv.Error as fault:
        raise loading_failed(use, f"`{source}`, line 1: {fault}") from fault
    except OSError as fault:
        raise loading_failed(use, f"`{source}`: {fault.strerror or fault}", retry_helps=is_passing(fault)) from fault
    if not names:
        raise loading_failed(use, f"`{source}` is empty; its first line should name the columns")
    # All values are text until they are parsed, so only names can differ here.
    stored = [(name, _type_of(name, use).sql.lower()) for name in names]
    differences = find_differences(stored, use)
    if differences:
        raise loading_failed(use, f"the header of `{source}` is not as declared", differences=differences)
    return names


def _declared(name: str, use: DatasetUse) -> str | None:
    return next((each for each in use.columns if each.casefold() == name.casefold()), None)


def _type_of(name: str, use: DatasetUse) -> Type:
    declared = _declared(name, use)
    return use.columns[declared] if declared is not None else SYSTEM.get(name.casefold(), TEXT)


def _to_time(column: pyarrow.Array) -> pyarrow.Array:
    """Times with a zone as they say, times without one and plain dates in UTC."""
    import pyarrow as pa
    import pyarrow.compute as pc

    day = pc.match_substring_regex(column, r"^\d{4}-\d\d-\d\d$")
    full = pc.if_else(day, pc.binary_join_element_wise(column, "T00:00:00", ""), column)
    zoned = pc.match_substring_regex(full, r"(Z|[+-]\d\d(:?\d\d)?)$")
    return pc.if_else(zoned, full, pc.binary_join_element_wise(full, "Z", "")).cast(pa.timestamp("us", "UTC"))


def _fault(use: DatasetUse, source: Path, delimiter: str, record: int | None, detail: str) -> RunFailed:
    line = _line_of(source, delimiter, record) if record is not None else None
    place = f"`{source}`, line {line}" if line is not None else f"`{source}`"
    return loading_failed(use, f"{place}: {detail}")


def _line_of(source: Path, delimiter: str, record: int) -> int | None:
    """The line on which a record starts; records with line breaks in quotes make it differ from their number."""
    try:
        with source.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter)
            number, before = 0, 0
            for fields in reader:
                number += bool(fields)
                if number == record:
                    return before + 1
                before = reader.line_num
    except (csv.Error, OSError):
        return None
    return None


def write_csv(
    parquet: Sequence[Path], folder: Path, *, columns: Mapping[str, Type], delimiter: str, has_header: bool, to: str
) -> None:
    """Write Parquet files as CSV, one for one. Text is in quotes, numbers and dates are not, NULL is nothing at all."""
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    options = pc.WriteOptions(include_header=has_header, delimiter=delimiter, quoting_style="needed")
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in columns.items()])
    try:
        for path in parquet:
            with (
                pq.ParquetFile(path) as file,
                pc.CSVWriter(folder / f"{path.name.partition('.')[0]}.csv", schema, write_options=options) as writer,
            ):
                for batch in file.iter_batches():
                    writer.write_table(pa.Table.from_batches([batch]).select(list(columns)).cast(schema))
    except OSError as fault:
        raise writing_failed(to, fault.strerror or str(fault), retry_helps=is_passing(fault)) from fault
    except pa.ArrowException as fault:
        raise writing_failed(to, next(iter(str(fault).splitlines()), "")) from fault
