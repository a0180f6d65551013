"""Joins: a lookup, which finds at most one row or stops the job, and a match, which may multiply rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from dobonomodo.engine.context import RunContext
from dobonomodo.engine.needs import Needs
from dobonomodo.engine.query import Query
from dobonomodo.engine.ranges import COUNT, ROW, Keys, Line
from dobonomodo.engine.requirement import show_values
from dobonomodo.formula import Typed, columns_of, flat_name, render_column, render_formula
from dobonomodo.formula.compare import match_keys
from dobonomodo.formula.functions.signature import Argument
from dobonomodo.formula.sql import quote_name, quote_text
from dobonomodo.formula.typed import ColumnRef
from dobonomodo.plan import Plan
from dobonomodo.plan.condition import Condition, KeyPairs, Way, parts_of, take_apart
from dobonomodo.plan.counts import UnmatchedKey
from dobonomodo.plan.relation import Keep, Lookup, Match, Scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MATCHES = " matches"
CANDIDATE = "` candidate`"
MULTIPLE = "JOIN_MULTIPLE_MATCHES"
"""Marks the message by which a join with more than one match stops the job."""

_Hidden = Callable[[str], list[str]]
"""SQL for the columns of the rows beside those of their schema; it is given a condition that is true for rows with a match."""


FEW_CANDIDATES = 16
FEW_PAIRS = 2_000_000
"""Below these, comparing is faster than preparing the joined side for a search by range, which takes some small jobs."""


@dataclass(frozen=True, slots=True)
class JoinSize:
    """The numbers of stored rows of the two sides of a join, if known."""

    rows: int | None
    candidates: int | None

    @property
    def is_small(self) -> bool:
        """Whether each row may be compared with all candidates."""
        if self.candidates is None:
            return False
        few = self.rows is not None and self.rows * self.candidates <= FEW_PAIRS
        return few or self.candidates <= FEW_CANDIDATES


def join_lookup(
    node: Lookup,
    rows: Query,
    source: Query,
    *,
    run: RunContext,
    needs: Needs,
    hidden: _Hidden,
    size: Callable[[], JoinSize],
) -> Query:
    """A left join that raises an error inside the job if a participating row has more than one match."""
    condition, flat = take_apart(node), _flatten(node, source, needs)
    if condition.way is Way.KEY:
        return _join_by_key(node, rows, flat, condition=condition, run=run, names=needs.of(node), hidden=hidden)
    by_range = condition.way is Way.RANGE and not size().is_small
    join = _join_by_range if by_range else _join_by_search
    return Query.of(join(node, rows.make(), flat.make(), condition=condition, run=run, needs=needs, hidden=hidden))


def find_whole(plan: Plan) -> frozenset[int]:
    """The lookups, by identity, of which an output computes every row: those in front of the last one."""
    last = next((step for step in reversed(plan.steps) if step.lowered.write is not None), None)
    found: set[int] = set()
    node = last.before.node if last is not None else None
    while node is not None and not isinstance(node, Scan | Keep):
        if isinstance(node, Lookup):
            found.add(id(node))
        node = node.rows
    return frozenset(found)


def drops_unchecked(node: Keep, whole: frozenset[int]) -> bool:
    """Whether rows are dropped that take part in a lookup, and nothing else would find several matches of them (C-32)."""
    below = node.rows
    while not isinstance(below, Scan):
        if isinstance(below, Lookup) and id(below) not in whole and below.only != node.condition:
            return True
        below = below.rows
    return False


def compute_all(rows: DataFrame) -> DataFrame:
    """The same rows, all of which are computed before any is dropped: Spark moves no filter below an observation."""
    from pyspark.sql import functions as F

    return rows.observe(f"all {uuid4()}", F.expr("count(1)").alias("rows"))


def join_match(node: Match, rows: DataFrame, source: DataFrame, *, run: RunContext, needs: Needs) -> DataFrame:
    """An inner or left join. Conditions are evaluated only for participating rows, wherever the optimizer moves them."""
    from pyspark.sql import functions as F

    parts = take_apart(node)
    only = run.sql(node.only)
    equal = [f"{left} = {right}" for left, right in zip(*_key_sql(node, parts.keys, run), strict=True)]
    others = [f"CASE WHEN {only} THEN {run.sql(part)} END" for part in parts.rest]
    condition = " AND ".join([only, *equal, *others])
    flat = _flatten(node, Query.of(source), needs).make()
    if node.unmatched:
        return rows.where(only).join(flat, F.expr(condition), "left")
    return rows.join(flat, F.expr(condition), "inner")


def _join_by_key(
    node: Lookup,
    rows: Query,
    source: Query,
    *,
    condition: Condition,
    run: RunContext,
    names: Sequence[str],
    hidden: _Hidden,
) -> Query:
    """Join by equality: a window counts the occurrences of each key on the joined side, in the shuffle that the join needs anyway."""
    outer, inner = _key_sql(node, condition.keys, run)
    matches = quote_name(MATCHES)
    for each in _sides_of_source(condition):
        source = source.where(run.sql(each))
    counted = source.select(["*", f"count(1) OVER (PARTITION BY {', '.join(inner)}) AS {matches}"])
    equal = [f"{left} = {right}" for left, right in zip(outer, inner, strict=True)]
    shown = [(run.sql(left), _key_name(left, right)) for left, right in condition.keys]
    return rows.left_join(
        counted,
        on=" AND ".join([_takes_part(node, condition, run), *equal]),
        where=f"CASE WHEN {matches} > 1 THEN {_raise(node, matches, shown)} ELSE TRUE END",
        columns=[*map(quote_name, names), *hidden(f"{matches} IS NOT NULL")],
    )


def _join_by_range(
    node: Lookup,
    rows: DataFrame,
    source: DataFrame,
    *,
    condition: Condition,
    run: RunContext,
    needs: Needs,
    hidden: _Hidden,
) -> DataFrame:
    """Join a point to a range: the ranges of a key are cut into disjoint pieces, and each piece knows how many ranges cover it."""
    if condition.range is None:
        raise AssertionError("the condition has no range")
    joined = Line(condition.range, run).join(
        rows,
        _keep_side(source, condition, run),
        Keys(*_key_sql(node, condition.keys, run)),
        only=_takes_part(node, condition, run),
        fields=_fields(node, needs),
    )
    shown = [(run.sql(each), flat_name(each)) for each in key_columns(node)]
    check = f"CASE WHEN {COUNT} > 1 THEN {_raise(node, COUNT, shown)} ELSE TRUE END"
    kept = _kept_of_rows(node, needs)
    return joined.where(check).selectExpr(*kept, *hidden(f"{COUNT} IS NOT NULL"), *_values(node, needs, ROW))


def _join_by_search(
    node: Lookup,
    rows: DataFrame,
    source: DataFrame,
    *,
    condition: Condition,
    run: RunContext,
    needs: Needs,
    hidden: _Hidden,
) -> DataFrame:
    """Join by other conditions: the candidates of a key are collected into one array, in which each row searches for its match."""
    from pyspark.sql import functions as F

    keys = condition.keys
    candidates = quote_name(" candidates")
    key_names = [f" key{number}" for number in range(len(keys))]
    outer, inner = _key_sql(node, keys, run)
    keyed = [F.expr(right).alias(name) for name, right in zip(key_names, inner, strict=True)]
    listed = source.groupBy(*keyed).agg(F.expr(f"collect_list(struct({_fields(node, needs)}))").alias(" candidates"))
    equal = [f"{left} = {quote_name(name)}" for name, left in zip(key_names, outer, strict=True)]
    joined = rows.join(listed, F.expr(" AND ".join([run.sql(node.only), *equal])), "left")
    test = " AND ".join(_candidate_sql(part, node.alias, run) for part in condition.rest)
    found = quote_name(" found")
    narrowed = joined.selectExpr("*", f"filter({candidates}, {CANDIDATE} -> {test}) AS {found}")
    shown = [(run.sql(each), flat_name(each)) for each in key_columns(node)]
    check = f"CASE WHEN size({found}) > 1 THEN {_raise(node, f'size({found})', shown)} ELSE TRUE END"
    kept, values = _kept_of_rows(node, needs), _values(node, needs, f"try_element_at({found}, 1)")
    return narrowed.where(check).selectExpr(*kept, *hidden(f"size({found}) > 0"), *values)


def _keep_side(source: DataFrame, condition: Condition, run: RunContext) -> DataFrame:
    """The joined rows for which the conditions over them alone are true."""
    for each in _sides_of_source(condition):
        source = source.where(run.sql(each))
    return source


def _sides_of_source(condition: Condition) -> Sequence[Typed]:
    return condition.sides.of_source if condition.sides is not None else ()


def _takes_part(node: Lookup, condition: Condition, run: RunContext) -> str:
    """SQL for the rows that can have a match: participating rows for which the conditions over them alone are true."""
    own = condition.sides.of_rows if condition.sides is not None else ()
    return " AND ".join(map(run.sql, (node.only, *own)))


def _kept_of_rows(node: Lookup, needs: Needs) -> list[str]:
    """The columns that rows keep beside the joined ones."""
    before = set(node.rows.schema.names)
    return [quote_name(name) for name in needs.of(node) if name in before]


def _fields(node: Lookup, needs: Needs) -> str:
    """The joined columns as fields of a struct."""
    names = needs.of_alias(node)
    return ", ".join(f"{quote_name(f'{node.alias}.{name}')} AS {quote_name(name)}" for name in names)


def _values(node: Lookup, needs: Needs, struct: str) -> list[str]:
    """The joined columns from such a struct."""
    names = needs.of_alias(node)
    return [f"{struct}.{quote_name(name)} AS {quote_name(f'{node.alias}.{name}')}" for name in names]


def find_unmatched(
    node: Lookup, joined: DataFrame, *, run: RunContext, matched: str, at_most: int
) -> tuple[UnmatchedKey, ...]:
    """The keys of participating rows without a match, the most frequent first; ``joined`` is the frame of the join."""
    from pyspark.sql import functions as F

    keys = [F.expr(f"CAST({run.sql(each)} AS STRING)").alias(f"k{at}") for at, each in enumerate(key_columns(node))]
    names = [f"k{at}" for at in range(len(keys))]
    without = joined.where(f"{run.sql(node.only)} AND NOT coalesce({matched}, FALSE)")
    counted = without.groupBy(*keys).agg(F.expr("count(1)").alias("rows"))
    found = counted.orderBy(F.desc("rows"), *names).limit(at_most).collect()
    return tuple(UnmatchedKey(tuple(row[name] for name in names), row["rows"]) for row in found)


@dataclass(frozen=True, slots=True)
class MatchCounts:
    """The number of rows that took part in a join, and how many of them have a match."""

    rows: int
    matched: int


def count_matches(node: Lookup, joined: DataFrame, *, run: RunContext, matched: str) -> MatchCounts:
    """The counts of a join; ``joined`` is its frame."""
    found = joined.where(run.sql(node.only)).selectExpr("count(1)", f"count_if({matched})").first()
    return MatchCounts(*found) if found is not None else MatchCounts(0, 0)


def key_columns(node: Lookup) -> list[ColumnRef]:
    """The columns of the rows that the conditions of a join use."""
    used = (each for part in parts_of(node.on) for each in columns_of(part) if each.qualifier != node.alias)
    return list(dict.fromkeys(used))


def _key_sql(node: Lookup | Match, keys: KeyPairs, run: RunContext) -> tuple[list[str], list[str]]:
    """The keys of the rows and those of the source.

    The former are computed only for participating rows: Spark computes join keys before it tests ``only``.
    """
    only = run.sql(node.only)
    pairs = [match_keys(Argument(run.sql(one), one), Argument(run.sql(other), other)) for one, other in keys]
    outer = [
        sql if isinstance(key, ColumnRef) else f"CASE WHEN {only} THEN {sql} END"
        for (key, _), (sql, _) in zip(keys, pairs, strict=True)
    ]
    return outer, [sql for _, sql in pairs]


def _candidate_sql(part: Typed, alias: str, run: RunContext) -> str:
    """A condition in which the joined columns are fields of the candidate."""

    def column(each: ColumnRef) -> str:
        return f"{CANDIDATE}.{quote_name(each.name)}" if each.qualifier == alias else render_column(each)

    return render_formula(part, run.facts, column=column)


def _flatten(node: Lookup | Match, source: Query, needs: Needs) -> Query:
    """The joined rows with their columns as ``alias.column``."""
    names = needs.of_alias(node)
    return source.select([f"{quote_name(name)} AS {quote_name(f'{node.alias}.{name}')}" for name in names])


def _raise(node: Lookup, count: str, shown: list[tuple[str, str]]) -> str:
    """An error that names alias, count and key values; it becomes JOIN_MULTIPLE_MATCHES."""
    head = quote_text(f"{MULTIPLE}|{_seq_of(node)}|{node.alias}|")
    return f"CAST(raise_error(concat({head}, CAST({count} AS STRING), '|', {show_values(shown)})) AS BOOLEAN)"


def _key_name(left: Typed, right: Typed) -> str:
    """What a key is called in a message: the joined column if it is one."""
    return next((flat_name(side) for side in (left, right) if isinstance(side, ColumnRef)), "key")


def _seq_of(node: Lookup) -> int:
    """The operation that a join belongs to; 0 for a lookup of the input."""
    source = node.source.rows if isinstance(node.source, Keep) else node.source
    return source.use.seq or 0 if isinstance(source, Scan) else 0
