"""What can go wrong: a class per code, where it happened, and how it is shown."""

from dobonomodo.problems.catalogue import PROBLEMS, find_problem
from dobonomodo.problems.faults import InternalError, Rejected, RunFailed
from dobonomodo.problems.place import Passage, Source, Span
from dobonomodo.problems.problem import Blame, Example, OperationRef, Problem, Severity, in_order

__all__ = [
    "PROBLEMS",
    "Blame",
    "Example",
    "InternalError",
    "OperationRef",
    "Passage",
    "Problem",
    "Rejected",
    "RunFailed",
    "Severity",
    "Source",
    "Span",
    "find_problem",
    "in_order",
]
