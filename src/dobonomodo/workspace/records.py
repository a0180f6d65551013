"""The doors of a workspace to what can be proved of the past. The rooms are ``auditing`` and its neighbours."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.workspace.naming import find_run

if TYPE_CHECKING:
    from dobonomodo.runs import RunView
    from dobonomodo.workspace.auditing import Audited
    from dobonomodo.workspace.evidence import Evidence
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.stores import Stores


class Records(ABC):
    """What can be proved of runs of the past."""

    _files: Files
    _stores: Stores

    @abstractmethod
    def find_run(self, run_id: str) -> RunView:
        """A run by its id or by a name for it."""

    def audit(self, *, report: Callable[[str], None] = lambda _: None) -> Audited:
        """Whether history, records, outputs and manifests are what they were when they were written; needs no Spark."""
        from dobonomodo.workspace.auditing import audit_workspace

        return audit_workspace(self._files, self._stores, report=report)

    def write_evidence(self, run_id: str, to: str | Path) -> Evidence:
        """All that proves a run in one file, with a program that checks it; needs no Spark."""
        from dobonomodo.workspace.evidence import write_evidence

        record = find_run(self._stores.find_main(), run_id)
        view = self.find_run(record.id)
        return write_evidence(view, record, store=self._stores.main, root=self._files.root, to=Path(to))
