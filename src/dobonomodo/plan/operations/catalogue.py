"""The operation types there are."""

from __future__ import annotations

from typing import Any

from dobonomodo.plan.operations.aggregate import Aggregate
from dobonomodo.plan.operations.append import Append
from dobonomodo.plan.operations.delete import Delete
from dobonomodo.plan.operations.output import Output
from dobonomodo.plan.operations.update import Update

OPERATIONS = (Update, Aggregate, Append, Delete, Output)

OPERATION_BY_TYPE: dict[str, type[Update] | type[Aggregate] | type[Append] | type[Delete] | type[Output]] = {
    operation.type: operation for operation in OPERATIONS
}


def argument_schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of the arguments of each operation type."""
    template = "#/definitions/{model}"
    return {name: operation.model_json_schema(ref_template=template) for name, operation in OPERATION_BY_TYPE.items()}
