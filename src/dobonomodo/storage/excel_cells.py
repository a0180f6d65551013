"""Excel workbooks as text cells: calamine reads the values, the XML of the sheet shows what calamine hides.

To calamine, a cell with an error or with an uncomputed formula is empty; both are found in the XML, so that no invalid
value is read as NULL. Numbers are the decimals that Excel shows at 15 significant digits.
"""

from __future__ import annotations

import posixpath
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from xml.parsers import expat

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

MAX_BYTES = 4 << 30
"""A sheet that is larger when it is unpacked is not read."""

_SHARED = "xl/sharedstrings.xml"
_COMMON_PARTS = ("xl/workbook.xml", _SHARED, "xl/styles.xml")
"""What the cells of all sheets refer to."""
_SHEETS = (
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main:worksheet",
    "http://purl.oclc.org/ooxml/spreadsheetml/main:worksheet",
)
DAMAGED = (
    LookupError,
    ValueError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    zlib.error,
    struct.error,
    OverflowError,
)
"""Exceptions of reading the archive or the XML: unknown encodings, impossible codes and sizes, passwords."""
_ADDRESS = re.compile(r"([A-Za-z]{1,3})([0-9]{1,7})")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_RANGE = re.compile(r"([A-Za-z]{1,3})([0-9]{0,7}):([A-Za-z]{1,3})([0-9]{0,7})")
_DIGITS = 15


class WorkbookFault(Exception):
    """Why a workbook cannot be read, and what to do."""

    def __init__(self, what: str, remedy: str | None = None) -> None:
        super().__init__(what)
        self.what, self.remedy = what, remedy


@dataclass(frozen=True, slots=True)
class Area:
    """Rows and columns of a sheet, counted from 0; None where it has no end."""

    top: int = 0
    left: int = 0
    bottom: int | None = None
    right: int | None = None

    @classmethod
    def parse(cls, text: str) -> Area:
        """From ``B3:F200`` or ``B:F``; raises ValueError for any other text."""
        found = _RANGE.fullmatch(text.strip())
        if found is None:
            raise ValueError
        left, top, right, bottom = found.groups()
        area = cls(
            int(top) - 1 if top else 0,
            column_number(left),
            int(bottom) - 1 if bottom else None,
            column_number(right),
        )
        if area.top < 0 or (area.bottom is not None and area.bottom < area.top) or column_number(right) < area.left:
            raise ValueError
        return area

    @property
    def name(self) -> str:
        """Its first and its last cell, such as ``B3:F200``, for an area that has an end."""
        return f"{name_cell(self.top, self.left)}:{name_cell(self.bottom or 0, self.right or 0)}"

    def overlaps(self, other: Area) -> bool:
        """Whether both have a cell in common."""
        return _meet(self.top, self.bottom, other.top, other.bottom) and _meet(
            self.left, self.right, other.left, other.right
        )


def _meet(first: int, last: int | None, other_first: int, other_last: int | None) -> bool:
    return (last is None or other_first <= last) and (other_last is None or first <= other_last)


def column_number(letters: str) -> int:
    """The column of some letters, counted from 0."""
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def name_cell(row: int, column: int) -> str:
    """The address of a cell, such as ``B7``."""
    letters = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return f"{letters}{row + 1}"


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of one sheet as text, row by row from the first one, with what is wrong in them."""

    sheet: str
    area: Area
    rows: Iterator[list[str | None]] = field(repr=False)
    """Every row of the area, from its first column to its last; None for a cell without a value."""
    faults: Mapping[tuple[int, int], str]
    """What is wrong in a cell, in words that follow its value."""
    merged: Sequence[Area] = ()
    """Cells of the sheet that are merged, inside of the area and outside."""

    def refuse_merged(self, *, top: int, width: int) -> None:
        """Raise `WorkbookFault` for merged cells among some columns of the area, from a row on."""
        used = Area(top, self.area.left, self.area.bottom, self.area.left + width - 1)
        for merged in self.merged:
            if merged.overlaps(used):
                raise WorkbookFault(
                    f"has merged cells {merged.name} in sheet `{self.sheet}`, of which only the first has a value",
                    "split them in Excel, or set `range` or `header_row` to where the rows are",
                )


def find_sheets(path: Path) -> dict[str, bool]:
    """The sheets of a workbook, each with whether it is one with cells that Excel shows; raises `WorkbookFault`."""
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    shown = (SheetTypeEnum.WorkSheet, SheetVisibleEnum.Visible)
    with _explaining(), _open(path) as book:
        return {sheet.name: (sheet.typ, sheet.visible) == shown for sheet in book.sheets_metadata}


@contextmanager
def open_cells(path: Path, *, sheet: str | None, area: Area | None, table: str | None) -> Iterator[Cells]:
    """The cells of a sheet, of a part of it or of a table with its header; raises `WorkbookFault`."""
    with _explaining(), _open(path) as book:
        if table is not None:
            sheet, area = _find_table(book, table, path)
        name = sheet if sheet is not None else _only_sheet(book)
        if name not in book.sheet_names:
            raise WorkbookFault(f"has no sheet `{name}`", _existing("sheets", book.sheet_names))
        found = book.get_sheet_by_name(name)
        whole = area or Area()
        merged = [Area(*first, *last) for first, last in found.merged_cell_ranges or ()]
        yield Cells(name, whole, _rows(found, whole), find_faults(path, name), merged)


@contextmanager
def _open(path: Path) -> Iterator[CalamineWorkbook]:
    from python_calamine import CalamineWorkbook

    with zipfile.ZipFile(path) as archive:
        if sum(each.file_size for each in archive.infolist()) > MAX_BYTES:
            raise WorkbookFault("is too large when it is unpacked")
        # calamine continues after damaged XML, and then returns wrong texts or dates.
        for part in archive.namelist():
            if part.lower() in _COMMON_PARTS:
                _parser().Parse(archive.read(part), True)
    book = CalamineWorkbook.from_path(str(path), load_tables=True)
    try:
        yield book
    finally:
        book.close()


@contextmanager
def _explaining() -> Iterator[None]:
    from python_calamine import CalamineError

    try:
        yield
    except (WorkbookFault, OSError, GeneratorExit):
        raise
    except (CalamineError, zipfile.BadZipFile, expat.ExpatError, *DAMAGED) as fault:
        raise WorkbookFault(f"cannot be read as a workbook: {_first_line(fault)}") from fault
    except BaseException as fault:
        # What fails inside calamine may arrive as an exception that is no `Exception`.
        if type(fault).__name__ == "PanicException":
            raise WorkbookFault(f"cannot be read as a workbook: {_first_line(fault)}") from fault
        raise


def _first_line(fault: BaseException) -> str:
    return next(iter(str(fault).splitlines()), type(fault).__name__)


def _existing(what: str, names: list[str] | None) -> str:
    shown = ", ".join(f"`{name}`" for name in (names or [])[:10])
    return f"existing {what}: {shown}" if shown else f"there are no {what}"


def _only_sheet(book: CalamineWorkbook) -> str:
    names = book.sheet_names
    if len(names) == 1:
        return names[0]
    shown = ", ".join(f"`{name}`" for name in names[:10])
    raise WorkbookFault(f"has {len(names)} sheets: {shown}", "set `sheet` in the options")


def _find_table(book: CalamineWorkbook, name: str, path: Path) -> tuple[str, Area]:
    names = book.table_names or []
    if name not in names:
        raise WorkbookFault(f"has no table `{name}`", _existing("tables", names))
    table = book.get_table_by_name(name)
    if table.start is None or table.end is None:
        raise WorkbookFault(f"has a table `{name}` without rows")
    if not _has_header(path, name):
        raise WorkbookFault(
            f"has a table `{name}` without a header row",
            "turn on `Header Row` in the table design of Excel; without it, nothing says which column is which",
        )
    # The rows of a table start behind its header.
    return table.sheet, Area(table.start[0] - 1, table.start[1], table.end[0], table.end[1])


def _has_header(path: Path, table: str) -> bool:
    """Whether a table has a row with names, which calamine does not tell."""
    with zipfile.ZipFile(path) as archive:
        parts = [name for name in archive.namelist() if name.lower().startswith("xl/tables/")]
        tables = [each for part in parts for each in _elements(archive, part, "table")]
    return not any(each.get("displayName") == table and each.get("headerRowCount") == "0" for each in tables)


def _rows(sheet: CalamineSheet, area: Area) -> Iterator[list[str | None]]:
    """The rows of an area; calamine starts with the first row of the sheet, and with the first column that is used."""
    if sheet.start is None:
        return
    offset = sheet.start[1]
    width = max(0, (sheet.end[1] if sheet.end is not None else offset) + 1)
    last = width - 1 if area.right is None else area.right
    for number, values in enumerate(sheet.iter_rows()):
        if number < area.top:
            continue
        if area.bottom is not None and number > area.bottom:
            return
        yield [
            show_cell(values[at - offset]) if 0 <= at - offset < len(values) else None
            for at in range(area.left, last + 1)
        ]


def show_cell(value: object) -> str | None:
    """A value as plain text; None for an empty cell, and for an empty text, which Excel does not tell apart from it."""
    match value:
        case "" | None:
            return None
        case str():
            return value
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case float():
            return show_number(value)
        case datetime():
            return value.date().isoformat() if value.time() == time() else value.isoformat()
        case date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
        case _:
            return str(value)


def show_number(value: float) -> str:
    """The decimal of 15 significant digits, in plain digits; whole numbers have no point."""
    text = f"{Decimal(f'{value:.{_DIGITS}g}'):f}"
    return "0" if text == "-0" else text


# --- the XML of a sheet


def find_faults(path: Path, sheet: str) -> dict[tuple[int, int], str]:
    """Errors, formulas without a value, and cells that are damaged, by row and column."""
    with zipfile.ZipFile(path) as archive:
        shared = next((name for name in archive.namelist() if name.lower() == _SHARED), None)
        scan = _Scan(len(_elements(archive, shared, "si")) if shared is not None else 0)
        with archive.open(_find_part(archive, sheet)) as file:
            parser = _parser()
            parser.StartElementHandler, parser.EndElementHandler = scan.start, scan.end
            parser.CharacterDataHandler = scan.text
            parser.ParseFile(file)
    return scan.faults


class _Scan:
    """Follows the cells of a sheet."""

    UNCOMPUTED: ClassVar[str] = "is a formula without a computed value; open the workbook in Excel and save it"
    DAMAGED: ClassVar[str] = "is damaged; open the workbook in Excel and save it"

    def __init__(self, shared: int) -> None:
        self.faults: dict[tuple[int, int], str] = {}
        self._shared = shared
        """How many texts the workbook has."""
        self._seen: set[tuple[int, int]] = set()
        self._row, self._column, self._kind = -1, -1, ""
        self._formula = self._value = self._inside = False
        self._shown = ""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        match name.rpartition(":")[2]:
            case "worksheet" if name not in _SHEETS:
                raise ValueError(f"`{name}` is not a sheet")
            case "row":
                self._row = int(attributes["r"]) - 1 if "r" in attributes else self._row + 1
                self._column = -1
            case "c":
                self._place(attributes.get("r"))
                self._kind = attributes.get("t", "n")
                self._formula = self._value = False
                self._shown = ""
            case "f":
                self._formula = True
            case "is":
                self._value = True
            case "v":
                self._value = self._inside = True

    def _place(self, address: str | None) -> None:
        found = _ADDRESS.fullmatch(address or "")
        if found is not None:
            self._row, self._column = int(found[2]) - 1, column_number(found[1])
        elif address is None:
            self._column += 1
        else:
            raise ValueError(f"`{address}` is not an address")

    def text(self, text: str) -> None:
        if self._inside:
            self._shown += text

    def end(self, name: str) -> None:
        match name.rpartition(":")[2]:
            case "v":
                self._inside = False
            case "c":
                place = (self._row, self._column)
                fault = self._find_fault() if place not in self._seen else self.DAMAGED
                self._seen.add(place)
                if fault is not None:
                    self.faults[place] = fault

    def _find_fault(self) -> str | None:
        if self._kind == "e":
            return f"`{self._shown or 'error'}` is an error of Excel"
        if not self._value:
            return self.UNCOMPUTED if self._formula else None
        return None if self._is_sound(self._shown.strip()) else self.DAMAGED

    def _is_sound(self, text: str) -> bool:
        """Whether a value is valid for its kind; calamine misreads invalid ones."""
        match self._kind:
            case _ if not text:
                return True
            case "n":
                return _NUMBER.fullmatch(text) is not None
            case "s":
                return text.isascii() and text.isdigit() and int(text) < self._shared
            case "b":
                return text in ("0", "1")
            case kind:
                return kind in ("str", "inlineStr", "d")


def _parser() -> expat.XMLParserType:
    parser = expat.ParserCreate(namespace_separator=":")

    def refuse(*_: object) -> None:
        raise WorkbookFault("declares a document type, which no workbook does")

    parser.StartDoctypeDeclHandler = refuse
    return parser


def _find_part(archive: zipfile.ZipFile, sheet: str) -> str:
    """The part of a workbook that has a sheet."""
    workbook = next((name for name in archive.namelist() if name.lower() == "xl/workbook.xml"), None)
    if workbook is None:
        raise WorkbookFault("has no `xl/workbook.xml`")
    relation = next((each["id"] for each in _elements(archive, workbook, "sheet") if each.get("name") == sheet), None)
    related = f"{posixpath.dirname(workbook)}/_rels/{posixpath.basename(workbook)}.rels"
    for each in _elements(archive, related, "Relationship"):
        if each.get("Id") == relation:
            target = each["Target"]
            path = target.lstrip("/") if target.startswith("/") else f"{posixpath.dirname(workbook)}/{target}"
            wanted = posixpath.normpath(path).lower()
            found = next((name for name in archive.namelist() if name.lower() == wanted), None)
            if found is not None:
                return found
    raise WorkbookFault(f"has no part for sheet `{sheet}`")


def _elements(archive: zipfile.ZipFile, part: str, element: str) -> list[dict[str, str]]:
    """The attributes of all elements of a name, by their names without a prefix."""
    found: list[dict[str, str]] = []

    def start(name: str, attributes: Mapping[str, str]) -> None:
        if name.rpartition(":")[2] == element:
            found.append({key.rpartition(":")[2]: value for key, value in attributes.items()})

    parser = _parser()
    parser.StartElementHandler = start
    parser.Parse(archive.read(part), True)
    return found
