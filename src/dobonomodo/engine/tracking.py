"""Hidden columns, which record operations, matches, earlier values and the position of a row.

No user column starts with a space.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dobonomodo.engine.context import RunContext
from dobonomodo.formula import Typed
from dobonomodo.formula.sql import quote_name
from dobonomodo.formula.types import Type
from dobonomodo.plan.relation import AssignIds, Derive, Group, Lookup, Rel, Reshape, Scan, Stack
from dobonomodo.plan.system import DELETED, PLACE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SEQ = " seq"
"""The hidden column with the operation that made a row, where an output is observed."""
TRACKER = " selected"
BITS = 62
"""Facts about a row that one hidden column can remember."""


@dataclass(frozen=True, slots=True)
class Bit:
    """A bit of a hidden column that records a fact about a row: operations have the first numbers, joins the next ones."""

    number: int

    @property
    def column(self) -> str:
        """The hidden column."""
        return tracker(self.number)

    @property
    def mask(self) -> int:
        """The bit in it; the first bit is for rows that were active when they were loaded."""
        return 1 << (self.number % BITS + 1)

    def set_where(self, condition: str) -> str:
        """SQL for the hidden column, with the bit set in the rows for which a condition is true."""
        name = quote_name(self.column)
        return f"CASE WHEN {condition} THEN {name} | {self.mask}L ELSE {name} END"

    def is_set(self) -> str:
        """SQL for the rows in which it is set."""
        return f"({quote_name(self.column)} & {self.mask}L) <> 0L"


def tracker(number: int) -> str:
    """The hidden column of the bit with a number."""
    return f"{TRACKER}{number // BITS}"


def count_where(condition: str) -> str:
    """SQL for the number of rows for which a condition is true, where they are observed.

    ``count_if`` would add a column for its condition to every row below the observation (Spark 4.3).
    """
    return f"coalesce(sum(CAST({condition} AS BIGINT)), 0L)"


WAS_ACTIVE = f"({quote_name(tracker(0))} & 1L) <> 0L"
"""SQL for the rows that were active when they were loaded."""


def check_column(seq: int) -> str:
    """The hidden column that is true for the rows that violate a check."""
    return f" check{seq}"


def is_violated(seq: int) -> str:
    """SQL for the rows that violate a check."""
    return quote_name(check_column(seq))


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """An operation whose selected rows are remembered."""

    bit: Bit
    selected: Typed


@dataclass(frozen=True, slots=True)
class Kept:
    """A column whose value before an operation is kept, since the operation assigns it."""

    number: int
    """Of the operation in the plan."""
    column: str
    type: Type

    @property
    def name(self) -> str:
        """The hidden column."""
        return f" before{self.number} {self.column}"


@dataclass(frozen=True, slots=True, eq=False)
class HiddenValue:
    """A value of a node's rows that is kept in a hidden column."""

    name: str
    value: Typed


@dataclass(frozen=True, slots=True, eq=False)
class Tracked:
    """What to record, by the identity of nodes."""

    marks: Mapping[int, Mark] = field(default_factory=dict)
    matches: Mapping[int, Bit] = field(default_factory=dict)
    """Lookups whose matches are remembered."""
    kept: Mapping[int, tuple[Kept, ...]] = field(default_factory=dict)
    values: Mapping[int, tuple[HiddenValue, ...]] = field(default_factory=dict)
    """The values that are kept of a node's rows, in addition to the bits of operations."""

    def columns(self) -> list[str]:
        """The hidden columns that hold bits."""
        bits = [*(mark.bit for mark in self.marks.values()), *self.matches.values()]
        return sorted({tracker(0), *(bit.column for bit in bits)})


class Tracking:
    """The hidden columns of the frames of a run, by node. Reading them from a frame takes Spark some milliseconds each time."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._tracked = Tracked()
        self._hidden: dict[int, tuple[str, ...]] = {}
        self._types: dict[str, Type] = {}

    def prepare(self, tracked: Tracked) -> None:
        """Set what to record; called before the first frame is built."""
        self._tracked = tracked
        self._types = {each.name: each.type for kept in tracked.kept.values() for each in kept}
        self._types |= {each.name: each.value.type for values in tracked.values.values() for each in values}

    def note(self, node: Rel, *, has_place: bool = False) -> None:
        """Record the frame of a node; ``has_place``: rows that are loaded or added there carry their position."""
        match node:
            case Scan() | AssignIds():
                self._hidden[id(node)] = (PLACE,) if has_place else ()
            case Group():
                self._hidden[id(node)] = ()
            case Lookup() if self._is_flagged(node):
                self._hidden[id(node)] = (*self.hidden(node.rows), _flag(self._tracked.matches[id(node)]))
            case _:
                kept = (each.name for each in self._tracked.kept.get(id(node), ()))
                self._hidden[id(node)] = (*self.hidden(node.rows), *kept)

    def start(self, node: Rel, frame: DataFrame) -> DataFrame:
        """The frame of a node with the columns that hold bits from here on. Matches of the lookups below become bits."""
        flagged = [bit for bit in self._tracked.matches.values() if _flag(bit) in self.hidden(node)]
        flags = [_flag(bit) for bit in flagged]
        columns = self._tracked.columns()
        sql = [f"{_first_bits(name, flagged)} AS {quote_name(name)}" for name in columns]
        self._hidden[id(node)] = (*(name for name in self.hidden(node) if name not in flags), *columns)
        started = frame.selectExpr("*", *sql)
        return started.drop(*flags) if flags else started

    def keep_values(self, node: Rel) -> list[str]:
        """SQL for the values of a node's rows that are kept, in addition to its columns; they are hidden columns from here on."""
        values = self._tracked.values.get(id(node), ())
        self._hidden[id(node)] += tuple(each.name for each in values)
        return [f"{self._run.sql(each.value)} AS {quote_name(each.name)}" for each in values]

    def hidden(self, node: Rel) -> tuple[str, ...]:
        """The hidden columns of a node's frame."""
        return self._hidden[id(node)]

    def trackers(self, node: Rel) -> list[str]:
        """The hidden columns of a node's frame that hold bits."""
        return [name for name in self.hidden(node) if name != PLACE]

    def is_marked(self, node: Rel) -> bool:
        """Whether the rows that an operation selects are recorded at a node."""
        return id(node) in self._tracked.marks

    def carried(self, node: Derive | Reshape | Stack) -> list[str]:
        """SQL for the hidden columns of a node, over the rows below it."""
        mark = self._tracked.marks.get(id(node))
        carried = [
            f"{mark.bit.set_where(self._run.sql(mark.selected))} AS {quote_name(name)}"
            if mark is not None and mark.bit.column == name
            else quote_name(name)
            for name in self.hidden(node.rows)
        ]
        kept = self._tracked.kept.get(id(node), ())
        return [*carried, *(f"{quote_name(each.column)} AS {quote_name(each.name)}" for each in kept)]

    def remembers(self, node: Lookup) -> bool:
        """Whether the matches of a lookup are recorded."""
        return id(node) in self._tracked.matches

    def joined(self, node: Lookup, matched: str) -> list[str]:
        """SQL for the hidden columns after a lookup; ``matched`` is true for rows with a match."""
        bit = self._tracked.matches.get(id(node))
        if bit is not None and self._is_flagged(node):
            return [*(quote_name(name) for name in self.hidden(node.rows)), f"{matched} AS {quote_name(_flag(bit))}"]
        return [
            f"{bit.set_where(matched)} AS {quote_name(name)}"
            if bit is not None and bit.column == name
            else quote_name(name)
            for name in self.hidden(node.rows)
        ]

    def is_matched(self, node: Lookup) -> str:
        """SQL for the rows of a lookup's frame that have a match."""
        bit = self._tracked.matches[id(node)]
        return quote_name(_flag(bit)) if self._is_flagged(node) else bit.is_set()

    def _is_flagged(self, node: Lookup) -> bool:
        """Whether a match is recorded in a separate column, since the lookup comes before the columns of bits."""
        bit = self._tracked.matches.get(id(node))
        return bit is not None and bit.column not in self.hidden(node.rows)

    def missing(self, node: Stack) -> dict[str, str]:
        """SQL by name for the hidden columns that the added rows of a union do not have."""
        has = self.hidden(node.more)
        return {name: self._empty(name) for name in self.hidden(node.rows) if name not in has}

    def _empty(self, name: str) -> str:
        if name == PLACE:
            return "CAST(NULL AS BIGINT)"
        return f"CAST(NULL AS {self._types[name].sql})" if name in self._types else "0L"


def _flag(bit: Bit) -> str:
    return f" matched{bit.number}"


def _first_bits(column: str, flagged: Iterable[Bit]) -> str:
    """SQL for a column of bits of rows as they are loaded."""
    bits = [
        f"CASE WHEN {quote_name(_flag(bit))} THEN {bit.mask}L ELSE 0L END" for bit in flagged if bit.column == column
    ]
    if column == tracker(0):
        bits.append(f"CASE WHEN {quote_name(DELETED)} THEN 0L ELSE 1L END")
    return " | ".join(bits) or "0L"
