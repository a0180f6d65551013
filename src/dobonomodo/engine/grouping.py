"""Large groups computed by Spark, for explanations of totals: number of rows, totals, and the largest rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dobonomodo.engine.frames import Frames
from dobonomodo.formula import Type, Typed
from dobonomodo.formula.meaning import Value, as_value
from dobonomodo.formula.moment import Day, Moment
from dobonomodo.formula.sql import literal, quote_name
from dobonomodo.formula.types import DATE, TIMESTAMP, is_number
from dobonomodo.plan.relation import Group

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS = " rows"


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A row of a group."""

    values: Mapping[str, Value]
    amounts: Mapping[str, Value]
    """What it adds to each total that is the sum of that, by the name of the total in the node."""
    reads: Mapping[str, Value]
    """What is read of it for totals, by the formula."""


@dataclass(frozen=True, slots=True, eq=False)
class LargeGroup:
    """A group that Spark has computed."""

    values: Mapping[str, Value]
    """The keys and the results, by the names that they have in the node."""
    rows: int
    members: tuple[Member, ...]
    """The largest first; not necessarily all."""
    sums: frozenset[str]
    """The totals that are exactly the sums of what their rows add."""


def read_groups(
    frames: Frames,
    node: Group,
    keys: Mapping[str, Collection[Value]],
    *,
    names: Sequence[str],
    shares: Mapping[str, Typed],
    at_most: int | None,
) -> list[LargeGroup]:
    """The groups of a node with the given key values.

    ``names`` are the columns that identify rows. ``shares`` are what a row adds to a total, by the name of the total in the
    node, and what is read of it, by the formula; rows are sorted by them.
    """
    from pyspark.sql import functions as F

    rows = frames.make(node.rows)
    for name, allowed in keys.items():
        rows = rows.where(_is_one_of(frames.sql(node.keys[name]), node.keys[name].type, allowed))
    sql = {name: frames.sql(value) for name, value in node.keys.items()}
    values = [F.expr(frames.sql(value)).alias(name) for name, value in node.values.items()]
    grouped = rows.groupBy(*(F.expr(key).alias(name) for name, key in sql.items()))
    added = {name: f"{_ROWS} {name}" for name in shares if name in node.values}
    sums = [F.expr(f"try_sum({frames.sql(shares[name])})").alias(other) for name, other in added.items()]
    counted = grouped.agg(*values, *sums, F.expr("count(1)").alias(_ROWS))
    types = {**node.schema.columns}
    shown = [f"{_readable(quote_name(name), kind)} AS {quote_name(name)}" for name, kind in types.items()]
    shown += [quote_name(each) for each in (*added.values(), _ROWS)]
    found = []
    for row in counted.selectExpr(*shown).limit(GROUPS_AT_MOST).collect():
        own = {name: _value(row[name], kind) for name, kind in types.items()}
        inside = rows
        for name, key in node.keys.items():
            inside = inside.where(_is_one_of(sql[name], key.type, [own[name]]))
        wrong = {name for name, other in added.items() if row[other] != own[name]}
        used = {name: share for name, share in shares.items() if name not in wrong}
        members = tuple(_read_members(inside, frames, node, names, used, at_most))
        found.append(LargeGroup(own, int(row[_ROWS]), members, frozenset(added) - wrong))
    return found


GROUPS_AT_MOST = 10
"""A row that is explained belongs to one group; a key that is not known completely may leave some more."""


def _read_members(
    rows: DataFrame,
    frames: Frames,
    node: Group,
    names: Sequence[str],
    shares: Mapping[str, Typed],
    at_most: int | None,
) -> Iterator[Member]:
    kinds = {name: node.rows.schema.columns[name] for name in names if name in node.rows.schema.columns}
    columns = [f"{_readable(quote_name(name), kind)} AS {quote_name(name)}" for name, kind in kinds.items()]
    places = {name: f"{_ROWS} {number}" for number, name in enumerate(shares)}
    amounts = [
        f"{_readable(frames.sql(share), share.type)} AS {quote_name(places[name])}" for name, share in shares.items()
    ]
    if not columns and not amounts:
        return
    chosen = rows.selectExpr(*columns, *amounts)
    if shares:
        numbers = [quote_name(places[name]) for name, share in shares.items() if is_number(share.type)]
        chosen = chosen.orderBy(*_descending(numbers, kinds))
    for row in (chosen if at_most is None else chosen.limit(at_most)).toLocalIterator():
        values = {name: _value(row[places[name]], share.type) for name, share in shares.items()}
        yield Member(
            {name: _value(row[name], kind) for name, kind in kinds.items()},
            {name: value for name, value in values.items() if name in node.values},
            {name: value for name, value in values.items() if name not in node.values},
        )


def _descending(numbers: Sequence[str], kinds: Mapping[str, Type]) -> list[Any]:
    from pyspark.sql import functions as F

    largest = (F.expr(f"abs({each})").desc_nulls_last() for each in numbers)
    return [*largest, *(F.expr(quote_name(name)).asc() for name in kinds)]


def _is_one_of(sql: str, kind: Type, allowed: Collection[Value]) -> str:
    tests = [f"{_readable(sql, kind)} <=> {_literal(value, kind)}" for value in allowed]
    return f"({' OR '.join(tests)})" if tests else "FALSE"


def _literal(value: Value, kind: Type) -> str:
    if isinstance(value, Day):
        return str(value.number)
    if isinstance(value, Moment):
        return f"{value.micros}L"
    return literal(value, kind)


def _readable(sql: str, kind: Type) -> str:
    """Days and times as numbers: Python supports no year after 9999."""
    if kind == DATE:
        return f"unix_date({sql})"
    return f"unix_micros({sql})" if kind == TIMESTAMP else sql


def _value(found: Any, kind: Type) -> Value:
    if found is None:
        return None
    if kind == DATE:
        return Day(found)
    return Moment(found) if kind == TIMESTAMP else as_value(found)
