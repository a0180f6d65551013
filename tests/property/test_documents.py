"""Any text becomes data with places or problems, and every character of a value is in the file where its place says."""

from __future__ import annotations

from decimal import Decimal

import yaml
from hypothesis import given
from hypothesis import strategies as st

from dobonomodo.model.document import Places, load_documents
from dobonomodo.model.parameter import read_value
from dobonomodo.model.schema import DataType
from dobonomodo.problems import Source


def check_every_character(text: str) -> list[str]:
    """Each character of each text is in the file where its passage says; returns the texts."""
    documents, _ = load_documents(Source("f.yaml", text))
    values: list[str] = []

    def visit(places: Places) -> None:
        for key in places.keys:
            part = places.at(key)
            assert part is not None
            visit(part)
        for element in places.elements():
            visit(element)
        if places.text() is None:
            return
        passage = places.passage()
        values.append(passage.value)
        assert len(passage.offsets) == len(passage.value) + 1
        assert all(left < right for left, right in zip(passage.offsets, passage.offsets[1:], strict=False))
        for char, offset in zip(passage.value, passage.offsets, strict=False):
            there = text[offset]
            is_escape = there == "\\" and places.node.style == '"'
            is_break = char in "\n " and there in "\r\n"
            assert there == char or is_escape or is_break

    for document in documents:
        visit(document.places)
    return values


@given(
    value=st.text(st.sampled_from("ab \n\t'\"\\{}#:-,\xe9\U0001f600%&*!|>"), max_size=30),
    style=st.sampled_from([None, "'", '"', "|", ">"]),
    width=st.sampled_from([8, 20, 80]),
    unicode=st.booleans(),
)
def test_every_character_of_a_written_text_is_found(value: str, style: str | None, width: int, unicode: bool) -> None:
    text = yaml.dump({"k": [{"j": value}]}, default_style=style, width=width, allow_unicode=unicode)
    values = check_every_character(text)
    if style is not None:
        assert values == [value]


@given(
    lines=st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from(["", "a", "b c", "# x", "- q", "a: b", "\tz", "a ", "x"])),
        max_size=6,
    ),
    header=st.sampled_from(["|", "|-", "|+", ">", ">-", ">+", "|1", ">2", "|2-", ">1+"]),
    newline=st.sampled_from(["\n", "\r\n"]),
    after=st.sampled_from(["", "z: 1"]),
)
def test_every_character_of_a_block_is_found(
    lines: list[tuple[int, str]], header: str, newline: str, after: str
) -> None:
    body = newline.join(" " * (4 + indent) + word for indent, word in lines)
    check_every_character(f"k:{newline}  - j: {header}{newline}{body}{newline}{after}")


@given(st.text(st.sampled_from("ab1 \n\t'\"\\{}[]#:-,&*!|>?%@`~.\ufeff\x00\x85é"), max_size=60))
def test_any_text_gives_documents_or_problems(text: str) -> None:
    documents, problems = load_documents(Source("f.yaml", text))
    for document in documents:
        assert document.data is not None or document.places.span() is not None
    for problem in problems:
        assert problem.message()
        assert problem.span is not None
        assert 0 <= problem.span.start < max(1, len(text))


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**8), max_value=10**8))
def test_a_decimal_is_never_another_number(number: Decimal) -> None:
    assert read_value(f"{number:f}", DataType.parse("decimal(15,4)")) == number
