"""SQL queries that are not DataFrames yet: several nodes of a plan as one statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DEPTH = 10
"""Queries within each other that are given to Spark as one text; it goes down into each of them by recursion."""
FEW = 2
"""Up to so many queries over one frame are applied to it one after the other: a text needs a temporary view."""


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A SQL query over frames.

    Spark analyses the whole plan for each new frame, so long projects would take quadratic time. A query of several nodes is
    analysed once, and results in the same plan.
    """

    text: str
    """With the names of frames in braces."""
    frames: Mapping[str, DataFrame]
    depth: int
    steps: tuple[Callable[[DataFrame], DataFrame], ...] = ()
    """The same without a text, for queries over one frame; empty for others."""

    @classmethod
    def of(cls, rows: DataFrame) -> Query:
        """All rows of a frame."""
        name = f"rows{id(rows)}"
        return cls(f"{{{name}}}", {name: rows}, 0)

    def select(self, columns: Sequence[str]) -> Query:
        """A projection."""
        rows = _shallow(self)
        text = f"SELECT {_list(columns)} FROM {_source(rows)}"
        return _around(rows, text, lambda frame: frame.selectExpr(*columns))

    def where(self, condition: str) -> Query:
        """A filter."""
        rows = _shallow(self)
        text = f"SELECT * FROM {_source(rows)} WHERE {_escape(condition)}"
        return _around(rows, text, lambda frame: frame.where(condition))

    def left_join(self, other: Query, *, on: str, where: str, columns: Sequence[str]) -> Query:
        """A left join, a filter over the joined rows, and a projection of them."""
        rows, more = _shallow(self), _shallow(other)
        joined = f"{_source(rows)} LEFT JOIN {_source(more)} ON {_escape(on)}"
        text = f"SELECT {_list(columns)} FROM {joined} WHERE {_escape(where)}"
        return Query(text, {**rows.frames, **more.frames}, max(rows.depth, more.depth) + 1)

    def make(self) -> DataFrame:
        """The frame of the rows."""
        first = next(iter(self.frames.values()))
        if self.depth == 0:
            return first
        if 0 < len(self.steps) <= FEW:
            return reduce(lambda rows, step: step(rows), self.steps, first)
        return first.sparkSession.sql(self.text, None, **self.frames)


def _shallow(rows: Query) -> Query:
    """The same rows, nested less deeply, so that one more query fits around them."""
    return rows if rows.depth < DEPTH else Query.of(rows.make())


def _source(rows: Query) -> str:
    """The FROM clause of a query around them."""
    return rows.text if rows.depth == 0 else f"({rows.text})"


def _around(rows: Query, text: str, step: Callable[[DataFrame], DataFrame]) -> Query:
    return Query(text, rows.frames, rows.depth + 1, (*rows.steps, step) if rows.depth == len(rows.steps) else ())


def _list(columns: Sequence[str]) -> str:
    return _escape(", ".join(columns))


def _escape(sql: str) -> str:
    """SQL escaped for a template in which braces name frames."""
    return sql.replace("{", "{{").replace("}", "}}")
