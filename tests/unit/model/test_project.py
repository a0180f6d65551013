"""Projects: the envelope, and what counts as a change."""

from typing import Any

import pytest

from dobonomodo.model import Project
from dobonomodo.problems import OperationRef
from tests.unit.model.loading import found, load, shown, sound

BASE: dict[str, Any] = {
    "id": "p",
    "input_dataset_id": "d",
    "selectors": {"big": "amount > 10"},
    "operations": [{"seq": 1, "type": "delete", "selector": "a"}, {"seq": 2, "type": "update", "arguments": {"x": 1}}],
}


def changed(**changes: Any) -> str:
    return Project.from_data({**BASE, **changes}).fingerprint()


def operations(first: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**BASE["operations"][0], **first}, BASE["operations"][1]]


def test_a_project_is_loaded() -> None:
    project = sound("project: {input_dataset_id: d, operations: [{type: delete}], resolver_overrides: {d: r}}").projects
    (loaded,) = project.values()
    assert loaded.name == loaded.id
    assert loaded.operations[0].name == "delete-1"
    assert loaded.resolver_overrides == {"d": "r"}


def test_datasets_and_overrides_are_the_business_of_planning() -> None:
    assert found("project: {id: p, input_dataset_id: nowhere, resolver_overrides: {x: y}, operations: []}") == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("project: {id: p, operations: []}", ("MISSING_KEY", "project")),
        ("project: {id: p, input_dataset_id: d}", ("MISSING_KEY", "project")),
        ("project: {id: p, input_dataset_id: d, operations: {}}", ("INVALID_VALUE", "{}")),
        ("project: {id: p, input_dataset_id: d, operations: [], selectors: {a-b: x}}", ("INVALID_VALUE", "a-b")),
        ("project: {id: p, input_dataset_id: d, operations: [], selectors: {a: ''}}", ("INVALID_VALUE", "''")),
        ("project: {id: p, input_dataset_id: d, operations: [], status: active}", ("UNKNOWN_KEY", "status")),
        ("project: {id: p, input_dataset_id: d, operations: [], input_dataset_version: 0}", ("INVALID_VALUE", "0")),
    ],
)
def test_a_project_that_cannot_be_loaded(text: str, problem: tuple[str, str]) -> None:
    assert found(text) == [problem]


def test_a_problem_inside_an_operation_names_it() -> None:
    text = "project:\n  id: p\n  input_dataset_id: d\n  operations:\n    - {seq: 7, type: delete, arguments: []}\n"
    (problem,) = load(text)[1]
    assert problem.operation == OperationRef(7, "delete-7")


def test_an_expression_is_found_inside_its_scalar() -> None:
    text = """
project:
  id: p
  input_dataset_id: d
  operations:
    - order: 2
      type: update
      parameters:
        assignments:
          - column: a
            expression: >-
              IF(amount > 0,
                 "x", 'y')
    - {seq: 1, type: delete}
"""
    passage = sound(text).projects["p"].places.passage("operations", 1, "arguments", "assignments", 0, "expression")
    start = passage.value.index("'y'")
    assert shown(passage.span(start, start + 3)) == "'y'"


@pytest.mark.parametrize("change", [{"name": "x"}, {"description": "x"}, {"owner": "x"}])
def test_cosmetic_changes_keep_the_fingerprint(change: dict[str, Any]) -> None:
    assert changed(**change) == changed()


@pytest.mark.parametrize("change", [{"name": "x"}, {"description": "x"}, {"id": "x"}])
def test_cosmetic_changes_of_operations_keep_the_fingerprint(change: dict[str, Any]) -> None:
    assert changed(operations=operations(change)) == changed()


@pytest.mark.parametrize("change", [{"seq": 3}, {"type": "update"}, {"selector": "b"}, {"arguments": {"x": 1}}])
def test_other_changes_of_operations_change_the_fingerprint(change: dict[str, Any]) -> None:
    assert changed(operations=operations(change)) != changed()


@pytest.mark.parametrize(
    "change",
    [
        {"input_dataset_id": "e"},
        {"input_dataset_version": 3},
        {"selectors": {"big": "amount > 11"}},
        {"resolver_overrides": {"d": "r"}},
    ],
)
def test_other_changes_change_the_fingerprint(change: dict[str, Any]) -> None:
    assert changed(**change) != changed()


def test_the_order_of_the_list_and_synonyms_do_not_matter() -> None:
    reordered = [{"order": 2, "type": "update", "parameters": {"x": 1}}, {"seq": 1, "type": "delete", "selector": "a"}]
    assert changed(operations=reordered) == changed()
    blank = operations({"selector": " "})
    assert changed(operations=blank) == changed(operations=operations({"selector": None}))


def test_names_of_operations_count_where_formulas_ask_for_rows_by_them() -> None:
    def fingerprint(name: str, selector: str) -> str:
        operations = [{"seq": 1, "type": "delete", "name": name, "selector": selector}]
        return Project.from_data({"input_dataset_id": "d", "operations": operations}).fingerprint()

    assert fingerprint("a", "amount = 0") == fingerprint("b", "amount = 0")
    assert fingerprint("a", 'Made_By ("a")') != fingerprint("b", 'Made_By ("a")')
