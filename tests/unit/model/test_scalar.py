"""Plain scalars by the rules of YAML 1.2 core, and the place of each character of a text."""

from decimal import Decimal

import pytest

from dobonomodo.model.document import load_documents
from dobonomodo.model.scalar import UnusableNumberError, resolve_plain
from dobonomodo.problems import Passage, Source


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None), ("~", None), ("null", None), ("true", True), ("False", False), ("on", "on"), ("yes", "yes"),
        ("12", 12), ("-3", -3), ("012", 12), ("0x1F", 31), ("0o17", 15), ("2026-01-31", "2026-01-31"), ("1_000", "1_000"),
        ("1:30", "1:30"), ("0.10", Decimal("0.10")), (".5", Decimal("0.5")), ("1e3", Decimal("1E+3")), ("-", "-"),
        ("1.2.3", "1.2.3"), ("<<", "<<"), ("=", "="),
    ],
)  # fmt: skip
def test_a_plain_scalar_has_its_value_of_yaml_1_2(text: str, value: object) -> None:
    resolved = resolve_plain(text)
    assert resolved == value
    assert type(resolved) is type(value)


def test_a_decimal_keeps_its_digits() -> None:
    assert str(resolve_plain("125000.50")) == "125000.50"


@pytest.mark.parametrize(
    "text", [".inf", "-.INF", ".nan", "1e999999999", "9" * 101, "0." + "1" * 200, "1e" + "9" * 500]
)
def test_a_number_that_cannot_be_computed_with_is_refused(text: str) -> None:
    with pytest.raises(UnusableNumberError):
        resolve_plain(text)


def passage_of(text: str) -> Passage:
    documents, problems = load_documents(Source("f.yaml", text))
    assert problems == ()
    return documents[0].places.passage("k")


def marked(passage: Passage, word: str) -> str:
    """What stands in the file where a word of the value is said to stand."""
    start = passage.value.index(word)
    span = passage.span(start, start + len(word))
    return span.source.text[span.start : span.end]


@pytest.mark.parametrize(
    "text",
    [
        "k: a + amount\n",
        "k: 'it''s' # amount\n".replace("it''s", "it''s amount"),
        'k: "\\"x\\" \\u0041 amount"\n',
        "k: |\n  one\n\n    two amount\n",
        "k: >-\n  one\n  two\n\n  three amount\n",
        "k: |2-\n     one\n    amount\n",
        "k: plain\n  over amount\n  lines\n",
        'k: "over \\\n  a line amount"\n',
        "k: >+\r\n  crlf\r\n  amount\r\n\r\n",
    ],
)
def test_a_word_is_found_inside_a_scalar_of_any_style(text: str) -> None:
    assert marked(passage_of(text), "amount") == "amount"


def test_an_escape_stands_where_its_backslash_is() -> None:
    passage = passage_of('k: "a\\tb"')
    assert list(passage.offsets) == [4, 5, 7, 8]


def test_a_doubled_quote_stands_at_its_first_half() -> None:
    passage = passage_of("k: 'a''b'")
    assert list(passage.offsets) == [4, 5, 7, 8]


def test_a_folded_line_break_stands_at_the_break() -> None:
    passage = passage_of("k: >\n  a\n  b\n")
    assert passage.value == "a b\n"
    assert list(passage.offsets) == [7, 8, 11, 12, 13]


def test_a_character_outside_the_basic_plane_may_be_escaped_as_in_json() -> None:
    passage = passage_of('{"k": "\\ud83d\\ude00 amount"}')
    assert passage.value == "\U0001f600 amount"
    assert marked(passage, "amount") == "amount"


def test_a_backslash_before_a_surrogate_escape_stays_a_backslash() -> None:
    assert passage_of("k: '\\ud83d\\ude00'").value == "\\ud83d\\ude00"


@pytest.mark.parametrize("char", ["\x85", "\u2028", "\u2029"])
def test_only_carriage_return_and_line_feed_break_lines(char: str) -> None:
    assert passage_of(f'k: "a{char}amount"').value == f"a{char}amount"
    assert passage_of(f"k: |1\n   a{char}amount\n").value == f"  a{char}amount\n"
