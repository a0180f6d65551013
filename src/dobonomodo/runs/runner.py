"""Executes a run: lease, snapshot, inputs, engine, outputs, record. It sees data, engine and store through small protocols."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from dobonomodo.formula import RunFacts, Type
from dobonomodo.plan import Plan, Step
from dobonomodo.plan.relation import Write
from dobonomodo.problems import Problem, Rejected, RunFailed, render
from dobonomodo.problems.failpoint import reach
from dobonomodo.problems.run import InputChanged, RunCancelled, RunInterrupted
from dobonomodo.problems.store import StoreUnavailable
from dobonomodo.runs.lease import Heartbeat, Pace, hold_lease
from dobonomodo.runs.record import RunView, view_run
from dobonomodo.runs.resume import require_resumable
from dobonomodo.runs.snapshot import Restored
from dobonomodo.runs.state import RunEvent, RunStatus, next_run_status

if TYPE_CHECKING:
    from dobonomodo.store import Lease, Run, Store


RECORD_SECONDS = 60
"""How long a run tries to record its start and its end in a store that is busy or out of reach."""


class Data(Protocol):
    """The rows that a run reads and writes."""

    def hold(self, fence: int) -> None:
        """Work under a fencing number from now on: destinations refuse lower ones than they have seen."""
        ...

    def pin(self) -> Mapping[str, Any]:
        """Find and check what there is to read now; gives it as plain data."""
        ...

    def check(self) -> None:
        """Refuse destinations that cannot take the rows."""
        ...

    def find_changes(self, *, listing: bool) -> tuple[str, ...]:
        """What became of the pinned inputs."""
        ...

    def prepare(self) -> None:
        """Make the pinned inputs ready for the engine again, where they are not."""
        ...

    def find_commit(self, step: Step) -> tuple[int, str] | None:
        """Rows and digest of what an output published, if it did."""
        ...

    def stage(self, frame: Any, write: Write, *, seq: int, columns: Mapping[str, Type]) -> Any:
        """Write rows where nobody reads them."""
        ...

    def reopen(self, staged: Any) -> Any:
        """The rows that were staged."""
        ...

    def publish(self, staged: Any, *, rows: int, digest: str) -> Mapping[str, Any]:
        """Make them what readers find; gives where they are."""
        ...

    def location(self, step: Step) -> Mapping[str, Any]:
        """Where a published output is."""
        ...

    def register(self, step: Step, *, run: str, at: datetime, by: str, lease: Lease) -> int | None:
        """Make a published output a dataset, once and only while the lease is held; gives its version."""
        ...

    def clear(self) -> None:
        """Take away what only an unfinished run needs."""
        ...


class Engine(Protocol):
    """Computes."""

    def run(
        self,
        plan: Plan,
        facts: RunFacts,
        *,
        writer: Any,
        as_of: date | None,
        skip: Collection[int],
        done: Callable[[Sequence[Any], Any], None],
    ) -> Any:
        """Compute every output and hand it to the writer."""
        ...

    def interrupt(self) -> None:
        """Stop computing."""
        ...


class Listener(Protocol):
    """Hears how a run goes."""

    def started(self, run: RunView, plan: Plan) -> None: ...
    def working(self, what: str) -> None: ...
    def output_started(self, step: Step) -> None: ...
    def advanced(self, run: RunView) -> None: ...
    def finished(self, run: RunView) -> None: ...


class Quiet:
    """Hears nothing."""

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


class Runner:
    """Takes runs from their start, or from where they stopped, to their end."""

    def __init__(self, store: Store, *, who: Who, pace: Pace | None = None, listener: Listener | None = None) -> None:
        self._store, self._who, self._pace = store, who, pace or Pace()
        self._listener = listener or Quiet()

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

    # --- the two ways in

    def start(
        self,
        run_id: str,
        planned: Restored,
        data: Data,
        engine: Callable[[], Engine],
        *,
        version: int | None,
        snapshot: Callable[[Mapping[str, Any] | None], Mapping[str, Any]],
        warnings: Sequence[Problem] = (),
        wait: bool = False,
    ) -> RunView:
        """A new run. Everything has been checked; from here on only data and the outside world can be at fault."""
        from dobonomodo.store import Run

        project, period = planned.plan.project.id, planned.facts.period
        with self._hold(project, period, wait=wait) as heart:
            data.hold(heart.lease.fence)
            fault: BaseException | None = None
            inputs: Mapping[str, Any] | None = None
            self._listener.working("reading inputs")
            try:
                data.check()
                inputs = data.pin()
            except (RunFailed, KeyboardInterrupt, SystemExit) as stop:
                fault = stop
            at = self._pace.now()
            progress = {
                "operations": _unreached(planned.plan),
                "outputs": [],
                "attempts": 1,
                "warnings": [render.render_json(problem) for problem in warnings],
            }
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
                progress=progress,
                fence=heart.lease.fence,
            )
            fault = self._put(run, heart) or fault
            reach("run.recorded")
            return self._execute(run, planned, data, engine, heart, fault=fault)

    def _put(self, run: Run, heart: Heartbeat) -> BaseException | None:
        """Record a new run; if it is told to end meanwhile, it is recorded all the same, and that is its fault."""

        def put() -> None:
            if self._store.get_run(run.id) is None:
                self._store.put_run(run, lease=heart.lease)

        try:
            insist(put, pace=self._pace, report=self._listener.working)
        except (KeyboardInterrupt, SystemExit) as stop:
            insist(put, pace=self._pace, report=self._listener.working)
            return stop
        return None

    def resume(
        self, run: Run, planned: Restored, data: Data, engine: Callable[[], Engine], *, wait: bool = False
    ) -> RunView:
        """Continue a run that failed or was killed, from its snapshot."""
        require_resumable(run)
        with self._hold(run.project, run.period, wait=wait) as heart:
            require_resumable(run, self._store.list_runs(project=run.project, period=run.period))
            data.hold(heart.lease.fence)
            changes = data.find_changes(listing=True)
            if changes:
                raise Rejected([InputChanged(changes=changes)])
            progress = {**run.progress, "attempts": run.progress.get("attempts", 1) + 1}
            progress.pop("problems", None)
            changed = self._store.change_run_status(
                run.id,
                before=run.status,
                after=next_run_status(run.status, RunEvent.RESUME, run=run.id),
                at=self._pace.now(),
                progress=progress,
                lease=heart.lease,
            )
            return self._execute(changed, planned, data, engine, heart)

    # --- the way through

    def _execute(
        self,
        run: Run,
        planned: Restored,
        data: Data,
        engine: Callable[[], Engine],
        heart: Heartbeat,
        *,
        fault: BaseException | None = None,
    ) -> RunView:
        execution = _Execution(run, planned, data, heart, self._store, self._pace, self._who, self._listener)
        self._listener.started(view_run(run), planned.plan)
        try:
            if fault is not None:
                raise fault
            execution.perform(engine)
        except RunFailed as failed:
            return execution.fail(failed.problem, cause=failed)
        except KeyboardInterrupt as interrupt:
            execution.fail(RunInterrupted(run=run.id), cause=interrupt)
            raise
        except BaseException as bug:
            execution.fail(RunInterrupted(run=run.id, reason=f"{type(bug).__name__}: {bug}"), cause=bug)
            raise
        return execution.complete()


class _Execution:
    """One attempt at a run. It is also the writer that the engine hands its outputs to."""

    def __init__(
        self,
        run: Run,
        planned: Restored,
        data: Data,
        heart: Heartbeat,
        store: Store,
        pace: Pace,
        who: Who,
        listener: Listener,
    ) -> None:
        self._run, self._planned, self._data, self._heart = run, planned, data, heart
        heart.run_id = run.id
        self._store, self._pace, self._who, self._listener = store, pace, who, listener
        self._steps = {step.spec.seq: step for step in planned.plan.steps}
        self._began = pace.monotonic()
        self._before = int(run.progress.get("milliseconds", 0))

    def perform(self, engine: Callable[[], Engine]) -> None:
        """Everything from the inputs to the last output."""
        self._data.prepare()
        reach("input.pinned")
        finished = {output["seq"] for output in self._run.progress.get("outputs", ())}
        for step in self._planned.plan.steps:
            if step.lowered.write is not None and step.spec.seq not in finished:
                self._take_up(step, finished)
        if all(step.lowered.write is None or step.spec.seq in finished for step in self._planned.plan.steps):
            return
        self._listener.working("starting Spark")
        self._heart.engine = engine()
        self._listener.working("computing")
        try:
            self._heart.engine.run(
                self._planned.plan,
                self._planned.facts,
                writer=self,
                as_of=self._planned.as_of,
                skip=finished,
                done=self._done,
            )
        except RunFailed:
            self._check_alive()
            raise

    def _take_up(self, step: Step, finished: set[int]) -> None:
        """An output may be published and not recorded, if the run was killed in between: then it is not written again."""
        commit = self._data.find_commit(step)
        if commit is None:
            return
        rows, digest = commit
        self._record(step, rows=rows, digest=digest, location=self._data.location(step), milliseconds=0)
        finished.add(step.spec.seq)

    # --- the engine's writer

    def stage(self, frame: Any, write: Write, *, seq: int, columns: Mapping[str, Type]) -> Any:
        """Write rows where nobody reads them."""
        self._check_alive()
        self._listener.output_started(self._steps[seq])
        return self._data.stage(frame, write, seq=seq, columns=columns)

    def reopen(self, staged: Any) -> Any:
        """The rows that were staged, to take another output from."""
        return self._data.reopen(staged)

    def publish(self, staged: Any, *, rows: int, digest: str) -> Mapping[str, Any]:
        """Publish, if the run is still the one that may, and its inputs are still what they were."""

        changes = self._data.find_changes(listing=False)
        if changes:
            raise RunFailed(InputChanged(changes=changes))
        self._check_alive()
        self._store.check_lease(self._heart.lease)
        return self._data.publish(staged, rows=rows, digest=digest)

    def _done(self, counts: Sequence[Any], result: Any) -> None:
        step = self._steps[result.seq]
        self._record(
            step,
            rows=result.rows,
            digest=result.digest,
            location=result.details,
            milliseconds=int(result.seconds * 1000),
            counts=counts,
        )

    # --- the record

    def _record(
        self,
        step: Step,
        *,
        rows: int,
        digest: str,
        location: Mapping[str, Any],
        milliseconds: int,
        counts: Sequence[Any] = (),
    ) -> None:
        write = step.lowered.write
        if write is None:
            return
        # Drafts register elsewhere, where nobody knows the lease.
        self._store.check_lease(self._heart.lease)
        number = self._data.register(
            step, run=self._run.id, at=self._pace.now(), by=self._who.name, lease=self._heart.lease
        )
        reach("output.registered")
        output = {
            "seq": step.spec.seq,
            "table": write.destination.name,
            "destination": str(write.destination),
            "rows": rows,
            "digest": digest,
            "dataset_id": write.register_as,
            "dataset_version": number,
            "milliseconds": milliseconds,
            # A list, since databases keep no order of keys.
            "columns": [[name, str(step.before.columns[name])] for name in write.columns],
            "location": dict(location),
        }
        progress = dict(self._run.progress)
        progress["outputs"] = [*progress.get("outputs", ()), output]
        progress["operations"] = _merge_counts(progress["operations"], counts, output)
        progress["last_completed_operation"] = step.spec.seq
        self._change(RunEvent.ADVANCE, progress)
        reach("output.recorded")
        self._listener.advanced(view_run(self._run))

    def complete(self) -> RunView:
        """The run is done."""
        reach("run.finishing")
        seqs = [step.spec.seq for step in self._planned.plan.steps]
        progress = {**self._run.progress, "last_completed_operation": seqs[-1] if seqs else None}
        insist(partial(self._change, RunEvent.COMPLETE, progress), pace=self._pace, report=self._listener.working)
        self._data.clear()
        reach("run.finished")
        return self._finish()

    def fail(self, problem: Problem, *, cause: BaseException) -> RunView:
        """The run stops here; what was published stays, and a resumed run goes on from there."""
        if isinstance(problem, RunCancelled):
            found = self._store.get_run(self._run.id)
            self._run = found or self._run
            return self._finish()
        retry = isinstance(cause, RunFailed) and cause.retry_helps
        described = {**render.render_json(problem), "retry_helps": retry}
        progress = {**self._run.progress, "problems": [described]}
        try:
            insist(partial(self._change, RunEvent.FAIL, progress), pace=self._pace, report=self._listener.working)
        except (Rejected, RunFailed):
            found = self._quietly_find()
            if found is not None and found.fence == self._heart.lease.fence and found.status != RunStatus.RUNNING:
                # Somebody cancelled the run; their record stands.
                self._run = found
            else:
                # A later attempt owns the record, or the store is out of reach. This one failed all the same.
                self._run = replace(self._run, status=RunStatus.FAILED, progress=progress)
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

    def _change(self, event: RunEvent, progress: Mapping[str, Any]) -> None:
        """Record a change. Whoever lost the lease may still say that the run failed, unless it was taken up again."""
        spent = self._before + int((self._pace.monotonic() - self._began) * 1000)
        self._run = self._store.change_run_status(
            self._run.id,
            before=self._run.status,
            after=next_run_status(self._run.status, event, run=self._run.id),
            at=self._pace.now(),
            progress={**progress, "milliseconds": spent},
            fence=self._heart.lease.fence,
            lease=None if event is RunEvent.FAIL else self._heart.lease,
        )

    # --- staying alive

    def _check_alive(self) -> None:
        self._heart.check()
        found = self._store.get_run(self._run.id)
        if found is not None and found.status == RunStatus.CANCELLED:
            raise RunFailed(RunCancelled(run=self._run.id))


def insist(change: Callable[[], None], *, pace: Pace, report: Callable[[str], None]) -> None:
    """Change the store, and try again while it is busy: what a run does not record here, nobody will."""
    until = pace.monotonic() + RECORD_SECONDS
    while True:
        try:
            return change()
        except RunFailed as fault:
            if not isinstance(fault.problem, StoreUnavailable) or not fault.retry_helps or pace.monotonic() >= until:
                raise
        report("waiting for the store")
        pace.sleep(0.5)


def _unreached(plan: Plan) -> list[dict[str, Any]]:
    return [{"seq": step.spec.seq, "name": step.spec.name, "type": step.spec.type} for step in plan.steps]


def _merge_counts(
    known: Sequence[Mapping[str, Any]], counts: Sequence[Any], output: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The operations with what a look at the rows has newly found out about them."""
    found = {each.seq: each for each in counts if each.rows_in is not None}
    merged = []
    for operation in known:
        entry = dict(operation)
        if (each := found.get(operation["seq"])) is not None:
            entry |= {name: getattr(each, name) for name in ("rows_in", "selected", "added", "deleted", "rows_out")}
        if operation["seq"] == output["seq"]:
            entry |= {"selected": output["rows"], "milliseconds": output["milliseconds"]}
        merged.append(entry)
    return merged


def cancel_run(store: Store, run: Run, *, at: datetime) -> RunView:
    """Have a run stop as soon as it notices; one that is not at work any more is cancelled at once."""
    after = next_run_status(run.status, RunEvent.CANCEL, run=run.id)
    return view_run(store.change_run_status(run.id, before=run.status, after=after, at=at))
