"""The index of all runs: one page with a line for each, and links to their reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from dobonomodo.runs.record import RunView
from dobonomodo.runs.report.html import render


def render_index(runs: Sequence[RunView], *, title: str, links: Mapping[str, str], made_at: datetime) -> str:
    """The page; ``runs`` are in the order in which they are listed, newest first, ``links`` are by run."""
    return render("index.html", runs=runs, title=title, links=links, current=find_current(runs), made_at=made_at)


def find_current(runs: Sequence[RunView]) -> frozenset[str]:
    """The runs whose results are the ones that count: of every project and period the latest that completed."""
    latest: dict[tuple[str, str], str] = {}
    for run in runs:
        if run.status == "completed" and not run.draft:
            latest.setdefault((run.project, run.period), run.id)
    return frozenset(latest.values())
