"""The mutants of `make mutants`: each is one change, and what says nothing is not changed."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.mutating import count_mutants, make_mutant


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return a == b", ["return a != b", "return None"]),
        ("if not a:\n        b()", ["if a:\n        b()", "if not a:\n        pass"]),
        (
            "return a and 1 in b",
            ["return a or 1 in b", "return a and 1 not in b", "return a and 2 in b", "return None"],
        ),
        ("a += True", ["a -= True", "a += False", "pass"]),
        ("raise ValueError(1)", []),
        ("'text'", []),
        ("a: list[1] = f'{b + 1}'", []),
        ("a = zip(b, strict=True)", []),
    ],
)
def test_every_change_is_made_once(body: str, expected: list[str]) -> None:
    text = f"def f(a, b):\n    {body}\n"
    found = [ast.unparse(make_mutant(text, number).tree) for number in range(count_mutants(text))]
    assert sorted(found) == sorted(f"def f(a, b):\n    {each}" for each in expected)


def test_only_functions_are_changed() -> None:
    assert count_mutants("A = 1\nclass B:\n    c: int = 2\n") == 0


def test_functions_that_handle_objects_of_spark_are_known() -> None:
    text = """
from pyspark.sql import DataFrame
def f(rows: DataFrame): return rows
def g(rows): return rows
"""
    assert [make_mutant(text, number).on_spark for number in range(count_mutants(text))] == [True, False]
