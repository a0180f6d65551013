"""CSV files as a storage: parsed strictly and exactly into Parquet, and written so that they read back as the same rows.

An empty value without quotes is NULL; ``""`` is the empty text. Blank lines are no records, except in a file with one
column, where each is a NULL.
"""

from __future__ import annotations

import codecs
import csv
import secrets
from array import array
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar

from dobonomodo.failpoint import reach
from dobonomodo.formula import Type
from dobonomodo.formula.types import TEXT, DecimalType
from dobonomodo.model.datasource import StorageOptions
from dobonomodo.model.document import Places
from dobonomodo.model.plain import Document
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.problems import Problem, RunFailed
from dobonomodo.problems.run import CELLS_AT_MOST, WrongCell
from dobonomodo.storage.csv_dialect import CsvLocation, Dialect, PlainFile, make_plain
from dobonomodo.storage.diagnosis import WrongFile, diagnose_kind, diagnose_separator, diagnose_text
from dobonomodo.storage.faults import is_passing, loading_failed, removing_on_failure, writing_failed
from dobonomodo.storage.file_storage import FilesOptions, FileStorage
from dobonomodo.storage.files import PinnedFile
from dobonomodo.storage.findings import RECORD, Findings, check_batch
from dobonomodo.storage.folder import Format
from dobonomodo.storage.manifest import columns_of_file
from dobonomodo.storage.notation import suggest_notation
from dobonomodo.storage.schema import arrow_type, find_differences, stored_type
from dobonomodo.storage.storage import Row, Scratch
from dobonomodo.storage.values import parse_values

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.csv import InvalidRow

BLOCK = 4 << 20
LARGEST_BLOCK = 1 << 30
"""No record is larger."""

_TOO_LARGE = "straddling"
_LONGEST_LINE = 1 << 20
_NULL_IS_NOTHING = 'write NULL as nothing between two separators: `""` is a text'


# --- reading


def extract_csv(
    source: Path, target: Path, use: DatasetUse, dialect: Dialect, *, columns: Sequence[str] | None = None
) -> Findings:
    """Turn a CSV file into a Parquet file with the same rows in the same order, unless a value of it is wrong.

    Raises for a file that is not CSV of the dialect. ``columns`` are those that a run recorded for it, which a file without
    a header needs.
    """
    copy = target.with_name(target.name + ".text")
    stored = use.as_stored()
    try:
        plain = _open_plain(source, copy, stored, dialect)
        names = list(columns or stored.columns)
        if dialect.has_header:
            names = _read_header(plain, source, stored, delimiter=dialect.delimiter)
        elif differences := _find_differences(names, stored):
            raise loading_failed(use, f"`{source}` does not match the declaration", differences=differences)
        file = _CsvFile(source, plain, stored, {name: stored_type(name, stored) for name in names}, dialect)
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
    finally:
        copy.unlink(missing_ok=True)


def _open_plain(source: Path, copy: Path, use: DatasetUse, dialect: Dialect) -> PlainFile:
    """The file as plain text; raises for one that is something else."""
    wrong = diagnose_kind(source, utf16=dialect.encoding == "utf-16")
    plain = wrong or make_plain(source, copy, dialect)
    if isinstance(plain, WrongFile):
        raise _misread(source, use, plain)
    wrong = diagnose_text(plain.path, delimiter=dialect.delimiter)
    if wrong is not None:
        line = plain.line_of(wrong.line) if wrong.line is not None else None
        raise _misread(source, use, replace(wrong, line=line))
    return plain


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
    plain: PlainFile
    use: DatasetUse
    """With the names that columns have in the file."""
    types: Mapping[str, Type]
    dialect: Dialect

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
                for first, batch in _read_texts(self.plain.path, len(schema), self.dialect, others, block=block):
                    skipped = 1 if self.dialect.has_header and first == 1 else 0
                    first, batch = first + skipped, batch.slice(skipped)
                    checked = check_batch(
                        batch.columns,
                        self.types,
                        use=self.use,
                        place=str(self.source),
                        notation=self.dialect.notation,
                    )
                    cells += [(first + at, cell) for at, cell in checked.first][: CELLS_AT_MOST - len(cells)]
                    counts.update(checked.counts)
                    if not counts:
                        writer.write_batch(pa.RecordBatch.from_arrays(checked.columns, schema=schema))
                    reach("input.extracting")
        except pa.ArrowInvalid as fault:
            if _is_too_large(fault, self.plain.path, block=block):
                return None
            raise loading_failed(self.use, f"`{self.source}`: {next(iter(str(fault).splitlines()), '')}") from fault
        return _Extracted(tuple(cells), counts, others.records, tuple(others.widths))

    def place(self, found: _Extracted) -> Findings:
        """What is wrong, with its lines; a separator that explains it all raises."""
        if found.records and not self.dialect.has_header and found.records[0] == 1:
            self._suspect_separator()
        width = len(self.types)
        noun = "value" if width == 1 else "values"
        numbers = _number_rows([row for row, _ in found.cells], found.records)
        cells = [(number, cell) for number, (_, cell) in zip(numbers, found.cells, strict=True)]
        cells += [
            (number, WrongCell(place=str(self.source), rule=f"{width} {noun} expected, {each} found"))
            for number, each in zip(found.records, found.widths, strict=False)
        ]
        cells = sorted(cells, key=lambda each: each[0])[:CELLS_AT_MOST]
        lines = self._find_lines({number for number, _ in cells})
        counts = {name: found.counts[name] for name in self.types if name in found.counts}
        if found.records:
            counts[RECORD] = len(found.records)
        placed = tuple(replace(cell, line=lines.get(number)) for number, cell in cells)
        return Findings(placed, counts, self._suggest(placed))

    def _suggest(self, cells: Sequence[WrongCell]) -> tuple[str, ...]:
        """What would fit: a setting, if all invalid values of a column follow another notation, or NULL instead of texts."""
        values: dict[str, list[str]] = {}
        for cell in cells:
            if cell.column is not None and cell.value is not None:
                values.setdefault(cell.column, []).append(cell.value)
        notation = self.dialect.notation
        found = (
            suggest_notation([text for text in texts if text.strip()], self.types[name], notation)
            for name, texts in values.items()
        )
        empty = _NULL_IS_NOTHING if any(not text.strip() for texts in values.values() for text in texts) else None
        return tuple(dict.fromkeys(each for each in (*found, empty) if each is not None))

    def _suspect_separator(self) -> None:
        names = list(self.types)
        line = _first_line(self.plain.path)
        if wrong := diagnose_separator(line, names, delimiter=self.dialect.delimiter, named=False):
            raise _misread(self.source, self.use, wrong)

    def _find_lines(self, records: set[int]) -> dict[int, int]:
        """The lines on which records start; records with line breaks in quotes make them differ from their numbers."""
        lines: dict[int, int] = {}
        limit = csv.field_size_limit(LARGEST_BLOCK)
        try:
            with self.plain.path.open(encoding="utf-8-sig", newline="") as file:
                reader = csv.reader(file, delimiter=self.dialect.delimiter)
                number, before = 0, 0
                while len(lines) < len(records) and (fields := next(reader, None)) is not None:
                    number += bool(fields) or len(self.types) == 1
                    if number in records:
                        lines.setdefault(number, self.plain.line_of(before + 1))
                    before = reader.line_num
        finally:
            csv.field_size_limit(limit)
        return lines


def _read_texts(
    source: Path, width: int, dialect: Dialect, others: _OtherWidths, *, block: int
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
                delimiter=dialect.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=width > 1,
                invalid_row_handler=others.take,
            ),
            convert_options=pc.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                check_utf8=False,
                null_values=["", *dialect.null_values],
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


def read_texts(source: Path, width: int, dialect: Dialect) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
    """The records of a plain file that have a width, as text, each batch with the number of its first one."""
    return _read_texts(
        source, width, dialect, _OtherWidths(), block=max(BLOCK, min(LARGEST_BLOCK, source.stat().st_size))
    )


def _is_too_large(fault: Exception, source: Path, *, block: int) -> bool:
    """Whether a record is larger than a block, and a larger block may hold it."""
    return _TOO_LARGE in str(fault) and block < min(LARGEST_BLOCK, source.stat().st_size)


class _OtherWidths:
    """Takes the records that have another number of values than there are columns."""

    def __init__(self) -> None:
        self.records, self.widths = array("q"), array("q")

    def take(self, row: InvalidRow) -> str:
        """The callback of Arrow for each of them."""
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


def sample_csv(source: Path, columns: Mapping[str, Type], rows: int, dialect: Dialect) -> list[Row]:
    """The first rows of a file that a run wrote, in their recorded types; a value that cannot be parsed stays text."""
    import pyarrow as pa

    with TemporaryDirectory() as folder:
        plain = make_plain(source, Path(folder) / "text", dialect)
        path = source if isinstance(plain, WrongFile) else plain.path
        block = BLOCK
        while True:
            try:
                return list(islice(_read_rows(path, columns, dialect, block=block), rows))
            except pa.ArrowInvalid as fault:
                if not _is_too_large(fault, path, block=block):
                    raise
                block *= 16


def _read_rows(source: Path, columns: Mapping[str, Type], dialect: Dialect, *, block: int) -> Iterator[Row]:
    has_header = dialect.has_header
    names = _read_names(source, delimiter=dialect.delimiter) if has_header else list(columns)
    for first, batch in _read_texts(source, len(names), dialect, _OtherWidths(), block=block):
        texts = batch.slice(1 if has_header and first == 1 else 0).columns
        parsed = [
            parse_values(text, columns.get(name, TEXT), dialect.notation)
            for name, text in zip(names, texts, strict=True)
        ]
        values = [text if each.wrong else each.values for text, each in zip(texts, parsed, strict=True)]
        for row in zip(*values, strict=True):
            yield {name: value.as_py() for name, value in zip(names, row, strict=True)}


def _read_names(source: Path, *, delimiter: str) -> list[str]:
    with source.open(encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file, delimiter=delimiter, strict=True), [])


def _read_header(plain: PlainFile, source: Path, use: DatasetUse, *, delimiter: str) -> list[str]:
    names = _read_names(plain.path, delimiter=delimiter)
    if not names:
        raise _nameless(plain, source, use)
    if differences := _find_differences(names, use):
        wrong = diagnose_separator(_first_line(plain.path), list(use.columns), delimiter=delimiter, named=True)
        if wrong is not None:
            raise _misread(source, use, wrong)
        raise loading_failed(use, f"the header of `{source}` does not match the declaration", differences=differences)
    return names


def _nameless(plain: PlainFile, source: Path, use: DatasetUse) -> RunFailed:
    """The problem of a file that begins with a blank line, or has no others."""
    with plain.path.open(encoding="utf-8-sig") as file:
        line = next((number for number, text in enumerate(file, start=1) if text.strip()), None)
    if line is None:
        return loading_failed(use, f"`{source}` is empty; its first line should have the column names")
    detail = f"`{source}` begins with a blank line; its first line should have the column names"
    return loading_failed(use, detail, remedy=f"set `skip_lines: {plain.line_of(line) - 1}`, or delete blank lines")


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

    dialect: Dialect
    kind: ClassVar[str] = "csv"
    in_place: ClassVar[bool] = False

    @property
    def options(self) -> Mapping[str, object]:
        """What a reader has to know."""
        return self.dialect.document()

    def convert(self, files: Sequence[Path], folder: Path, *, columns: Mapping[str, Type], to: str) -> None:
        """Make CSV files of Parquet files, one for one."""
        for path in files:
            write_csv(path, folder / f"{path.stem}.csv", self.dialect, columns=columns, to=to)


def write_csv(parquet: Path, target: Path, dialect: Dialect, *, columns: Mapping[str, Type], to: str) -> None:
    """Write a Parquet file as CSV. Text is in quotes, numbers and dates are not, NULL is nothing at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    header = dialect.delimiter.join('"' + name.replace('"', '""') + '"' for name in columns) + "\n"
    encode = codecs.getincrementalencoder(dialect.encoding)("strict").encode
    try:
        with pq.ParquetFile(parquet) as file, target.open("wb") as written:
            written.write(encode("\n" * dialect.skip_lines + (header if dialect.has_header else "")))
            for batch in file.iter_batches():
                written.write(encode(_render(batch, columns, dialect)))
                reach("output.converting")
    except OSError as fault:
        raise writing_failed(to, fault.strerror or str(fault), retry_helps=is_passing(fault)) from fault
    except pa.ArrowException as fault:
        raise writing_failed(to, next(iter(str(fault).splitlines()), "")) from fault
    except UnicodeEncodeError as fault:
        char = fault.object[fault.start]
        detail = (
            f"the character `{char}` (U+{ord(char):04X}) does not exist in {dialect.encoding}; set `encoding: utf-8`"
        )
        raise writing_failed(to, detail) from fault


def _render(batch: pyarrow.RecordBatch, columns: Mapping[str, Type], dialect: Dialect) -> str:
    import pyarrow as pa
    import pyarrow.compute as pc

    fields = [_render_column(batch.column(name), kind, dialect) for name, kind in columns.items()]
    delimiter = pa.scalar(dialect.delimiter, pa.large_string())
    lines: list[str] = pc.binary_join_element_wise(*fields, delimiter).to_pylist()
    return "".join(f"{line}\n" for line in lines)


def _render_column(column: pyarrow.Array, kind: Type, dialect: Dialect) -> pyarrow.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    text = column.cast(arrow_type(kind)).cast(pa.large_string())
    if isinstance(kind, DecimalType):
        text = _render_plainly(text)
    text = dialect.notation.write(text, kind)
    if kind == TEXT or _needs_quotes(kind, dialect):
        quote, nothing = pa.scalar('"', pa.large_string()), pa.scalar("", pa.large_string())
        text = pc.binary_join_element_wise(quote, pc.replace_substring(text, '"', '""'), quote, nothing)
    return text.fill_null("")


def _needs_quotes(kind: Type, dialect: Dialect) -> bool:
    """Whether values of a type could be taken for something else: for two values, for NULL or for a comment."""
    return (
        dialect.delimiter.isalnum()
        or dialect.delimiter in dialect.notation.characters(kind)
        or any(text[:1].isalnum() or text[:1] in "+-" for text in dialect.null_values)
    )


def _render_plainly(text: pyarrow.Array) -> pyarrow.Array:
    """Decimals without an exponent; Arrow writes one for a zero that has seven digits behind the point."""
    import pyarrow as pa

    encoded = text.dictionary_encode()
    plain = [f"{Decimal(value):f}" if "E" in value else value for value in encoded.dictionary.to_pylist()]
    return pa.array(plain, pa.large_string()).take(encoded.indices)


class CsvOptions(CsvLocation, FilesOptions):
    """A folder of CSV files."""

    of_location: ClassVar[type[StorageOptions] | None] = CsvLocation

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """The rules of both."""
        yield from FilesOptions.check(places)
        yield from CsvLocation.check(places)


def _extract_in_task(storage: CsvStorage, use: DatasetUse, item: tuple[PinnedFile, Path, Path]) -> Findings | None:
    """Extract a file to Parquet; returns its errors. None if the executor does not see the file that the driver saw."""
    file, source, target = item
    seen = source.stat() if source.exists() else None
    if seen is None or seen.st_size != file.size or (file.etag is None and seen.st_mtime_ns != file.modified):
        return None
    # Another attempt at the same task may be at work.
    own = target.with_name(f"{target.name}.{secrets.token_hex(8)}")
    try:
        found = storage.extract_named(use, file, source, own)
        if not found:
            own.replace(target)
        return found
    finally:
        own.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class CsvStorage(FileStorage):
    """A folder of CSV files. They pass through Parquet files in the folder of the run."""

    kind: ClassVar[str] = "csv"
    options: ClassVar[type[StorageOptions]] = CsvOptions

    @classmethod
    def load_format(cls, document: Document) -> Format:
        """The options, with defaults."""
        return CsvFormat(Dialect.load(document))

    def extract_file(self, use: DatasetUse, source: Path, target: Path) -> Findings:
        """Turn a file into Parquet, unless that was done."""
        if target.exists():
            return Findings()
        target.parent.mkdir(parents=True, exist_ok=True)
        return extract_csv(source, target, use, self._dialect, columns=columns_of_file(source))

    def extract_apart(
        self, use: DatasetUse, files: Sequence[tuple[PinnedFile, Path, Path]], scratch: Scratch
    ) -> Sequence[Findings | None] | None:
        """Large files, one task for each."""
        executors = scratch.executors
        if executors is None or sum(file.size for file, _, _ in files) <= executors.limits.csv_bytes:
            return None
        missing = [each for each in files if not each[-1].exists()]
        Path(scratch.folder).mkdir(parents=True, exist_ok=True)
        done = executors.do(partial(_extract_in_task, self, use), missing)
        if done is None:
            return None
        found = {target: findings for (_, _, target), findings in zip(missing, done, strict=True)}
        # Files that an executor wrote out of our reach are extracted here.
        return [
            None if findings is None or not (findings or target.exists()) else findings
            for target, findings in ((target, found.get(target)) for _, _, target in files)
        ]

    def sample_file(self, path: Path, columns: Mapping[str, Type], rows: int) -> Iterable[Row]:
        """The first rows of a file that a run wrote."""
        known = {name.casefold(): kind for name, kind in columns.items()}
        own = {name: known.get(name.casefold(), TEXT) for name in columns_of_file(path) or columns}
        return sample_csv(path, own, rows, self._dialect)

    @property
    def _dialect(self) -> Dialect:
        if not isinstance(self.format, CsvFormat):
            raise AssertionError("a storage of CSV files")
        return self.format.dialect
