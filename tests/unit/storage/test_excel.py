"""Excel workbooks: read exactly or refused with the cell, written so that people can use them, and read back as they were."""

# ruff: noqa: DTZ001 - times in Excel have no zone

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType
from dobonomodo.problems.definition import InvalidValue
from dobonomodo.problems.run import CELLS_AT_MOST, DataLoad, OutputWrite
from dobonomodo.storage import excel
from dobonomodo.storage.excel import ExcelFormat, ExcelStorage, explain_unfit, extract_excel, number_format
from dobonomodo.storage.folder import FilePart
from dobonomodo.storage.manifest import DATA, HIDDEN
from tests import world
from tests.unit.model.loading import load
from tests.unit.storage.reading import extract, refused, use_of
from tests.unit.storage.round_trip import by_excel, no_values
from tests.unit.storage.test_excel_cells import rewrite

COLUMNS: dict[str, Type] = {"id": INTEGER, "amount": DecimalType(15, 2), "day": DATE, "note": TEXT}


def make(path: Path, fill: Callable[[xlsxwriter.Workbook, xlsxwriter.worksheet.Worksheet], None]) -> None:
    with xlsxwriter.Workbook(str(path)) as book:
        fill(book, book.add_worksheet("Data"))


def rows_of(book: xlsxwriter.Workbook, sheet: xlsxwriter.worksheet.Worksheet) -> None:
    sheet.write_row("A1", ["Id", "Amount", "Day", "Note"])
    form = book.add_format({"num_format": "dd.mm.yyyy"})
    for number, (amount, note) in enumerate([(0.1 + 0.2, "a"), (1234567.89, 4711)], start=2):
        sheet.write_row(f"A{number}", [number, amount])
        sheet.write_datetime(f"C{number}", datetime(2026, 1, number), form)
        sheet.write(f"D{number}", note)


def read(root: Path, columns: Mapping[str, Type] = COLUMNS, **options: Any) -> list[dict[str, Any]]:
    use = use_of(columns, "rows.xlsx", sources=options.pop("sources", {}))
    (file,) = extract(root, use, kind="excel", **options)
    return [{use.name_of(name): value for name, value in row.items()} for row in pq.read_table(file).to_pylist()]


class TestReading:
    def test_numbers_as_they_are_shown_and_days_as_days(self, tmp_path: Path) -> None:
        make(tmp_path / "rows.xlsx", rows_of)
        assert read(tmp_path) == [
            {"Id": 2, "Amount": Decimal("0.30"), "Day": date(2026, 1, 2), "Note": "a"},
            {"Id": 3, "Amount": Decimal("1234567.89"), "Day": date(2026, 1, 3), "Note": "4711"},
        ]

    def test_where_the_rows_are(self, tmp_path: Path) -> None:
        def fill(book: xlsxwriter.Workbook, sheet: xlsxwriter.worksheet.Worksheet) -> None:
            sheet.merge_range("A1:C1", "Report of January")
            sheet.write_row("B3", ["Beleg Nr.", "Betrag"])
            sheet.write_row("B4", [1, 2.5])
            sheet.write_row("B6", [2, None])
            sheet.write("B8", "Total")
            book.add_worksheet("Other")

        make(tmp_path / "rows.xlsx", fill)
        columns: dict[str, Type] = {"id": INTEGER, "amount": DecimalType(5, 2)}
        sources = {"id": "beleg nr.", "amount": "Betrag"}
        expected = [{"id": 1, "amount": Decimal("2.50")}, {"id": 2, "amount": None}]
        assert read(tmp_path, columns, sheet="Data", range="B3:C7", sources=sources) == expected
        problem = refused(
            tmp_path, use_of(columns, "rows.xlsx", sources=sources), kind="excel", sheet="Data", range="B3:C8"
        )
        assert [(cell.row, cell.value) for cell in problem.cells] == [("sheet `Data`, cell B8", "Total")]
        problem = refused(tmp_path, use_of(columns, "rows.xlsx", sources=sources), kind="excel", sheet="Data")
        assert "merged cells A1:C1" in problem.detail
        problem = refused(tmp_path, use_of(columns, "rows.xlsx"), kind="excel")
        assert problem.remedy == "set `sheet` in the options"

    def test_a_header_further_down(self, tmp_path: Path) -> None:
        def fill(book: xlsxwriter.Workbook, sheet: xlsxwriter.worksheet.Worksheet) -> None:
            del book
            sheet.merge_range("A1:C1", "Report")
            sheet.write_column("A3", ["id", 1])
            sheet.merge_range("B4:C4", None)

        make(tmp_path / "rows.xlsx", fill)
        assert read(tmp_path, {"id": INTEGER}, header_row=3) == [{"id": 1}]
        problem = refused(tmp_path, use_of({"id": INTEGER}, "rows.xlsx"), kind="excel")
        assert "merged cells A1:C1" in problem.detail
        problem = refused(tmp_path, use_of({"id": INTEGER}, "rows.xlsx"), kind="excel", header_row=4)
        assert problem.differences == ("column `id` is missing", "column `1` is not declared")
        assert (
            "has no names" in refused(tmp_path, use_of({"id": INTEGER}, "rows.xlsx"), kind="excel", header_row=2).detail
        )

    def test_a_table_of_excel(self, tmp_path: Path) -> None:
        def fill(book: xlsxwriter.Workbook, sheet: xlsxwriter.worksheet.Worksheet) -> None:
            del book
            data = {"name": "Rates", "columns": [{"header": "id"}, {"header": "note"}], "data": [[1, "x"], [2, "y"]]}
            sheet.add_table("C5:D7", data)
            sheet.write("A9", "below")

        make(tmp_path / "rows.xlsx", fill)
        found = read(tmp_path, {"id": INTEGER, "note": TEXT}, table="Rates")
        assert [row["note"] for row in found] == ["x", "y"]

    def test_all_wrong_cells_have_their_addresses(self, tmp_path: Path) -> None:
        def fill(book: xlsxwriter.Workbook, sheet: xlsxwriter.worksheet.Worksheet) -> None:
            del book
            sheet.write_row("A1", list(COLUMNS))
            sheet.write_row("A2", [1.5, "1.234,50", 45000, "a"])
            sheet.write_formula("A3", "=1/0", None, "#DIV/0!")
            sheet.write_row("B3", [1.005, "31.01.2026"])
            sheet.write_formula("D4", "=1/0", None, "#REF!")

        make(tmp_path / "rows.xlsx", fill)
        problem = refused(tmp_path, use_of(COLUMNS, "rows.xlsx", required=["id"]), kind="excel")
        shown = [(str(cell.row).split()[-1], cell.value, cell.rule.split(" (")[0]) for cell in problem.cells]
        assert shown == [
            ("A2", "1.5", "is not a whole number"),
            ("B2", "1.234,50", "is not a number"),
            ("C2", "45000", "is not a date, year-month-day"),
            ("B3", "1.005", "has 3 decimal places, decimal(15,2) allows 2"),
            ("C3", "31.01.2026", "is not a date, year-month-day"),
            ("A4", None, "is NULL, and the column is not nullable"),
            ("A3", None, "`#DIV/0!` is an error of Excel"),
            ("D4", None, "`#REF!` is an error of Excel"),
        ]
        assert dict(problem.counts) == {"id": 3, "amount": 2, "day": 2, "note": 1}

    def test_faults_are_told_where_the_rows_are(self, tmp_path: Path) -> None:
        def fill(book: xlsxwriter.Workbook, sheet: xlsxwriter.worksheet.Worksheet) -> None:
            del book
            sheet.write_row("C3", ["id", "note"])
            sheet.write_row("C4", [1, "a"])
            sheet.write_formula("C5", "=1/0", None, "#DIV/0!")
            sheet.write_formula("C6", "=1/0", None, "#DIV/0!")
            sheet.write("D7", "b")
            # Beside the rows, nobody looks at them.
            for cell in ("B4", "E4", "C2"):
                sheet.write_formula(cell, "=1/0", None, "#REF!")

        make(tmp_path / "rows.xlsx", fill)
        columns: dict[str, Type] = {"id": INTEGER, "note": TEXT}
        use = use_of(columns, "rows.xlsx", required=["id"])
        problem = refused(tmp_path, use, kind="excel", range="C3:D9")
        assert [(str(cell.row).split()[-1], cell.rule) for cell in problem.cells] == [
            ("C7", "is NULL, and the column is not nullable"),
            ("C5", "`#DIV/0!` is an error of Excel"),
            ("C6", "`#DIV/0!` is an error of Excel"),
        ]
        assert dict(problem.counts) == {"id": 3}
        assert problem.cells[0].place.endswith("rows.xlsx")

    def test_all_faults_are_counted_and_the_first_are_shown(self, tmp_path: Path) -> None:
        def fill(book: xlsxwriter.Workbook, sheet: xlsxwriter.worksheet.Worksheet) -> None:
            del book
            sheet.write("A1", "id")
            for row in range(1, CELLS_AT_MOST + 11):
                sheet.write_formula(row, 0, "=1/0", None, "#DIV/0!")

        make(tmp_path / "rows.xlsx", fill)
        problem = refused(tmp_path, use_of({"id": INTEGER}, "rows.xlsx"), kind="excel")
        assert (len(problem.cells), dict(problem.counts)) == (CELLS_AT_MOST, {"id": CELLS_AT_MOST + 10})

    def test_many_rows_are_read_in_parts(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fill(book: xlsxwriter.Workbook, sheet: xlsxwriter.worksheet.Worksheet) -> None:
            del book
            sheet.write_column("A1", ["id", *range(1, 8)])
            sheet.write_column("B1", ["note", "a", "b", "c"])

        make(tmp_path / "rows.xlsx", fill)
        monkeypatch.setattr(excel, "_BATCH", 3)
        columns: dict[str, Type] = {"id": INTEGER, "note": TEXT}
        notes = ["a", "b", "c", None, None, None, None]
        assert read(tmp_path, columns) == [{"id": n, "note": note} for n, note in enumerate(notes, start=1)]
        problem = refused(tmp_path, use_of(columns, "rows.xlsx", required=["note"]), kind="excel")
        assert [str(cell.row).split()[-1] for cell in problem.cells] == ["B5", "B6", "B7", "B8"]

    def test_a_header_must_name_every_column_up_to_its_last(self, tmp_path: Path) -> None:
        def fill(book: xlsxwriter.Workbook, sheet: xlsxwriter.worksheet.Worksheet) -> None:
            del book
            sheet.write_row("B3", ["id", None, "note"])
            sheet.write_row("B4", [1, None, "a"])

        make(tmp_path / "rows.xlsx", fill)
        columns: dict[str, Type] = {"id": INTEGER, "note": TEXT}
        use = use_of(columns, "rows.xlsx")
        problem = refused(tmp_path, use, kind="excel", range="B3:F9")
        assert "has no name in cell C3 of sheet `Data`" in problem.detail
        assert problem.remedy == "write a name there, or set `range`"
        # A header above the range, or below all rows, is none.
        for header_row in (2, 9):
            problem = refused(tmp_path, use, kind="excel", range="B3:D9", header_row=header_row)
            assert f"has no names of columns in row {header_row} of sheet `Data`" in problem.detail
        assert read(tmp_path, {"id": INTEGER}, range="B3:B9", header_row=3) == [{"id": 1}]
        assert read(tmp_path, {"id": INTEGER}, range="B1:B9", header_row=3) == [{"id": 1}]

    def test_a_name_in_a_damaged_cell_is_refused(self, tmp_path: Path) -> None:
        def fill(book: xlsxwriter.Workbook, sheet: xlsxwriter.worksheet.Worksheet) -> None:
            del book
            sheet.write_row("A1", ["id", "note"])
            sheet.write_row("A2", [1, "a"])

        make(tmp_path / "rows.xlsx", fill)
        # Two cells of one address: nobody knows which one counts.
        twice = b'<c r="B1" t="s"><v>1</v></c>'
        rewrite(tmp_path / "rows.xlsx", lambda xml: xml.replace(twice, twice * 2))
        problem = refused(tmp_path, use_of({"id": INTEGER, "note": TEXT}, "rows.xlsx"), kind="excel")
        assert "has a name in cell B1 of sheet `Data` that is damaged" in problem.detail
        assert read(tmp_path, {"id": INTEGER}, range="A:A") == [{"id": 1}]

    def test_a_name_that_is_an_error_is_refused(self, tmp_path: Path) -> None:
        def fill(book: xlsxwriter.Workbook, sheet: xlsxwriter.worksheet.Worksheet) -> None:
            del book
            sheet.write_formula("A1", "=1/0", None, "#REF!")
            sheet.write_column("B1", ["id", 1])

        make(tmp_path / "rows.xlsx", fill)
        problem = refused(tmp_path, use_of({"id": INTEGER}, "rows.xlsx"), kind="excel")
        assert "A1" in problem.detail

    def test_values_beside_the_named_columns_are_refused(self, tmp_path: Path) -> None:
        def fill(book: xlsxwriter.Workbook, sheet: xlsxwriter.worksheet.Worksheet) -> None:
            del book
            sheet.write_column("A1", ["id", 1, 2])
            sheet.write("C3", "stray")

        make(tmp_path / "rows.xlsx", fill)
        problem = refused(tmp_path, use_of({"id": INTEGER}, "rows.xlsx"), kind="excel")
        assert "a value in cell C3 of sheet `Data`, whose column has no name" in problem.detail

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"", "is empty"),
            (b"id\n1\n", "is not an Excel workbook"),
            (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is an old (xls) or encrypted workbook"),
            (b"PK\x03\x04 and no more", "is not an Excel workbook"),
        ],
    )
    def test_a_file_that_is_something_else(self, tmp_path: Path, content: bytes, said: str) -> None:
        (tmp_path / "rows.xlsx").write_bytes(content)
        assert said in refused(tmp_path, use_of({"id": INTEGER}, "rows.xlsx"), kind="excel").detail

    def test_definitions_are_checked(self) -> None:
        def keys(options: str) -> list[str]:
            found = load(f"datasource: {{id: s, type: excel, options: {{path_prefix: a, {options}}}}}")[1]
            return [problem.key for problem in found if isinstance(problem, InvalidValue)]

        assert keys("sheet: A, range: 'B3:C9', header_row: 3") == []
        assert keys("range: B3") == ["range"]
        assert keys("table: T, sheet: A") == ["sheet"]
        assert keys("table: T, range: 'B3:C9', header_row: 3") == ["range", "header_row"]
        assert keys("table: T") == []
        assert keys("header_row: 0") == ["header_row"]


# --- writing


def test_texts_are_texts_and_the_same_rows_give_the_same_file(tmp_path: Path) -> None:
    rows = [no_values(text=text) for text in ("=1+1", "007", "http://x", " a ", "+1", "a\nb")]
    assert by_excel(tmp_path, rows) == rows
    first = (tmp_path / "book.xlsx").read_bytes()
    by_excel(tmp_path, rows)
    assert (tmp_path / "book.xlsx").read_bytes() == first


def test_a_sheet_has_formats_filters_and_a_header_that_stays(tmp_path: Path) -> None:
    by_excel(tmp_path, [no_values(money=Decimal("1234.50"), text="x" * 20)])
    with zipfile.ZipFile(tmp_path / "book.xlsx") as archive:
        sheet, styles = archive.read("xl/worksheets/sheet1.xml").decode(), archive.read("xl/styles.xml").decode()
    assert 'state="frozen"' in sheet
    assert 'ySplit="1" topLeftCell="A2"' in sheet
    assert "xSplit" not in sheet
    assert '<autoFilter ref="A1:G2"/>' in sheet
    assert "<b/>" in styles
    assert '<col min="1" max="1" width="22.7' in sheet
    assert "yyyy\\-mm\\-dd" in styles or "yyyy-mm-dd" in styles
    assert number_format(DecimalType(20, 9)) == "#,##0.000000000"


def test_columns_are_as_wide_as_their_longest_value_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(excel, "_SAMPLED", 2)
    rows = [
        no_values(text="x" * 100, whole=123_456, flag=False, day=date(2026, 1, 31)),
        no_values(money=Decimal("-1234567.50")),
        no_values(small=Decimal("123456.123456789")),
    ]
    by_excel(tmp_path, [no_values(whole=12345)])
    narrow = widths_of(tmp_path / "book.xlsx")
    by_excel(tmp_path, rows)
    wide = widths_of(tmp_path / "book.xlsx")
    # Of text, whole, money, small, flag, day and moment: the name or the value, and some room.
    assert narrow == [6, 8, 7, 7, 6, 5, 8]
    # 60 at most; numbers with separated thousands; rows behind the first ones are not looked at.
    assert wide == [62, 9, 15, 7, 7, 12, 8]


def widths_of(book: Path) -> list[int]:
    with zipfile.ZipFile(book) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").decode()
    found = re.findall(r'<col min="([0-9]+)" max="([0-9]+)" width="([0-9.]+)"', sheet)
    assert [int(first) for first, _, _ in found] == [int(last) for _, last, _ in found] == list(range(1, 8))
    return [int(float(width)) for _, _, width in found]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (DecimalType(15, 2), "#,##0.00"), (DecimalType(15, 0), "#,##0"), (INTEGER, "0"), (DATE, "yyyy-mm-dd"),
        (TIMESTAMP, "yyyy-mm-dd hh:mm:ss"), (BOOLEAN, "General"), (TEXT, "@"),
    ],
)  # fmt: skip
def test_formats_of_numbers(kind: Type, expected: str) -> None:
    assert number_format(kind) == expected


def test_a_sheet_has_room_for_so_many_rows_and_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = []
    for number in range(2):
        files.append(tmp_path / f"{number}.parquet")
        pq.write_table(pa.table({"a": [1, 2], "b": [3, 4]}), files[-1])
    columns: dict[str, Type] = {"a": INTEGER, "b": INTEGER}
    monkeypatch.setattr(excel, "MAX_ROWS", 5)
    monkeypatch.setattr(excel, "MAX_COLUMNS", 2)
    ExcelFormat().check(files, columns=columns, to="out")
    for name, value in (("MAX_ROWS", 4), ("MAX_COLUMNS", 1)):
        with monkeypatch.context() as smaller:
            smaller.setattr(excel, name, value)
            failed = world.failure(ExcelFormat().check, files, columns=columns, to="out")
        assert isinstance(failed.problem, OutputWrite)
        assert failed.problem.detail == "4 rows and 2 columns do not fit in a sheet of Excel"


def test_a_name_that_excel_refuses_is_a_failed_write(tmp_path: Path) -> None:
    parts = [FilePart((), {"a": INTEGER}, "one"), FilePart((), {"a": INTEGER}, "ONE")]
    failed = world.failure(ExcelFormat().combine, parts, tmp_path / "book.xlsx", to="out")
    assert isinstance(failed.problem, OutputWrite)
    assert (failed.problem.destination, "one" in failed.problem.detail.casefold()) == ("out", True)


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        (Decimal("1234567890123.45"), DecimalType(15, 2), None),
        (Decimal("12345678901234.56"), DecimalType(16, 2), "16 significant digits"),
        (10**15, INTEGER, None),
        (10**15 + 1, INTEGER, "16 significant digits"),
        (-(10**15 + 1), INTEGER, "16 significant digits"),
        (-123456789012345, INTEGER, None),
        (Decimal("0.000000000000001"), DecimalType(20, 15), None),
        ("1234567890123456", TEXT, None),
        ("x" * 32_767, TEXT, None),
        ("x" * 32_768, TEXT, "32,768 characters"),
        (date(1900, 3, 1), DATE, None),
        (datetime(1900, 3, 1), TIMESTAMP, None),
        (datetime(1900, 2, 28, 23), TIMESTAMP, "is before 1900-03-01"),
        (date(1900, 2, 28), DATE, "is before 1900-03-01"),
        (None, DATE, None),
    ],
)
def test_what_excel_cannot_hold(value: object, kind: Type, said: str | None) -> None:
    found = explain_unfit(value, kind)
    assert (said is None and found is None) or (said is not None and said in str(found))


def test_a_run_that_excel_cannot_hold_is_refused_with_the_row(tmp_path: Path) -> None:
    rows = [no_values(), no_values(whole=2**60)]
    failed = world.failure(by_excel, tmp_path, rows)
    assert isinstance(failed.problem, OutputWrite)
    assert "column `whole`, row 2" in failed.problem.detail
    assert not failed.retry_helps


def test_a_workbook_is_read_once(tmp_path: Path) -> None:
    make(tmp_path / "rows.xlsx", lambda _, sheet: sheet.write_column("A1", ["id", 1]))
    storage = ExcelStorage.open(world.source_of("excel", path_prefix="."), root=str(tmp_path))
    use, target = use_of({"id": INTEGER}, "rows.xlsx"), tmp_path / "run" / "rows.parquet"
    assert not storage.extract_file(use, tmp_path / "rows.xlsx", target)
    (tmp_path / "rows.xlsx").write_bytes(b"")
    assert not storage.extract_file(use, tmp_path / "rows.xlsx", target)
    assert pq.read_table(target).to_pylist() == [{"id": 1}]


def test_what_a_run_wrote_is_read_as_it_was_kept(tmp_path: Path) -> None:
    kept = tmp_path / HIDDEN / "out" / "version" / DATA / "part.parquet"
    kept.parent.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), kept)
    storage = ExcelStorage.open(world.source_of("excel", path_prefix="."), root=str(tmp_path))
    use = use_of({"id": INTEGER}, "out")
    assert not storage.extract_file(use, kept, tmp_path / "run" / "out.parquet")
    # A file of somebody else that is called so is no workbook.
    other = tmp_path / "rows.parquet"
    other.write_bytes(kept.read_bytes())
    failed = world.failure(storage.extract_file, use, other, tmp_path / "run" / "other.parquet")
    assert isinstance(failed.problem, DataLoad)
    assert "is not an Excel workbook" in failed.problem.detail


def test_a_workbook_that_is_gone_is_named(tmp_path: Path) -> None:
    source = tmp_path / "rows.xlsx"
    failed = world.failure(extract_excel, source, tmp_path / "out.parquet", use_of({"id": INTEGER}), ExcelFormat())
    assert isinstance(failed.problem, DataLoad)
    assert (failed.problem.detail, failed.retry_helps) == (f"`{source}`: No such file or directory", False)


def test_what_a_reader_has_to_know() -> None:
    assert ExcelFormat().options == {}
    assert ExcelFormat("S", "B:C", None, 3).options == {"sheet": "S", "range": "B:C", "header_row": 3}
    assert ExcelFormat(table="T").options == {"table": "T"}


def test_a_location_says_which_sheet(tmp_path: Path) -> None:
    def fill(book: xlsxwriter.Workbook, sheet: xlsxwriter.worksheet.Worksheet) -> None:
        sheet.write_column("A1", ["id", 1])
        book.add_worksheet("Other").write_column("A1", ["id", 2])

    make(tmp_path / "rows.xlsx", fill)
    use = use_of({"id": INTEGER}, "rows.xlsx")
    own = replace(use, locations=(replace(use.locations[0], options=(("sheet", "Other"),)),))
    (file,) = extract(tmp_path, own, kind="excel", sheet="Data")
    assert pq.read_table(file).to_pylist() == [{"id": 2}]
