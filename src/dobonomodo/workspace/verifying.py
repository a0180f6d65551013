"""Verifies that the outputs of a run match its record, or are reproducible. Also reads outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from dobonomodo.plan.digest import is_same_digest
from dobonomodo.problems import Problem, Rejected, RunFailed
from dobonomodo.problems.audit import OutputChanged
from dobonomodo.problems.run import DigestDiffers, InputChanged, SparkLost
from dobonomodo.runs import restore_snapshot
from dobonomodo.runs.results import find_later_writer, find_publishing
from dobonomodo.runs.snapshot import load_datasources
from dobonomodo.storage import Inspected, Storages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from dobonomodo.engine.engine import SparkEngine
    from dobonomodo.runs import Output, RunView
    from dobonomodo.storage import Session, Stored
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
    return (*_compare(view, found), *_find_changed_files(view, record, files=files, store=store))


def _find_changed_files(view: RunView, record: Run, *, files: Files, store: Store) -> Iterator[Problem]:
    """The files that people open, and that are not what the run wrote."""
    storages = open_storages(files, record)
    for output in view.outputs.values():
        detail = find_damage(record, output.location, storages, lambda: store.list_runs(period=record.period))
        if detail is not None:
            yield OutputChanged(run=view.id, table=output.table, detail=detail)


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


def open_storages(files: Files, run: Run, *, session: Session | None = None) -> Storages:
    """The storages of a run's outputs, with the datasources as they were."""
    datasources = {**files.definitions.datasources, **load_datasources(run.snapshot)}
    return Storages(files.root, datasources, session=session)


def find_later(own: Run, output: Output, store: Store) -> str | None:
    """The later run that has replaced the rows of an output."""
    later = find_later_writer(own, output.location, store.list_runs(period=own.period))
    return later.id if later is not None else None


@dataclass(frozen=True, slots=True)
class NamedFound:
    """The file that people open, compared with the record of a run."""

    found: Inspected
    doubt: str | None = None
    """Why nothing can be said of it: a run is publishing to it."""


def inspect_named(own: Run, stored: Stored, storages: Storages, list_runs: Callable[[], Sequence[Run]]) -> NamedFound:
    """Whether the file that people open is what a run wrote. A later run may have replaced it, which is no damage."""
    found = storages.inspect_named(stored)
    if not found.changed and not found.gone:
        return NamedFound(found)
    others = list_runs()
    if find_later_writer(own, stored, others) is not None:
        return NamedFound(Inspected())
    if (later := find_publishing(own, stored.shown or "", others)) is not None:
        return NamedFound(Inspected(), f"run {later.id} is publishing to `{stored.shown}`")
    return NamedFound(found)


def find_damage(own: Run, stored: Stored, storages: Storages, list_runs: Callable[[], Sequence[Run]]) -> str | None:
    """What is wrong with the file that people open, in one line."""
    try:
        return explain_damage(inspect_named(own, stored, storages, list_runs).found)
    except OSError as fault:
        return f"`{stored.shown}` cannot be read ({fault.strerror or fault})"


def explain_damage(found: Inspected) -> str | None:
    """What is wrong with an output, in one line."""
    gone = [f"{', '.join(found.gone)} is missing"] if found.gone else []
    return "; ".join([*found.changed, *gone]) or None


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
