"""Excel workbooks as a storage: a sheet, a range or a table is read exactly into Parquet, and outputs become sheets of one file.

Outputs are kept as Parquet, without rounding; the workbook is generated from it. A value that Excel cannot hold is refused
before anything is published.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, StrictStr

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TIMESTAMP, DecimalType, is_number
from dobonomodo.model.datasource import StorageOptions
from dobonomodo.model.document import Places
from dobonomodo.model.plain import Document
from dobonomodo.model.value import Count, Expected, Filled
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.plan.destination import DestinationKind
from dobonomodo.problems import Problem
from dobonomodo.problems.definition import InvalidValue
from dobonomodo.problems.run import CELLS_AT_MOST, WrongCell
from dobonomodo.storage.diagnosis import is_workbook
from dobonomodo.storage.excel_cells import Area, Cells, WorkbookFault, name_cell, open_cells
from dobonomodo.storage.faults import is_passing, loading_failed, removing_on_failure, writing_failed
from dobonomodo.storage.file_storage import FilePin, FilesOptions, FileStorage
from dobonomodo.storage.findings import Findings, check_batch
from dobonomodo.storage.folder import FilePart, Format
from dobonomodo.storage.manifest import version_of
from dobonomodo.storage.parquet import check_parquet, copy_once
from dobonomodo.storage.schema import arrow_type, find_differences, stored_type
from dobonomodo.storage.storage import Row, Scratch

if TYPE_CHECKING:
    from xlsxwriter.format import Format as CellFormat
    from xlsxwriter.workbook import Workbook
    from xlsxwriter.worksheet import Worksheet

MAX_ROWS, MAX_COLUMNS, MAX_TEXT = 1_048_576, 16_384, 32_767
MAX_DIGITS = 15
"""Of a number, which Excel keeps as a binary one."""
FIRST_DAY = date(1900, 3, 1)
"""Excel takes 1900 for a leap year, so that days before it are not what they say."""

_BATCH = 20_000
_SAMPLED = 1_000
"""Rows by which the widths of columns are chosen."""
_WIDEST = 60


# --- definitions


class ExcelLocation(StorageOptions):
    """Where the rows of a workbook are."""

    kind: ClassVar[str] = "options of excel"

    sheet: Filled | None = Field(default=None, description="The sheet; it may be left out where there is only one.")
    range: (
        Annotated[StrictStr, Field(min_length=1), Expected("cells such as `B3:F200`, or columns such as `B:F`")] | None
    ) = Field(default=None, description="The cells with header and rows, such as B3:F200 or B:F; the default is all.")
    table: Filled | None = Field(default=None, description="The name of a table of Excel, instead of a sheet.")
    header_row: Count | None = Field(
        default=None, description="The row of the sheet with the names of columns; the default is the first."
    )

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """Cells that there can be, and one way to say where they are."""
        text = places.text("range")
        if text is not None and not _is_range(text):
            yield InvalidValue(
                key="range", expected="cells such as `B3:F200`, or columns such as `B:F`", found=f"`{text}`",
                span=places.span("range"),
            )  # fmt: skip
        if places.text("table") is not None:
            for key in ("sheet", "range", "header_row"):
                if places.get(key) is not None:
                    yield InvalidValue(
                        key=key, expected=f"no `{key}` beside `table`", found=f"`{key}`",
                        advice=f"a table says itself where it is; remove `{key}`", span=places.key_span(key),
                    )  # fmt: skip


class ExcelOptions(ExcelLocation, FilesOptions):
    """A folder of Excel workbooks."""

    of_location: ClassVar[type[StorageOptions] | None] = ExcelLocation

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """The rules of both."""
        yield from FilesOptions.check(places)
        yield from ExcelLocation.check(places)


def _is_range(text: str) -> bool:
    try:
        Area.parse(text)
    except ValueError:
        return False
    return True


# --- reading


def extract_excel(source: Path, target: Path, use: DatasetUse, form: ExcelFormat) -> Findings:
    """Turn the rows of a workbook into a Parquet file, unless a value of it is wrong; raises for what is no such workbook."""
    stored = use.as_stored()
    unfinished = target.with_name(target.name + ".part")
    try:
        if not is_workbook(source):
            raise WorkbookFault(*_explain_other(source))
        with removing_on_failure(unfinished), form.open(source) as cells:
            findings = _Sheet.read(source, cells, form, stored).extract(unfinished)
        if findings:
            unfinished.unlink()
        else:
            unfinished.replace(target)
        return findings
    except WorkbookFault as fault:
        raise loading_failed(use, f"`{source}` {fault.what}", diagnosis="excel", remedy=fault.remedy) from fault
    except OSError as fault:
        raise loading_failed(use, f"`{source}`: {fault.strerror or fault}", retry_helps=is_passing(fault)) from fault


def _explain_other(source: Path) -> tuple[str, str]:
    with source.open("rb") as file:
        start = file.read(8)
    if start.startswith(b"\xd0\xcf\x11\xe0"):
        return "is an old (xls) or encrypted workbook", "save it in Excel as `xlsx`, without a password"
    if not start:
        return "is empty", "save it in Excel as `xlsx`"
    return "is not an Excel workbook (xlsx)", "read text files by a datasource of `type: csv`"


@dataclass(frozen=True, slots=True, eq=False)
class _Sheet:
    """The rows below the header of a sheet."""

    source: Path
    cells: Cells
    use: DatasetUse
    """With the names that columns have in the workbook."""
    names: tuple[str, ...]
    first: int
    """The row of the sheet with the first record, counted from 0."""

    @classmethod
    def read(cls, source: Path, cells: Cells, form: ExcelFormat, use: DatasetUse) -> _Sheet:
        """Read the header, and refuse one that does not have the columns of the dataset."""
        at = (form.header_row - 1 if form.header_row is not None else cells.area.top) - cells.area.top
        header = next(islice(cells.rows, at, None), None) if at >= 0 else None
        number = cells.area.top + at
        if header is None or not any(header):
            raise WorkbookFault(
                f"has no names of columns in row {number + 1} of sheet `{cells.sheet}`", "set `header_row`"
            )
        width = max(position for position, name in enumerate(header) if name) + 1
        cells.refuse_merged(top=number, width=width)
        for position, name in enumerate(header[:width]):
            if not name:
                address = name_cell(number, cells.area.left + position)
                raise WorkbookFault(
                    f"has no name in cell {address} of sheet `{cells.sheet}`, between the names of columns",
                    "write a name there, or set `range`",
                )
        for (row, column), rule in sorted(cells.faults.items()):
            if row == number and 0 <= column - cells.area.left < width:
                raise WorkbookFault(f"has a name in cell {name_cell(row, column)} of sheet `{cells.sheet}` that {rule}")
        names = [str(name) for name in header[:width]]
        differences = find_differences([(name, stored_type(name, use).sql.lower()) for name in names], use)
        if differences:
            detail = f"the header of `{source}`, sheet `{cells.sheet}`, does not match the declaration"
            raise loading_failed(use, detail, differences=differences)
        return cls(source, cells, use, tuple(names), number + 1)

    def extract(self, target: Path) -> Findings:
        """Write all rows up to the first wrong one, and find all wrong ones."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        types = {name: stored_type(name, self.use) for name in self.names}
        schema = pa.schema([(name, arrow_type(kind)) for name, kind in types.items()])
        findings = Findings()
        with pq.ParquetWriter(target, schema) as writer:
            for numbers, batch in self._batches():
                texts = [pa.array([row[at] for row in batch], pa.string()) for at in range(len(types))]
                checked = check_batch(texts, types, use=self.use, place=str(self.source))
                findings += self._place(checked.first, checked.counts, numbers)
                findings += self._find_faults(numbers)
                if not findings:
                    writer.write_batch(pa.RecordBatch.from_arrays(checked.columns, schema=schema))
        return findings

    def _batches(self) -> Iterator[tuple[list[int], list[list[str | None]]]]:
        """The rows with a value or a fault in some column, with their numbers in the sheet; others are no records."""
        width, left = len(self.names), self.cells.area.left
        numbers: list[int] = []
        rows: list[list[str | None]] = []
        faulty = {row for row, column in self.cells.faults if left <= column < left + width}
        for number, values in enumerate(self.cells.rows, start=self.first):
            beyond = next((at for at, value in enumerate(values[width:], start=width) if value is not None), None)
            if beyond is not None:
                address = name_cell(number, left + beyond)
                raise WorkbookFault(
                    f"has a value in cell {address} of sheet `{self.cells.sheet}`, whose column has no name",
                    "write a name above it, or set `range`",
                )
            if number not in faulty and not any(value is not None for value in values[:width]):
                continue
            numbers.append(number)
            rows.append([*values[:width], *[None] * (width - len(values))])
            if len(rows) == _BATCH:
                yield numbers, rows
                numbers, rows = [], []
        yield numbers, rows

    def _place(
        self, wrong: Sequence[tuple[int, WrongCell]], counts: Mapping[str, int], numbers: Sequence[int]
    ) -> Findings:
        placed = []
        for at, cell in wrong:
            column = self.cells.area.left + self.names.index(cell.column or self.names[0])
            if (numbers[at], column) not in self.cells.faults:
                placed.append(replace(cell, row=self._name(numbers[at], column)))
        kept: dict[str, int] = {}
        for name, count in counts.items():
            column = self.cells.area.left + self.names.index(name)
            # A fault of a cell is told once, as that.
            faults = sum((number, column) in self.cells.faults for number in numbers) if self._lacks(name) else 0
            if count > faults:
                kept[name] = count - faults
        return Findings(tuple(placed), kept)

    def _lacks(self, name: str) -> bool:
        return name in self.use.columns and name not in self.use.nullable

    def _find_faults(self, numbers: Sequence[int]) -> Findings:
        present, left = set(numbers), self.cells.area.left
        cells: list[WrongCell] = []
        counts: dict[str, int] = {}
        for (row, column), rule in sorted(self.cells.faults.items()):
            if row in present and left <= column < left + len(self.names):
                name = self.names[column - left]
                counts[name] = counts.get(name, 0) + 1
                cells.append(WrongCell(place=str(self.source), row=self._name(row, column), column=name, rule=rule))
        return Findings(tuple(cells[:CELLS_AT_MOST]), counts)

    def _name(self, row: int, column: int) -> str:
        return f"sheet `{self.cells.sheet}`, cell {name_cell(row, column)}"


# --- writing


@dataclass(frozen=True, slots=True)
class ExcelFormat:
    """Workbooks as a source and as a destination. The rows themselves are kept as Spark writes them."""

    sheet: str | None = None
    range: str | None = None
    table: str | None = None
    header_row: int | None = None
    kind: ClassVar[str] = "excel"
    in_place: ClassVar[bool] = True

    @property
    def options(self) -> Mapping[str, object]:
        """What a reader has to know."""
        own = {"sheet": self.sheet, "range": self.range, "table": self.table, "header_row": self.header_row}
        return {key: value for key, value in own.items() if value is not None}

    def open(self, path: Path) -> AbstractContextManager[Cells]:
        """The cells that are read."""
        area = Area.parse(self.range) if self.range is not None else None
        return open_cells(path, sheet=self.sheet, area=area, table=self.table)

    def convert(self, files: Sequence[Path], folder: Path, *, columns: Mapping[str, Type], to: str) -> None:
        """Nothing to do."""

    def check(self, files: Sequence[Path], *, columns: Mapping[str, Type], to: str) -> None:
        """Refuse rows that a sheet cannot hold."""
        rows = 0
        for number, row in _read(files, columns):
            rows = number
            for (name, kind), value in zip(columns.items(), row, strict=True):
                if (wrong := explain_unfit(value, kind)) is not None:
                    raise writing_failed(to, f"column `{name}`, row {number}: {wrong}")
        if rows >= MAX_ROWS or len(columns) > MAX_COLUMNS:
            detail = f"{rows:,} rows and {len(columns):,} columns do not fit in a sheet of Excel"
            raise writing_failed(to, detail)

    def combine(self, parts: Sequence[FilePart], target: Path, *, to: str) -> None:
        """One workbook with a sheet for each output."""
        import xlsxwriter
        from xlsxwriter.exceptions import XlsxWriterException

        try:
            with xlsxwriter.Workbook(str(target), {"constant_memory": True, "in_memory": False}) as book:
                # The same rows give the same file.
                book.set_properties({"created": datetime(2000, 1, 1, tzinfo=UTC)})
                for part in parts:
                    _write_sheet(book, part)
        except XlsxWriterException as fault:
            raise writing_failed(to, str(fault)) from fault


def explain_unfit(value: object, kind: Type) -> str | None:
    """Why Excel cannot hold a value; None if it can."""
    if isinstance(value, str) and len(value) > MAX_TEXT:
        return f"the text has {len(value):,} characters, Excel takes {MAX_TEXT:,}"
    if is_number(kind) and isinstance(value, int | Decimal):
        digits = len(str(value).replace(".", "").replace("-", "").strip("0"))
        if digits > MAX_DIGITS:
            advice = "round it, or write it as text with TO_TEXT"
            return f"`{value}` has {digits} significant digits, Excel keeps {MAX_DIGITS}; {advice}"
    if isinstance(value, date) and (value.date() if isinstance(value, datetime) else value) < FIRST_DAY:
        return f"`{value}` is before {FIRST_DAY}, the first day on which Excel counts correctly"
    return None


def _read(files: Sequence[Path], columns: Mapping[str, Type]) -> Iterator[tuple[int, tuple[object, ...]]]:
    """The rows of Parquet files, counted from 1."""
    import pyarrow.parquet as pq

    number = 0
    for path in files:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_BATCH, columns=list(columns)):
                values = [batch.column(name).to_pylist() for name in columns]
                for row in zip(*values, strict=True):
                    number += 1
                    yield number, row


def _write_sheet(book: Workbook, part: FilePart) -> None:
    """Header, rows and what makes them readable: number formats, widths, a header that stays, filters."""
    sheet: Worksheet = book.add_worksheet(part.sheet)
    formats = {name: book.add_format({"num_format": number_format(kind)}) for name, kind in part.columns.items()}
    bold = book.add_format({"bold": True})
    widths = [len(name) for name in part.columns]
    for _, row in islice(_read(part.files, part.columns), _SAMPLED):
        widths = [max(width, len(_show(value))) for width, value in zip(widths, row, strict=True)]
    for at, (name, width) in enumerate(zip(part.columns, widths, strict=True)):
        sheet.set_column(at, at, min(width, _WIDEST) + 2, formats[name])
        sheet.write_string(0, at, name, bold)
    last = 0
    for last, row in _read(part.files, part.columns):
        for at, ((name, kind), value) in enumerate(zip(part.columns.items(), row, strict=True)):
            _write_cell(sheet, last, at, value, kind, formats[name])
    sheet.freeze_panes(1, 0)
    sheet.autofilter(0, 0, last, len(part.columns) - 1)


def _write_cell(sheet: Worksheet, row: int, at: int, value: object, kind: Type, form: CellFormat) -> None:
    match value:
        case None:
            return
        case bool():
            sheet.write_boolean(row, at, value, form)
        case int() | Decimal():
            sheet.write_number(row, at, float(value), form)
        case datetime():
            sheet.write_datetime(row, at, value.astimezone(UTC).replace(tzinfo=None), form)
        case date():
            sheet.write_datetime(row, at, value, form)
        case _:
            sheet.write_string(row, at, str(value), form)


def number_format(kind: Type) -> str:
    """How Excel shows the values of a type."""
    if isinstance(kind, DecimalType):
        return "#,##0" + ("." + "0" * kind.scale if kind.scale else "")
    if kind == INTEGER:
        return "0"
    if kind == DATE:
        return "yyyy-mm-dd"
    if kind == TIMESTAMP:
        return "yyyy-mm-dd hh:mm:ss"
    return "General" if kind == BOOLEAN else "@"


def _show(value: object) -> str:
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else str(value)[: _WIDEST + 1]


# --- storage


@dataclass(frozen=True, slots=True)
class ExcelStorage(FileStorage):
    """A folder of workbooks. They pass through Parquet files in the folder of the run; what runs write is kept as Parquet."""

    kind: ClassVar[str] = "excel"
    options: ClassVar[type[StorageOptions]] = ExcelOptions
    destinations: ClassVar[DestinationKind] = DestinationKind(
        are_paths=True, inline=True, has_schemas=False, has_named_files=True, has_sheets=True
    )
    modules: ClassVar[Sequence[str]] = ("pyarrow", "python_calamine", "xlsxwriter")

    @classmethod
    def load_format(cls, document: Document) -> Format:
        """Where the rows are."""
        given = {key: document.get(key) for key in ("sheet", "range", "table", "header_row")}
        return ExcelFormat(**given)

    def parquet_files(self, pin: FilePin, scratch: Scratch) -> list[Path]:
        """What runs wrote is Parquet; workbooks become it."""
        paths = self.shelf.paths(pin.files, scratch)
        return [
            scratch.bring(path, number) if _is_kept(path) else Path(scratch.file(number))
            for number, path in enumerate(paths)
        ]

    def extract_file(self, use: DatasetUse, source: Path, target: Path) -> Findings:
        """Turn a workbook into Parquet, unless that was done."""
        if _is_kept(source):
            copy_once(source, target)
            return check_parquet(source, use)
        if target.exists():
            return Findings()
        target.parent.mkdir(parents=True, exist_ok=True)
        return extract_excel(source, target, use, self._form)

    def sample_file(self, path: Path, columns: Mapping[str, Type], rows: int) -> Iterable[Row]:
        """The first rows that a run wrote."""
        import pyarrow.parquet as pq

        del columns, rows
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=256):
                yield from batch.to_pylist()

    @property
    def _form(self) -> ExcelFormat:
        if not isinstance(self.format, ExcelFormat):
            raise AssertionError("a storage of workbooks")
        return self.format


def _is_kept(path: Path) -> bool:
    return path.suffix == ".parquet" and version_of(path) is not None
