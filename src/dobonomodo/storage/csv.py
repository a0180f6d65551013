"""CSV files: read strictly and exactly into Parquet, and written so that reading gives the same rows.

A value without quotes that is empty is NULL; ``""`` is the empty text. Blank lines are no records, except in a file with one
column, where each is a NULL.
"""

from __future__ import annotations

import csv
import io
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from dobonomodo.formula import Type
from dobonomodo.formula.types import TEXT, DecimalType
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.problems import RunFailed
from dobonomodo.problems.failpoint import reach
from dobonomodo.storage.faults import is_passing, loading_failed, removing_on_failure, writing_failed
from dobonomodo.storage.schema import SYSTEM, arrow_type, find_differences
from dobonomodo.storage.values import explain_wrong, parse_values

if TYPE_CHECKING:
    import pyarrow

BLOCK = 4 << 20
LARGEST_BLOCK = 1 << 30
"""No record is larger."""

_FIELDS = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_TOO_LARGE = "straddling"
_SHOWN = 60


class _WrongRecord(Exception):
    """A record that cannot be taken, by its number in the file; blank lines do not count where they are no records."""

    def __init__(self, number: int | None, detail: str) -> None:
        super().__init__(detail)
        self.number, self.detail = number, detail


# --- reading


def extract_csv(
    source: Path,
    target: Path,
    use: DatasetUse,
    *,
    delimiter: str,
    has_header: bool,
    columns: Sequence[str] | None = None,
) -> None:
    """Turn a CSV file into a Parquet file with the same rows in the same order; raises on the first fault, with its line.

    ``columns`` are those of a file without a header, where they are not the declared ones.
    """
    names = _read_header(source, use, delimiter=delimiter) if has_header else list(columns or use.columns)
    types = {name: _type_of(name, use) for name in names}
    required = {name for name in names if _declared(name, use) and _declared(name, use) not in use.nullable}
    unfinished = target.with_name(target.name + ".part")
    block = BLOCK
    try:
        with removing_on_failure(unfinished):
            while not _extract(source, unfinished, types, required, delimiter, has_header=has_header, block=block):
                block *= 16
        unfinished.replace(target)
    except _WrongRecord as fault:
        raise _explain(fault, source, use, delimiter, width=len(names)) from fault
    except OSError as fault:
        raise loading_failed(use, f"`{source}`: {fault.strerror or fault}", retry_helps=is_passing(fault)) from fault


def _extract(
    source: Path,
    target: Path,
    types: Mapping[str, Type],
    required: set[str],
    delimiter: str,
    *,
    has_header: bool,
    block: int,
) -> bool:
    """Whether all records fitted into blocks of a size."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, arrow_type(kind)) for name, kind in types.items()])
    try:
        with pq.ParquetWriter(target, schema) as writer:
            for first, batch in _records(source, len(types), delimiter=delimiter, skip=has_header, block=block):
                columns = []
                for (name, kind), column in zip(types.items(), batch.columns, strict=True):
                    if name in required and column.null_count:
                        at = column.is_null().to_pylist().index(True)
                        raise _WrongRecord(first + at, f"column `{name}` has no value, and is not nullable")
                    columns.append(_parse(column, kind, name, first))
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
                reach("input.extracting")
    except pa.ArrowInvalid as fault:
        text = next(iter(str(fault).splitlines()), "")
        if found := _FIELDS.search(text):
            raise _WrongRecord(int(found[1]), f"{found[2]} values expected, {found[3]} found") from fault
        if _TOO_LARGE in text and block < min(LARGEST_BLOCK, source.stat().st_size):
            return False
        raise _WrongRecord(None, text) from fault
    return True


def _records(
    source: Path, width: int, *, delimiter: str, skip: bool, block: int
) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
    """The records of a file as bytes, in batches, each with the number of its first record."""
    import pyarrow as pa
    import pyarrow.csv as pc

    names = [str(number) for number in range(width)]
    # An open quote takes in all that follows, and nobody would miss it: so a record of ours follows last.
    mark = "1" if delimiter != "1" else "0"
    with source.open("rb") as file:
        if file.read(len(BOM_UTF8)) != BOM_UTF8:
            file.seek(0)
        reader = pc.open_csv(
            _Marked(file, (mark + delimiter * (width - 1) + "\n").encode()),
            # Records are numbered only where one thread reads them.
            read_options=pc.ReadOptions(block_size=block, column_names=names, use_threads=False),
            parse_options=pc.ParseOptions(delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=width > 1),
            convert_options=pc.ConvertOptions(
                column_types=dict.fromkeys(names, pa.binary()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        with reader:
            first, held = 1, None
            for batch in reader:
                if not batch.num_rows:
                    continue
                if held is not None:
                    yield from _without_header(first, held, skip=skip)
                    first += held.num_rows
                held = batch
    last = held.num_rows - 1 if held is not None else -1
    if held is None or [column[last].as_py() for column in held.columns] != [mark.encode(), *[None] * (width - 1)]:
        raise _WrongRecord(first + last, "a quote is not closed")
    yield from _without_header(first, held.slice(0, last), skip=skip)


def _without_header(first: int, batch: pyarrow.RecordBatch, *, skip: bool) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
    if skip and first == 1:
        first, batch = 2, batch.slice(1)
    if batch.num_rows:
        yield first, batch


class _Marked(io.RawIOBase):
    """A file with some bytes behind its last line."""

    def __init__(self, file: BinaryIO, more: bytes) -> None:
        self._file, self._more, self._last = file, more, b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        content = self._file.read(size)
        if content:
            self._last = content[-1:]
            return content
        more, self._more = self._more, b""
        return more if self._last in (b"", b"\n", b"\r") or not more else b"\n" + more


def _parse(column: pyarrow.Array, kind: Type, name: str, first: int) -> pyarrow.Array:
    """Values of a type, each exactly what its text says; ``first`` is the number of the first record."""
    import pyarrow as pa

    try:
        text = column.cast(pa.string())
    except pa.ArrowInvalid as fault:
        at = _find_wrong(column, lambda part: part.cast(pa.string()))
        raise _WrongRecord(first + at, f"column `{name}`: its bytes are not UTF-8") from fault
    parsed = parse_values(text, kind)
    if parsed.wrong:
        at = parsed.wrong[0]
        shown = text[at].as_py()
        cut = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
        raise _WrongRecord(first + at, f"column `{name}`: `{cut}` {explain_wrong(shown, kind)}")
    return parsed.values


def _find_wrong(column: pyarrow.Array, parse: Callable[[pyarrow.Array], object]) -> int:
    """The position of the first value that cannot be parsed, where there is one."""
    import pyarrow as pa

    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            parse(column.slice(low, middle - low))
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low


def _read_header(source: Path, use: DatasetUse, *, delimiter: str) -> list[str]:
    try:
        with source.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            names = next(csv.reader(file, delimiter=delimiter, strict=True), [])
    except csv.Error as fault:
        raise loading_failed(use, f"`{source}`, line 1: {fault}") from fault
    except OSError as fault:
        raise loading_failed(use, f"`{source}`: {fault.strerror or fault}", retry_helps=is_passing(fault)) from fault
    if any("\udc80" <= char <= "\udcff" for name in names for char in name):
        raise loading_failed(use, f"`{source}`, line 1: its bytes are not UTF-8")
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


def _explain(fault: _WrongRecord, source: Path, use: DatasetUse, delimiter: str, *, width: int) -> RunFailed:
    line = _line_of(source, delimiter, fault.number, width=width) if fault.number is not None else None
    place = f"`{source}`, line {line}" if line is not None else f"`{source}`"
    return loading_failed(use, f"{place}: {fault.detail}")


def _line_of(source: Path, delimiter: str, record: int, *, width: int) -> int | None:
    """The line on which a record starts; records with line breaks in quotes make it differ from their number."""
    limit = csv.field_size_limit(LARGEST_BLOCK)
    try:
        with source.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter)
            number, before = 0, 0
            for fields in reader:
                number += bool(fields) or width == 1
                if number == record:
                    return before + 1
                before = reader.line_num
    except (csv.Error, OSError):
        return None
    finally:
        csv.field_size_limit(limit)
    return None


# --- writing


def write_csv(
    parquet: Sequence[Path], folder: Path, *, columns: Mapping[str, Type], delimiter: str, has_header: bool, to: str
) -> None:
    """Write Parquet files as CSV, one for one. Text is in quotes, numbers and dates are not, NULL is nothing at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    header = delimiter.join('"' + name.replace('"', '""') + '"' for name in columns) + "\n"
    try:
        for path in parquet:
            with pq.ParquetFile(path) as file, (folder / f"{path.stem}.csv").open("wb") as target:
                if has_header:
                    target.write(header.encode())
                for batch in file.iter_batches():
                    target.write(_render(batch, columns, delimiter))
                    reach("output.converting")
    except OSError as fault:
        raise writing_failed(to, fault.strerror or str(fault), retry_helps=is_passing(fault)) from fault
    except pa.ArrowException as fault:
        raise writing_failed(to, next(iter(str(fault).splitlines()), "")) from fault


def _render(batch: pyarrow.RecordBatch, columns: Mapping[str, Type], delimiter: str) -> bytes:
    import pyarrow as pa
    import pyarrow.compute as pc

    fields = [_render_column(batch.column(name), kind) for name, kind in columns.items()]
    lines: list[str] = pc.binary_join_element_wise(*fields, pa.scalar(delimiter, pa.large_string())).to_pylist()
    return "".join(f"{line}\n" for line in lines).encode()


def _render_column(column: pyarrow.Array, kind: Type) -> pyarrow.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    text = column.cast(arrow_type(kind)).cast(pa.large_string())
    if kind == TEXT:
        quote, nothing = pa.scalar('"', pa.large_string()), pa.scalar("", pa.large_string())
        text = pc.binary_join_element_wise(quote, pc.replace_substring(text, '"', '""'), quote, nothing)
    elif isinstance(kind, DecimalType):
        text = _render_plainly(text)
    return text.fill_null("")


def _render_plainly(text: pyarrow.Array) -> pyarrow.Array:
    """Decimals without an exponent; Arrow writes one for a zero that has seven digits behind the point."""
    import pyarrow as pa

    encoded = text.dictionary_encode()
    plain = [f"{Decimal(value):f}" if "E" in value else value for value in encoded.dictionary.to_pylist()]
    return pa.array(plain, pa.large_string()).take(encoded.indices)
