"""The reports of runs as files: one page per run and an index, side by side in a folder so that they can link to each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.model.locale import LOCALES
from dobonomodo.problems import InternalError, Rejected
from dobonomodo.runs import restore_snapshot, view_run
from dobonomodo.runs.comparison import Other
from dobonomodo.runs.neighbours import Neighbours, find_neighbours
from dobonomodo.runs.report import Link, Links, render_index, render_report
from dobonomodo.workspace.replaced import find_comparison
from dobonomodo.workspace.stamp import now

if TYPE_CHECKING:
    from dobonomodo.plan import Plan
    from dobonomodo.runs import RunView
    from dobonomodo.store import Run, Store
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.periods import Periods

FOLDER = ".dobo/reports"
INDEX = "index.html"


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """A report that was written: that of a run, or the index of all of them."""

    run: str | None
    path: Path

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {"run_id": self.run, "report": str(self.path)}


class Reports:
    """Writes reports."""

    def __init__(
        self,
        files: Files,
        store: Store,
        periods: Periods,
        *,
        describe: Callable[[Run], RunView],
        can_resume: Callable[[str], bool],
    ) -> None:
        self._root, self._store, self._describe = files.root, store, describe
        self._title = f"Runs of {files.settings.name or files.root.resolve().name}"
        self._locale = LOCALES[files.settings.locale]
        self._period_before, self._can_resume = periods.find_before, can_resume

    @property
    def folder(self) -> Path:
        """Where reports are, if not told otherwise."""
        return self._root / FOLDER

    def default_path(self, run: Run) -> Path:
        """Where the report of a run is, if not told otherwise."""
        return self.folder / file_of(run.id)

    def write(self, run: Run, to: Path) -> None:
        """Write the report of a run; existing reports of its neighbours are written again, since they may link to it now."""
        around = self.neighbours(run)
        self._write(run, to, around, known={path.stem for path in to.parent.glob("*.html")} | {run.id})
        for each in (around.previous, around.next):
            if each is not None and (path := to.parent / file_of(each.id)).is_file() and to.name == file_of(run.id):
                self._write(each, path, self.neighbours(each), known={other.stem for other in to.parent.glob("*.html")})

    def write_all(self, folder: Path) -> Path:
        """Write the report of every run and the index; returns the index."""
        runs = self._store.list_runs()
        folder.mkdir(parents=True, exist_ok=True)
        known = {run.id for run in runs} | {Path(INDEX).stem}
        for run in runs:
            self._write(run, folder / file_of(run.id), self.neighbours(run), known=known)
        index = folder / INDEX
        links = {run.id: file_of(run.id) for run in runs}
        views = [view_run(run) for run in runs]
        index.write_text(render_index(views, title=self._title, links=links, made_at=now()), encoding="utf-8")
        return index

    def neighbours(self, run: Run) -> Neighbours:
        """The runs that a run is compared with and linked to."""
        before = self._period_before(run.period)
        earlier = self._runs_of(run.project, before) if before is not None else ()
        return find_neighbours(run, self._runs_of(run.project, run.period), earlier)

    def compare(self, run: Run) -> tuple[Other, ...]:
        """The runs that the figures of a run are compared with."""
        return _others(self.neighbours(run))

    def _runs_of(self, project: str, period: str) -> Sequence[Run]:
        return self._store.list_runs(project=project, period=period)

    def _write(self, run: Run, to: Path, around: Neighbours, *, known: set[str]) -> None:
        page = render_report(
            replace(self._describe(run), locked=find_comparison(self._root, run.id)),
            others=_others(around),
            locale=self._locale,
            plan=_plan_of(run),
            resumable=self._can_resume(run.id),
            made_at=now(),
            links=Links(
                previous=_link(around.previous, known),
                next=_link(around.next, known),
                previous_period=_link(around.previous_period, known),
                index=INDEX if Path(INDEX).stem in known else None,
            ),
        )
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(page, encoding="utf-8")


def _others(around: Neighbours) -> tuple[Other, ...]:
    found = [("previous run", around.previous)] if around.previous is not None else []
    if (earlier := around.previous_period) is not None:
        found.append((f"period {earlier.period}", earlier))
    return tuple(Other(name, other.id, other.period, view_run(other).figures) for name, other in found)


def file_of(run_id: str) -> str:
    """The name of the report of a run."""
    return f"{run_id}.html"


def _link(run: Run | None, known: set[str]) -> Link | None:
    if run is None:
        return None
    return Link(run.id, run.period, file_of(run.id) if run.id in known else None)


def _plan_of(run: Run) -> Plan | None:
    """The plan of a run; None if it cannot be restored from a snapshot of another version of this program."""
    with suppress(Rejected, InternalError):
        return restore_snapshot(run.snapshot).plan
    return None
