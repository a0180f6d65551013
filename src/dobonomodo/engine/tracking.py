"""Hidden columns: which operations selected a row, and its place among the loaded rows. No user column starts with a space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dobonomodo.engine.context import RunContext
from dobonomodo.formula import Typed
from dobonomodo.formula.sql import quote_name
from dobonomodo.plan.relation import AssignIds, Derive, Group, Rel, Reshape, Scan, Stack
from dobonomodo.plan.system import DELETED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLACE = " place"
"""The hidden column with the place of a loaded row, where row ids are made late."""
TRACKER = " selected"
BITS = 62
"""Operations that one hidden column can remember."""


def tracker(number: int) -> str:
    """The hidden column that remembers the operation with this number in the plan."""
    return f"{TRACKER}{number // BITS}"


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """An operation whose selected rows are remembered."""

    number: int
    selected: Typed

    @property
    def column(self) -> str:
        """The hidden column that remembers it."""
        return tracker(self.number)

    @property
    def bit(self) -> int:
        """The bit that remembers it; the first bit is for rows that were active when they were loaded."""
        return 1 << (self.number % BITS + 1)

    def sql(self, condition: str) -> str:
        """The hidden column after the operation."""
        name = quote_name(self.column)
        return f"CASE WHEN {condition} THEN {name} | {self.bit}L ELSE {name} END"


class Tracking:
    """The hidden columns of the frames of a run, by node. Asking a frame itself takes Spark some milliseconds each time."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._marks: dict[int, Mark] = {}
        self._hidden: dict[int, tuple[str, ...]] = {}

    def note(self, node: Rel, *, has_place: bool = False) -> None:
        """The frame of a node is made; ``has_place`` says whether loaded rows carry their place."""
        match node:
            case Scan():
                self._hidden[id(node)] = (PLACE,) if has_place else ()
            case Group() | AssignIds():
                self._hidden[id(node)] = ()
            case _:
                self._hidden[id(node)] = self._hidden[id(node.rows)]

    def start(self, node: Rel, frame: DataFrame, marks: Mapping[int, Mark]) -> DataFrame:
        """The frame of a node with the columns that remember operations from here on; ``marks`` are by node."""
        self._marks = dict(marks)
        hidden = sorted({mark.column for mark in marks.values()} | {tracker(0)})
        first = f"CASE WHEN {quote_name(DELETED)} THEN 0L ELSE 1L END AS {quote_name(tracker(0))}"
        others = [f"0L AS {quote_name(name)}" for name in hidden if name != tracker(0)]
        self._hidden[id(node)] += tuple(hidden)
        return frame.selectExpr("*", first, *others)

    def hidden(self, node: Rel) -> tuple[str, ...]:
        """The hidden columns of a node's frame."""
        return self._hidden[id(node)]

    def trackers(self, node: Rel) -> list[str]:
        """Those of them that remember operations."""
        return [name for name in self.hidden(node) if name != PLACE]

    def is_marked(self, node: Rel) -> bool:
        """Whether the rows that an operation selects are remembered at a node."""
        return id(node) in self._marks

    def carried(self, node: Derive | Reshape | Stack) -> list[str]:
        """SQL for the hidden columns of the rows below a node, as they are after it."""
        mark = self._marks.get(id(node))
        return [
            f"{mark.sql(self._run.sql(mark.selected))} AS {quote_name(name)}"
            if mark is not None and mark.column == name
            else quote_name(name)
            for name in self.hidden(node.rows)
        ]

    def missing(self, node: Stack) -> dict[str, str]:
        """SQL by name for the hidden columns that the added rows of a union do not have."""
        has = self.hidden(node.more)
        missing = [name for name in self.hidden(node.rows) if name not in has]
        return {name: "CAST(NULL AS BIGINT)" if name == PLACE else "0L" for name in missing}
