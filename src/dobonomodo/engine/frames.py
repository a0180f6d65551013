"""From relational nodes to DataFrames: one ``match``, one ``select`` per node, expressions as SQL text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import reduce
from typing import TYPE_CHECKING, assert_never

from dobonomodo.engine.reading import ROW_NUMBER, Reader, StoredRows
from dobonomodo.engine.rowid import IdSeed, id_by_key, id_by_place
from dobonomodo.formula import RunFacts, Typed, columns_of, flat_name, render_column, render_formula
from dobonomodo.formula.compare import match_keys
from dobonomodo.formula.functions.signature import Argument
from dobonomodo.formula.sql import literal, quote_name, quote_text
from dobonomodo.formula.typed import ColumnRef, Operation
from dobonomodo.formula.types import DATE, TEXT, TIMESTAMP, Type
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.plan.relation import (
    AssignIds,
    Derive,
    Group,
    Keep,
    Lookup,
    Match,
    Rel,
    Reshape,
    Scan,
    Stack,
    Window,
    expressions_of,
    inputs_of,
    walk_relation,
)
from dobonomodo.plan.system import (
    CREATED_AT,
    DELETED,
    LABELS,
    OPERATION_SEQ,
    PERIOD,
    PERIOD_FROM,
    PERIOD_TO,
    ROW_ID,
    SOURCE_DATASET,
    SOURCE_TABLE,
    UPDATED_AT,
    VALIDITY,
)
from dobonomodo.problems import RunFailed
from dobonomodo.problems.problem import LISTED_AT_MOST
from dobonomodo.problems.run import AppendDataLoad, DataLoad

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MATCHES = " matches"
CANDIDATE = "` candidate`"
MULTIPLE = "JOIN_MULTIPLE_MATCHES"
"""Marks the message by which a join with more than one match stops the job."""
REPEATED = "NATURAL_KEY_REPEATED"
"""Marks the message by which a natural key that is not unique stops the job."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """What frames depend on beside the plan."""

    facts: RunFacts
    seed: IdSeed
    as_of: date | None
    """The day on which bitemporal rows must be valid, where the run itself names one."""
    ids: bool = True
    """Whether anything asks for row ids; they cost something."""
    late_ids: bool = False
    """Whether only outputs do: then loaded rows carry a number, which is made into an id where it is written."""
    joined_ids: bool = True
    """Whether a formula asks for the row id of a joined row."""
    cut: bool = False
    """Whether plans with many leaves are cut, which holds rows in memory and pays off for little data."""


LEAVES = 16
"""Scans in a plan beyond which it is cut."""

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
        """Where it is remembered."""
        return tracker(self.number)

    @property
    def bit(self) -> int:
        """By which bit; the first is for rows that were active when they were loaded."""
        return 1 << (self.number % BITS + 1)

    def sql(self, condition: str) -> str:
        """The hidden column after the operation."""
        name = quote_name(self.column)
        return f"CASE WHEN {condition} THEN {name} | {self.bit}L ELSE {name} END"


class Frames:
    """The DataFrames of a plan's nodes, each made once."""

    def __init__(self, spark: SparkSession, reader: Reader, run: RunContext) -> None:
        self._spark = spark
        self._reader = reader
        self._run = run
        self._made: dict[int, tuple[Rel, DataFrame]] = {}
        self._marks: dict[int, Mark] = {}
        self._hidden: dict[int, tuple[str, ...]] = {}
        self._leaves: dict[int, int] = {}
        self._idless: Frames | None = None
        self._ids_unread: dict[int, bool] = {}
        self._keyed: list[tuple[DatasetUse, DataFrame]] = []

    def make(self, node: Rel) -> DataFrame:
        """The frame of a node. Long chains are made from the bottom up, so that they need no deep recursion."""
        pending = [node]
        while pending:
            current = pending[-1]
            needed = () if self._goes_without_ids(current) else inputs_of(current)
            missing = [each for each in needed if id(each) not in self._made]
            if missing:
                pending.extend(missing)
                continue
            pending.pop()
            if id(current) not in self._made:
                self._made[id(current)] = (current, self._make(current))
                self._hidden.setdefault(id(current), self._find_hidden(current))
        return self._made[id(node)][1]

    @property
    def facts(self) -> RunFacts:
        """The clock and period of the run."""
        return self._run.facts

    def track(self, start: Rel, marks: Mapping[int, Mark]) -> None:
        """From ``start`` on, remember in hidden columns which operations select a row; ``marks`` are by node."""
        self._marks = dict(marks)
        hidden = sorted({mark.column for mark in marks.values()} | {tracker(0)})
        first = f"CASE WHEN {quote_name(DELETED)} THEN 0L ELSE 1L END AS {quote_name(tracker(0))}"
        others = [f"0L AS {quote_name(name)}" for name in hidden if name != tracker(0)]
        self._made[id(start)] = (start, self.make(start).selectExpr("*", first, *others))
        self._hidden[id(start)] += tuple(hidden)

    def trackers(self, node: Rel) -> list[str]:
        """The hidden columns of a node's frame that remember operations."""
        return [name for name in self._hidden[id(node)] if name != PLACE]

    def _find_hidden(self, node: Rel) -> tuple[str, ...]:
        """The hidden columns of a node's frame; asking the frame itself takes Spark some milliseconds each time."""
        match node:
            case Scan() | Group() | AssignIds():
                return ()
            case _:
                return self._hidden[id(node.rows)]

    def _frame(self, node: Rel) -> DataFrame:
        return self._made[id(node)][1]

    def _make(self, node: Rel) -> DataFrame:
        match node:
            case Scan():
                return self._scan(node)
            case Keep():
                return self._frame(node.rows).where(self._sql(node.condition))
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

    def _sql(self, expression: Typed) -> str:
        return render_formula(expression, self._run.facts)

    # --- reading

    def _scan(self, node: Scan) -> DataFrame:
        stored = self._reader.read(node.use)
        parts = [self._load(node, rows) for rows in stored]
        frame = reduce(lambda one, other: one.unionByName(other), parts)
        if not self._asks_for_ids(node.use) or all(rows.has_positions for rows in stored):
            return frame
        return self._tell_apart(frame, node)

    def _load(self, node: Scan, rows: StoredRows) -> DataFrame:
        """The rows of one location that belong to the run, with every system column in place."""
        use, frame = node.use, rows.frame
        if rows.positioned is not None and self._asks_for_ids(use):
            frame = rows.positioned()
        present = {name.casefold(): name for name in frame.columns}
        self._require_time(use, rows, present)
        for condition in self._belongs(use, rows, present):
            frame = frame.where(condition)
        selected = []
        for name, kind in node.schema.own.items():
            sql = (
                quote_name(present[name.casefold()])
                if name in use.columns
                else self._system(name, kind, use, rows, present)
            )
            selected.append(f"{sql} AS {quote_name(name)}")
        if self._is_late(use) and ROW_NUMBER in present:
            selected.append(f"{quote_name(ROW_NUMBER)} AS {quote_name(PLACE)}")
            self._hidden[id(node)] = (PLACE,)
        return frame.selectExpr(*selected)

    def _asks_for_ids(self, use: DatasetUse) -> bool:
        return self._run.joined_ids if use.role in ("join", "lookup") else self._run.ids

    def _is_late(self, use: DatasetUse) -> bool:
        return self._run.late_ids and use.role == "input"

    def _belongs(self, use: DatasetUse, rows: StoredRows, present: Mapping[str, str]) -> Iterable[str]:
        """The conditions that pick the run's period, by the dataset's own temporal mode (R-104)."""
        if use.temporal_mode == "period" and PERIOD in present:
            periods = dict.fromkeys([self._run.facts.period, *(each.period for each in use.locations if each.period)])
            listed = ", ".join(quote_text(period) for period in periods)
            yield f"{quote_name(present[PERIOD])} IN ({listed})"
        if use.temporal_mode == "bitemporal":
            start, end = _interval(present)
            as_of = literal(use.valid_on(self._run.facts, self._run.as_of), DATE)
            yield f"CAST({quote_name(start)} AS DATE) <= {as_of}"
            yield f"({quote_name(end)} IS NULL OR CAST({quote_name(end)} AS DATE) > {as_of})"

    def _require_time(self, use: DatasetUse, rows: StoredRows, present: Mapping[str, str]) -> None:
        """A period dataset needs periods, a bitemporal one needs dates (C-59)."""
        detail = None
        if use.temporal_mode == "period" and PERIOD not in present and rows.period is None:
            detail = "its rows have no column `_period`, and its temporal mode is period"
        if use.temporal_mode == "bitemporal" and _interval_or_none(present) is None:
            detail = "its rows have no `_period_from` and `_period_to`, nor `valid_from` and `valid_to`"
        if detail is not None:
            kind = AppendDataLoad if use.role == "append" else DataLoad
            raise RunFailed(kind(dataset_id=use.dataset_id, detail=detail, operation=use.operation))

    def _system(self, name: str, kind: Type, use: DatasetUse, rows: StoredRows, present: Mapping[str, str]) -> str:
        """A system column: as stored where it is, else what a loaded row starts with."""
        clock = literal(self._run.facts.started_at, TIMESTAMP)
        starts: dict[str, str] = {
            DELETED: "FALSE",
            CREATED_AT: clock,
            UPDATED_AT: clock,
            SOURCE_DATASET: quote_text(use.dataset_id),
            SOURCE_TABLE: quote_text(use.table),
            LABELS: "''",
        }
        synonyms = {UPDATED_AT: "_modified_at", SOURCE_DATASET: "_source_dataset"}
        stored = present.get(name) or present.get(synonyms.get(name, ""))
        if name == OPERATION_SEQ:
            return literal(0, kind)
        if name == ROW_ID:
            made = self._loaded_id(use, present)
            return f"coalesce({quote_name(stored)}, {made})" if stored and use.role != "append" else made
        if name == PERIOD:
            given = literal(rows.period if use.temporal_mode == "period" else None, TEXT)
            return f"CAST({quote_name(stored)} AS STRING)" if stored else given
        if name in (PERIOD_FROM, PERIOD_TO):
            if use.temporal_mode == "bitemporal":
                stored = _interval(present)[0 if name == PERIOD_FROM else 1]
            return f"CAST({quote_name(stored)} AS DATE)" if stored else literal(None, DATE)
        if stored is None:
            return starts[name]
        return f"coalesce(CAST({quote_name(stored)} AS {kind.sql}), {starts[name]})"

    def _loaded_id(self, use: DatasetUse, present: Mapping[str, str]) -> str:
        """SQL for the id of a row by its position (C-85); NULL where nobody asks, or where it is made later."""
        if not self._asks_for_ids(use) or self._is_late(use) or ROW_NUMBER not in present:
            return literal(None, TEXT)
        return id_by_place(self._run.seed, _loading(use), quote_name(ROW_NUMBER))

    def _tell_apart(self, frame: DataFrame, node: Scan) -> DataFrame:
        """Rows without positions with ids by their natural key, which must be unique, or by all that is in them (C-85)."""
        others = [quote_name(name) for name in node.schema.own if name != ROW_ID]
        keys = [quote_name(node.use.columns.spelling(name) or name) for name in node.use.natural_key]
        if keys:
            frame = self._require_unique(frame, node.use, keys)
        else:
            # Rows that are the same in everything: which of them comes first makes no difference.
            alike, ordinal = quote_name(" alike"), quote_name(" ordinal")
            hashed = frame.selectExpr("*", f"{id_by_key(self._run.seed, 'alike', others)} AS {alike}")
            frame = hashed.selectExpr("*", f"row_number() OVER (PARTITION BY {alike} ORDER BY {alike}) AS {ordinal}")
            keys = [alike, ordinal]
        made = id_by_key(self._run.seed, _loading(node.use), keys)
        return frame.selectExpr(*others, f"coalesce({quote_name(ROW_ID)}, {made}) AS {quote_name(ROW_ID)}")

    def _require_unique(self, frame: DataFrame, use: DatasetUse, keys: list[str]) -> DataFrame:
        """The same rows; the job stops, within the job, where two have the same key."""
        repeated = quote_name(" repeated")
        head = quote_text(f"{REPEATED}|{len(self._keyed)}|")
        self._keyed.append((use, frame))
        counted = frame.selectExpr("*", f"count(1) OVER (PARTITION BY {', '.join(keys)}) AS {repeated}")
        return counted.where(f"CASE WHEN {repeated} > 1 THEN CAST(raise_error({head}) AS BOOLEAN) ELSE TRUE END")

    def explain_repeated(self, number: int) -> DataLoad:
        """Which natural keys are there more than once. A look that only a failed run takes."""
        from pyspark.sql import functions as F

        use, frame = self._keyed[number]
        names = [use.columns.spelling(name) or name for name in use.natural_key]
        keys = [quote_name(name) for name in names]
        counted = frame.groupBy(*keys).agg(F.expr("count(1)").alias(MATCHES)).where(f"{quote_name(MATCHES)} > 1")
        shown = [
            ", ".join(f"{name} = {'NULL' if row[name] is None else row[name]}" for name in names)
            + f" ({row[MATCHES]} rows)"
            for row in counted.orderBy(*keys).limit(LISTED_AT_MOST).collect()
        ]
        kind = AppendDataLoad if use.role == "append" else DataLoad
        detail = "its rows have no positions, so its natural key must be unique, and it is not"
        return kind(dataset_id=use.dataset_id, detail=detail, differences=tuple(shown), operation=use.operation)

    def make_with_ids(self, node: Rel, use: DatasetUse) -> DataFrame:
        """The frame of a node, with the ids that are made late; ``use`` is the input."""
        frame = self.make(node)
        if PLACE not in self._hidden[id(node)]:
            return frame
        kept = [quote_name(name) for name in (*node.schema.names, *self.trackers(node)) if name != ROW_ID]
        made = id_by_place(self._run.seed, _loading(use), quote_name(PLACE))
        return frame.selectExpr(*kept, f"coalesce({quote_name(ROW_ID)}, {made}) AS {quote_name(ROW_ID)}")

    # --- computing

    def _derive(self, node: Derive | Reshape) -> DataFrame:
        values = {name: f"{self._sql(value)} AS {quote_name(name)}" for name, value in node.values.items()}
        selected = [values.get(name) or quote_name(name) for name in node.schema.names]
        return self._frame(node.rows).selectExpr(*selected, *self._carried(node))

    def _window(self, node: Window) -> DataFrame:
        values = [f"{over.render(self._sql)} AS {quote_name(name)}" for name, over in node.values.items()]
        return self._frame(node.rows).selectExpr("*", *values)

    def _carried(self, node: Derive | Reshape | Stack) -> list[str]:
        """The hidden columns of the rows below, as they are after a node."""
        mark = self._marks.get(id(node))
        return [
            f"{mark.sql(self._sql(mark.selected))} AS {quote_name(name)}"
            if mark is not None and mark.column == name
            else quote_name(name)
            for name in self._hidden[id(node.rows)]
        ]

    def _stack(self, node: Stack) -> DataFrame:
        rows, more = self._frame(node.rows), self._frame(node.more)
        if id(node) in self._marks:
            shown = [quote_name(name) for name in node.rows.schema.names]
            rows = rows.selectExpr(*shown, *self._carried(node))
        missing = [name for name in self._hidden[id(node.rows)] if name not in self._hidden[id(node.more)]]
        empty = {name: "CAST(NULL AS BIGINT)" if name == PLACE else "0L" for name in missing}
        for alias, columns in node.schema.joined.items():
            empty |= {f"{alias}.{name}": literal(None, kind) for name, kind in columns.items()}
        if empty:
            more = more.selectExpr("*", *(f"{value} AS {quote_name(name)}" for name, value in empty.items()))
        stacked = rows.unionByName(more)
        leaves = self._count_leaves(node)
        if self._run.cut and leaves > LEAVES:
            # Each aggregate doubles the plan, and Spark takes longer to think about it than to compute it. What is cut off
            # is computed once, by the first job that needs it.
            stacked = stacked.localCheckpoint(eager=False)
            leaves = 1
        self._leaves[id(node)] = leaves
        return stacked

    def _count_leaves(self, node: Rel) -> int:
        """How many scans a node's plan has, those counted again that stand in it more than once."""
        found = self._leaves.get(id(node))
        if found is None:
            found = sum(self._count_leaves(each) for each in inputs_of(node)) or 1
            self._leaves[id(node)] = found
        return found

    def _group(self, node: Group) -> DataFrame:
        from pyspark.sql import functions as F

        if self._goes_without_ids(node):
            idless = replace(self._run, ids=False, late_ids=False)
            self._idless = self._idless or Frames(self._spark, self._reader, idless)
            return self._idless.make(node)
        keys = [F.expr(self._sql(key)).alias(name) for name, key in node.keys.items()]
        values = [F.expr(self._sql(value)).alias(name) for name, value in node.values.items()]
        return self._frame(node.rows).groupBy(*keys).agg(*values)

    def _goes_without_ids(self, node: Rel) -> bool:
        """Whether rows are grouped and nobody looks at their ids; Spark would compute the positions all the same.

        Where plans are cut, rows that are held in memory serve both.
        """
        if not isinstance(node, Group) or not self._run.ids or self._run.cut:
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
        if not self._run.ids and ROW_ID in node.rows.schema.own:
            return frame
        sql = literal(None, TEXT)
        if self._run.ids:
            sql = id_by_key(self._run.seed, f"operation/{node.seq}", [quote_name(name) for name in node.by])
        kept = [quote_name(name) for name in node.rows.schema.names if name != ROW_ID]
        return frame.selectExpr(*kept, f"{sql} AS {quote_name(ROW_ID)}")

    # --- joining

    def _lookup(self, node: Lookup) -> DataFrame:
        """A left join that stops the job, within the job, when a row that takes part has more than one match."""
        keys, rest = _split(node)
        if keys and not rest:
            return self._join_by_key(node, keys)
        return self._join_by_search(node, keys, rest)

    def _match(self, node: Match) -> DataFrame:
        """An inner join. Conditions are computed for the rows that take part alone, wherever Spark moves them."""
        from pyspark.sql import functions as F

        keys, rest = _split(node)
        only = self._sql(node.only)
        equal = [f"{left} = {right}" for left, right in zip(*self._keys(node, keys), strict=True)]
        others = [f"CASE WHEN {only} THEN {self._sql(part)} END" for part in rest]
        condition = " AND ".join([only, *equal, *others])
        return self._frame(node.rows).join(self._flat_source(node), F.expr(condition), "inner")

    def _join_by_key(self, node: Lookup, keys: list[tuple[Typed, Typed]]) -> DataFrame:
        """Equalities only: how often a key occurs is counted beside the joined rows, where it sorts or hashes anyway."""
        from pyspark.sql import functions as F

        source = self._flat_source(node)
        outer, inner = self._keys(node, keys)
        counted = source.selectExpr("*", f"count(1) OVER (PARTITION BY {', '.join(inner)}) AS {quote_name(MATCHES)}")
        equal = [f"{left} = {right}" for left, right in zip(outer, inner, strict=True)]
        condition = " AND ".join([self._sql(node.only), *equal])
        joined = self._frame(node.rows).join(counted, F.expr(condition), "left")
        shown = [(self._sql(left), f"{_names(left, right)}") for left, right in keys]
        check = (
            f"CASE WHEN {quote_name(MATCHES)} > 1 THEN {self._raise(node, quote_name(MATCHES), shown)} ELSE TRUE END"
        )
        return joined.where(check).drop(MATCHES)

    def _join_by_search(self, node: Lookup, keys: list[tuple[Typed, Typed]], rest: list[Typed]) -> DataFrame:
        """Other conditions: the candidates of a key come as one list, in which each row looks for its match."""
        from pyspark.sql import functions as F

        source = self._flat_source(node)
        columns = list(node.schema.joined[node.alias])
        fields = ", ".join(f"{quote_name(f'{node.alias}.{name}')} AS {quote_name(name)}" for name in columns)
        candidates = quote_name(" candidates")
        key_names = [f" key{number}" for number in range(len(keys))]
        outer, inner = self._keys(node, keys)
        keyed = [F.expr(right).alias(name) for name, right in zip(key_names, inner, strict=True)]
        listed = source.groupBy(*keyed).agg(F.expr(f"collect_list(struct({fields}))").alias(" candidates"))
        equal = [f"{left} = {quote_name(name)}" for name, left in zip(key_names, outer, strict=True)]
        condition = " AND ".join([self._sql(node.only), *equal])
        joined = self._frame(node.rows).join(listed, F.expr(condition), "left")
        test = " AND ".join(self._candidate_sql(part, node.alias) for part in rest)
        found = quote_name(" found")
        own = [quote_name(name) for name in (*node.rows.schema.names, *self._hidden[id(node.rows)])]
        narrowed = joined.selectExpr(*own, f"filter({candidates}, {CANDIDATE} -> {test}) AS {found}")
        used = list(
            dict.fromkeys(each for part in _parts(node.on) for each in columns_of(part) if each.qualifier != node.alias)
        )
        shown = [(self._sql(each), flat_name(each)) for each in used]
        check = f"CASE WHEN size({found}) > 1 THEN {self._raise(node, f'size({found})', shown)} ELSE TRUE END"
        values = [
            f"try_element_at({found}, 1).{quote_name(name)} AS {quote_name(f'{node.alias}.{name}')}" for name in columns
        ]
        return narrowed.where(check).selectExpr(*own, *values)

    def _keys(self, node: Lookup | Match, keys: list[tuple[Typed, Typed]]) -> tuple[list[str], list[str]]:
        """The keys of the rows and those of the source.

        The former are computed for the rows that take part alone: Spark computes join keys before it looks at ``only``.
        """
        only = self._sql(node.only)
        pairs = [match_keys(Argument(self._sql(one), one), Argument(self._sql(other), other)) for one, other in keys]
        outer = [
            sql if isinstance(key, ColumnRef) else f"CASE WHEN {only} THEN {sql} END"
            for (key, _), (sql, _) in zip(keys, pairs, strict=True)
        ]
        return outer, [sql for _, sql in pairs]

    def _candidate_sql(self, part: Typed, alias: str) -> str:
        """A condition in which the joined columns are fields of the candidate."""

        def column(each: ColumnRef) -> str:
            return f"{CANDIDATE}.{quote_name(each.name)}" if each.qualifier == alias else render_column(each)

        return render_formula(part, self._run.facts, column=column)

    def _flat_source(self, node: Lookup | Match) -> DataFrame:
        columns = node.schema.joined[node.alias]
        return self._frame(node.source).selectExpr(
            *(f"{quote_name(name)} AS {quote_name(f'{node.alias}.{name}')}" for name in columns)
        )

    def _raise(self, node: Lookup, count: str, shown: list[tuple[str, str]]) -> str:
        """An error that names alias, count and key values; it becomes JOIN_MULTIPLE_MATCHES."""
        pairs = ", ', ', ".join(
            f"{quote_text(f'{name} = ')}, coalesce(CAST({sql} AS STRING), 'NULL')" for sql, name in shown
        )
        keys = f"concat({pairs})" if pairs else "''"
        head = quote_text(f"{MULTIPLE}|{_seq_of(node)}|{node.alias}|")
        return f"CAST(raise_error(concat({head}, CAST({count} AS STRING), '|', {keys})) AS BOOLEAN)"


def _loading(use: DatasetUse) -> str:
    """What the ids of loaded rows depend on beside the run."""
    return f"load/{use.role}/{use.dataset_id}/{use.table}"


def _parts(on: Typed) -> list[Typed]:
    """The conditions that are joined by AND at the top."""
    if isinstance(on, Operation) and on.operator == "AND":
        return [part for operand in on.operands for part in _parts(operand)]
    return [on]


def _split(node: Lookup | Match) -> tuple[list[tuple[Typed, Typed]], list[Typed]]:
    """The conditions of a join: the two sides of each equality, and the other ones."""
    found = [(part, _equality(part, node.alias)) for part in _parts(node.on)]
    return [pair for _, pair in found if pair is not None], [part for part, pair in found if pair is None]


def _equality(part: Typed, alias: str) -> tuple[Typed, Typed] | None:
    """The two sides of ``mine = theirs``, the joined one second; None for any other condition."""
    if not isinstance(part, Operation) or part.operator != "=":
        return None
    left, right = part.operands
    sides = [{column.qualifier == alias for column in columns_of(side)} for side in (left, right)]
    if sides == [{False}, {True}]:
        return left, right
    return (right, left) if sides == [{True}, {False}] else None


def _names(left: Typed, right: Typed) -> str:
    """What a key is called in a message: the joined column if it is one."""
    return next((flat_name(side) for side in (left, right) if isinstance(side, ColumnRef)), "key")


def _seq_of(node: Lookup) -> int:
    """The operation that a join belongs to; 0 for a lookup of the input."""
    source = node.source.rows if isinstance(node.source, Keep) else node.source
    return source.use.seq or 0 if isinstance(source, Scan) else 0


def _interval_or_none(present: Mapping[str, str]) -> tuple[str, str] | None:
    for start, end in VALIDITY:
        if start in present and end in present:
            return present[start], present[end]
    return None


def _interval(present: Mapping[str, str]) -> tuple[str, str]:
    found = _interval_or_none(present)
    if found is None:
        raise AssertionError("checked before")
    return found


def seed_of(project_id: str, fingerprint: str, facts: RunFacts) -> IdSeed:
    """Where row ids of a run start (C-84)."""
    text = hashlib.sha256(f"{project_id}\0{fingerprint}\0{facts.period}".encode()).hexdigest()
    return IdSeed(text, facts.started_at)
