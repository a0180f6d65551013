"""The operation types there are."""

from __future__ import annotations

from dobonomodo.model.json_schema import Schema, generate_schema
from dobonomodo.plan.operations.aggregate import Aggregate
from dobonomodo.plan.operations.allocate import Allocate
from dobonomodo.plan.operations.append import Append
from dobonomodo.plan.operations.check import CheckRows
from dobonomodo.plan.operations.delete import Delete
from dobonomodo.plan.operations.operation import Effect, Facts, Operation
from dobonomodo.plan.operations.output import Output
from dobonomodo.plan.operations.update import Update

OPERATIONS: tuple[type[Operation], ...] = (Update, Aggregate, Append, Delete, Output, CheckRows, Allocate)

OPERATION_BY_TYPE = {operation.type: operation for operation in OPERATIONS}


def find_facts(type_name: str) -> Facts:
    """What an operation type says of itself; something that says little for a record with a type of another version."""
    found = OPERATION_BY_TYPE.get(type_name)
    return found.facts if found is not None else Facts(Effect.SELECTS, badge="?", color="soft", counted="selected")


def argument_schemas() -> dict[str, Schema]:
    """The JSON Schema of the arguments of each operation type."""
    return {name: generate_schema(operation) for name, operation in OPERATION_BY_TYPE.items()}
