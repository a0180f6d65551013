"""The doors of a workspace to what can be proved of the past. The rooms are ``auditing`` and its neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dobonomodo.workspace.auditing import Audited
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.stores import Stores


class Records:
    """What can be proved of runs of the past."""

    _files: Files
    _stores: Stores

    def audit(self, *, report: Callable[[str], None] = lambda _: None) -> Audited:
        """Whether history, records, outputs and manifests are what they were when they were written; needs no Spark."""
        from dobonomodo.workspace.auditing import audit_workspace

        return audit_workspace(self._files, self._stores, report=report)
