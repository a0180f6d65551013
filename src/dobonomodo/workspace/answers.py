"""The doors of a workspace to explanations. The room is ``explaining``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dobonomodo.runs import RunView
    from dobonomodo.store import Run, Store
    from dobonomodo.why.absence import Absence
    from dobonomodo.why.explanation import Explanation
    from dobonomodo.workspace.files import Files


class Answers:
    """What can be asked about the rows of a run."""

    _files: Files

    def _find_record(self, run_id: str) -> Run:
        raise NotImplementedError

    def _describe(self, record: Run) -> RunView:
        raise NotImplementedError

    @property
    def store(self) -> Store:
        """The store of the workspace."""
        raise NotImplementedError

    def _askable(self, view: RunView) -> RunView:
        """A run that can be asked about its rows."""
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
        depth: int = 1,
    ) -> Explanation:
        """Why a row of a published output has its values; needs no Spark.

        The row is named by the values of some columns, or by its id. Raises ``Rejected`` where there is no such row, or where
        what is computed again differs from what is stored. ``contributors``: how many rows of a summary; None for all.
        ``depth``: how many runs are followed, where a row was written by another run.
        """
        from dobonomodo.workspace.explaining import explain_row

        record = self._find_record(run_id)
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
            depth=depth,
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
        """The stored rows that a row depends on, as the YAML of a scenario that gives it again.

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
