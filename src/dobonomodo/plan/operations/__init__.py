"""One file per operation type: its fields, its checks and its meaning."""

from dobonomodo.plan.operations.aggregate import Aggregate
from dobonomodo.plan.operations.append import Append
from dobonomodo.plan.operations.catalogue import OPERATION_BY_TYPE, OPERATIONS, find_facts
from dobonomodo.plan.operations.delete import Delete
from dobonomodo.plan.operations.lowered import Lowered
from dobonomodo.plan.operations.operation import Effect, Facts, Operation
from dobonomodo.plan.operations.output import Output
from dobonomodo.plan.operations.update import Update

__all__ = [
    "OPERATIONS",
    "OPERATION_BY_TYPE",
    "Aggregate",
    "Append",
    "Delete",
    "Effect",
    "Facts",
    "Lowered",
    "Operation",
    "Output",
    "Update",
    "find_facts",
]
