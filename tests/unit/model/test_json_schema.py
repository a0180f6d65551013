"""JSON Schemas for editors."""

from typing import Any

import pytest

from dobonomodo.model.definitions import KINDS
from dobonomodo.model.document import load_documents
from dobonomodo.model.json_schema import DRAFT, make_any_schema, make_schema
from dobonomodo.problems import Source
from dobonomodo.storage import options_by_type
from tests.unit.model.test_entity import EVERYTHING

jsonschema = pytest.importorskip("jsonschema")

ARGUMENTS = {"delete": {"type": "object", "additionalProperties": False}}


def errors(schema: dict[str, Any], data: object) -> list[str]:
    return [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(data)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_valid_schema(kind: str) -> None:
    schema = make_schema(kind, arguments_by_type=ARGUMENTS, options_by_type=options_by_type())
    jsonschema.Draft7Validator.check_schema(schema)
    assert schema["$schema"] == DRAFT
    assert schema["required"] == [kind]


def test_sound_documents_satisfy_the_schemas() -> None:
    documents, _ = load_documents(Source("f.yaml", EVERYTHING))
    whole = make_any_schema(options_by_type=options_by_type())
    jsonschema.Draft7Validator.check_schema(whole)
    for document in documents:
        (kind,) = document.places.keys
        assert errors(make_schema(kind, options_by_type=options_by_type()), document.data) == []
        assert errors(whole, document.data) == []


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("resolver", {"resolver": {"id": "a", "rulez": []}}),
        ("resolver", {"resolver": {"id": "a", "rules": [{"strategy": {"type": "pth"}}]}}),
        ("dataset", {"dataset": {"id": "d", "main_table": {"name": "t", "columns": [{"name": "a", "type": "int"}]}}}),
        ("project", {"project": {"id": "p", "input_dataset_id": "d", "operations": [{"type": "delte"}]}}),
        (
            "project",
            {
                "project": {
                    "id": "p",
                    "input_dataset_id": "d",
                    "operations": [{"type": "delete", "arguments": {"a": 1}}],
                }
            },
        ),
        ("calendar", {"calendar": {"id": "c", "levels": [{"name": 5}]}}),
        ("datasource", {"datasource": {"id": "c", "type": "csv"}}),
    ],
)
def test_wrong_documents_do_not(kind: str, data: object) -> None:
    assert errors(make_schema(kind, arguments_by_type=ARGUMENTS, options_by_type=options_by_type()), data)


def test_synonyms_are_accepted() -> None:
    operation = {"order": 1, "alias": "a", "type": "delete", "parameters": {}}
    data = {"project": {"id": "p", "input_dataset_id": "d", "operations": [operation]}}
    assert errors(make_schema("project", arguments_by_type=ARGUMENTS), data) == []


def test_a_start_may_be_one_date_or_several() -> None:
    def calendar(starts: object) -> dict[str, Any]:
        return {"calendar": {"id": "c", "levels": [{"name": "year", "date_rules": {"starts": starts}}]}}

    assert errors(make_schema("calendar"), calendar("2026-01-01")) == []
    assert errors(make_schema("calendar"), calendar(["2026-01-01", "2027-01-01"])) == []
    assert errors(make_schema("calendar"), calendar(5))


def walk(part: Any) -> list[dict[str, Any]]:
    if isinstance(part, dict):
        return [part, *(found for value in part.values() for found in walk(value))]
    return [found for element in part for found in walk(element)] if isinstance(part, list) else []


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "scenario"])
def test_schemas_help_in_an_editor(kind: str) -> None:
    schema = make_schema(kind, options_by_type=options_by_type())
    for part in walk(schema):
        assert "$defs" not in part
        assert "$ref" not in part or list(part) == ["$ref"]
    for definition in (schema["properties"][kind], *schema["definitions"].values()):
        assert definition["description"]
        assert all(field.get("description") for field in definition["properties"].values())


def test_a_scenario_has_the_body_it_is_given() -> None:
    schema = make_schema("scenario", body={"type": "object", "required": ["name"]})
    assert errors(schema, {"scenario": {}})
    assert errors(schema, {"scenario": {"name": "x"}}) == []
