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
from dobonomodo.formula.types import DATE, TIMESTAMP
from dobonomodo.plan.relation import Group

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS = " rows"


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A row of a group."""

    values: Mapping[str, Value]
    amounts: Mapping[str, Value]
    """What it adds to each total."""


@dataclass(frozen=True, slots=True, eq=False)
class LargeGroup:
    """A group that Spark has computed."""

    values: Mapping[str, Value]
    """The keys and the results, by the names that they have in the node."""
    rows: int
    members: tuple[Member, ...]
    """The largest first; not necessarily all."""


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

    ``names`` are the columns that identify rows, ``shares`` what a row adds to each total; rows are sorted by the first
    share.
    """
    from pyspark.sql import functions as F

    rows = frames.make(node.rows)
    for name, allowed in keys.items():
        rows = rows.where(_is_one_of(frames.sql(node.keys[name]), node.keys[name].type, allowed))
    sql = {name: frames.sql(value) for name, value in node.keys.items()}
    values = [F.expr(frames.sql(value)).alias(name) for name, value in node.values.items()]
    grouped = rows.groupBy(*(F.expr(key).alias(name) for name, key in sql.items()))
    counted = grouped.agg(*values, F.expr("count(1)").alias(_ROWS))
    types = {**node.schema.columns}
    shown = [f"{_readable(quote_name(name), kind)} AS {quote_name(name)}" for name, kind in types.items()]
    found = []
    for row in counted.selectExpr(*shown, quote_name(_ROWS)).limit(GROUPS_AT_MOST).collect():
        own = {name: _value(row[name], kind) for name, kind in types.items()}
        inside = rows
        for name, key in node.keys.items():
            inside = inside.where(_is_one_of(sql[name], key.type, [own[name]]))
        members = tuple(_read_members(inside, frames, node, names, shares, at_most))
        found.append(LargeGroup(own, int(row[_ROWS]), members))
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
    amounts = [f"{frames.sql(share)} AS {quote_name(f'={name}')}" for name, share in shares.items()]
    if not columns and not amounts:
        return
    chosen = rows.selectExpr(*columns, *amounts)
    if shares:
        first = quote_name(f"={next(iter(shares))}")
        chosen = chosen.orderBy(*_descending(first, kinds))
    for row in (chosen if at_most is None else chosen.limit(at_most)).toLocalIterator():
        yield Member(
            {name: _value(row[name], kind) for name, kind in kinds.items()},
            {name: as_value(row[f"={name}"]) for name in shares},
        )


def _descending(first: str, kinds: Mapping[str, Type]) -> list[Any]:
    from pyspark.sql import functions as F

    return [F.expr(f"abs({first})").desc_nulls_last(), *(F.expr(quote_name(name)).asc() for name in kinds)]


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
