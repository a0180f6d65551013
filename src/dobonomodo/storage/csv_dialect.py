"""CSV dialects: their definition, and the conversion of files to plain UTF-8 that contains only records."""

from __future__ import annotations

import codecs
import re
from array import array
from bisect import bisect_left
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictStr

from dobonomodo.model.datasource import StorageOptions
from dobonomodo.model.document import Places
from dobonomodo.model.plain import Document
from dobonomodo.model.value import Expected, Flag, Number
from dobonomodo.problems import Problem
from dobonomodo.problems.definition import InvalidValue
from dobonomodo.storage.diagnosis import Quotes, WrongFile, explain_encoding, line_at, looks_like_utf16
from dobonomodo.storage.manifest import version_of
from dobonomodo.storage.notation import DateFormat, Notation

Encoding = Literal["utf-8", "cp1252", "latin-1", "utf-16"]
UTF_8: Encoding = "utf-8"

_PIECE = 4 << 20
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|$)")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the files of a place are written."""

    delimiter: str = ","
    has_header: bool = True
    encoding: Encoding = UTF_8
    decimal: str = "."
    thousands: str | None = None
    date_format: str | None = None
    null_values: tuple[str, ...] = ()
    skip_lines: int = 0
    comment: str | None = None

    @classmethod
    def load(cls, document: Document) -> Dialect:
        """From the options of a datasource or from a record."""
        given = {each.name: document[each.name] for each in fields(cls) if document.get(each.name) is not None}
        if "null_values" in given:
            given["null_values"] = tuple(given["null_values"])
        return cls(**given)

    def document(self) -> dict[str, object]:
        """As plain data: the separator and the header, and what is not as usual."""
        own: dict[str, object] = {"delimiter": self.delimiter, "has_header": self.has_header}
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name not in own and value != each.default:
                own[each.name] = list(value) if isinstance(value, tuple) else value
        return own

    @property
    def notation(self) -> Notation:
        """How numbers and dates are written."""
        return Notation(self.decimal, self.thousands, self.date_format)


# --- definitions


class CsvLocation(StorageOptions):
    """How the CSV files of a location are written, where that differs from the datasource."""

    kind: ClassVar[str] = "options of csv"

    delimiter: Annotated[
        str,
        Field(min_length=1, max_length=1, pattern=r"""^[\t -!#-~]$"""),
        Expected("one ASCII character as text, except a quote"),
    ] = Field(default=",", description="The character between two values.")
    has_header: Flag = Field(default=True, description="Whether the first line of a file has the column names.")
    encoding: Encoding | None = Field(
        default=None, description="The encoding of the text: utf-8 (the default), cp1252, latin-1 or utf-16."
    )
    decimal: Literal[".", ","] | None = Field(
        default=None, description="The decimal sign of numbers; a point by default."
    )
    thousands: (
        Annotated[
            StrictStr,
            Field(min_length=1, max_length=1, pattern="^[., '_\u00a0\u202f\u2019]$"),
            Expected("one of `.`, `,`, `'`, `_` or a blank"),
        ]
        | None
    ) = Field(default=None, description="The sign between groups of three digits; left out, digits are not grouped.")
    date_format: Annotated[StrictStr, Field(min_length=1)] | None = Field(
        default=None, description="The form of dates, such as dd.mm.yyyy or yyyymmdd; left out, yyyy-mm-dd."
    )
    null_values: tuple[Annotated[StrictStr, Expected("text")], ...] | None = Field(
        default=None, description="Values without quotes that mean NULL, in addition to the empty one."
    )
    skip_lines: Number | None = Field(
        default=None, description="How many lines come before the header or the first record."
    )
    comment: (
        Annotated[
            StrictStr,
            Field(min_length=1, max_length=1, pattern=r"^[!#$%&*/;<=>?@^|~]$"),
            Expected("one character such as `#`"),
        ]
        | None
    ) = Field(default=None, description="Lines that start with this character are skipped.")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """Signs that can be told apart, and dates that can be read in one way only."""
        form = places.text("date_format")
        if form is not None and not _is_date_format(form):
            yield InvalidValue(
                key="date_format",
                expected="`yyyy`, `mm` or `m`, `dd` or `d`, each once, with `.`, `-`, `/` or blanks between them",
                found=f"`{form}`",
                advice="write it like `dd.mm.yyyy`, `m/d/yyyy` or `yyyymmdd`",
                span=places.span("date_format"),
            )
        decimal, delimiter = places.text("decimal") or ".", places.text("delimiter") or ","
        if places.text("thousands") == decimal:
            yield _same_sign(places, "thousands", "decimal", decimal)
        if places.text("comment") == delimiter:
            yield _same_sign(places, "comment", "delimiter", delimiter)
        empty = places.at("null_values")
        for part in empty.elements() if empty is not None and empty.is_list else ():
            text = part.text()
            if text is not None and any(each in text for each in '"\r\n'):
                found = "a text with a quote or a line break"
                yield InvalidValue(key="null_values", expected="text in one line", found=found, span=part.span())


def _same_sign(places: Places, key: str, other: str, sign: str) -> Problem:
    return InvalidValue(
        key=key, expected=f"another sign than `{other}`", found=f"`{sign}` in both", span=places.span(key)
    )


def _is_date_format(text: str) -> bool:
    try:
        DateFormat.parse(text)
    except ValueError:
        return False
    return True


# --- files


@dataclass(frozen=True, slots=True)
class PlainFile:
    """A file of a dialect as UTF-8 that begins with its header or its first record."""

    path: Path
    dropped: Sequence[int] = field(default_factory=lambda: array("q"))
    """The numbers of the lines, in order, that are not in it."""

    def line_of(self, line: int) -> int:
        """The number that a line of it has in the file itself."""
        # Among the first lines of the file, as many are dropped as have numbers below it.
        number = line
        while (now := line + bisect_left(self.dropped, number + 1)) != number:
            number = now
        return number


def make_plain(source: Path, target: Path, dialect: Dialect) -> PlainFile | WrongFile:
    """The file itself where it is plain, else a copy; what is wrong if the bytes are of another encoding."""
    if dialect.encoding == UTF_8 and not dialect.skip_lines and dialect.comment is None:
        return PlainFile(source)
    if (wrong := _suspect_encoding(source, dialect.encoding)) is not None:
        return wrong
    dropped = array("q")
    try:
        with target.open("wb") as file:
            for piece in _without_dropped(_decode(source, dialect.encoding), dialect, dropped):
                file.write(piece.encode())
    except UnicodeDecodeError as fault:
        return _explain_undecodable(source, dialect.encoding, fault)
    return PlainFile(target, dropped)


_OTHER_ENCODING = "set the `encoding` that the file has, or save it as UTF-8"


def _decode(source: Path, encoding: Encoding) -> Iterator[str]:
    """The text of a file in pieces, without a byte order mark."""
    with source.open("rb") as file:
        start = file.read(4)
        name = {"utf-8": "utf-8-sig", "utf-16": _order_of(start)}.get(encoding, encoding)
        file.seek(0)
        decoder = codecs.getincrementaldecoder(name)("strict")
        while block := file.read(_PIECE):
            yield decoder.decode(block)
        yield decoder.decode(b"", final=True)


def _order_of(start: bytes) -> str:
    if start.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "utf-16"
    return "utf-16-be" if start[:1] == b"\0" else "utf-16-le"


def _without_dropped(pieces: Iterable[str], dialect: Dialect, dropped: array[int]) -> Iterator[str]:
    """The text without the first lines and without comments; a comment sign inside a quoted value is part of the value."""
    if not dialect.skip_lines and dialect.comment is None:
        yield from pieces
        return
    quotes, faulty = Quotes(0, dialect.delimiter), False
    for number, line in enumerate(_lines(pieces), start=1):
        is_comment = dialect.comment is not None and line.startswith(dialect.comment) and not quotes.is_open
        if number <= dialect.skip_lines or (is_comment and not faulty):
            dropped.append(number)
            continue
        if dialect.comment is not None and not faulty:
            # Invalid quotes are explained later; from there on it is unknown what is inside a value.
            faulty = quotes.feed(line.encode("utf-8", "surrogatepass")) is not None
        yield line


def _lines(pieces: Iterable[str]) -> Iterator[str]:
    """Lines with their ends: LF, CR or both."""
    kept = ""
    for piece in pieces:
        text = kept + piece
        # A CR at the very end may be the first half of an end.
        cut = max(text.rfind("\n", 0, len(text)), text.rfind("\r", 0, max(0, len(text) - 1))) + 1
        kept = text[cut:]
        yield from (found for found in _LINE.findall(text[:cut]) if found)
    yield from (found for found in _LINE.findall(kept) if found)


def _suspect_encoding(source: Path, encoding: Encoding) -> WrongFile | None:
    """Bytes that are another encoding, which decoding would not notice."""
    with source.open("rb") as file:
        start = file.read(1024)
    if encoding == "utf-16":
        if start and not looks_like_utf16(start):
            return WrongFile("encoding", "is not UTF-16", _OTHER_ENCODING)
        return None
    if encoding == UTF_8:
        return None
    if start.startswith(BOM_UTF8) or (version_of(source) is None and _is_utf8(source)):
        advice = "set `encoding: utf-8`, which is also the default"
        return WrongFile("encoding", f"is UTF-8, its definition says {encoding}", advice)
    return None


def _is_utf8(source: Path) -> bool:
    """Whether a file has letters beyond ASCII, and all of them are UTF-8: by chance, text of another encoding never is."""
    decoder, beyond = codecs.getincrementaldecoder("utf-8")("strict"), False
    with source.open("rb") as file:
        try:
            while block := file.read(_PIECE):
                decoder.decode(block)
                beyond = beyond or not block.isascii()
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return beyond


def _explain_undecodable(source: Path, encoding: Encoding, fault: UnicodeDecodeError) -> WrongFile:
    if encoding == "utf-16":
        return WrongFile("encoding", "is not UTF-16 to its end", _OTHER_ENCODING)
    at = _find_undecodable(source, encoding)
    if encoding == UTF_8:
        return explain_encoding(source, at)
    byte = fault.object[fault.start : fault.start + 1].hex()
    return WrongFile("encoding", f"the byte 0x{byte} is not {encoding}", _OTHER_ENCODING, line=line_at(source, at))


def _find_undecodable(source: Path, encoding: Encoding) -> int:
    """Where the first byte is that is not of an encoding."""
    decoder, offset = codecs.getincrementaldecoder(encoding)("strict"), 0
    with source.open("rb") as file:
        while block := file.read(_PIECE):
            pending = len(decoder.getstate()[0])
            try:
                decoder.decode(block)
            except UnicodeDecodeError as fault:
                return offset - pending + fault.start
            offset += len(block)
    return offset
