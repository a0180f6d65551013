"""Problems that were recorded as JSON, loaded back: with the words of then, even if their class has changed or is gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dobonomodo.problems.catalogue import find_problem
from dobonomodo.problems.place import Span
from dobonomodo.problems.problem import Blame, OperationRef, Problem, Severity


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedProblem(Problem):
    """A problem of which the JSON form is kept. Other problems have their code by class; this one has it by value."""

    document: Mapping[str, object]

    @property
    def code(self) -> str:  # type: ignore[override]
        """The code it was recorded with."""
        return str(self.document.get("code", ""))

    @property
    def severity(self) -> Severity:  # type: ignore[override]
        """The severity it was recorded with."""
        return "warning" if self.document.get("severity") == "warning" else "error"

    @property
    def blame(self) -> Blame:
        """Who must act, by the class of its code and by whether a retry was known to help."""
        if self.document.get("retry_helps"):
            return Blame.ENVIRONMENT
        kind = find_problem(self.code)
        return kind.blamed if kind is not None else Blame.AUTHOR

    def message(self) -> str:
        return str(self.document.get("message", ""))

    def hint(self) -> str | None:
        hint = self.document.get("hint")
        return str(hint) if hint is not None else None

    def notes(self) -> tuple[str, ...]:
        notes = self.document.get("notes")
        return tuple(str(note) for note in notes) if isinstance(notes, list | tuple) else ()

    def to_dict(self) -> dict[str, object]:
        return {**Problem.to_dict(self), **self.document}


def record_problem(problem: Problem) -> dict[str, object]:
    """A problem as it is kept: its JSON form, and whether a retry helps."""
    return {**problem.to_dict(), "retry_helps": problem.retry_helps}


def load_problem(document: Mapping[str, object]) -> RecordedProblem:
    """A problem from its JSON form."""
    expression = document.get("expression")
    return RecordedProblem(
        document=document,
        span=_load_span(document),
        operation=_load_operation(document),
        expression=str(expression) if expression is not None else None,
    )


def _load_span(document: Mapping[str, object]) -> Span | None:
    file, line, column = (document.get(key) for key in ("file", "line", "column"))
    if not isinstance(file, str) or not isinstance(line, int) or not isinstance(column, int):
        return None
    return Span.at(file, line, column)


def _load_operation(document: Mapping[str, object]) -> OperationRef | None:
    seq, name = document.get("operation_seq"), document.get("operation_name")
    return OperationRef(seq, str(name)) if isinstance(seq, int) else None
