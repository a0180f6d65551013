"""Text to tree and back, and what any text at all gives: a tree or problems, never an exception, and soon."""

from __future__ import annotations

import json
import random
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dobonomodo.formula import check_formula, parse, print_formula, render_formula, tree
from dobonomodo.formula.functions import FUNCTIONS
from dobonomodo.formula.parse import KEYWORDS
from dobonomodo.problems import Passage, Problem
from dobonomodo.problems.problem import OperationRef
from dobonomodo.problems.render import render_concise, render_full, render_github
from tests.property.strategies import GROUPED, RUN, SCOPE, TEXTS, Drawing, aggregations, formulas


def read(text: str) -> tree.Expression:
    parsed = parse(Passage.alone(text))
    assert parsed.tree is not None, (text, [problem.message() for problem in parsed.problems])
    return parsed.tree


@given(formulas())
def test_a_printed_tree_parses_to_the_same_tree(written: tree.Expression) -> None:
    assert read(print_formula(written)) == written


@given(aggregations())
def test_a_printed_aggregation_parses_to_the_same_tree(written: tree.Expression) -> None:
    assert read(print_formula(written)) == written


@given(formulas())
@example(tree.Binary("=", tree.Truth(True), tree.Not(tree.Column("paid"))))
@example(tree.Negate(tree.Negate(tree.Column("quantity"))))
@example(tree.Logic("AND", (tree.Logic("AND", (tree.Truth(True), tree.Truth(False))), tree.Column("paid"))))
@example(tree.Between(tree.Column("a"), tree.Logic("AND", (tree.Null(), tree.Null())), tree.Null(), negated=True))
def test_printing_settles_after_one_round(written: tree.Expression) -> None:
    once = print_formula(read(print_formula(written)))
    assert print_formula(read(once)) == once


@pytest.mark.parametrize(
    "text",
    [
        "a = NOT(b)",
        "a = NOT(b) AND c",
        "NOT(a) = b",
        "NOT NOT a",
        "AND(a, b) AND OR(c, NOT(d))",
        "NOT AND(a, b)",
        "x BETWEEN (1) AND (2) AND y",
        "- - 1",
        "a--1",
        "a - -1",
        "10% * 1e3 - 1.50",
        '"a""b" & \'it\'\'s\' || "c"',
        "t.`and`.".rstrip(".") + " = `or`",
        "CASE WHEN a THEN b END IS NOT NULL",
        "(a = b) = (c = d)",
        "{{ A }} OR NOT {{B}}",
        "a -- a comment\n + b",
        "COUNT(*) / COUNT_ALL()",
        "a NOT IN (1, 2) AND b NOT LIKE 'x' AND c NOT BETWEEN 1 AND 2",
        "`a``b`.`c d`",
        "0.10 + 1 + 1.0",
    ],
)
def test_written_forms_survive(text: str) -> None:
    first = read(text)
    assert read(print_formula(first)) == first


@given(formulas())
def test_a_checked_formula_always_renders(written: tree.Expression) -> None:
    checked = check_formula(Passage.alone(print_formula(written)), SCOPE)
    assert all(problem.code != "EXPRESSION_SYNTAX" for problem in checked.problems)
    if checked.tree is not None:
        assert render_formula(checked.tree, RUN)


# --- any text

WORDS = (
    *sorted(KEYWORDS),
    *(function.name for function in FUNCTIONS),
    *(
        "MEDIAN",
        "VLOOKUP",
        "amount",
        "fx.rate",
        "orders",
        ".",
        "{{ACTIVE}}",
        "{{",
        "}}",
        "{{nowhere}}",
        "`odd ``name``. $`",
        "`",
    ),
    *(
        "(",
        ")",
        ",",
        ";",
        "*",
        "+",
        "-",
        "/",
        "&",
        "||",
        "|",
        "=",
        "==",
        "<>",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "!",
        "%",
        "^",
    ),
    *(
        "1",
        "0.5",
        "10%",
        "1e5",
        "1e99999",
        "1e-50",
        "12abc",
        "1.",
        ".5",
        '"x"',
        "'y'",
        '"',
        "'",
        "--",
        "-- c\n",
        "\n",
        "\t",
        "\r\n",
    ),
    *(
        '"2026-02-30"',
        '"2026-01-31"',
        " 2026-01-31 ",
        '" 2026-01-31 "',
        "\ud800",
        "\x00",
        "\N{GRINNING FACE}",
        "\u2028",
        "ı",
        "ß",
    ),
)
scopes = st.sampled_from((SCOPE, GROUPED))


def check_any(text: str, scope: object = SCOPE) -> tuple[Problem, ...]:
    """Check a text that may be anything; what comes of it must be complete and presentable."""
    passage = Passage.alone(text)
    checked = check_formula(passage, scope)  # type: ignore[arg-type]
    errors = [problem for problem in checked.problems if problem.severity == "error"]
    assert (checked.tree is None) == bool(errors)
    for problem in checked.problems:
        assert problem.span is not None
        limit = len(problem.span.source.text)
        assert 0 <= problem.span.start < problem.span.end <= max(limit, 1)
        assert problem.expression is not None
    if checked.tree is not None:
        assert render_formula(checked.tree, RUN)
    render_everywhere(checked.problems)
    return checked.problems


def render_everywhere(problems: tuple[Problem, ...]) -> None:
    for color in (False, True):
        shown = render_full(problems, color=color)
        assert all(each.isprintable() or each in "\n\x1b" for each in shown)
        shown.encode()
    lines = render_concise(problems)
    lines.encode()
    assert lines.count("\n") == max(0, len(problems) - 1)
    annotations = render_github(problems)
    annotations.encode()
    assert annotations.count("\n") == max(0, len(problems) - 1)
    for problem in problems:
        json.dumps(problem.to_dict()).encode()


@given(st.text(st.characters(exclude_categories=())), scopes)
@example("\ud800", SCOPE)
@example('DATE(" 2026-01-31 ")', SCOPE)
@example("\u2028", SCOPE)
@example("\n\n", SCOPE)
@example("a\r\nb", SCOPE)
def test_any_text_gives_a_tree_or_problems(text: str, scope: object) -> None:
    check_any(text, scope)


@given(st.lists(st.sampled_from(WORDS), max_size=25), st.sampled_from(("", " ")), scopes)
def test_any_words_give_a_tree_or_problems(words: list[str], between: str, scope: object) -> None:
    check_any(between.join(words), scope)


@given(st.integers(0, 2**64 - 1), st.lists(st.sampled_from((*WORDS, *TEXTS)), min_size=1, max_size=3), scopes)
def test_any_change_of_a_formula_gives_a_tree_or_problems(seed: int, inserted: list[str], scope: object) -> None:
    generator = random.Random(seed)
    text = print_formula(Drawing(generator.randint).formula(4))
    for each in inserted:
        start = generator.randint(0, len(text))
        end = min(len(text), start + generator.choice((0, 0, 1, 2, 10)))
        text = text[:start] + each + text[end:]
    check_any(text, scope)


@given(st.text(st.characters(exclude_categories=()), max_size=30), st.text(max_size=10))
def test_problems_render_whatever_the_names(text: str, name: str) -> None:
    from dataclasses import replace

    passage = Passage.alone(text, name=name)
    problems = check_formula(passage, SCOPE).problems
    render_everywhere(tuple(replace(each, operation=OperationRef(3, name)) for each in problems))


# --- limits

MANY = 10_000


@pytest.mark.parametrize(
    "text",
    [
        "(" * MANY + "1" + ")" * MANY,
        "(" * MANY,
        ")" * MANY,
        "IF(TRUE, " * MANY + "1" + ", 0)" * MANY,
        "IF(paid, 1, " * 3_000 + "1" + ")" * 3_000,
        "CASE WHEN TRUE THEN " * 1_500 + "1" + " END" * 1_500,
        " + ".join(["1"] * MANY),
        "+".join(["1"] * MANY),
        "*".join(["wide"] * 5_000),
        "&".join(["note"] * 5_000),
        "NOT " * 8_000 + "TRUE",
        "-" * MANY + "1",
        "- " * MANY + "1",
        "ABS(" * 5_000 + "1" + ")" * 5_000,
        "{{" * MANY,
        "`" * (MANY + 1),
        '"' * (MANY + 1),
        ";" * MANY,
        "%" * MANY,
        "1abc " * 5_000,
        "a." * MANY,
        "1e" * MANY,
        "9" * MANY,
        "0." + "0" * MANY + "1",
        "x" * 40_000,
        "a IN (" + ", ".join(["1"] * 9_990) + ")",
        "NVL(" * 2_000 + "1" + ", 1)" * 2_000,
        "\n" * 30_000,
        "1 = " * 5_000 + "1",
    ],
    ids=lambda text: text[:12],
)
def test_what_is_too_large_is_a_problem_within_a_second(text: str) -> None:
    parse(Passage.alone("1"))
    before = time.process_time()
    problems = check_any(text)
    assert time.process_time() - before < 1
    assert any(problem.severity == "error" for problem in problems)


@pytest.mark.parametrize(
    "text",
    [
        "ROUNDUP(" * 60 + "wide" + ")" * 60,
        "MOD(7.5, " * 60 + "wide" + ")" * 60,
        "TEXT(VALUE(" * 30 + "note" + '), "000")' * 30,
        "MOD(" * 60 + "wide" + ", 7.5)" * 60,
        "-" * 60 + "wide",
    ],
    ids=lambda text: text[:7],
)
def test_what_multiplies_when_rendered_is_a_problem(text: str) -> None:
    before = time.process_time()
    assert any(problem.severity == "error" for problem in check_any(text))
    assert time.process_time() - before < 1
