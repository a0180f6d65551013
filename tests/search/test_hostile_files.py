"""Files that were damaged at random are read exactly or refused; none is read wrongly, and none ends in a traceback.

What a file says is decided by readers that know nothing of the product: Python's csv module over the decoded text, and the XML of a
workbook. A file that the product reads must say the very same values to them.
"""

from __future__ import annotations

import csv
import io
import random
import re
import zipfile
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
import xlsxwriter

from dobonomodo.formula import Type
from dobonomodo.formula.types import DATE, INTEGER, TEXT, DecimalType
from dobonomodo.problems import Problem, RunFailed
from dobonomodo.problems.run import DataLoad
from dobonomodo.storage.csv import extract_csv
from dobonomodo.storage.csv_dialect import Dialect
from dobonomodo.storage.excel import ExcelFormat, extract_excel
from dobonomodo.storage.findings import Findings
from dobonomodo.storage.inference import NotInferredError, infer
from tests.searching import tries
from tests.world import use_of

pytestmark = pytest.mark.search

Record = Callable[[str, object], None]
Row = tuple[object, ...]

FILES = tries(sample=40, full=1_000)
COLUMNS: dict[str, Type] = {"id": INTEGER, "amount": DecimalType(15, 2), "day": DATE, "note": TEXT}
USE = use_of(COLUMNS)
DIALECTS = (
    Dialect(),
    Dialect(delimiter=";", encoding="cp1252", decimal=",", thousands=".", date_format="dd.mm.yyyy"),
    Dialect(delimiter="\t", encoding="utf-16", date_format="yyyymmdd"),
    Dialect(delimiter="|", decimal=",", null_values=("NA",), skip_lines=1, comment="#"),
)


def make_csv(chance: random.Random, dialect: Dialect) -> bytes:
    """A sound file of a dialect."""
    lines = ["title"] * dialect.skip_lines + [dialect.delimiter.join(COLUMNS)]
    for number in range(chance.randrange(1, 6)):
        amount = f"{chance.randrange(-(10**6), 10**6) / 100:.2f}".replace(".", dialect.decimal)
        if dialect.thousands and chance.random() < 0.5:
            amount = f"1{dialect.thousands}234{dialect.decimal}50"
        day = date(2026, chance.randrange(1, 13), chance.randrange(1, 29))
        form = {None: "%Y-%m-%d", "dd.mm.yyyy": "%d.%m.%Y", "yyyymmdd": "%Y%m%d"}[dialect.date_format]
        note = chance.choice(
            ["x", "", '""', '"a""b"', '"two\nlines"', "Köln", '5" pipe', f'"a{dialect.delimiter}b"', "NA"]
        )
        lines.append(dialect.delimiter.join([str(number), amount, day.strftime(form), note]))
        if dialect.comment and chance.random() < 0.3:
            lines.append(f"{dialect.comment} remark")
    end = chance.choice(["\n", "\r\n"])
    return (end.join(lines) + chance.choice(["", end])).encode(dialect.encoding)


def damage(chance: random.Random, content: bytes) -> bytes:
    """The bytes with some of them changed, lost, repeated or added."""
    data = bytearray(content)
    if chance.random() < 0.4:
        # A digit for another digit, a letter for another letter: what a text says may change, and stay sound.
        places = [at for at, byte in enumerate(data) if chr(byte).isalnum()]
        for at in chance.sample(places, min(len(places), 2)):
            data[at] = ord(chance.choice("0123456789abc"))
        return bytes(data)
    for _ in range(chance.randrange(1, 3)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0 if at < len(data):
                data[at] = chance.randrange(256)
            case 1:
                del data[at : at + chance.randrange(1, 4)]
            case 2:
                data[at:at] = chance.choice(
                    [
                        b'"',
                        b",",
                        b";",
                        b".",
                        b"\n",
                        b"\r",
                        b"\0",
                        b"#",
                        b"-",
                        b"e",
                        b"\xff\xfe",
                        b"9",
                        b" ",
                        b"\t",
                        b"|",
                    ]
                )
            case 3:
                other = chance.randrange(len(data) + 1)
                data[at:at] = data[other : other + 10]
            case _:
                del data[at:]
    return bytes(data)


def said_by_csv(content: bytes, dialect: Dialect) -> list[Row]:
    """The rows that a text says, read strictly by other means; raises ValueError or a like for a text that says none."""
    text = content.decode({"utf-8": "utf-8-sig"}.get(dialect.encoding, dialect.encoding))
    kept, quoted = [], False
    for number, line in enumerate(re.findall(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+$", text)):
        if number < dialect.skip_lines or (dialect.comment and line.startswith(dialect.comment) and not quoted):
            continue
        kept.append(line)
        for field in re.findall(
            rf'(?:^|[{re.escape(dialect.delimiter)}])"(?:[^"]|"")*"?', line if not quoted else '"' + line
        ):
            quoted = not re.fullmatch(r'.?"(?:[^"]|"")*"', field, re.DOTALL)
    records = [
        row
        for row in csv.reader(io.StringIO("".join(kept), newline=""), delimiter=dialect.delimiter, strict=True)
        if row
    ]
    head = [name.casefold() for name in records[0]]
    order = [head.index(name) for name in COLUMNS]
    if any(len(row) != len(head) for row in records):
        raise ValueError
    return [
        tuple(_value(row[at], name, dialect) for at, name in zip(order, COLUMNS, strict=True)) for row in records[1:]
    ]


def _value(text: str, name: str, dialect: Dialect) -> object:
    """A value; an empty text and NULL are not told apart, since the csv module does not see quotes."""
    if name == "note":
        return None if text in ("", *dialect.null_values) else text
    plain = text.strip()
    if not plain or text in dialect.null_values:
        return None
    if name == "day":
        form = {None: "%Y-%m-%d", "dd.mm.yyyy": "%d.%m.%Y", "yyyymmdd": "%Y%m%d"}[dialect.date_format]
        return datetime.strptime(plain, form).replace(tzinfo=UTC).date()
    if dialect.thousands:
        plain = plain.replace(dialect.thousands, "")
    number = Decimal(plain.replace(dialect.decimal, "."))
    return int(number) if name == "id" else number


def read(extract: Callable[..., Findings], target: Path) -> list[Row] | None:
    """The rows that the product reads; None if it refuses the file, with a problem."""
    target.unlink(missing_ok=True)
    refusal: Problem | None = None
    try:
        findings = extract(target=target)
    except RunFailed as failed:
        findings, refusal = Findings(), failed.problem
    if refusal is not None:
        assert isinstance(refusal, DataLoad)
        assert refusal.message()
        return None
    if findings:
        assert findings.summarize()
        return None
    rows: list[dict[str, Any]] = pq.read_table(target).to_pylist()
    return [tuple(None if row[name] == "" else row[name] for name in COLUMNS) for row in rows]


def test_damaged_csv_files(tmp_path: Path, record_property: Record) -> None:
    chance = random.Random(20260131)
    counts = {"files": 0, "read": 0, "refused": 0, "wrong": 0}
    for number in range(FILES):
        dialect = DIALECTS[number % len(DIALECTS)]
        content = damage(chance, make_csv(chance, dialect))
        path = tmp_path / "rows.csv"
        path.write_bytes(content)
        found = read(partial(extract_csv, path, use=USE, dialect=dialect), tmp_path / "out.parquet")
        counts["files"] += 1
        counts["refused" if found is None else "read"] += 1
        if found is not None:
            try:
                expected = said_by_csv(content, dialect)
            except (ValueError, InvalidOperation, csv.Error, IndexError, UnicodeError):
                expected = None
            assert found == expected, (content, dialect)
        _propose(path)
    for name, count in counts.items():
        record_property(name, count)
    assert counts["read"] > FILES // 20, "damage that nothing survives proves little"
    assert counts["refused"] > FILES // 20


def _propose(path: Path) -> None:
    """Definitions are proposed, or the file is refused; they load it, which is tried there."""
    with suppress(NotInferredError):
        infer(path)


def make_xlsx(chance: random.Random, path: Path) -> None:
    """A sound workbook."""
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet("Data")
        days = book.add_format({"num_format": "yyyy-mm-dd"})
        sheet.write_row("A1", list(COLUMNS))
        for number in range(1, chance.randrange(2, 6)):
            sheet.write_number(number, 0, number)
            sheet.write_number(number, 1, chance.randrange(-(10**6), 10**6) / 100)
            sheet.write_datetime(number, 2, date(2026, chance.randrange(1, 13), 3), days)
            sheet.write_string(number, 3, chance.choice(["x", "Köln", "007", "a & b"]))


CHANGES: tuple[tuple[bytes, bytes], ...] = (
    (rb"<v>[^<]*</v>", b"<v>1.5</v>"),
    (rb"<v>[^<]*</v>", b"<v>0.1000000000000000055</v>"),
    (rb"<v>", b"<f>A1</f><v>"),
    (rb"<v>[^<]*</v>", b"<f>A1</f>"),
    (rb' t="s"|(?=>)', b' t="e"'),
    (rb' t="s"', b""),
    (rb' s="1"', b""),
    (rb".*", b""),
    (b"", b""),
)
"""What happens to a cell: another value, a formula with and without one, an error, another type, no cell, the same cell twice."""


def damage_xlsx(chance: random.Random, path: Path) -> None:
    """Damage the bytes of the archive, or of a part inside a sound archive."""
    if chance.random() < 0.3:
        path.write_bytes(damage(chance, path.read_bytes()))
        return
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = chance.choice(
        [
            "xl/worksheets/sheet1.xml",
            "xl/worksheets/sheet1.xml",
            "xl/sharedStrings.xml",
            "xl/workbook.xml",
            "xl/styles.xml",
        ]
    )
    cells = re.findall(rb"<c [^>]*>.*?</c>", parts[name])
    if cells and chance.random() < 0.6:
        cell = chance.choice(cells)
        pattern, text = chance.choice(CHANGES)
        changed = re.sub(pattern, text, cell, count=1) if pattern else cell + cell
        parts[name] = parts[name].replace(cell, changed, 1)
    else:
        parts[name] = damage(chance, parts[name])
    with zipfile.ZipFile(path, "w") as archive:
        for part, content in parts.items():
            archive.writestr(part, content)


def said_by_xml(path: Path) -> list[Row]:
    """The rows that the XML of the sheet says; raises for anything unusual."""
    main = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(path) as archive:
        texts = ElementTree.fromstring(archive.read("xl/sharedStrings.xml"))
        # Text is what is in elements `t`, whatever their namespace has become; what stands beside them is none.
        shared = ["".join(text.text or "" for text in each.findall(".//{*}t")) for each in texts]
        sheet = ElementTree.fromstring(archive.read("xl/worksheets/sheet1.xml"))
    cells: dict[tuple[int, int], object] = {}
    last = ""
    for cell in sheet.iter(f"{main}c"):
        # A cell without an address comes after the one before it.
        last = cell.get("r") or chr(ord(last[0]) + 1) + last[1:]
        place = re.fullmatch(r"([A-Z])([0-9]+)", last)
        value = cell.find(f"{main}v")
        if place is None or cell.get("t") == "e" or (value is None and cell.find(f"{main}f") is not None):
            raise ValueError
        if value is not None and value.text:
            key = (int(place[2]), ord(place[1]) - ord("A"))
            if key in cells:
                raise ValueError
            cells[key] = shared[int(value.text)] if cell.get("t") == "s" else _number(float(value.text), cell.get("s"))
    head = [str(cells.get((1, at))).strip().casefold() for at in range(4)]
    rows = sorted({row for row, _ in cells if row > 1})
    return [tuple(_typed(cells.get((row, head.index(name))), name) for name in COLUMNS) for row in rows]


def _number(value: float, style: str | None) -> object:
    number = Decimal(f"{value:.15g}")
    return (
        date.fromordinal(date(1899, 12, 30).toordinal() + int(number))
        if style == "1" and number == int(number)
        else number
    )


def _typed(value: object, name: str) -> object:
    if value is None or value == "":
        return None
    if name == "note":
        return value if isinstance(value, str) else value.isoformat() if isinstance(value, date) else f"{value:f}"
    if name == "day":
        return value if isinstance(value, date) else date.fromisoformat(str(value))
    number = Decimal(str(value).strip())
    return int(number) if name == "id" else number


def test_damaged_workbooks(tmp_path: Path, record_property: Record) -> None:
    chance = random.Random(20260228)
    counts = {"files": 0, "read": 0, "refused": 0}
    for _ in range(FILES):
        path = tmp_path / "rows.xlsx"
        make_xlsx(chance, path)
        damage_xlsx(chance, path)
        found = read(partial(extract_excel, path, use=USE, form=ExcelFormat()), tmp_path / "out.parquet")
        counts["files"] += 1
        counts["refused" if found is None else "read"] += 1
        if found is not None:
            assert found == said_by_xml(path), path.read_bytes()
        _propose(path)
    for name, count in counts.items():
        record_property(name, count)
    assert min(counts["read"], counts["refused"]) > FILES // 20
