"""Cells of workbooks: what Excel shows, and what it hides."""

# ruff: noqa: DTZ001 - times in Excel have no zone

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from functools import partial
from pathlib import Path

import pytest
import xlsxwriter

from dobonomodo.storage import excel_cells
from dobonomodo.storage.excel_cells import (
    Area,
    WorkbookFault,
    column_number,
    find_faults,
    find_sheets,
    name_cell,
    open_cells,
    show_cell,
)


def make(path: Path, fill: Callable[[xlsxwriter.Workbook], None]) -> Path:
    with xlsxwriter.Workbook(str(path)) as book:
        fill(book)
    return path


def rewrite(path: Path, change: Callable[[bytes], bytes], part: str = "xl/worksheets/sheet1.xml") -> Path:
    """The same workbook with another text in one part."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, change(content) if name == part else content)
    return path


def cells_of(path: Path, **where: str | Area | None) -> list[list[str | None]]:
    given: dict[str, object] = {"sheet": None, "area": None, "table": None, **where}
    with open_cells(path, **given) as cells:  # type: ignore[arg-type]
        return list(cells.rows)


def fault_of(path: Path, **where: str | Area | None) -> WorkbookFault:
    with pytest.raises(WorkbookFault) as caught:
        cells_of(path, **where)
    return caught.value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.1 + 0.2, "0.3"), (1234567.89, "1234567.89"), (5.0, "5"), (-0.0, "0"), (1e20, "1" + "0" * 20), (1e-7, "0.0000001"),
        (True, "true"), (1e15, "1000000000000000"), (-0.00001, "-0.00001"), (123456789012345678.0, "123456789012346000"), (4711.0, "4711"),
        (False, "false"), (2**53 + 1, "9007199254740993"), (0.1234567890123456, "0.123456789012346"), (None, None),
        ("", None), ("007", "007"), (" a ", " a "), (date(2026, 1, 31), "2026-01-31"), (datetime(2026, 1, 31), "2026-01-31"),
        (datetime(2026, 1, 31, 8, 30), "2026-01-31T08:30:00"), (time(12), "12:00:00"), (timedelta(hours=25), "1 day, 1:00:00"),
    ],
)  # fmt: skip
def test_values_as_text(value: object, expected: str | None) -> None:
    assert show_cell(value) == expected


def test_addresses() -> None:
    assert [name_cell(row, column) for row, column in ((0, 0), (6, 1), (0, 25), (0, 26), (0, 701), (0, 702))] == [
        "A1", "B7", "Z1", "AA1", "ZZ1", "AAA1",
    ]  # fmt: skip
    assert [column_number(letters) for letters in ("A", "z", "AA", "ZZ", "AAA")] == [0, 25, 26, 701, 702]
    assert Area.parse("b3:F200") == Area(2, 1, 199, 5)
    assert Area.parse("B1:B1") == Area(0, 1, 0, 1)
    assert Area.parse("B:F") == Area(0, 1, None, 5)
    for wrong in ("", "B3", "F1:B2", "B3:F2", "1:2", "B0:C1"):
        with pytest.raises(ValueError, match=r"^$"):
            Area.parse(wrong)


def test_areas_that_have_a_cell_in_common() -> None:
    area = Area.parse("B3:D5")
    cells = [name_cell(row, column) for row in range(9) for column in range(9)]
    inside = {cell for cell in cells if area.overlaps(Area.parse(f"{cell}:{cell}"))}
    assert inside == {"B3", "C3", "D3", "B4", "C4", "D4", "B5", "C5", "D5"}
    # No corner of either is in the other.
    assert Area.parse("A4:H4").overlaps(area)
    assert area.overlaps(Area.parse("C1:C9"))
    assert (Area.parse("B:C").overlaps(Area.parse("B999:B999")), Area().overlaps(area)) == (True, True)
    assert not Area.parse("A:A").overlaps(area)


def test_a_part_of_a_sheet_and_a_table(tmp_path: Path) -> None:
    def fill(book: xlsxwriter.Workbook) -> None:
        book.add_worksheet("Notes").write("A1", "x")
        sheet = book.add_worksheet("Data")
        sheet.write_column("C3", ["k", 1, 2])
        sheet.add_table(
            "E5:F7", {"name": "Rates", "columns": [{"header": "a"}, {"header": "b"}], "data": [[1, 2], [3, 4]]}
        )

    path = make(tmp_path / "a.xlsx", fill)
    assert cells_of(path, sheet="Data", area=Area.parse("C3:D4")) == [["k", None], ["1", None]]
    assert cells_of(path, sheet="Data", area=Area.parse("B4:C4")) == [[None, "1"]]
    assert cells_of(path, table="Rates") == [["a", "b"], ["1", "2"], ["3", "4"]]
    assert "has 2 sheets" in fault_of(path).what
    assert fault_of(path, sheet="Dta").remedy == "existing sheets: `Notes`, `Data`"
    assert fault_of(path, table="Rats").remedy == "existing tables: `Rates`"


def test_a_table_without_a_header_row_is_refused(tmp_path: Path) -> None:
    def fill(book: xlsxwriter.Workbook) -> None:
        sheet = book.add_worksheet("Data")
        sheet.write_row("B2", ["id", "amount"])
        sheet.add_table("B3:C4", {"name": "Rates", "header_row": False, "data": [["a", 1], ["b", 2]]})
        sheet.add_table("E1:E2", {"name": "Other", "columns": [{"header": "a"}], "data": [[1]]})

    path = make(tmp_path / "a.xlsx", fill)
    fault = fault_of(path, table="Rates")
    assert (fault.what, "`Header Row`" in str(fault.remedy)) == ("has a table `Rates` without a header row", True)
    assert cells_of(path, table="Other") == [["a"], ["1"]]


def test_hidden_sheets_and_charts_are_not_shown(tmp_path: Path) -> None:
    def fill(book: xlsxwriter.Workbook) -> None:
        book.add_worksheet("Hidden").hide()
        book.add_worksheet("Very").very_hidden()
        chart = book.add_chart({"type": "line"})
        chart.add_series({"values": "=Data!$A$1:$A$2"})
        book.add_chartsheet("Chart").set_chart(chart)
        data = book.add_worksheet("Data")
        data.activate()
        data.set_first_sheet()

    path = make(tmp_path / "a.xlsx", fill)
    assert find_sheets(path) == {"Hidden": False, "Very": False, "Chart": False, "Data": True}


def test_rows_and_columns_before_the_first_value_are_there(tmp_path: Path) -> None:
    def fill(book: xlsxwriter.Workbook) -> None:
        sheet = book.add_worksheet("Data")
        sheet.write_row("C2", ["a", "b"])
        sheet.write("E4", "c")
        book.add_worksheet("Empty")

    path = make(tmp_path / "a.xlsx", fill)
    assert find_sheets(path) == {"Data": True, "Empty": True}
    assert cells_of(path, sheet="Data") == [
        [None] * 5, [None, None, "a", "b", None], [None] * 5, [None, None, None, None, "c"],
    ]  # fmt: skip
    assert cells_of(path, sheet="Data", area=Area.parse("D:D")) == [[None], ["b"], [None], [None]]
    assert cells_of(path, sheet="Data", area=Area.parse("D2:G3")) == [["b", None, None, None], [None] * 4]
    assert cells_of(path, sheet="Empty") == []


def test_a_name_that_does_not_exist_is_answered_by_the_first_ten_that_do(tmp_path: Path) -> None:
    def fill(book: xlsxwriter.Workbook) -> None:
        for number in range(12):
            book.add_worksheet(f"S{number}").write("A1", number)

    path = make(tmp_path / "a.xlsx", fill)
    shown = ", ".join(f"`S{number}`" for number in range(10))
    assert fault_of(path).what == f"has 12 sheets: {shown}"
    assert fault_of(path, sheet="S12").remedy == f"existing sheets: {shown}"
    assert fault_of(path, table="Rates").remedy == "there are no tables"


def test_a_workbook_that_is_too_large_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path / "a.xlsx", lambda book: book.add_worksheet().write("A1", 1))
    with zipfile.ZipFile(path) as archive:
        size = sum(each.file_size for each in archive.infolist())
    monkeypatch.setattr(excel_cells, "MAX_BYTES", size)
    assert cells_of(path) == [["1"]]
    monkeypatch.setattr(excel_cells, "MAX_BYTES", size - 1)
    assert fault_of(path).what == "is too large when it is unpacked"


def test_merged_cells_are_refused_where_they_are_read(tmp_path: Path) -> None:
    def fill(book: xlsxwriter.Workbook) -> None:
        sheet = book.add_worksheet()
        sheet.write_row("A1", ["a", "b", "c"])
        sheet.merge_range("A3:C3", "all")

    def refused(area: str | None, *, top: int, width: int) -> str | None:
        where = Area.parse(area) if area is not None else None
        with open_cells(path, sheet=None, area=where, table=None) as cells:
            try:
                cells.refuse_merged(top=top, width=width)
            except WorkbookFault as fault:
                return fault.what
        return None

    path = make(tmp_path / "a.xlsx", fill)
    assert "merged cells A3:C3 in sheet `Sheet1`" in str(refused(None, top=0, width=3))
    # A part of them is enough.
    assert all(refused(area, top=0, width=1) for area in ("A:C", "B:B", "C1:C3"))
    assert refused(None, top=2, width=1)
    assert not refused(None, top=3, width=3)
    assert not refused("A1:C2", top=0, width=3)
    assert not refused("D:E", top=0, width=2)


def test_errors_and_formulas_without_a_value_are_found(tmp_path: Path) -> None:
    def fill(book: xlsxwriter.Workbook) -> None:
        sheet = book.add_worksheet()
        sheet.write_formula("A1", "=1/0", None, "#DIV/0!")
        sheet.write_string("B1", "#REF!")
        sheet.write_formula("C2", "=A1", None, 5)
        sheet.write_formula("D2", "=A1", None, 6)

    path = make(tmp_path / "a.xlsx", fill)
    rewrite(path, lambda xml: xml.replace(b"<v>6</v>", b""))
    faults = find_faults(path, "Sheet1")
    assert {name_cell(*place): rule.split(";")[0] for place, rule in faults.items()} == {
        "A1": "`#DIV/0!` is an error of Excel",
        "D2": "is a formula without a computed value",
    }


@pytest.mark.parametrize(
    "change",
    [
        lambda xml: re.sub(rb"<(/?)(worksheet|sheetData|row|c|v|f)\b", rb"<\1x:\2", xml).replace(b"xmlns=", b"xmlns:x="),
        lambda xml: re.sub(rb'"', b"'", xml),
        lambda xml: re.sub(rb' r="[A-Z]*[0-9]+"', b"", xml),
    ],
    ids=["prefixes", "quotes", "no addresses"],
)  # fmt: skip
def test_errors_are_found_however_the_sheet_is_written(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    def fill(book: xlsxwriter.Workbook) -> None:
        book.add_worksheet().write_formula("A1", "=1/0", None, "#N/A")

    path = rewrite(make(tmp_path / "a.xlsx", fill), change)
    assert find_faults(path, "Sheet1") == {(0, 0): "`#N/A` is an error of Excel"}


@pytest.mark.parametrize(
    ("cells", "wrong"),
    [
        ('<c r="A1"><v>1</v></c><c r="B1"><v> -1.5E+20 </v></c><c r="C1"><v>.5</v></c><c r="D1"/><c r="E1"><v></v></c>', ""),
        ('<c r="A1"><v>1,5</v></c><c r="B1"><v>1e5000</v></c><c r="C1" t="n"><v>x</v></c>', "A1 B1 C1"),
        ('<c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c>', ""),
        ('<c r="A1" t="s"><v>2</v></c><c r="B1" t="s"><v>-1</v></c><c r="C1" t="s"><v>\u0661</v></c>', "A1 B1 C1"),
        ('<c r="A1" t="b"><v>0</v></c><c r="B1" t="b"><v>1</v></c><c r="C1" t="b"><v>2</v></c>', "C1"),
        ('<c r="A1" t="str"><v>x</v></c><c r="B1" t="inlineStr"><is><t>x</t></is></c><c r="C1" t="d"><v>2026-01-31</v></c>', ""),
        ('<c r="A1" t="str"><f>B1</f></c><c r="B1" t="inlineStr"><f>1</f><is><t>x</t></is></c>', "A1"),
        ('<c r="A1" t="odd"><v>x</v></c><c r="B1" t="odd"><v></v></c>', "A1"),
        ('<c r="A1"><v>1</v></c><c r="B1"><v>1</v></c><c r="A1"><v>2</v></c>', "A1"),
        ('<c t="e"><v>#N/A</v></c><c><v>1</v></c><c t="e"/><c r="F1" t="e"/><c t="e"/>', "A1 C1 F1 G1"),
        ('<c><v>1</v></c></row><row><c t="e"/><c t="e"/></row><row r="7"><c t="e"/></row><row><c><f>1</f></c>', "A2 B2 A7 A8"),
    ],
)  # fmt: skip
def test_values_that_are_not_of_their_kind_are_found(tmp_path: Path, cells: str, wrong: str) -> None:
    path = make(tmp_path / "a.xlsx", lambda book: book.add_worksheet().write_row("A1", ["one", "two"]))
    rows = f"<sheetData><row>{cells}</row></sheetData>".encode()
    rewrite(path, lambda xml: re.sub(rb"<sheetData>.*</sheetData>", lambda _: rows, xml))
    assert [name_cell(*place) for place in find_faults(path, "Sheet1")] == wrong.split()


def test_what_is_wrong_is_said_of_each_cell(tmp_path: Path) -> None:
    path = make(tmp_path / "a.xlsx", lambda book: book.add_worksheet().write("A1", 1))
    cells = b'<c r="A1" t="e"/><c r="B1" t="e"><v>#REF!</v></c><c r="C1"><f>1</f></c><c r="D1"><v>x</v></c>'
    rewrite(path, lambda xml: re.sub(rb'<c r="A1">.*</c>', lambda _: cells, xml))
    assert [rule.split(";")[0] for rule in find_faults(path, "Sheet1").values()] == [
        "`error` is an error of Excel",
        "`#REF!` is an error of Excel",
        "is a formula without a computed value",
        "is damaged",
    ]


@pytest.mark.parametrize(
    ("part", "old", "new", "said"),
    [
        ("xl/worksheets/sheet1.xml", b'r="A1"', b'r="1A"', "cannot be read as a workbook"),
        ("xl/worksheets/sheet1.xml", b"spreadsheetml/2006/main", b"other", "worksheet` is not a sheet"),
        ("xl/_rels/workbook.xml.rels", b"sheet1.xml", b"sheet9.xml", ""),
        ("xl/_rels/workbook.xml.rels", b"</Relationships>", b"", "cannot be read as a workbook"),
        ("xl/workbook.xml", b"</workbook>", b"", "cannot be read as a workbook"),
        ("xl/styles.xml", b"</styleSheet>", b"", "cannot be read as a workbook"),
    ],
)
def test_a_damaged_part_is_refused(tmp_path: Path, part: str, old: bytes, new: bytes, said: str) -> None:
    path = make(tmp_path / "a.xlsx", lambda book: book.add_worksheet().write("A1", 1))
    rewrite(path, lambda xml: xml.replace(old, new), part)
    assert said in fault_of(path).what


def test_a_sheet_is_found_wherever_its_part_is(tmp_path: Path) -> None:
    path = make(tmp_path / "a.xlsx", lambda book: book.add_worksheet().write_formula("A1", "=1/0", None, "#N/A"))
    for target in (b'"/xl/worksheets/sheet1.xml"', b'"./other/../Worksheets/SHEET1.xml"'):
        rewrite(path, partial(re.compile(rb'(?i)"[^"]*sheet1.xml"').sub, target), "xl/_rels/workbook.xml.rels")
        assert list(find_faults(path, "Sheet1")) == [(0, 0)]
    with pytest.raises(WorkbookFault, match="has no part for sheet `Sheet2`"):
        find_faults(path, "Sheet2")
    with zipfile.ZipFile(tmp_path / "b.xlsx", "w") as archive:
        archive.writestr("xl/other.xml", "<a/>")
    with pytest.raises(WorkbookFault, match=r"has no `xl/workbook\.xml`"):
        find_faults(tmp_path / "b.xlsx", "Sheet1")


def test_a_text_that_the_workbook_does_not_have_is_found(tmp_path: Path) -> None:
    path = make(tmp_path / "a.xlsx", lambda book: book.add_worksheet().write("A1", 0))
    rewrite(path, lambda xml: xml.replace(b'<c r="A1">', b'<c r="A1" t="s">'))
    with zipfile.ZipFile(path) as archive:
        assert "xl/sharedStrings.xml" not in archive.namelist()
    (fault,) = find_faults(path, "Sheet1").values()
    assert "is damaged" in fault


def test_a_document_type_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "a.xlsx", lambda book: book.add_worksheet().write("A1", 1))
    rewrite(path, lambda xml: xml.replace(b"<worksheet", b'<!DOCTYPE x [<!ENTITY a "b">]><worksheet', 1))
    with pytest.raises(WorkbookFault):
        find_faults(path, "Sheet1")


def test_days_of_both_calendars_of_excel(tmp_path: Path) -> None:
    for system in (False, True):
        with xlsxwriter.Workbook(str(tmp_path / "a.xlsx"), {"date_1904": system}) as book:
            form = book.add_format({"num_format": "dd/mm/yyyy"})
            book.add_worksheet().write_datetime("A1", datetime(2026, 1, 31), form)
        assert cells_of(tmp_path / "a.xlsx") == [["2026-01-31"]]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"PK\x03\x04" + b"\0" * 100, b"a,b\n1,2\n"])
def test_what_is_no_workbook(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.xlsx").write_bytes(content)
    assert "cannot be read as a workbook" in fault_of(tmp_path / "a.xlsx").what
