"""The workspace: the facade of all use cases over a folder of definitions; other modules implement its methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.model import Definitions
from dobonomodo.model.plain import Document
from dobonomodo.problems import Problem, Source
from dobonomodo.problems.listing import Problems
from dobonomodo.workspace.answers import Answers
from dobonomodo.workspace.arguments import check_session, require_reason
from dobonomodo.workspace.checking import find_problems, require_sound
from dobonomodo.workspace.decisions import Decisions
from dobonomodo.workspace.files import Files, find_root, read_files, write_documents
from dobonomodo.workspace.lifecycle import Applied, Lifecycle
from dobonomodo.workspace.listing import Description, Listed, Listing
from dobonomodo.workspace.naming import find_run
from dobonomodo.workspace.periods import Periods
from dobonomodo.workspace.planning import PlannedRun, Planning
from dobonomodo.workspace.records import Records
from dobonomodo.workspace.session import SessionOptions, SparkChoice
from dobonomodo.workspace.stamp import now, who
from dobonomodo.workspace.stores import Stores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.model.workspace import Workspace as Settings
    from dobonomodo.runs import Listener, RunView
    from dobonomodo.runs.comparison import Other
    from dobonomodo.store import Change, Run, Store
    from dobonomodo.workspace.cleaning import Cleaned
    from dobonomodo.workspace.execution import Execution
    from dobonomodo.workspace.handle import RunHandle
    from dobonomodo.workspace.reports import Reports
    from dobonomodo.workspace.sampling import Sample


class Workspace(Decisions, Answers, Records):
    """A folder of definitions, its store, and what can be done with them."""

    def __init__(
        self, root: Path, sources: Sequence[Source], *, faults: Sequence[Problem] = (), environment: str | None = None
    ) -> None:
        self._files = Files.load(root, sources, faults=faults, environment=environment)
        self._stores = Stores(self._files, problems=self.problems)
        self._periods = Periods(self._files, self._stores)
        self._planning = Planning(self._files, self._stores, self._periods)
        self._lifecycle = Lifecycle(self._files, self._stores, self._planning, signing=lambda: self._signing)
        self._listing = Listing(self._files, self._stores, self._planning, signing=lambda: self._signing)

    @classmethod
    def open(cls, folder: str | Path = ".", *, environment: str | None = None) -> Workspace:
        """The workspace at a folder or around it."""
        root = find_root(Path(folder))
        sources, faults = read_files(root)
        return cls(root, sources, faults=faults, environment=environment)

    @classmethod
    def from_documents(cls, documents: Iterable[Document], *, root: str | Path) -> Workspace:
        """A workspace of definitions made in a program; ``root`` is where relative paths start."""
        return cls(Path(root), write_documents(documents))

    @property
    def root(self) -> Path:
        """Where relative paths start."""
        return self._files.root

    @property
    def definitions(self) -> Definitions:
        """What the files define, without what could not be read."""
        return self._files.definitions

    @property
    def settings(self) -> Settings:
        """The defaults, where the file that says otherwise has errors: then nothing is read or written by them."""
        return self._files.settings

    @property
    def store(self) -> Store:
        """The store of the workspace; created if it does not exist."""
        return self._stores.main

    def require_settings(self) -> None:
        """Raise with every problem if the file of the workspace could not be read: defaults must not replace it."""
        self._stores.require_settings()

    def close(self) -> None:
        """Close all connections; a store that is needed later is opened again."""
        self._stores.close()

    def problems(self) -> Problems:
        """Every problem of every file and every project, by place. Needs no Spark and creates no store."""
        return find_problems(self._files, self._planning)

    def require_sound(self) -> None:
        """Raise with every problem if there is an error anywhere."""
        require_sound(self._files, self._planning)

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
        parameters: Mapping[str, object] | None = None,
    ) -> PlannedRun:
        """What a run of a project for a period would read, do and write.

        The active version is planned with what the store has recorded; a draft with the files as they are.
        """
        return self._planning.plan_run(
            project_id,
            period=period,
            as_of=as_of,
            started_at=started_at,
            draft=draft,
            override_closed=override_closed,
            to_run=to_run,
            parameters=parameters,
        )

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
        reason: str | None = None,
        wait: bool = False,
        figures: bool | None = None,
        listener: Listener | None = None,
        session: SessionOptions | None = None,
        parameters: Mapping[str, object] | None = None,
    ) -> RunView:
        """Run a project for a period. Raises ``Rejected`` before anything is read; a run that fails says so itself.

        A Spark session that is passed in is left running and configured as it was found. Dates and times may be ISO text.
        ``figures`` says whether totals are computed; left out, as the workspace does.
        ``override_closed`` needs a ``reason``, which is recorded. ``parameters`` are values of the project's parameters by name.
        """
        check_session(spark)
        why = require_reason(reason, act="running a closed period") if override_closed else None
        plan = partial(self.plan, project_id, period=period, as_of=as_of, started_at=started_at, draft=draft)
        planned = plan(override_closed=override_closed, to_run=True, parameters=parameters)
        override = self._signing.allow_override(planned, reason=why) if why is not None else None
        chosen = self._choose_spark(spark, session)
        view = self._execution.run(planned, chosen, override=override, wait=wait, listener=listener, figures=figures)
        return self._compare_with_locked(self._readable(view), chosen)

    def start(
        self,
        project_id: str,
        *,
        period: str,
        as_of: date | str | None = None,
        started_at: datetime | str | None = None,
        spark: SparkSession | None = None,
        draft: bool = False,
        override_closed: bool = False,
        reason: str | None = None,
        listener: Listener | None = None,
        session: SessionOptions | None = None,
        parameters: Mapping[str, object] | None = None,
    ) -> RunHandle:
        """As ``run``, in a thread: raises ``Rejected`` as ``run`` does, else returns when the run is recorded."""
        from dobonomodo.workspace.handle import start_run

        run = partial(self.run, project_id, period=period, as_of=as_of, started_at=started_at, spark=spark, draft=draft)
        run = partial(run, override_closed=override_closed, reason=reason, session=session, parameters=parameters)
        return start_run(lambda heard: run(listener=heard), find=self.find_run, cancel=self.cancel, listener=listener)

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
        check_session(spark)
        record = self._find_record(run_id)
        self._periods.require_resumable(record)
        chosen = self._choose_spark(spark, session)
        view = self._execution.resume(record, chosen, wait=wait, listener=listener)
        return self._compare_with_locked(self._readable(view), chosen)

    def can_resume(self, run_id: str) -> bool:
        """Whether a run can be resumed, as far as is known now."""
        record = self._find_record(run_id)
        return self._periods.can_resume(record) and self._execution.can_resume(record)

    def cancel(self, run_id: str) -> RunView:
        """Cancel a run; published outputs stay."""
        from dobonomodo.runs.runner import cancel_run

        record = self._find_record(run_id)
        return cancel_run(self.store, record, at=now(), by=who())

    def verify(
        self,
        run_id: str,
        *,
        replay: bool = False,
        spark: SparkSession | None = None,
        session: SessionOptions | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> tuple[RunView, tuple[Problem, ...]]:
        """Whether the outputs of a run are still what it recorded; with ``replay``, whether computing again gives the same.

        Where inputs have changed since, the copies that were kept of them are read; ``report`` is told which.
        """
        from dobonomodo.workspace.verifying import verify_outputs, verify_replay

        check_session(spark)
        record = self._find_record(run_id)
        view = self._describe(record)
        engine = self._choose_spark(spark, session).engine()
        if replay:
            data = self._execution.reopen_data(record, lambda: engine.spark)
            return view, verify_replay(view, data=data, engine=engine, report=report)
        return view, verify_outputs(view, record, files=self._files, store=self.store, engine=engine)

    def runs(
        self, *, project: str | None = None, period: str | None = None, status: str | None = None, limit: int = 100
    ) -> tuple[RunView, ...]:
        """The latest runs, newest first."""
        store = self._stores.find_main()
        if store is None:
            return ()
        listed = store.list_runs(project=project, period=period, status=status, limit=limit)
        return tuple(self._view(run) for run in listed)

    def find_run(self, run_id: str) -> RunView:
        """A run by its id, by enough of its beginning or end to tell it from the others, or by a name for it:

        ``latest``, ``latest:PROJECT``, ``previous`` (the one before the latest) or ``PROJECT@PERIOD``, the latest of those.
        """
        return self._describe(self._find_record(run_id))

    def compare(self, run_id: str) -> tuple[Other, ...]:
        """The runs that the figures of a run are compared with: the one before it, and the latest of the period before."""
        return self._reports.compare(self._find_record(run_id))

    def clean(self, *, dry_run: bool = False) -> Cleaned:
        """Remove what killed runs left, and copies of inputs that no run needs; with ``dry_run``, only find it.

        Runs that are alive or can be resumed keep what they need.
        """
        from dobonomodo.workspace.cleaning import clean_workspace

        keep, data = self.settings.keep_inputs, self._execution.open_data
        return clean_workspace(self._files, self._stores, data=data, keep_inputs=keep, dry_run=dry_run)

    def write_report(self, run_id: str, to: str | Path | None = None) -> Path:
        """The report of a run as one HTML file, in the folder of reports by default; returns its path."""
        run = self._find_record(run_id)
        path = Path(to) if to is not None else self._reports.default_path(run)
        self._reports.write(run, path)
        return path

    def write_reports(self, folder: str | Path | None = None) -> Path:
        """The reports of all runs in a folder, and an index of them; returns the path of the index."""
        return self._reports.write_all(Path(folder) if folder is not None else self._reports.folder)

    def listing(self, kind: str) -> tuple[Listed, ...]:
        """The definitions of a kind, in the files and in the store, with version and status."""
        return self._listing.list(kind)

    def describe(self, name: str) -> Description:
        """All about the project, dataset or other definition of this id."""
        return self._listing.describe(name)

    def sample(self, name: str, rows: int, *, period: str | None = None) -> Sample:
        """The first rows of a run's outputs, or of a dataset in a period, by table; read without Spark."""
        from dobonomodo.workspace.sampling import sample_input, sample_registered, sample_run

        if name in self._files.definitions.datasets:
            return sample_input(name, rows, period, files=self._files, planning=self._planning, periods=self._periods)
        store = self._stores.find_main()
        version = store.get_active_version("dataset", name) if store is not None else None
        if version is not None and version.location is not None:
            return sample_registered(version, rows, files=self._files)
        return sample_run(name, rows, find=self.find_run, files=self._files)

    def changes(self) -> tuple[Change, ...]:
        """What applying the files would change; raises with every problem if there is an error."""
        return self._lifecycle.changes()

    def apply(self) -> Applied:
        """Record the definitions: new versions for what changed, and conflicts for active projects that it breaks."""
        return self._lifecycle.apply()

    def has_newer_files(self, project_id: str) -> bool:
        """Whether the files say something else than the version that would run."""
        return self._lifecycle.has_newer_files(project_id)

    @property
    def _execution(self) -> Execution:
        from dobonomodo.workspace.execution import Execution

        return Execution(self._files, self._stores)

    @property
    def _reports(self) -> Reports:
        from dobonomodo.workspace.reports import Reports

        return Reports(self._files, self.store, self._periods, describe=self._describe, can_resume=self.can_resume)

    def _choose_spark(self, spark: SparkSession | None, session: SessionOptions | None) -> SparkChoice:
        chosen = SparkChoice(self._files, spark, session or SessionOptions())
        chosen.require()
        return chosen

    def _find_record(self, run_id: str) -> Run:
        return find_run(self._stores.find_main(), run_id)

    def _view(self, record: Run) -> RunView:
        from dobonomodo.runs import view_run

        return self._readable(view_run(record))

    def _describe(self, record: Run) -> RunView:
        """A run with what people decided about it, its rows where they were kept when the period was locked."""
        from dobonomodo.workspace.closing import place_kept

        kept = place_kept(self._view(record), self.store.list_history(period=record.period))
        return replace(self._readable(kept), signed=self._signing.list_signed(self._signing.of_run(record)))

    def _readable(self, view: RunView) -> RunView:
        from dobonomodo.workspace.verifying import with_frames

        return self._askable(with_frames(view, self._files))
