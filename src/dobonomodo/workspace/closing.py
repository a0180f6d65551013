"""Closes, locks and reopens periods, and records who decided it and why; the results of a locked period stay readable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from dobonomodo.model import Period
from dobonomodo.problems import Rejected
from dobonomodo.problems.control import PeriodInUse
from dobonomodo.runs.control import Signed
from dobonomodo.runs.holder import is_dead
from dobonomodo.runs.progress import Progress
from dobonomodo.runs.retention import KEPT
from dobonomodo.runs.snapshot import load_datasources
from dobonomodo.runs.state import RunStatus
from dobonomodo.storage import Storages, load_stored
from dobonomodo.store import Entry, PeriodEvent
from dobonomodo.workspace.arguments import read_choice, read_reason, require_reason
from dobonomodo.workspace.session import SparkChoice
from dobonomodo.workspace.stamp import now, who

if TYPE_CHECKING:
    from dobonomodo.runs import RunView
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.periods import Periods
    from dobonomodo.workspace.signing import Signing
    from dobonomodo.workspace.stores import Stores

_EVENTS = {"open": PeriodEvent.OPEN, "closed": PeriodEvent.CLOSE, "locked": PeriodEvent.LOCK}


@dataclass(frozen=True, slots=True)
class Result:
    """The run whose rows are the result of a project for a period."""

    project: str
    run: str
    status: str
    by: str
    at: datetime

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {"project": self.project, "run_id": self.run, "status": self.status, "by": self.by, "at": self.at}


@dataclass(frozen=True, slots=True, eq=False)
class PeriodView:
    """A period: its status, who decided that and why, its results and who signed them."""

    period: Period
    starts: dict[str, str]
    """The status in the file of each calendar that has it, where it starts."""
    results: tuple[Result, ...]
    signed: tuple[Signed, ...]
    history: tuple[Entry, ...]
    """All that happened to the period and its runs."""

    @property
    def latest(self) -> Entry | None:
        """The event that set its status; None if the status comes from the file."""
        return next((entry for entry in reversed(self.history) if entry.event in set(PeriodEvent)), None)

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        latest = self.latest
        return {
            **self.period.document(),
            "status_in_file": self.starts,
            "changed_by": latest.by if latest is not None else None,
            "changed_at": latest.at if latest is not None else None,
            "reason": latest.reason if latest is not None else None,
            "results": [each.to_dict() for each in self.results],
            "sign_offs": [each.to_dict() for each in self.signed],
            "history": [entry.to_dict() for entry in self.history],
        }


class Closing:
    """Moves periods between open, closed and locked."""

    def __init__(self, files: Files, stores: Stores, periods: Periods, signing: Signing) -> None:
        self._files, self._stores, self._periods, self._signing = files, stores, periods, signing

    def change(self, identifier: str, status: str, *, reason: str | None) -> Period:
        """Close an open period, lock a closed one; ``open`` only makes sure that it is."""
        read_choice("status", status, list(_EVENTS))
        period, event = self._periods.find(identifier), _EVENTS[status]
        approvals = None
        if event is PeriodEvent.LOCK:
            approvals = self._signing.find_approvals("lock", self._signing.of_period(period.identifier))
        if status not in ("open", period.status):
            self._require_published(period.identifier)
        self._stores.main.change_period(
            period.identifier,
            event=event,
            starts=self._periods.list_starts(period.identifier),
            at=now(),
            by=who(),
            reason=read_reason(reason),
            approvals=approvals,
            dead=[lease.token for lease in self._stores.main.list_leases() if is_dead(lease.token)],
        )
        return self._periods.find(identifier)

    def reopen(self, identifier: str, *, reason: str | None) -> Period:
        """Open a closed or locked period again; the results of a locked one stay readable."""
        period, why, detail = self._periods.find(identifier), read_reason(reason), None
        if period.status == "locked":
            why = require_reason(reason, act=f"reopening the locked period `{period.identifier}`")
            detail = {KEPT: list(self._keep_results(period.identifier))}
        self._stores.main.change_period(
            period.identifier,
            event=PeriodEvent.REOPEN,
            starts=self._periods.list_starts(period.identifier),
            at=now(),
            by=who(),
            reason=why,
            detail=detail,
        )
        return self._periods.find(identifier)

    def show(self, identifier: str) -> PeriodView:
        """All about a period."""
        period, store = self._periods.find(identifier), self._stores.find_main()
        starts = {calendar: status.value for calendar, status in self._periods.list_starts(period.identifier).items()}
        if store is None:
            return PeriodView(period, starts, (), (), ())
        signable = self._signing.of_period(period.identifier)
        results = tuple(Result(run.project, run.id, run.status, run.by, run.created_at) for run in signable.results)
        history = store.list_history(period=period.identifier)
        return PeriodView(period, starts, results, self._signing.list_signed(signable), history)

    def _require_published(self, identifier: str) -> None:
        """No run was killed between its first publication and its last: half of its results would be there."""
        for run in self._stores.main.list_runs(period=identifier):
            if run.status != RunStatus.CANCELLED and Progress.load(run.progress).intent is not None:
                raise Rejected([PeriodInUse(period=identifier, project=run.project, run=run.id)])

    def _keep_results(self, identifier: str) -> Iterator[dict[str, object]]:
        """Keep the rows of all results readable, whatever runs write from now on; returns their places."""
        for run in self._signing.list_results(identifier):
            sources = {**self._files.definitions.datasources, **load_datasources(run.snapshot)}
            storages = Storages(self._files.root, sources, session=SparkChoice(self._files).session())
            for output in Progress.load(run.progress).outputs:
                storage = storages.of_record(output.location)
                kept = storage.keep(output.location, period=identifier, run=run.id, seq=output.seq)
                yield {
                    "project": run.project,
                    "run": run.id,
                    "seq": output.seq,
                    "table": output.table,
                    "location": kept.document() if kept is not None else None,
                }


def place_kept(view: RunView, history: Iterable[Entry]) -> RunView:
    """A run whose outputs are where they were kept when its period was reopened. ``history`` is that of the period."""
    kept = {
        each["seq"]: load_stored(each["location"])
        for entry in history
        if entry.event == PeriodEvent.REOPEN
        for each in (entry.detail or {}).get(KEPT, ())
        if each["run"] == view.id and each["location"] is not None
    }
    if not kept:
        return view
    outputs = {
        name: replace(output, location=kept.get(output.seq, output.location)) for name, output in view.outputs.items()
    }
    return replace(view, outputs=outputs)
