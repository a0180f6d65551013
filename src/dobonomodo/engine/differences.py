"""Compares two sets of rows: a full outer join by key, or a comparison as multisets.

Collects only counts, sums and a few rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dobonomodo.formula import Type
from dobonomodo.formula.sql import quote_name
from dobonomodo.formula.types import is_number
from dobonomodo.plan.system import OPERATION_SEQ

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHOWN_PER_COLUMN = 5
"""How many of the largest changes of each column are given."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The rows of two outputs, with the types of the columns that both have."""

    before: DataFrame
    after: DataFrame
    columns: Mapping[str, tuple[Type, Type]]

    def numbers(self) -> list[str]:
        """The columns that have a total in both."""
        return [name for name, (one, other) in self.columns.items() if is_number(one) and is_number(other)]


@dataclass(frozen=True, slots=True)
class FoundColumn:
    """The counts and sums of a column."""

    changed: int | None
    before: object
    after: object


@dataclass(frozen=True, slots=True)
class FoundChange:
    """One of the largest changes."""

    key: tuple[str | None, ...]
    column: str
    before: str | None
    after: str | None
    row: str


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a comparison."""

    rows_before: int
    rows_after: int
    added: int
    removed: int
    changed: int | None
    columns: Mapping[str, FoundColumn]
    largest: tuple[FoundChange, ...] = ()


def repeats_key(frame: DataFrame, key: Sequence[str]) -> bool:
    """Whether two rows have the same key, given as SQL expressions."""
    from pyspark.sql import functions as F

    named = frame.selectExpr(*(f"{sql} AS k{at}" for at, sql in enumerate(key)))
    counted = named.groupBy(*(f"k{at}" for at in range(len(key)))).agg(F.count(F.lit(1)).alias("n"))
    return bool(counted.where("n > 1").limit(1).collect())


def compare_by_key(sides: Sides, key: Mapping[str, str]) -> Found:
    """Compare rows by key (full outer join); ``key`` holds SQL for each key column."""
    from pyspark.sql import functions as F

    names, keys = list(sides.columns), list(key.values())
    before = _side(sides, sides.before, keys, "b", at=0)
    after = _side(sides, sides.after, keys, "a", at=1)
    same = " AND ".join(f"bk{at} <=> ak{at}" for at in range(len(keys)))
    both = before.join(after, F.expr(same), "full_outer")
    paired = "b AND a"
    metrics = {
        "rows_before": "count_if(b)",
        "rows_after": "count_if(a)",
        "added": "count_if(b IS NULL)",
        "removed": "count_if(a IS NULL)",
        "changed": f"count_if({paired} AND NOT ({' AND '.join(f'(b{at} <=> a{at})' for at in range(len(names))) or 'true'}))",
    }
    for at, name in enumerate(names):
        metrics[f"changed_{at}"] = f"count_if({paired} AND NOT (b{at} <=> a{at}))"
        metrics |= _sums(sides, name, at)
    row = both.selectExpr(*(f"{sql} AS {name}" for name, sql in metrics.items())).first()
    counted = row.asDict() if row is not None else {}
    columns = {
        name: FoundColumn(counted[f"changed_{at}"], counted.get(f"before_{at}"), counted.get(f"after_{at}"))
        for at, name in enumerate(names)
    }
    moved = counted["added"] or counted["removed"]
    wanted = [at for at, name in enumerate(names) if columns[name].changed or (moved and name in sides.numbers())]
    return Found(
        rows_before=counted["rows_before"],
        rows_after=counted["rows_after"],
        added=counted["added"],
        removed=counted["removed"],
        changed=counted["changed"],
        columns=columns,
        largest=_find_largest(both, sides, names, wanted, len(keys)) if wanted else (),
    )


def _side(sides: Sides, frame: DataFrame, keys: Sequence[str], mark: str, *, at: int) -> DataFrame:
    values = [_value(sides, name, at=at) + f" AS {mark}{number}" for number, name in enumerate(sides.columns)]
    named = [f"{sql} AS {mark}k{number}" for number, sql in enumerate(keys)]
    return frame.selectExpr(*named, *values, f"true AS {mark}")


def _value(sides: Sides, name: str, *, at: int) -> str:
    """SQL for a value that can be compared: as text, where the types are of different kinds."""
    one, other = sides.columns[name]
    alike = one == other or (is_number(one) and is_number(other))
    return quote_name(name) if alike else f"CAST({quote_name(name)} AS STRING)"


def _sums(sides: Sides, name: str, at: int) -> dict[str, str]:
    if name not in sides.numbers():
        return {}
    one, other = sides.columns[name]
    return {f"before_{at}": _total(f"b{at}", one, "count_if(b)"), f"after_{at}": _total(f"a{at}", other, "count_if(a)")}


def _total(value: str, kind: Type, rows: str) -> str:
    """SQL for a sum: zero over no rows, NULL where it has too many digits."""
    zero = f"CAST(0 AS {kind.sql})"
    return f"CASE WHEN {rows} = 0 THEN {zero} ELSE try_sum(coalesce({value}, {zero})) END"


def _find_largest(
    both: DataFrame, sides: Sides, names: Sequence[str], wanted: Sequence[int], keys: int
) -> tuple[FoundChange, ...]:
    """The largest changes of each column, in the order of the columns; of texts, the first by key."""
    numbers = set(sides.numbers())
    parts = []
    for at in wanted:
        weight = f"abs(CAST(coalesce(a{at}, 0) AS DOUBLE) - CAST(coalesce(b{at}, 0) AS DOUBLE))"
        weight = weight if names[at] in numbers else "CAST(0 AS DOUBLE)"
        differs = f"NOT (b{at} <=> a{at})" + ("" if names[at] in numbers else " AND b AND a")
        parts.append(
            f"named_struct('at', {at}, 'before', CAST(b{at} AS STRING), 'after', CAST(a{at} AS STRING), "
            f"'weight', {weight}, 'differs', {differs})"
        )
    keyed = [f"CAST(coalesce(bk{at}, ak{at}) AS STRING) AS k{at}" for at in range(keys)]
    row = "CASE WHEN b IS NULL THEN 'added' WHEN a IS NULL THEN 'removed' ELSE 'changed' END AS row"
    each = both.selectExpr(*keyed, row, f"explode(array({', '.join(parts)})) AS e").where("e.differs")
    order = ", ".join(["e.weight DESC", *(f"k{at}" for at in range(keys))])
    ranked = each.selectExpr("*", f"row_number() OVER (PARTITION BY e.at ORDER BY {order}) AS place")
    first = ranked.where(f"place <= {SHOWN_PER_COLUMN}").orderBy("e.at", "place")
    return tuple(
        FoundChange(
            tuple(found[f"k{at}"] for at in range(keys)),
            names[found["e"]["at"]],
            found["e"]["before"],
            found["e"]["after"],
            found["row"],
        )
        for found in first.collect()
    )


def compare_as_multisets(sides: Sides) -> Found:
    """Compare rows without a key: rows that occur more often on one side count as removed or added."""
    from pyspark.sql import functions as F

    names = list(sides.columns)
    values = {at: [_value(sides, name, at=at) for name in names] for at in (0, 1)}
    before, after = (
        frame.selectExpr(*(f"{sql} AS c{number}" for number, sql in enumerate(values[at])), f"{at} AS side")
        for at, frame in enumerate((sides.before, sides.after))
    )
    grouped = before.unionByName(after).groupBy(*(f"c{number}" for number in range(len(names))))
    counts = grouped.agg(F.expr("count_if(side = 0)").alias("b"), F.expr("count_if(side = 1)").alias("a")).selectExpr(
        "coalesce(sum(b), 0) AS rows_before",
        "coalesce(sum(a), 0) AS rows_after",
        "coalesce(sum(greatest(a - b, 0)), 0) AS added",
        "coalesce(sum(greatest(b - a, 0)), 0) AS removed",
    )
    row = counts.first()
    totals = [
        frame.selectExpr(*(f"{sql} AS {name}" for name, sql in _totals_of(sides, at).items()), "count(1) AS n").first()
        for at, frame in enumerate((sides.before, sides.after))
    ]
    columns = {
        name: FoundColumn(None, *((each[f"t{at}"] if each is not None else None) for each in totals))
        if name in sides.numbers()
        else FoundColumn(None, None, None)
        for at, name in enumerate(names)
    }
    counted = row.asDict() if row is not None else {}
    return Found(
        rows_before=int(counted["rows_before"]),
        rows_after=int(counted["rows_after"]),
        added=int(counted["added"]),
        removed=int(counted["removed"]),
        changed=None,
        columns=columns,
    )


def _totals_of(sides: Sides, side: int) -> dict[str, str]:
    numbers = sides.numbers()
    return {
        f"t{at}": _total(quote_name(name), sides.columns[name][side], "count(1)")
        for at, name in enumerate(sides.columns)
        if name in numbers
    }


def find_key(keys: Mapping[int, Sequence[str]], columns: Collection[str]) -> dict[str, str]:
    """SQL for each column of the key of rows, by the operations that made them; nothing if one is not among the columns."""
    named = OPERATION_SEQ if len(keys) > 1 else None
    needed = {column for own in keys.values() for column in own} | ({named} if named is not None else set())
    if not all(keys.values()) or not needed <= set(columns):
        return {}
    return key_of_origins(keys, seq=named)


def key_of_origins(keys: Mapping[int, Sequence[str]], *, seq: str | None) -> dict[str, str]:
    """SQL for the key of rows that several operations made, each with a key of its own: ``seq`` is the column that tells which."""
    if seq is None:
        ((_, own),) = keys.items()
        return {name: quote_name(name) for name in own}
    named: dict[str, list[int]] = {}
    for number, own in keys.items():
        for name in own:
            named.setdefault(name, []).append(number)
    found = {seq: quote_name(seq)}
    for name, numbers in named.items():
        listed = ", ".join(map(str, numbers))
        whole = len(numbers) == len(keys)
        found[name] = (
            quote_name(name) if whole else f"CASE WHEN {quote_name(seq)} IN ({listed}) THEN {quote_name(name)} END"
        )
    return found
