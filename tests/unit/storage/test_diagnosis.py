"""Files that are not the CSV files that their datasource says."""

from __future__ import annotations

import csv
import gzip
import io
import random
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dobonomodo.storage import diagnosis
from dobonomodo.storage.diagnosis import diagnose_content, diagnose_separator, is_workbook, looks_like_utf16
from tests.searching import tries


@pytest.fixture(params=[4 << 20, 1, 2, 3, 7], ids="block {}".format)
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read in blocks, whose ends may be anywhere."""
    monkeypatch.setattr(diagnosis, "_BLOCK", request.param)


def found(tmp_path: Path, content: bytes | str, *, delimiter: str = ",") -> tuple[str, int | None] | None:
    path = tmp_path / "rows.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    wrong = diagnose_content(path, delimiter=delimiter)
    return (wrong.kind, wrong.line) if wrong else None


@pytest.mark.usefixtures("block")
class TestQuotes:
    @pytest.mark.parametrize(
        "text",
        [
            "", "a", "a,b\n", '"a","b"\n', '"a""b",c\n', '"a\n\nb",c', '"",""', '""', '""""', 'a,"b"', '"a"\r\n"b"\r\n', '"a"\r"b"\r',
            '5" pipe,a "b" c,"6"" pipe"\n', '\ufeff"id","v"\n', '"a\\",b\n', 'a\\"b,c\n', '"größe","日本"\n', ' "a" b,c\n', '"\r\n"\r\n',
        ],
        ids=repr,
    )  # fmt: skip
    def test_what_follows_the_rules(self, tmp_path: Path, text: str) -> None:
        assert found(tmp_path, text) is None

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ('id,v\n1,"x"yz\n2,b\n', 2),
            ('id,v\n1,"a\n2,b\n3,"c\n', 2),
            ('id,v\n1,"a""\n2,b\n3,c\n', 2),
            ('id,v\r\n1,a\r\n2,"b\r\n\r\nc" ,d\r\n', 3),
            ('id,v\r1,a\r2,"b"c\r', 3),
            ('"x"yz', 1),
            ('\ufeff"x"yz\n', 1),
            ('id,v\n1,"a"\n2,"b\n3,c', 3),
            ('id,v\n1,"', 2),
            ('"a";"b"\n', 1),
            ('"a"" b"\n"c""d"" "e', 2),
        ],
        ids=repr,
    )
    def test_what_breaks_them_is_placed_where_the_value_starts(self, tmp_path: Path, text: str, line: int) -> None:
        assert found(tmp_path, text) == ("quotes", line)

    def test_a_backslash_escapes_nothing(self, tmp_path: Path) -> None:
        assert found(tmp_path, 'id,v\n1,"a\\"b"\n') == ("escapes", 2)

    @pytest.mark.parametrize("delimiter", [";", "\t", "|", "]", "^", "-", "\\", " "], ids=repr)
    def test_any_separator(self, tmp_path: Path, delimiter: str) -> None:
        assert found(tmp_path, f'"a"{delimiter}"b"{delimiter}c"d\n', delimiter=delimiter) is None
        assert found(tmp_path, f'a{delimiter}"b"c{delimiter}d\n', delimiter=delimiter) == ("quotes", 1)


@pytest.mark.usefixtures("block")
class TestEncoding:
    @pytest.mark.parametrize(
        ("content", "line"),
        [
            (b"id,v\n1,gr\xf6\xdfe\n", 2),
            (b'id,v\n1,"a\n\n"\n2,ok\n3,\xff\xfe\n', 6),
            (b"id,v\n1,\xed\xa0\x80\n", 2),
            ("größe,v\n1,".encode() + b"\xe4", 2),
            ("id,v\n1,a\n".encode("utf-16"), 1),
            ("id,v\n1,a\n".encode("utf-16-be"), 1),
        ],
        ids=range(6),
    )
    def test_bytes_that_are_not_utf_8(self, tmp_path: Path, content: bytes, line: int) -> None:
        assert found(tmp_path, content) == ("encoding", line)

    def test_a_character_that_is_cut_off(self, tmp_path: Path) -> None:
        assert found(tmp_path, "id,v\n1,ö".encode()[:-1]) == ("encoding", 2)

    def test_what_the_bytes_look_like(self, tmp_path: Path) -> None:
        path = tmp_path / "rows.csv"
        path.write_bytes("id,v\n1,größe €\n".encode("cp1252"))
        wrong = diagnose_content(path, delimiter=",")
        assert wrong is not None
        assert "cp1252" in wrong.what
        assert "größe €" in wrong.what
        assert wrong.describe(path) == f"`{path}`, line 2: the bytes are cp1252, not UTF-8: `1,größe €`"

    @pytest.mark.parametrize(
        ("content", "shown"),
        [
            (b"id\n" + b"a" * 30 + b"\xf6" + b"b" * 30 + b"\nc\n", "a" * 20 + "ö" + "b" * 19),
            (b"x\xf6" + b"b" * 60, "xö" + "b" * 38),
            (b"\xf6" + b"b" * 60, "ö" + "b" * 39),
            (b"a\rb\xf6c\rd", "böc"),
            (b"id\n\x81 \xf6\n", None),
            (b"id\n\x01 \xf6\n", None),
        ],
    )
    def test_what_is_around_a_wrong_byte_is_shown(self, tmp_path: Path, content: bytes, shown: str | None) -> None:
        (tmp_path / "rows.csv").write_bytes(content)
        wrong = diagnose_content(tmp_path / "rows.csv", delimiter=",")
        assert wrong is not None
        said = "the bytes are not UTF-8" if shown is None else f"the bytes are cp1252, not UTF-8: `{shown}`"
        assert (wrong.what, "cp1252" in wrong.remedy) == (said, shown is not None)


class TestOtherKinds:
    def test_a_workbook(self, tmp_path: Path) -> None:
        memory = io.BytesIO()
        with zipfile.ZipFile(memory, "w") as archive:
            archive.writestr("xl/workbook.xml", "<workbook/>")
        assert found(tmp_path, memory.getvalue()) == ("excel", None)

    def test_an_archive(self, tmp_path: Path) -> None:
        memory = io.BytesIO()
        with zipfile.ZipFile(memory, "w") as archive:
            archive.writestr("rows.csv", "id\n")
        assert found(tmp_path, memory.getvalue()) == ("zip", None)
        assert found(tmp_path, memory.getvalue()[:20]) == ("zip", None)

    def test_an_old_workbook(self, tmp_path: Path) -> None:
        assert found(tmp_path, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500)) == ("excel", None)

    def test_a_compressed_file(self, tmp_path: Path) -> None:
        assert found(tmp_path, gzip.compress(b"id\n1\n")) == ("gzip", None)

    def test_parquet(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"id": [1]}), tmp_path / "rows.parquet")
        assert found(tmp_path, (tmp_path / "rows.parquet").read_bytes()) == ("parquet", None)
        assert found(tmp_path, "PAR1,b\n") is None


class TestSeparators:
    @pytest.mark.parametrize(
        ("line", "delimiter", "wanted"),
        [("id;value", ",", '";"'), ("id\tvalue", ";", r'"\t"'), ("id,value", ";", '","'), ('"id"|"Value"', ",", '"|"')],
    )
    def test_a_separator_that_gives_the_declared_names(self, line: str, delimiter: str, wanted: str) -> None:
        wrong = diagnose_separator(line, ["ID", "value"], delimiter=delimiter, named=True)
        assert wrong is not None
        assert wanted in wrong.remedy

    @pytest.mark.parametrize("line", ["id,value", "other;names", "1,a", "id"])
    def test_no_better_separator(self, line: str) -> None:
        assert diagnose_separator(line, ["id", "value"], delimiter=",", named=True) is None

    def test_a_file_without_names(self) -> None:
        wrong = diagnose_separator("1;a;2,5", ["a", "b", "c"], delimiter=",", named=False)
        assert wrong is not None
        assert '";"' in wrong.remedy
        assert diagnose_separator("1,a;b,c", ["a", "b", "c"], delimiter=",", named=False) is None
        # One that does not occur in the line explains nothing.
        assert diagnose_separator("1,a", ["a"], delimiter=",", named=False) is None


def _expected(text: str) -> bool:
    """Whether quotes follow the rules, character by character."""
    state = "start"
    for char in text + "\n":
        ends = char in ",\r\n"
        if state == "start":
            state = "start" if ends else "quoted" if char == '"' else "plain"
        elif state == "plain":
            state = "start" if ends else "plain"
        elif state == "quoted":
            state = "closed" if char == '"' else "quoted"
        elif char == '"':
            state = "quoted"
        elif ends:
            state = "start"
        else:
            return False
    return state == "start"


def _texts(count: int) -> Iterator[str]:
    source = random.Random(4180)
    for _ in range(count):
        yield "".join(source.choices('"",\n\rab\\', k=source.randrange(1, 14)))


@pytest.mark.search
def test_quotes_are_followed_as_character_by_character(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    count = tries(sample=1_000, full=50_000)
    refused = 0
    for number, text in enumerate(_texts(count)):
        monkeypatch.setattr(diagnosis, "_BLOCK", 1 + number % 5)
        wrong = found(tmp_path, text)
        assert (wrong is None) == _expected(text), text
        refused += wrong is not None
    record_property("texts", count)
    record_property("refused", refused)
    assert 0.1 < refused / count < 0.9


def test_python_reads_the_same_where_quotes_follow_the_rules() -> None:
    texts = [text for text in _texts(2_000) if _expected(text)]
    assert len(texts) > 200
    for text in texts:
        list(csv.reader(io.StringIO(text, newline=""), strict=True))


def test_an_archive_that_nobody_can_open_is_no_workbook(tmp_path: Path) -> None:
    """Of a version that does not exist, or with names that are no text."""
    path = tmp_path / "rows.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "")
    whole = path.read_bytes()
    assert is_workbook(path)
    directory = whole.index(b"PK\x01\x02")
    for at, byte in ((6, 228), (8, 8), (28, 255)):
        path.write_bytes(whole[: directory + at] + bytes([byte]) + whole[directory + at + 1 :])
        assert is_workbook(path) in {True, False}
    path.write_bytes(whole[: directory + 6] + bytes([228]) + whole[directory + 7 :])
    assert not is_workbook(path)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (b"", False), (b"a\0", False), (b"a\0b\0", True), (b"\0a\0b", True), (b"\xff\xfea", True),
        (b"abcdefghijkl\0\0\0\0", False), (b"abcdefgh" + b"a\0" * 8, True),
    ],
)  # fmt: skip
def test_utf16_is_known_by_its_mark_or_by_zeros_in_every_second_byte(start: bytes, expected: bool) -> None:
    assert looks_like_utf16(start) is expected
