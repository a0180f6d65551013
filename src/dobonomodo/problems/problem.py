"""What every problem has: a code, a place, a message and a hint. The codes are in the files beside this one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Literal, NamedTuple

from dobonomodo.problems.place import Span

Severity = Literal["error", "warning"]

LISTED_AT_MOST = 10


class Blame(StrEnum):
    """Who must act on a problem."""

    AUTHOR = "author"
    """Whoever wrote the definitions, or delivered the data."""
    CALLER = "caller"
    """Whoever gave the command: its arguments, or the configuration it runs with."""
    CONFLICT = "conflict"
    """Nobody yet: another run, or the state of a project or period, does not allow it now."""
    ENVIRONMENT = "environment"
    """Whoever runs Spark, disks, databases and networks; it is safe to try again."""
    BUG = "bug"
    """We."""


class OperationRef(NamedTuple):
    """The operation of a project in which something went wrong."""

    seq: int
    name: str


class Example(NamedTuple):
    """What causes a problem, and what to write instead."""

    wrong: str
    right: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something its author must change. Subclasses add what is particular to one code."""

    code: ClassVar[str]
    severity: ClassVar[Severity] = "error"
    blamed: ClassVar[Blame] = Blame.AUTHOR
    """Who must act on every problem of this code, unless ``blame`` tells them apart."""
    example: ClassVar[Example]

    span: Span | None = None
    operation: OperationRef | None = None
    expression: str | None = None

    def message(self) -> str:
        """What is wrong, in lower case and without a full stop."""
        raise NotImplementedError

    def hint(self) -> str | None:
        """What to do about it."""
        return None

    def notes(self) -> tuple[str, ...]:
        """Lines that follow the message, a bounded number of them."""
        return ()

    def facts(self) -> dict[str, object]:
        """More fields of the JSON form."""
        return {}

    def to_dict(self) -> dict[str, object]:
        """The public JSON form."""
        span, operation, notes = self.span, self.operation, self.notes()
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message(),
            "hint": self.hint(),
            "file": span.source.name if span else None,
            "line": span.line if span else None,
            "column": span.column if span else None,
            "operation_seq": operation.seq if operation else None,
            "operation_name": operation.name if operation else None,
            "expression": self.expression,
            **({"notes": list(notes)} if notes else {}),
            **self.facts(),
        }

    @property
    def blame(self) -> Blame:
        """Who must act."""
        return self.blamed

    @property
    def retry_helps(self) -> bool:
        """Whether the same command can succeed later, with nothing changed."""
        return self.blame is Blame.ENVIRONMENT

    def label(self) -> str | None:
        """A few words for behind the caret."""
        return None

    @property
    def sort_key(self) -> tuple[bool, tuple[str, int, int]]:
        """By place; problems without one come last."""
        return (self.span is None, self.span.sort_key if self.span else ("", 0, 0))


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The problems by place, each once."""
    return tuple(sorted(dict.fromkeys(problems), key=lambda problem: problem.sort_key))


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that ``name`` was most likely meant to be, or None when nothing is close."""
    wanted = name.casefold()
    allowed = max(1, len(name) // 3)
    rated = (
        (edit_distance(wanted, candidate.casefold()), place, candidate)
        for place, candidate in enumerate(dict.fromkeys(known))
        if abs(len(candidate) - len(name)) <= allowed
    )
    best = min(rated, default=None)
    return best[2] if best and best[0] <= allowed else None


def edit_distance(one: str, other: str) -> int:
    """Insertions, deletions, replacements and swaps of neighbours that turn one text into the other."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, char in enumerate(one, 1):
        before, above, row = row, before, [i]
        for j, other_char in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (char != other_char))
            if i > 1 and j > 1 and char == other[j - 2] and one[i - 2] == other_char:
                cost = min(cost, above[j - 2] + 1)
            row.append(cost)
    return row[-1]


def did_you_mean(name: str, known: Sequence[str], *, otherwise: str = "") -> str | None:
    """The most similar name, else the list of all names, else ``otherwise``."""
    if candidate := nearest(name, known):
        return f"did you mean `{candidate}`?"
    if known:
        return f"available: {listed(known)}"
    return otherwise or None


def listed(names: Sequence[str]) -> str:
    """Names in backquotes, at most ten of them."""
    shown = ", ".join(f"`{name}`" for name in names[:LISTED_AT_MOST])
    more = len(names) - LISTED_AT_MOST
    return f"{shown} and {more} more" if more > 0 else shown
