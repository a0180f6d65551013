"""Loads the stored rows of a dataset that belong to the run, with all system columns, and with row ids where needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from dobonomodo.engine.context import RunContext
from dobonomodo.engine.needs import Needs
from dobonomodo.engine.query import Query
from dobonomodo.engine.reading import ROW_NUMBER, Reader, StoredRows
from dobonomodo.engine.rowid import id_by_key, id_by_place
from dobonomodo.formula.sql import literal, quote_name, quote_text
from dobonomodo.formula.types import DATE, TEXT, TIMESTAMP, Type
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.plan.relation import Scan
from dobonomodo.plan.system import (
    CREATED_AT,
    DELETED,
    LABELS,
    OPERATION_SEQ,
    PERIOD,
    PERIOD_FROM,
    PERIOD_TO,
    PLACE,
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
    from pyspark.sql import DataFrame

COUNT = " count"
REPEATED = "NATURAL_KEY_REPEATED"
"""Marks the message by which a natural key that is not unique stops the job."""


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """The rows of a scan."""

    rows: Query
    names: tuple[str, ...]
    """Their columns, without hidden ones."""
    has_place: bool
    """Whether they carry their place, for windows and for ids that are made late."""


class UniqueKeys:
    """The natural keys that must be unique, with their rows: queried only after a run has failed."""

    def __init__(self) -> None:
        self._checked: list[tuple[DatasetUse, DataFrame]] = []

    def require(self, frame: DataFrame, use: DatasetUse, keys: list[str]) -> DataFrame:
        """The same rows; an error is raised inside the job if two rows have the same key."""
        count = quote_name(COUNT)
        head = quote_text(f"{REPEATED}|{len(self._checked)}|")
        self._checked.append((use, frame))
        counted = frame.selectExpr("*", f"count(1) OVER (PARTITION BY {', '.join(keys)}) AS {count}")
        return counted.where(f"CASE WHEN {count} > 1 THEN CAST(raise_error({head}) AS BOOLEAN) ELSE TRUE END")

    def explain(self, number: int) -> DataLoad:
        """The problem of a uniqueness check that stopped the job: the keys that occur more than once."""
        from pyspark.sql import functions as F

        use, frame = self._checked[number]
        names = [use.columns.spelling(name) or name for name in use.natural_key]
        keys = [quote_name(name) for name in names]
        counted = frame.groupBy(*keys).agg(F.expr("count(1)").alias(COUNT)).where(f"{quote_name(COUNT)} > 1")
        shown = [
            ", ".join(f"{name} = {'NULL' if row[name] is None else row[name]}" for name in names)
            + f" ({row[COUNT]} rows)"
            for row in counted.orderBy(*keys).limit(LISTED_AT_MOST).collect()
        ]
        detail = "its natural key is not unique, which row ids require because its rows have no positions"
        return _load_problem(use, detail, differences=tuple(shown))


class Loader:
    """Loads scans."""

    def __init__(self, reader: Reader, run: RunContext, unique: UniqueKeys, needs: Needs) -> None:
        self._reader, self._run, self._unique, self._needs = reader, run, unique, needs
        self._stored: dict[int, list[StoredRows]] = {}
        self.loads_deleted = False
        """Whether rows of the input may be deleted when they are loaded: some location stores whether they are."""

    def count(self, node: Scan) -> int | None:
        """The number of stored rows at the location of a scan, if known; the scan may load fewer."""
        counts = [rows.count for rows in self._stored.get(id(node), ())]
        known = [count() for count in counts if count is not None]
        return sum(known) if known and len(known) == len(counts) else None

    def load(self, node: Scan) -> Loaded:
        """The rows of all locations."""
        stored = self._stored[id(node)] = self._reader.read(node.use)
        _require_periods(node.use, stored)
        placed = all(rows.has_positions for rows in stored)
        # Without positions, ids and places are made from all values.
        by_values = not placed and (self._needs_ids(node.use) or self._needs_places(node))
        names = tuple(node.schema.names if by_values else self._needs.of(node))
        parts = [self._load(node, rows, names) for rows in stored]
        has_place = any(part.has_place for part in parts)
        if placed:
            return parts[0] if len(parts) == 1 else Loaded(Query.of(_stack(parts)), names, has_place)
        frame = _stack(parts)
        if self._needs_ids(node.use):
            frame, has_place = self._identify(frame, node), False
        if self._needs_places(node):
            values = [quote_name(name) for name in node.use.columns]
            frame, has_place = frame.selectExpr(*map(quote_name, names), place_by_values(values)), True
        return Loaded(Query.of(frame), names, has_place)

    def _load(self, node: Scan, rows: StoredRows, names: tuple[str, ...]) -> Loaded:
        """The rows of one location that belong to the run, with these columns."""
        use, frame = node.use, rows.frame
        if rows.positioned is not None and (self._needs_ids(use) or self._needs_places(node)):
            frame = rows.positioned()
        present = {name.casefold(): name for name in frame.columns}
        self.loads_deleted |= use.role == "input" and DELETED in present
        _require_time(use, rows, present)
        loaded = Query.of(frame)
        for condition in self._conditions(use, present):
            loaded = loaded.where(condition)
        selected = []
        for name in names:
            kind = node.schema.columns[name]
            sql = (
                quote_name(present[name.casefold()])
                if name in use.columns
                else self._system_column(name, kind, use, rows, present)
            )
            selected.append(f"{sql} AS {quote_name(name)}")
        has_place = (self._is_late(use) or self._needs_places(node)) and ROW_NUMBER in present
        if has_place:
            selected.append(f"{quote_name(ROW_NUMBER)} AS {quote_name(PLACE)}")
        return Loaded(loaded.select(selected), names, has_place)

    def _needs_ids(self, use: DatasetUse) -> bool:
        return self._run.joined_ids if use.role in ("join", "lookup") else self._run.ids

    def _needs_places(self, node: Scan) -> bool:
        return node.placed or (self._run.places and node.use.role in ("input", "append"))

    def _is_late(self, use: DatasetUse) -> bool:
        return self._run.late_ids and use.role == "input"

    def _conditions(self, use: DatasetUse, present: Mapping[str, str]) -> Iterator[str]:
        """The conditions that pick the run's period, by the dataset's own temporal mode (R-104)."""
        if use.temporal_mode == "period" and PERIOD in present:
            listed = ", ".join(quote_text(period) for period in use.identifiers(self._run.facts))
            yield f"{quote_name(present[PERIOD])} IN ({listed})" if listed else "FALSE"
        elif use.periods == ():
            yield "FALSE"
        if use.temporal_mode == "bitemporal":
            start, end = _interval(present)
            as_of = literal(use.valid_on(self._run.facts, self._run.as_of), DATE)
            yield f"CAST({quote_name(start)} AS DATE) <= {as_of}"
            yield f"({quote_name(end)} IS NULL OR CAST({quote_name(end)} AS DATE) > {as_of})"

    def _system_column(
        self, name: str, kind: Type, use: DatasetUse, rows: StoredRows, present: Mapping[str, str]
    ) -> str:
        """SQL for a system column: the stored value if there is one, otherwise the initial value of a loaded row."""
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
            made = self._id_by_place(use, present)
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

    def _id_by_place(self, use: DatasetUse, present: Mapping[str, str]) -> str:
        """SQL for the id of a row by its position (C-85); NULL if nothing reads it, or if it is computed later."""
        if not self._needs_ids(use) or self._is_late(use) or ROW_NUMBER not in present:
            return literal(None, TEXT)
        return id_by_place(self._run.seed, seed_part(use), quote_name(ROW_NUMBER))

    def _identify(self, frame: DataFrame, node: Scan) -> DataFrame:
        """Assign ids to rows without positions: by their natural key, which must be unique, or by all their values (C-85)."""
        others = [quote_name(name) for name in node.schema.columns if name != ROW_ID]
        keys = [quote_name(node.use.columns.spelling(name) or name) for name in node.use.natural_key]
        if keys:
            frame = self._unique.require(frame, node.use, keys)
        else:
            # Rows that are equal in all columns are interchangeable, so their order does not matter.
            alike, ordinal = quote_name(" alike"), quote_name(" ordinal")
            hashed = frame.selectExpr("*", f"{id_by_key(self._run.seed, 'alike', others)} AS {alike}")
            frame = hashed.selectExpr("*", f"row_number() OVER (PARTITION BY {alike} ORDER BY {alike}) AS {ordinal}")
            keys = [alike, ordinal]
        made = id_by_key(self._run.seed, seed_part(node.use), keys)
        return frame.selectExpr(*others, f"coalesce({quote_name(ROW_ID)}, {made}) AS {quote_name(ROW_ID)}")


def _stack(parts: Sequence[Loaded]) -> DataFrame:
    """The rows of all locations."""
    return reduce(lambda one, other: one.unionByName(other), (part.rows.make() for part in parts))


def late_id(run: RunContext, use: DatasetUse) -> str:
    """SQL for the row id: computed from the position of loaded input rows, unchanged for all others."""
    made = id_by_place(run.seed, seed_part(use), quote_name(PLACE))
    return f"coalesce({quote_name(ROW_ID)}, {made})"


def place_by_values(columns: Sequence[str]) -> str:
    """SQL for a stable position of rows that have none: the same in every run. Rows that are equal in all columns share it."""
    return f"xxhash64({', '.join(columns)}) AS {quote_name(PLACE)}"


def seed_part(use: DatasetUse) -> str:
    """The part of the id seed of loaded rows that does not depend on the run."""
    return f"load/{use.role}/{use.dataset_id}/{use.table}"


def _require_time(use: DatasetUse, rows: StoredRows, present: Mapping[str, str]) -> None:
    """A period dataset needs periods, a bitemporal one needs dates (C-59)."""
    if use.temporal_mode == "period" and PERIOD not in present and rows.period is None:
        raise RunFailed(_load_problem(use, "its rows have no column `_period`, and its temporal mode is period"))
    if use.temporal_mode == "bitemporal" and find_interval(present) is None:
        detail = "its rows have no `_period_from` and `_period_to`, nor `valid_from` and `valid_to`"
        raise RunFailed(_load_problem(use, detail))


def _require_periods(use: DatasetUse, stored: Sequence[StoredRows]) -> None:
    """Periods other than the run's must have rows, unless they may be missing. A location of one period has rows if it exists."""
    if not use.periods or use.may_be_missing or use.temporal_mode != "period":
        return
    shared = [rows.frame for rows in stored if rows.period is None]
    named = {rows.period for rows in stored}
    found: set[str | None] = set()
    for frame in shared:
        name = next((each for each in frame.columns if each.casefold() == PERIOD), None)
        if name is not None:
            listed = ", ".join(quote_text(each.identifier) for each in use.periods)
            periods = frame.where(f"{quote_name(name)} IN ({listed})").selectExpr(f"{quote_name(name)} AS period")
            found |= {row["period"] for row in periods.distinct().collect()}
    lacking = [each.identifier for each in use.periods if each.identifier not in found | named]
    if lacking and shared:
        detail = f"there are no rows for period {' and '.join(f'`{each}`' for each in lacking)}"
        raise RunFailed(_load_problem(use, f"{detail}; `missing: empty` accepts that"))


def _load_problem(use: DatasetUse, detail: str, *, differences: tuple[str, ...] = ()) -> DataLoad:
    kind = AppendDataLoad if use.role == "append" else DataLoad
    return kind(dataset_id=use.dataset_id, detail=detail, differences=differences, operation=use.operation)


def find_interval(present: Mapping[str, str]) -> tuple[str, str] | None:
    """The stored columns between whose days a row is valid; ``present`` are all, by their names in lower case."""
    for start, end in VALIDITY:
        if start in present and end in present:
            return present[start], present[end]
    return None


def _interval(present: Mapping[str, str]) -> tuple[str, str]:
    found = find_interval(present)
    if found is None:
        raise AssertionError("checked before")
    return found
