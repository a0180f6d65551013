"""From relational nodes to DataFrames: one ``match``, one ``select`` per node, expressions as SQL text."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, assert_never

from dobonomodo.engine.context import RunContext
from dobonomodo.engine.joins import (
    JoinSize,
    MatchCounts,
    compute_all,
    count_matches,
    drops_unchecked,
    find_unmatched,
    join_lookup,
    join_match,
)
from dobonomodo.engine.loading import Loader, UniqueKeys, late_id, place_by_values
from dobonomodo.engine.needs import Needs
from dobonomodo.engine.query import Query
from dobonomodo.engine.reading import Reader
from dobonomodo.engine.requirement import require
from dobonomodo.engine.rowid import id_by_key
from dobonomodo.engine.tracking import Tracked, Tracking
from dobonomodo.engine.tree import read_ancestors
from dobonomodo.formula import Typed, columns_of
from dobonomodo.formula.sql import literal, quote_name
from dobonomodo.formula.types import TEXT
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.relation import (
    Ancestors,
    AssignIds,
    Derive,
    Expand,
    Group,
    Keep,
    Lookup,
    Match,
    Rel,
    Require,
    Reshape,
    Scan,
    Stack,
    Window,
    expressions_of,
    inputs_of,
    walk_relation,
)
from dobonomodo.plan.system import PLACE, ROW_ID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dobonomodo.plan.counts import UnmatchedKey
    from dobonomodo.problems.run import DataLoad

LEAVES = 16
"""Scans in a plan beyond which it is cut."""


class Frames:
    """The DataFrames of a plan's nodes, each made once."""

    def __init__(
        self,
        reader: Reader,
        run: RunContext,
        *,
        unique: UniqueKeys | None = None,
        needs: Needs | None = None,
        whole: frozenset[int] = frozenset(),
    ) -> None:
        """``needs`` are the columns that are read of nodes; without it, frames have all columns.

        ``whole`` are the lookups, by identity, of which an output computes every row.
        """
        self._reader, self._run, self._needs, self._whole = reader, run, needs or Needs(), whole
        self._unique = unique or UniqueKeys()
        self._loader = Loader(reader, run, self._unique, self._needs)
        self._tracking = Tracking(run)
        self._names: dict[int, tuple[str, ...]] = {}
        """The columns of frames, without hidden ones."""
        self._made: dict[int, tuple[Rel, Query]] = {}
        self._leaves: dict[int, int] = {}
        self._idless: dict[bool, Frames] = {}
        """Frames of rows without ids, by whether they have places."""
        self._ids_unread: dict[int, bool] = {}

    @property
    def loads_deleted(self) -> bool:
        """Whether rows of the input may be marked as deleted when they are loaded, as far as its frames exist."""
        return self._loader.loads_deleted or any(each.loads_deleted for each in self._idless.values())

    def make(self, node: Rel) -> DataFrame:
        """The frame of a node. Long chains are built bottom-up, to avoid deep recursion."""
        pending = [node]
        while pending:
            current = pending[-1]
            needed = () if self._can_skip_ids(current) else inputs_of(current)
            missing = [each for each in needed if id(each) not in self._made]
            if missing:
                pending.extend(missing)
                continue
            pending.pop()
            if id(current) not in self._made:
                self._made[id(current)] = (current, self._make(current))
        return self._frame(node)

    def with_all_columns(self) -> Frames:
        """The same frames with every column of their nodes, and nothing recorded."""
        return Frames(self._reader, self._run, whole=self._whole)

    def sql(self, expression: Typed) -> str:
        """An expression over the rows of a node, for the run."""
        return self._run.sql(expression)

    @property
    def facts(self) -> RunFacts:
        """The clock and period of the run."""
        return self._run.facts

    def track(self, start: Rel, tracked: Tracked) -> None:
        """Record in hidden columns which operations select a row and which joins match it; ``start`` is before the first operation."""
        self._tracking.prepare(tracked)
        self._made[id(start)] = (start, Query.of(self._tracking.start(start, self.make(start))))

    def trackers(self, node: Rel) -> list[str]:
        """The hidden columns of a node's frame that record operations."""
        return self._tracking.trackers(node)

    def make_with_ids(self, node: Rel, use: DatasetUse) -> DataFrame:
        """The frame of a node, with the row ids that are computed late; ``use`` is the input."""
        frame = self.make(node)
        is_read = ROW_ID in self._names_of(node)
        if not self._run.late_ids or not is_read or PLACE not in self._tracking.hidden(node):
            return frame
        kept = [quote_name(name) for name in (*self._names_of(node), *self.trackers(node)) if name != ROW_ID]
        return frame.selectExpr(*kept, f"{late_id(self._run, use)} AS {quote_name(ROW_ID)}")

    def find_unmatched(self, node: Lookup, *, at_most: int) -> tuple[UnmatchedKey, ...]:
        """The most frequent keys without a match, of a lookup whose matches are recorded. A separate job."""
        matched = self._tracking.is_matched(node)
        return find_unmatched(node, self.make(node), run=self._run, matched=matched, at_most=at_most)

    def count_matches(self, node: Lookup) -> MatchCounts:
        """How many rows of a lookup have a match. A separate job."""
        return count_matches(node, self.make(node), run=self._run, matched=self._tracking.is_matched(node))

    def explain_repeated(self, number: int) -> DataLoad:
        """The natural keys that occur more than once, if this stopped the job."""
        return self._unique.explain(number)

    def _query(self, node: Rel) -> Query:
        return self._made[id(node)][1]

    def _names_of(self, node: Rel) -> tuple[str, ...]:
        """The columns of a node's frame, without hidden ones: at least those that something reads."""
        return self._names[id(node)]

    def _frame(self, node: Rel) -> DataFrame:
        frame = self._query(node).make()
        self._made[id(node)] = (node, Query.of(frame))
        return frame

    def _make(self, node: Rel) -> Query:
        if isinstance(node, Scan):
            loaded = self._loader.load(node)
            made, has_place = loaded.rows, loaded.has_place
            self._names[id(node)] = loaded.names
        else:
            computed = self._compute(node)
            made, has_place = computed if isinstance(computed, Query) else Query.of(computed), self._run.places
            self._names.setdefault(id(node), tuple(self._needs.of(node)))
        self._tracking.note(node, has_place=has_place)
        values = self._tracking.keep_values(node)
        return made.select(["*", *values]) if values else made

    def _compute(
        self,
        node: Keep
        | Derive
        | Reshape
        | Lookup
        | Match
        | Window
        | Group
        | AssignIds
        | Stack
        | Require
        | Expand
        | Ancestors,
    ) -> DataFrame | Query:
        match node:
            case Keep():
                self._names[id(node)] = self._names_of(node.rows)
                is_whole = not drops_unchecked(node, self._whole)
                rows = self._query(node.rows) if is_whole else Query.of(compute_all(self._frame(node.rows)))
                return rows.where(self._run.sql(node.condition))
            case Expand():
                return self._expand(node)
            case Ancestors():
                self._names[id(node)] = tuple(node.schema.names)
                return read_ancestors(node, self._frame(node.rows))
            case Require():
                self._names[id(node)] = self._names_of(node.rows)
                return require(node, self._frame(node.rows), run=self._run)
            case Derive() | Reshape():
                return self._derive(node)
            case Match():
                return self._match(node)
            case Window():
                return self._window(node)
            case Lookup():
                return self._lookup(node)
            case Group():
                return self._group(node)
            case AssignIds():
                return self._assign_ids(node)
            case Stack():
                return self._stack(node)
            case _:
                assert_never(node)

    def _derive(self, node: Derive | Reshape) -> Query:
        selected = [
            f"{self._run.sql(node.values[name])} AS {quote_name(name)}" if name in node.values else quote_name(name)
            for name in self._needs.of(node)
        ]
        return self._query(node.rows).select([*selected, *self._tracking.carried(node)])

    def _window(self, node: Window) -> Query:
        made = self._needs.of_alias(node)
        values = [f"{self._run.sql(node.values[name])} AS {quote_name(f'{node.alias}.{name}')}" for name in made]
        self._names[id(node)] = (*self._names_of(node.rows), *(f"{node.alias}.{name}" for name in made))
        return self._query(node.rows).select(["*", *values])

    def _expand(self, node: Expand) -> DataFrame:
        self._names[id(node)] = (*self._names_of(node.rows), *node.choices[0])
        choices = [
            ", ".join(f"{self._run.sql(value)} AS {quote_name(name)}" for name, value in choice.items())
            for choice in node.choices
        ]
        structs = ", ".join(f"struct({each})" for each in choices)
        return self._frame(node.rows).selectExpr("*", f"inline(array({structs}))")

    def _lookup(self, node: Lookup) -> Query:
        hidden, size = partial(self._tracking.joined, node), partial(self._count_pairs, node)
        return join_lookup(
            node,
            self._query(node.rows),
            self._query(node.source),
            run=self._run,
            needs=self._needs,
            hidden=hidden,
            size=size,
        )

    def _match(self, node: Match) -> DataFrame:
        joined = (f"{node.alias}.{name}" for name in self._needs.of_alias(node))
        self._names[id(node)] = (*self._names_of(node.rows), *joined)
        return join_match(node, self._frame(node.rows), self._frame(node.source), run=self._run, needs=self._needs)

    def _count_pairs(self, node: Lookup) -> JoinSize:
        return JoinSize(self._count_stored(node.rows), self._count_stored(node.source))

    def _count_stored(self, node: Rel) -> int | None:
        """The number of stored rows that a node reads; None if unknown."""
        counts = [self._loader.count(each) for each in walk_relation(node) if isinstance(each, Scan)]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def _stack(self, node: Stack) -> DataFrame:
        rows, more, names = self._frame(node.rows), self._frame(node.more), self._needs.of(node)
        if self._tracking.is_marked(node) or set(names) != set(self._names_of(node.rows)):
            rows = rows.selectExpr(*map(quote_name, names), *self._tracking.carried(node))
        empty = self._tracking.missing(node)
        for alias, columns in node.schema.joined.items():
            empty |= {f"{alias}.{name}": literal(None, kind) for name, kind in columns.items()}
        added = [name for name in names if name in node.more.schema.columns]
        lacking = [name for name in empty if name in names or name not in node.schema.names]
        if lacking or set(added) != set(self._names_of(node.more)):
            kept = (*added, *self._tracking.hidden(node.more))
            filled = (f"{empty[name]} AS {quote_name(name)}" for name in lacking)
            more = more.selectExpr(*map(quote_name, kept), *filled)
        stacked = rows.unionByName(more)
        leaves = self._count_leaves(node)
        if self._run.cut is not None and leaves > LEAVES:
            stacked, leaves = self._run.cut.apply(stacked), 1
        self._leaves[id(node)] = leaves
        return stacked

    def _count_leaves(self, node: Rel) -> int:
        """The number of scans in a node's plan, repeated ones included."""
        found = self._leaves.get(id(node))
        if found is None:
            found = sum(self._count_leaves(each) for each in inputs_of(node)) or 1
            self._leaves[id(node)] = found
        return found

    def _group(self, node: Group) -> DataFrame:
        from pyspark.sql import functions as F

        read = set(self._needs.of(node))
        values = {name: value for name, value in node.values.items() if name in read}
        self._names[id(node)] = (*node.keys, *values)
        if self._can_skip_ids(node):
            places = any(isinstance(each, Window) and each.reads_places for each in walk_relation(node))
            if places not in self._idless:
                idless = replace(self._run, ids=False, late_ids=False, places=places)
                self._idless[places] = Frames(
                    self._reader, idless, unique=self._unique, needs=self._needs, whole=self._whole
                )
            return self._idless[places].make(node)
        keys = [F.expr(self._run.sql(key)).alias(name) for name, key in node.keys.items()]
        if not values:
            return self._frame(node.rows).select(*keys).distinct()
        made = [F.expr(self._run.sql(value)).alias(name) for name, value in values.items()]
        return self._frame(node.rows).groupBy(*keys).agg(*made)

    def _can_skip_ids(self, node: Rel) -> bool:
        """Whether rows are grouped and their ids are not read; Spark would compute the positions anyway.

        If plans are cut in memory, the cached rows serve both.
        """
        in_memory = self._run.cut is not None and self._run.cut.in_memory
        if not isinstance(node, Group) or not self._run.ids or in_memory:
            return False
        found = self._ids_unread.get(id(node))
        if found is None:
            below = walk_relation(node)
            read = (column for each in below for part in expressions_of(each) for column in columns_of(part))
            found = not any(column.name == ROW_ID for column in read)
            self._ids_unread[id(node)] = found
        return found

    def _assign_ids(self, node: AssignIds) -> DataFrame:
        frame = self._frame(node.rows)
        placed = PLACE in self._tracking.hidden(node.rows)
        if not self._run.ids and ROW_ID in node.rows.schema.columns and placed == self._run.places:
            self._names[id(node)] = self._names_of(node.rows)
            return frame
        keys = [quote_name(name) for name in node.by]
        sql = literal(None, TEXT)
        if self._run.ids:
            sql = id_by_key(self._run.seed, f"operation/{node.seq}", keys)
        names = self._needs.of(node)
        kept = [quote_name(name) for name in names if name != ROW_ID]
        if self._run.places:
            kept.append(quote_name(PLACE) if placed else place_by_values(keys))
        if ROW_ID in names:
            kept.append(f"{sql} AS {quote_name(ROW_ID)}")
        return frame.selectExpr(*kept)
