"""The engine: runs a plan on Spark. Outputs are its only actions; counts and digests come from the same jobs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from datetime import date
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.engine.arithmetic import require_arithmetic
from dobonomodo.engine.checking import Checking, evaluate_contracts
from dobonomodo.engine.computed import Computed, EndSteps, Observing, OutputResult, SharedFiles, with_working_names
from dobonomodo.engine.context import RunContext
from dobonomodo.engine.culprit import explain_failure
from dobonomodo.engine.cutting import Cut
from dobonomodo.engine.digest import ROWS, digest_columns, hash_rows, render_digest
from dobonomodo.engine.executors import Patience, waiting_for_executors
from dobonomodo.engine.faults import find_loss, noticing_loss
from dobonomodo.engine.frames import Frames
from dobonomodo.engine.grouping import LargeGroup, read_groups
from dobonomodo.engine.joins import find_whole
from dobonomodo.engine.kinds import can_be_summed, count_kinds, find_kinds, list_kinds, sum_kinds, without_kinds
from dobonomodo.engine.labels import labelled, labels_of
from dobonomodo.engine.needs import Needs, find_needs, names_in
from dobonomodo.engine.observation import (
    Counting,
    Measuring,
    chosen_by,
    observe,
    observe_working,
    select_written,
)
from dobonomodo.engine.reach import may_be_elsewhere, require_reach, require_transport
from dobonomodo.engine.reading import Reader
from dobonomodo.engine.rowid import seed_of
from dobonomodo.engine.totals import read_totals, written_sums
from dobonomodo.engine.tracking import Tracked
from dobonomodo.formula import Typed, columns_of
from dobonomodo.formula.meaning import Value
from dobonomodo.formula.sql import quote_name
from dobonomodo.plan import Plan, Step
from dobonomodo.plan.check import CheckResult
from dobonomodo.plan.counts import OutputTotals
from dobonomodo.plan.expression import ACTIVE
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.relation import AssignIds, Group, Keep, Rel, Window, expressions_of, walk_between
from dobonomodo.plan.system import DELETED, OPERATION_SEQ, ROW_ID
from dobonomodo.problems import RunFailed
from dobonomodo.problems.run import NoExecutors, OutputWrite
from dobonomodo.storage.faults import is_of_spark
from dobonomodo.storage.transport import Transport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONCURRENT_WRITERS = "spark.sql.maxConcurrentOutputFileWriters"

_Explained = Callable[[], AbstractContextManager[None]]


class SparkEngine:
    """Computes plans in a Spark session, classic or Connect."""

    def __init__(
        self,
        spark: SparkSession,
        *,
        small_inputs: bool = False,
        cut: Cut | None = None,
        patience: Patience | None = None,
        run: str | None = None,
    ) -> None:
        """``run`` is the id that jobs are labelled with."""
        self.spark, self._small_inputs, self._cut, self._run = spark, small_inputs, cut, run
        self._patience = patience or Patience()

    def require_arithmetic(self, *, of: object) -> None:
        """Refuse a session that does not compute as Spark does. Skipped for a Spark that we started ourselves."""
        with self._attended():
            require_arithmetic(self.spark, of=of)

    def outputs(
        self,
        plan: Plan,
        facts: RunFacts,
        *,
        reader: Reader,
        as_of: date | None = None,
        skip: Collection[int] = (),
        staging: bool = False,
        sharing: bool = False,
        figures: bool = False,
        digests: bool = False,
    ) -> Iterator[Computed]:
        """Yield every output of a plan except those to ``skip``, ready to be written. Raises ``RunFailed``.

        Outputs come in order; with ``sharing``, an output whose written rows contain those of others comes before them. With
        ``staging``, written rows can be read again. With ``figures``, totals and matches are also measured.
        """
        counting, checking = Counting(plan), Checking(plan)
        measuring = Measuring(plan, counting, digests=digests) if figures else None
        tracked = measuring.tracked if measuring is not None else Tracked(counting.marks)
        tracked = replace(tracked, values=checking.values)
        needs = find_needs([*read_by_outputs(plan), *checking.read()], tracked)
        frames = self._frames(plan, facts, reader, as_of, needs)
        rereads = staging and not self._small_inputs
        observing = Observing(frames, counting, measuring, checking, self.spark, rereads)
        with self._explaining(plan, frames, until=None):
            frames.track(plan.start.node, tracked)
        for group in _groups(plan, skip):
            host = _find_host(group) if sharing else None
            twins = _find_twins(group, host, at_most=self._count_twins()) if host is not None and rereads else ()
            shared: Computed | None = None
            for step in sorted(group, key=lambda each: each is not host):
                explained = partial(self._explaining, plan, frames, until=step)
                with explained():
                    rows = shared.written(None) if shared is not None and step not in twins else None
                    if shared is not None and step in twins:
                        computed = _share(shared, step, observing, explained)
                    elif shared is not None and rows is not None:
                        computed = _take(rows, shared, step, observing, explained)
                    else:
                        own = twins if step is host else ()
                        computed = self._compute(plan, step, observing, explained, twins=own)
                yield computed
                if computed.result is None:
                    raise AssertionError("an output is finished before the next one")
                if step is host:
                    shared = computed

    def _count_twins(self) -> int:
        """How many outputs can share the files of another one: Spark must keep one open file per part in each task, without sorting."""
        writers = int(self.spark.conf.get(CONCURRENT_WRITERS, "0") or 0)
        return max(0, writers.bit_length() - 1)

    def checks(
        self,
        plan: Plan,
        facts: RunFacts,
        *,
        reader: Reader,
        as_of: date | None = None,
        skip: Collection[int] = (),
    ) -> tuple[CheckResult, ...]:
        """Evaluate the checks of a plan except those to ``skip``, one job per check. Raises ``RunFailed``."""
        checking = Checking(plan, skip=skip)
        found = []
        for step in checking.pending:
            frames = self._frames(plan, facts, reader, as_of)
            with self._explaining(plan, frames, until=step):
                found.append(checking.evaluate(frames, step))
        return tuple(found)

    def contracts(
        self, plan: Plan, facts: RunFacts, *, reader: Reader, as_of: date | None = None
    ) -> tuple[CheckResult, ...]:
        """Evaluate the checks that are defined on the datasets which a plan reads. Raises ``RunFailed``."""
        if not plan.contracts:
            return ()
        frames = self._frames(plan, facts, reader, as_of)
        with self._explaining(plan, frames, until=None):
            return evaluate_contracts(frames, plan.contracts)

    def groups(
        self,
        plan: Plan,
        facts: RunFacts,
        node: Group,
        keys: Mapping[str, Collection[Value]],
        *,
        reader: Reader,
        as_of: date | None,
        names: Sequence[str],
        shares: Mapping[str, Typed],
        at_most: int | None,
    ) -> list[LargeGroup]:
        """The groups of a node with the given key values, each with its largest rows. Raises ``RunFailed``."""
        frames = self._frames(plan, facts, reader, as_of)
        with self._explaining(plan, frames, until=None):
            return read_groups(frames, node, keys, names=names, shares=shares, at_most=at_most)

    def totals(
        self, plan: Plan, facts: RunFacts, *, reader: Reader, as_of: date | None = None
    ) -> dict[int, OutputTotals]:
        """The number of rows of every output of a plan, and the totals of its columns, without writing any. Raises ``RunFailed``.

        One job for all outputs of the same working dataset; Spark computes only the columns that the totals need.
        """
        from pyspark.sql import functions as F

        frames = self._frames(plan, facts, reader, as_of)
        found: dict[int, OutputTotals] = {}
        for group in _groups(plan, ()):
            sums = {step.spec.seq: written_sums(step, chosen_by(step, facts)) for step in group}
            kinds = {step.spec.seq: find_kinds(plan, step) for step in group}
            aggregates = {
                f"{step.spec.seq} {ROWS}": f"count(CASE WHEN {chosen_by(step, facts)} THEN 1 END)" for step in group
            }
            for step in group:
                seq, chosen = step.spec.seq, chosen_by(step, facts)
                if can_be_summed(step, kinds[seq], tracked=True):
                    sums[seq] |= sum_kinds(step, kinds[seq], chosen=chosen, tracked=False)
                    counts = count_kinds(kinds[seq], chosen=chosen, tracked=False)
                    aggregates |= {f"{seq} {name}": sql for name, sql in counts.items()}
            aggregates |= {f"{seq} {name}": each.sql for seq, own in sums.items() for name, each in own.items()}
            with self._explaining(plan, frames, until=group[-1]):
                working = frames.make_with_ids(group[0].before.node, plan.input)
                row = working.agg(*(F.expr(sql).alias(name) for name, sql in aggregates.items())).first()
            values = row.asDict() if row is not None else {}
            for step in group:
                start = f"{step.spec.seq} "
                metrics = {name.removeprefix(start): value for name, value in values.items() if name.startswith(start)}
                totals = read_totals(written_sums(step, ""), metrics)
                found[step.spec.seq] = OutputTotals(
                    metrics[ROWS], totals, list_kinds(step, kinds[step.spec.seq], metrics)
                )
        return found

    def _frames(
        self, plan: Plan, facts: RunFacts, reader: Reader, as_of: date | None, needs: Needs | None = None
    ) -> Frames:
        seed = seed_of(plan.project.id, plan.project.fingerprint(), facts)
        run = RunContext(facts, seed, as_of, **_find_id_needs(plan), cut=self._cut)
        return Frames(reader, run, needs=needs, whole=find_whole(plan))

    def attended(self) -> AbstractContextManager[None]:
        """Guard work that is not part of a plan: raises ``RunFailed`` if Spark is lost or has no executors."""
        return self._attended()

    @contextmanager
    def _attended(self) -> Iterator[None]:
        """Raise ``RunFailed`` if Spark is lost or has no executors. The problem names no operation, since none caused it."""
        with waiting_for_executors(self.spark, self._patience):
            try:
                yield
            except Exception as error:
                if (failed := self._find_outage(error)) is not None:
                    raise failed from error
                raise

    def _find_outage(self, error: Exception) -> RunFailed | None:
        if self._patience.over and is_of_spark(error):
            return RunFailed(NoExecutors(seconds=self._patience.limit))
        return find_loss(error)

    @contextmanager
    def _explaining(self, plan: Plan, frames: Frames, *, until: Step | None) -> Iterator[None]:
        """Convert Spark exceptions to ``RunFailed``, with the operation that failed, if there is one."""
        labels = labels_of(plan, frames.facts, run=self._run, step=until)
        with self._attended(), labelled(self.spark, labels), self._naming(plan, frames, until=until):
            yield

    @contextmanager
    def _naming(self, plan: Plan, frames: Frames, *, until: Step | None) -> Iterator[None]:
        try:
            yield
        except RunFailed as failed:
            # A destination does not know which operation writes to it (C-67).
            if isinstance(failed.problem, OutputWrite) and failed.problem.operation is None and until is not None:
                failed.problem = replace(failed.problem, operation=until.spec.ref)
            raise
        except Exception as error:
            if not is_of_spark(error) or self._find_outage(error) is not None:
                raise
            raise RunFailed(explain_failure(error, plan, frames, until=until)) from error

    def _compute(
        self, plan: Plan, step: Step, observing: Observing, explained: _Explained, *, twins: Sequence[Step]
    ) -> Computed:
        """Compute an output from the inputs, with an observation of all rows of its working dataset."""
        frames = observing.frames
        working = frames.make_with_ids(step.before.node, plan.input)
        ends = _find_ends((step, *twins), frames) if observing.rereads else EndSteps()
        hidden, metrics = observing.hidden(step), observing.metrics(step, ends.known)
        if observing.rereads:
            part = _part_of(twins, frames.facts)
            frame, seen = observe_working(working, step, frames.facts, hidden=hidden, metrics=metrics, part=part)
        else:
            written = observing.written(step, tracked=True)
            frame, seen = observe(working, step, hidden=hidden, metrics=metrics, written=written)
        return Computed(step, frame, observing=observing, explained=explained, observation=seen, twins=twins, ends=ends)

    def digest(self, frame: DataFrame, columns: Sequence[str]) -> str:
        """The digest of stored rows, comparable with the digest of a written output."""
        from pyspark.sql import functions as F

        with self._attended():
            hashed = frame.selectExpr(*(f"{sql} AS {quote_name(name)}" for name, sql in hash_rows(columns).items()))
            found = hashed.agg(*(F.expr(sql).alias(name) for name, sql in digest_columns().items())).first()
        return render_digest(found.asDict() if found is not None else {})

    def require_reach(self, place: Path | Transport) -> None:
        """Raise ``RunFailed`` if workers cannot reach an object store, or may be elsewhere and do not share a folder."""
        with self._attended():
            if isinstance(place, Transport):
                require_transport(self.spark, place, find_outage=self._find_outage)
            elif may_be_elsewhere(self.spark):
                require_reach(self.spark, place, find_outage=self._find_outage)

    def interrupt(self) -> None:
        """Cancel our Spark jobs. Does nothing if Spark is lost."""
        with suppress(RunFailed), noticing_loss():
            self.spark.interruptAll()


def discard(outputs: Iterable[Computed]) -> tuple[OutputResult, ...]:
    """Compute all rows of outputs, and keep only counts and digests."""
    results = []
    for output in outputs:
        with output.explained():
            output.frame.write.format("noop").mode("overwrite").save()
            results.append(output.finish())
    return tuple(results)


def _groups(plan: Plan, skip: Collection[int]) -> Iterator[list[Step]]:
    """The outputs to write, grouped by working dataset."""
    outputs = [step for step in plan.steps if step.lowered.write is not None and step.spec.seq not in skip]
    for _, group in groupby(outputs, key=lambda step: id(step.before.node)):
        yield list(group)


def read_by_outputs(plan: Plan) -> Iterator[tuple[Rel, Iterable[str]]]:
    """The columns that outputs read of their working datasets, and those that are recorded from the start."""
    yield plan.start.node, (DELETED,)
    for step in plan.steps:
        if step.lowered.write is None:
            continue
        write = step.write
        chosen = names_in(write.rows.condition) if isinstance(write.rows, Keep) else ()
        levels = (kind.level_column for kind in find_kinds(plan, step) if kind.level_column is not None)
        keys = (key.column for key in write.order)
        yield step.before.node, (*write.columns, *keys, *chosen, *levels, OPERATION_SEQ)


def _find_host(group: Sequence[Step]) -> Step | None:
    """An output that contains every row and column of the others, so that they can be derived from its written rows."""
    if len(group) < 2:
        return None
    needed: set[str] = set()
    for step in group:
        write = step.write
        needed |= {*write.columns, *(key.column for key in write.order)}
        if isinstance(write.rows, Keep):
            used = columns_of(write.rows.condition)
            if any(column.qualifier is not None for column in used):
                return None
            needed |= {column.name for column in used}
    for step in group:
        write = step.write
        if not isinstance(write.rows, Keep) and needed <= set(write.columns):
            return step
    return None


def _find_twins(group: Sequence[Step], host: Step, *, at_most: int) -> tuple[Step, ...]:
    """The outputs that write a subset of another output's rows, with the same columns, to any number of files."""
    if host.write.in_one_file:
        return ()
    columns = list(host.write.written_types(host.before.columns).items())
    twins = [
        step
        for step in group
        if step is not host
        and not step.write.in_one_file
        and list(step.write.columns) == list(host.write.columns)
        and list(step.write.written_types(step.before.columns).items()) == columns
    ]
    return tuple(twins[:at_most])


def _find_ends(outputs: Sequence[Step], frames: Frames) -> EndSteps:
    """The output that writes exactly the active rows of the working dataset, and the one that writes all rows."""
    rows = {step: step.write.rows for step in outputs}
    active = next((step for step, kept in rows.items() if isinstance(kept, Keep) and kept.condition == ACTIVE), None)
    whole = next((step for step, kept in rows.items() if not isinstance(kept, Keep)), None)
    return EndSteps(active, None if frames.loads_deleted else whole)


def _part_of(twins: Sequence[Step], facts: RunFacts) -> str | None:
    """SQL for the part of an output that a row belongs to: one bit for each other output that also contains the row."""
    if not twins:
        return None
    return " | ".join(f"CASE WHEN {chosen_by(step, facts)} THEN {1 << at} ELSE 0 END" for at, step in enumerate(twins))


def _share(host: Computed, step: Step, observing: Observing, explained: _Explained) -> Computed:
    """An output whose rows are in files of another one."""
    bit = 1 << list(host.twins).index(step)
    parts = frozenset(part for part in range(1 << len(host.twins)) if part & bit)
    shared = SharedFiles(host.step.spec.seq, parts)
    before = {**without_kinds(host.metrics), **host.of_twins[step.spec.seq]}
    return Computed(step, None, observing=observing, explained=explained, before=before, shared=shared)


def _take(rows: DataFrame, host: Computed, step: Step, observing: Observing, explained: _Explained) -> Computed:
    """Derive an output from a written one that contains all its rows and columns."""
    working, facts, before = with_working_names(rows, host.step), observing.frames.facts, without_kinds(host.metrics)
    if observing.rereads:
        frame = select_written(working, step, facts)
        return Computed(step, frame, observing=observing, explained=explained, before=before)
    frame, seen = observe(working, step, hidden=[], metrics={}, written=observing.written(step))
    return Computed(step, frame, observing=observing, explained=explained, observation=seen, before=before)


def _find_id_needs(plan: Plan) -> dict[str, bool]:
    """Which consumers read row ids: outputs, formulas over the working dataset, or formulas over joined rows.

    Windows read positions.
    """
    readers = [
        column.qualifier
        for step in plan.steps
        for node in walk_between(step.top, step.before.node)
        for each in expressions_of(node)
        for column in columns_of(each)
        if column.name == ROW_ID
    ]
    readers += [alias for step in plan.steps for alias in _ids_of_matches(step)]
    written = any(step.lowered.write is not None and ROW_ID in step.lowered.write.columns for step in plan.steps)
    nodes = (node for step in plan.steps for node in walk_between(step.top, step.before.node))
    return {
        "places": any(node.reads_places for node in nodes if isinstance(node, Window)),
        "ids": written or bool(readers),
        "late_ids": written and not readers,
        "joined_ids": any(qualifier is not None for qualifier in readers),
    }


def _ids_of_matches(step: Step) -> Iterator[str | None]:
    """Which row ids the ids of matched rows are computed from: None for the row itself, the alias for a joined row."""
    for node in walk_between(step.top, step.before.node):
        if isinstance(node, AssignIds) and node.rows.schema.joined:
            for name in node.by:
                alias, _, column = name.rpartition(".")
                if column == ROW_ID:
                    yield alias or None
