"""Why two runs cannot be compared, or why it cannot be said why they differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dobonomodo.problems.problem import LISTED_AT_MOST, Blame, Example, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsGone(Problem):
    """The rows that a run wrote are lost and cannot be recomputed."""

    code: ClassVar[str] = "ROWS_GONE"
    blamed: ClassVar[Blame] = Blame.ENVIRONMENT
    example: ClassVar[Example] = Example(
        "dobo diff previous latest   # `dobo clean` has removed the inputs of the previous run",
        "set `keep_inputs: always` in dobo.yaml, so that the inputs of every run stay",
    )

    run: str
    table: str
    reasons: tuple[str, ...]

    def message(self) -> str:
        more = f" and {len(self.reasons) - LISTED_AT_MOST} more" if len(self.reasons) > LISTED_AT_MOST else ""
        shown = "; ".join(self.reasons[:LISTED_AT_MOST]) + more
        return f"the rows of output `{self.table}` of run {self.run} are lost and cannot be recomputed: {shown}"

    def hint(self) -> str | None:
        return "inputs stay for results that count; `keep_inputs: always` keeps those of every run"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotComparable(Problem):
    """Two runs cannot be compared in this way."""

    code: ClassVar[str] = "NOT_COMPARABLE"
    blamed: ClassVar[Blame] = Blame.CALLER
    example: ClassVar[Example] = Example(
        "dobo diff sales@2026-01 costs@2026-01", "dobo diff sales@2026-01 sales@2026-02"
    )

    before: str
    after: str
    reason: str

    def message(self) -> str:
        return f"runs {self.before} and {self.after} cannot be compared: {self.reason}"


DIFFERENCE_PROBLEMS: tuple[type[Problem], ...] = (RowsGone, NotComparable)
