"""The life of a run: lease, inputs, staged outputs, one publication, record.

Data, engine and store are seen through protocols.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from dobonomodo.failpoint import reach
from dobonomodo.formula import Type
from dobonomodo.model.plain import Document
from dobonomodo.plan import DatasetUse, Plan, Step
from dobonomodo.plan.check import CheckResult, find_stop
from dobonomodo.plan.counts import JoinCounts, Measures, OperationCounts, UnmatchedKey
from dobonomodo.plan.digest import is_same_digest
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.ordering import order_of, shown_columns
from dobonomodo.plan.reading import check_unfiltered
from dobonomodo.problems import Problem, Rejected, RunFailed
from dobonomodo.problems.recorded import record_problem
from dobonomodo.problems.run import CancelRefused, InputChanged, RunCancelled, RunInterrupted
from dobonomodo.problems.store import StoreUnavailable
from dobonomodo.runs.figures import UNMATCHED_KEYS, Figures, FirstRows, OutputFigures
from dobonomodo.runs.lease import Heartbeat, Pace, hold_lease
from dobonomodo.runs.progress import Progress, PublishedOutput, StagedOutput
from dobonomodo.runs.record import RunView, view_run
from dobonomodo.runs.resume import require_resumable
from dobonomodo.runs.snapshot import RunSpec
from dobonomodo.runs.state import RunEvent, RunStatus, next_run_status
from dobonomodo.storage import Noted

if TYPE_CHECKING:
    from dobonomodo.storage import InputHashes, Pinned, StagedRows, Stored
    from dobonomodo.store import Lease, Override, Run, Store

DataFrame = Any
"""A frame of the engine, which only the engine and the storages know."""


RECORD_SECONDS = 60
"""How long a run tries to record its start and its end in a store that is busy or out of reach."""


class Counted(Protocol):
    """The metrics of a written output."""

    @property
    def rows(self) -> int: ...
    @property
    def digest(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def checks(self) -> Sequence[CheckResult]:
        """The checks that were evaluated with it."""
        ...

    @property
    def operations(self) -> Sequence[OperationCounts]: ...
    @property
    def measures(self) -> Measures | None: ...


class SharedFiles(Protocol):
    """Files of another output, of some of its parts, that hold the rows of an output."""

    @property
    def seq(self) -> int: ...
    @property
    def parts(self) -> Collection[int]: ...


class Computed(Protocol):
    """An output that the engine has ready: its frame is written once, within ``explained``, and then it is finished."""

    @property
    def step(self) -> Step: ...
    @property
    def frame(self) -> DataFrame: ...
    @property
    def columns(self) -> Mapping[str, Type]: ...
    @property
    def divided_by(self) -> str | None:
        """The column of the frame that is not written, but divides the rows into files."""
        ...

    @property
    def shared(self) -> SharedFiles | None:
        """The files that already hold its rows; None if they have to be written."""
        ...

    @property
    def explained(self) -> Callable[[], AbstractContextManager[None]]:
        """Turns what the engine raises into ``RunFailed``."""
        ...

    def finish(self, written: Callable[[int | None], Any] | None = None) -> Counted:
        """Record that all rows are written; ``written`` reads them again."""
        ...

    def find_unmatched(self, join: JoinCounts, *, at_most: int) -> tuple[UnmatchedKey, ...]:
        """The most frequent keys without a match in a join."""
        ...


class Engine(Protocol):
    """Computes."""

    def outputs(
        self, plan: Plan, facts: RunFacts, *, as_of: date | None, skip: Collection[int], figures: bool, digests: bool
    ) -> Iterator[Computed]:
        """The outputs of a plan, one after the other; with ``figures``, totals and matches are measured.

        With ``digests``, this includes the digests of columns.
        """
        ...

    def contracts(self, plan: Plan, facts: RunFacts, *, as_of: date | None) -> Sequence[CheckResult]:
        """Evaluate the checks that are defined on the datasets which a plan reads."""
        ...

    def checks(
        self, plan: Plan, facts: RunFacts, *, as_of: date | None, skip: Collection[int]
    ) -> Sequence[CheckResult]:
        """The checks that no output has evaluated."""
        ...

    def stored_columns(self, use: DatasetUse) -> Collection[str]:
        """The columns with which the rows of a reading are stored; none if it was not read."""
        ...

    def digest(self, frame: DataFrame, columns: Sequence[str]) -> str:
        """The digest of rows that are written."""
        ...

    def interrupt(self) -> None:
        """Stop computing."""
        ...


class Data(Protocol):
    """The rows that a run reads and writes. Outputs are known by the numbers of their operations."""

    def hold(self, fence: int) -> None:
        """Work under a fencing number from now on: destinations refuse lower ones than they have seen."""
        ...

    def check(self) -> None:
        """Refuse destinations that cannot take the rows."""
        ...

    def pin(self) -> Pinned:
        """Find, check and pin the current inputs."""
        ...

    def find_changes(self, *, listing: bool) -> tuple[str, ...]:
        """Changes to the pinned inputs."""
        ...

    def prepare(self) -> None:
        """Extract the pinned inputs again, if they are missing."""
        ...

    def start_hashing(self) -> None:
        """Start to hash the pinned inputs in parallel with the engine, and to copy those that must be kept."""
        ...

    def hash_inputs(self) -> InputHashes:
        """The hashes of the pinned inputs, once all are known."""
        ...

    def stage(self, output: Computed) -> StagedRows:
        """Let the engine write the rows of an output to staging; returns the place."""
        ...

    def reopen(self, seq: int, staged: StagedRows, *, part: int | None = None) -> DataFrame | None:
        """The rows that were staged, or one part of them, to be read again; None if there is no file with any."""
        ...

    def first_rows(self, seq: int, staged: StagedRows, columns: Sequence[str], *, order: Sequence[str]) -> FirstRows:
        """The first of the rows that were staged, in the order of some columns."""
        ...

    def convert(self, output: StagedOutput) -> StagedRows:
        """Verify the number of rows, and convert them to the format of the destination; returns the place."""
        ...

    def claim(self, outputs: Sequence[StagedOutput]) -> None:
        """Refuse to go on if a destination has seen a later run; otherwise, earlier runs are refused from now on."""
        ...

    def publish(self, outputs: Sequence[StagedOutput], *, head: Noted, of_failed_run: bool) -> None:
        """Publish outputs, each once: all outputs of one place atomically.

        The destinations record the head of the history, and whether it is the quarantine of a run that a check stopped.
        """
        ...

    def find_commit(self, seq: int) -> tuple[int, str] | None:
        """Rows and digest of what an output published, if it did."""
        ...

    def stored(self, seq: int) -> Stored:
        """Where a published output is."""
        ...

    def register(self, seq: int, *, run: str, at: datetime, by: str, lease: Lease) -> int | None:
        """Register a published output as a dataset, once and only while the lease is held; returns its version."""
        ...

    def clear(self) -> None:
        """Remove what only an unfinished run needs."""
        ...


class Listener(Protocol):
    """Receives the events of a run."""

    def started(self, run: RunView, plan: Plan) -> None: ...
    def working(self, what: str) -> None: ...
    def output_started(self, step: Step) -> None: ...
    def advanced(self, run: RunView) -> None: ...
    def finished(self, run: RunView) -> None: ...


class Quiet:
    """A listener that does nothing."""

    def started(self, run: RunView, plan: Plan) -> None:
        """Nothing."""

    def working(self, what: str) -> None:
        """Nothing."""

    def output_started(self, step: Step) -> None:
        """Nothing."""

    def advanced(self, run: RunView) -> None:
        """Nothing."""

    def finished(self, run: RunView) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class Who:
    """Who runs: a name for the record, and one that tells people which process holds a lease."""

    name: str
    holder: str


OpenEngine = Callable[[], Engine]
OpenData = Callable[["Run"], tuple[RunSpec, Data]]


class Runner:
    """Takes runs from their start, or from where they stopped, to their end."""

    def __init__(
        self,
        store: Store,
        *,
        who: Who,
        open_data: OpenData,
        pace: Pace | None = None,
        listener: Listener | None = None,
    ) -> None:
        self._store, self._who, self._open_data, self._pace = store, who, open_data, pace or Pace()
        self._listener = listener or Quiet()

    def start(
        self,
        run_id: str,
        spec: RunSpec,
        data: Data,
        engine: OpenEngine,
        *,
        version: int | None,
        snapshot: Callable[[Pinned | None], Document],
        warnings: Sequence[Problem] = (),
        override: Override | None = None,
        wait: bool = False,
        figures: bool = False,
        digests: bool = False,
    ) -> RunView:
        """A new run. Everything has been checked; from here on only data and outside systems can fail.

        A period that was closed meanwhile is refused when the run is recorded.
        """
        from dobonomodo.store import Run

        project, period = spec.plan.project.id, spec.facts.period
        with self._hold(project, period, wait=wait) as heart:
            self._complete_intents(project, period, heart)
            data.hold(heart.lease.fence)
            self._listener.working("reading inputs")
            inputs, fault = _pin(data)
            at = self._pace.now()
            said = [problem.to_dict() for problem in warnings]
            progress = Progress.begin(spec.plan, warnings=said, figures=figures, digests=digests)
            run = Run(
                id=run_id,
                project=project,
                version=version,
                period=period,
                status=RunStatus.RUNNING,
                by=self._who.name,
                created_at=at,
                updated_at=at,
                snapshot=snapshot(inputs),
                progress=progress.document(),
                fence=heart.lease.fence,
            )
            fault = self._put(run, heart, override) or fault
            reach("run.recorded")
            return self._attempt(run, spec, data, heart).run(engine, fault=fault)

    def _put(self, run: Run, heart: Heartbeat, override: Override | None) -> BaseException | None:
        """Record a new run, even if it is interrupted meanwhile; returns the interrupt."""

        def put() -> None:
            if self._store.get_run(run.id) is None:
                self._store.put_run(run, lease=heart.lease, override=override)

        try:
            insist(put, pace=self._pace, report=self._listener.working)
        except (KeyboardInterrupt, SystemExit) as stop:
            insist(put, pace=self._pace, report=self._listener.working)
            return stop
        return None

    def resume(self, run: Run, spec: RunSpec, data: Data, engine: OpenEngine, *, wait: bool = False) -> RunView:
        """Continue a run that failed or was killed, from its snapshot."""
        require_resumable(run)
        with self._hold(run.project, run.period, wait=wait) as heart:
            self._complete_intents(run.project, run.period, heart, but=run.id)
            require_resumable(run, self._store.list_runs(project=run.project, period=run.period))
            data.hold(heart.lease.fence)
            progress = Progress.load(run.progress)
            if progress.intent is None:
                # Nobody closes the period while the lease is held.
                self._store.check_period(run.period, overridden=run.snapshot.get("override") is not None)
            if progress.intent is None and (changes := data.find_changes(listing=True)):
                raise Rejected([InputChanged(changes=changes)])
            changed = self._store.change_run_status(
                run.id,
                before=run.status,
                after=next_run_status(run.status, RunEvent.RESUME, run=run.id),
                at=self._pace.now(),
                by=self._who.name,
                progress=replace(progress, attempts=progress.attempts + 1, problems=()).document(),
                lease=heart.lease,
            )
            return self._attempt(changed, spec, data, heart).run(engine)

    def _hold(self, project: str, period: str, *, wait: bool) -> AbstractContextManager[Heartbeat]:
        return hold_lease(
            self._store,
            project,
            period,
            holder=self._who.holder,
            pace=self._pace,
            wait=wait,
            report=self._listener.working,
        )

    def _complete_intents(self, project: str, period: str, heart: Heartbeat, *, but: str | None = None) -> None:
        """Complete the publication of a killed run: some of its outputs may already be published. Needs no engine."""
        # A run that completed has published everything. There may be many of them, each with a long record.
        unfinished = (
            run
            for status in (RunStatus.RUNNING, RunStatus.FAILED)
            for run in self._store.list_runs(project=project, period=period, status=status)
        )
        for run in unfinished:
            if run.id != but and Progress.load(run.progress).intent is not None:
                self._listener.working(f"completing the publication of run {run.id}")
                spec, data = self._open_data(run)
                data.hold(heart.lease.fence)
                self._attempt(run, spec, data, heart, of_other=True).complete_intent()

    def _attempt(self, run: Run, spec: RunSpec, data: Data, heart: Heartbeat, *, of_other: bool = False) -> _Attempt:
        return _Attempt(run, spec, data, heart, self._store, self._pace, self._who, self._listener, of_other=of_other)


def _pin(data: Data) -> tuple[Pinned | None, BaseException | None]:
    """The pinned inputs, or the failure, which is recorded with the run."""
    try:
        data.check()
        return data.pin(), None
    except (RunFailed, KeyboardInterrupt, SystemExit) as stop:
        return None, stop


class _Attempt:
    """One attempt at a run."""

    def __init__(
        self,
        run: Run,
        spec: RunSpec,
        data: Data,
        heart: Heartbeat,
        store: Store,
        pace: Pace,
        who: Who,
        listener: Listener,
        *,
        of_other: bool,
    ) -> None:
        self._run, self._spec, self._data, self._heart = run, spec, data, heart
        self._store, self._pace, self._who, self._listener = store, pace, who, listener
        self._of_other = of_other
        self._progress = Progress.load(run.progress)
        self._steps = {step.spec.seq: step for step in spec.plan.steps if step.lowered.write is not None}
        self._checks = {step.spec.seq: step for step in spec.plan.steps if step.lowered.check is not None}
        self._began = pace.monotonic()
        self._before = self._progress.milliseconds
        if not of_other:
            heart.run_id = run.id

    def run(self, engine: OpenEngine, *, fault: BaseException | None = None) -> RunView:
        """Run the whole attempt; any failure is recorded."""
        self._listener.started(view_run(self._run), self._spec.plan)
        try:
            if fault is not None:
                raise fault
            self._perform(engine)
        except RunFailed as failed:
            return self._fail(failed.problem, *failed.others)
        except KeyboardInterrupt:
            self._fail(RunInterrupted(run=self._run.id))
            raise
        except BaseException as bug:
            self._fail(RunInterrupted(run=self._run.id, reason=f"{type(bug).__name__}: {bug}"))
            raise
        return self._complete()

    def _perform(self, engine: OpenEngine) -> None:
        """From the inputs to the last publication."""
        if self._progress.intent is not None:
            self._carry_out()
        self._adopt()
        if self._missing() or self._unchecked():
            self._data.prepare()
            reach("input.pinned")
            self._data.start_hashing()
            self._compute(engine)
        reach("checks.evaluated")
        self._judge()
        reach("checks.passed")
        self._publish(self._progress.staged)

    def _compute(self, engine: OpenEngine) -> None:
        """Stage every output that is not staged or published yet."""
        self._listener.working("starting Spark")
        opened = self._heart.engine = engine()
        self._listener.working("computing")
        self._drop_unverified(opened)
        done = self._progress.published | {output.seq for output in self._progress.staged}
        facts, as_of = self._spec.facts, self._spec.as_of
        if self._unmet():
            found = opened.contracts(self._spec.plan, facts, as_of=as_of)
            self._advance(self._progress.with_checks(self._compared(found)))
            self._judge()
        for output in self._outputs_of(opened, facts, as_of, done):
            self._stage(output)
            self._warn(opened)
            if self._spec.plan.project.publish == "as_done":
                self._judge(until=output.step.spec.seq)
                self._publish(self._progress.staged)
        if self._unchecked():
            known = set(self._checks) - self._unchecked()
            results = opened.checks(self._spec.plan, facts, as_of=as_of, skip=known)
            self._advance(self._progress.with_checks(results))

    def _outputs_of(
        self, engine: Engine, facts: RunFacts, as_of: date | None, done: Collection[int]
    ) -> Iterator[Computed]:
        """The outputs of the engine; a job that was cancelled because the run may not go on is not reported as an engine failure."""
        try:
            figures, digests = self._progress.figures is not None, self._has_digests()
            plan = self._spec.plan
            yield from engine.outputs(plan, facts, as_of=as_of, skip=done, figures=figures, digests=digests)
        except RunFailed:
            self._check_alive()
            raise

    def _has_digests(self) -> bool:
        return self._progress.figures is not None and self._progress.figures.with_digests

    def _stage(self, output: Computed) -> None:
        """Write, verify and convert one output."""
        step = output.step
        self._check_alive()
        self._listener.output_started(step)
        try:
            with output.explained():
                place = self._data.stage(output)
                counted = output.finish(lambda part: self._data.reopen(step.spec.seq, place, part=part))
                figures = self._find_figures(output, counted, place)
                milliseconds = int(counted.seconds * 1000)
                staged = StagedOutput(step.spec.seq, counted.rows, counted.digest, milliseconds, place)
                staged = replace(staged, place=self._data.convert(staged))
        except RunFailed:
            self._check_alive()
            raise
        progress = self._progress.with_staged(staged, counted.operations, figures)
        self._advance(progress.with_checks(counted.checks))
        reach("output.ready")
        self._listener.advanced(view_run(self._run))

    def _find_figures(self, output: Computed, counted: Counted, place: StagedRows) -> Figures | None:
        """What was measured of an output, with its first rows, and the keys of joins that found no match."""
        if counted.measures is None:
            return None
        step, measures = output.step, counted.measures
        write = step.write
        columns = [write.written_name(name) for name in shown_columns(step)]
        order = [write.written_name(name) for name in order_of(self._spec.plan, step)]
        first = self._data.first_rows(step.spec.seq, place, columns, order=order)
        destination = step.write.destination
        figures = OutputFigures(
            step.spec.seq,
            destination.name,
            str(destination),
            counted.rows,
            measures.totals,
            first,
            measures.digests,
            measures.kinds,
        )
        joins = tuple(self._with_keys(join, output) for join in measures.joins)
        return Figures.of_output(figures, replace(measures, joins=joins))

    def _with_keys(self, join: JoinCounts, output: Computed) -> JoinCounts:
        """A join with its unmatched keys, which are computed once per run."""
        known = self._progress.figures.joins if self._progress.figures is not None else ()
        if not join.unmatched or any((each.seq, each.alias) == (join.seq, join.alias) for each in known):
            return join
        return replace(join, most_frequent=output.find_unmatched(join, at_most=UNMATCHED_KEYS))

    def _warn(self, engine: Engine) -> None:
        """Record what is known of the inputs since they are read."""
        found = check_unfiltered(self._spec.plan, engine.stored_columns)
        progress = self._progress.with_warnings([problem.to_dict() for problem in found])
        if progress is not self._progress:
            self._advance(progress)

    # --- checks

    def _unchecked(self) -> set[int]:
        """The checks that were not evaluated yet."""
        done = {(each.seq, each.name) for each in self._progress.checks}
        return {seq for seq, step in self._checks.items() if (seq, step.spec.name) not in done}

    def _unmet(self) -> bool:
        """Whether contracts of datasets were not evaluated yet."""
        done = {(each.seq, each.name) for each in self._progress.checks}
        return any((each.seq, each.name) not in done for each in self._spec.plan.contracts)

    def _compared(self, results: Iterable[CheckResult]) -> list[CheckResult]:
        """Results that depend on the previous period, judged by the newest run of it that completed."""
        before = self._spec.facts.period_start - timedelta(days=1)
        runs = self._store.list_runs(project=self._run.project, status=RunStatus.COMPLETED)
        ended = (run for run in runs if run.snapshot["period"]["end_date"] == before.isoformat())
        newest = next(ended, None)
        known = {each.name: each for each in Progress.load(newest.progress).checks} if newest is not None else {}
        return [each.against(known.get(each.name)) for each in results]

    def _judge(self, *, until: int | None = None) -> None:
        """Raise if a check stops the run; with ``until``, one before that operation. Only quarantines are published then."""
        published = [output.table for output in self._progress.outputs]
        stop = find_stop(self._progress.checks, until=until, published=published)
        if stop is not None:
            self._publish([output for output in self._progress.staged if output.seq in self._checks])
            raise stop

    # --- publishing

    def _publish(self, outputs: Sequence[StagedOutput]) -> None:
        """Publish all outputs: claim, record the intent, publish, record.

        Before the intent nothing is published, after it everything.
        """
        if not outputs:
            return
        # The hashes first: files that are as they were pinned after that are the files that were hashed.
        inputs = self._data.hash_inputs()
        if changes := self._data.find_changes(listing=False):
            raise RunFailed(InputChanged(changes=changes))
        self._check_alive()
        self._listener.working("publishing")
        self._data.claim(outputs)
        reach("publish.claimed")
        self._advance(replace(self._progress, intent=tuple(output.seq for output in outputs), inputs=inputs))
        reach("publish.intended")
        self._carry_out()

    def _carry_out(self) -> None:
        """Publish the intended outputs. Repeated after a kill, it continues where it stopped."""
        outputs = self._progress.intended
        is_quarantine = all(output.seq in self._checks for output in outputs)
        of_failed_run = is_quarantine and find_stop(self._progress.checks) is not None
        head = Noted(self._store.id, *self._store.head())
        self._data.publish(outputs, head=head, of_failed_run=of_failed_run)
        # Drafts register in a store of their own, which knows no leases.
        self._store.check_lease(self._heart.lease)
        published = [self._register(output.seq, output.rows, output.digest, output.milliseconds) for output in outputs]
        reach("output.registered")
        progress = self._progress.with_published(published)
        # The intent stays until the run is recorded as complete: a run that has published everything cannot be cancelled.
        is_last = progress.published >= set(self._steps)
        self._advance(replace(progress, intent=()) if is_last else progress)
        reach("output.recorded")
        self._listener.advanced(view_run(self._run))

    def _register(self, seq: int, rows: int, digest: str, milliseconds: int) -> PublishedOutput:
        step = self._steps[seq]
        write = step.lowered.write
        if write is None:
            raise AssertionError("only outputs write")
        at, by, lease = self._pace.now(), self._who.name, self._heart.lease
        return PublishedOutput(
            seq=seq,
            table=write.destination.name,
            destination=str(write.destination),
            rows=rows,
            digest=digest,
            dataset_id=write.register_as,
            dataset_version=self._data.register(seq, run=self._run.id, at=at, by=by, lease=lease),
            milliseconds=milliseconds,
            columns={name: str(kind) for name, kind in write.written_types(step.before.columns).items()},
            location=self._data.stored(seq),
        )

    def complete_intent(self) -> None:
        """Carry out the intent of a run that was killed, for the run that comes next."""
        self._carry_out()
        if not self._missing():
            self._change(RunEvent.COMPLETE, replace(self._progress, intent=None))
            self._data.clear()

    # --- what earlier attempts did

    def _missing(self) -> set[int]:
        """The outputs that are not published."""
        return set(self._steps) - self._progress.published

    def _adopt(self) -> None:
        """Record outputs that are published and not recorded: versions before this one published without an intent."""
        staged = {output.seq for output in self._progress.staged}
        found = []
        for seq in sorted(self._missing() - staged):
            if (commit := self._data.find_commit(seq)) is not None:
                found.append(self._register(seq, *commit, 0))
        if found:
            self._advance(self._progress.with_published(found))

    def _drop_unverified(self, engine: Engine) -> None:
        """Outputs that an earlier attempt staged are used again if their rows are what was recorded."""
        kept = []
        for output in self._progress.staged:
            step = self._steps[output.seq]
            frame = self._data.reopen(output.seq, output.place)
            columns = [step.write.written_name(name) for name in step.write.columns]
            if frame is not None and is_same_digest(engine.digest(frame, columns), output.digest):
                kept.append(replace(output, place=self._data.convert(output)))
        if self._progress.staged:
            self._advance(self._progress.with_kept(kept))

    # --- the record

    def _complete(self) -> RunView:
        reach("run.finishing")
        seqs = [step.spec.seq for step in self._spec.plan.steps]
        progress = replace(self._progress, intent=None, last_completed_operation=seqs[-1] if seqs else None)
        self._insist(RunEvent.COMPLETE, progress)
        self._data.clear()
        reach("run.finished")
        return self._finish()

    def _fail(self, problem: Problem, *others: Problem) -> RunView:
        """The run stops here; a resumed run goes on from what is staged."""
        if isinstance(problem, RunCancelled):
            self._run = self._store.get_run(self._run.id) or self._run
            return self._finish()
        progress = replace(self._progress, problems=tuple(map(record_problem, (problem, *others))))
        try:
            self._insist(RunEvent.FAIL, progress)
        except (Rejected, RunFailed):
            found = self._quietly_find()
            if found is not None and found.fence == self._heart.lease.fence and found.status != RunStatus.RUNNING:
                # Somebody cancelled the run; their record is kept.
                self._run = found
            else:
                # A later attempt owns the record, or the store is out of reach. This one failed in any case.
                self._run = replace(self._run, status=RunStatus.FAILED, progress=progress.document())
        return self._finish()

    def _quietly_find(self) -> Run | None:
        try:
            return self._store.get_run(self._run.id)
        except RunFailed:
            return None

    def _finish(self) -> RunView:
        view = view_run(self._run)
        self._listener.finished(view)
        return view

    def _insist(self, event: RunEvent, progress: Progress) -> None:
        insist(partial(self._change, event, progress), pace=self._pace, report=self._listener.working)

    def _advance(self, progress: Progress) -> None:
        try:
            self._change(RunEvent.ADVANCE, progress)
        except Rejected:
            # Somebody cancelled the run, or took it up again.
            self._check_alive()
            raise

    def _change(self, event: RunEvent, progress: Progress) -> None:
        """Record a change. Whoever lost the lease may still say that the run failed, unless it was taken up again."""
        if self._of_other:
            self._store.check_lease(self._heart.lease)
        spent = self._before + int((self._pace.monotonic() - self._began) * 1000)
        self._progress = progress if self._of_other else replace(progress, milliseconds=spent)
        self._run = self._store.change_run_status(
            self._run.id,
            before=self._run.status,
            after=next_run_status(self._run.status, event, run=self._run.id),
            at=self._pace.now(),
            by=self._who.name,
            progress=self._progress.document(),
            fence=self._run.fence if self._of_other else self._heart.lease.fence,
            lease=None if event is RunEvent.FAIL or self._of_other else self._heart.lease,
        )

    def _check_alive(self) -> None:
        """Raise if the run may not go on: its lease is lost, or it was cancelled."""
        self._heart.check()
        self._store.check_lease(self._heart.lease)
        found = self._store.get_run(self._run.id)
        if found is not None and found.status == RunStatus.CANCELLED:
            raise RunFailed(RunCancelled(run=self._run.id))


def insist(change: Callable[[], None], *, pace: Pace, report: Callable[[str], None]) -> None:
    """Change the store, and retry while it is busy: a change that is not recorded here is lost."""
    until = pace.monotonic() + RECORD_SECONDS
    while True:
        try:
            return change()
        except RunFailed as fault:
            if not isinstance(fault.problem, StoreUnavailable) or not fault.retry_helps or pace.monotonic() >= until:
                raise
        report("waiting for the store")
        pace.sleep(0.5)


def cancel_run(store: Store, run: Run, *, at: datetime, by: str) -> RunView:
    """Request that a run stops; a run that is no longer running is cancelled at once. A run that publishes cannot be cancelled:

    the record is changed only if it is still the one that was read.
    """
    while True:
        after = next_run_status(run.status, RunEvent.CANCEL, run=run.id)
        if Progress.load(run.progress).intent is not None:
            raise Rejected([CancelRefused(run=run.id)])
        changed = store.change_run_if_same(run, status=after, at=at, by=by)
        if changed is not None:
            return view_run(changed)
        run = store.get_run(run.id) or run
