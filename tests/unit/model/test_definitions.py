"""Definitions together: kinds, ids, defaults and references."""

import pytest

from dobonomodo.model import load_definitions
from dobonomodo.problems import Problem, Source
from dobonomodo.problems.catalogue import PROBLEMS
from dobonomodo.problems.definition import (
    DEFINITION_PROBLEMS,
    DuplicateDefault,
    DuplicateId,
    DuplicateWorkspace,
    UnknownKind,
)
from tests.unit.model.loading import found, load, problem_in, sound

RESOLVER = "resolver: {id: a, rules: []}"


def test_definitions_are_found_by_id() -> None:
    definitions = sound(
        RESOLVER, "resolver: {id: b, rules: []}\n---\ndatasource: {id: a, type: csv, options: {path_prefix: x}}"
    )
    assert set(definitions.resolvers) == {"a", "b"}
    assert set(definitions.datasources) == {"a"}
    assert definitions.projects.get("a") is None


def test_definitions_keep_the_text_of_their_document() -> None:
    first = "# who: us\nresolver: {id: a, rules: []}   # none yet\n"
    second = "---\r\n# more\r\nresolver:\r\n  id: b\r\n  rules: []\r\n\r\n"
    third = "--- \ndatasource: {id: a, type: csv, options: {path_prefix: x}} # \u00e9\n..."
    definitions, _ = load(f"\ufeff{first}{second}{third}\n")
    assert definitions.texts == {
        ("resolver", "a"): first,
        ("resolver", "b"): second,
        ("datasource", "a"): third.removesuffix("..."),
    }


def test_the_text_of_a_definition_holds_no_secret() -> None:
    description = "the url was postgresql://me:hunter2@host/db"
    definitions, _ = load(f"resolver: {{id: a, rules: [], description: '{description}'}}\n")
    (text,) = definitions.texts.values()
    assert "hunter2" not in text
    assert text.startswith("resolver: {id: a")


def test_the_kind_of_a_document_is_its_only_key() -> None:
    assert found("[1]") == [("INVALID_DOCUMENT", "[1]")]
    assert found("text") == [("INVALID_DOCUMENT", "text")]
    assert found(f"{RESOLVER}\nproject: {{}}") == [("INVALID_DOCUMENT", "project")]
    assert found(f"$schema: x\n{RESOLVER}") == []


def test_an_unknown_kind_is_answered_with_the_nearest() -> None:
    problem = problem_in("datset: {id: a}")
    assert isinstance(problem, UnknownKind)
    assert problem.hint() == "did you mean `dataset`?"


def test_scenarios_are_kept_as_they_are() -> None:
    definitions = sound("scenario: {whatever: [1, 2]}")
    assert [scenario.data for scenario in definitions.scenarios] == [{"scenario": {"whatever": [1, 2]}}]


def test_ids_are_unique_per_kind_and_both_places_are_named() -> None:
    problem = problem_in(RESOLVER, f"# twice\n{RESOLVER}")
    assert isinstance(problem, DuplicateId)
    assert (problem.kind, problem.id) == ("resolver", "a")
    assert problem.first is not None
    assert problem.span is not None
    assert (problem.first.source.name, problem.span.source.name, problem.span.line) == ("0.yaml", "1.yaml", 2)


@pytest.mark.parametrize(
    ("kind", "body"), [("resolver", "rules: []"), ("calendar", "levels: [{name: year}]")], ids=["resolver", "calendar"]
)
def test_there_is_at_most_one_default(kind: str, body: str) -> None:
    one, other = (f"{kind}: {{id: {name}, is_default: true, {body}}}" for name in "ab")
    problem = problem_in(one, other)
    assert isinstance(problem, DuplicateDefault)
    assert (problem.id, problem.other) == ("b", "a")


def test_the_default_of_the_workspace_counts() -> None:
    marked = "resolver: {id: b, is_default: true, rules: []}"
    problem = problem_in("workspace: {default_resolver: a}", RESOLVER, marked)
    assert isinstance(problem, DuplicateDefault)
    assert found("workspace: {default_resolver: b}", RESOLVER, marked) == []


def test_defaults_are_found() -> None:
    marked = "resolver: {id: b, is_default: true, rules: []}"
    assert sound(RESOLVER, marked).default_resolver == "b"
    assert sound("workspace: {default_resolver: a}", RESOLVER).default_resolver == "a"
    assert sound(RESOLVER).default_resolver is None
    only = sound("calendar: {id: c, levels: [{name: year}]}").default_calendar
    assert only is not None
    assert only.id == "c"


def test_the_default_is_found_although_it_could_not_be_loaded() -> None:
    definitions, _ = load(f"{RESOLVER}\n---\nresolver: {{id: b, is_default: true, rulez: []}}")
    assert definitions.default_resolver == "b"


def test_there_is_one_workspace() -> None:
    problem = problem_in("workspace: {name: a}", "workspace: {name: b}")
    assert isinstance(problem, DuplicateWorkspace)
    assert problem.first is not None


def test_references_are_checked_over_all_files() -> None:
    dataset = "dataset: {id: d, resolver_id: a, main_table: {name: t, columns: [{name: x, type: date}]}}"
    assert found(dataset) == [("UNKNOWN_REFERENCE", "a")]
    assert found(dataset, RESOLVER) == []


def test_a_definition_that_is_wrong_in_itself_still_counts_for_others() -> None:
    dataset = "dataset: {id: d, resolver_id: a, main_table: {name: t, columns: [{name: x, type: date}]}}"
    assert found(dataset, "resolver: {id: a, rulez: []}") == [("MISSING_KEY", "resolver"), ("UNKNOWN_KEY", "rulez")]


def test_what_is_wrong_is_not_among_the_definitions() -> None:
    definitions, problems = load("resolver: {id: a, id: a, rules: []}", "resolver: {id: b, rules: []}")
    assert [problem.code for problem in problems] == ["DUPLICATE_KEY"]
    assert set(definitions.resolvers) == {"b"}


def test_problems_come_in_the_order_of_their_places() -> None:
    _, problems = load("resolver: {id: a b, rulez: []}", "x: [", "datset: {}")
    assert [problem.span.source.name for problem in problems if problem.span] == ["0.yaml"] * 3 + ["1.yaml", "2.yaml"]


FOUND_LATER = {"PERIOD_NOT_FOUND", "INVALID_PERIOD_RANGE", "INVALID_OPERATION"}
"""By a command, and by planning, which knows the operation types."""


@pytest.mark.parametrize("kind", DEFINITION_PROBLEMS, ids=lambda kind: kind.code)
def test_the_examples_of_problems_show_them(kind: type[Problem]) -> None:
    assert kind in PROBLEMS
    if kind.code in FOUND_LATER:
        assert kind.example.wrong != kind.example.right
        return
    assert kind.code in {code for code, _ in found(kind.example.wrong)}
    assert kind.code not in {code for code, _ in found(kind.example.right)}


def test_twenty_operations_load() -> None:
    operations = "".join(
        f"\n    - {{seq: {seq}, type: update, arguments: {{assignments: [{{column: a, expression: 'ROUND(b * {seq}, 2)'}}]}}}}"
        for seq in range(1, 21)
    )
    source = Source("p.yaml", f"project:\n  id: p\n  input_dataset_id: d\n  operations:{operations}\n")
    definitions, problems = load_definitions([source])
    assert problems == ()
    assert len(definitions.projects["p"].operations) == 20


def test_a_text_that_was_read_before_has_the_places_of_its_own_file() -> None:
    text = "resolver: {id: a b, rules: []}\n---\nresolver: {id: c, rules: []}\n"
    for _ in range(2):
        definitions, problems = load_definitions([Source("one.yaml", text), Source("other.yaml", text)])
        assert set(definitions.resolvers) == {"c"}
        places = [(problem.code, problem.span.source.name) for problem in problems if problem.span]
        invalid = [("INVALID_VALUE", "one.yaml"), ("INVALID_VALUE", "other.yaml")]
        assert places == [*invalid, ("DUPLICATE_ID", "other.yaml"), ("DUPLICATE_ID", "other.yaml")]
