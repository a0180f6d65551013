"""Findings of `dobo audit verify`: changed history, records and outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dobonomodo.problems.problem import Example, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryBroken(Problem):
    """An entry of the history was changed, removed or inserted, or the history was truncated."""

    code: ClassVar[str] = "HISTORY_BROKEN"
    example: ClassVar[Example] = Example(
        "DELETE FROM dobo_history WHERE number = 41", "restore the store from a backup that `dobo audit verify` accepts"
    )

    number: int
    noted_by: str | None = None
    """The output whose destination recorded another entry, if the chain itself is intact."""

    def message(self) -> str:
        if self.noted_by is not None:
            return f"entry {self.number} of the history differs from the one that {self.noted_by} recorded: entries were removed or changed"
        return f"entry {self.number} of the history was changed, or does not follow the entry before it"

    def hint(self) -> str | None:
        return "restore the store from a backup, and find out who wrote to it"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordChanged(Problem):
    """A record of the store contradicts the history."""

    code: ClassVar[str] = "RECORD_CHANGED"
    example: ClassVar[Example] = Example(
        "UPDATE dobo_run SET status = 'completed'", "restore the store from a backup that `dobo audit verify` accepts"
    )

    subject: str
    detail: str

    def message(self) -> str:
        return f"{self.subject}: {self.detail}"

    def hint(self) -> str | None:
        return "restore the store from a backup, and find out who wrote to it"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputChanged(Problem):
    """A published file, its manifest or its folder differs from what the run wrote."""

    code: ClassVar[str] = "OUTPUT_CHANGED"
    example: ClassVar[Example] = Example("a result that was edited by hand", "dobo run PROJECT --period P")

    run: str
    table: str
    detail: str

    def message(self) -> str:
        return f"output `{self.table}` of run {self.run}: {self.detail}"

    def hint(self) -> str | None:
        return "run the period again, or restore the files from a backup"


AUDIT_PROBLEMS: tuple[type[Problem], ...] = (HistoryBroken, RecordChanged, OutputChanged)
