"""Text: counted in characters, compared as written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal

from dobonomodo.formula.functions import formats
from dobonomodo.formula.functions.letters import to_lower, to_title, to_upper
from dobonomodo.formula.functions.signature import (
    Argument,
    Function,
    RunValues,
    anything,
    clock,
    constant,
    day,
    fn,
    integer,
    maybe,
    more,
    number,
    piece,
    sig,
    text,
)
from dobonomodo.formula.meaning import Steps, each, int32, lazy, present, typed, write_number
from dobonomodo.formula.sql import cast, quote_text
from dobonomodo.formula.typed import Typed, Value
from dobonomodo.formula.types import BOOLEAN, INTEGER, TEXT, DecimalType


def as_text(argument: Argument) -> str:
    """A piece of text for joining; integers and dates have one way of being written."""
    return argument.sql if argument.type == TEXT else cast(argument.sql, TEXT)


def _concat(arguments: Sequence[Argument], run: RunValues) -> str:
    return f"concat({', '.join(as_text(argument) for argument in arguments)})"


LONGEST = 2**31 - 1
"""Characters of the longest text in Spark."""


def _count(argument: Argument) -> str:
    """How many characters to take, as the INT that Spark wants: a number beyond either end of a text is that end."""
    if isinstance(argument.value, int):
        return str(max(0, min(argument.value, LONGEST)))
    sql = argument.sql
    return f"CASE WHEN {sql} > {LONGEST}L THEN {LONGEST} WHEN {sql} < 0L THEN 0 ELSE CAST({sql} AS INT) END"


def _width(argument: Argument) -> str:
    """How long a padded text is to be: one that is longer than any text stops the run."""
    if isinstance(argument.value, int) and argument.value <= LONGEST:
        return _count(argument)
    return f"CASE WHEN {argument.sql} < 0L THEN 0 ELSE CAST({argument.sql} AS INT) END"


def _take(function: str) -> Callable[[Sequence[Argument], RunValues], str]:
    def render(arguments: Sequence[Argument], run: RunValues) -> str:
        return f"{function}({arguments[0].sql}, {_count(arguments[1])})"

    return render


def _pad(function: str, arguments: Sequence[Argument]) -> str:
    pad = arguments[2].sql if len(arguments) > 2 else quote_text(" ")
    return f"{function}({arguments[0].sql}, {_width(arguments[1])}, {pad})"


def _lpad(arguments: Sequence[Argument], run: RunValues) -> str:
    return _pad("lpad", arguments)


def _rpad(arguments: Sequence[Argument], run: RunValues) -> str:
    return _pad("rpad", arguments)


def _positive(value: Value) -> str | None:
    return None if isinstance(value, int) and value >= 1 else "1 or more"


def _mid(arguments: Sequence[Argument], run: RunValues) -> str:
    """Spark counts from the end for negative positions and takes 0 for 1; neither is what MID means."""
    source, start, count = arguments
    sql = f"substring({source.sql}, {_count(start)}, {_count(count)})"
    return sql if start.is_literal else f"CASE WHEN {start.sql} >= 1L THEN {sql} END"


def _plain(arguments: Sequence[Argument], run: RunValues) -> str:
    (argument,) = arguments
    sql = as_text(argument)
    if isinstance(argument.type, DecimalType) and argument.type.scale:
        return f"rtrim('.', rtrim('0', {sql}))"
    return sql


_start = replace(integer, verify=_positive)

# --- in plain Python


def _padding(text: str, width: int, pad: str) -> str:
    missing = int32(max(0, width)) - len(text)
    return (pad * (missing // len(pad) + 1))[:missing] if missing > 0 and pad else ""


def _pad_left(text: str, width: int, pad: str = " ") -> str:
    return (_padding(text, width, pad) + text)[: max(0, width)]


def _pad_right(text: str, width: int, pad: str = " ") -> str:
    return (text + _padding(text, width, pad))[: max(0, width)]


def _middle(operands: Sequence[Typed]) -> Steps:
    """A position below 1 decides."""
    start = yield operands[1]
    if not isinstance(start, int) or start < 1:
        return None
    values = yield from present((operands[0], operands[2]))
    return None if values is None else values[0][start - 1 :][: max(0, values[1])]


def _write(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case Decimal():
            written = write_number(value)
            return written.rstrip("0").rstrip(".") if "." in written else written
        case _:
            return str(value)


TEXTS: tuple[Function, ...] = (
    fn("CONCAT", sig(piece, more(piece), to=TEXT), _concat,
       "Texts joined; NULL if one of them is NULL. Whole numbers and dates are converted; decimals need TEXT first.",
       'CONCAT("a", "b", "c") = "abc"', 'CONCAT("FY", 2026) = "FY2026"', 'ISNULL(CONCAT("a", NULL))',
       '"a" & "b" || "c" = "abc"', 'CONCAT(DATE("2026-01-31"), "!") = "2026-01-31!"',
       python=each(lambda *pieces: "".join(map(str, pieces)))),
    fn("UPPER", sig(text, to=TEXT), "upper({0})", "A text in upper case.", 'UPPER("abC") = "ABC"', "ISNULL(UPPER(NULL))",
       python=each(to_upper)),
    fn("LOWER", sig(text, to=TEXT), "lower({0})", "A text in lower case.", 'LOWER("ABc") = "abc"', "ISNULL(LOWER(NULL))",
       python=each(to_lower)),
    fn("PROPER", sig(text, to=TEXT), "initcap({0})",
       "The first letter of each word in upper case, the others in lower case. Words are separated by spaces.",
       'PROPER("nORTH sea") = "North Sea"', "ISNULL(PROPER(NULL))",
       python=each(to_title)),
    fn("TRIM", sig(text, to=TEXT), r"btrim({0}, ' \t\r\n')",
       "A text without spaces, tabs and line breaks at its start and end.",
       'TRIM("  a  b ") = "a  b"', 'TRIM("") = ""', "ISNULL(TRIM(NULL))",
       python=each(lambda text: text.strip(" \t\r\n"))),
    fn("LEFT", sig(text, integer, to=TEXT), _take("left"),
       "The first characters of a text.",
       'LEFT("abc", 2) = "ab"', 'LEFT("abc", 9) = "abc"', 'LEFT("abc", -1) = ""', 'LEFT("abc", 3000000000) = "abc"',
       "ISNULL(LEFT(NULL, 1))",
       python=each(lambda text, count: text[: max(0, count)])),
    fn("RIGHT", sig(text, integer, to=TEXT), _take("right"),
       "The last characters of a text.",
       'RIGHT("abc", 2) = "bc"', 'RIGHT("abc", 9) = "abc"', 'RIGHT("abc", 0) = ""', 'RIGHT("abc", 3000000000) = "abc"',
       "ISNULL(RIGHT(NULL, 1))",
       python=each(lambda text, count: text[max(0, len(text) - max(0, count)) :])),
    fn("MID", sig(text, _start, integer, to=TEXT), _mid,
       "Part of a text: MID(text, position, count). Positions start at 1; NULL for a position below 1.",
       'MID("abcde", 2, 3) = "bcd"', 'MID("abc", 3, 9) = "c"', 'MID("abc", 9, 1) = ""', 'MID("abc", 2, 3000000000) = "bc"',
       'ISNULL(MID("abc", LEN("") , 1))',
       python=lazy(_middle)),
    fn("LEN", sig(text, to=INTEGER), "CAST(char_length({0}) AS BIGINT)",
       "The number of characters, including spaces.",
       'LEN("abc ") = 4', 'LEN("") = 0', 'LEN("\N{GRINNING FACE}") = 1', "ISNULL(LEN(NULL))",
       python=each(len)),
    fn("CONTAINS", sig(text, text, to=BOOLEAN), "contains({0}, {1})",
       "Whether the first text contains the second; case-sensitive.",
       'CONTAINS("north sea", "sea")', 'NOT CONTAINS("north", "N")', 'ISNULL(CONTAINS("a", NULL))', 'CONTAINS("a", "")',
       python=each(lambda text, part: part in text)),
    fn("STARTSWITH", sig(text, text, to=BOOLEAN), "startswith({0}, {1})",
       "Whether the first text starts with the second.", 'STARTSWITH("4711-A", "47")', 'NOT STARTSWITH("abc", "b")',
       'ISNULL(STARTSWITH("a", NULL))',
       python=each(str.startswith)),
    fn("ENDSWITH", sig(text, text, to=BOOLEAN), "endswith({0}, {1})",
       "Whether the first text ends with the second.", 'ENDSWITH("4711-A", "-A")', 'NOT ENDSWITH("abc", "b")',
       'ISNULL(ENDSWITH(NULL, "a"))',
       python=each(str.endswith)),
    fn("FIND", sig(text, text, to=INTEGER), "CAST(instr({1}, {0}) AS BIGINT)",
       "The position (from 1) of the first text in the second, 0 if it does not occur.",
       'FIND("b", "abcb") = 2', 'FIND("x", "abc") = 0', 'ISNULL(FIND("b", NULL))',
       python=each(lambda part, text: text.find(part) + 1)),
    fn("REPLACE", sig(text, text, text, to=TEXT), "replace({0}, {1}, {2})",
       "The first text with every occurrence of the second replaced by the third.",
       'REPLACE("a-b-c", "-", "") = "abc"', 'REPLACE("abc", "", "x") = "abc"', 'SUBSTITUTE("aaa", "a", "b") = "bbb"',
       'ISNULL(REPLACE("a", NULL, "b"))',
       aliases=("SUBSTITUTE",),
       python=each(lambda text, part, other: text.replace(part, other) if part else text)),
    fn("LPAD", sig(text, integer, maybe(text), to=TEXT), _lpad,
       "A text padded on the left to a length, with spaces or the third text. A longer text is truncated.",
       'LPAD("7", 3, "0") = "007"', 'LPAD("7", 3) = "  7"', 'LPAD("1234", 3, "0") = "123"', 'ISNULL(LPAD(NULL, 3, "0"))',
       python=each(_pad_left)),
    fn("RPAD", sig(text, integer, maybe(text), to=TEXT), _rpad,
       "A text padded on the right to a length, with spaces or the third text. A longer text is truncated.",
       'RPAD("7", 3, ".") = "7.."', 'RPAD("7", 2) = "7 "', "ISNULL(RPAD(NULL, 3))",
       python=each(_pad_right)),
    fn("TEXT", [
           (sig(number, constant(text, formats.check_number), to=TEXT), formats.format_number),
           (sig(day, constant(text, formats.check_date), to=TEXT), formats.format_moment),
           (sig(clock, constant(text, formats.check_time), to=TEXT), formats.format_moment),
       ],
       "A number or date formatted by a pattern: 0 and # for digits, yyyy MM dd HH mm ss for dates and times.",
       'TEXT(1234.5, "0.00") = "1234.50"', 'TEXT(1234567.891, "#,##0.00") = "1,234,567.89"', 'TEXT(7, "000") = "007"',
       'TEXT(-7, "000") = "-007"', 'TEXT(0.125, "0.0%") = "12.5%"', 'TEXT(DATE("2026-01-05"), "yyyy-MM") = "2026-01"',
       'TEXT(2.345, "0.00") = "2.35"', 'ISNULL(TEXT(NULL, "0"))', 'TEXT(DATE("2026-01-05"), "yyyyMM") = "202601"',
       python=typed(formats.write)),
    fn("TO_TEXT", sig(anything, to=TEXT), _plain,
       "Any value as text; decimals without trailing zeros, dates as 2026-01-31.",
       'TO_TEXT(2.50) = "2.5"', 'TO_TEXT(100) = "100"', 'TO_TEXT(TRUE) = "true"', 'TO_TEXT(DATE("2026-01-31")) = "2026-01-31"',
       'TO_TEXT(100.00) = "100"', 'TO_TEXT(0.0000001) = "0.0000001"', "ISNULL(TO_TEXT(NULL))",
       python=each(_write)),
)  # fmt: skip
