"""Keys and values against the fields of a model."""

import pytest

from dobonomodo.problems.definition import InvalidValue, MissingKey, UnknownKey
from tests.unit.model.loading import found, problem_in


def test_an_unknown_key_is_reported_at_the_key_with_what_is_known() -> None:
    problem = problem_in("resolver: {id: a, rules: [], statsu: active}")
    assert isinstance(problem, UnknownKey)
    assert problem.key == "statsu"
    assert "status" in problem.known
    assert problem.hint() == "did you mean `status`?"


def test_an_unknown_key_without_a_value_is_unknown_all_the_same() -> None:
    problem = problem_in("resolver: {id: a, rules: [], statsu: }")
    assert isinstance(problem, UnknownKey)
    assert problem.key == "statsu"


def test_a_value_that_is_filled_in_from_a_wrong_one_is_no_second_problem() -> None:
    assert found("resolver: {id: [5], name: null, rules: []}") == [("INVALID_VALUE", "[5]")]


def test_each_place_has_one_problem() -> None:
    text = "calendar: {id: c, levels: [{name: year, date_rules: {starts: [x, y]}}]}"
    assert [code for code, _ in found(text)].count("INVALID_VALUE") == 1


def test_a_missing_key_is_reported_at_the_key_around_it() -> None:
    problem = problem_in("resolver:\n  id: a\n")
    assert isinstance(problem, MissingKey)
    assert (problem.key, problem.span and problem.span.line) == ("rules", 1)


def test_a_missing_key_in_a_list_is_reported_at_its_element() -> None:
    assert found("dataset:\n  id: d\n  main_table:\n    name: t\n    columns:\n      - {type: date}\n") == [
        ("MISSING_KEY", "type")
    ]


@pytest.mark.parametrize(
    ("text", "caret"),
    [
        ("resolver: [1]", "[1]"),
        ("resolver: {id: a, rules: {}}", "{}"),
        ("resolver: {id: a, rules: [5]}", "5"),
        ("resolver: {id: 5, rules: []}", "5"),
        ("resolver: {id: a, rules: [], is_default: yes}", "yes"),
        ("resolver: {id: a, rules: [], status: activ}", "activ"),
        ("workspace: {environments: [a]}", "[a]"),
        ("workspace: {spark: {conf: {a: [1]}}}", "[1]"),
        ("workspace: {spark: local}", "local"),
    ],
)
def test_a_value_of_the_wrong_kind_is_reported_at_the_value(text: str, caret: str) -> None:
    assert found(text) == [("INVALID_VALUE", caret)]


def test_a_number_where_text_is_needed_is_answered_with_the_text() -> None:
    problem = problem_in("resolver: {id: 0100, rules: []}")
    assert isinstance(problem, InvalidValue)
    assert problem.advice is not None
    assert '"0100"' in problem.advice


def test_one_of_several_models_is_chosen_by_its_type() -> None:
    rule = "resolver: {{id: a, rules: [{{strategy: {0}}}]}}"
    assert found(rule.format("{datasource_id: x}")) == [("MISSING_KEY", "strategy"), ("UNKNOWN_REFERENCE", "x")]
    assert found(rule.format("{type: pth}")) == [("INVALID_VALUE", "pth")]
    assert found(rule.format("[]")) == [("INVALID_VALUE", "[]")]
    assert found(rule.format("{type: path, datasource_id: x, table: t}")) == [
        ("MISSING_KEY", "strategy"),
        ("UNKNOWN_REFERENCE", "x"),
        ("UNKNOWN_KEY", "table"),
    ]


def test_all_problems_of_a_document_come_at_once() -> None:
    text = """
dataset:
  id: a b
  stats: active
  main_table:
    name: t
    columns:
      - {name: _x, type: int}
      - {name: a, type: date}
      - {name: A, type: date}
  lookups: [{alias: t, target: {type: dataset, id: d}, join_conditions: []}]
"""
    assert [code for code, _ in found(text)] == [
        "INVALID_VALUE", "UNKNOWN_KEY", "RESERVED_COLUMN", "INVALID_VALUE", "DUPLICATE_NAME", "DUPLICATE_NAME",
        "UNKNOWN_REFERENCE", "INVALID_VALUE",
    ]  # fmt: skip


def test_a_secret_is_not_repeated_in_a_message() -> None:
    problem = problem_in("workspace: {spark: {conf: {}}, store: [x]}")
    assert isinstance(problem, InvalidValue)
    text = "datasource: {id: a, type: csv, options: {path_prefix: p}, status: 'db://a:hunter2@h'}"
    assert "hunter2" not in problem_in(text).message()
