"""Every kind of problem: coded, documented, and with an example that shows it."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, replace

import pytest

from dobonomodo.formula import Scope, check_formula
from dobonomodo.problems import PROBLEMS, Passage, Problem, find_problem
from dobonomodo.problems import formula as formula_problems
from dobonomodo.problems.formula import InvalidAggregate
from tests.unit.formula.orders import columns_from

ROWS = Scope(
    columns=columns_from(
        amount="decimal(15,2)", quantity="integer", status="string", region="string", order_date="date"
    ),
    table="orders",
    selectors={"active": Passage.alone('status = "active"'), "loop": Passage.alone("{{loop}}")},
)

WINDOWS = replace(ROWS, windows=True)

FORMULA_PROBLEMS = tuple(kind for kind in PROBLEMS if kind.__module__ == formula_problems.__name__)

every_kind = pytest.mark.parametrize("kind", PROBLEMS, ids=lambda kind: kind.__name__)
every_formula_kind = pytest.mark.parametrize("kind", FORMULA_PROBLEMS, ids=lambda kind: kind.__name__)


def check(text: str, kind: type[Problem]) -> list[Problem]:
    scope = replace(ROWS, group_by=()) if kind is InvalidAggregate else WINDOWS
    return list(check_formula(Passage.alone(text), scope).problems)


def test_codes_are_unique() -> None:
    codes = [kind.code for kind in PROBLEMS]
    assert len(set(codes)) == len(codes)


@every_kind
def test_a_kind_has_a_code_documentation_and_an_example(kind: type[Problem]) -> None:
    assert re.fullmatch(r"[A-Z]+(_[A-Z0-9]+)*|W-[0-9]{2}", kind.code)
    assert (kind.severity == "warning") == kind.code.startswith("W-")
    assert find_problem(kind.code) is find_problem(kind.code.lower()) is kind
    assert kind.__doc__
    assert kind.__doc__ != Problem.__doc__
    assert not kind.__doc__.startswith(f"{kind.__name__}(")
    assert inspect.getdoc(kind) == kind.__doc__.strip()
    assert kind.example.wrong != kind.example.right
    assert "example" in vars(kind)


@every_formula_kind
def test_the_wrong_example_has_this_problem_and_no_other(kind: type[Problem]) -> None:
    found = check(kind.example.wrong, kind)
    assert found
    assert {problem.code for problem in found} == {kind.code}


@every_formula_kind
def test_the_right_example_has_none(kind: type[Problem]) -> None:
    assert check(kind.example.right, kind) == []


@every_formula_kind
def test_words(kind: type[Problem]) -> None:
    """Lower case, no full stop, no line end; what to do is in the hint."""
    for problem in check(kind.example.wrong, kind):
        for words in filter(None, (problem.message(), problem.hint(), problem.label())):
            assert not words.endswith(".")
            assert words[0] in "`{" or words[0] == words[0].lower()
            assert "\n" not in words
        assert problem.hint()


@every_formula_kind
def test_place_and_expression(kind: type[Problem]) -> None:
    for problem in check(kind.example.wrong, kind):
        assert problem.span is not None
        assert problem.expression is not None
        assert {field.name for field in fields(problem)} >= {"span", "operation", "expression"}


def test_find_nothing() -> None:
    assert find_problem("NO_SUCH_CODE") is None


def test_all_kinds_of_formula_problems_are_in_the_catalogue() -> None:
    defined = {each for each in vars(formula_problems).values() if isinstance(each, type) and issubclass(each, Problem)}
    assert defined - {Problem} == set(FORMULA_PROBLEMS)
