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
    ) -> Explanation:
        """Why a row of a published output has its values; needs no Spark.

        The row is named by the values of some columns, or by its id. Raises ``Rejected`` where there is no such row, or where
        what is computed again differs from what is stored. ``contributors``: how many rows of a summary; None for all.
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
        )

    def why_not(
        self, run_id: str, table: str | None = None, *, key: Mapping[str, object], column: str | None = None
    ) -> Absence:
        """Why a row is not in a published output, or why a column of it was not set; needs no Spark."""
        from dobonomodo.workspace.explaining import explain_absence

        record = self._find_record(run_id)
        view = self._describe(record)
        return explain_absence(view, record, files=self._files, store=self.store, table=table, key=key, column=column)
