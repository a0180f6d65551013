"""The engine: runs a plan on Spark. Outputs are its only actions; counts and digests come from the same jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from dobonomodo.engine.arithmetic import require_arithmetic
from dobonomodo.engine.digest import ROWS, digest_columns, hash_rows, render_digest
from dobonomodo.engine.executors import Patience, waiting_for_executors
from dobonomodo.engine.faults import (
    ExpressionPlace,
    explain_fault,
    find_fragments,
    find_loss,
    find_repeated,
    find_suspects,
    noticing_loss,
)
from dobonomodo.engine.frames import Frames, Mark, RunContext, seed_of, tracker
from dobonomodo.engine.reading import Reader
from dobonomodo.formula import RunFacts, Type, columns_of, render_formula
from dobonomodo.formula.sql import quote_name
from dobonomodo.plan import Plan, Step
from dobonomodo.plan.operations import Effect
from dobonomodo.plan.relation import AssignIds, Derive, Keep, Write, expressions_of, walk_between
from dobonomodo.plan.system import OPERATION_SEQ, ROW_ID
from dobonomodo.problems import OperationRef, RunFailed
from dobonomodo.problems.run import NoExecutors, OutputWrite
from dobonomodo.storage.faults import is_of_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession

_Explained = Callable[[], AbstractContextManager[None]]

SEQ = " seq"
HASH = " hash"


@dataclass(frozen=True, slots=True)
class OperationCounts:
    """What an operation did to how many rows. The working set counts with its deleted rows (C-50)."""

    seq: int
    name: str
    type: str
    rows_in: int | None = None
    selected: int | None = None
    added: int | None = None
    deleted: int | None = None
    rows_out: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class OutputResult:
    """What was written of an output, and what is known of the operations before it."""

    seq: int
    rows: int
    digest: str
    seconds: float
    operations: tuple[OperationCounts, ...]


class Computed:
    """One output of a plan: a frame for the caller to write, once and completely.

    The caller writes it within ``explained`` and says ``finish``, before it asks for the next output.
    """

    def __init__(
        self,
        step: Step,
        frame: DataFrame,
        *,
        observation: Observation,
        counting: _Counting,
        before: Mapping[str, Any],
        explained: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.step, self.frame = step, frame
        self.columns: Mapping[str, Type] = {name: step.before.columns[name] for name in _write_of(step).columns}
        self.explained = explained
        self._observation, self._counting, self._before = observation, counting, before
        self._started = time.monotonic()
        self.result: OutputResult | None = None
        self.metrics: Mapping[str, Any] = before
        self.written: Callable[[], DataFrame | None] = lambda: None

    def finish(self, written: Callable[[], DataFrame | None] | None = None) -> OutputResult:
        """The output is written. ``written`` gives its rows as they can be read again, to take other outputs from."""
        self.metrics = {**self._before, **self._observation.get}
        self.written = written or self.written
        seq, rows = self.step.spec.seq, int(self.metrics[ROWS])
        self._counting.written[seq] = rows
        self.result = OutputResult(
            seq=seq,
            rows=rows,
            digest=render_digest(self.metrics),
            seconds=time.monotonic() - self._started,
            operations=self._counting.counts(self.metrics),
        )
        return self.result


class SparkEngine:
    """Computes plans in a Spark session, classic or Connect."""

    def __init__(self, spark: SparkSession, *, little_data: bool = False, patience: Patience | None = None) -> None:
        self.spark, self._little_data = spark, little_data
        self._patience = patience or Patience()

    def require_arithmetic(self, *, of: object) -> None:
        """Refuse a session that does not compute as Spark does. Needless for a Spark that we started ourselves."""
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
        sharing: bool = False,
    ) -> Iterator[Computed]:
        """Every output of a plan but those to ``skip``, ready to be written. Raises ``RunFailed``.

        They come in order; with ``sharing``, an output comes first from whose written rows others can be taken.
        """
        seed = seed_of(plan.project.id, plan.project.fingerprint(), facts)
        asked = _how_ids_are_asked_for(plan)
        context = RunContext(facts, seed, as_of, **asked, cut=self._little_data)
        frames = Frames(self.spark, reader, context)
        counting = _Counting(plan)
        with self._explaining(plan, facts, frames, until=None):
            frames.track(plan.start.node, counting.marks)
        for group in _groups(plan, skip):
            host = _find_host(group) if sharing else None
            shared: Computed | None = None
            for step in sorted(group, key=lambda each: each is not host):
                explained = partial(self._explaining, plan, facts, frames, until=step)
                with explained():
                    rows = shared.written() if shared is not None else None
                    if shared is not None and rows is not None:
                        computed = self._take(rows, shared, step, frames.facts, counting, explained)
                    else:
                        computed = self._compute(plan, frames, step, counting, explained)
                yield computed
                if computed.result is None:
                    raise AssertionError("an output is finished before the next one")
                if step is host:
                    shared = computed

    @contextmanager
    def _attended(self) -> Iterator[None]:
        """Where Spark is lost or has no executors, raise ``RunFailed`` without an operation: none is at fault."""
        with waiting_for_executors(self.spark, self._patience):
            try:
                yield
            except Exception as error:
                if (failed := self._find_outage(error)) is not None:
                    raise failed from error
                raise

    def _find_outage(self, error: Exception) -> RunFailed | None:
        if self._patience.over and is_of_spark(error):
            return RunFailed(NoExecutors(seconds=self._patience.limit), retry_helps=True)
        return find_loss(error)

    @contextmanager
    def _explaining(self, plan: Plan, facts: RunFacts, frames: Frames, *, until: Step | None) -> Iterator[None]:
        """Turn what Spark raises into ``RunFailed``, with the operation that defined what failed, if one did."""
        with self._attended(), self._naming(plan, facts, frames, until=until):
            yield

    @contextmanager
    def _naming(self, plan: Plan, facts: RunFacts, frames: Frames, *, until: Step | None) -> Iterator[None]:
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
            if (repeated := find_repeated(error)) is not None:
                raise RunFailed(frames.explain_repeated(repeated)) from error
            problem = explain_fault(error)
            suspects = find_suspects(error, list(_places(plan, facts)))
            steps = [step for step in plan.steps if step.spec.ref in suspects and _is_before(step, until)]
            operation = steps[0].spec.ref if len(steps) == 1 else _find_culprit(steps, frames)
            if operation is None and until is not None:
                operation = until.spec.ref
            culprit = next((step for step in plan.steps if step.spec.ref == operation), None)
            expression = _find_expression(culprit, error, facts) if culprit is not None else None
            raise RunFailed(replace(problem, operation=operation, expression=expression)) from error

    def _compute(self, plan: Plan, frames: Frames, step: Step, counting: _Counting, explained: _Explained) -> Computed:
        """An output from the inputs, with an observation of all rows that lead to it."""
        working = frames.make_with_ids(step.before.node, plan.input)
        hidden = [quote_name(name) for name in frames.trackers(step.before.node)]
        hidden.append(f"{quote_name(OPERATION_SEQ)} AS {quote_name(SEQ)}")
        frame, seen = _observe(working, hidden, counting.metrics(step), frames.facts, step)
        return Computed(step, frame, observation=seen, counting=counting, before={}, explained=explained)

    def _take(
        self,
        rows: DataFrame,
        shared: Computed,
        step: Step,
        facts: RunFacts,
        counting: _Counting,
        explained: _Explained,
    ) -> Computed:
        """An output from another one that holds all its rows and columns, and is written already."""
        frame, seen = _observe(rows, [], {}, facts, step)
        return Computed(step, frame, observation=seen, counting=counting, before=shared.metrics, explained=explained)

    def digest(self, frame: DataFrame, columns: Sequence[str]) -> str:
        """The digest of stored rows, as an output has it when it is written."""
        from pyspark.sql import functions as F

        with self._attended():
            hashed = frame.selectExpr(f"{hash_rows(columns)} AS {quote_name(HASH)}")
            sums = digest_columns(quote_name(HASH))
            found = hashed.agg(*(F.expr(sql).alias(name) for name, sql in sums.items())).first()
        return render_digest(found.asDict() if found is not None else {})

    def interrupt(self) -> None:
        """Stop what Spark is doing for us. A Spark that is lost does nothing any more."""
        with suppress(RunFailed), noticing_loss():
            self.spark.interruptAll()


def discard(outputs: Iterable[Computed]) -> tuple[OutputResult, ...]:
    """Compute all rows of outputs, and keep nothing but counts and digests."""
    results = []
    for output in outputs:
        with output.explained():
            output.frame.write.format("noop").mode("overwrite").save()
            results.append(output.finish())
    return tuple(results)


def _observe(
    rows: DataFrame, hidden: Sequence[str], metrics: Mapping[str, str], facts: RunFacts, step: Step
) -> tuple[DataFrame, Observation]:
    """The rows of an output, and the observation that counts and hashes them while they are written."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    write = _write_of(step)
    chosen = render_formula(write.rows.condition, facts) if isinstance(write.rows, Keep) else "TRUE"
    hashed = f"CASE WHEN {chosen} THEN {hash_rows(write.columns)} END"
    names = [quote_name(name) for name in write.columns]
    prepared = rows.selectExpr(*names, *hidden, f"{hashed} AS {quote_name(HASH)}")
    # One observation, below the selection, where Spark cannot see that nothing is chosen and leave it out.
    seen = Observation()
    aggregates = {**metrics, **digest_columns(quote_name(HASH))}
    counted = prepared.observe(seen, *(F.expr(sql).alias(name) for name, sql in aggregates.items()))
    return counted.where(f"{quote_name(HASH)} IS NOT NULL").selectExpr(*names), seen


class _Counting:
    """Row counts of operations, out of one observation of the working dataset when it is written."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.written: dict[int, int] = {}
        self.marks: dict[int, Mark] = {}
        self._numbers: dict[int, Mark] = {}
        for number, step in enumerate(plan.steps):
            selected = step.lowered.selected
            if selected is None or Effect.SELECTS not in step.facts.effect:
                continue
            mark = Mark(number, selected)
            self._numbers[step.spec.seq] = mark
            self.marks[id(step.after.node)] = mark

    def metrics(self, until: Step) -> dict[str, str]:
        """SQL aggregates over the working dataset before an output."""
        seq = quote_name(SEQ)
        found = {"loaded": f"count_if({seq} = 0L)", "active": f"count_if(({quote_name(tracker(0))} & 1L) <> 0L)"}
        for step in self._plan.steps:
            number = step.spec.seq
            if number >= until.spec.seq:
                break
            if mark := self._numbers.get(number):
                found[f"selected_{number}"] = f"count_if(({quote_name(mark.column)} & {mark.bit}L) <> 0L)"
            if step.lowered.added is not None:
                found[f"added_{number}"] = f"count_if({seq} = {number}L)"
        return found

    def counts(self, metrics: Mapping[str, Any]) -> tuple[OperationCounts, ...]:
        """The counts of every operation that an observation has reached."""
        written = self.written
        rows: int | None = metrics.get("loaded")
        counts = []
        for step in self._plan.steps:
            spec, seq, effect = step.spec, step.spec.seq, step.facts.effect
            writes = Effect.WRITES in effect
            reached = seq in written if writes else f"selected_{seq}" in metrics or f"added_{seq}" in metrics
            if not reached or rows is None:
                counts.append(OperationCounts(seq, spec.name, spec.type))
                rows = rows if writes else None
                continue
            added = metrics.get(f"added_{seq}", 0)
            # Without rows of the working dataset to select from, it selects what it adds.
            selected = written[seq] if writes else metrics.get(f"selected_{seq}", added)
            counts.append(
                OperationCounts(
                    seq=seq,
                    name=spec.name,
                    type=spec.type,
                    rows_in=rows,
                    selected=selected,
                    added=added,
                    deleted=selected if Effect.DELETES in effect else 0,
                    rows_out=rows + added,
                )
            )
            rows += added
        return tuple(counts)


def _write_of(step: Step) -> Write:
    if step.lowered.write is None:
        raise AssertionError("only outputs write")
    return step.lowered.write


def _groups(plan: Plan, skip: Collection[int]) -> Iterator[list[Step]]:
    """The outputs that are to be written, those together that write the same working dataset."""
    outputs = [step for step in plan.steps if step.lowered.write is not None and step.spec.seq not in skip]
    for _, group in groupby(outputs, key=lambda step: id(step.before.node)):
        yield list(group)


def _find_host(group: Sequence[Step]) -> Step | None:
    """An output that holds every row and column of the others, so that those need not be computed from the inputs."""
    if len(group) < 2:
        return None
    needed: set[str] = set()
    for step in group:
        write = _write_of(step)
        needed |= set(write.columns)
        if isinstance(write.rows, Keep):
            used = columns_of(write.rows.condition)
            if any(column.qualifier is not None for column in used):
                return None
            needed |= {column.name for column in used}
    for step in group:
        write = _write_of(step)
        if not isinstance(write.rows, Keep) and needed <= set(write.columns):
            return step
    return None


def _how_ids_are_asked_for(plan: Plan) -> dict[str, bool]:
    """Who looks at row ids: outputs that write them, formulas over the working dataset, or over joined rows."""
    looked_at = [
        column.qualifier
        for step in plan.steps
        for node in walk_between(step.top, step.before.node)
        for each in expressions_of(node)
        for column in columns_of(each)
        if column.name == ROW_ID
    ]
    looked_at += [alias for step in plan.steps for alias in _ids_of_matches(step)]
    written = any(step.lowered.write is not None and ROW_ID in step.lowered.write.columns for step in plan.steps)
    return {
        "ids": written or bool(looked_at),
        "late_ids": written and not looked_at,
        "joined_ids": any(qualifier is not None for qualifier in looked_at),
    }


def _ids_of_matches(step: Step) -> Iterator[str | None]:
    """Whose ids the ids of matched rows are made from: those of the rows themselves as None, of joined rows by alias."""
    for node in walk_between(step.top, step.before.node):
        if isinstance(node, AssignIds) and node.rows.schema.joined:
            for name in node.by:
                alias, _, column = name.rpartition(".")
                if column == ROW_ID:
                    yield alias or None


def _find_expression(step: Step, error: Exception, facts: RunFacts) -> str | None:
    """The formula of an operation that failed, as its author wrote it; None where that is not certain."""
    formulas = step.lowered.formulas
    if len(formulas) == 1 and step.spec.selector is None:
        return next(iter(formulas.values())).text
    trees = [(formula.text, formula.tree) for formula in formulas.values()]
    for node in walk_between(step.after.node, step.before.node):
        if isinstance(node, Derive):
            trees += [(formulas[name].text, value) for name, value in node.values.items() if name in formulas]
    fragments = find_fragments(error)
    found = {text for text, tree in trees if any(each in render_formula(tree, facts) for each in fragments)}
    return found.pop() if len(found) == 1 else None


def _is_before(step: Step, until: Step | None) -> bool:
    return until is None or step.spec.seq <= until.spec.seq


def _find_culprit(steps: Sequence[Step], frames: Frames) -> OperationRef | None:
    """The first operation that fails by itself. A look that only a failed run takes, where Spark does not say."""
    for step in steps:
        try:
            frames.make(step.after.node).write.format("noop").mode("overwrite").save()
        except Exception as error:
            if not is_of_spark(error):
                raise
            return step.spec.ref if find_loss(error) is None else None
    return None


def _places(plan: Plan, facts: RunFacts) -> Iterator[ExpressionPlace]:
    """Every expression of every operation as SQL, to find by Spark's report which operation it came from."""
    for step in plan.steps:
        for node in walk_between(step.top, step.before.node):
            for expression in expressions_of(node):
                yield ExpressionPlace(step.spec.ref, render_formula(expression, facts))
