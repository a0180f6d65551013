"""How problems are shown. Whole reports are in the golden files."""

from __future__ import annotations

import re
import unicodedata

import pytest

from dobonomodo.problems import OperationRef, Problem, Source, Span
from dobonomodo.problems.formula import InvalidDate, NullComparison, SelectorUndefined, TypeMismatch, UnknownColumn
from dobonomodo.problems.render import (
    EXCERPT_WIDTH,
    render_concise,
    render_count,
    render_full,
    render_github,
)


def unknown(text: str, start: int, end: int, *, name: str = "file") -> UnknownColumn:
    return UnknownColumn(span=Span(Source(name, text), start, end), name="x")


def excerpt(problem: Problem) -> tuple[str, str]:
    """The line and the line of the caret, without their margin."""
    _, _, _, line, caret, *_ = render_full([problem]).split("\n")
    return line.partition("| ")[2], caret.partition("| ")[2]


def cells(text: str) -> int:
    """How wide a terminal shows a text."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else not unicodedata.combining(char) for char in text)


@pytest.mark.parametrize(
    "text",
    [
        "@x@",
        "a + @bc@ + d",
        "\t@x@",
        "\t a\t@x@",
        "日本 @x@",
        "@日本@ + 1",
        "e\u0301e\u0301 @x@",
        "\x1b[31m @x@",
        "😀😀 @x@",
        "\u200bab @x@",
        "first\nsecond @x@ line\nthird",
        "first\r\nsecond @x@\r\n",
        "x" * 500 + "@yy@" + "z" * 500,
        "x" * 500 + "@yy@",
        "@yy@" + "z" * 500,
        "日" * 300 + "@x@" + "日" * 300,
        "\t" * 300 + "@x@",
    ],
)
def test_the_caret_stands_under_what_is_marked(text: str) -> None:
    start, end = text.index("@"), text.rindex("@") - 1
    line, caret = excerpt(unknown(text.replace("@", ""), start, end))
    before = len(caret) - len(caret.lstrip(" "))
    assert caret.strip(" ") == "^" * cells(text[start + 1 : end + 1])
    cut = next(at for at in range(len(line) + 1) if cells(line[:at]) == before)
    assert line[cut:].startswith(text[start + 1 : end + 1])


@pytest.mark.parametrize("width", [30, 50, 80])
@pytest.mark.parametrize(
    "text",
    [
        "IF(status, ROUND(@amout@ * unit_price * (1 - 0.25), 2), total) AND region = 1",
        "x" * 500 + "@yy@" + "z" * 500,
        "@yy@" + "z" * 500,
        "日" * 300 + "@x@" + "日" * 300,
        "\t" * 300 + "@x@",
        "@" + "x" * 300 + "@",
    ],
)
def test_in_a_narrow_terminal_the_excerpt_is_cut_around_the_caret(text: str, width: int) -> None:
    start, end = text.index("@"), text.rindex("@") - 1
    problem = TypeMismatch(
        what="this", expected="a number of any size", found="text", span=unknown(text.replace("@", ""), start, end).span
    )
    lines = render_full([problem], width=width).split("\n")
    assert all(cells(line) <= width for line in lines)
    at = next(number for number, line in enumerate(lines) if line.lstrip().startswith("| ") and "^" in line)
    line, caret = lines[at - 1].partition("| ")[2], lines[at].partition("| ")[2]
    before = len(caret) - len(caret.lstrip(" "))
    cut = next(at for at in range(len(line) + 1) if cells(line[:at]) == before)
    marked = text[start + 1 : end + 1]
    assert line[cut:].startswith(marked[: min(len(marked), 5)])


@pytest.mark.parametrize("width", [30, 50, 80])
def test_in_a_narrow_terminal_words_are_not_broken(width: int) -> None:
    problem = SelectorUndefined(
        name="activ", known=("active_orders", "totals", "closed_months"), operation=OperationRef(20, "a long name")
    )
    wide, narrow = render_full([problem]), render_full([problem], width=width)
    assert narrow.split() == wide.split()
    assert all(len(line) <= width for line in narrow.split("\n"))
    assert render_full([problem], width=300) == wide


@pytest.mark.parametrize("text", ["x" * 5_000, "日" * 5_000, "a\t" * 5_000])
@pytest.mark.parametrize("start", [0, 40, 2_500, 4_999])
def test_long_lines_are_cut(text: str, start: int) -> None:
    line, caret = excerpt(unknown(text, start, start + 1))
    assert len(line.replace("    ", "\t").replace("...", "")) <= EXCERPT_WIDTH
    assert caret.strip()


def test_a_long_mark_is_cut_with_its_line() -> None:
    line, caret = excerpt(unknown("x" * 5_000, 10, 5_000))
    assert len(caret.strip()) < EXCERPT_WIDTH
    assert line.endswith("...")


def test_a_mark_over_several_lines_ends_with_the_first() -> None:
    line, caret = excerpt(unknown("ab + (c\n+ d)", 5, 12))
    assert (line, caret) == ("ab + (c", "     ^^")


def test_a_place_behind_the_text_has_a_caret() -> None:
    assert excerpt(unknown("ab", 2, 3)) == ("ab", "  ^")
    assert excerpt(unknown("", 0, 1)) == ("", "^")
    assert excerpt(unknown("ab\n", 3, 4)) == ("", "^")


@pytest.mark.parametrize("char", ["\x00", "\x07", "\x1b", "\x7f", "\x9b", "\u202e", "\u2066", "\u2028", "\n", "\r"])
def test_nothing_moves_the_cursor(char: str) -> None:
    """Neither the excerpt nor names, operations and messages."""
    text = f"a{char}b"
    problem = InvalidDate(
        span=Span(Source(text, text), 0, 1), operation=OperationRef(1, text), text=text, expression=text
    )
    shown = render_full([problem]).replace("\n", "") + render_concise([problem])
    assert all(each.isprintable() for each in shown)
    assert "\n" not in render_github([problem])
    assert "\r" not in render_github([problem])


def test_colour() -> None:
    problem = unknown("a", 0, 1)
    plain, colored = render_full([problem]), render_full([problem], color=True)
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain
    assert colored.count("\x1b[0m") * 2 == colored.count("\x1b[")


def test_lines_of_the_gutter_are_aligned() -> None:
    _, arrow, bar, line, caret, *_ = render_full([unknown("\n" * 122 + "abc", 123, 124)]).split("\n")
    assert line.startswith("123 | ")
    assert {arrow.index("-->"), bar.index("|") - 0, caret.index("|")} == {4}


def test_label_stands_behind_the_caret() -> None:
    problem = TypeMismatch(span=Span(Source("f", "a"), 0, 1), what="`-`", expected="a number", found="text")
    assert excerpt(problem)[1].startswith("^ ")


@pytest.mark.parametrize(("operation", "place"), [(None, None), (OperationRef(20, "net"), "operation 20 `net`")])
def test_without_a_place(operation: OperationRef | None, place: str | None) -> None:
    shown = render_full([SelectorUndefined(name="x", operation=operation)])
    assert ("-->" in shown) is (place is not None)
    assert place is None or place in shown


def test_concise_is_one_line_each() -> None:
    problems = [unknown("a\nb", 2, 3), SelectorUndefined(name="x")]
    first, second = render_concise(problems).split("\n")
    assert first.startswith("file:2:1: error[UNKNOWN_COLUMN]: ")
    assert second.startswith("error[SELECTOR_UNDEFINED]: ")


def test_json() -> None:
    problem = UnknownColumn(
        span=Span(Source("file", "a\n bc"), 3, 5),
        operation=OperationRef(20, "net"),
        expression="bc",
        name="bc",
        known=("bd",),
    )
    assert problem.to_dict() == {
        "code": "UNKNOWN_COLUMN",
        "severity": "error",
        "message": problem.message(),
        "hint": problem.hint(),
        "file": "file",
        "line": 2,
        "column": 2,
        "operation_seq": 20,
        "operation_name": "net",
        "expression": "bc",
    }


def test_json_without_a_place() -> None:
    shown = SelectorUndefined(name="x").to_dict()
    assert {name for name, value in shown.items() if value is None} == {
        "file", "line", "column", "operation_seq", "operation_name", "expression",
    }  # fmt: skip


def test_github() -> None:
    assert render_github([unknown("a\nb", 2, 3, name="a,b:c%.yaml")]).startswith(
        "::error file=a%2Cb%3Ac%25.yaml,line=2,col=1,title=UNKNOWN_COLUMN::"
    )
    assert render_github([NullComparison(operator="=", operand="a")]).startswith("::warning title=W-03::")


def test_github_escapes_the_message() -> None:
    problem = InvalidDate(text="100%\r\n::error::")
    assert "100%25%0D%0A" in render_github([problem])


@pytest.mark.parametrize(
    ("errors", "warnings", "count"),
    [(0, 0, ""), (1, 0, "1 error"), (2, 0, "2 errors"), (0, 1, "1 warning"), (1, 2, "1 error, 2 warnings")],
)
def test_count(errors: int, warnings: int, count: str) -> None:
    problems = [SelectorUndefined(name="x")] * errors + [NullComparison(operator="=", operand="a")] * warnings
    assert render_count(problems) == count


def test_long_words_do_not_fill_the_screen() -> None:
    problem = InvalidDate(span=Span(Source("f", "a"), 0, 1), text="x" * 10_000)
    assert max(map(len, render_full([problem]).split("\n"))) < 300
    assert len(render_concise([problem])) < 300
