"""Verifies that the outputs of a run match its record, or are reproducible. Also reads outputs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dobonomodo.plan.digest import is_same_digest
from dobonomodo.problems import Problem, Rejected, RunFailed
from dobonomodo.problems.run import DigestDiffers, InputChanged, SparkLost
from dobonomodo.runs import restore_snapshot
from dobonomodo.runs.resume import came_after
from dobonomodo.storage import load_stored

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from dobonomodo.engine.engine import SparkEngine
    from dobonomodo.runs import Output, RunView
    from dobonomodo.store import Run, Store
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.running import RunData


def verify_outputs(
    view: RunView, record: Run, *, files: Files, store: Store, engine: SparkEngine
) -> tuple[Problem, ...]:
    """The outputs whose rows are not those that the run recorded."""
    found = {
        output.seq: _digest_stored(engine, view, output, files=files, later=find_later(record, output, store))
        for output in view.outputs.values()
    }
    return _compare(view, found)


def verify_replay(
    view: RunView, *, data: RunData, engine: SparkEngine, report: Callable[[str], None]
) -> tuple[Problem, ...]:
    """The outputs that are computed differently now, from the same inputs: kept copies, where the originals have changed."""
    from dobonomodo.engine.engine import discard

    spec = restore_snapshot(view.snapshot)
    restored = data.restore(view.inputs or {})
    if restored.changes:
        raise Rejected([InputChanged(changes=restored.changes)])
    for name in restored.used:
        report(f"{name}: the copy that was kept is read, since the original has changed or is gone")
    data.prepare()
    reader = data.reader(engine.spark)
    outputs = engine.outputs(spec.plan, spec.facts, reader=reader, as_of=spec.as_of)
    found = {result.seq: result.digest for result in discard(outputs)}
    data.clear()
    return _compare(view, found)


def _compare(view: RunView, found: Mapping[int, str]) -> tuple[Problem, ...]:
    return tuple(
        DigestDiffers(table=output.table, expected=output.digest, found=found.get(output.seq, "nothing"))
        for output in view.outputs.values()
        if not is_same_digest(found.get(output.seq), output.digest)
    )


def _digest_stored(engine: SparkEngine, view: RunView, output: Output, *, files: Files, later: str | None) -> str:
    from dobonomodo.engine.faults import noticing_loss

    if later is not None:
        return f"the rows of run {later}"
    try:
        with noticing_loss():
            frame = read_output(files, view, output, engine.spark)
    except (RunFailed, OSError) as fault:
        if isinstance(fault, RunFailed) and isinstance(fault.problem, SparkLost):
            raise
        return f"what cannot be read ({fault})"
    return engine.digest(frame, list(output.columns))


def find_later(own: Run, output: Output, store: Store) -> str | None:
    """The later run that has replaced the rows of an output."""
    for other in store.list_runs(period=own.period):
        later = came_after(other, own) if other.project == own.project else other.created_at > own.created_at
        if not later:
            continue
        for each in other.progress.get("outputs", ()):
            if load_stored(each["location"]).place == output.location.place:
                return other.id
    return None


def with_frames(view: RunView, files: Files) -> RunView:
    """A run whose outputs can be read."""
    outputs = {
        name: replace(output, read=partial(read_output, files, view, output)) for name, output in view.outputs.items()
    }
    return replace(view, outputs=outputs)


def read_output(files: Files, view: RunView, output: Output, spark: SparkSession) -> DataFrame:
    """The rows that an output wrote."""
    from dobonomodo.workspace.running import output_frame

    recorded = restore_snapshot(view.snapshot).datasources
    datasources = {**files.definitions.datasources, **recorded}
    return output_frame(
        spark, view, output, root=files.root, runs=files.runs, transport=files.transport, datasources=datasources
    )
