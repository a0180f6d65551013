"""The outer part of operations: C-03 to C-08 and C-20."""

import pytest

from dobonomodo.model import OperationSpec, Project, load_documents, load_operations
from dobonomodo.model.operation import MAX_OPERATIONS
from dobonomodo.problems import OperationRef, Problem, Source
from dobonomodo.problems.definition import DuplicateSeq, InvalidOperation, InvalidSeq, OperationReason
from tests.unit.model.loading import shown


def load(text: str) -> tuple[tuple[OperationSpec, ...] | None, tuple[Problem, ...]]:
    (document,), problems = load_documents(Source("f.yaml", text))
    assert problems == ()
    return load_operations(document.places)


def load_one(text: str) -> OperationSpec:
    operations, problems = load(text)
    assert problems == ()
    assert operations is not None
    (operation,) = operations
    return operation


def reasons(text: str) -> list[OperationReason]:
    return [problem.reason for problem in load(text)[1] if isinstance(problem, InvalidOperation)]


def test_synonyms_are_accepted() -> None:  # C-03
    operation = load_one("{order: 3, alias: tidy, type: delete, parameters: {}}")
    assert (operation.seq, operation.name, operation.arguments) == (3, "tidy", {})
    assert shown(operation.places.span("seq")) == "3"
    assert shown(operation.places.key_span("seq")) == "order"


def test_a_synonym_that_says_the_same_is_accepted() -> None:
    assert load_one("{seq: 3, order: 3, type: delete, arguments: {}, parameters: {}}").seq == 3


@pytest.mark.parametrize(
    "pair", ["seq: 1, order: 2", "seq: 1, name: a, alias: b", "seq: 1, arguments: {a: 1}, parameters: {a: 2}"]
)
def test_synonyms_that_differ_are_refused(pair: str) -> None:
    assert reasons(f"{{type: delete, {pair}}}") == [OperationReason.SYNONYM_CONFLICT]


@pytest.mark.parametrize("key", ["arguments", "parameters"])
def test_a_selector_inside_the_arguments_is_the_selector(key: str) -> None:  # C-04
    operation = load_one(f"{{seq: 1, type: delete, {key}: {{selector: a = 1}}}}")
    assert operation.selector == "a = 1"
    assert operation.arguments == {}
    assert shown(operation.places.span("selector")) == "a = 1"
    assert operation.places.passage("selector").value == "a = 1"


def test_the_same_selector_in_both_places_is_accepted() -> None:
    assert load_one("{seq: 1, type: delete, selector: a, arguments: {selector: a}}").selector == "a"


def test_selectors_that_differ_are_refused() -> None:
    text = "{seq: 1, type: delete, selector: a, arguments: {selector: b}}"
    assert reasons(text) == [OperationReason.SELECTOR_CONFLICT]


@pytest.mark.parametrize("seq", ["0", "-1", "1.5", "true", "'1'", "x", "[1]", "99999999999"])
def test_a_seq_is_a_whole_number_above_zero(seq: str) -> None:  # C-06
    _, problems = load(f"{{seq: {seq}, type: delete}}")
    assert [type(problem) for problem in problems] == [InvalidSeq]
    assert shown(problems[0].span) == seq


def test_a_seq_stands_once() -> None:  # C-06
    _, (problem,) = load("- {seq: 2, type: delete}\n- {order: 2, type: delete}\n")
    assert isinstance(problem, DuplicateSeq)
    assert problem.seq == 2
    assert problem.span is not None
    assert problem.first is not None
    assert (problem.first.line, problem.span.line) == (1, 2)
    assert problem.operation == OperationRef(2, "delete-2")


def test_operations_are_in_the_order_of_seq_with_their_places() -> None:  # C-06
    operations, _ = load("- {seq: 20, type: delete, name: b}\n- {seq: 3, type: delete, name: a}\n")
    assert operations is not None
    assert [operation.name for operation in operations] == ["a", "b"]
    assert [shown(operation.places.span("name")) for operation in operations] == ["a", "b"]


def test_without_any_seq_the_order_of_the_list_counts() -> None:
    operations, problems = load("- {type: append}\n- {type: delete}\n")
    assert problems == ()
    assert operations is not None
    assert [operation.seq for operation in operations] == [1, 2]


def test_a_seq_is_not_guessed_beside_others() -> None:
    _, problems = load("- {seq: 1, type: append}\n- {type: delete}\n")
    assert [(type(problem), getattr(problem, "found", "")) for problem in problems] == [(InvalidSeq, None)]


def test_name_and_id_have_defaults() -> None:  # C-07
    operation = load_one("{seq: 4, type: delete}")
    assert operation.name == "delete-4"
    assert operation.id == load_one("{seq: 4, type: delete, selector: x}").id
    assert operation.id != load_one("{seq: 5, type: delete}").id


def test_ids_of_operations_differ_between_projects() -> None:
    def project(name: str) -> Project:
        return Project.from_data({"id": name, "input_dataset_id": "d", "operations": [{"seq": 1, "type": "delete"}]})

    assert project("a").operations[0].id == project("a").operations[0].id != project("b").operations[0].id


def test_arguments_may_be_left_out() -> None:  # C-08
    assert load_one("{seq: 1, type: delete}").arguments == {}
    assert load_one("{seq: 1, type: delete, arguments: }").arguments == {}


@pytest.mark.parametrize("kind", ["5", "[delete]"])
def test_a_type_is_a_name(kind: str) -> None:
    assert reasons(f"{{seq: 1, type: {kind}}}") == [OperationReason.UNKNOWN_TYPE]


def test_a_type_is_needed() -> None:
    assert [problem.code for problem in load("{seq: 1}")[1]] == ["MISSING_KEY"]


@pytest.mark.parametrize("selector", ["''", "'  '", '"\\n"'])
def test_a_blank_selector_is_none_but_is_noticed(selector: str) -> None:  # C-20
    operation = load_one(f"{{seq: 1, type: delete, selector: {selector}}}")
    assert operation.selector is None
    assert operation.blank_selector
    assert OperationSpec.from_data(operation.document()).blank_selector


def test_no_selector_is_not_a_blank_one() -> None:
    assert not load_one("{seq: 1, type: delete, selector: }").blank_selector


def test_a_selector_is_text() -> None:
    assert [problem.code for problem in load("{seq: 1, type: delete, selector: [a]}")[1]] == ["INVALID_VALUE"]


def test_unknown_keys_are_refused_with_the_operation() -> None:
    (problem,) = load("{seq: 1, type: delete, selctor: a}")[1]
    assert (problem.code, shown(problem.span)) == ("UNKNOWN_KEY", "selctor")


def test_decimals_in_arguments_keep_their_digits_as_text() -> None:
    operation = load_one("{seq: 1, type: update, arguments: {assignments: [{column: a, expression: 0.10}]}}")
    assert operation.arguments == {"assignments": [{"column": "a", "expression": "0.10"}]}
    assert operation.places.passage("arguments", "assignments", 0, "expression").value == "0.10"


def test_the_number_of_operations_is_bounded() -> None:
    text = "\n".join(f"- {{seq: {seq}, type: delete}}" for seq in range(1, MAX_OPERATIONS + 2))
    assert [problem.code for problem in load(text)[1]] == ["LIMIT_EXCEEDED"]
