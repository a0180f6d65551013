"""The public methods of a workspace for decisions: periods, sign-offs, history.

Implemented by ``closing``, ``signing`` and ``past``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from dobonomodo.workspace.arguments import check_session, read_moment
from dobonomodo.workspace.comparing import compare_projects, names_definition
from dobonomodo.workspace.periods import require_runnable
from dobonomodo.workspace.stamp import now
from dobonomodo.workspace.testing import run_scenarios

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.model import Calendar, Period, Schedule
    from dobonomodo.model.difference import Difference
    from dobonomodo.store import Entry, SignOff
    from dobonomodo.workspace.closing import Closing, PeriodView
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.lifecycle import Lifecycle, ProjectState
    from dobonomodo.workspace.periods import ListedPeriod, Periods
    from dobonomodo.workspace.signing import Signing
    from dobonomodo.workspace.stores import Stores


class Decisions:
    """What people decide about periods, runs and versions."""

    _files: Files
    _stores: Stores
    _periods: Periods
    _lifecycle: Lifecycle

    def schedules(self) -> tuple[tuple[Calendar, Schedule], ...]:
        """Every calendar with its periods, the statuses as they are now; the default calendar first."""
        return self._periods.schedules()

    def list_periods(self) -> tuple[ListedPeriod, ...]:
        """The periods of every calendar, with their statuses as they are now."""
        return self._periods.list()

    def find_period(self, identifier: str) -> Period:
        """A period of any calendar, the default calendar's first."""
        return self._periods.find(identifier)

    def find_periods(self, texts: Sequence[str], *, started_at: datetime | str | None = None) -> tuple[Period, ...]:
        """The periods of several texts by date: ``2026-01``, ``2026-01..2026-12``, or ``latest``, the last that has ended."""
        today = (read_moment("started_at", started_at) or now()).date()
        return self._periods.choose(texts, today=today)

    def require_runnable(self, periods: Sequence[Period], *, override_closed: bool = False) -> None:
        """Raise with every period that may not run, before the first of them does."""
        require_runnable(*periods, override_closed=override_closed)

    def change_period(self, identifier: str, status: str, *, reason: str | None = None) -> Period:
        """Close an open period (``closed``) or lock a closed one (``locked``); ``open`` makes sure that it is."""
        return self._closing.change(identifier, status, reason=reason)

    def reopen_period(self, identifier: str, *, reason: str | None = None) -> Period:
        """Open a closed or locked period again; for a locked one a reason is needed, and its results stay readable."""
        return self._closing.reopen(identifier, reason=reason)

    def show_period(self, identifier: str) -> PeriodView:
        """A period: its status, who decided that and why, its results and who signed them."""
        return self._closing.show(identifier)

    def sign(self, name: str, *, override: bool = False, comment: str | None = None) -> SignOff:
        """Sign a run, a version (``PROJECT@v3``) or the results of a period, as they are now.

        With ``override``, approve a run of a project for a closed period (``PROJECT@PERIOD``).
        """
        return self._signing.sign(name, override=override, comment=comment)

    def unsign(self, name: str, *, override: bool = False, reason: str | None = None) -> tuple[SignOff, ...]:
        """Withdraw one's own sign-offs of something."""
        return self._signing.unsign(name, override=override, reason=reason)

    def history(self, name: str | None = None, *, limit: int | None = None) -> tuple[Entry, ...]:
        """Who did what, when and why, oldest first: all of it, or what belongs to a project or a period."""
        from dobonomodo.workspace.past import list_history

        return list_history(self._files, self._stores, self._periods, name=name, limit=limit)

    def names_definition(self, name: str) -> bool:
        """Whether a name is that of a version of a project, or of a project of the files, and not of a run."""
        return names_definition(name, files=self._files)

    def diff_projects(self, one: str, other: str) -> Difference:
        """What differs between two versions of projects (``PROJECT@v3``); ``PROJECT`` alone is the project of the files."""
        return compare_projects(one, other, files=self._files, stores=self._stores)

    def activate(
        self,
        project_id: str,
        *,
        dataset_version: int | None = None,
        test: bool = True,
        reason: str | None = None,
        spark: SparkSession | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> ProjectState:
        """Make the newest version of a project the active one, once its scenarios pass. ``test=False`` needs a reason."""
        check_session(spark)
        run = partial(run_scenarios, files=self._files, spark=spark, report=report) if test else None
        return self._lifecycle.activate(project_id, dataset_version=dataset_version, test=run, reason=reason)

    def keep_pin(self, project_id: str) -> ProjectState:
        """Resolve a conflict by keeping the pinned version of the input dataset."""
        return self._lifecycle.keep_pin(project_id)

    def deactivate(self, project_id: str) -> ProjectState:
        """Stop a project from running."""
        return self._lifecycle.deactivate(project_id)

    @property
    def _signing(self) -> Signing:
        from dobonomodo.workspace.signing import Signing

        return Signing(self._files, self._stores, self._periods)

    @property
    def _closing(self) -> Closing:
        from dobonomodo.workspace.closing import Closing

        return Closing(self._files, self._stores, self._periods, self._signing)
