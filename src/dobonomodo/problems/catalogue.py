"""Every kind of problem there is. `dobo explain` and docs/problems.md are made from this tuple."""

from __future__ import annotations

from dobonomodo.problems.audit import AUDIT_PROBLEMS
from dobonomodo.problems.control import CONTROL_PROBLEMS
from dobonomodo.problems.definition import DEFINITION_PROBLEMS
from dobonomodo.problems.difference import DIFFERENCE_PROBLEMS
from dobonomodo.problems.formula import (
    AggregateNotAllowed,
    ExpressionSyntax,
    InvalidAggregate,
    InvalidDate,
    InvalidWindow,
    NullComparison,
    SelectorCycle,
    SelectorUndefined,
    TypeMismatch,
    UnknownColumn,
    UnknownFunction,
    WrongArity,
)
from dobonomodo.problems.internal import InternalFault
from dobonomodo.problems.operation import OPERATION_PROBLEMS
from dobonomodo.problems.package import DriverMissing, PackageMissing
from dobonomodo.problems.parameter import PARAMETER_PROBLEMS
from dobonomodo.problems.problem import Problem
from dobonomodo.problems.run import RUN_PROBLEMS
from dobonomodo.problems.session import SESSION_PROBLEMS
from dobonomodo.problems.store import STORE_PROBLEMS
from dobonomodo.problems.why import WHY_PROBLEMS
from dobonomodo.problems.workspace import WORKSPACE_PROBLEMS

PROBLEMS: tuple[type[Problem], ...] = (
    ExpressionSyntax,
    UnknownColumn,
    UnknownFunction,
    WrongArity,
    TypeMismatch,
    InvalidDate,
    AggregateNotAllowed,
    InvalidAggregate,
    InvalidWindow,
    SelectorUndefined,
    SelectorCycle,
    NullComparison,
    *PARAMETER_PROBLEMS,
    *DEFINITION_PROBLEMS,
    *OPERATION_PROBLEMS,
    *RUN_PROBLEMS,
    *SESSION_PROBLEMS,
    *STORE_PROBLEMS,
    *CONTROL_PROBLEMS,
    *WHY_PROBLEMS,
    *AUDIT_PROBLEMS,
    *DIFFERENCE_PROBLEMS,
    *WORKSPACE_PROBLEMS,
    PackageMissing,
    DriverMissing,
    InternalFault,
)


def find_problem(code: str) -> type[Problem] | None:
    """The kind of problem with this code, in any case."""
    return next((kind for kind in PROBLEMS if kind.code == code.upper()), None)
