"""Texts and their trees: functions.md sections 1 and 2."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dobonomodo.formula import parse, tree
from dobonomodo.formula.parse import KEYWORDS, MAX_DEPTH, MAX_LENGTH, MAX_TOKENS
from dobonomodo.formula.tree import (
    Binary,
    Call,
    Case,
    Column,
    In,
    IsNull,
    Logic,
    Negate,
    Not,
    Null,
    Number,
    Text,
    Truth,
)
from dobonomodo.formula.types import MAX_DIGITS
from dobonomodo.problems import Passage
from dobonomodo.problems.formula import ExpressionSyntax, SyntaxReason
from tests.unit.formula.orders import parsed

A, B, C, D = (Column(name) for name in "abcd")


def fault(text: str) -> ExpressionSyntax:
    """The one problem of a text that is no formula."""
    result = parse(Passage.alone(text))
    assert result.tree is None
    (problem,) = result.problems
    assert isinstance(problem, ExpressionSyntax)
    return problem


def reason(text: str) -> SyntaxReason:
    return fault(text).reason


def marked(text: str) -> str:
    """What the caret stands under."""
    span = fault(text).span
    assert span is not None
    return text[span.start : span.end]


# --- words


@pytest.mark.parametrize(
    "name",
    [
        "notes",
        "order_total",
        "and_flag",
        "true_up",
        "nullable_amt",
        "in_scope",
        "date_key",
        "is_",
        "ending",
        "_x",
        "x1",
    ],
)
def test_a_keyword_is_a_whole_word(name: str) -> None:
    assert parsed(name) == Column(name)
    assert parsed(f"{name} + 1") == Binary("+", Column(name), Number(Decimal(1)))


@pytest.mark.parametrize("name", ["date", "left", "sum", "year", "value", "count"])
def test_a_function_is_a_column_without_parenthesis(name: str) -> None:
    assert parsed(name) == Column(name)


def test_letters_of_any_alphabet() -> None:
    assert parsed("größe * 数量") == Binary("*", Column("größe"), Column("数量"))


@pytest.mark.parametrize("word", sorted(KEYWORDS))
def test_after_a_dot_every_word_is_a_column(word: str) -> None:
    assert parsed(f"orders.{word}") == Column(word, "orders")
    assert parsed(f"orders . {word.lower()}") == Column(word.lower(), "orders")


@pytest.mark.parametrize("word", sorted(KEYWORDS))
def test_any_word_is_a_column_in_backticks(word: str) -> None:
    assert parsed(f"`{word}`") == Column(word)


def test_backticks() -> None:
    assert parsed("`net amount`") == Column("net amount")
    assert parsed("`a``b`") == Column("a`b")
    assert parsed("`my table`.`x.y`") == Column("x.y", "my table")


@pytest.mark.parametrize("text", ["a AND b", "a and b", "a And b", "a\n\tAND\r\n  b", "(a)AND(b)"])
def test_keywords_in_any_case_and_any_white_space(text: str) -> None:
    assert parsed(text) == Logic("AND", (A, B))


def test_functions_in_any_case() -> None:
    assert (
        parsed("left(a,1)") == parsed("LEFT ( a , 1 )") == parsed("Left(a, 1)") == Call("LEFT", (A, Number(Decimal(1))))
    )


@pytest.mark.parametrize("text", ["TRUE", "true", "True"])
def test_truth(text: str) -> None:
    assert parsed(text) == Truth(True)


def test_null() -> None:
    assert parsed("NULL") == parsed("null") == Null()


def test_longest_match() -> None:
    assert parsed("a<=b") == Binary("<=", A, B)
    assert parsed("a<>b") == Binary("<>", A, B)
    assert parsed("a==b") == Binary("=", A, B)
    assert parsed("a<-b") == Binary("<", A, Negate(B))


def test_comments() -> None:
    assert parsed("a -- the first\n+ b") == Binary("+", A, B)
    assert parsed("a + b --") == Binary("+", A, B)
    assert parsed("a--b") == Binary("-", A, Negate(B))
    assert parsed('"-- no comment"') == Text("-- no comment")


# --- values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", "0"),
        ("12", "12"),
        ("007", "7"),
        ("1.50", "1.50"),
        ("1e3", "1000"),
        ("1.5E-3", "0.0015"),
        ("2e+2", "200"),
        ("10%", "0.10"),
        ("0.5%", "0.005"),
    ],
)
def test_numbers(text: str, value: str) -> None:
    node = parsed(text)
    assert isinstance(node, Number)
    assert node.value == Decimal(value)
    assert max(0, -int(node.value.as_tuple().exponent)) == max(0, -int(Decimal(value).as_tuple().exponent))


@pytest.mark.parametrize("text", [".5", "1.", "1..2", "1.5.2", "1x", "1.5x", "1_000", "0x1F", "1e", "1 2"])
def test_no_numbers(text: str) -> None:
    assert parse(Passage.alone(text)).tree is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"a"', "a"),
        ("'a'", "a"),
        ('""', ""),
        ("''", ""),
        ('"it\'s"', "it's"),
        ("'it''s'", "it's"),
        ('"say ""hi"""', 'say "hi"'),
        ('""""', '"'),
        ("''''", "'"),
        # C-12: no backslash escapes.
        (r'"C:\new"', r"C:\new"),
        (r"'\'", "\\"),
        # C-19: braces inside a text are text.
        ('"{{a}}"', "{{a}}"),
        ('"a\nb"', "a\nb"),
        ('"\0\u202e😀"', "\0\u202e😀"),
    ],
)
def test_texts(text: str, value: str) -> None:
    assert parsed(text) == Text(value)


def test_selectors() -> None:
    assert parsed("{{active}}") == parsed("{{  active }}") == tree.SelectorRef("active")
    assert parsed("NOT {{a}} AND {{b}}") == Logic("AND", (Not(tree.SelectorRef("a")), tree.SelectorRef("b")))


# --- operators


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a + b * c", "a + (b * c)"),
        ("a * b + c", "(a * b) + c"),
        ("a - b - c", "(a - b) - c"),
        ("a / b / c", "(a / b) / c"),
        ("a / b * c", "(a / b) * c"),
        ("-a * b", "(-a) * b"),
        ("-a + b", "(-a) + b"),
        ("a - -b", "a - (-b)"),
        ("a + b = c - d", "(a + b) = (c - d)"),
        ("NOT a = b", "NOT (a = b)"),
        ("NOT a AND b", "(NOT a) AND b"),
        ("NOT a IS NULL", "NOT (a IS NULL)"),
        ("a OR b AND c", "a OR (b AND c)"),
        ("a AND b OR c", "(a AND b) OR c"),
        ("a = b AND c = d", "(a = b) AND (c = d)"),
        # The AND inside BETWEEN belongs to BETWEEN.
        ("a BETWEEN b AND c AND d", "(a BETWEEN b AND c) AND d"),
        ("a BETWEEN b + 1 AND c * 2", "a BETWEEN (b + 1) AND (c * 2)"),
        ("a + b IN (c)", "(a + b) IN (c)"),
        ("a & b = c", "(a & b) = c"),
        ("a & b + c", "a & (b + c)"),
        ("a & b LIKE c & d", "(a & b) LIKE (c & d)"),
        # C-13.
        ("a == b", "a = b"),
        ("a != b", "a <> b"),
        ("a || b", "a & b"),
    ],
)
def test_precedence(text: str, same: str) -> None:
    assert parsed(text) == parsed(same)


def test_three_conditions_are_one_node() -> None:
    assert parsed("a AND b AND c") == Logic("AND", (A, B, C))
    assert parsed("a AND (b AND c)") == Logic("AND", (A, Logic("AND", (B, C))))


@pytest.mark.parametrize("text", ["a < b < c", "a = b = c", "a + 1 <= b <> c", "(a) < (b) < (c)", "f(a < b) < c < d"])
def test_comparisons_do_not_chain(text: str) -> None:
    assert reason(text) is SyntaxReason.CHAINED_COMPARISON


@pytest.mark.parametrize("text", ["f(a < b, c < d)", "a < b AND c < d", "(a < b) = (c < d)", "a < b OR NOT c < d"])
def test_comparisons_beside_each_other_are_no_chain(text: str) -> None:
    parsed(text)


@pytest.mark.parametrize(
    "text", ["a IS NULL = b", "a IN (b) = c", "a = b IS NULL", "a LIKE b LIKE c", "a BETWEEN b AND c = d"]
)
def test_nor_do_their_relatives(text: str) -> None:
    assert parse(Passage.alone(text)).tree is None


def test_and_or_not_as_functions() -> None:
    assert parsed("AND(a, b)") == Call("AND", (A, B))
    assert parsed("or(a, b)") == Call("OR", (A, B))
    assert parsed("NOT(a)") == Not(A)
    assert parsed("a AND (b)") == Logic("AND", (A, B))
    assert parsed("a AND OR(b, c)") == Logic("AND", (A, Call("OR", (B, C))))
    assert parsed("NOT(a) AND b") == Logic("AND", (Not(A), B))


def test_not_as_a_function_beside_an_operator() -> None:
    assert parsed("a = NOT(b)") == parsed("a = (NOT b)") == Binary("=", A, Not(B))


def test_lists() -> None:
    assert parsed("a IN (b)") == In(A, (B,), negated=False)
    assert parsed("a NOT IN (b, c + d)") == In(A, (B, Binary("+", C, D)), negated=True)
    assert parsed("a IS NOT NULL") == IsNull(A, negated=True)
    assert parsed("a NOT BETWEEN b AND c") == tree.Between(A, B, C, negated=True)
    assert parsed("a NOT LIKE b") == tree.Like(A, B, negated=True)


def test_case() -> None:
    assert parsed("CASE WHEN a THEN b END") == Case(((A, B),), None)
    assert parsed("case when a then b when c then d else a end") == Case(((A, B), (C, D)), A)


def test_calls() -> None:
    assert parsed("NOW()") == Call("NOW", ())
    assert parsed("COUNT(*)") == parsed("count( * )") == Call("COUNT", (), star=True)
    assert parsed("f(a, g(b))") == Call("F", (A, Call("G", (B,))))


# --- places


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("  a ", 2, 3),
        ("a + b", 0, 5),
        ("(a + b)", 0, 7),
        ("f(a, b) ", 0, 7),
        ("x.`y z`", 0, 7),
        ("CASE WHEN a THEN b END", 0, 22),
    ],
)
def test_places(text: str, start: int, end: int) -> None:
    node = parsed(text)
    assert (node.start, node.end) == (start, end)


@pytest.mark.parametrize(
    ("text", "expected", "mark"),
    [
        ("", SyntaxReason.EMPTY, ""),
        (" \n ", SyntaxReason.EMPTY, " \n "),
        ("-- nothing", SyntaxReason.EMPTY, "-- nothing"),
        ("a +", SyntaxReason.UNFINISHED, "+"),
        ("(a", SyntaxReason.UNFINISHED, "a"),
        ("f(a,", SyntaxReason.UNFINISHED, ","),
        ("a b", SyntaxReason.UNEXPECTED, "b"),
        ("a)", SyntaxReason.UNEXPECTED, ")"),
        ("= a", SyntaxReason.UNEXPECTED, "="),
        ("a =< b", SyntaxReason.UNEXPECTED, "<"),
        ("a && b", SyntaxReason.UNEXPECTED, "&"),
        ("a IN b", SyntaxReason.UNEXPECTED, "b"),
        ("a.b.c", SyntaxReason.UNEXPECTED, "."),
        ("a # b", SyntaxReason.UNKNOWN_CHARACTER, "#"),
        ("a ^ b", SyntaxReason.UNKNOWN_CHARACTER, "^"),
        ("2nd", SyntaxReason.UNKNOWN_CHARACTER, "2nd"),
        ("a\0", SyntaxReason.UNKNOWN_CHARACTER, "\0"),
        ('a = "b', SyntaxReason.UNCLOSED_TEXT, '"b'),
        ("a = 'b + c", SyntaxReason.UNCLOSED_TEXT, "'b + c"),
        ("a = 'it''s", SyntaxReason.UNCLOSED_TEXT, "'it''s"),
        ("`a", SyntaxReason.UNCLOSED_NAME, "`a"),
        ("a < b < c", SyntaxReason.CHAINED_COMPARISON, "<"),
    ],
)
def test_faults(text: str, expected: SyntaxReason, mark: str) -> None:
    assert (reason(text), marked(text)) == (expected, mark)


@pytest.mark.parametrize("text", ["{{a", "a $$ b", "a ### b", "a @@ b"])
def test_a_run_of_one_character_is_one_problem(text: str) -> None:
    assert reason(text) is SyntaxReason.UNKNOWN_CHARACTER


def test_every_wrong_character_is_reported() -> None:
    problems = parse(Passage.alone("a # b ? c @ d")).problems
    assert [problem.found for problem in problems if isinstance(problem, ExpressionSyntax)] == ["#", "?", "@"]


def test_a_semicolon_is_read_as_a_comma() -> None:
    problems = parse(Passage.alone("IF(a; b; c")).problems
    reasons = [problem.reason for problem in problems if isinstance(problem, ExpressionSyntax)]
    assert reasons == [SyntaxReason.UNKNOWN_CHARACTER, SyntaxReason.UNKNOWN_CHARACTER, SyntaxReason.UNFINISHED]


# --- limits


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x" * (MAX_LENGTH + 1), SyntaxReason.TOO_LONG),
        ("1" + "+1" * MAX_TOKENS, SyntaxReason.TOO_MANY_PARTS),
        ("(" * MAX_TOKENS + "1", SyntaxReason.TOO_MANY_PARTS),
        ("(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1), SyntaxReason.TOO_DEEP),
        ("IF(a, b, " * 200 + "c" + ")" * 200, SyntaxReason.TOO_DEEP),
        ("NOT " * 1_000 + "a", SyntaxReason.TOO_DEEP),
        ("-" * 1_000 + "a", SyntaxReason.TOO_DEEP),
        ("CASE WHEN a THEN " * 200 + "b" + " END" * 200, SyntaxReason.TOO_DEEP),
        ("1" * (MAX_DIGITS + 1), SyntaxReason.NUMBER_TOO_LONG),
        (f"0.{'0' * MAX_DIGITS}1", SyntaxReason.NUMBER_TOO_LONG),
        ("1e999999999999", SyntaxReason.NUMBER_TOO_LONG),
        ("1e-39", SyntaxReason.NUMBER_TOO_LONG),
    ],
)
def test_limits(text: str, expected: SyntaxReason) -> None:
    assert reason(text) is expected


def test_within_the_limits() -> None:
    parsed('"' + "x" * (MAX_LENGTH - 2) + '"')
    parsed("1" * MAX_DIGITS)
    parsed(f"0.{'1' * MAX_DIGITS}")
    parsed("(" * (MAX_DEPTH - 1) + "1" + ")" * (MAX_DEPTH - 1))
    parsed("f(" + ",".join("a" * 1_500) + ")")
    parsed(" AND ".join(["a"] * 1_500))


@pytest.mark.parametrize("text", ["\ud800", '"\udfff"', "a\x00b", "\ufeff", "\u2028", "💥", "a" * 10 + "'" * 9])
def test_no_text_is_too_strange(text: str) -> None:
    result = parse(Passage.alone(text))
    assert (result.tree is None) == bool(result.problems)


def test_a_text_that_was_read_before_has_faults_at_its_own_place() -> None:
    for name in ("one", "other"):
        (problem,) = parse(Passage.alone("1 +", name=name)).problems
        assert problem.span is not None
        assert problem.span.source.name == name
