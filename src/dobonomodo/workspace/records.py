"""The public methods of a workspace for past runs: comparison, audit, evidence.

Implemented by ``diffing``, ``auditing`` and ``evidence``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.problems import Rejected, RunFailed
from dobonomodo.runs.state import RunStatus
from dobonomodo.store import Kind
from dobonomodo.workspace.arguments import check_session
from dobonomodo.workspace.naming import find_compared, find_completed, find_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.runs import RunView
    from dobonomodo.runs.columns import ChangedColumns
    from dobonomodo.runs.difference import RunDifference
    from dobonomodo.store import Run
    from dobonomodo.workspace.auditing import Audited
    from dobonomodo.workspace.cells import Cell
    from dobonomodo.workspace.diffing import Diffing, Side
    from dobonomodo.workspace.evidence import Evidence
    from dobonomodo.workspace.execution import Execution
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.session import SessionOptions, SparkChoice
    from dobonomodo.workspace.stores import Stores


class Records(ABC):
    """Comparison, audit and evidence of past runs."""

    _files: Files
    _stores: Stores

    @abstractmethod
    def find_run(self, run_id: str) -> RunView:
        """A run by its id or by a name for it."""

    @abstractmethod
    def _describe(self, record: Run) -> RunView: ...

    @abstractmethod
    def _choose_spark(self, spark: SparkSession | None, session: SessionOptions | None) -> SparkChoice: ...

    @abstractmethod
    def run(
        self,
        project_id: str,
        *,
        period: str,
        as_of: date | str | None = None,
        started_at: datetime | str | None = None,
        spark: SparkSession | None = None,
        draft: bool = False,
        session: SessionOptions | None = None,
        parameters: Mapping[str, object] | None = None,
    ) -> RunView:
        """Run a project for a period."""

    @property
    @abstractmethod
    def _execution(self) -> Execution: ...

    def diff_runs(
        self,
        before: str,
        after: str,
        table: str | None = None,
        *,
        key: Sequence[str] = (),
        attribute: bool = False,
        spark: SparkSession | None = None,
        session: SessionOptions | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> RunDifference:
        """What differs between the rows of two runs: of one output, or of all that both have.

        Runs are named as everywhere; ``PROJECT@PERIOD`` is the newest that completed, and ``previous`` the one before the other
        run for its project and period, where there is one. ``key`` are the columns by which rows are
        paired; left out, what the plans know of their rows. With ``attribute``, differences of rows and totals are divided among
        their causes, which computes the outputs several times.
        """
        from dobonomodo.workspace.diffing import shared_outputs

        check_session(spark)
        one, other = (self._side(run) for run in find_compared(self._stores.find_main(), before, after))
        # Refused before Spark starts, which takes seconds.
        shared_outputs(one, other, table)
        return self._diffing(spark, session, report).compare(one, other, table=table, key=key, attribute=attribute)

    def diff_columns(self, before: str, after: str, table: str | None = None) -> ChangedColumns:
        """Which columns of the outputs of two runs changed, as far as their records tell; reads no rows and needs no Spark.

        Records tell it of runs that were made with `figures: columns`, and of outputs whose rows are all the same.
        """
        from dobonomodo.runs.columns import ChangedColumns, compare_columns
        from dobonomodo.workspace.diffing import shared_outputs

        one, other = (self._side(run) for run in find_compared(self._stores.find_main(), before, after))
        tables = [compare_columns(name, one.view, other.view) for name in shared_outputs(one, other, table)]
        return ChangedColumns(one.view.id, other.view.id, tuple(tables))

    def diff_draft(
        self,
        name: str,
        table: str | None = None,
        *,
        key: Sequence[str] = (),
        attribute: bool = False,
        spark: SparkSession | None = None,
        session: SessionOptions | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> RunDifference:
        """What the files as they are would change in a published result (``PROJECT@PERIOD``), with its clock and parameters.

        The draft writes to the sandbox.
        """
        check_session(spark)
        published = find_completed(self._stores.find_main(), name)
        draft = self._run_draft(published, spark, session, report)
        record = find_run(self._stores.find_main(), draft.id)
        sides = (self._side(published), self._side(record))
        return self._diffing(spark, session, report).compare(*sides, table=table, key=key, attribute=attribute)

    def _run_draft(
        self,
        published: Run,
        spark: SparkSession | None,
        session: SessionOptions | None,
        report: Callable[[str], None],
    ) -> RunView:
        report(f"running the files as they are, with the clock of run {published.id}")
        snapshot = published.snapshot
        project = self._files.definitions.projects.get(published.project)
        known = project.parameters or {} if project is not None else {}
        draft = self.run(
            published.project,
            period=published.period,
            started_at=snapshot["started_at"],
            as_of=snapshot["as_of"],
            parameters={name: value for name, value in snapshot.get("parameters", {}).items() if name in known},
            draft=True,
            spark=spark,
            session=session,
        )
        if draft.status != RunStatus.COMPLETED:
            raise Rejected(draft.problems)
        return draft

    def _compare_with_locked(self, view: RunView, spark: SparkChoice) -> RunView:
        """Compare a run that has just ended with the locked result that it is the first to replace, if there is one."""
        from dobonomodo.runs.difference import LockedComparison
        from dobonomodo.runs.retention import find_locked_result
        from dobonomodo.workspace.diffing import Diffing
        from dobonomodo.workspace.replaced import keep_comparison

        if view.draft or view.status != RunStatus.COMPLETED:
            return view
        store = self._stores.main
        record = store.get_run(view.id)
        history = [entry for entry in store.list_history(period=view.period) if entry.subject.kind == Kind.PERIOD]
        runs = store.list_runs(period=view.period) if history else ()
        locked = find_locked_result(history, runs, record) if record is not None else None
        if locked is None or record is None:
            return view
        try:
            sides = [self._side(each) for each in (find_run(store, locked), record)]
            diffing = Diffing(self._files, spark.engine(), self._execution, lambda _: None)
            found = LockedComparison(locked, diffing.compare(*sides, table=None, key=(), attribute=True))
        except Rejected as rejected:
            found = LockedComparison(locked, None, tuple(rejected.problems))
        except RunFailed as failed:
            found = LockedComparison(locked, None, (failed.problem,))
        keep_comparison(self._files.root, view.id, found)
        return replace(view, locked=found)

    def _side(self, record: Run) -> Side:
        from dobonomodo.workspace.diffing import Side

        return Side(self._describe(record), record)

    def _diffing(
        self, spark: SparkSession | None, session: SessionOptions | None, report: Callable[[str], None]
    ) -> Diffing:
        from dobonomodo.workspace.diffing import Diffing

        engine = self._choose_spark(spark, session).engine()
        return Diffing(self._files, engine, self._execution, report)

    def audit(self, *, report: Callable[[str], None] = lambda _: None) -> Audited:
        """Whether history, records, outputs and manifests are unchanged since they were written; needs no Spark."""
        from dobonomodo.workspace.auditing import audit_workspace

        return audit_workspace(self._files, self._stores, report=report)

    def write_evidence(
        self, run_id: str, to: str | Path, *, cells: Sequence[Cell] = (), sample: int | None = None
    ) -> Evidence:
        """All that proves a run in one file, with a program that checks it; needs no Spark.

        ``cells`` are rows to explain in it, in addition to a ``sample`` of each output.
        """
        from dobonomodo.workspace.cells import SAMPLE, explain_cells
        from dobonomodo.workspace.evidence import write_evidence
        from dobonomodo.workspace.explaining import Opener
        from dobonomodo.workspace.verifying import open_storages

        record = find_run(self._stores.find_main(), run_id)
        view, store = self.find_run(record.id), self._stores.main
        with Opener(self._files, store) as opener:
            more = explain_cells(opener.open(view, record), cells, sample=SAMPLE if sample is None else sample)
        storages = open_storages(self._files, record)
        return write_evidence(view, record, store=store, storages=storages, to=Path(to), more=more)
