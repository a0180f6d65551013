"""Which runs need the copies of their inputs: pure decisions over records and the history."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from dobonomodo.model.plain import Document
from dobonomodo.runs.results import find_results, wrote_results
from dobonomodo.store import PeriodEvent

if TYPE_CHECKING:
    from dobonomodo.store import Entry, Run

KEPT = "kept"
"""The key, in the entry of a reopened period, of where its locked results are."""


def find_needed_hashes(runs: Iterable[Run], *, policy: str, protected: Collection[str]) -> frozenset[str]:
    """The SHA-256 of every input that must be kept. ``protected`` are signed, locked and running runs."""
    recorded = tuple(runs)
    return frozenset(each for run in _find_needing(recorded, policy, protected) for each in list_hashes(run.progress))


def _find_needing(runs: tuple[Run, ...], policy: str, protected: Collection[str]) -> Iterator[Run]:
    if policy == "always":
        yield from runs
        return
    by_period = sorted(runs, key=lambda run: run.period)
    results = {
        result.id
        for _, group in groupby(by_period, key=lambda run: run.period)
        for result in (find_results(group) if policy == "current" else ())
    }
    yield from (run for run in runs if run.id in results or run.id in protected)


def list_hashes(progress: Document) -> Iterator[str]:
    """The SHA-256 of every input that a record names."""
    for pins in (progress.get("inputs") or {}).values():
        for files in pins:
            yield from (each for each in files if each is not None)


def find_locked_result(history: Iterable[Entry], runs: Iterable[Run], run: Run) -> str | None:
    """The locked result that a run is the first one to replace, since its period was reopened.

    ``runs`` are those of the period.
    """
    found, since = None, None
    for entry in history:
        if entry.event == PeriodEvent.REOPEN:
            kept = [each["run"] for each in (entry.detail or {}).get(KEPT, ()) if each["project"] == run.project]
            found, since = (kept[0], entry.at) if kept else (found, since)
        elif entry.event == PeriodEvent.LOCK:
            found = None
    if found is None or since is None or not wrote_results(run):
        return None
    earlier = (
        each
        for each in runs
        if each.project == run.project and each.id != run.id and each.created_at > since and wrote_results(each)
    )
    return found if not any(earlier) else None


def find_locked_runs(history: Iterable[Entry]) -> frozenset[str]:
    """The runs whose results were kept when their period was reopened, until it is locked again."""
    kept: dict[str | None, frozenset[str]] = {}
    for entry in history:
        if entry.event == PeriodEvent.REOPEN:
            found = frozenset(each["run"] for each in (entry.detail or {}).get(KEPT, ()))
            kept[entry.subject.period] = kept.get(entry.subject.period, frozenset()) | found
        elif entry.event == PeriodEvent.LOCK:
            kept.pop(entry.subject.period, None)
    return frozenset().union(*kept.values())
