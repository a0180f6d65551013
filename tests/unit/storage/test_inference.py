"""Definitions for files, found by looking at all values; they load the file, and guess nothing."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
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
        (["9" * 18], "integer"),
        (["9" * 19], "decimal(19,0)"),
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


def test_words_for_missing_values_are_found_where_they_cannot_be_texts(tmp_path: Path) -> None:
    found = inferred(tmp_path, "name;a;b\nx;NA;1\ny;1.5;-\nz;2.5;3\n")
    assert found.options == {"delimiter": ";", "null_values": ["NA", "-"]}
    assert types(found) == {"name": "string", "a": "decimal(15,2)", "b": "integer"}
    for text in ("name;a\nx;NA\ny;z\n", "name;a\nx;NA\ny;NA\n", "name;a\nNA;NA\ny;1\n"):
        found = inferred(tmp_path, text)
        assert (found.options, types(found)["a"]) == ({"delimiter": ";"}, "string"), text


def test_what_can_be_read_in_two_ways_is_text_with_a_note(tmp_path: Path) -> None:
    found = inferred(tmp_path, "a;b\n1,234;01/02/2026\n2,345;03/04/2026\n")
    assert (set(types(found).values()), len(found.notes)) == ({"string"}, 2)
    assert (found.key, found.options) == ((), {"delimiter": ";"})
    found = inferred(tmp_path, "a;b\n1.234;x\n2.345;y\n")
    assert (types(found)["a"], len(found.notes)) == ("string", 1)
    for sure in ("1.2345", "1234.567", "0.234"):
        assert inferred(tmp_path, f"a;b\n1.234;x\n{sure};y\n").notes == ()
    decided = inferred(tmp_path, "a;c\n1,234;1,5\n2,345;2,5\n")
    assert types(decided) == {"a": "decimal(15,3)", "c": "decimal(15,2)"}


def test_dates_have_the_form_that_most_columns_have(tmp_path: Path) -> None:
    found = inferred(tmp_path, "a;b;c\n31.01.2026;30.01.2026;2026-01-31\n")
    assert found.options == {"delimiter": ";", "date_format": "dd.mm.yyyy"}
    assert list(types(found).values()) == ["date", "date", "string"]
    assert all("`c`" in note for note in found.notes)
    found = inferred(tmp_path, "a;b\n2026-01-31;x\n")
    assert (found.options, types(found)["a"]) == ({"delimiter": ";"}, "date")
    # One column that is sure decides for the other.
    found = inferred(tmp_path, "a;b\n31/01/2026;01/02/2026\n")
    assert (types(found), found.notes) == ({"a": "date", "b": "date"}, ())


def test_values_that_no_type_holds_together_are_text(tmp_path: Path) -> None:
    found = inferred(tmp_path, "a;b\n" + "1" * 30 + ";x\n0." + "1" * 20 + ";y\n")
    assert types(found) == {"a": "string", "b": "string"}
    assert found.notes == ("`a` has values that are refused in every other type: text",)


def test_signs_are_set_where_numbers_have_them(tmp_path: Path) -> None:
    found = inferred(tmp_path, "n;v\n1.234.567;x\n2.345.678;y\n")
    assert (found.options, types(found)["n"]) == ({"delimiter": ";", "decimal": ",", "thousands": "."}, "integer")
    # Those in texts say nothing.
    assert inferred(tmp_path, "n;v\n1;a.b,c\n2;d.e,f\n").options == {"delimiter": ";"}
    assert inferred(tmp_path, "n;v\n1,5;a.b\n2,5;c.d\n").options == {"delimiter": ";", "decimal": ","}


def test_files_without_a_header_or_with_comments(tmp_path: Path) -> None:
    found = inferred(tmp_path, "1;2,50\n2;3,75\n")
    assert (found.options["has_header"], list(types(found).values())) == (False, ["integer", "decimal(15,2)"])
    found = inferred(tmp_path, "# made by hand\nid,v\n1,a\n# more\n2,b\n")
    assert (found.options, found.rows) == ({"comment": "#"}, 2)
    assert inferred(tmp_path, "id\tv\n1\ta\n", encoding="utf-16").options == {"delimiter": "\t", "encoding": "utf-16"}


def test_a_file_of_one_column(tmp_path: Path) -> None:
    found = inferred(tmp_path, "amount\n1\n2\n")
    assert (found.options, types(found), found.rows) == ({}, {"amount": "integer"}, 2)
    assert inferred(tmp_path, "title\na b\nc d\n").options == {}


def test_a_first_line_that_does_not_name_all_columns_has_values(tmp_path: Path) -> None:
    for text in ("Bob,5\nAnn,6\n", "id,7\n1,2\n", "id,-1.5 \n1,2\n"):
        found = inferred(tmp_path, text)
        assert (found.options["has_header"], list(types(found))) == (False, ["column_1", "column_2"]), text
        assert (found.rows, bool(found.notes)) == (2, text.startswith("id"))
    for text in ("id,2nd\n1,2\n", "id,v1.5\n1,2\n"):
        assert "has_header" not in inferred(tmp_path, text).options, text


def test_years_and_days_are_names_above_amounts(tmp_path: Path) -> None:
    found = inferred(tmp_path, "account,2025,31.01.2026\n4000,1.50,2.50\n4100,3,4\n")
    assert types(found) == {"account": "integer", "c_2025": "decimal(15,2)", "c_31_01_2026": "decimal(15,2)"}
    assert ([column.source for column in found.columns], found.options) == (["account", "2025", "31.01.2026"], {})
    (note,) = found.notes
    assert "`2025`, `31.01.2026`" in note


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("id,id\n1,2\n", ["id", "id_2"]),
        ("Id,ID\n1,2\n", ["Id", "ID_2"]),
        ("id,,amount\n1,x,2.5\n", ["id", "column_2", "amount"]),
        ("id,amount,\n1,2.5,\n", ["id", "amount", "column_3"]),
    ],
)
def test_names_that_do_not_tell_columns_apart_are_skipped_with_a_note(
    tmp_path: Path, text: str, names: list[str]
) -> None:
    found = inferred(tmp_path, text)
    assert (found.options, found.rows, list(types(found))) == ({"has_header": False, "skip_lines": 1}, 1, names)
    assert (types(found)[names[0]], len(found.notes)) == ("integer", 1)
    found = inferred(tmp_path, f"# made by hand\n\n{text}")
    assert (found.options["skip_lines"], found.rows) == (3, 1)


@pytest.mark.parametrize("first", ["sep=;", '"SEP=;"'])
def test_a_line_that_tells_the_separator_is_skipped(tmp_path: Path, first: str) -> None:
    found = inferred(tmp_path, f"{first}\r\nid;amount\r\n1;2,5\r\n")
    assert found.options == {"delimiter": ";", "decimal": ",", "skip_lines": 1}
    assert types(found) == {"id": "integer", "amount": "decimal(15,2)"}
    found = inferred(tmp_path, f"{first}\nid\n1\n2\n")
    assert (found.options, found.rows) == ({"delimiter": ";", "skip_lines": 1}, 2)


def test_lines_before_the_records_are_skipped_and_comments_are_not_counted_twice(tmp_path: Path) -> None:
    found = inferred(tmp_path, "# made by hand\nReport of January\n\nid;v\n1;a\n# more\n2;b\n")
    assert found.options == {"delimiter": ";", "comment": "#", "skip_lines": 3}
    assert (types(found), found.rows) == ({"id": "integer", "v": "string"}, 2)
    # More of them than there are records.
    found = inferred(tmp_path, "Report\nof\nJanuary\n\nid;v\n1;a\n")
    assert (found.options, found.rows) == ({"delimiter": ";", "skip_lines": 4}, 1)
    found = inferred(tmp_path, "x;y\nz;w\na;b;c\n1;2;3\n")
    assert (found.options, found.rows) == ({"delimiter": ";", "skip_lines": 2}, 1)
    found = inferred(tmp_path, ";;\nid;v;w\n1;a;b\n2;c;d\n")
    assert (found.options["skip_lines"], found.rows) == (1, 2)


def test_the_encoding_is_the_first_that_has_all_bytes(tmp_path: Path) -> None:
    text = "id,name\n1,Größe\n"
    assert "encoding" not in inferred(tmp_path, text).options
    assert inferred(tmp_path, text, encoding="cp1252").options == {"encoding": "cp1252"}
    # No character of cp1252 has this byte.
    assert inferred(tmp_path, "id,name\n1,\x81\n", encoding="latin-1").options == {"encoding": "latin-1"}


@pytest.mark.parametrize("other", ["2026-01-31", "01/31/2026"])
def test_dates_in_two_notations_are_told_apart(tmp_path: Path, other: str) -> None:
    found = inferred(tmp_path, f"a;b;c\n31.01.2026;28.02.2026;{other}\n13.01.2026;15.02.2026;{other}\n")
    assert types(found) == {"a": "date", "b": "date", "c": "string"}
    assert found.notes == (f"`c` has dates such as `{other}`, other columns have dates as `dd.mm.yyyy`: text",)


def test_names_follow_blank_lines(tmp_path: Path) -> None:
    found = inferred(tmp_path, "\n  \nid\n1\n2\n")
    assert (types(found), found.rows) == ({"id": "integer"}, 2)


def test_a_name_may_have_two_lines(tmp_path: Path) -> None:
    found = inferred(tmp_path, 'Report\n"Amount\nin EUR",id\n1.5,2\n2.5,3\n')
    assert ([column.source for column in found.columns], found.options) == (["Amount\nin EUR", "id"], {"skip_lines": 1})
    found = inferred(tmp_path, '"Amount\nin EUR","amount\nin eur"\n1.5,2\n2.5,3\n')
    assert (found.options, found.rows) == ({"has_header": False, "skip_lines": 3}, 2)


def test_a_sign_in_one_value_is_no_separator(tmp_path: Path) -> None:
    found = inferred(tmp_path, "name\nb\nc;d\n")
    assert (types(found), found.rows) == ({"name": "string"}, 2)
    assert found.options == {}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress(b"id\n1\n", mtime=0), "is compressed with gzip; decompress it"),
        (b"PAR1 and no more", "cannot be read as Parquet"),
        ("id\n1\n".encode("utf-16") + b"\0", "rows.csv"),
        ("# more\nid\n1\n".encode("utf-16") + b"\0", "rows.csv"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "rows.csv").write_bytes(content)
    with pytest.raises(NotInferredError, match=r"rows\.csv") as failed:
        infer(tmp_path / "rows.csv")
    assert said in str(failed.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("\n\n", "empty"),
        ("sep=;\n", "empty"),
        ("a,b\n1,2\n1,2,3\n", "different lengths:\n.*line 3: 2 values expected, 3 found"),
        ("id,n\n1,2,3\n4\n", "line 2: 2 values expected, 3 found\n.*line 3: 2 values expected, 1 found"),
        ('a,b\n1,"x"y\n', "quote"),
    ],
)
def test_what_is_not_clear_is_said(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(NotInferredError, match=said):
        inferred(tmp_path, text)


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


def test_the_first_sheet_that_is_shown(tmp_path: Path) -> None:
    with xlsxwriter.Workbook(str(tmp_path / "plan.xlsx")) as book:
        hidden, shown = book.add_worksheet("Hidden"), book.add_worksheet("Shown")
        hidden.write_column("A1", ["h", 1])
        hidden.hide()
        shown.write_column("A1", ["s", 1])
        shown.activate()
        shown.set_first_sheet()
    assert (infer(tmp_path / "plan.xlsx").options, infer(tmp_path / "plan.xlsx", sheet="Hidden").options) == (
        {"sheet": "Shown"},
        {"sheet": "Hidden"},
    )


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


def test_a_sheet_without_names_of_all_columns(tmp_path: Path) -> None:
    def fault_of(*rows: Sequence[object], merged: str | None = None) -> str:
        with xlsxwriter.Workbook(str(tmp_path / "plan.xlsx")) as book:
            sheet = book.add_worksheet("Plan")
            for at, row in enumerate(rows):
                sheet.write_row(at, 0, row)
            if merged is not None:
                sheet.merge_range(merged, "both")
        with pytest.raises(NotInferredError) as failed:
            infer(tmp_path / "plan.xlsx")
        return str(failed.value)

    assert "has no row with the names of all columns" in fault_of(["id", 7], [1, 2])
    assert "since it has no name for column 2" in fault_of(["id", None, "v"], [1, None, 2])
    assert "since it has the name `ID` twice" in fault_of(["id", "ID"], [1, 2])
    assert "merged cells A3:B3" in fault_of(["id", "v"], [1, 2], merged="A3:B3")
    assert "; split them in Excel" in fault_of(["id", "v"], merged="A3:B3")


def test_errors_of_excel_are_named(tmp_path: Path) -> None:
    with xlsxwriter.Workbook(str(tmp_path / "plan.xlsx")) as book:
        sheet = book.add_worksheet("Plan")
        sheet.write_row("A1", ["id", "v"])
        for row in range(1, 26):
            sheet.write_formula(row, 1, "=1/0", None, "#DIV/0!")
    with pytest.raises(NotInferredError) as failed:
        infer(tmp_path / "plan.xlsx")
    assert "sheet `Plan`, cell B2, column `v`: `#DIV/0!` is an error of Excel\n" in str(failed.value)
    assert str(failed.value).endswith("\n  and 5 more")


def test_a_sheet_is_read_where_its_names_are(tmp_path: Path) -> None:
    def found_in(*rows: Sequence[object], left: int = 0) -> Inferred:
        with xlsxwriter.Workbook(str(tmp_path / "plan.xlsx")) as book:
            sheet = book.add_worksheet("Plan")
            for at, row in enumerate(rows):
                sheet.write_row(at, left, row)
        return infer(tmp_path / "plan.xlsx")

    names, first, second = ["id", "v"], [1, "a"], [2, "b"]
    assert list(types(found_in(["account", 2025, 2026], [4000, 1.5, 2.5]))) == ["account", "c_2025", "c_2026"]
    found = found_in(names, first, [None, None], second)
    assert (found.options, found.rows) == ({}, 2)
    found = found_in(["Plan"], names, first, second)
    assert (found.options, found.rows, types(found)) == ({"header_row": 2}, 2, {"id": "integer", "v": "string"})
    assert found_in(names, first, second, left=26).options == {"range": "AA:AB"}
    # A remark beside the rows is left out.
    found = found_in([None, None, None, "x"], names, first, second)
    assert (found.options, found.rows) == ({"range": "A:B", "header_row": 2}, 2)


def test_a_merged_title_is_above_the_names(tmp_path: Path) -> None:
    with xlsxwriter.Workbook(str(tmp_path / "plan.xlsx")) as book:
        sheet = book.add_worksheet("Plan")
        sheet.merge_range("A1:C1", "Report of January")
        sheet.write_row("A3", ["id", "name", "amount"])
        sheet.write_row("A4", ["a", "x", 1.5])
    found = infer(tmp_path / "plan.xlsx")
    assert (found.options, found.rows) == ({"header_row": 3}, 1)


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
    assert (found.rows, found.options) == (1, {})
    pq.write_table(pa.table({"_at": ["w"], "In EUR": ["x"], "in-eur": ["y"], "€": ["z"]}), tmp_path / "rows.parquet")
    found = infer(tmp_path / "rows.parquet")
    assert [(each.name, each.source) for each in found.columns] == [
        ("in_eur", "In EUR"), ("in_eur_2", "in-eur"), ("column_3", "€"),
    ]  # fmt: skip
    assert Dataset.from_data(found.dataset()).main_table.name == "rows"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Amount", "Amount"), ("Betrag in EUR", "betrag_in_eur"), ("Größe (m²)", "groesse_m2"), ("2026", "c_2026"), ("€", ""),
        ("Beleg-Nr.", "beleg_nr"),
    ],
)  # fmt: skip
def test_names(text: str, expected: str) -> None:
    assert name_column(text) == expected


class TestKeys:
    def many(self, root: Path, count: int, header: str, row: str) -> Inferred:
        return inferred(
            root, header + "\n" + "".join(row.format(n=n, half=n // 2, odd=n % 2) + "\n" for n in range(count))
        )

    def test_a_column_is_a_key_by_its_name_or_by_many_rows(self, tmp_path: Path) -> None:
        found = self.many(tmp_path, 49, "code,v", "c{n},x")
        assert (found.key, found.other_keys) == ((), (("code",),))
        found = self.many(tmp_path, 50, "code,v", "c{n},x")
        assert (found.key, found.other_keys) == (("code",), ())
        found = self.many(tmp_path, 2, "code,line_nr,line_id,v", "c{n},{n},{n},x")
        assert (found.key, found.other_keys) == (("line_nr",), (("line_id",), ("code",)))
        (described,) = [each for each in columns_of(found) if each["name"] == "line_nr"]
        assert described == {"name": "line_nr", "type": "integer", "nullable": False}

    def test_few_other_keys_are_told(self, tmp_path: Path) -> None:
        found = self.many(tmp_path, 3, "a,b,c,d,e", "a{n},b{n},c{n},d{n},e{n}")
        assert (found.key, found.other_keys) == ((), (("a",), ("b",), ("c",)))
        # Among the first columns alone, two are searched for that are a key together.
        found = self.many(tmp_path, 60, "a,b,c,d,e,half,odd", "a,b,c,d,e,h{half},o{odd}")
        assert (found.key, found.other_keys) == ((), ())

    def test_what_is_no_key(self, tmp_path: Path) -> None:
        # One row, an amount, and a column that lacks values.
        assert self.many(tmp_path, 1, "id,v", "{n},x").key == ()
        found = self.many(tmp_path, 60, "v,amount", "x,{n}.25")
        assert (found.key, found.other_keys) == ((), ())
        found = inferred(tmp_path, "id,v\n1,x\n2,x\n,x\n")
        assert (found.key, found.other_keys) == ((), ())
        assert "natural_key_columns" not in found.dataset()

    def test_two_columns_may_be_a_key_together(self, tmp_path: Path) -> None:
        found = self.many(tmp_path, 60, "half,odd,v", "h{half},o{odd},x")
        assert (found.key, found.other_keys) == (("half", "odd"), ())
        found = self.many(tmp_path, 10, "half_id,odd_id,v", "{half},{odd},x")
        assert found.key == ("half_id", "odd_id")
        assert found.dataset()["natural_key_columns"] == ["half_id", "odd_id"]
        found = self.many(tmp_path, 10, "half_id,odd,v", "{half},{odd},x")
        assert (found.key, found.other_keys) == ((), (("half_id", "odd"),))


def columns_of(found: Inferred) -> list[dict[str, object]]:
    table = found.dataset()["main_table"]
    assert isinstance(table, dict)
    columns: list[dict[str, object]] = table["columns"]
    return columns


def test_columns_get_names_that_differ_and_say_what_they_are_called_in_the_file(tmp_path: Path) -> None:
    found = inferred(tmp_path, "A b,a-b,A_B,€,_hidden\n1,2,3,4,5\n")
    assert [(each["name"], each.get("source")) for each in columns_of(found)] == [
        ("a_b", "A b"), ("a_b_2", "a-b"), ("A_B_3", "A_B"), ("column_4", "€"),
    ]  # fmt: skip
    assert [each.get("source") for each in columns_of(inferred(tmp_path, "Amount,amount €\n1,2\n"))] == [
        None,
        "amount €",
    ]


@pytest.mark.parametrize(
    ("name", "table", "period", "template"),
    [
        ("rows.csv", "rows", None, "rows.csv"),
        ("2026-01.csv", "data", "2026-01", "{{identifier}}.csv"),
        ("Konten_2026-12.csv", "Konten", "2026-12", "Konten_{{identifier}}.csv"),
        ("rows-2026-13.csv", "rows_2026_13", None, "rows-2026-13.csv"),
        ("rows-12026-01.csv", "rows_12026_01", None, "rows-12026-01.csv"),
    ],
)
def test_the_period_is_in_the_name_of_the_file(
    tmp_path: Path, name: str, table: str, period: str | None, template: str
) -> None:
    found = inferred(tmp_path, "id\n1\n", name=name)
    assert (found.table, found.period, found.template) == (table, period, template)
