"""The public methods of a workspace for explanations; ``explaining`` implements them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.engine.engine import SparkEngine
    from dobonomodo.runs import RunView
    from dobonomodo.store import Run, Store
    from dobonomodo.why.absence import Absence
    from dobonomodo.why.explanation import Explanation
    from dobonomodo.workspace.execution import Execution
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.running import RunData
    from dobonomodo.workspace.session import SessionOptions, SparkChoice


Contributor = Mapping[str, object] | Sequence[Mapping[str, object]]
"""Values that name a row of a total, or one for each total on the way down."""


class Answers:
    """Explanations of the rows of a run."""

    _files: Files

    def _find_record(self, run_id: str) -> Run:
        raise NotImplementedError

    def _describe(self, record: Run) -> RunView:
        raise NotImplementedError

    def _choose_spark(self, spark: SparkSession | None, session: SessionOptions | None) -> SparkChoice:
        raise NotImplementedError

    @property
    def _execution(self) -> Execution:
        raise NotImplementedError

    @property
    def store(self) -> Store:
        """The store of the workspace."""
        raise NotImplementedError

    def _askable(self, view: RunView) -> RunView:
        """A run whose rows can be explained."""
        return replace(view, ask=partial(self.why, view.id), ask_absence=partial(self.why_not, view.id))

    def why(
        self,
        run_id: str,
        table: str | None = None,
        *,
        key: Mapping[str, object] | None = None,
        row_id: str | None = None,
        column: str | None = None,
        contributors: int | None = 20,
        contributor: Contributor | None = None,
        depth: int = 1,
        spark: SparkSession | None = None,
        report: Callable[[str], None] | None = None,
    ) -> Explanation:
        """Why a row of a published output has its values; Spark is needed only for totals of very many rows.

        The row is named by the values of some columns, or by its id. Raises ``Rejected`` where there is no such row, or
        where what is computed again differs from what is stored. ``contributors``: how many rows of a summary; None for
        all. ``contributor``: explain one of them, by values of its columns; several follow totals of totals. ``depth``: how
        many runs are followed, where a row was written by another run. ``report`` receives a message when Spark starts.
        """
        from dobonomodo.why.row import AT_MOST
        from dobonomodo.workspace.explaining import explain_row

        record = self._find_record(run_id)

        def start_spark() -> tuple[SparkEngine, RunData]:
            if report is not None:
                report(f"more than {AT_MOST:,} rows lead to this total: starting Spark")
            engine = self._choose_spark(spark, None).engine()
            return engine, self._execution.reopen_data(record, lambda: engine.spark)

        return explain_row(
            self._describe(record),
            record,
            files=self._files,
            store=self.store,
            table=table,
            key=key or {},
            row_id=row_id,
            column=column,
            contributors=contributors,
            path=[contributor] if isinstance(contributor, Mapping) else contributor or (),
            depth=depth,
            spark=start_spark,
        )

    def why_scenario(
        self,
        run_id: str,
        table: str | None = None,
        *,
        key: Mapping[str, object] | None = None,
        row_id: str | None = None,
        mask: bool = False,
    ) -> str:
        """The stored rows that a row depends on, as the YAML of a scenario that reproduces it.

        With ``mask``, texts are replaced, the same text always by the same; texts that formulas name stay.
        """
        from dobonomodo.workspace.explaining import export_scenario

        record = self._find_record(run_id)
        return export_scenario(
            self._describe(record),
            record,
            files=self._files,
            store=self.store,
            table=table,
            key=key or {},
            row_id=row_id,
            mask=mask,
        )

    def why_not(
        self, run_id: str, table: str | None = None, *, key: Mapping[str, object], column: str | None = None
    ) -> Absence:
        """Why a row is not in a published output, or why a column of it was not set; needs no Spark."""
        from dobonomodo.workspace.explaining import explain_absence

        record = self._find_record(run_id)
        view = self._describe(record)
        return explain_absence(view, record, files=self._files, store=self.store, table=table, key=key, column=column)
