"""The results of a period: which runs count, and the fingerprints that sign-offs are bound to. Pure decisions over records."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from dobonomodo.model.plain import hash_document
from dobonomodo.problems import InternalError, Rejected
from dobonomodo.runs.neighbours import is_draft
from dobonomodo.runs.resume import came_after
from dobonomodo.runs.snapshot import restore_snapshot
from dobonomodo.runs.state import RunStatus
from dobonomodo.storage import load_stored

if TYPE_CHECKING:
    from dobonomodo.storage import Stored
    from dobonomodo.store import Run, Version


def find_results(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The run of each project whose rows are the result for a period, by project. ``runs`` are those of the period."""
    found: dict[str, Run] = {}
    for run in runs:
        known = found.get(run.project)
        if wrote_results(run) and (known is None or came_after(run, known)):
            found[run.project] = run
    return tuple(found[project] for project in sorted(found))


def wrote_results(run: Run) -> bool:
    """Whether a run changed published data: a draft does not, nor does a run that failed before it published outputs."""
    if is_draft(run):
        return False
    as_done = run.snapshot["project"]["document"].get("publish") == "as_done"
    return run.status == RunStatus.COMPLETED or (as_done and bool(run.progress.get("outputs")))


def find_later_result(run: Run, others: Iterable[Run]) -> Run | None:
    """The run of the same project and period whose rows have replaced those of a run."""
    same = [each for each in others if (each.project, each.period) == (run.project, run.period)]
    (latest,) = find_results(same) or (run,)
    return latest if came_after(latest, run) else None


def find_overwriting(run: Run, others: Iterable[Run]) -> Run | None:
    """The run of the same project and period that wrote over an output of a run, and is not its successor as a result: a check
    stopped it, so that it published its quarantine alone, or it is still running.
    """
    same = [each for each in others if each.project == run.project and not is_draft(each)]
    places = (load_stored(output["location"]) for output in run.progress.get("outputs", ()))
    return next((later for each in places if (later := find_later_writer(run, each, same)) is not None), None)


def find_later_writer(run: Run, stored: Stored, others: Iterable[Run]) -> Run | None:
    """The later run for the period that wrote where an output of a run is: to the same destination, or the same file."""
    for other in others:
        if other.period == run.period and _is_later(other, run):
            places = (load_stored(each["location"]) for each in other.progress.get("outputs", ()))
            if any(_is_same_place(each, stored) for each in places):
                return other
    return None


def find_publishing(run: Run, file: str, others: Iterable[Run]) -> Run | None:
    """The later run of the same project and period that has begun to publish to a file, and whose record does not say so yet."""
    same = (each for each in others if (each.project, each.period) == (run.project, run.period))
    return next((each for each in same if came_after(each, run) and _intends_file(each, file)), None)


def _intends_file(run: Run, file: str) -> bool:
    """Whether an output that a run is publishing may be in a file; where its plan cannot be restored, any may."""
    intent = run.progress.get("intent") or ()
    if not intent:
        return False
    try:
        steps = restore_snapshot(run.snapshot).plan.steps
    except (Rejected, InternalError):
        return True
    writes = (step.lowered.write for step in steps if step.spec.seq in intent)
    names = (write.destination.file_name(run.period) for write in writes if write is not None)
    return any(name is not None and f"/{file}".endswith(f"/{PurePosixPath(name)}") for name in names)


def _is_later(other: Run, run: Run) -> bool:
    if other.id == run.id:
        return False
    return came_after(other, run) if other.project == run.project else other.created_at > run.created_at


def _is_same_place(one: Stored, other: Stored) -> bool:
    return one.place == other.place or (one.shown is not None and one.shown == other.shown)


def fingerprint_run(run: Run) -> str:
    """A fingerprint of a run's inputs and results: equal only for equal records."""
    outputs = [
        {name: output[name] for name in ("seq", "table", "rows", "digest")}
        for output in run.progress.get("outputs", ())
    ]
    return hash_document({"run": run.id, "snapshot": hash_document(run.snapshot), "outputs": outputs})


def fingerprint_results(results: Iterable[Run], overwriting: Iterable[Run] = ()) -> str:
    """All results of a period; any run that replaces one or writes over one of its outputs changes it."""
    runs = {"runs": [fingerprint_run(run) for run in results]}
    written = [fingerprint_run(run) for run in overwriting]
    return hash_document({**runs, "overwriting": written} if written else runs)


def fingerprint_override(version: Version, period: str, result: Run | None) -> str:
    """Fingerprint of a version's run for a closed period and of the current result; it changes once the run replaces that result."""
    return hash_document(
        {
            "project": version.id,
            "version": version.version,
            "fingerprint": version.fingerprint,
            "period": period,
            "result": result.id if result is not None else None,
        }
    )
