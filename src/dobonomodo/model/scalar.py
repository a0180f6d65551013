"""YAML scalars: what a plain one means by the rules of YAML 1.2 core, and the offset of each character of a text.

The parser gives the value of a scalar and its two ends. A formula inside it needs more: the place of every
character, behind quotes, escapes, indentation and folded lines. So the text is read once more, here.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from decimal import Decimal

Scalar = str | int | Decimal | bool | None

MAX_NUMBER_LENGTH = 100
MAX_EXPONENT = 400
MAX_INDENT = 100

_BLANKS = " \t"
_BREAKS = "\r\n"
_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER_START = frozenset("+-.0123456789")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OTHER_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_DECIMAL = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE]([-+]?[0-9]+))?")
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_CODE_LENGTHS = {"x": 2, "u": 4, "U": 8}
_HIGH_SURROGATES = range(0xD800, 0xDC00)

Decoded = tuple[str, Sequence[int]]
"""A text, and the offset in its file of each of its characters and of its end."""


class UnusableNumberError(Exception):
    """A plain scalar that YAML calls a number and that no exact computation can use."""


def resolve_plain(text: str) -> Scalar:
    """The value of an unquoted scalar; `yes`, `on` and dates are text, numbers are exact."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _NUMBER_START:
        return text
    if _INTEGER.fullmatch(text):
        return int(_require_short(text))
    if _OTHER_BASE.fullmatch(text):
        return int(_require_short(text), 0)
    if found := _DECIMAL.fullmatch(text):
        exponent = found[1] or "0"
        if len(exponent) > MAX_NUMBER_LENGTH or abs(int(exponent)) > MAX_EXPONENT:
            raise UnusableNumberError(text)
        return Decimal(_require_short(text))
    if _NO_NUMBER.fullmatch(text):
        raise UnusableNumberError(text)
    return text


def decode_scalar(text: str, start: int, end: int, *, style: str, value: str) -> Decoded:
    """The characters of the scalar at ``text[start:end]`` with their places.

    ``value`` is what the parser made of it; it settles the indentation of a block, which depends on what is around it.
    """
    if style in ("|", ">"):
        return _decode_block(text, start, end, value=value)
    return _decode_flow(text, start, end, style=style, value=value)


def locate_characters(text: str, start: int, end: int, *, style: str, value: str) -> Sequence[int]:
    """The place of each character of ``value``; all at the start if the text does not account for the value."""
    coarse = [start] * (len(value) + 1)
    try:
        decoded, offsets = decode_scalar(text, start, end, style=style, value=value)
    except (IndexError, KeyError, ValueError):
        return coarse
    return offsets if decoded == value else coarse


def _require_short(text: str) -> str:
    if len(text) > MAX_NUMBER_LENGTH:
        raise UnusableNumberError(text)
    return text


def _decode_flow(text: str, start: int, end: int, *, style: str, value: str) -> Decoded:
    """Plain and quoted scalars: a line break between words is a space, an empty line is a line break."""
    quoted = style in ("'", '"')
    at, stop = (start + 1, end - 1) if quoted else (start, end)
    if text[at:stop] == value:
        # Whatever is written in another way is longer than what it stands for, but a line break, which is a space then.
        return value, range(at, stop + 1)
    chars: list[str] = []
    offsets = array("l")

    def emit(char: str, offset: int) -> None:
        chars.append(char)
        offsets.append(offset)

    while at < stop:
        char = text[at]
        if char in _BLANKS or char in _BREAKS:
            after = _skip(text, at, stop, _BLANKS + _BREAKS)
            breaks = _find_breaks(text, at, after)
            if not breaks:
                for offset in range(at, after):
                    emit(text[offset], offset)
            elif len(breaks) == 1:
                emit(" ", breaks[0])
            else:
                for offset in breaks[1:]:
                    emit("\n", offset)
            at = after
        elif char == "'" and style == "'":
            emit("'", at)
            at += 2
        elif char == "\\" and style == '"':
            if text[at + 1] in _BREAKS:
                after = _skip(text, at + 1, stop, _BLANKS + _BREAKS)
                for offset in _find_breaks(text, at + 1, after)[1:]:
                    emit("\n", offset)
                at = after
            else:
                escaped, after = _decode_escape(text, at)
                emit(escaped, at)
                at = after
        else:
            emit(char, at)
            at += 1
    offsets.append(stop)
    return "".join(chars), offsets


def _decode_escape(text: str, at: int) -> tuple[str, int]:
    kind = text[at + 1]
    if kind not in _CODE_LENGTHS:
        return _ESCAPES[kind], at + 2
    after = at + 2 + _CODE_LENGTHS[kind]
    code = int(text[at + 2 : after], 16)
    if code in _HIGH_SURROGATES:
        # JSON writes a character outside the basic plane as two escapes.
        low = int(text[after + 2 : after + 6], 16)
        return chr(0x10000 + (code - 0xD800) * 0x400 + (low - 0xDC00)), after + 6
    return chr(code), after


def _decode_block(text: str, start: int, end: int, *, value: str) -> Decoded:
    """Literal and folded blocks. Their indentation shows in the first word, or is the one that gives the value."""
    header_end = _find_break(text, start, end)
    header = text[start:header_end].split("#")[0]
    lines = _split_lines(text, _after_break(text, header_end, end), end)
    widest = _find_indent(text, lines)
    is_told = any(char.isdigit() for char in header)
    narrowest = max(0, widest - MAX_INDENT) if is_told else widest
    decoded = ("", [start])
    for indent in range(widest, narrowest - 1, -1):
        decoded = _decode_lines(text, lines, header=header, indent=indent, start=start, end=end)
        # Every line of content is one character longer for each space less.
        if len(decoded[0]) == len(value):
            break
    return decoded


def _decode_lines(
    text: str, lines: Sequence[tuple[int, int]], *, header: str, indent: int, start: int, end: int
) -> tuple[str, list[int]]:
    folded = header.startswith(">")
    chars: list[str] = []
    offsets: list[int] = []

    def emit(char: str, offset: int) -> None:
        chars.append(char)
        offsets.append(offset)

    pending: list[int] = []
    """The line breaks since the last line with content; the first of them ended that line."""
    was_indented = True
    started = False
    for first, last in lines:
        spaces = _skip(text, first, min(last, first + indent), " ") - first
        if spaces < indent and first + spaces < last:
            break
        if first + spaces == last:
            pending.append(last)
            continue
        is_indented = text[first + spaces] in _BLANKS
        if folded and started and not was_indented and not is_indented:
            if len(pending) == 1:
                emit(" ", pending[0])
            pending = pending[1:]
        for offset in pending:
            emit("\n", offset)
        for offset in range(first + spaces, last):
            emit(text[offset], offset)
        pending = [last]
        was_indented, started = is_indented, True
    pending = [offset for offset in pending if offset < end]
    kept = len(pending) if "+" in header else 0 if "-" in header else int(started)
    for offset in pending[:kept]:
        emit("\n", offset)
    offsets.append(offsets[-1] + 1 if offsets else start)
    return "".join(chars), offsets


def _find_indent(text: str, lines: Sequence[tuple[int, int]]) -> int:
    """The spaces before the first word of a block; those of its longest line if it has no words."""
    for first, last in lines:
        spaces = _skip(text, first, last, " ") - first
        if first + spaces < last:
            return spaces
    return max((last - first for first, last in lines), default=0)


def _split_lines(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Start and end of each line, without its break."""
    lines = []
    while start < end:
        last = _find_break(text, start, end)
        lines.append((start, last))
        start = _after_break(text, last, end)
    return lines


def _find_breaks(text: str, start: int, end: int) -> list[int]:
    """The offsets of line breaks; carriage return and line feed together are one."""
    return [
        at
        for at in range(start, end)
        if text[at] == "\r" or (text[at] == "\n" and not (at > start and text[at - 1] == "\r"))
    ]


def _find_break(text: str, start: int, end: int) -> int:
    while start < end and text[start] not in _BREAKS:
        start += 1
    return start


def _after_break(text: str, at: int, end: int) -> int:
    return min(end, at + (2 if text[at : at + 2] == "\r\n" else 1))


def _skip(text: str, start: int, end: int, chars: str) -> int:
    while start < end and text[start] in chars:
        start += 1
    return start
