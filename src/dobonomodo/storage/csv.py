"""CSV files as a storage: read strictly and exactly into Parquet, and written so that reading gives the same rows.

A value without quotes that is empty is NULL; ``""`` is the empty text. Blank lines are no records, except in a file with one
column, where each is a NULL.
"""

from __future__ import annotations

import csv
from array import array
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from dobonomodo.failpoint import reach
from dobonomodo.formula import Type
from dobonomodo.formula.types import TEXT, DecimalType
from dobonomodo.model.datasource import StorageOptions
from dobonomodo.model.plain import Document
from dobonomodo.model.value import Expected, Flag
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.problems import RunFailed
from dobonomodo.problems.run import CELLS_AT_MOST, WrongCell
from dobonomodo.storage.diagnosis import WrongFile, diagnose_content, diagnose_separator
from dobonomodo.storage.faults import is_passing, loading_failed, removing_on_failure, writing_failed
from dobonomodo.storage.file_storage import FileStorage, FolderOptions
from dobonomodo.storage.findings import RECORD, Findings, check_batch
from dobonomodo.storage.folder import Format
from dobonomodo.storage.manifest import columns_of_file
from dobonomodo.storage.schema import arrow_type, find_differences, stored_type
from dobonomodo.storage.storage import Row
from dobonomodo.storage.values import parse_values

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.csv import InvalidRow

BLOCK = 4 << 20
LARGEST_BLOCK = 1 << 30
"""No record is larger."""

_TOO_LARGE = "straddling"
_LONGEST_LINE = 1 << 20


# --- reading


def extract_csv(
    source: Path,
    target: Path,
    use: DatasetUse,
    *,
    delimiter: str,
    has_header: bool,
    columns: Sequence[str] | None = None,
) -> Findings:
    """Turn a CSV file into a Parquet file with the same rows in the same order, unless a value of it is wrong.

    Raises for a file that is not CSV. ``columns`` are those that a run recorded for it, which a file without a header needs.
    """
    try:
        if (wrong := diagnose_content(source, delimiter=delimiter)) is not None:
            raise _misread(source, use, wrong)
        names = list(columns or use.columns)
        if has_header:
            names = _read_header(source, use, delimiter=delimiter)
        elif differences := _find_differences(names, use):
            raise loading_failed(use, f"`{source}` does not match the declaration", differences=differences)
        file = _CsvFile(source, use, {name: stored_type(name, use) for name in names}, delimiter, has_header)
        unfinished = target.with_name(target.name + ".part")
        with removing_on_failure(unfinished):
            extracted, block = None, BLOCK
            while extracted is None:
                extracted, block = file.extract(unfinished, block=block), block * 16
            findings = file.place(extracted)
            if findings:
                unfinished.unlink()
            else:
                unfinished.replace(target)
        return findings
    except OSError as fault:
        raise loading_failed(use, f"`{source}`: {fault.strerror or fault}", retry_helps=is_passing(fault)) from fault


@dataclass(frozen=True, slots=True)
class _Extracted:
    """What is wrong in a file. Values are placed by their row among those of the right width, records by their number."""

    cells: tuple[tuple[int, WrongCell], ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    records: Sequence[int] = ()
    """The numbers of all records of another width; blank lines do not count where they are no records."""
    widths: tuple[int, ...] = ()
    """How many values the first of them have."""


@dataclass(frozen=True, slots=True, eq=False)
class _CsvFile:
    source: Path
    use: DatasetUse
    types: Mapping[str, Type]
    delimiter: str
    has_header: bool

    def extract(self, target: Path, *, block: int) -> _Extracted | None:
        """Write the rows up to the first wrong one, and find all wrong ones; None if a record is larger than a block."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema([(name, arrow_type(kind)) for name, kind in self.types.items()])
        cells: list[tuple[int, WrongCell]] = []
        counts: Counter[str] = Counter()
        others = _OtherWidths()
        try:
            with pq.ParquetWriter(target, schema) as writer:
                for first, batch in _read_texts(self.source, len(schema), self.delimiter, others, block=block):
                    skipped = 1 if self.has_header and first == 1 else 0
                    first, batch = first + skipped, batch.slice(skipped)
                    checked = check_batch(batch.columns, self.types, use=self.use, place=str(self.source))
                    cells += [(first + at, cell) for at, cell in checked.first][: CELLS_AT_MOST - len(cells)]
                    counts.update(checked.counts)
                    if not counts:
                        writer.write_batch(pa.RecordBatch.from_arrays(checked.columns, schema=schema))
                    reach("input.extracting")
        except pa.ArrowInvalid as fault:
            if _is_too_large(fault, self.source, block=block):
                return None
            raise loading_failed(self.use, f"`{self.source}`: {next(iter(str(fault).splitlines()), '')}") from fault
        return _Extracted(tuple(cells), counts, others.records, tuple(others.widths))

    def place(self, found: _Extracted) -> Findings:
        """What is wrong, with its lines; a separator that explains it all raises."""
        if found.records and not self.has_header and found.records[0] == 1:
            self._suspect_separator()
        width = len(self.types)
        numbers = _number_rows([row for row, _ in found.cells], found.records)
        cells = [(number, cell) for number, (_, cell) in zip(numbers, found.cells, strict=True)]
        cells += [
            (number, WrongCell(place=str(self.source), rule=f"{width} values expected, {each} found"))
            for number, each in zip(found.records, found.widths, strict=False)
        ]
        cells = sorted(cells, key=lambda each: each[0])[:CELLS_AT_MOST]
        lines = self._find_lines({number for number, _ in cells})
        counts = {name: found.counts[name] for name in self.types if name in found.counts}
        if found.records:
            counts[RECORD] = len(found.records)
        return Findings(tuple(replace(cell, line=lines.get(number)) for number, cell in cells), counts)

    def _suspect_separator(self) -> None:
        names = list(self.types)
        if wrong := diagnose_separator(_first_line(self.source), names, delimiter=self.delimiter, named=False):
            raise _misread(self.source, self.use, wrong)

    def _find_lines(self, records: set[int]) -> dict[int, int]:
        """The lines on which records start; records with line breaks in quotes make them differ from their numbers."""
        lines: dict[int, int] = {}
        limit = csv.field_size_limit(LARGEST_BLOCK)
        try:
            with self.source.open(encoding="utf-8-sig", newline="") as file:
                reader = csv.reader(file, delimiter=self.delimiter)
                number, before = 0, 0
                while len(lines) < len(records) and (fields := next(reader, None)) is not None:
                    number += bool(fields) or len(self.types) == 1
                    if number in records:
                        lines.setdefault(number, before + 1)
                    before = reader.line_num
        finally:
            csv.field_size_limit(limit)
        return lines


def _read_texts(
    source: Path, width: int, delimiter: str, others: _OtherWidths, *, block: int
) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
    """The records of the right width as text, in batches, each with the row of its first record, counted from 1."""
    import pyarrow as pa
    import pyarrow.csv as pc

    names = [str(number) for number in range(width)]
    with source.open("rb") as file:
        if file.read(len(BOM_UTF8)) != BOM_UTF8:
            file.seek(0)
        # Arrow refuses a file without a byte.
        if source.stat().st_size == file.tell():
            return
        reader = pc.open_csv(
            file,
            # Records are numbered only where one thread reads them.
            read_options=pc.ReadOptions(block_size=block, column_names=names, use_threads=False),
            parse_options=pc.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=True,
                ignore_empty_lines=width > 1,
                invalid_row_handler=others.take,
            ),
            convert_options=pc.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                check_utf8=False,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        with reader:
            first = 1
            for batch in reader:
                if batch.num_rows:
                    yield first, batch
                    first += batch.num_rows


def _is_too_large(fault: Exception, source: Path, *, block: int) -> bool:
    """Whether a record is larger than a block, and a larger block may hold it."""
    return _TOO_LARGE in str(fault) and block < min(LARGEST_BLOCK, source.stat().st_size)


class _OtherWidths:
    """Takes the records that have another number of values than there are columns."""

    def __init__(self) -> None:
        self.records, self.widths = array("q"), array("q")

    def take(self, row: InvalidRow) -> str:
        """What Arrow calls for each of them."""
        self.records.append(row.number)
        if len(self.widths) < CELLS_AT_MOST:
            self.widths.append(row.actual_columns)
        return "skip"


def _number_rows(rows: Sequence[int], skipped: Sequence[int]) -> list[int]:
    """The numbers of some records, in order, by their rows among the records that were not skipped."""
    numbers, at = [], 0
    for row in rows:
        while at < len(skipped) and skipped[at] <= row + at:
            at += 1
        numbers.append(row + at)
    return numbers


def sample_csv(source: Path, columns: Mapping[str, Type], rows: int, *, delimiter: str, has_header: bool) -> list[Row]:
    """The first rows of a file that a run wrote, in the types that it recorded; what is no value of its type stays text."""
    import pyarrow as pa

    block = BLOCK
    while True:
        try:
            return list(islice(_read_rows(source, columns, delimiter, has_header=has_header, block=block), rows))
        except pa.ArrowInvalid as fault:
            if not _is_too_large(fault, source, block=block):
                raise
            block *= 16


def _read_rows(
    source: Path, columns: Mapping[str, Type], delimiter: str, *, has_header: bool, block: int
) -> Iterator[Row]:
    names = _read_names(source, delimiter=delimiter) if has_header else list(columns)
    for first, batch in _read_texts(source, len(names), delimiter, _OtherWidths(), block=block):
        texts = batch.slice(1 if has_header and first == 1 else 0).columns
        parsed = [parse_values(text, columns.get(name, TEXT)) for name, text in zip(names, texts, strict=True)]
        values = [text if each.wrong else each.values for text, each in zip(texts, parsed, strict=True)]
        for row in zip(*values, strict=True):
            yield {name: value.as_py() for name, value in zip(names, row, strict=True)}


def _read_names(source: Path, *, delimiter: str) -> list[str]:
    with source.open(encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file, delimiter=delimiter, strict=True), [])


def _read_header(source: Path, use: DatasetUse, *, delimiter: str) -> list[str]:
    names = _read_names(source, delimiter=delimiter)
    if not names:
        raise loading_failed(use, f"`{source}` is empty; its first line should have the column names")
    if differences := _find_differences(names, use):
        wrong = diagnose_separator(_first_line(source), list(use.columns), delimiter=delimiter, named=True)
        if wrong is not None:
            raise _misread(source, use, wrong)
        raise loading_failed(use, f"the header of `{source}` does not match the declaration", differences=differences)
    return names


def _find_differences(names: Sequence[str], use: DatasetUse) -> tuple[str, ...]:
    """All values are text until they are parsed, so only names can differ."""
    return find_differences([(name, stored_type(name, use).sql.lower()) for name in names], use)


def _first_line(source: Path) -> str:
    with source.open(encoding="utf-8-sig") as file:
        return file.readline(_LONGEST_LINE).rstrip("\n")


def _misread(source: Path, use: DatasetUse, wrong: WrongFile) -> RunFailed:
    return loading_failed(use, wrong.describe(source), diagnosis=wrong.kind, remedy=wrong.remedy)


# --- writing


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """CSV files as a destination."""

    delimiter: str = ","
    has_header: bool = True
    kind: ClassVar[str] = "csv"
    in_place: ClassVar[bool] = False

    @property
    def options(self) -> Mapping[str, object]:
        """What a reader has to know."""
        return {"delimiter": self.delimiter, "has_header": self.has_header}

    def convert(self, files: Sequence[Path], folder: Path, *, columns: Mapping[str, Type], to: str) -> None:
        """Make CSV files of Parquet files, one for one."""
        write_csv(files, folder, columns=columns, delimiter=self.delimiter, has_header=self.has_header, to=to)


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


class CsvOptions(FolderOptions):
    """A folder of CSV files."""

    delimiter: Annotated[
        str,
        Field(min_length=1, max_length=1, pattern=r"""^[\t -!#-~]$"""),
        Expected("one ASCII character as text, except a quote"),
    ] = Field(default=",", description="The character between two values.")
    has_header: Flag = Field(default=True, description="Whether the first line of a file has the column names.")


@dataclass(frozen=True, slots=True)
class CsvStorage(FileStorage):
    """A folder of CSV files. They pass through Parquet files in the folder of the run."""

    kind: ClassVar[str] = "csv"
    options: ClassVar[type[StorageOptions]] = CsvOptions

    @classmethod
    def load_format(cls, document: Document) -> Format:
        """What is said, and the defaults."""
        return CsvFormat(document.get("delimiter", ","), document.get("has_header", True))

    def extract_file(self, use: DatasetUse, source: Path, target: Path) -> Findings:
        """Turn a file into Parquet, unless that was done."""
        if target.exists():
            return Findings()
        target.parent.mkdir(parents=True, exist_ok=True)
        form = self._form
        columns = columns_of_file(source)
        return extract_csv(source, target, use, delimiter=form.delimiter, has_header=form.has_header, columns=columns)

    def sample_file(self, path: Path, columns: Mapping[str, Type], rows: int) -> Iterable[Row]:
        """The first rows of a file that a run wrote."""
        known = {name.casefold(): kind for name, kind in columns.items()}
        own = {name: known.get(name.casefold(), TEXT) for name in columns_of_file(path) or columns}
        form = self._form
        return sample_csv(path, own, rows, delimiter=form.delimiter, has_header=form.has_header)

    @property
    def _form(self) -> CsvFormat:
        if not isinstance(self.format, CsvFormat):
            raise AssertionError("a storage of CSV files")
        return self.format
