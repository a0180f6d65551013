"""Definitions for files, found by looking at all values; they load the file, and guess nothing."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter

from dobonomodo.model import Dataset
from dobonomodo.storage.inference import Inferred, NotInferredError, infer, name_column


def inferred(root: Path, text: str, *, name: str = "rows.csv", encoding: str = "utf-8") -> Inferred:
    (root / name).write_bytes(text.encode(encoding))
    return infer(root / name)


def types(found: Inferred) -> dict[str, str]:
    return {column.name: str(column.kind) for column in found.columns}


def test_an_export_of_a_german_system(tmp_path: Path) -> None:
    text = (
        "Auswertung;;\r\nBeleg Nr.;Datum;Betrag in EUR;Größe\r\n"
        "7;31.01.2026;1.234,50;a\r\n8;01.02.2026;-0,05;\r\n9;05.02.2026;;ü\r\n"
    )
    found = inferred(tmp_path, text, name="export-2026-01.csv", encoding="cp1252")
    assert found.options == {
        "delimiter": ";", "encoding": "cp1252", "decimal": ",", "thousands": ".", "date_format": "dd.mm.yyyy", "skip_lines": 1,
    }  # fmt: skip
    assert types(found) == {
        "beleg_nr": "integer",
        "Datum": "date",
        "betrag_in_eur": "decimal(15,2)",
        "groesse": "string",
    }
    assert (found.table, found.period, found.template, found.rows) == (
        "export",
        "2026-01",
        "export-{{identifier}}.csv",
        3,
    )
    assert found.key == ("beleg_nr",)
    loaded = Dataset.from_data(found.dataset())
    assert [(column.name, column.source) for column in loaded.main_table.columns][2] == (
        "betrag_in_eur",
        "Betrag in EUR",
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "-20", ""], "integer"),
        (["1", "2.50"], "decimal(15,2)"),
        (["1234567890123456.5"], "decimal(18,2)"),
        (["10.5", "99.5"], "decimal(15,2)"),
        (["10.5", "-99.125"], "decimal(15,3)"),
        (["9" * 36 + ".5"], "decimal(38,2)"),
        (["9" * 37 + ".5"], "decimal(38,1)"),
        (["10.", "99."], "decimal(15,0)"),
        (["99999999999999999999"], "decimal(20,0)"),
        (["007", "008"], "string"),
        (["0", "0.5"], "decimal(15,2)"),
        (["1,50", "2,75"], "decimal(15,2)"),
        (["1.234,50", "2"], "decimal(15,2)"),
        (["1,234.50", "2"], "decimal(15,2)"),
        (["12 345,60", "7,5"], "decimal(15,2)"),
        (["1,234", "2,345"], "string"),
        (["1.50", "1,50"], "string"),
        (["true", "FALSE"], "boolean"),
        (["2026-01-31", ""], "date"),
        (["31/01/2026", "01/02/2026"], "date"),
        (["01/02/2026", "03/04/2026"], "string"),
        (["20260131", "20260228"], "date"),
        (["2026-01-31T08:30:00Z"], "timestamp"),
        (["NA", "1.5"], "decimal(15,2)"),
        (["NA", "x"], "string"),
        (["", ""], "string"),
        (["1" * 39], "string"),
        (["1e5"], "string"),
    ],
    ids=lambda each: str(each)[:40],
)
def test_types_by_all_values(tmp_path: Path, values: list[str], expected: str) -> None:
    text = "name;value\n" + "".join(f"x{number};{value}\n" for number, value in enumerate(values))
    assert types(inferred(tmp_path, text))["value"] == expected


def test_what_can_be_read_in_two_ways_is_text_with_a_note(tmp_path: Path) -> None:
    found = inferred(tmp_path, "a;b\n1,234;01/02/2026\n2,345;03/04/2026\n")
    assert (set(types(found).values()), len(found.notes)) == ({"string"}, 2)
    decided = inferred(tmp_path, "a;c\n1,234;1,5\n2,345;2,5\n")
    assert types(decided) == {"a": "decimal(15,3)", "c": "decimal(15,2)"}


def test_files_without_a_header_or_with_comments(tmp_path: Path) -> None:
    found = inferred(tmp_path, "1;2,50\n2;3,75\n")
    assert (found.options["has_header"], list(types(found).values())) == (False, ["integer", "decimal(15,2)"])
    found = inferred(tmp_path, "# made by hand\nid,v\n1,a\n# more\n2,b\n")
    assert (found.options, found.rows) == ({"comment": "#"}, 2)
    assert inferred(tmp_path, "id\tv\n1\ta\n", encoding="utf-16").options == {"delimiter": "\t", "encoding": "utf-16"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("\n\n", "empty"),
        ("a,b\n1,2\n1,2,3\n", "different lengths"),
        ('a,b\n1,"x"y\n', "quote"),
        ("a,A\n1,2\n", ""),
    ],
)
def test_what_is_not_clear_is_said(tmp_path: Path, text: str, said: str) -> None:
    if said:
        with pytest.raises(NotInferredError, match=said):
            inferred(tmp_path, text)
    else:
        assert inferred(tmp_path, text).options == {"has_header": False}


def test_a_workbook(tmp_path: Path) -> None:
    with xlsxwriter.Workbook(str(tmp_path / "plan-2026-01.xlsx")) as book:
        book.add_worksheet("Notes")
        sheet = book.add_worksheet("Plan")
        sheet.write("A1", "Plan 2026")
        sheet.write_row("B3", ["Konto", "Betrag"])
        sheet.write_row("B4", [4000, 0.1 + 0.2])
        sheet.write_row("B5", [4001, 1234567.89])
    found = infer(tmp_path / "plan-2026-01.xlsx", sheet="Plan")
    assert found.options == {"sheet": "Plan", "range": "B:C", "header_row": 3}
    assert (types(found), found.rows) == ({"Konto": "integer", "Betrag": "decimal(15,2)"}, 2)
    with pytest.raises(NotInferredError, match="empty"):
        infer(tmp_path / "plan-2026-01.xlsx")


def test_amounts_of_a_workbook_have_cents_and_its_texts_are_texts(tmp_path: Path) -> None:
    with xlsxwriter.Workbook(str(tmp_path / "plan.xlsx")) as book:
        sheet = book.add_worksheet()
        sheet.write_row("A1", ["account", "amount", "heads", "booked"])
        # A day that somebody typed as text stays one: a workbook has no form of dates for texts.
        sheet.write_row("A2", ["4000", 10.5, 3, "31.01.2026"])
        sheet.write_row("A3", ["4001", 99.5, 4, "01.02.2026"])
    found = infer(tmp_path / "plan.xlsx")
    assert types(found) == {"account": "integer", "amount": "decimal(15,2)", "heads": "integer", "booked": "string"}
    assert found.notes == ()


def test_a_parquet_file(tmp_path: Path) -> None:
    columns = {
        "id": pa.array([1], pa.int32()),
        "v": pa.array([Decimal("1.50")]),
        "x": pa.array([1.5]),
        "_period": ["2026-01"],
    }
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    found = infer(tmp_path / "rows.parquet")
    assert (types(found), len(found.notes)) == ({"id": "integer", "v": "decimal(3,2)", "x": "string"}, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Amount", "Amount"), ("Betrag in EUR", "betrag_in_eur"), ("Größe (m²)", "groesse_m2"), ("2026", "c_2026"), ("€", ""),
        ("Beleg-Nr.", "beleg_nr"),
    ],
)  # fmt: skip
def test_names(text: str, expected: str) -> None:
    assert name_column(text) == expected
