"""The workspace: what one can do with a folder of definitions. The only module that knows all concrete classes."""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dobonomodo.formula import Type
from dobonomodo.formula.types import TEXT
from dobonomodo.model import Calendar, Dataset, Definitions, Entity, Period, Project, Schedule, load_definitions
from dobonomodo.model.secret import is_reference, is_secret_key
from dobonomodo.model.workspace import DEFAULT_SANDBOX
from dobonomodo.plan import KnownDataset, Plan, Planned, Resolution, plan_project
from dobonomodo.plan.chain import Chain, find_makers
from dobonomodo.plan.dataset import column_types
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.impact import ColumnConflict, find_conflicts
from dobonomodo.plan.reading import check_awaited, check_days
from dobonomodo.plan.resolution import check_resolver
from dobonomodo.problems import OperationRef, Problem, Rejected, RunFailed, Source, in_order
from dobonomodo.problems.definition import PeriodNotFound, UnknownReference, UnsafePath
from dobonomodo.problems.listing import Problems
from dobonomodo.problems.operation import (
    DatasetMissing,
    DestinationReason,
    InputDatasetNotFound,
    InvalidDestination,
    PeriodNotRunnable,
    ProjectNotRunnable,
    ResolverNotFound,
)
from dobonomodo.problems.package import SPARK, require_modules
from dobonomodo.problems.run import DigestDiffers, InputChanged, RunNotFound, SparkLost
from dobonomodo.problems.workspace import EnvironmentNotFound, NotApplied, NotDefined, UnreadableFile, WorkspaceNotFound
from dobonomodo.workspace.arguments import (
    check_session,
    read_choice,
    read_day,
    read_documents,
    read_moment,
    read_period,
    read_project,
    read_run,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dobonomodo.engine.engine import SparkEngine
    from dobonomodo.runs import Listener, Output, Runner, RunSpec, RunView
    from dobonomodo.storage import Pinned
    from dobonomodo.store import Change, Run, Store, Version
    from dobonomodo.workspace.cleaning import Cleaned
    from dobonomodo.workspace.reports import Reports
    from dobonomodo.workspace.running import Computing, RunData

FILE = "dobo.yaml"
FOLDERS = ("datasources", "resolvers", "calendars", "datasets", "projects", "scenarios")
SUFFIXES = frozenset({".yaml", ".yml", ".json"})
KINDS = ("workspace", "datasource", "resolver", "calendar", "dataset", "project")
MAX_FILE = 10_000_000
LEASE_VARIABLE = "DOBO_LEASE_SECONDS"
"""For tests: how long a lease lasts that is not renewed."""
NEVER = 2**31
"""Above every operation's number: all of them could be read, and yet the project has problems."""


@dataclass(frozen=True, slots=True, eq=False)
class PlannedRun:
    """A plan together with the period and clock it is for, and the version of the project it is of."""

    plan: Plan
    problems: tuple[Problem, ...]
    facts: RunFacts
    as_of: date | None
    """The day that the run itself names for bitemporal rows."""
    period: Period
    version: int | None
    status: str
    datasets: _Datasets
    definitions: Definitions

    def _repr_html_(self) -> str:
        from html import escape

        from dobonomodo.plan.explain import render_plan

        return f"<pre>{escape(render_plan(self.plan, self.facts, as_of=self.as_of, which=self.status))}</pre>"


@dataclass(frozen=True, slots=True, eq=False)
class Applied:
    """What applying changed, and the projects that it put into conflict."""

    changes: tuple[Change, ...]
    conflicts: Mapping[str, tuple[ColumnConflict, ...]]


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How Spark is to be reached for one command, where that differs from the workspace."""

    master: str | None = None
    remote: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    wait_for_executors: float = 300
    """Seconds that Spark may have tasks and no executor that runs them."""


class Workspace:
    """A folder of definitions, its store, and what can be done with them."""

    def __init__(
        self, root: Path, sources: Sequence[Source], *, faults: Sequence[Problem] = (), environment: str | None = None
    ) -> None:
        self.root = root
        self._definitions, problems = load_definitions(sources)
        self._load_problems = in_order([*faults, *problems])
        loaded = self._definitions.workspace.in_environment(environment)
        if loaded.value is None:
            known = tuple(self._definitions.workspace.environments)
            raise Rejected([EnvironmentNotFound(name=environment or "", known=known)])
        self.settings = loaded.value
        """The defaults, where the file that says otherwise has errors: then nothing is read or written by them."""
        self._store: Store | None = None

    @classmethod
    def open(cls, folder: str | Path = ".", *, environment: str | None = None) -> Workspace:
        """The workspace at a folder or around it."""
        root = find_root(Path(folder))
        sources, faults = _read_files(root)
        return cls(root, sources, faults=faults, environment=environment)

    @classmethod
    def from_documents(cls, documents: Iterable[Mapping[str, Any]], *, root: str | Path) -> Workspace:
        """A workspace of definitions made in a program; ``root`` is where relative paths start."""
        sources = [
            Source(f"document {number}", json.dumps(document, indent=2, ensure_ascii=False, default=str))
            for number, document in enumerate(read_documents(documents), start=1)
        ]
        return cls(Path(root), sources)

    @property
    def definitions(self) -> Definitions:
        """What the files define, without what could not be read."""
        return self._definitions

    # --- running

    def run(
        self,
        project_id: str,
        *,
        period: str,
        as_of: date | str | None = None,
        started_at: datetime | str | None = None,
        spark: SparkSession | None = None,
        draft: bool = False,
        override_closed: bool = False,
        wait: bool = False,
        listener: Listener | None = None,
        session: SessionOptions | None = None,
    ) -> RunView:
        """Run a project for a period. Raises ``Rejected`` before anything is read; a run that fails says so itself.

        A Spark session that is passed in is left running and configured as it was found. Dates and times may be ISO text.
        """
        from dobonomodo.runs import RunSpec, take_snapshot
        from dobonomodo.workspace.running import new_run_id

        check_session(spark)
        planned = self.plan(
            project_id,
            period=period,
            as_of=as_of,
            started_at=started_at,
            draft=draft,
            override_closed=override_closed,
            to_run=True,
        )
        self._require_spark(spark, session)
        plan, facts, day = planned.plan, planned.facts, planned.as_of
        own = planned.definitions
        restored = RunSpec(plan, facts, day, own.datasources, planned.status, None)
        run_id = new_run_id(now())

        def snapshot(inputs: Pinned | None) -> Mapping[str, Any]:
            known = {(use.dataset_id, use.version): None for use in plan.uses}
            used = {use.resolver_id for use in plan.uses}
            return take_snapshot(
                plan,
                facts,
                as_of=day,
                version=planned.version,
                status=planned.status,
                datasets=[found for key in known if (found := planned.datasets.find(*key)) is not None],
                resolvers=[each.document() for name, each in own.resolvers.items() if name in used],
                datasources=own.datasources,
                inputs=inputs,
                versions=_versions(),
            )

        data = self._data(run_id, restored)
        view = self._runner(listener).start(
            run_id,
            restored,
            data,
            partial(self._computing, data, spark, session, listener),
            version=planned.version,
            snapshot=snapshot,
            warnings=planned.problems,
            wait=wait,
        )
        self._clean_after_run()
        return self._with_frames(view)

    def resume(
        self,
        run_id: str,
        *,
        spark: SparkSession | None = None,
        wait: bool = False,
        listener: Listener | None = None,
        session: SessionOptions | None = None,
    ) -> RunView:
        """Continue a run that failed or was killed: same snapshot, same clock, same rows; published outputs stay."""
        from dobonomodo.runs import restore_snapshot

        check_session(spark)
        record = self._find_run(run_id)
        self._require_spark(spark, session)
        restored = restore_snapshot(record.snapshot)
        data = self._data(record.id, restored)
        runner = self._runner(listener)
        computing = partial(self._computing, data, spark, session, listener)
        view = runner.resume(record, restored, data, computing, wait=wait)
        self._clean_after_run()
        return self._with_frames(view)

    def can_resume(self, run_id: str) -> bool:
        """Whether ``resume`` would go on with a run, as far as can be known now."""
        from dobonomodo.runs import restore_snapshot
        from dobonomodo.runs.resume import require_resumable

        run = self._find_run(run_id)
        try:
            require_resumable(run, self.store.list_runs(project=run.project, period=run.period))
            return not self._data(run.id, restore_snapshot(run.snapshot)).find_changes(listing=True)
        except (Rejected, RunFailed):
            return False

    def cancel(self, run_id: str) -> RunView:
        """Have a run stop; what it has published stays."""
        from dobonomodo.runs.runner import cancel_run

        record = self._find_run(run_id)
        return cancel_run(self.store, record, at=now())

    def clean(self, *, dry_run: bool = False) -> Cleaned:
        """Remove what killed runs left; with ``dry_run``, only find it. Runs that are alive or can be resumed keep what they need."""
        from dobonomodo.workspace.cleaning import Cleaned, Cleaning, find_unfinished_stores

        path = self.settings.store.removeprefix("sqlite:///")
        unfinished = find_unfinished_stores(self.root / path) if path != self.settings.store else []
        if not dry_run:
            for each in unfinished:
                each.remove()
        store = self._existing_store()
        if store is None:
            return Cleaned(tuple(unfinished))
        cleaned = Cleaning(self.root, store, data=self._data).clean(everywhere=True, dry_run=dry_run)
        return replace(cleaned, leftovers=(*unfinished, *cleaned.leftovers))

    def _clean_after_run(self) -> None:
        """Remove what earlier runs of this folder left. A run is not affected by what cannot be removed; `dobo clean` tells."""
        from dobonomodo.workspace.cleaning import Cleaning, has_leftovers

        if has_leftovers(self.root):
            with suppress(RunFailed, Rejected):
                Cleaning(self.root, self.store, data=self._data).clean(everywhere=False, dry_run=False)

    def verify(
        self,
        run_id: str,
        *,
        replay: bool = False,
        spark: SparkSession | None = None,
        session: SessionOptions | None = None,
    ) -> tuple[RunView, tuple[Problem, ...]]:
        """Whether the outputs of a run are still what it recorded; with ``replay``, whether computing again gives the same."""
        check_session(spark)
        view = self.find_run(run_id)
        self._require_spark(spark, session)
        from dobonomodo.engine.engine import discard
        from dobonomodo.runs import restore_snapshot

        restored = restore_snapshot(view.snapshot)
        engine = self._engine(spark, session)
        found: dict[int, str] = {}
        if replay:
            data = self._data(view.id, restored)
            changes = data.find_changes(listing=True)
            if changes:
                raise Rejected([InputChanged(changes=changes)])
            data.prepare()
            reader = data.reader(engine.spark)
            outputs = engine.outputs(restored.plan, restored.facts, reader=reader, as_of=restored.as_of)
            found = {result.seq: result.digest for result in discard(outputs)}
            data.clear()
        else:
            for output in view.outputs.values():
                found[output.seq] = self._digest_of(engine, view, output)
        problems = [
            DigestDiffers(table=output.table, expected=output.digest, found=found.get(output.seq, "nothing"))
            for output in view.outputs.values()
            if found.get(output.seq) != output.digest
        ]
        return view, tuple(problems)

    def _digest_of(self, engine: SparkEngine, view: RunView, output: Output) -> str:
        from dobonomodo.engine.faults import noticing_loss

        later = self._replaced_by(view, output)
        if later is not None:
            return f"the rows of run {later}"
        try:
            with noticing_loss():
                frame = self._frame(view, output, engine.spark)
        except (RunFailed, OSError) as fault:
            if isinstance(fault, RunFailed) and isinstance(fault.problem, SparkLost):
                raise
            return f"what cannot be read ({fault})"
        return engine.digest(frame, list(output.columns))

    def _replaced_by(self, view: RunView, output: Output) -> str | None:
        """The later run whose rows are now where an output wrote."""
        from dobonomodo.runs.resume import came_after
        from dobonomodo.storage import load_stored

        own = self._find_run(view.id)
        for other in self.store.list_runs(period=view.period):
            later = came_after(other, own) if other.project == own.project else other.created_at > own.created_at
            if not later:
                continue
            for each in other.progress.get("outputs", ()):
                if load_stored(each["location"]).place == output.location.place:
                    return other.id
        return None

    def _frame(self, view: RunView, output: Output, spark: SparkSession) -> DataFrame:
        from dobonomodo.runs import restore_snapshot
        from dobonomodo.workspace.running import output_frame

        sources = restore_snapshot(view.snapshot).datasources
        return output_frame(
            spark, view, output, root=self.root, datasources={**self._definitions.datasources, **sources}
        )

    def runs(
        self, *, project: str | None = None, period: str | None = None, status: str | None = None, limit: int = 100
    ) -> tuple[RunView, ...]:
        """The latest runs, newest first."""
        from dobonomodo.runs import view_run

        store = self._existing_store()
        if store is None:
            return ()
        listed = store.list_runs(project=project, period=period, status=status, limit=limit)
        return tuple(self._with_frames(view_run(run)) for run in listed)

    def find_run(self, run_id: str) -> RunView:
        """A run by its id, by enough of its beginning or end to tell it from the others, or by a name for it:

        ``latest``, ``latest:PROJECT``, ``previous`` (the one before the latest) or ``PROJECT@PERIOD``, the latest of those.
        """
        from dobonomodo.runs import view_run

        return self._with_frames(view_run(self._find_run(run_id)))

    def write_report(self, run_id: str, to: str | Path | None = None) -> Path:
        """The report of a run as one HTML file, in the folder of reports if not told otherwise; gives its path."""
        from dobonomodo.workspace.reports import FOLDER, file_of

        run = self._find_run(run_id)
        path = Path(to) if to is not None else self.root / FOLDER / file_of(run.id)
        self._reports().write(run, path)
        return path

    def write_reports(self, folder: str | Path | None = None) -> Path:
        """The reports of all runs in a folder, and an index of them; gives the path of the index."""
        from dobonomodo.workspace.reports import FOLDER

        return self._reports().write_all(Path(folder) if folder is not None else self.root / FOLDER)

    def _reports(self) -> Reports:
        from dobonomodo.workspace.reports import Reports

        title = f"Runs of {self.settings.name or self.root.resolve().name}"
        return Reports(self.store, title=title, period_before=self._period_before, can_resume=self.can_resume, now=now)

    def _period_before(self, identifier: str) -> str | None:
        """The period before one, by the calendar; None where no calendar has it, or it is the first."""
        for _, schedule in self.schedules():
            if (period := schedule.by_identifier.get(identifier)) is not None:
                found = schedule.before(period)
                return found.identifier if found is not None else None
        return None

    def sample(self, name: str, rows: int) -> dict[str, list[dict[str, Any]]]:
        """The first rows of a run's outputs, or of a registered dataset, by table; read without Spark."""
        from dobonomodo.storage import Storages, find_storage, load_stored

        store = self._existing_store()
        version = store.get_active_version("dataset", name) if store is not None else None
        if version is not None and version.location is not None:
            found = {name: (load_stored(version.location), _registered_types(version))}
        else:
            outputs = self.find_run(name).outputs
            found = {table: (output.location, output.types()) for table, output in outputs.items()}
        for stored, _ in found.values():
            require_modules(find_storage(stored.kind).modules)
        storages = Storages(self.root, self._definitions.datasources)
        return {
            table: storages.of_record(stored).sample(stored, columns, rows)
            for table, (stored, columns) in found.items()
        }

    def _find_run(self, run_id: str) -> Run:
        read_run(run_id)
        store = self._existing_store()
        if store is not None:
            if (found := store.get_run(run_id) or _find_named(run_id, store)) is not None:
                return found
            known = [
                run for run in store.list_runs(limit=10_000) if run.id.startswith(run_id) or run.id.endswith(run_id)
            ]
            if len(known) == 1:
                return known[0]
            if known:
                raise Rejected([RunNotFound(id=run_id, known=tuple(run.id for run in known))])
        raise Rejected([RunNotFound(id=run_id)])

    def _with_frames(self, view: RunView) -> RunView:
        """A run whose outputs can be read."""
        outputs = {
            name: replace(output, read=partial(self._frame, view, output)) for name, output in view.outputs.items()
        }
        return replace(view, outputs=outputs)

    def _runner(self, listener: Listener | None) -> Runner:
        from dobonomodo.runs import Runner
        from dobonomodo.runs.holder import describe_holder
        from dobonomodo.runs.lease import Pace
        from dobonomodo.runs.runner import Who

        person = who()
        seconds = os.environ.get(LEASE_VARIABLE)
        return Runner(
            self.store,
            who=Who(person, describe_holder(person)),
            open_data=self._reopen_data,
            pace=Pace.of(float(seconds)) if seconds else Pace(),
            listener=listener,
        )

    def _reopen_data(self, run: Run) -> tuple[RunSpec, RunData]:
        """A recorded run, to complete what it was publishing."""
        from dobonomodo.runs import restore_snapshot

        spec = restore_snapshot(run.snapshot)
        return spec, self._data(run.id, spec)

    def _data(self, run_id: str, restored: RunSpec) -> RunData:
        from dobonomodo.storage import find_storage
        from dobonomodo.workspace.running import RunData

        sandbox = self._definitions.datasources.get(self.settings.sandbox) or self._sandbox_folder
        draft = restored.status == "draft"
        into = sandbox.type if draft and not isinstance(sandbox, Path) else "parquet" if draft else None
        for kind in _kinds_of_storage(restored.plan, into=into):
            require_modules(find_storage(kind).modules)
        if draft and isinstance(sandbox, Path):
            sandbox = sandbox / restored.plan.project.id
        return RunData(
            root=self.root,
            run=run_id,
            planned=restored,
            registry=(lambda: self._sandbox_store) if draft else (lambda: self.store),
            store_id=self.store.id,
            sandbox=sandbox,
        )

    def _computing(
        self, data: RunData, spark: SparkSession | None, options: SessionOptions | None, listener: Listener | None
    ) -> Computing:
        from dobonomodo.engine.faults import noticing_loss
        from dobonomodo.workspace.running import Computing

        engine = self._engine(spark, options, input_bytes=data.size(), listener=listener)
        with noticing_loss():
            return Computing(engine, data.reader(engine.spark))

    def _engine(
        self,
        spark: SparkSession | None,
        options: SessionOptions | None,
        *,
        input_bytes: int | None = None,
        listener: Listener | None = None,
    ) -> SparkEngine:
        """Spark, ready to compute. One that we have not started ourselves must first show that it computes as Spark does."""
        from dobonomodo.engine import is_remote
        from dobonomodo.engine.engine import SparkEngine
        from dobonomodo.engine.executors import Patience
        from dobonomodo.engine.faults import noticing_loss
        from dobonomodo.runs import Quiet
        from dobonomodo.workspace.running import SMALL_BYTES

        with noticing_loss():
            session = self._session(spark, options, input_bytes=input_bytes)
        seconds = (options or SessionOptions()).wait_for_executors
        patience = Patience(limit=seconds, say=(listener or Quiet()).working)
        small = input_bytes is not None and input_bytes < SMALL_BYTES
        engine = SparkEngine(session, small_inputs=small, patience=patience)
        if spark is not None or is_remote(session):
            engine.require_arithmetic(of=session if spark is None else spark)
        return engine

    def _session(
        self, spark: SparkSession | None, options: SessionOptions | None, *, input_bytes: int | None = None
    ) -> SparkSession:
        from dobonomodo.engine import adapt_session
        from dobonomodo.workspace.session import open_spark

        if spark is not None:
            return adapt_session(spark)
        settings, chosen = self.settings.spark, options or SessionOptions()
        own = chosen.master is not None or chosen.remote is not None
        return open_spark(
            master=chosen.master if own else settings.master,
            remote=chosen.remote if own else settings.remote,
            conf=self._conf(options),
            input_bytes=input_bytes,
        )

    def _require_spark(self, spark: SparkSession | None, options: SessionOptions | None) -> None:
        """Refuse to begin where Spark is not installed, or a secret that it needs is not there."""
        require_modules(SPARK)
        if spark is None:
            self._conf(options)

    def _conf(self, options: SessionOptions | None) -> dict[str, str]:
        """The settings of Spark. A secret is only referred to, and looked up now."""
        from dobonomodo.storage.secret import find_secret

        settings = {**self.settings.spark.conf, **(options.conf if options is not None else {})}
        hidden = {name for name, value in settings.items() if is_secret_key(name) and is_reference(value)}
        return {
            name: (find_secret(value, root=self.root, owner=f"setting `{name}`") or "")
            if name in hidden
            else str(value)
            for name, value in settings.items()
        }

    @property
    def _sandbox_folder(self) -> Path:
        named = self.settings.sandbox not in self._definitions.datasources
        return self.root / (self.settings.sandbox if named else DEFAULT_SANDBOX)

    @cached_property
    def _sandbox_store(self) -> Store:
        """Where drafts register datasets, apart from everybody's."""
        from dobonomodo.store import open_store

        return open_store("sqlite:///registered.db", root=self._sandbox_folder)

    def _existing_sandbox_store(self) -> Store | None:
        return self._sandbox_store if (self._sandbox_folder / "registered.db").exists() else None

    # --- checking

    def problems(self) -> Problems:
        """Every problem of every file and every project, by place. Needs no Spark and no store that is not there."""
        found: list[Problem] = list(self._load_problems)
        own = self._definitions
        for places in (*(each.places for each in own.resolvers.values()), *own.broken.get("resolver", {}).values()):
            found.extend(check_resolver(places))
        datasets = self._draft_datasets()
        for project in own.projects.values():
            found.extend(datasets.chain.planned(project).problems)
        for project, uncertain_from in own.salvaged:
            found.extend(
                self._plan(
                    project, datasets, uncertain_from=NEVER if uncertain_from is None else uncertain_from
                ).problems
            )
        found.extend(datasets.chain.problems)
        return Problems(in_order(_once(found)))

    def require_sound(self) -> None:
        """Raise with every problem if there is an error anywhere."""
        problems = self.problems()
        if any(problem.severity == "error" for problem in problems):
            raise Rejected(problems)

    # --- planning

    def plan(
        self,
        project_id: str,
        *,
        period: str,
        as_of: date | str | None = None,
        started_at: datetime | str | None = None,
        draft: bool = False,
        override_closed: bool = False,
        to_run: bool = False,
    ) -> PlannedRun:
        """What a run of a project for a period would read, do and write.

        The active version is planned with what the store has recorded; a draft with the files as they are.
        """
        read_project(project_id)
        clock, day = read_moment("started_at", started_at) or now(), read_day("as_of", as_of)
        found = self.find_period(period)
        if to_run:
            require_runnable(found, override_closed=override_closed)
        facts = RunFacts(clock, found.identifier, found.start_date, found.end_date)
        live = None if draft else self._live_version(project_id)
        if live is not None:
            if to_run and live.status != "active":
                raise Rejected([ProjectNotRunnable(project_id=project_id, status=live.status)])
            project, definitions = self._recorded_project(live), self._recorded_definitions()
            datasets = self._recorded_datasets(definitions)
            planned = self._plan(project, datasets, period=found, definitions=definitions)
        else:
            if to_run and (status := self._resting_status(project_id)) is not None:
                raise Rejected([ProjectNotRunnable(project_id=project_id, status=status)])
            self._require_readable(project_id)
            project = self._find(self._definitions.projects, "project", project_id)
            definitions = self._definitions
            datasets = self._draft_datasets(count=True)
            planned = self._plan(project, datasets, period=found)
        if planned.plan is None:
            failed = any(problem.severity == "error" for problem in planned.problems)
            raise Rejected(in_order([*self._load_problems, *planned.problems]) if failed else self.problems())
        if to_run and (awaited := self._awaited(planned.plan, period=found.identifier, draft=live is None)):
            raise Rejected(in_order(awaited))
        version = live.version if live is not None else None
        status = live.status if live is not None else "draft"
        days = check_days(planned.plan, found, self._schedule_of(found), as_of=day)
        problems = in_order([*planned.problems, *days])
        return PlannedRun(planned.plan, problems, facts, day, found, version, status, datasets, definitions)

    def _plan(
        self,
        project: Project,
        datasets: _Datasets,
        *,
        period: Period | None = None,
        definitions: Definitions | None = None,
        uncertain_from: int | None = None,
    ) -> Planned:
        own = definitions or self._definitions
        default = self.settings.default_resolver
        if default is None and own.default_resolver is not None:
            default = own.default_resolver.id
        resolution = Resolution(
            resolvers=own.resolvers,
            default_resolver=default,
            datasources=own.datasources,
            broken=frozenset(own.broken.get("resolver", {})),
            schedule=self._schedule_of(period) if period is not None else None,
            period=period,
        )
        planned = plan_project(
            project,
            datasets=datasets,
            resolution=resolution,
            datasources=own.datasources,
            uncertain_from=uncertain_from,
        )
        links = tuple(self._find_links(planned.plan, own)) if planned.plan is not None else ()
        return Planned(None, (*planned.problems, *links)) if links else planned

    def _find_links(self, plan: Plan, own: Definitions) -> Iterator[Problem]:
        """Where a symbolic link leads out of a datasource, as far as there are links now; a run checks again."""
        from dobonomodo.storage import Storages

        storages = Storages(self.root, own.datasources)
        for use in plan.uses:
            for location in use.locations:
                source = own.datasources.get(location.datasource_id)
                if source is not None and storages.open(source).leaves(location):
                    yield UnsafePath(path=str(location), operation=use.operation)
        for step in plan.steps:
            destination = step.lowered.write.destination if step.lowered.write is not None else None
            if destination is not None and storages.of_destination(destination).escapes(destination.table):
                span = step.spec.places.span("arguments", "destination")
                name, operation = str(destination), OperationRef(step.spec.seq, step.spec.name)
                yield InvalidDestination(reason=DestinationReason.LINK, name=name, span=span, operation=operation)

    def _awaited(self, plan: Plan, *, period: str | None = None, draft: bool = False) -> tuple[Problem, ...]:
        """What a plan reads before a run has registered it; results of drafts are seen by drafts only."""
        active = None if draft else [live.id for live in self.store.list_live_projects()]
        return tuple(check_awaited(plan, period, active=active))

    def _makers(self) -> Mapping[str, Sequence[str]]:
        """The datasets that the projects in the files register, with those projects."""
        projects = self._definitions.projects.values()
        return find_makers((project.id, spec.arguments) for project in projects for spec in project.operations)

    def _draft_datasets(self, *, count: bool = False) -> _Datasets:
        """What the files define and the projects in them register, over what is stored."""
        own = self._definitions
        return _Datasets(
            own,
            self._store_to_check,
            count=count,
            sandbox=self._existing_sandbox_store,
            chain=lambda datasets: Chain(
                self._makers(),
                project=own.projects.__getitem__,
                plan=lambda project: self._plan(project, datasets),
                stored=datasets.find_stored,
                unreadable=own.broken.get("project", {}).values(),
            ),
        )

    def _recorded_datasets(self, definitions: Definitions) -> _Datasets:
        """What is recorded, and what the recorded projects register: the live version of each, else the newest."""

        def make_chain(datasets: _Datasets) -> Chain:
            recorded = {each.id: each for each in self.store.list_definitions("project")}
            recorded |= {each.id: each for each in self.store.list_live_projects()}
            operations = [
                (each.id, spec["arguments"]) for each in recorded.values() for spec in each.document["operations"]
            ]
            return Chain(
                find_makers(operations),
                project=lambda name: self._recorded_project(recorded[name]),
                plan=lambda project: self._plan(project, datasets, definitions=definitions),
                stored=datasets.find_stored,
            )

        return _Datasets(None, lambda: self.store, chain=make_chain)

    def _recorded_definitions(self) -> Definitions:
        """Resolvers and datasources as they were last applied; what the files say since then is draft."""
        documents = [
            {kind: dict(version.document)}
            for kind in ("datasource", "resolver")
            for version in self.store.list_definitions(kind)
        ]
        return load_definitions([Source("recorded", json.dumps(document)) for document in documents])[0]

    def _require_readable(self, project_id: str) -> None:
        if project_id in self._definitions.broken.get("project", {}):
            raise Rejected(self.problems())

    # --- periods

    def schedules(self) -> tuple[tuple[Calendar, Schedule], ...]:
        """Every calendar with its periods, the statuses as they are now; the default calendar first."""
        default = self._definitions.default_calendar
        calendars = sorted(self._definitions.calendars.values(), key=lambda each: each is not default)
        return tuple((calendar, self._current(calendar)) for calendar in calendars)

    def _current(self, calendar: Calendar) -> Schedule:
        store = self._existing_store()
        if store is None:
            return calendar.schedule
        from dobonomodo.store import PeriodStatus, further

        listed = calendar.schedule.by_identifier
        current: dict[str, Any] = {
            name: further(PeriodStatus(listed[name].status), record.status).value
            for name, record in store.list_periods(calendar.id).items()
            if name in listed
        }
        return calendar.schedule.with_statuses(current)

    def find_period(self, identifier: str) -> Period:
        """A period of any calendar, the default calendar's first."""
        read_period(identifier)
        schedules = [schedule for _, schedule in self.schedules()]
        for schedule in schedules:
            if identifier in schedule.by_identifier:
                return schedule.by_identifier[identifier]
        if not schedules:
            raise Rejected([PeriodNotFound(identifier=identifier, calendar="", known=())])
        raise Rejected(schedules[0].find(identifier).problems)

    def _schedule_of(self, period: Period) -> Schedule | None:
        for _, schedule in self.schedules():
            if period.identifier in schedule.by_identifier:
                return schedule
        return None

    def change_period(self, identifier: str, status: str) -> Period:
        """Move a period on: open, closed, locked, one way only."""
        from dobonomodo.store import PeriodStatus

        read_choice("status", status, [each.value for each in PeriodStatus])
        self.find_period(identifier)
        for calendar in self._definitions.calendars.values():
            listed = calendar.schedule.by_identifier.get(identifier)
            if listed is not None:
                start = PeriodStatus(listed.status)
                self.store.change_period(
                    calendar.id, identifier, to=PeriodStatus(status), start=start, at=now(), by=who()
                )
        return self.find_period(identifier)

    # --- the store

    @property
    def store(self) -> Store:
        """The store of the workspace, made if it is not there."""
        self.require_settings()
        if self._store is None:
            from dobonomodo.store import open_store

            self._store = open_store(self.settings.store, root=self.root)
        return self._store

    def _has_settings(self) -> bool:
        """Whether the settings are those of the workspace, and not the defaults in place of some that could not be read."""
        own = self._definitions
        return not own.lacks_workspace and (own.has_workspace or not any(map(_is_error_of_file, self._load_problems)))

    def require_settings(self) -> None:
        """Raise with every problem where the file of the workspace could not be read: its defaults are not what it says."""
        if not self._has_settings():
            raise Rejected(self.problems())

    def _store_to_check(self) -> Store | None:
        """The store that checking may look into; what keeps it from being known is reported as a problem of its own."""
        return self._existing_store() if self._has_settings() else None

    def _existing_store(self) -> Store | None:
        """The store, unless it was never made."""
        self.require_settings()
        path = self.settings.store.removeprefix("sqlite:///")
        # Where this user may not look, opening the store says so.
        with suppress(OSError):
            if path != self.settings.store and not (self.root / path).exists():
                return None
        return self.store

    def _entities(self) -> Iterator[Entity]:
        own = self._definitions
        for group in (own.datasources, own.resolvers, own.calendars, own.datasets, own.projects):
            yield from group.values()

    def changes(self) -> tuple[Change, ...]:
        """What applying the files would change; raises with every problem if there is an error."""
        self.require_sound()
        return self.store.compare(self._as_recorded())

    def apply(self) -> Applied:
        """Record the definitions: new versions for what changed, and conflicts for active projects that it breaks."""
        self.require_sound()
        changes = self.store.apply(self._as_recorded(), at=now(), by=who())
        return Applied(changes, self._mark_conflicts())

    def _as_recorded(self) -> list[Any]:
        from dobonomodo.store import Definition

        return [
            Definition(
                kind=entity.kind,
                id=entity.id,  # type: ignore[attr-defined]
                fingerprint=entity.fingerprint(),
                document=entity.document(),
                status=getattr(entity, "status", "active"),
            )
            for entity in self._entities()
        ]

    def _mark_conflicts(self) -> Mapping[str, tuple[ColumnConflict, ...]]:
        """Look at every live project: does the newest version of its input still have what it uses?"""
        found: dict[str, tuple[ColumnConflict, ...]] = {}
        for live in self.store.list_live_projects():
            newest = self.store.get_active_version("dataset", live.activation.pin.dataset) if live.activation else None
            if newest is None or live.activation is None or newest.version == live.activation.pin.version:
                continue
            definitions = self._recorded_definitions()
            datasets = self._recorded_datasets(definitions)
            planned = self._plan(self._recorded_project(live), datasets, definitions=definitions)
            conflicts = find_conflicts(planned.plan, load_recorded(newest, Dataset)) if planned.plan else ()
            if not conflicts:
                continue
            report = {
                "dataset": newest.id,
                "version": newest.version,
                "pinned": live.activation.pin.version,
                "columns": [
                    {
                        "column": each.column,
                        "change": each.change,
                        "operations": [{"seq": ref.seq, "name": ref.name} for ref in each.operations],
                    }
                    for each in conflicts
                ],
            }
            marked = self.store.mark_conflict(live.id, live.version, report=report, at=now(), by=who())
            if marked.status == "conflict":
                found[live.id] = conflicts
        return found

    # --- looking

    def listing(self, kind: str) -> list[dict[str, Any]]:
        """The definitions of a kind, in the files and in the store, with version and status."""
        read_choice("kind", kind, KINDS[1:])
        own: Mapping[str, Any] = getattr(self._definitions, f"{kind}s")
        store = self._existing_store()
        recorded = {version.id: version for version in store.list_definitions(kind)} if store is not None else {}
        live = {version.id: version for version in store.list_live_projects()} if store is not None else {}
        rows = []
        for name in sorted({*own, *recorded}):
            entity, version = own.get(name), recorded.get(name)
            status = getattr(entity, "status", "draft") if version is None else version.status
            if kind == "project" and name in live:
                status = live[name].status
            shown = entity.name if entity is not None else (version.document.get("name", name) if version else name)
            changed = entity is not None and (version is None or version.fingerprint != entity.fingerprint())
            number = version.version if version is not None else None
            row = {"id": name, "name": shown, "version": number, "status": str(status), "changed": changed}
            if kind == "project":
                row["live_version"] = live[name].version if name in live else None
            rows.append(row)
        planned = (
            [name for name in self._makers() if name not in own and name not in recorded] if kind == "dataset" else []
        )
        rows += [{"id": name, "name": name, "version": None, "status": "planned", "changed": False} for name in planned]
        return sorted(rows, key=lambda row: str(row["id"]))

    def describe(self, name: str) -> dict[str, Any]:
        """All about the project, dataset or other definition of this id."""
        store = self._existing_store()
        for kind in ("project", "dataset", "resolver", "datasource", "calendar"):
            entity = getattr(self._definitions, f"{kind}s").get(name)
            versions = store.list_versions(kind, name) if store is not None else ()
            if entity is None and not versions:
                continue
            found: dict[str, Any] = {"kind": kind, "id": name}
            found["versions"] = [_describe_version(version) for version in versions]
            found["definition"] = entity.document() if entity is not None else dict(versions[-1].document)
            return found
        if makers := self._makers().get(name):
            found = {"kind": "dataset", "id": name, "versions": [], "registered_by": makers}
            planned = self._draft_datasets().find(name)
            return found if planned is None else {**found, "definition": planned.dataset.document()}
        known = [row["id"] for kind in ("project", "dataset") for row in self.listing(kind)]
        raise Rejected([NotDefined(kind="project or dataset", id=name, known=tuple(known))])

    # --- the life of a project

    def activate(self, project_id: str, *, dataset_version: int | None = None) -> Version:
        """Make the newest version of a project the active one, with its input dataset pinned. All or nothing."""
        from dobonomodo.store import Pin

        read_project(project_id)
        self._require_readable(project_id)
        project = self._find(self._definitions.projects, "project", project_id)
        newest = self.store.get_version("project", project_id)
        if newest is None or newest.fingerprint != project.fingerprint():
            # What could not be applied for its problems is refused for these.
            planned = self._plan(project, self._draft_datasets())
            raise Rejected(planned.problems if planned.plan is None else [NotApplied(kind="project", id=project_id)])
        wanted = dataset_version if dataset_version is not None else project.input_dataset_version
        pinned = project.model_copy(update={"input_dataset_version": wanted})
        definitions = self._recorded_definitions()
        planned = self._plan(pinned, self._recorded_datasets(definitions), definitions=definitions)
        if planned.plan is None:
            raise Rejected(planned.problems)
        missing = [each for each in self._awaited(planned.plan) if isinstance(each, InputDatasetNotFound)]
        if missing:
            raise Rejected(missing)
        pin = Pin(planned.plan.input.dataset_id, planned.plan.input.version)
        return self.store.activate(
            project_id, newest.version, fingerprint=newest.fingerprint, pin=pin, at=now(), by=who()
        )

    def keep_pin(self, project_id: str) -> Version:
        """End a conflict by going on with the pinned version of the input dataset."""
        live = self._require_live(project_id)
        return self.store.keep_pin(project_id, live.version, at=now(), by=who())

    def deactivate(self, project_id: str) -> Version:
        """Stop a project from running."""
        live = self._require_live(project_id)
        return self.store.deactivate(project_id, live.version, at=now(), by=who())

    def _require_live(self, project_id: str) -> Version:
        read_project(project_id)
        live = self._live_version(project_id)
        if live is None:
            self._find(self._definitions.projects, "project", project_id)
            raise Rejected([ProjectNotRunnable(project_id=project_id, status="not active")])
        return live

    def _live_version(self, project_id: str) -> Version | None:
        store = self._existing_store()
        if store is None:
            return None
        return next((live for live in store.list_live_projects() if live.id == project_id), None)

    def has_newer_files(self, project_id: str) -> bool:
        """Whether the files say something else than the version that would run."""
        live, own = self._live_version(project_id), self._definitions.projects.get(project_id)
        return live is not None and own is not None and live.fingerprint != own.fingerprint()

    def _resting_status(self, project_id: str) -> str | None:
        """The status of a project without an active version, if that keeps it from running."""
        store = self._existing_store()
        newest = store.get_version("project", project_id) if store is not None else None
        return newest.status if newest is not None and newest.status == "inactive" else None

    def _recorded_project(self, version: Version) -> Project:
        project: Project = load_recorded(version, Project)
        if version.activation is None:
            return project
        return project.model_copy(update={"input_dataset_version": version.activation.pin.version})

    def _find(self, group: Mapping[str, Any], kind: str, wanted: str) -> Any:
        if wanted not in group:
            raise Rejected([NotDefined(kind=kind, id=wanted, known=tuple(group))])
        return group[wanted]


class _Datasets:
    """The datasets that planning can use: those of the files, as they would be recorded, over those of the store."""

    def __init__(
        self,
        definitions: Definitions | None,
        store: Callable[[], Store | None],
        *,
        count: bool = False,
        sandbox: Callable[[], Store | None] = lambda: None,
        chain: Callable[[_Datasets], Chain],
    ) -> None:
        self._definitions = definitions
        self._open = store
        self._count = count
        self._open_sandbox = sandbox
        self._make_chain = chain

    @cached_property
    def chain(self) -> Chain:
        """What the projects register, as planned."""
        return self._make_chain(self)

    @cached_property
    def _store(self) -> Store | None:
        return self._open()

    @cached_property
    def _sandbox(self) -> Store | None:
        """What drafts have registered."""
        return self._open_sandbox()

    def ids(self) -> Sequence[str]:
        files = self._definitions
        own = (*files.datasets, *files.broken.get("dataset", {})) if files is not None else ()
        stores = [store for store in (self._store, self._sandbox) if store is not None]
        recorded = [version for store in stores for version in store.list_definitions("dataset")]
        return tuple(dict.fromkeys([*own, *(version.id for version in recorded), *self.chain.ids()]))

    def versions(self, dataset_id: str) -> Sequence[int]:
        recorded = self._store.list_versions("dataset", dataset_id) if self._store is not None else ()
        numbers = [version.version for version in recorded]
        own = self._own(dataset_id)
        return numbers if own is None else sorted({*numbers, self._number(own)})

    def is_broken(self, dataset_id: str) -> bool:
        if self._definitions is not None and dataset_id in self._definitions.broken.get("dataset", {}):
            return True
        return self.chain.is_broken(dataset_id) and not self.versions(dataset_id)

    def find(self, dataset_id: str, version: int | None = None) -> KnownDataset | None:
        """A version that is stored or declared; where there is none, what a project will register (C-93)."""
        known = self._find_stored(dataset_id, version)
        if known is None and version is None and not self.versions(dataset_id):
            return self.chain.find(dataset_id)
        return known

    def find_stored(self, dataset_id: str) -> Dataset | None:
        """A dataset that is known without the plans of projects."""
        known = self._find_stored(dataset_id, None)
        return known.dataset if known is not None else None

    def _find_stored(self, dataset_id: str, version: int | None) -> KnownDataset | None:
        own = self._own(dataset_id)
        makers = self.chain.makers(dataset_id)
        if (own is None or makers) and (found := self._registered(dataset_id, version, own)) is not None:
            return _known(found)
        if (
            own is not None
            and own.status == "active"
            and version in (None, self._number(own, needed=version is not None))
        ):
            return KnownDataset(own, self._number(own), registered_by=makers)
        found = self._recorded(self._store, dataset_id, version, own) if self._store is not None else None
        return _known(found, makers) if found is not None else None

    def _registered(self, dataset_id: str, version: int | None, own: Dataset | None) -> Version | None:
        """A version that a run registered; without a number the newest, unless a resolver is declared (C-83)."""
        for store in (self._store, self._sandbox):
            if store is None:
                continue
            if version is not None:
                found = store.get_version("dataset", dataset_id, version=version)
            else:
                found = _newest_registered(store, dataset_id, own)
            if found is not None and found.location is not None:
                return found
        return None

    def _recorded(self, store: Store, dataset_id: str, version: int | None, own: Dataset | None) -> Version | None:
        if version is not None:
            return store.get_version("dataset", dataset_id, version=version)
        found = store.get_active_version("dataset", dataset_id)
        if found is not None and own is not None and found.version == self._number(own, needed=True):
            return None
        return found

    def _own(self, dataset_id: str) -> Dataset | None:
        return self._definitions.datasets.get(dataset_id) if self._definitions is not None else None

    def _number(self, dataset: Dataset, *, needed: bool = False) -> int:
        """The version that a file's dataset has or would get; 1 where nobody asks."""
        if not (self._count or needed) or self._store is None:
            return 1
        newest = self._store.get_version("dataset", dataset.id)
        if newest is None:
            return 1
        return newest.version if newest.fingerprint == dataset.fingerprint() else newest.version + 1


def _newest_registered(store: Store, dataset_id: str, own: Dataset | None) -> Version | None:
    """The newest active version that a run registered; None where the dataset is declared with a resolver."""
    newest = store.get_active_version("dataset", dataset_id)
    if newest is None or (own.resolver_id if own is not None else newest.document.get("resolver_id")) is not None:
        return None
    if newest.location is not None:
        return newest
    versions = reversed(store.list_versions("dataset", dataset_id))
    return next((each for each in versions if each.location is not None and each.status == "active"), None)


def _known(version: Version, makers: tuple[str, ...] = ()) -> KnownDataset:
    from dobonomodo.storage import load_stored

    stored = load_stored(version.location) if version.location is not None else None
    has_period = stored is not None and "_period" in (stored.columns or ())
    waiting = makers if stored is None else ()
    dataset = load_recorded(version, Dataset)
    return KnownDataset(dataset, version.version, stored, has_period, registered_by=waiting)


def _registered_types(version: Version) -> dict[str, Type]:
    """The columns of a registered version in the order in which they are stored, with their types."""
    from dobonomodo.storage.schema import SYSTEM

    declared = column_types(load_recorded(version, Dataset).main_table.columns)
    stored = (version.location or {}).get("columns", list(declared))
    return {name: declared.get(name) or SYSTEM.get(name.casefold(), TEXT) for name in stored}


def _describe_version(version: Version) -> dict[str, Any]:
    described: dict[str, Any] = {
        "version": version.version,
        "status": version.status,
        "created_at": version.created_at.isoformat(),
        "created_by": version.created_by,
    }
    if version.activation is not None:
        pin = version.activation.pin
        described["reads"] = f"{pin.dataset} v{pin.version}"
        described["activated_at"] = version.activation.at.isoformat()
    if version.conflict is not None:
        described["conflict"] = dict(version.conflict)
    if version.location is not None:
        described["location"] = dict(version.location)
    return described


def load_recorded(version: Version, kind: type[Any]) -> Any:
    """A recorded version as an entity; its places are in the record, shown as JSON."""
    text = json.dumps({version.kind: version.document}, indent=2, ensure_ascii=False)
    definitions, problems = load_definitions([Source(f"{version.id} version {version.version}", text)])
    group: Mapping[str, Any] = getattr(definitions, f"{version.kind}s")
    entity = group.get(version.id)
    if not isinstance(entity, kind):
        raise Rejected(problems)
    return entity


def require_runnable(period: Period, *, override_closed: bool) -> None:
    """A locked period never runs, a closed one only on request (C-69)."""
    if period.status == "locked" or (period.status == "closed" and not override_closed):
        raise Rejected([PeriodNotRunnable(period=period.identifier, status=period.status)])


def find_root(folder: Path) -> Path:
    """The workspace that a folder is in; a folder that is not there is in none."""
    try:
        start = folder.resolve()
    except ValueError as fault:
        # A name that no file can have, as one with NUL.
        raise Rejected([WorkspaceNotFound(folder=str(folder), exists=False)]) from fault
    for candidate in (start, *start.parents) if start.exists() else ():
        if (candidate / FILE).is_file():
            return candidate
    raise Rejected([WorkspaceNotFound(folder=str(folder), exists=start.exists())])


def _kinds_of_storage(plan: Plan, *, into: str | None) -> set[str]:
    """What a run reads and writes; ``into`` is what the sandbox of a draft is."""
    read = {location.kind for use in plan.uses for location in use.locations}
    registered = {use.registered.kind for use in plan.uses if use.registered is not None and not use.locations}
    written = {step.lowered.write.destination.kind for step in plan.steps if step.lowered.write is not None}
    return read | registered | ({into} if into is not None else written)


def _find_named(name: str, store: Store) -> Run | None:
    """The run that is named by what it was about, or by its place among the latest."""
    first, colon, project = name.partition(":")
    of, _, period = name.rpartition("@")
    if first == "latest" and (project or not colon):
        found = store.list_runs(project=project if colon else None, limit=1)
    elif name == "previous":
        found = store.list_runs(limit=2)[1:]
    elif of and period:
        found = store.list_runs(project=of, period=period, limit=1)
    else:
        return None
    return found[0] if found else None


def _is_error_of_file(problem: Problem) -> bool:
    if isinstance(problem, UnreadableFile):
        return problem.path == FILE
    return problem.severity == "error" and problem.span is not None and problem.span.source.name == FILE


def _read_files(root: Path) -> tuple[list[Source], list[Problem]]:
    paths = [root / FILE]
    for name in FOLDERS:
        paths += sorted(path for path in (root / name).rglob("*") if path.suffix in SUFFIXES and path.is_file())
    sources: list[Source] = []
    faults: list[Problem] = []
    for path in paths:
        name = path.relative_to(root).as_posix()
        try:
            if path.stat().st_size > MAX_FILE:
                faults.append(UnreadableFile(path=name, reason=f"it is larger than {MAX_FILE // 1_000_000} MB"))
                continue
            sources.append(Source(name, path.read_text(encoding="utf-8")))
        except UnicodeDecodeError as fault:
            faults.append(UnreadableFile(path=name, reason=f"byte {fault.start} is not UTF-8"))
        except OSError as fault:
            faults.append(UnreadableFile(path=name, reason=fault.strerror or str(fault)))
    return sources, faults


def _once(problems: Sequence[Problem]) -> Iterator[Problem]:
    """Each problem once, also when several operations run into it, as into a faulty selector or a missing definition."""
    missing = {problem.id for problem in problems if isinstance(problem, UnknownReference)}
    seen: set[object] = set()
    for problem in problems:
        if isinstance(problem, ResolverNotFound) and problem.resolver_id in missing:
            continue
        if isinstance(problem, DatasetMissing) and problem.operation is None and problem.dataset_id in missing:
            continue
        key = (problem.code, problem.span, problem.message()) if problem.span is not None else problem
        if key not in seen:
            seen.add(key)
            yield problem


def _versions() -> dict[str, str]:
    """The programs that a run is computed with."""
    import platform
    from importlib import metadata

    from dobonomodo import __version__

    found = {"dobonomodo": __version__, "python": platform.python_version()}
    for name in ("pyspark", "pyarrow"):
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def now() -> datetime:
    """The present, in UTC."""
    return datetime.now(UTC)


def who() -> str:
    """The user at the keyboard."""
    with suppress(KeyError, OSError):
        return getpass.getuser()
    return "unknown"
