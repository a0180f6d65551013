"""Diagnoses files that are not the CSV that their datasource declares, before values are parsed.

One pass over the bytes finds what is not UTF-8, and quotes that break RFC 4180. Quotes inside a value without quotes, as in
``5" pipe``, are ordinary characters.
"""

from __future__ import annotations

import codecs
import csv
import re
import zipfile
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dobonomodo.problems.run import Diagnosis
from dobonomodo.storage.excel_cells import DAMAGED

_BLOCK = 4 << 20
_SEPARATORS = (",", ";", "\t", "|")
_TO_CSV = "read it by a datasource of `type: excel`, or save it in Excel as `CSV UTF-8`"
_TO_UTF8 = "save the file as UTF-8, in Excel as `CSV UTF-8`"
_TO_UTF16 = f"set `encoding: utf-16`, or {_TO_UTF8}"
_TO_CP1252 = f"set `encoding: cp1252`, or {_TO_UTF8}"
_EXCERPT = 20


@dataclass(frozen=True, slots=True)
class WrongFile:
    """Why a file cannot be read as it is, and what to do."""

    kind: Diagnosis
    what: str
    """In words that follow the name of the file or the line."""
    remedy: str
    line: int | None = None

    def describe(self, path: Path) -> str:
        """The file and what is wrong with it."""
        return f"`{path}`, line {self.line}: {self.what}" if self.line is not None else f"`{path}` {self.what}"


def diagnose_content(path: Path, *, delimiter: str) -> WrongFile | None:
    """What the bytes of a file tell; None if it is UTF-8 in which every quote is closed."""
    return diagnose_kind(path) or diagnose_text(path, delimiter=delimiter)


def diagnose_separator(first_line: str, declared: Sequence[str], *, delimiter: str, named: bool) -> WrongFile | None:
    """A separator that fits the first line better: it gives more declared names, or without names as many values."""
    known = {name.casefold() for name in declared}

    def rate(separator: str) -> int:
        found = next(csv.reader([first_line], delimiter=separator), [])
        if named:
            return len({name.strip().casefold() for name in found} & known)
        return separator in first_line and len(found) == len(declared)

    best = max(_SEPARATORS, key=rate)
    if rate(best) <= rate(delimiter):
        return None
    shown = r"\t" if best == "\t" else best
    what = f"has the separator `{shown}`, its datasource says `{delimiter}`"
    return WrongFile("separator", what, f'set `delimiter: "{shown}"` in the options of the datasource')


# --- other kinds of files


def diagnose_kind(path: Path, *, utf16: bool = False) -> WrongFile | None:
    """A file that is no text; UTF-16 is reported unless it is declared."""
    with path.open("rb") as file:
        start = file.read(1024)
        file.seek(0, 2)
        file.seek(max(0, file.tell() - 4))
        end = file.read()
    if start.startswith(b"PK\x03\x04"):
        if is_workbook(path):
            return WrongFile("excel", "is an Excel workbook (xlsx), not CSV", _TO_CSV)
        return WrongFile("zip", "is a zip archive, not CSV", "unpack it")
    if start.startswith(b"\xd0\xcf\x11\xe0"):
        return WrongFile("excel", "is an Excel workbook (xls), not CSV", _TO_CSV)
    if start.startswith(b"\x1f\x8b"):
        return WrongFile("gzip", "is compressed with gzip", "decompress it with `gunzip`")
    if start.startswith(b"PAR1") and end == b"PAR1":
        return WrongFile("parquet", "is a Parquet file, not CSV", "read it by a datasource of `type: parquet`")
    if not utf16 and looks_like_utf16(start):
        return WrongFile("encoding", "the file is UTF-16, not UTF-8", _TO_UTF16, line=1)
    return None


def looks_like_utf16(start: bytes) -> bool:
    """Whether a file begins with a mark of UTF-16; Latin text without one has a zero in every second byte."""
    zeros = max(start[0::2].count(0), start[1::2].count(0))
    return start.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) or zeros > max(1, len(start) // 4)


def is_workbook(path: Path) -> bool:
    """Whether a file is a workbook of Excel (xlsx)."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.startswith("xl/") for name in archive.namelist())
    except (zipfile.BadZipFile, *DAMAGED):
        return False


# --- encoding and quotes


def diagnose_text(path: Path, *, delimiter: str) -> WrongFile | None:
    """What is not UTF-8, and quotes that break the rules."""
    with path.open("rb") as file:
        start = len(BOM_UTF8) if file.read(len(BOM_UTF8)) == BOM_UTF8 else 0
        file.seek(start)
        encoding, quotes = _Encoding(start), Quotes(start, delimiter)
        for block in _blocks(iter(lambda: file.read(_BLOCK), b"")):
            if (at := encoding.feed(block)) is not None:
                return explain_encoding(path, at)
            if (fault := quotes.feed(block)) is not None:
                return WrongFile(fault, *_QUOTES[fault], line=line_at(path, quotes.opened))
    if quotes.is_open:
        return WrongFile("quotes", "a quoted value has no closing quote", _CLOSE, line=line_at(path, quotes.opened))
    return None


def _blocks(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks of a file and an end of its last line, which it may lack."""
    yield from blocks
    yield b"\n"


class _Encoding:
    """Follows UTF-8 through the blocks of a file."""

    def __init__(self, offset: int) -> None:
        self._offset, self._kept = offset, b""

    def feed(self, block: bytes) -> int | None:
        """Where in the file the first byte is that is not UTF-8."""
        if not self._kept and block.isascii():
            self._offset += len(block)
            return None
        data = self._kept + block
        try:
            _, done = codecs.utf_8_decode(data, "strict", False)
        except UnicodeDecodeError as fault:
            return self._offset + fault.start
        self._offset, self._kept = self._offset + done, data[done:]
        return None


class Quotes:
    """Follows quotes through the blocks of a file; a value may be longer than a block."""

    def __init__(self, offset: int, delimiter: str) -> None:
        self._separators = delimiter.encode() + b"\r\n"
        ends = b"[" + re.escape(delimiter.encode()) + rb"\r\n]"
        # All up to a quote that opens a value which is not closed here, or not properly.
        self._outside = re.compile(
            rb'[^"]*+(?:(?<!%b)"[^"]*+|(?<=%b)"[^"]*+(?:""[^"]*+)*+"(?=%b)[^"]*+)*+' % (ends, ends, ends)
        )
        self._inside = re.compile(rb'[^"]*+(?:""[^"]*+)*+')
        # The start of a file is like the start of a line.
        self._kept, self._at, self._offset = b"\n", 1, offset - 1
        self.is_open, self.opened = False, 0

    def feed(self, block: bytes) -> Diagnosis | None:
        """The first fault; the value begins where ``opened`` says."""
        data, at = self._kept + block, self._at
        while True:
            if not self.is_open:
                at = self._end(self._outside, data, at)
                if at == len(data):
                    break
                self.is_open, self.opened, at = True, self._offset + at, at + 1
            at = self._end(self._inside, data, at)
            if at >= len(data) - 1:
                # A quote at the very end may be the first of two.
                break
            if data[at + 1] not in self._separators:
                return "escapes" if data[at - 1 : at] == b"\\" else "quotes"
            self.is_open, at = False, at + 1
        cut = max(0, at - 1)
        self._kept, self._at, self._offset = data[cut:], at - cut, self._offset + cut
        return None

    @staticmethod
    def _end(pattern: re.Pattern[bytes], data: bytes, start: int) -> int:
        found = pattern.match(data, start)
        return found.end() if found is not None else start


_CLOSE = 'close it; write a quote inside a quoted value twice: `"6"" pipe"`'
_QUOTES: dict[Diagnosis, tuple[str, str]] = {
    "quotes": (
        "text follows the closing quote of a value",
        'write a quote inside a quoted value twice: `"6"" pipe"`',
    ),
    "escapes": (
        "text follows the closing quote of a value",
        'a backslash does not escape a quote: write `"a""b"` instead of `"a\\"b"`',
    ),
}


def explain_encoding(path: Path, offset: int) -> WrongFile:
    """What a byte tells that is not UTF-8."""
    line = line_at(path, offset)
    with path.open("rb") as file:
        file.seek(max(0, offset - _EXCERPT))
        around = file.read(2 * _EXCERPT)
    excerpt = (
        re.split(rb"[\r\n]", around[: min(offset, _EXCERPT)])[-1]
        + re.split(rb"[\r\n]", around[min(offset, _EXCERPT) :])[0]
    )
    try:
        shown = excerpt.decode("cp1252")
    except UnicodeDecodeError:
        shown = ""
    if shown.isprintable() and shown:
        return WrongFile("encoding", f"the bytes are cp1252, not UTF-8: `{shown}`", _TO_CP1252, line=line)
    return WrongFile("encoding", "the bytes are not UTF-8", _TO_UTF8, line=line)


def line_at(path: Path, offset: int) -> int:
    """The number of the line of a byte; lines end with LF, CR or both."""
    line, last = 1, b""
    with path.open("rb") as file:
        while offset > 0 and (block := file.read(min(offset, _BLOCK))):
            offset -= len(block)
            line += block.count(b"\n") + block.count(b"\r") - block.count(b"\r\n")
            line -= last == b"\r" and block.startswith(b"\n")
            last = block[-1:]
    return line
