"""What can be wrong with the parameters of a project and with the values that they are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dobonomodo.problems.problem import Blame, Example, Problem, Severity, did_you_mean

_DEFINED = "parameters:\n  uplift: {type: 'decimal(5,4)', default: 0.03}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownParameter(Problem):
    """A formula, a command or an environment names a parameter that the project does not have."""

    code: ClassVar[str] = "UNKNOWN_PARAMETER"
    example: ClassVar[Example] = Example("amount * (1 + param.uplfit)", "amount * (1 + param.uplift)")

    name: str
    known: tuple[str, ...] = ()
    allowed: bool = True
    """Whether formulas of that place can use parameters at all."""
    project: str | None = None
    """The project, where a value is given from outside."""

    @property
    def blame(self) -> Blame:
        return Blame.CALLER if self.project is not None and self.span is None else self.blamed

    def message(self) -> str:
        if not self.allowed:
            return f"the parameter `{self.name}` cannot be used here"
        owner = f"project `{self.project}`" if self.project is not None else "the project"
        return f"{owner} has no parameter `{self.name}`"

    def hint(self) -> str | None:
        if not self.allowed:
            return "parameters are for the formulas of a project, not for datasets and resolvers"
        return did_you_mean(
            self.name, self.known, otherwise=f"define it in the project: `parameters: {{{self.name}: {{type: ...}}}}`"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidParameter(Problem):
    """The value of a parameter does not have its type, or does not fit into it."""

    code: ClassVar[str] = "INVALID_PARAMETER"
    example: ClassVar[Example] = Example(
        "dobo run budget --period 2026-01 --set uplift=3%", "dobo run budget --period 2026-01 --set uplift=0.03"
    )

    name: str
    value: str
    type: str
    wrong: str
    """What is wrong with the value, in words that follow it."""
    instead: str

    @property
    def blame(self) -> Blame:
        return Blame.CALLER if self.span is None else self.blamed

    def message(self) -> str:
        return f"the parameter `{self.name}` is {self.type}: `{self.value}` {self.wrong}"

    def hint(self) -> str | None:
        return f"write {self.instead}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterMissing(Problem):
    """A parameter without a default was given no value."""

    code: ClassVar[str] = "PARAMETER_MISSING"
    blamed: ClassVar[Blame] = Blame.CALLER
    example: ClassVar[Example] = Example(
        "dobo run budget --period 2026-01", "dobo run budget --period 2026-01 --set uplift=0.03"
    )

    name: str
    type: str
    description: str | None = None

    def message(self) -> str:
        what = f", {self.description}," if self.description else ""
        return f"the parameter `{self.name}`{what} has no value"

    def hint(self) -> str | None:
        return f"give it one with `--set {self.name}=...` ({self.type}), or set a `default` in the project"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedParameter(Problem):
    """No formula of the project reads a parameter."""

    code: ClassVar[str] = "W-15"
    severity: ClassVar[Severity] = "warning"
    example: ClassVar[Example] = Example(
        f"{_DEFINED}   # and no param.uplift anywhere", f"{_DEFINED}\n...\nexpression: amount * (1 + param.uplift)"
    )

    name: str

    def message(self) -> str:
        return f"parameter `{self.name}` is not used"

    def hint(self) -> str | None:
        return f"use it as `param.{self.name}`, or remove it"


PARAMETER_PROBLEMS: tuple[type[Problem], ...] = (UnknownParameter, InvalidParameter, ParameterMissing, UnusedParameter)
