"""Row counts and digests of an output: observed in the job that writes it, or aggregated from the written files.

An observation needs no additional job and is cheap for few rows. For many rows it costs several times as much as an aggregate
over the written files: it interrupts whole-stage code generation and is evaluated row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from dobonomodo.engine.differences import find_key
from dobonomodo.engine.digest import (
    HASH,
    ROWS,
    Metrics,
    digest_columns,
    digest_values,
    hash_rows,
    hash_values,
    render_values,
)
from dobonomodo.engine.joins import MatchCounts
from dobonomodo.engine.kinds import can_be_summed, carry_levels, count_kinds, find_kinds, read_kinds, sum_kinds
from dobonomodo.engine.matches import Matching
from dobonomodo.engine.totals import Ends, History, Known, excluded_by, excludes, read_totals, written_sums
from dobonomodo.engine.tracking import SEQ, WAS_ACTIVE, Bit, Mark, Tracked, count_where, is_violated
from dobonomodo.formula import render_formula
from dobonomodo.formula.sql import quote_name
from dobonomodo.plan import Plan, Step
from dobonomodo.plan.counts import ColumnDigests, JoinCounts, Measures, OperationCounts, Totals
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.operations import Effect
from dobonomodo.plan.pairing import find_pairing
from dobonomodo.plan.relation import Keep, Lookup
from dobonomodo.plan.system import is_comparable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

    from dobonomodo.plan.relation import Write

IS_WRITTEN = f"{quote_name(HASH)} IS NOT NULL"
"""SQL for the rows that an output writes, where it is observed."""
CHOSEN = " chosen"
PART = " part"
"""The hidden column with the number of the part of an output that a row belongs to. Each part has files of its own."""
KEYS = " keys"
"""The hidden column with the hash of a row's key."""
DIGESTS_AT_MOST = 200
"""An output with more columns has no digests of columns."""


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """The metrics of the rows that an output writes: SQL for hidden columns, and for aggregates over them."""

    columns: Mapping[str, str]
    aggregates: Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """An observation in which equal aggregates are computed once, since each has a cost per row."""

    observation: Observation
    names: Mapping[str, str]
    """Of each aggregate, the name under which it is observed."""

    @property
    def get(self) -> Metrics:
        """The observed values by name; waits for the job."""
        found = self.observation.get
        return {name: found[observed] for name, observed in self.names.items()}


def measure_written(step: Step, measuring: Measuring | None, *, chosen: str, tracked: bool) -> Written:
    """Metrics for the number of rows, their digest, and the requested figures; ``chosen`` is SQL for the written rows.

    ``tracked``: rows also have hidden columns, which are not written.
    """
    hashed = {name: f"CASE WHEN {chosen} THEN {sql} END" for name, sql in hash_rows(step.write.columns).items()}
    more = measuring.hashes(step) if measuring is not None else {}
    sums = (
        measuring.measure_written(step, chosen="TRUE" if chosen == "TRUE" else IS_WRITTEN, tracked=tracked)
        if measuring is not None
        else {}
    )
    return Written({**more, **hashed}, {**sums, **digest_columns()})


def chosen_by(step: Step, facts: RunFacts) -> str:
    """SQL for the rows of the working dataset that an output writes."""
    rows = step.write.rows
    return render_formula(rows.condition, facts) if isinstance(rows, Keep) else "TRUE"


def observe(
    rows: DataFrame, step: Step, *, hidden: Sequence[str], metrics: Mapping[str, str], written: Written
) -> tuple[DataFrame, Observed]:
    """The rows of an output, and the observation that counts and hashes them while they are written."""
    columns = [*hidden, *(f"{sql} AS {quote_name(name)}" for name, sql in written.columns.items())]
    # One observation, below the filter: above it, Spark could prune an empty result together with the observation.
    counted, seen = _observe(rows, step, columns, {**metrics, **written.aggregates})
    return _select(counted.where(IS_WRITTEN), step.write), seen


def observe_working(
    rows: DataFrame, step: Step, facts: RunFacts, *, hidden: Sequence[str], metrics: Mapping[str, str], part: str | None
) -> tuple[DataFrame, Observed]:
    """The rows of an output, which are measured once they are written, and the observation of the working dataset.

    ``part`` is SQL for the number that assigns rows to files.
    """
    chosen = chosen_by(step, facts)
    selected = [f"{chosen} AS {quote_name(CHOSEN)}"] if chosen != "TRUE" else []
    parts = [f"{part} AS {quote_name(PART)}"] if part is not None else []
    counted, seen = _observe(rows, step, [*hidden, *selected, *parts], metrics)
    kept = counted.where(quote_name(CHOSEN)) if selected else counted
    return _select(kept, step.write, *(quote_name(PART) for _ in parts)), seen


def _observe(
    rows: DataFrame, step: Step, hidden: Sequence[str], aggregates: Mapping[str, str]
) -> tuple[DataFrame, Observed]:
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    seen = Observation()
    prepared = rows.selectExpr(*_names_of(step.write), *hidden)
    first_names: dict[str, str] = {}
    for name, sql in aggregates.items():
        first_names.setdefault(sql, name)
    counted = prepared.observe(seen, *(F.expr(sql).alias(name) for sql, name in first_names.items()))
    return counted, Observed(seen, {name: first_names[sql] for name, sql in aggregates.items()})


def select_written(rows: DataFrame, step: Step, facts: RunFacts) -> DataFrame:
    """The rows that an output writes, selected from the working dataset."""
    return _select(rows.where(chosen_by(step, facts)).selectExpr(*_names_of(step.write)), step.write)


def measure_again(parts: Sequence[DataFrame], measured: Written) -> list[Metrics]:
    """The metrics of written rows per part, in one job that reads the files again."""
    from pyspark.sql import functions as F

    hidden = [f"{sql} AS {quote_name(name)}" for name, sql in measured.columns.items()]
    aggregates = [F.expr(sql).alias(name) for name, sql in measured.aggregates.items()]
    found = [
        rows.selectExpr("*", *hidden).agg(*aggregates).withColumn(PART, F.lit(at)) for at, rows in enumerate(parts)
    ]
    by_part = {row[PART]: row.asDict() for row in reduce(lambda one, other: one.unionAll(other), found).collect()}
    return [by_part[at] for at in range(len(parts))]


def add_parts(measured: Written, parts: Sequence[Metrics]) -> Metrics:
    """The metrics of some parts, added up. A sum is NULL if there are no rows or if it has too many digits."""
    filled = [part for part in parts if part[ROWS]]
    return {
        name: _add([part[name] for part in filled]) if name != ROWS else sum(part[ROWS] for part in filled)
        for name in measured.aggregates
    }


def _add(values: Sequence[Any]) -> Any:
    if not values or any(value is None for value in values):
        return None
    return reduce(lambda one, other: one + other, values)


def _names_of(write: Write) -> list[str]:
    keys = [f"{quote_name(key.column)} AS {quote_name(f' key {at}')}" for at, key in enumerate(write.order)]
    return [*map(quote_name, write.columns), *keys]


def _select(rows: DataFrame, write: Write, *more: str) -> DataFrame:
    written = [f"{quote_name(name)} AS {quote_name(write.written_name(name))}" for name in write.columns]
    return _in_order(rows, write).selectExpr(*written, *more)


def _in_order(rows: DataFrame, write: Write) -> DataFrame:
    """The rows of an output in one partition and sorted; all written columns break ties between equal keys."""
    from pyspark.sql import functions as F

    if not write.order:
        return rows
    keys = [
        F.col(quote_name(f" key {at}")).desc() if key.descending else F.col(quote_name(f" key {at}")).asc()
        for at, key in enumerate(write.order)
    ]
    others = [F.col(quote_name(name)).asc() for name in write.columns]
    return rows.repartition(1).sortWithinPartitions(*keys, *others)


class Counting:
    """Row counts of operations, from one observation of the working dataset while it is written."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.written: dict[int, int] = {}
        self.marks: dict[int, Mark] = {}
        self.mark_by_seq: dict[int, Mark] = {}
        for number, step in enumerate(plan.steps):
            selected = step.lowered.selected
            # A check keeps its selection itself: it may leave the rows unchanged and have no node.
            if selected is None or Effect.SELECTS not in step.facts.effect or Effect.CHECKS in step.facts.effect:
                continue
            mark = Mark(Bit(number), selected)
            self.mark_by_seq[step.spec.seq] = mark
            self.marks[id(step.lowered.marked or step.after.node)] = mark

    def metrics(self, until: Step) -> dict[str, str]:
        """SQL aggregates over the working dataset before an output."""
        seq = quote_name(SEQ)
        found = {"loaded": count_where(f"{seq} = 0L"), "active": count_where(WAS_ACTIVE)}
        for step in self._plan.steps:
            number = step.spec.seq
            if number >= until.spec.seq:
                break
            if mark := self.mark_by_seq.get(number):
                found[f"selected_{number}"] = count_where(mark.bit.is_set())
            if step.lowered.added is not None:
                found[f"added_{number}"] = count_where(f"{seq} = {number}L")
        return found

    def counts(self, metrics: Metrics) -> tuple[OperationCounts, ...]:
        """The counts of every operation that an observation covers."""
        written = self.written
        rows: int | None = metrics.get("loaded")
        counts = []
        for step in self._plan.steps:
            spec, seq, effect = step.spec, step.spec.seq, step.facts.effect
            writes, check = Effect.WRITES in effect, step.lowered.check
            reached = seq in written if writes else f"selected_{seq}" in metrics or f"added_{seq}" in metrics
            if not reached or rows is None:
                counts.append(OperationCounts(seq, spec.name, spec.type))
                rows = rows if writes or check is not None else None
                continue
            added = metrics.get(f"added_{seq}", 0)
            # An operation that selects no rows of the working dataset selects the rows that it adds.
            selected = written[seq] if writes else metrics.get(f"selected_{seq}", added)
            counts.append(
                OperationCounts(
                    seq=seq,
                    name=spec.name,
                    type=spec.type,
                    rows_in=rows,
                    selected=selected,
                    added=added,
                    deleted=_count_deleted(step, metrics, selected),
                    rows_out=rows + added,
                )
            )
            rows += added
        return tuple(counts)


def _count_deleted(step: Step, metrics: Metrics, selected: int) -> int:
    check = step.lowered.check
    if check is not None and check.excludes:
        return int(metrics[f"violations_{step.spec.seq}"])
    return selected if step.deletes else 0


class Measuring:
    """Totals and match counts, from the same observation."""

    def __init__(self, plan: Plan, counting: Counting, *, digests: bool) -> None:
        self._plan, self._history, self._matching = plan, History(plan, counting.mark_by_seq), Matching(plan)
        self._digests = digests
        self.tracked = Tracked(counting.marks, self._matching.bits, self._history.kept)

    def metrics(self, until: Step, known: Known) -> dict[str, str]:
        """SQL aggregates over the working dataset before an output; totals that are ``known`` from elsewhere are left out."""
        sums = {name: each.sql for name, each in self._history.sums(until, known).items()}
        excluded = {
            excluded_by(step.spec.seq): count_where(is_violated(step.spec.seq))
            for step in self._plan.steps
            if step.spec.seq < until.spec.seq and excludes(step)
        }
        return {**sums, **excluded, **self._matching.metrics(until)}

    def carried(self, step: Step) -> list[str]:
        """SQL for hidden columns that distinguish kinds of rows."""
        return carry_levels(find_kinds(self._plan, step))

    def unread(self, until: Step) -> frozenset[str]:
        """Hidden columns that no metric reads, and that need not be carried to the observation of an output."""
        kept = {each.name for values in self._history.kept.values() for each in values}
        return frozenset(kept.difference(self._history.hidden(until)))

    def measure_written(self, step: Step, *, chosen: str, tracked: bool) -> dict[str, str]:
        """SQL aggregates over the rows that an output writes; ``chosen`` is SQL for the written rows.

        ``tracked``: rows also have hidden columns, which are not written.
        """
        sums, kinds, counts = written_sums(step, chosen), find_kinds(self._plan, step), {}
        if can_be_summed(step, kinds, tracked=tracked):
            sums |= sum_kinds(step, kinds, chosen=chosen, tracked=tracked)
            counts = count_kinds(kinds, chosen=chosen, tracked=tracked)
        found = {name: each.sql for name, each in sums.items()}
        return {**found, **counts, **digest_values(self.hashes(step), chosen=chosen)}

    def hashes(self, step: Step) -> dict[str, str]:
        """SQL by hidden column for the hashes of values and keys from which column digests are computed.

        They are computed below the observation, where Spark generates code for them: inside it they would cost several
        times as much.
        """
        key, columns = self._find_digested(step)
        if not key:
            return {}
        values = {f" values {at}": quote_name(name) for at, name in enumerate(columns)}
        return hash_values({KEYS: "0", **values}, key)

    def _find_digested(self, step: Step) -> tuple[list[str], list[str]]:
        """SQL for the key of the rows that an output writes, and the columns that have a digest; empty if there is no key."""
        written = step.write.columns
        key = find_key(find_pairing(step), written) if self._digests else {}
        columns = [name for name in written if is_comparable(name) and name not in key]
        return (list(key.values()), columns) if len(columns) <= DIGESTS_AT_MOST else ([], [])

    def _read_digests(self, step: Step, metrics: Metrics) -> ColumnDigests | None:
        key, columns = self._find_digested(step)
        if not key:
            return None
        name = step.write.written_name
        of_origin = tuple((seq, tuple(map(name, own))) for seq, own in sorted(find_pairing(step).items()))
        found = {name(each): render_values(f" values {at}", metrics) for at, each in enumerate(columns)}
        return ColumnDigests(of_origin, render_values(KEYS, metrics), found)

    def measures(
        self, step: Step, metrics: Metrics, *, taken: bool, ends: Ends, count: Callable[[Lookup], MatchCounts | None]
    ) -> Measures:
        """The observed totals and matches; ``taken``: the output was derived from another one, which has the rest.

        ``ends`` are totals of the rows at the end that are known from elsewhere; ``count`` counts the matches of joins that
        were not observed.
        """
        totals, digests = self.read_written(step, metrics), self._read_digests(step, metrics)
        by_kind = read_kinds(step, find_kinds(self._plan, step), metrics)
        if taken:
            return Measures(totals, digests=digests, kinds=by_kind)
        changes = self._history.read(step, metrics, ends)
        loaded = changes.get(None, {})
        by_seq = {seq: changes[seq] for seq in sorted(seq for seq in changes if seq is not None)}
        joins = self._matching.counts(metrics, step, count=count)
        return Measures(totals, loaded, by_seq, joins, digests, by_kind)

    def read_written(self, step: Step, metrics: Metrics) -> Totals:
        """The totals of the rows that an output writes."""
        return read_totals(written_sums(step, IS_WRITTEN), metrics)

    def find_join(self, join: JoinCounts) -> Lookup:
        """The node of a join that was counted."""
        return self._matching.find(join)
