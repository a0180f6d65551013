"""Why a stored row cannot be explained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from dobonomodo.problems.problem import LISTED_AT_MOST, Blame, Example, Problem, did_you_mean, listed

_OUTPUT_CHANGED = "the inputs are unchanged, so the output was changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputNotFound(Problem):
    """A run has no published output of this name, or several and none was named."""

    code: ClassVar[str] = "OUTPUT_NOT_FOUND"
    blamed: ClassVar[Blame] = Blame.CALLER
    example: ClassVar[Example] = Example(
        "dobo why latest order --key order_id=A1", "dobo why latest orders --key order_id=A1"
    )

    run: str
    table: str | None
    known: tuple[str, ...]

    def message(self) -> str:
        if not self.known:
            return f"run {self.run} has published no output"
        if self.table is None:
            return f"run {self.run} has several outputs: {listed(self.known)}"
        return f"run {self.run} has no output `{self.table}`"

    def hint(self) -> str | None:
        if not self.known:
            return None
        return "name one of them" if self.table is None else did_you_mean(self.table, self.known)


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidKey(Problem):
    """The key of a row has a column that the output does not have, or a value that is invalid for its column."""

    code: ClassVar[str] = "INVALID_KEY"
    blamed: ClassVar[Blame] = Blame.CALLER
    example: ClassVar[Example] = Example("dobo why latest --key amount=ten", "dobo why latest --key amount=10.00")

    column: str
    value: str | None = None
    kind: str = ""
    known: tuple[str, ...] = ()
    owner: str = "the output has"

    def message(self) -> str:
        if self.value is not None:
            return f"`{self.value}` is not a value of column `{self.column}`, which is {self.kind}"
        return f"{self.owner} no column `{self.column}`"

    def hint(self) -> str | None:
        return did_you_mean(self.column, self.known) if self.value is None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowNotFound(Problem):
    """No stored row of an output has this key."""

    code: ClassVar[str] = "ROW_NOT_FOUND"
    example: ClassVar[Example] = Example(
        "dobo why latest --key order_id=A9   # which is not in the output", "dobo why-not latest --key order_id=A9"
    )

    table: str
    key: str
    run: str

    def message(self) -> str:
        return f"output `{self.table}` has no row with {self.key}"

    def hint(self) -> str | None:
        return f"`dobo why-not {self.run}` with the same key says why"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAContributor(Problem):
    """The given row does not contribute to the total, or the row is not a total."""

    code: ClassVar[str] = "NOT_A_CONTRIBUTOR"
    blamed: ClassVar[Blame] = Blame.CALLER
    example: ClassVar[Example] = Example(
        "dobo why latest totals --key region=EMEA --contributor order_id=A9   # an order of another region",
        "dobo why latest totals --key region=EMEA --contributor order_id=A1",
    )

    key: str
    contributor: str
    rows: int | None
    """How many rows the total is made of; None where the row is no total."""

    def message(self) -> str:
        if self.rows is None:
            return f"the row with {self.key} is not a total, so it has no contributors"
        return f"none of the {self.rows:,} rows of {self.key} has {self.contributor}"

    def hint(self) -> str | None:
        if self.rows is None:
            return "leave --contributor out"
        return "leave --contributor out to list the largest; `--contributors all --csv FILE` writes all of them"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralRows(Problem):
    """A key matches several rows of an output, so it is ambiguous which one to explain."""

    code: ClassVar[str] = "SEVERAL_ROWS"
    blamed: ClassVar[Blame] = Blame.CALLER
    example: ClassVar[Example] = Example(
        "dobo why latest --key region=EMEA", "dobo why latest --key region=EMEA,order_id=A1"
    )

    table: str
    key: str
    rows: tuple[str, ...]
    more: bool = False

    def message(self) -> str:
        return f"{'more than ' if self.more else ''}{len(self.rows)} rows of `{self.table}` have {self.key}"

    def notes(self) -> tuple[str, ...]:
        return self.rows[:LISTED_AT_MOST]

    def hint(self) -> str | None:
        return "add a column, or name the row by its `_row_id`"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotProved(Problem):
    """A stored row differs from the recomputed one, so an explanation would not be valid."""

    code: ClassVar[str] = "NOT_PROVED"
    example: ClassVar[Example] = Example("an output that was edited by hand", "dobo run PROJECT --period P")

    table: str
    reason: Literal["differs", "missing", "missing row", "replaced", "gone"]
    differences: tuple[str, ...] = ()
    run: str
    other: str | None = None
    """The later run that replaced the rows."""

    def message(self) -> str:
        match self.reason:
            case "replaced":
                return f"the rows of `{self.table}` are now those of run {self.other}"
            case "gone":
                return f"the rows that the run wrote to `{self.table}` are gone"
            case "missing":
                return f"the inputs do not produce this row of `{self.table}`; {_OUTPUT_CHANGED}"
            case "missing row":
                return f"the run computed this row of `{self.table}`, but it is missing; {_OUTPUT_CHANGED}"
            case "differs":
                return f"the row of `{self.table}` is not what the run computed; {_OUTPUT_CHANGED}"

    def notes(self) -> tuple[str, ...]:
        return self.differences[:LISTED_AT_MOST]

    def hint(self) -> str | None:
        if self.reason == "replaced":
            return f"ask run {self.other}"
        return f"`dobo verify {self.run}` compares all rows with the record of the run"


@dataclass(frozen=True, slots=True, kw_only=True)
class TooManyRowsToExplain(Problem):
    """An explanation needs more rows than are computed without Spark."""

    code: ClassVar[str] = "TOO_MANY_ROWS"
    example: ClassVar[Example] = Example(
        "dobo why latest --key region=EMEA   # a window over ten million rows", "a window with PARTITION BY"
    )

    dataset: str
    limit: int

    def message(self) -> str:
        return f"the explanation needs more than {self.limit:,} rows of `{self.dataset}`"

    def hint(self) -> str | None:
        return "ask about a row that fewer rows lead to, such as a contributor"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotMaskable(Problem):
    """A scenario of a row cannot be masked: with other texts in its inputs the row is not written."""

    code: ClassVar[str] = "NOT_MASKABLE"
    example: ClassVar[Example] = Example(
        'dobo why latest --key id=A1 --as-scenario f.yaml --mask   # an output of rows with LEFT(name, 1) = "A"',
        "dobo why latest --key id=A1 --as-scenario f.yaml",
    )

    table: str

    def message(self) -> str:
        return f"with masked texts the row of `{self.table}` is not written: a condition compares texts"

    def hint(self) -> str | None:
        return "leave --mask out and replace texts by hand"


WHY_PROBLEMS: tuple[type[Problem], ...] = (
    OutputNotFound,
    InvalidKey,
    RowNotFound,
    NotAContributor,
    SeveralRows,
    NotProved,
    TooManyRowsToExplain,
    NotMaskable,
)
