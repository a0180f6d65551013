"""Range joins: each row finds the piece of the line in which its point lies.

The ends of all ranges of a key cut the line into pieces. Each piece knows how many ranges cover it, and which one if there is
only one. So a row has at most one piece, and the piece tells how many matches the row has. To find it without comparing a row
with every piece, the line is divided into equal buckets, and rows and pieces are joined by the number of the bucket. A key has
a fixed number of buckets for each end, so the joined side grows by a constant factor whatever the ranges are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dobonomodo.engine.context import RunContext
from dobonomodo.formula import Typed
from dobonomodo.formula.sql import cast
from dobonomodo.formula.types import DATE, INTEGER, TEXT, TIMESTAMP
from dobonomodo.plan.condition import Bound, Range

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BUCKETS = 2
"""How many buckets a key has for each end of a range."""
COUNT, ROW = "` count`", "` row`"
"""Beside a row: how many ranges hold its point, and the columns of the range where it is one. NULL without a match."""

_LOW, _HIGH = "` low`", "` high`"
_AT, _AFTER, _NEXT, _NEXT_AFTER = "` at`", "` after`", "` next`", "` next after`"
"""Where a piece begins and ends. ``after`` is 1 where points that are equal to the value are before the cut, else 0."""
_CHANGE, _REACH = "` change`", "` reach`"
_FIRST, _FACTOR, _LAST = "` first`", "` factor`", "` last`"
"""Where the buckets of a key begin, how many there are for each unit, and the number of the last."""
_BUCKET, _OWN_BUCKET = "` bucket`", "` own bucket`"
_OF_NULL = -1
"""The bucket of points that are NULL. They lie in the ranges without ends, if NULL means that there is none."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The equalities of a join as SQL: the keys of the rows, and those of the joined side."""

    own: list[str]
    joined: list[str]

    def names(self, prefix: str = "") -> list[str]:
        """What the keys of the joined side are called."""
        return [f"` {prefix}key{number}`" for number in range(len(self.joined))]

    def equal(self, prefix: str = "") -> list[str]:
        """The equalities."""
        return [f"{own} = {name}" for own, name in zip(self.own, self.names(prefix), strict=True)]


@dataclass(frozen=True, slots=True)
class _End:
    """One end of the ranges: its column, and whether the cut is past the points that are equal to it."""

    name: str
    bound: Bound | None
    past: bool


class Line:
    """The line on which points and ranges lie, as SQL. Days are numbers there, and ranges of days end before the next day."""

    def __init__(self, given: Range, run: RunContext) -> None:
        self._range, self._run = given, run
        self._point = self._convert(given.point)
        self._ends = (
            _End(_LOW, given.low, past=given.low is not None and given.low.strict),
            _End(_HIGH, given.high, past=given.high is not None and not given.high.strict),
        )

    def join(self, rows: DataFrame, source: DataFrame, keys: Keys, *, only: str, fields: str) -> DataFrame:
        """The rows with the additional columns ``COUNT`` and ``ROW``; ``ROW`` is a struct of ``fields``.

        Rows take part if ``only``.
        """
        from pyspark.sql import functions as F

        ranges = self._list_ranges(source, keys, fields)
        taking_part = " AND ".join([only, *keys.equal("directory ")])
        placed = rows.join(self._divide(ranges, keys), F.expr(taking_part), "left").selectExpr(
            "*",
            f"CASE WHEN {_LAST} IS NULL THEN NULL WHEN {self._point} IS NULL THEN {_OF_NULL} "
            f"ELSE {self._bucket(self._point)} END AS {_OWN_BUCKET}",
        )
        found = " AND ".join([*keys.equal(), f"{_OWN_BUCKET} = {_BUCKET}", self._holds_point()])
        return placed.join(self._cut(ranges, keys), F.expr(found), "left")

    def _list_ranges(self, source: DataFrame, keys: Keys, fields: str) -> DataFrame:
        """The non-empty ranges, with their keys and rows."""
        named = [f"{sql} AS {name}" for sql, name in zip(keys.joined, keys.names(), strict=True)]
        ends = [f"{self._position(end)} AS {end.name}" for end in self._ends]
        ranges = source.selectExpr(*named, *ends, f"struct({fields}) AS {ROW}")
        for end in self._ends:
            if end.bound is not None and not end.bound.open:
                ranges = ranges.where(f"{end.name} IS NOT NULL")
        smaller = "<=" if [self._after(end) for end in self._ends] == [0, 1] else "<"
        return ranges.where(f"{_LOW} IS NULL OR {_HIGH} IS NULL OR {_LOW} {smaller} {_HIGH}")

    def _divide(self, ranges: DataFrame, keys: Keys) -> DataFrame:
        """One row per key with its buckets."""
        from pyspark.sql import functions as F

        low, high = self._measure(_LOW), self._measure(_HIGH)
        grouped = ranges.groupBy(*(F.expr(name).alias(name.strip("`")) for name in keys.names())).agg(
            F.expr(f"least(min({low}), min({high}))").alias("min"),
            F.expr(f"greatest(max({low}), max({high}))").alias("max"),
            F.expr(f"count({_LOW}) + count({_HIGH})").alias("ends"),
        )
        renamed = [f"{name} AS {other}" for name, other in zip(keys.names(), keys.names("directory "), strict=True)]
        return grouped.selectExpr(*renamed, *self._buckets("min", "max", "ends"))

    def _cut(self, ranges: DataFrame, keys: Keys) -> DataFrame:
        """The pieces that ranges cover, one row for each bucket that a piece overlaps."""
        pieces = self._cover(self._list_ends(ranges, keys), keys)
        end = _NEXT if self._is_continuous else f"{_NEXT} - 1"
        first = f"CASE WHEN {_AT} IS NULL THEN 0 ELSE {self._bucket(_AT)} END"
        last = f"CASE WHEN {_NEXT} IS NULL THEN CAST({_LAST} AS INT) ELSE {self._bucket(end)} END"
        bounds = [_AT, _AFTER, _NEXT, _NEXT_AFTER]
        found = pieces.selectExpr(
            *keys.names(),
            *bounds,
            COUNT,
            f"{_REACH}.{ROW} AS {ROW}",
            f"explode(sequence({first}, {last})) AS {_BUCKET}",
        )
        return found.unionByName(self._hold_null(ranges, keys)) if self._can_hold_null else found

    def _bucket(self, value: str) -> str:
        """The number of the bucket in which a value lies; a larger value is never in an earlier one.

        Doubles are exact enough for that: each step keeps the order of values, and the comparison itself is made apart.
        """
        return f"CAST(least(greatest(({self._measure(value)} - {_FIRST}) * {_FACTOR}, 0D), {_LAST}) AS INT)"

    def _holds_point(self) -> str:
        """Whether the point of a row lies in a piece, where both are in the same bucket."""
        begins = f"({_AT} IS NULL OR {self._is_beside_point(_AT, '<', _AFTER, 0)})"
        ends = f"({_NEXT} IS NULL OR {self._is_beside_point(_NEXT, '>', _NEXT_AFTER, 1)})"
        within = f"{begins} AND {ends}"
        return f"({_BUCKET} = {_OF_NULL} OR ({within}))" if self._can_hold_null else within

    def _is_beside_point(self, cut: str, order: str, after: str, equal: int) -> str:
        """Whether a cut is below or above the point. One at the point itself is where its ``after`` is ``equal``."""
        afters = {self._after(end) for end in self._ends if end.bound is not None}
        if equal not in afters:
            return f"{cut} {order} {self._point}"
        if afters == {equal}:
            return f"{cut} {order}= {self._point}"
        return f"({cut} {order} {self._point} OR ({cut} = {self._point} AND {after} = {equal}))"

    @property
    def _is_continuous(self) -> bool:
        return self._range.type != DATE

    @property
    def _can_hold_null(self) -> bool:
        return all(bound.open for bound in self._range.bounds)

    def _convert(self, value: Typed) -> str:
        sql = self._run.sql(value)
        if not self._is_continuous:
            return f"unix_date({sql})"
        return sql if value.type == self._range.type else cast(sql, self._range.type)

    def _after(self, end: _End) -> int:
        return int(end.past and self._is_continuous)

    def _position(self, end: _End) -> str:
        if end.bound is None:
            return self._nowhere
        sql = self._convert(end.bound.value)
        return f"{sql} + 1" if end.past and not self._is_continuous else sql

    @property
    def _nowhere(self) -> str:
        return f"CAST(NULL AS {self._range.type.sql if self._is_continuous else 'INT'})"

    def _measure(self, value: str) -> str:
        """A value as a number, smaller where the value is; equal ones may be far apart for texts with a long common beginning."""
        if self._range.type == TIMESTAMP:
            value = f"unix_micros({value})"
        elif self._range.type == TEXT:
            value = f"conv(rpad(left(hex({value}), 12), 12, '0'), 16, 10)"
        return f"CAST({value} AS DOUBLE)"

    def _buckets(self, first: str, top: str, ends: str) -> list[str]:
        """SQL for the buckets of a key, from its smallest and largest end and the number of its ends."""
        size = f"{BUCKETS}D * {ends}"
        if self._range.type in (DATE, INTEGER):
            size = f"least({size}, {top} - {first})"
        count = f"greatest(1D, {size})"
        return [
            f"coalesce({first}, 0D) AS {_FIRST}",
            f"CASE WHEN {top} > {first} THEN {count} / ({top} - {first}) ELSE 0D END AS {_FACTOR}",
            f"CASE WHEN {top} > {first} THEN {count} - 1 ELSE 0D END AS {_LAST}",
        ]

    def _list_ends(self, ranges: DataFrame, keys: Keys) -> DataFrame:
        """The two ends of each range; one without an end has no second one."""
        low, high = (self._after(end) for end in self._ends)
        reach = f"struct({_HIGH} IS NULL AS open, {_HIGH} AS end, {ROW} AS {ROW})"
        start = f"struct({_LOW} AS {_AT}, {low} AS {_AFTER}, 1 AS {_CHANGE}, {reach} AS {_REACH})"
        stop = f"struct({_HIGH} AS {_AT}, {high} AS {_AFTER}, -1 AS {_CHANGE}, NULL AS {_REACH})"
        listed = ranges.selectExpr(*keys.names(), f"inline(array({start}, {stop}))")
        return listed.where(f"{_CHANGE} > 0 OR {_AT} IS NOT NULL")

    def _cover(self, ends: DataFrame, keys: Keys) -> DataFrame:
        """The pieces between ends that ranges cover: by how many, and by which one, the one that reaches farthest."""
        partition = f"PARTITION BY {', '.join(keys.names())}" if keys.names() else ""
        order = f"{partition} ORDER BY {_AT}, {_AFTER}"
        so_far = f"{order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        measured = self._measure(_AT)
        pieces = ends.selectExpr(
            *keys.names(),
            _AT,
            _AFTER,
            f"lead({_AT}) OVER ({order}) AS {_NEXT}",
            f"lead({_AFTER}) OVER ({order}) AS {_NEXT_AFTER}",
            f"sum({_CHANGE}) OVER ({so_far}) AS {COUNT}",
            f"max({_REACH}) OVER ({so_far}) AS {_REACH}",
            f"min({measured}) OVER ({partition}) AS min",
            f"max({measured}) OVER ({partition}) AS max",
            f"count({_AT}) OVER ({partition}) AS ends",
        )
        covered = pieces.where(f"{COUNT} > 0 AND NOT ({_AT} <=> {_NEXT} AND {_AFTER} <=> {_NEXT_AFTER})")
        return covered.selectExpr("*", *self._buckets("min", "max", "ends"))

    def _hold_null(self, ranges: DataFrame, keys: Keys) -> DataFrame:
        """The ranges without ends, as a piece for the points that are NULL."""
        from pyspark.sql import functions as F

        endless = ranges.where(f"{_LOW} IS NULL AND {_HIGH} IS NULL")
        counted = endless.groupBy(*(F.expr(name).alias(name.strip("`")) for name in keys.names())).agg(
            F.expr("count(1)").alias(COUNT.strip("`")), F.expr(f"max({ROW})").alias(ROW.strip("`"))
        )
        cuts = [f"{self._nowhere} AS {name}" for name in (_AT, _NEXT)]
        afters = [f"CAST(NULL AS INT) AS {name}" for name in (_AFTER, _NEXT_AFTER)]
        return counted.where(f"{COUNT} > 0").selectExpr(
            *keys.names(), *cuts, *afters, COUNT, ROW, f"{_OF_NULL} AS {_BUCKET}"
        )
