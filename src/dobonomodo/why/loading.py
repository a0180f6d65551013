"""Stored rows as a run loads them: those that belong to it, with every system column. The engine does the same with Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date

from dobonomodo.engine.loading import find_interval, seed_part
from dobonomodo.engine.rowid import IdSeed, find_place, write_id_by_place
from dobonomodo.formula.meaning import Value
from dobonomodo.formula.moment import Day, Moment, day_of, moment_of
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.plan.facts import RunFacts
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
    SYNONYMS,
    UPDATED_AT,
)
from dobonomodo.why.row import AT_MOST, Source, StoredRow, TooManyRows, Traced, Wanted, satisfies

_SYNONYM_BY_NAME = {name: synonym for synonym, name in SYNONYMS.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Outside:
    """A stored row that does not belong to the run."""

    use: DatasetUse
    row: StoredRow
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Loader:
    """Loads the rows of scans."""

    source: Source
    facts: RunFacts
    as_of: date | None
    seed: IdSeed
    outside: list[Outside] = field(default_factory=list)
    """The rows that were skipped, since they do not belong to the run."""
    limit: int | None = None
    """How many rows of a scan are computed in Python; None for as many as an explanation may need."""

    def load(self, node: Scan, wanted: Wanted, needed: frozenset[str] | None) -> list[Traced]:
        """The rows of a scan that are looked for; ``needed`` are the columns that are enough."""
        found: list[Traced] = []
        for row in self.find_stored(node, wanted, needed):
            reason = self.why_outside(node.use, row)
            if reason is not None:
                self.outside.append(Outside(node.use, row, reason))
                continue
            traced = self._trace(node, row, needed)
            if satisfies(traced.values, wanted):
                found.append(traced)
                if len(found) > (AT_MOST if self.limit is None else self.limit):
                    raise TooManyRows(node.use)
        return found

    def find_stored(self, node: Scan, wanted: Wanted, needed: frozenset[str] | None) -> Iterator[StoredRow]:
        """The stored rows that may be looked for, also those that do not belong to the run."""
        use = node.use
        if OPERATION_SEQ in wanted and 0 not in wanted[OPERATION_SEQ]:
            return
        stored = {name.casefold(): allowed for name, allowed in wanted.items() if name in use.columns}
        numbers = None
        if ROW_ID in wanted:
            places = [find_place(self.seed, seed_part(use), str(each)) for each in wanted[ROW_ID]]
            if None not in places:
                numbers = frozenset(each for each in places if each is not None)
            elif not any(place is not None for place in places):
                stored[ROW_ID] = wanted[ROW_ID]
        columns = None
        if needed is not None:
            columns = frozenset(name.casefold() for name in use.columns if name in needed)
        yield from self.source.find(use, stored, numbers=numbers, columns=columns)

    def why_outside(self, use: DatasetUse, row: StoredRow) -> str | None:
        """Why a stored row does not belong to the run: its period, or the days on which it is valid. None if it does."""
        if use.temporal_mode == "period" and PERIOD in row.values:
            periods = use.identifiers(self.facts)
            if row.values[PERIOD] not in periods:
                return f"its period is {row.values[PERIOD] or 'NULL'}; the run reads {' and '.join(periods) or 'none'}"
        elif use.periods == ():
            return "the run reads none of its periods"
        if use.temporal_mode == "bitemporal":
            start, end = self._interval(row)
            on = day_of(use.valid_on(self.facts, self.as_of))
            if start is None or start > on or (end is not None and end <= on):
                return f"it is valid from {start or 'NULL'} to {end or 'NULL'}, not on {on}"
        return None

    def _interval(self, row: StoredRow) -> tuple[Day | None, Day | None]:
        found = find_interval({name: name for name in row.values})
        if found is None:
            return None, None
        return _day(row.values[found[0]]), _day(row.values[found[1]])

    def _trace(self, node: Scan, row: StoredRow, needed: frozenset[str] | None) -> Traced:
        use = node.use
        values: dict[str, Value] = {}
        for name in node.schema.columns:
            if name in use.columns:
                if needed is None or name in needed:
                    values[name] = row.values.get(name.casefold())
            else:
                values[name] = self._system_value(name, use, row)
        values[PLACE] = row.number
        return Traced(node, values, (), (id(node), row.number), row)

    def _system_value(self, name: str, use: DatasetUse, row: StoredRow) -> Value:
        clock = moment_of(self.facts.started_at)
        starts: dict[str, Value] = {
            DELETED: False,
            CREATED_AT: clock,
            UPDATED_AT: clock,
            SOURCE_DATASET: use.dataset_id,
            SOURCE_TABLE: use.table,
            LABELS: "",
        }
        column = name if name in row.values else _SYNONYM_BY_NAME.get(name, name)
        stored = row.values.get(column)
        if name == OPERATION_SEQ:
            return 0
        if name == ROW_ID:
            made = None if row.number is None else write_id_by_place(self.seed, seed_part(use), row.number)
            return stored if stored is not None and use.role != "append" else made
        if name == PERIOD:
            given = row.period if use.temporal_mode == "period" else None
            return stored if column in row.values else given
        if name in (PERIOD_FROM, PERIOD_TO):
            if use.temporal_mode == "bitemporal":
                return self._interval(row)[0 if name == PERIOD_FROM else 1]
            return _day(stored)
        return stored if stored is not None else starts[name]


def _day(value: Value) -> Day | None:
    """The day of a date or a time."""
    if isinstance(value, Moment):
        return value.day
    return value if isinstance(value, Day) else None
