"""Slips in YAML. Whole reports are in the golden files."""

from __future__ import annotations

import pytest

from dobonomodo.model import load_documents
from dobonomodo.model.mistake import find_mistake, quote_entry
from dobonomodo.problems import Source
from dobonomodo.problems.definition import YamlSyntax


def fault_in(text: str) -> YamlSyntax:
    _, (problem,) = load_documents(Source("p.yaml", text))
    assert isinstance(problem, YamlSyntax)
    return problem


@pytest.mark.parametrize(
    ("text", "marked", "quoted"),
    [
        ("a: {column: eur, expression: ROUND(a, 2)}\n", "ROUND(a, 2)", 'expression: "ROUND(a, 2)"'),
        ("a: {expression: F(a, G(b, c), d), seq: 1}\n", "F(a, G(b, c), d)", 'expression: "F(a, G(b, c), d)"'),
        ('a: {expression: IF(a, "x", "y")}\n', 'IF(a, "x", "y")', 'expression: \'IF(a, "x", "y")\''),
        ('selector: "Y" = x\n', "= x", "selector: '\"Y\" = x'"),
        ("selector: 'Y' = x\n", "= x", "selector: \"'Y' = x\""),
        ('a: {b: "Y" & c, d: 1}\n', "& c", "b: '\"Y\" & c'"),
        ("selector: `net amount` > 1\n", "`", 'selector: "`net amount` > 1"'),
        ("a: {b: !c}\n", "!", 'b: "!c"'),
        ("columns: *\n", "*", 'columns: "*"'),
        ("a: {b: * 2}\n", "*", 'b: "* 2"'),
    ],
)
def test_a_formula_that_needs_quotes(text: str, marked: str, quoted: str) -> None:
    problem = fault_in(text)
    assert problem.span is not None
    assert text[problem.span.start : problem.span.end] == marked
    assert f"`{quoted}`" in (problem.hint() or "")


def test_a_star_in_a_list_is_no_column() -> None:
    problem = fault_in("a:\n  columns: [*]\n")
    assert problem.span is not None
    assert "*" in (problem.hint() or "")


def test_what_was_meant_is_read_on() -> None:
    (document,), _ = load_documents(Source("p.yaml", "a: {column: eur, expression: ROUND(a, 2), seq: 3}\n"))
    assert document.data == {"a": {"column": "eur", "expression": "ROUND(a, 2)", "seq": 3}}


def test_a_key_without_a_value_is_no_part_of_a_formula() -> None:
    (document,), problems = load_documents(Source("p.yaml", "a: {expression: ROUND(a), b, c: ')'}\n"))
    assert document.data == {"a": {"expression": "ROUND(a)", "b": None, "c": ")"}}
    assert problems == ()


@pytest.mark.parametrize("text", ["a:\n\tb: 1\n", "a:\n  \tb: 1\n", "a:\n  b: 1\n\t\tc: 2\n"])
def test_a_tab_is_called_a_tab(text: str) -> None:
    problem = fault_in(text)
    assert problem.span is not None
    assert set(text[problem.span.start : problem.span.end]) == {"\t"}
    assert "spaces" in (problem.hint() or "")


def test_a_long_value_is_not_repeated() -> None:
    assert quote_entry("a", "x" * 61) == ""
    assert quote_entry("a", "x" * 60) != ""


def test_other_faults_are_left_to_the_parser() -> None:
    for text in ("a: b: c\n", "a: [1, 2\n", "- a\nb: 1\n"):
        assert find_mistake(text, len(text) - 1) is None


def test_a_secret_is_not_repeated() -> None:
    problem = fault_in('password: "x" hunter2hunter2\n')
    assert "hunter2" not in f"{problem.message()} {problem.hint()}"
