"""JSON Schemas (Draft-07) of the definitions, for editors that complete and check while one types."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from dobonomodo.model.datasource import DataSource, datasource_model
from dobonomodo.model.definitions import ENTITIES, SCENARIO
from dobonomodo.model.operation import SYNONYM_BY_KEY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

    from dobonomodo.model.datasource import StorageOptions
    from dobonomodo.model.entity import Entity

DRAFT = "http://json-schema.org/draft-07/schema#"

Schema = dict[str, Any]


def make_schema(
    kind: str,
    *,
    arguments_by_type: Mapping[str, Schema] | None = None,
    options_by_type: Mapping[str, type[StorageOptions]] | None = None,
    body: Schema | None = None,
) -> Schema:
    """The schema of a document of a kind.

    ``arguments_by_type`` has the schema of the arguments of each operation type, ``options_by_type`` the options of each
    type of datasource; ``body`` is the schema of a kind that is not an entity, such as a scenario.
    """
    entity = next((entity for entity in ENTITIES if entity.kind == kind), None)
    if entity is None:
        return _wrap(kind, body or {"type": "object"}, {})
    if entity is DataSource and options_by_type:
        entity = datasource_model(options_by_type)
    inner, definitions = _schema_of(entity)
    if "PathStrategy" in definitions:
        definitions |= _open_locations(definitions["PathStrategy"], options_by_type or {})
    if "OperationSpec" in definitions:
        arguments = {name: _to_draft_07(schema) for name, schema in (arguments_by_type or {}).items()}
        for schema in arguments.values():
            definitions |= schema.pop("$defs", {})
        definitions["OperationSpec"] = _open_operation(definitions["OperationSpec"], arguments)
    return _wrap(kind, inner, definitions)


def make_any_schema(
    *,
    arguments_by_type: Mapping[str, Schema] | None = None,
    options_by_type: Mapping[str, type[StorageOptions]] | None = None,
    scenario: Schema | None = None,
) -> Schema:
    """One schema for files of every kind."""
    schemas = [
        make_schema(entity.kind, arguments_by_type=arguments_by_type, options_by_type=options_by_type)
        for entity in ENTITIES
    ]
    schemas.append(make_schema(SCENARIO, body=scenario))
    definitions = {name: part for schema in schemas for name, part in schema.get("definitions", {}).items()}
    properties = {name: part for schema in schemas for name, part in schema["properties"].items()}
    return {
        "$schema": DRAFT,
        "title": "a definition",
        "description": "A definition; its top-level key is its kind.",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "minProperties": 1,
        "definitions": definitions,
    }


def _schema_of(entity: type[Entity]) -> tuple[Schema, dict[str, Schema]]:
    schema = dict(generate_schema(entity))
    definitions = schema.pop("$defs", {})
    return _to_draft_07(schema), {name: _to_draft_07(part) for name, part in definitions.items()}


@cache
def generate_schema(model: type[BaseModel]) -> Schema:
    """The schema of a model as pydantic makes it, which takes long; not to be changed."""
    return model.model_json_schema(ref_template="#/definitions/{model}")


def _to_draft_07(part: Any) -> Any:
    """Draft-07 ignores what is beside a reference, so that goes around it."""
    if isinstance(part, list):
        return [_to_draft_07(element) for element in part]
    if not isinstance(part, dict):
        return part
    done = {key: _to_draft_07(value) for key, value in part.items() if not _is_noise(key, value, part)}
    if "$ref" in done and len(done) > 1:
        reference = done.pop("$ref")
        return {"allOf": [{"$ref": reference}], **done}
    return done


def _is_noise(key: str, value: object, owner: Schema) -> bool:
    """Titles that only repeat a key, defaults that only say that a key may be left out, words that Draft-07 does not know."""
    if key == "title":
        return isinstance(value, str) and "properties" not in owner
    return key == "discriminator" or (key == "default" and value is None)


def _open_operation(schema: Schema, arguments_by_type: Mapping[str, Schema]) -> Schema:
    """Synonyms are accepted, and the arguments follow from the type."""
    properties = dict(schema["properties"])
    for key, synonym in SYNONYM_BY_KEY.items():
        properties[synonym] = {**properties[key], "description": f"A synonym of `{key}`."}
    conditions = [
        {
            "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
            "then": {"properties": {"arguments": arguments, "parameters": arguments}},
        }
        for name, arguments in arguments_by_type.items()
    ]
    opened = {**schema, "properties": properties, "required": ["type"]}
    if not arguments_by_type:
        return opened
    properties["type"] = {**properties["type"], "enum": list(arguments_by_type)}
    return {**opened, "allOf": conditions}


def _open_locations(strategy: Schema, options_by_type: Mapping[str, type[StorageOptions]]) -> dict[str, Schema]:
    """The options of locations, of whichever kind the datasource is."""
    models = [each.of_location for each in options_by_type.values() if each.of_location is not None]
    if not models:
        return {"PathStrategy": strategy}
    schemas = {model.__name__: _schema_of(model)[0] for model in models}
    told = {"description": strategy["properties"]["options"]["description"]}
    options = {"anyOf": [{"$ref": f"#/definitions/{name}"} for name in schemas], **told}
    return {"PathStrategy": {**strategy, "properties": {**strategy["properties"], "options": options}}, **schemas}


def _wrap(kind: str, inner: Schema, definitions: dict[str, Schema]) -> Schema:
    schema: Schema = {
        "$schema": DRAFT,
        "title": f"a {kind}",
        "type": "object",
        "properties": {"$schema": {"type": "string"}, kind: inner},
        "required": [kind],
        "additionalProperties": False,
    }
    return {**schema, "definitions": definitions} if definitions else schema
