"""A bug of this program as a problem, so that JSON output has one too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dobonomodo.problems.problem import Blame, Example, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalFault(Problem):
    """This program has a bug."""

    code: ClassVar[str] = "INTERNAL_ERROR"
    blamed: ClassVar[Blame] = Blame.BUG
    example: ClassVar[Example] = Example("a command that ends with this code", "a report of it to us")

    detail: str

    def message(self) -> str:
        return f"dobo has a bug: {self.detail}"

    def hint(self) -> str | None:
        return "please report it with the output of the same command and --debug"
