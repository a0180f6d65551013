"""Execution: connects a planned run with its data, Spark and store, and passes it to the runner, which owns the life of a run."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.engine.faults import noticing_loss
from dobonomodo.model.plain import Document
from dobonomodo.problems import Rejected, RunFailed
from dobonomodo.problems.package import require_modules
from dobonomodo.runs import Runner, RunSpec, restore_snapshot, take_snapshot
from dobonomodo.runs.holder import describe_holder
from dobonomodo.runs.lease import Pace
from dobonomodo.runs.resume import require_resumable
from dobonomodo.runs.runner import Quiet, Who
from dobonomodo.storage import Storages, find_storage
from dobonomodo.storage.executors import Executors, Limits
from dobonomodo.storage.transport import modules_of
from dobonomodo.workspace.cleaning import Cleaning, has_leftovers
from dobonomodo.workspace.running import Computing, RunData, new_run_id
from dobonomodo.workspace.session import SparkChoice
from dobonomodo.workspace.stamp import now, who

if TYPE_CHECKING:
    from dobonomodo.runs import Listener, RunView
    from dobonomodo.storage import Pinned, Session
    from dobonomodo.store import Override, Run
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.planning import PlannedRun
    from dobonomodo.workspace.stores import Stores

LEASE_VARIABLE = "DOBO_LEASE_SECONDS"
"""For tests: how long a lease lasts that is not renewed."""
LIMIT_VARIABLE = "DOBO_EXECUTORS_ABOVE"
"""For tests: the bytes or rows above which executors do what grows with the data, also those of this machine."""


class Execution:
    """Runs and resumes."""

    def __init__(self, files: Files, stores: Stores) -> None:
        self._files, self._stores = files, stores

    def run(
        self,
        planned: PlannedRun,
        spark: SparkChoice,
        *,
        override: Override | None,
        wait: bool,
        listener: Listener | None,
        figures: bool | None,
    ) -> RunView:
        """Execute a plan as a new run; for a closed period with an override.

        ``figures`` as the settings say, where they are None.
        """
        spec = RunSpec(
            planned.plan, planned.facts, planned.as_of, planned.definitions.datasources, planned.status, None
        )
        run_id, session = new_run_id(now()), spark.session()
        data = self.open_data(run_id, spec, session, executors=self._executors(spark, listener))
        view = self._runner(listener, session).start(
            run_id,
            spec,
            data,
            partial(_computing, data, spark, listener),
            version=planned.version,
            snapshot=partial(_take_snapshot, planned, override),
            warnings=planned.problems,
            override=override,
            wait=wait,
            figures=self._files.settings.figures != "off" if figures is None else figures,
            digests=self._files.settings.figures == "columns",
        )
        self._clean_after_run()
        return view

    def resume(self, record: Run, spark: SparkChoice, *, wait: bool, listener: Listener | None) -> RunView:
        """Resume a recorded run."""
        spec, session = restore_snapshot(record.snapshot), spark.session()
        data = self.open_data(record.id, spec, session, executors=self._executors(spark, listener))
        computing = partial(_computing, data, spark, listener)
        view = self._runner(listener, session).resume(record, spec, data, computing, wait=wait)
        self._clean_after_run()
        return view

    def _executors(self, spark: SparkChoice, listener: Listener | None) -> Callable[[Path], Executors] | None:
        """Those of a Spark that computes elsewhere and sees our folders; executors here would share the cores of this machine."""
        from dobonomodo.engine.tasks import SparkExecutors

        if self._files.is_scratch_remote:
            return None
        above = os.environ.get(LIMIT_VARIABLE)
        if above is None and not spark.may_be_elsewhere():
            return None
        limits = Limits() if above is None else Limits.of(int(above))
        say = (listener or Quiet()).working
        return lambda folder: SparkExecutors(
            lambda: spark.engine(listener=listener, run=folder.name), folder, limits=limits, say=say
        )

    def can_resume(self, run: Run) -> bool:
        """Whether a run can be resumed, as far as is known now."""
        try:
            require_resumable(run, self._stores.main.list_runs(project=run.project, period=run.period))
            return not self.reopen_data(run).find_changes(listing=True)
        except (Rejected, RunFailed):
            return False

    def open_data(
        self,
        run_id: str,
        spec: RunSpec,
        session: Session | None = None,
        *,
        executors: Callable[[Path], Executors] | None = None,
    ) -> RunData:
        """The rows that a run reads and writes; ``session`` is for storages that need one, by default that of the workspace."""
        sandbox = self._stores.sandbox_place
        draft = spec.status == "draft"
        if draft and isinstance(sandbox, Path):
            sandbox = sandbox / spec.plan.project.id
        transport = self._files.transport
        storages = Storages(self._files.root, spec.datasources, sandbox if draft else None)
        require_modules(
            [*_needed_modules(spec, storages), *(modules_of(str(transport)) if transport is not None else ())]
        )
        return RunData(
            root=self._files.root,
            run=run_id,
            planned=spec,
            registry=(lambda: self._stores.sandbox) if draft else (lambda: self._stores.main),
            store_id=self._stores.main.id,
            sandbox=sandbox,
            keep_inputs=self._files.settings.keep_inputs != "no",
            scratch=self._files.runs if self._files.are_runs_shared else None,
            transport=transport.below(run_id) if transport is not None else None,
            executors=executors,
            session=session or SparkChoice(self._files).session(),
        )

    def reopen_data(self, run: Run, session: Session | None = None) -> RunData:
        """The rows that a recorded run reads and wrote."""
        return self.open_data(run.id, restore_snapshot(run.snapshot), session)

    def _runner(self, listener: Listener | None, session: Session) -> Runner:
        person = who()
        seconds = os.environ.get(LEASE_VARIABLE)
        return Runner(
            self._stores.main,
            who=Who(person, describe_holder(person)),
            open_data=partial(self._reopen, session=session),
            pace=Pace.of(float(seconds)) if seconds else Pace(),
            listener=listener,
        )

    def _reopen(self, run: Run, *, session: Session) -> tuple[RunSpec, RunData]:
        """A recorded run, to complete what it was publishing."""
        spec = restore_snapshot(run.snapshot)
        return spec, self.open_data(run.id, spec, session)

    def _clean_after_run(self) -> None:
        """Remove what earlier runs of this folder left.

        A run is not affected by leftovers that cannot be removed; `dobo clean` reports them.
        """
        runs, transport = self._files.runs, self._files.transport
        with suppress(RunFailed, Rejected):
            if has_leftovers(runs, transport):
                cleaning = Cleaning(runs, self._stores.main, data=self.open_data, transport=transport)
                cleaning.clean(everywhere=False, dry_run=False)


def _computing(data: RunData, spark: SparkChoice, listener: Listener | None) -> Computing:
    engine = spark.engine(size=data.size(), listener=listener, scratch=data.scratch, run=data.folder.name)
    engine.require_reach(data.transport or data.folder)
    with noticing_loss():
        return Computing(engine, data.reader(engine.spark))


def _take_snapshot(planned: PlannedRun, override: Override | None, inputs: Pinned | None) -> Document:
    """All that the result depends on."""
    plan, own = planned.plan, planned.definitions
    known = {(use.dataset_id, use.version): None for use in plan.uses}
    used = {use.resolver_id for use in plan.uses}
    return take_snapshot(
        plan,
        planned.facts,
        as_of=planned.as_of,
        version=planned.version,
        status=planned.status,
        datasets=[found for key in known if (found := planned.datasets.find(*key)) is not None],
        resolvers=[each.document() for name, each in own.resolvers.items() if name in used],
        datasources=own.datasources,
        together=planned.together,
        inputs=inputs,
        versions=program_versions(),
        override=override,
    )


def program_versions() -> dict[str, str]:
    """The programs that a run is computed with."""
    from dobonomodo import __version__

    found = {"dobonomodo": __version__, "python": platform.python_version()}
    for name in ("pyspark", "pyarrow"):
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _needed_modules(spec: RunSpec, storages: Storages) -> Iterator[str]:
    """The Python modules that a run needs for what it reads and writes; drafts may write elsewhere than their plan says."""
    uses = spec.plan.uses
    read = {location.kind for use in uses for location in use.locations}
    registered = {use.registered.kind for use in uses if use.registered is not None and not use.locations}
    for kind in read | registered:
        yield from find_storage(kind).modules
    for step in spec.plan.steps:
        if step.lowered.write is not None:
            yield from storages.of_destination(step.lowered.write.destination).modules
