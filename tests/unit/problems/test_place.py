"""Lines, columns, and the places of values that were read from a larger text."""

from __future__ import annotations

import pytest

from dobonomodo.problems import Passage, Source, Span

TEXT = "one\ntwo\r\n\nfour"


@pytest.mark.parametrize(
    ("offset", "line", "column", "shown"),
    [
        (0, 1, 1, "one"),
        (2, 1, 3, "one"),
        (3, 1, 4, "one"),
        (4, 2, 1, "two"),
        (7, 2, 4, "two"),
        (8, 2, 5, "two"),
        (9, 3, 1, ""),
        (10, 4, 1, "four"),
        (13, 4, 4, "four"),
        (14, 4, 5, "four"),
    ],
)
def test_lines_and_columns(offset: int, line: int, column: int, shown: str) -> None:
    source = Source("file", TEXT)
    span = Span(source, offset, offset + 1)
    assert (span.line, span.column, source.line_at(offset)) == (line, column, shown)


def test_columns_count_characters() -> None:
    assert Span(Source("file", "日本😀x"), 3, 4).column == 4


def test_order() -> None:
    early, late, other = Source("a", "xy"), Source("a", "xy"), Source("b", "xy")
    spans = [Span(other, 0, 1), Span(late, 1, 2), Span(early, 0, 2), Span(early, 0, 1)]
    ordered = sorted(spans, key=lambda span: span.sort_key)
    assert [(span.source.name, span.start, span.end) for span in ordered] == [
        ("a", 0, 1),
        ("a", 0, 2),
        ("a", 1, 2),
        ("b", 0, 1),
    ]


def places(passage: Passage, start: int, end: int) -> tuple[int, int]:
    span = passage.span(start, end)
    return span.start, span.end


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(0, 2, (0, 2)), (1, 2, (1, 2)), (0, 5, (0, 5)), (2, 2, (2, 3)), (5, 5, (5, 6)), (9, 12, (5, 6)), (4, 99, (4, 5))],
)
def test_alone(start: int, end: int, expected: tuple[int, int]) -> None:
    """A span is never empty and never reaches beyond the value, save for the place behind it."""
    assert places(Passage.alone("a + b"), start, end) == expected


def test_alone_has_a_name() -> None:
    assert Passage.alone("a", name="--selector").source == Source("--selector", "a")
    assert Passage.alone("a").span(0, 1).source.name == "formula"


def test_empty() -> None:
    assert places(Passage.alone(""), 0, 0) == (0, 1)


@pytest.fixture
def escaped() -> Passage:
    r"""The value ``a"b`` that is written ``x: "a\"b"``."""
    return Passage('a"b', Source("file", r'x: "a\"b"'), [4, 5, 7, 8])


@pytest.mark.parametrize(
    ("start", "end", "expected"), [(0, 1, (4, 5)), (1, 2, (5, 6)), (2, 3, (7, 8)), (0, 3, (4, 8)), (3, 3, (8, 9))]
)
def test_offsets(escaped: Passage, start: int, end: int, expected: tuple[int, int]) -> None:
    assert places(escaped, start, end) == expected


def test_offsets_that_jump_back_give_a_caret_still() -> None:
    """As a YAML alias does, or whatever else a reader makes of its text."""
    passage = Passage("ab", Source("file", "b......a"), [7, 0, 1])
    assert places(passage, 0, 2) == (7, 8)
