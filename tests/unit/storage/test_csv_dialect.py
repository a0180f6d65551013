"""Dialects of CSV: definitions that are checked, files as people have them, and what we write is read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import DATE, INTEGER, TEXT, DecimalType
from dobonomodo.model.json_schema import make_schema
from dobonomodo.problems.definition import DuplicateName, InvalidValue, UnknownKey
from dobonomodo.problems.run import DataLoad, OutputWrite
from dobonomodo.storage import check_locations, csv_dialect, options_by_type
from dobonomodo.storage.csv_dialect import Dialect, PlainFile, make_plain
from tests import world
from tests.unit.model.loading import found, load, sound
from tests.unit.storage.reading import extract, refused, use_of
from tests.unit.storage.round_trip import by_csv, no_values

COLUMNS: dict[str, Type] = {"day": DATE, "centre": TEXT, "amount": DecimalType(15, 2)}
ROWS = [
    {"day": date(2026, 1, 31), "centre": "Köln €", "amount": Decimal("1234.50")},
    {"day": None, "centre": None, "amount": Decimal("-0.05")},
]
GERMAN: dict[str, Any] = {
    "delimiter": ";",
    "encoding": "cp1252",
    "decimal": ",",
    "thousands": ".",
    "date_format": "dd.mm.yyyy",
}
TEXT_OF_ROWS = "day;centre;amount\n31.01.2026;Köln €;1.234,50\n;;-0,05\n"


def read(root: Path, columns: Mapping[str, Type], **options: Any) -> list[dict[str, Any]]:
    sources = options.pop("sources", {})
    use = use_of(columns, "rows.csv", sources=sources)
    (file,) = extract(root, use, **options)
    assert not list(root.rglob("*.text"))
    return [{use.name_of(name): value for name, value in row.items()} for row in pq.read_table(file).to_pylist()]


class TestFiles:
    def test_an_export_of_a_german_system(self, tmp_path: Path) -> None:
        (tmp_path / "rows.csv").write_bytes(TEXT_OF_ROWS.encode("cp1252"))
        assert read(tmp_path, COLUMNS, **GERMAN) == ROWS

    @pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be"])
    def test_utf16_with_and_without_a_mark(self, tmp_path: Path, codec: str) -> None:
        (tmp_path / "rows.csv").write_bytes(TEXT_OF_ROWS.encode(codec))
        assert read(tmp_path, COLUMNS, **{**GERMAN, "encoding": "utf-16"}) == ROWS

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
    def test_lines_before_the_header_and_comments(self, tmp_path: Path, end: str) -> None:
        lines = [
            "Report; of January", "", "id,note", "# a comment, 1", '1,"a', '# no comment"', "#", "2,5\" pipe", "#,", "3,b # c",
        ]  # fmt: skip
        (tmp_path / "rows.csv").write_bytes(end.join(lines).encode())
        found = read(tmp_path, {"id": INTEGER, "note": TEXT}, skip_lines=2, comment="#")
        assert [row["note"] for row in found] == [f"a{end}# no comment", '5" pipe', "b # c"]

    def test_lines_are_those_of_the_file(self, tmp_path: Path) -> None:
        text = 'Report\n#\nid,amount\n1,2\n# x\n\n# y\nx,2\n2,3,4\n#\n3,"a\nb"\n'
        (tmp_path / "rows.csv").write_text(text)
        problem = refused(
            tmp_path, use_of({"id": INTEGER, "amount": DecimalType(5, 2)}, "rows.csv"), skip_lines=1, comment="#"
        )
        assert [(cell.line, cell.value) for cell in problem.cells] == [(8, "x"), (9, None), (11, "a\nb")]

    def test_values_that_mean_null_are_without_quotes(self, tmp_path: Path) -> None:
        (tmp_path / "rows.csv").write_text('id,note\nNA,NA\n-,"NA"\n1,-\n')
        found = read(tmp_path, {"id": INTEGER, "note": TEXT}, null_values=["NA", "-"])
        assert [(row["id"], row["note"]) for row in found] == [(None, None), (None, "NA"), (1, None)]

    def test_columns_have_the_names_of_the_file(self, tmp_path: Path) -> None:
        (tmp_path / "rows.csv").write_text('"Beleg Nr.",kostenstelle,amount\n7,K1,x\n')
        columns: dict[str, Type] = {"id": INTEGER, "centre": TEXT, "value": DecimalType(5, 2), "amount": TEXT}
        sources = {"id": "Beleg Nr.", "centre": "Kostenstelle", "value": "Betrag"}
        problem = refused(tmp_path, use_of(columns, "rows.csv", sources=sources))
        assert problem.differences == ("column `Betrag` is missing",)
        del columns["value"], sources["value"]
        assert read(tmp_path, columns, sources=sources) == [{"id": 7, "centre": "K1", "amount": "x"}]

    def test_a_column_is_not_found_by_its_own_name_if_it_is_called_otherwise(self, tmp_path: Path) -> None:
        (tmp_path / "rows.csv").write_text("id,amount\n1,2\n")
        use = use_of({"id": INTEGER, "amount": INTEGER}, "rows.csv", sources={"amount": "Betrag"})
        assert refused(tmp_path, use).differences == ("column `Betrag` is missing", "column `amount` is not declared")

    def test_names_may_be_exchanged(self, tmp_path: Path) -> None:
        (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
        found = read(tmp_path, {"a": INTEGER, "b": INTEGER}, sources={"a": "b", "b": "a"})
        assert found == [{"b": 1, "a": 2}]

    def test_parquet_files_have_names_too(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"Betrag": [1], "id": [2]}), tmp_path / "rows.parquet")
        use = use_of({"id": INTEGER, "amount": INTEGER}, "rows.parquet", sources={"amount": "betrag"})
        assert extract(tmp_path, use, kind="parquet") == []
        wrong = use_of({"id": INTEGER, "amount": INTEGER}, "rows.parquet", sources={"amount": "Brutto"})
        assert "column `Brutto` is missing" in refused(tmp_path, wrong, kind="parquet").differences

    def test_a_location_sets_its_own_dialect(self, tmp_path: Path) -> None:
        from dataclasses import replace

        (tmp_path / "rows.csv").write_bytes(TEXT_OF_ROWS.encode("cp1252"))
        use = use_of(COLUMNS, "rows.csv")
        own = replace(use, locations=(replace(use.locations[0], options=tuple(GERMAN.items())),))
        (file,) = extract(tmp_path, own)
        assert pq.read_table(file).to_pylist() == ROWS
        wrong = replace(use, locations=(replace(use.locations[0], options=(("delimiter", "ab"),)),))
        assert "the options of `files:rows.csv`" in refused(tmp_path, wrong).detail


@pytest.mark.parametrize("piece", [1, 2, 3, 7])
class TestPieces:
    """Files are read in pieces, whose borders are anywhere: in a letter, between CR and LF, in a quoted value."""

    @pytest.fixture(autouse=True)
    def pieces(self, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(csv_dialect, "_PIECE", piece)

    @pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-be"])
    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
    def test_rows_are_the_same(self, tmp_path: Path, codec: str, end: str) -> None:
        lines = ["Größe", "id,note", "#", f'1,"ä{end}{end}# ü"', "# ö", "2,€"]
        (tmp_path / "rows.csv").write_bytes(end.join(lines).encode(codec))
        encoding = "utf-16" if codec.startswith("utf-16") else codec.removesuffix("-sig")
        options: dict[str, Any] = {"skip_lines": 1, "comment": "#", "encoding": encoding}
        found = read(tmp_path, {"id": INTEGER, "note": TEXT}, **options)
        assert [row["note"] for row in found] == [f"ä{end}{end}# ü", "€"]

    def test_the_first_byte_that_is_no_letter_is_placed(self, tmp_path: Path) -> None:
        for content, encoding, line in (
            (b"a\nb\nc\n\x81\nd\n", "cp1252", 4),
            ("ä\nb\nö\n".encode() + b"\xff\n", "utf-8", 4),
            ("ä\nb\nö\nx".encode() + "€".encode()[:2], "utf-8", 4),
        ):
            (tmp_path / "rows.csv").write_bytes(content)
            problem = refused(tmp_path, use_of({"a": TEXT}, "rows.csv"), encoding=encoding, comment="#")
            assert (problem.diagnosis, f"line {line}" in problem.detail) == ("encoding", True), problem.detail

    def test_utf8_is_known_by_all_of_its_letters(self, tmp_path: Path) -> None:
        columns: dict[str, Type] = {"a": TEXT}
        (tmp_path / "rows.csv").write_bytes("a\nxä\nxyzxyzxyz\n".encode())
        assert "UTF-8" in refused(tmp_path, use_of(columns, "rows.csv"), encoding="cp1252").detail
        for plain in (b"a\nx\n", "a\nä\n".encode("cp1252"), "a\nxä".encode("cp1252")):
            (tmp_path / "rows.csv").write_bytes(plain)
            assert read(tmp_path, columns, encoding="cp1252") == [{"a": plain.decode("cp1252")[2:].strip()}]


class TestDiagnosis:
    def remedy(self, root: Path, content: bytes, columns: Mapping[str, Type] = COLUMNS, **options: Any) -> DataLoad:
        (root / "rows.csv").write_bytes(content)
        return refused(root, use_of(columns, "rows.csv"), **options)

    def test_what_to_set_is_said(self, tmp_path: Path) -> None:
        problem = self.remedy(tmp_path, TEXT_OF_ROWS.encode("cp1252"), delimiter=";")
        assert problem.diagnosis == "encoding"
        assert "set `encoding: cp1252`" in str(problem.remedy)
        problem = self.remedy(tmp_path, TEXT_OF_ROWS.encode("utf-16"), delimiter=";")
        assert "set `encoding: utf-16`" in str(problem.remedy)
        problem = self.remedy(tmp_path, TEXT_OF_ROWS.encode(), delimiter=";")
        assert problem.remedy == (
            "dates look like dd.mm.yyyy: set `date_format: dd.mm.yyyy`; "
            'numbers look like `1.234,50`: set `decimal: ","` and `thousands: "."`'
        )
        assert dict(problem.counts) == {"day": 1, "amount": 2}

    @pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16"])
    def test_utf8_is_not_taken_for_another_encoding(self, tmp_path: Path, encoding: str) -> None:
        for content in (TEXT_OF_ROWS.encode(), TEXT_OF_ROWS.encode("utf-8-sig")):
            problem = self.remedy(tmp_path, content, **{**GERMAN, "encoding": encoding})
            assert problem.diagnosis == "encoding"

    def test_a_byte_that_no_letter_has(self, tmp_path: Path) -> None:
        problem = self.remedy(tmp_path, b"a\nx\n\x81\xe4\n", {"a": TEXT}, encoding="cp1252")
        assert (problem.diagnosis, "line 3" in problem.detail) == ("encoding", True)
        problem = self.remedy(tmp_path, "a\nx\n".encode("utf-16") + b"\0", {"a": TEXT}, encoding="utf-16")
        assert problem.diagnosis == "encoding"
        problem = self.remedy(tmp_path, b"# c\na\n\xe4\n", {"a": TEXT}, comment="#")
        assert (problem.diagnosis, "line 3" in problem.detail) == ("encoding", True)

    def test_quotes_are_placed_in_the_file_itself(self, tmp_path: Path) -> None:
        problem = self.remedy(
            tmp_path, b'x\n# c\na,b\n# d\n1,"x"y\n', {"a": INTEGER, "b": TEXT}, skip_lines=1, comment="#"
        )
        assert (problem.diagnosis, "line 5" in problem.detail) == ("quotes", True)


class TestDefinitions:
    def test_everything_is_checked(self) -> None:
        def options(text: str) -> list[str]:
            found = load(f"datasource: {{id: s, type: csv, options: {{path_prefix: a, {text}}}}}")[1]
            return [
                problem.key if isinstance(problem, InvalidValue | UnknownKey) else problem.code for problem in found
            ]

        assert options("encoding: utf8") == ["encoding"]
        assert options("decimal: ';'") == ["decimal"]
        assert options("thousands: x") == ["thousands"]
        assert options("thousands: '.'") == ["thousands"]
        assert options("decimal: ',', thousands: '.'") == []
        assert options("date_format: dd.mm.yy") == ["date_format"]
        assert options("comment: ';', delimiter: ';'") == ["comment"]
        assert options("skip_lines: -1") == ["skip_lines"]
        assert options("null_values: NA") == ["null_values"]
        assert options("null_values: ['a\"b']") == ["null_values"]
        assert options("decmal: ','") == ["decmal"]

    def test_what_is_not_set_is_not_part_of_a_datasource(self) -> None:
        source = sound("datasource: {id: s, type: csv, options: {path_prefix: a}}").datasources["s"]
        assert source.options == {"path_prefix": "a", "delimiter": ",", "has_header": True}

    def test_two_columns_cannot_have_one_source(self) -> None:
        text = (
            "dataset: {id: d, main_table: {name: d, columns: "
            "[{name: a, type: string, source: B}, {name: b, type: string}, {name: c, type: string, source: c}]}}"
        )
        (problem,) = load(text)[1]
        assert isinstance(problem, DuplicateName)
        assert (problem.kind, problem.name) == ("source", "b")
        assert found(text)


# --- round trip


def test_a_letter_that_the_encoding_lacks_is_not_written(tmp_path: Path) -> None:
    rows = [no_values(text="日本")]
    failed = world.failure(by_csv, tmp_path, Dialect(encoding="cp1252"), rows)
    assert isinstance(failed.problem, OutputWrite)
    assert "U+65E5" in failed.problem.detail


def test_a_dialect_comes_back_from_its_record() -> None:
    for dialect in (
        Dialect(),
        Dialect(";", False, "cp1252", ",", ".", "dd.mm.yyyy", ("NA", "-"), 3, "#"),
        Dialect(skip_lines=1),
    ):
        assert Dialect.load(dialect.document()) == dialect
        assert Dialect.load(json.loads(json.dumps(dialect.document()))) == dialect
    assert Dialect().document() == {"delimiter": ",", "has_header": True}


def test_only_a_file_with_more_than_records_is_copied(tmp_path: Path) -> None:
    source, copy = tmp_path / "rows.csv", tmp_path / "copy"
    source.write_text("#\na\n#\n1\n")
    for dialect, expected, dropped in (
        (Dialect(skip_lines=1), "a\n#\n1\n", [1]),
        (Dialect(comment="#"), "a\n1\n", [1, 3]),
        (Dialect(encoding="latin-1"), source.read_text(), []),
    ):
        plain = make_plain(source, copy, dialect)
        assert isinstance(plain, PlainFile)
        assert (plain.path, copy.read_text(), list(plain.dropped)) == (copy, expected, dropped)
        copy.unlink()
    assert make_plain(source, copy, Dialect(";", has_header=False, null_values=("NA",))) == PlainFile(source)
    assert not copy.exists()


def test_an_empty_file_of_any_encoding_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").touch()
    for encoding in ("utf-8", "cp1252", "latin-1", "utf-16"):
        assert read(tmp_path, {"a": TEXT}, encoding=encoding, has_header=False) == []


def test_a_moment_in_a_dialect(tmp_path: Path) -> None:
    rows = [no_values(moment=datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC))]
    assert by_csv(tmp_path, Dialect(date_format="d.m.yyyy"), rows) == rows


@pytest.mark.parametrize(("line", "expected"), [(1, 2), (2, 5), (3, 6), (4, 8)])
def test_numbers_of_lines(line: int, expected: int) -> None:
    assert PlainFile(Path("x"), [1, 3, 4, 7]).line_of(line) == expected


class TestLocations:
    RESOLVER = "resolver: {{id: r, is_default: true, rules: [{{strategy: {{type: path, datasource_id: s, path: a, options: {options}}}}}]}}"

    def problems(self, kind: str, options: str) -> list[Any]:
        source = f"datasource: {{id: s, type: {kind}, options: {{path_prefix: a}}}}"
        definitions = sound(source, self.RESOLVER.format(options=options))
        return list(check_locations(definitions.resolvers["r"].places, definitions.datasources))

    def test_options_are_those_of_the_kind(self) -> None:
        assert self.problems("csv", "{delimiter: ';', decimal: ','}") == []
        (wrong,) = self.problems("csv", "{decimal: x}")
        assert (wrong.key, wrong.span is not None) == ("decimal", True)
        (unknown,) = self.problems("csv", "{path_prefix: b}")
        assert isinstance(unknown, UnknownKey)
        (near,) = self.problems("csv", "{decmal: ','}")
        assert "decimal" in near.hint()
        (none,) = self.problems("parquet", "{delimiter: ';'}")
        assert (none.key, none.found) == ("options", "options")

    def test_editors_know_them(self) -> None:
        schema = make_schema("resolver", options_by_type=options_by_type())
        assert "CsvLocation" in schema["definitions"]
        assert "date_format" in schema["definitions"]["CsvLocation"]["properties"]
