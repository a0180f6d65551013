"""The operation types there are, and the schemas that editors get of their arguments."""

from __future__ import annotations

from dobonomodo.model.operation import OPERATION_TYPES
from dobonomodo.plan.operations import OPERATION_BY_TYPE, OPERATIONS
from dobonomodo.plan.operations.catalogue import argument_schemas


def test_every_type_that_can_be_written_has_a_meaning() -> None:
    #
    assert set(OPERATION_BY_TYPE) == set(OPERATION_TYPES)
    assert len(OPERATIONS) == len(OPERATION_TYPES)


def test_every_argument_is_described() -> None:
    for name, schema in argument_schemas().items():
        parts = [schema, *schema.get("$defs", {}).values()]
        for part in parts:
            for key, value in part.get("properties", {}).items():
                assert value.get("description"), (name, key)


def test_unknown_arguments_are_refused() -> None:
    for schema in argument_schemas().values():
        assert schema["additionalProperties"] is False


def test_the_keys_of_the_seeds_are_there() -> None:
    #
    schemas = argument_schemas()
    keys = {name: set(schema.get("properties", {})) for name, schema in schemas.items()}
    assert keys == {
        "update": {"joins", "assignments"},
        "aggregate": {"group_by", "aggregations"},
        "append": {"source", "source_selector", "aggregation"},
        "delete": set(),
        "output": {"destination", "mode", "columns", "include_deleted", "register_as_dataset"},
    }
