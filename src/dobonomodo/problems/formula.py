"""What can be wrong with a formula."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, assert_never

from dobonomodo.problems.problem import Example, Problem, Severity, did_you_mean, listed, nearest

_CELL = re.compile(r"[A-Z]{1,3}[1-9][0-9]{0,6}")
"""A cell of a spreadsheet, such as F2."""
_STATE = re.compile(r"start|after_\d+", re.IGNORECASE)
"""The name of a state that checks read."""


class SyntaxReason(StrEnum):
    """Reasons why a text is not a formula."""

    UNEXPECTED = "unexpected"
    UNFINISHED = "unfinished"
    EMPTY = "empty"
    UNKNOWN_CHARACTER = "unknown character"
    UNCLOSED_TEXT = "unclosed text"
    UNCLOSED_NAME = "unclosed name"
    CHAINED_COMPARISON = "chained comparison"
    NUMBER_TOO_LONG = "number too long"
    TOO_LONG = "too long"
    TOO_DEEP = "too deep"
    TOO_MANY_PARTS = "too many parts"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionSyntax(Problem):
    """An expression does not follow the grammar, or exceeds a limit of size."""

    code: ClassVar[str] = "EXPRESSION_SYNTAX"
    example: ClassVar[Example] = Example("IF(amount > 0; amount; 0)", "IF(amount > 0, amount, 0)")

    reason: SyntaxReason
    found: str = ""
    expected: tuple[str, ...] = ()
    limit: int = 0
    advice: str | None = None

    def message(self) -> str:
        match self.reason:
            case SyntaxReason.UNEXPECTED:
                return f"`{self.found}` is unexpected here"
            case SyntaxReason.UNFINISHED:
                return "the expression is incomplete"
            case SyntaxReason.EMPTY:
                return "the expression is empty"
            case SyntaxReason.UNKNOWN_CHARACTER:
                return f"`{self.found}` is not allowed in an expression"
            case SyntaxReason.UNCLOSED_TEXT:
                return "this text has no closing quote"
            case SyntaxReason.UNCLOSED_NAME:
                return "this name has no closing backtick"
            case SyntaxReason.CHAINED_COMPARISON:
                return "comparisons cannot be chained"
            case SyntaxReason.NUMBER_TOO_LONG:
                return f"a number has at most {self.limit} digits"
            case SyntaxReason.TOO_LONG:
                return f"the expression is longer than {self.limit:,} characters"
            case SyntaxReason.TOO_DEEP:
                return f"the expression is nested more than {self.limit} levels deep; chains such as a + b + c count"
            case SyntaxReason.TOO_MANY_PARTS:
                return f"the expression has more than {self.limit:,} parts"
            case _:
                assert_never(self.reason)

    def hint(self) -> str | None:
        if self.advice:
            return self.advice
        match self.reason:
            case SyntaxReason.TOO_LONG | SyntaxReason.TOO_DEEP | SyntaxReason.TOO_MANY_PARTS:
                return "split it into several updates with intermediate columns"
            case SyntaxReason.CHAINED_COMPARISON:
                return "write `a < b AND b < c`, or `b BETWEEN a AND c`"
            case SyntaxReason.UNCLOSED_TEXT:
                return "close it with the same quote; to use that quote inside the text, write it twice"
            case _:
                return f"expected {' or '.join(self.expected)}" if self.expected else None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownColumn(Problem):
    """A formula refers to a column, table or alias that does not exist at that point."""

    code: ClassVar[str] = "UNKNOWN_COLUMN"
    example: ClassVar[Example] = Example("ROUND(amout * 2, 2)", "ROUND(amount * 2, 2)")

    name: str
    known: tuple[str, ...] = ()
    qualifier: str | None = None
    known_qualifiers: tuple[str, ...] = ()
    also_under: tuple[str, ...] = ()
    """Qualifiers that do have a column of this name."""
    made_by_this_update: bool = False
    state: str | None = None
    """The state or the other dataset that a check reads and that lacks a column of its selector or its groups."""

    @property
    def _wrong_qualifier(self) -> bool:
        return self.qualifier is not None and not self.known

    def message(self) -> str:
        if self._wrong_qualifier:
            return f"there is no table or alias `{self.qualifier}` here"
        if self.state is not None:
            return f"column `{self.name}` does not exist in `{self.state}`"
        if self.qualifier:
            return f"`{self.qualifier}` has no column `{self.name}`"
        return f"column `{self.name}` does not exist here"

    def hint(self) -> str | None:
        if self.made_by_this_update:
            return "all assignments of an update read the values before the update; use two updates"
        if self.state is not None:
            there = f"; available there: {listed(self.known)}" if self.known else ""
            return (
                f"`expect` reads `{self.state}`, so the selector and the groups of the check are made there too{there}"
            )
        if self._wrong_qualifier:
            if _STATE.fullmatch(self.qualifier or ""):
                return _explain_states(self.known_qualifiers)
            if self.known_qualifiers:
                return did_you_mean(self.qualifier or "", self.known_qualifiers)
            return f"write `{self.name}` without a table"
        if self.also_under:
            return f"did you mean `{self.also_under[0]}.{self.name}`?"
        if self.name == "*":
            return "name each column; an output without `columns` writes all"
        if _CELL.fullmatch(self.name):
            there = f"; available: {listed(self.known)}" if self.known else ""
            return f"`{self.name}` looks like a spreadsheet cell; a formula refers to columns{there}"
        return did_you_mean(self.name, self.known, otherwise="there are no columns here")


def _explain_states(known: Sequence[str]) -> str:
    """What names of states mean, and which there are."""
    states = [name for name in known if _STATE.fullmatch(name)]
    if not states:
        return "only the `expect` of a check can read `start` and `after_N`"
    return f"`after_N` is the state after an earlier operation `N`; available: {listed(states)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownFunction(Problem):
    """A formula calls a function that does not exist."""

    code: ClassVar[str] = "UNKNOWN_FUNCTION"
    example: ClassVar[Example] = Example("ROUNDD(amount, 2)", "ROUND(amount, 2)")

    name: str
    known: tuple[str, ...] = ()
    instead: str | None = None

    def message(self) -> str:
        return f"there is no function `{self.name}`"

    def hint(self) -> str | None:
        if self.instead:
            return self.instead
        if candidate := nearest(self.name, self.known):
            return f"did you mean `{candidate}`?"
        return "`dobo functions` lists all functions"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongArity(Problem):
    """A function is called with too few or too many arguments."""

    code: ClassVar[str] = "WRONG_ARITY"
    example: ClassVar[Example] = Example("LEFT(status)", "LEFT(status, 2)")

    function: str
    given: int
    usage: tuple[str, ...]
    instead: str | None = None

    def message(self) -> str:
        return f"`{self.function}` cannot be called with {counted(self.given, 'argument')}"

    def hint(self) -> str | None:
        return self.instead or f"write {' or '.join(f'`{usage}`' for usage in self.usage)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeMismatch(Problem):
    """A value has the wrong type, such as text where a number is required."""

    code: ClassVar[str] = "TYPE_MISMATCH"
    example: ClassVar[Example] = Example('amount > "100"', "amount > 100")

    what: str
    """The operator, function or key that requires the type."""
    expected: str
    found: str
    advice: str | None = None

    def message(self) -> str:
        return f"{self.what} needs {self.expected}, not {self.found}"

    def hint(self) -> str | None:
        return self.advice

    def label(self) -> str | None:
        return f"this is {self.found}"


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidDate(Problem):
    """A text value could not be parsed as a date or time."""

    code: ClassVar[str] = "INVALID_DATE"
    example: ClassVar[Example] = Example('DATE("2026-02-30")', 'DATE("2026-02-28")')

    text: str

    def message(self) -> str:
        return f"`{self.text}` is not a valid date"

    def hint(self) -> str | None:
        return "write a date as `2026-01-31` and a time as `2026-01-31T08:30:00Z`"


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateNotAllowed(Problem):
    """An expression over single rows uses an aggregate function. Aggregate, check and append have groups; an update has windows."""

    code: ClassVar[str] = "AGGREGATE_NOT_ALLOWED"
    example: ClassVar[Example] = Example("amount / SUM(amount)", "amount / SUM(amount) OVER (PARTITION BY region)")

    function: str
    window: bool = False
    """Whether it is one of a window."""
    over: str | None = None
    """The call as a window, where windows are allowed."""

    def message(self) -> str:
        if self.window:
            return f"`{self.function}` over a window is allowed only in assignments of an update"
        return f"`{self.function}` is an aggregate function, and this expression is computed for each row"

    def hint(self) -> str | None:
        if self.window:
            return "assign it to a column in an earlier update, then use the column"
        if self.over is not None:
            return f"to compute it over many rows for each row, write `{self.over}`"
        return "compute it in an `aggregate` operation, then use its summary rows"


class AggregateReason(StrEnum):
    """Reasons why an aggregation is invalid."""

    NONE = "none"
    NESTED = "nested"
    UNGROUPED = "ungrouped"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidAggregate(Problem):
    """An aggregation without an aggregate function, one inside another, or a column that is neither grouped by nor aggregated."""

    code: ClassVar[str] = "INVALID_AGGREGATE"
    example: ClassVar[Example] = Example("SUM(SUM(amount))", "SUM(amount)")

    reason: AggregateReason
    name: str = ""
    group_by: tuple[str, ...] = ()
    supported: tuple[str, ...] = ()

    def message(self) -> str:
        match self.reason:
            case AggregateReason.NONE:
                return "a value over several rows needs an aggregate function"
            case AggregateReason.NESTED:
                return f"`{self.name}` is nested inside another aggregate function"
            case AggregateReason.UNGROUPED:
                return f"`{self.name}` can have several values in one group"
            case AggregateReason.UNSUPPORTED:
                return f"`{self.name}` is not a supported aggregate function"
            case _:
                assert_never(self.reason)

    def hint(self) -> str | None:
        match self.reason:
            case AggregateReason.NONE:
                return f"write `SUM({self.name})`" if self.name else "use one such as `SUM(amount)` or `COUNT(*)`"
            case AggregateReason.NESTED:
                return "use two aggregate operations in sequence"
            case AggregateReason.UNGROUPED:
                keys = f"; the group keys are {listed(self.group_by)}" if self.group_by else ""
                return (
                    f"aggregate it, as in `SUM({self.name})` or `MAX_AGG({self.name})`, or add it to `group_by`{keys}"
                )
            case AggregateReason.UNSUPPORTED:
                return f"available: {listed(self.supported)}"
            case _:
                assert_never(self.reason)


class WindowReason(StrEnum):
    """Reasons why a window is invalid."""

    NO_OVER = "no over"
    NO_ORDER = "no order"
    NESTED = "nested"
    NO_WINDOW_FUNCTION = "no window function"
    CONSTANT_KEY = "constant key"


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidWindow(Problem):
    """A window has no OVER or no ORDER BY, is nested, uses a function that has no windows, or a key that is a literal."""

    code: ClassVar[str] = "INVALID_WINDOW"
    example: ClassVar[Example] = Example(
        "ROW_NUMBER() OVER (PARTITION BY region)", "ROW_NUMBER() OVER (PARTITION BY region ORDER BY amount DESC)"
    )

    reason: WindowReason
    name: str
    """The function, or the key."""
    supported: tuple[str, ...] = ()
    instead: str | None = None

    def message(self) -> str:
        match self.reason:
            case WindowReason.NO_OVER:
                return f"`{self.name}` needs a window"
            case WindowReason.NO_ORDER:
                return f"`{self.name}` depends on the order of rows, and the window has no ORDER BY"
            case WindowReason.NESTED:
                return f"`{self.name}` is nested in another window"
            case WindowReason.NO_WINDOW_FUNCTION:
                return f"`{self.name}` cannot be computed over a window"
            case WindowReason.CONSTANT_KEY:
                return f"`{self.name}` is the same in all rows, so it is not a key"
            case _:
                assert_never(self.reason)

    def hint(self) -> str | None:
        match self.reason:
            case WindowReason.NO_OVER:
                return f"write `{self.instead}`"
            case WindowReason.NO_ORDER:
                return f"add an order: `{self.instead}`"
            case WindowReason.NESTED:
                return "assign the inner one to a column in an earlier update"
            case WindowReason.NO_WINDOW_FUNCTION:
                return self.instead or f"available: {listed(self.supported)}"
            case WindowReason.CONSTANT_KEY:
                return self.instead or "name a column"
            case _:
                assert_never(self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectorUndefined(Problem):
    """``{{NAME}}`` refers to an undefined selector."""

    code: ClassVar[str] = "SELECTOR_UNDEFINED"
    example: ClassVar[Example] = Example("{{activ}}", "{{active}}")

    name: str
    known: tuple[str, ...] = ()

    def message(self) -> str:
        return f"the project does not define a selector `{self.name}`"

    def hint(self) -> str | None:
        return did_you_mean(self.name, self.known, otherwise="the project defines no selectors")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectorCycle(Problem):
    """Selectors refer to each other in a cycle."""

    code: ClassVar[str] = "SELECTOR_CYCLE"
    example: ClassVar[Example] = Example("{{loop}}", "{{active}}")

    names: tuple[str, ...]

    def message(self) -> str:
        return f"selectors refer to each other in a cycle: {' -> '.join(f'`{name}`' for name in self.names)}"

    def hint(self) -> str | None:
        return "write one of them without a reference to the others"


@dataclass(frozen=True, slots=True, kw_only=True)
class NullComparison(Problem):
    """A comparison with NULL is never true."""

    code: ClassVar[str] = "W-03"
    severity: ClassVar[Severity] = "warning"
    example: ClassVar[Example] = Example("status = NULL", "ISNULL(status)")

    operator: str
    operand: str

    def message(self) -> str:
        return f"`{self.operator} NULL` is never true"

    def hint(self) -> str | None:
        test = f"ISNULL({self.operand})"
        return f"write `NOT {test}`" if self.operator in ("<>", "NOT IN") else f"write `{test}`"


def counted(number: int, noun: str) -> str:
    """``1 argument``, ``2 arguments``, ``no arguments``."""
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
