"""Cells of workbooks: what Excel shows, and what it hides."""

# ruff: noqa: DTZ001 - times in Excel have no zone

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from pathlib import Path

import pytest
import xlsxwriter

from dobonomodo.storage.excel_cells import Area, WorkbookFault, find_faults, name_cell, open_cells, show_cell


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
        (0.1 + 0.2, "0.3"), (1234567.89, "1234567.89"), (5.0, "5"), (-0.0, "0"), (1e20, "1e+20"), (1e-7, "1e-07"), (True, "true"),
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
    assert Area.parse("b3:F200") == Area(2, 1, 199, 5)
    assert Area.parse("B:F") == Area(0, 1, None, 5)
    for wrong in ("", "B3", "F1:B2", "B3:F2", "1:2", "B0:C1"):
        with pytest.raises(ValueError, match=r"^$"):
            Area.parse(wrong)


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


def test_merged_cells_are_refused_where_they_are_read(tmp_path: Path) -> None:
    def fill(book: xlsxwriter.Workbook) -> None:
        sheet = book.add_worksheet()
        sheet.merge_range("A1:B1", "both")
        sheet.write_row("A2", ["a", "b"])

    path = make(tmp_path / "a.xlsx", fill)
    assert "merged cells A1:B1" in fault_of(path).what
    assert cells_of(path, area=Area.parse("A2:B2")) == [["a", "b"]]


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
