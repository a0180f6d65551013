"""Explains stored rows: opens the inputs and outputs of a run; ``why`` computes the explanation."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from dobonomodo.plan.system import ROW_ID
from dobonomodo.problems import Rejected
from dobonomodo.problems.package import require_modules
from dobonomodo.problems.run import InputChanged
from dobonomodo.runs import view_run
from dobonomodo.storage import find_storage, has_file
from dobonomodo.why.asking import AskedRun
from dobonomodo.workspace.verifying import find_damage, find_later, open_storages

RUNS_SEARCHED = 10_000
"""The number of latest runs among which the writer of a file is searched."""

if TYPE_CHECKING:
    from dobonomodo.engine.engine import SparkEngine
    from dobonomodo.engine.grouping import LargeGroup
    from dobonomodo.formula import Typed
    from dobonomodo.plan.relation import Group
    from dobonomodo.runs import Output, RunSpec, RunView
    from dobonomodo.storage import Storages, Stored
    from dobonomodo.store import Run, Store
    from dobonomodo.why.absence import Absence
    from dobonomodo.why.asking import OpenLarge
    from dobonomodo.why.explanation import Explanation
    from dobonomodo.why.row import Wanted
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.running import RunData

    OpenSpark = Callable[[], tuple[SparkEngine, RunData]]


def explain_row(
    view: RunView,
    record: Run,
    *,
    files: Files,
    store: Store,
    table: str | None,
    key: Mapping[str, object],
    row_id: str | None,
    column: str | None,
    contributors: int | None,
    path: Sequence[Mapping[str, object]],
    depth: int,
    spark: OpenSpark,
) -> Explanation:
    """Why a row of an output has its values, or one that contributes to it; ``depth`` counts the runs that are followed."""
    with Opener(files, store) as opener:
        run = opener.open(view, record, partial(SparkGroups, view, spark))
        found = run.why(table, _with_id(key, row_id), column=column, contributors=contributors, path=path)
        return run.deepen(found, opener.open_writer, depth=depth)


def export_scenario(
    view: RunView,
    record: Run,
    *,
    files: Files,
    store: Store,
    table: str | None,
    key: Mapping[str, object],
    row_id: str | None,
    mask: bool,
) -> str:
    """The inputs of a row as a scenario that reproduces it."""
    with Opener(files, store) as opener:
        return opener.open(view, record).write_scenario(table, _with_id(key, row_id), mask=mask)


def _with_id(key: Mapping[str, object], row_id: str | None) -> dict[str, object]:
    return {**key, **({ROW_ID: row_id} if row_id is not None else {})}


def explain_absence(
    view: RunView,
    record: Run,
    *,
    files: Files,
    store: Store,
    table: str | None,
    key: Mapping[str, object],
    column: str | None,
) -> Absence:
    """Why a row is not in an output, or a column of it was not set."""
    with Opener(files, store) as opener:
        return opener.open(view, record).why_not(table, key, column=column)


class SparkGroups:
    """Groups of many rows by Spark, which is started when it is first needed."""

    def __init__(self, view: RunView, open_spark: OpenSpark, spec: RunSpec, at_most: int | None) -> None:
        self._view, self._open_spark, self._spec, self._at_most = view, open_spark, spec, at_most

    def read(self, node: Group, keys: Wanted, *, names: Sequence[str], shares: Mapping[str, Typed]) -> list[LargeGroup]:
        """The groups whose keys have wanted values, from the inputs as the run read them."""
        engine, data = self._open_spark()
        restored = data.restore(self._view.inputs or {})
        if restored.changes:
            raise Rejected([InputChanged(changes=restored.changes)])
        data.prepare()
        try:
            return engine.groups(
                self._spec.plan,
                self._spec.facts,
                node,
                keys,
                reader=data.reader(engine.spark),
                as_of=self._spec.as_of,
                names=names,
                shares=shares,
                at_most=self._at_most,
            )
        finally:
            data.clear()


class Opener:
    """Opens runs for explanations. Extracted inputs are kept until it is closed."""

    def __init__(self, files: Files, store: Store) -> None:
        self._files, self._store = files, store
        self._folder = TemporaryDirectory(prefix="dobo-why-")

    def __enter__(self) -> Opener:
        return self

    def __exit__(self, *fault: object) -> None:
        self._folder.cleanup()

    def open(self, view: RunView, record: Run, open_large: OpenLarge | None = None) -> AskedRun:
        """A run with its record; ``open_large`` computes totals of many rows."""
        require_modules(module for each in view.outputs.values() for module in find_storage(each.location.kind).modules)
        return AskedRun(
            view,
            root=self._files.root,
            datasources=self._files.definitions.datasources,
            folder=Path(self._folder.name),
            find_later=lambda output: find_later(record, output, self._store),
            find_damage=lambda output, storages: self._find_damage(record, output, storages),
            open_large=open_large,
        )

    def _find_damage(self, record: Run, output: Output, storages: Storages) -> str | None:
        """What is wrong with the file that people open."""
        list_runs = partial(self._store.list_runs, period=record.period)
        return find_damage(record, output.location, storages, list_runs)

    def open_writer(self, file: str) -> tuple[AskedRun, str] | None:
        """The run that wrote a file, and the name of the output; None for a file that no run wrote."""
        writer = find_writer(file, self._store.list_runs(limit=RUNS_SEARCHED), self._files)
        if writer is None:
            return None
        record, name = writer
        return self.open(view_run(record), record), name


def find_writer(file: str, runs: Iterable[Run], files: Files) -> tuple[Run, str] | None:
    """The first of some runs that wrote a data file, and the name of the output."""
    path, name = os.path.realpath(file), os.path.basename(file)
    for record in runs:
        for table, output in view_run(record).outputs.items():
            if has_file(output.location, name) and _has_written(record, output.location, {file, path}, files):
                return record, table
    return None


def _has_written(record: Run, stored: Stored, paths: Collection[str], files: Files) -> bool:
    """Whether an output has a data file at one of these paths, with the datasources as they were."""
    storages = open_storages(files, record)
    source = storages.datasources.get(stored.datasource_id or "")
    if stored.datasource_id is not None and (source is None or source.type != stored.kind):
        return False
    found = (each.path for each in storages.list_files(stored) if not each.is_named)
    return any(each in paths or os.path.realpath(files.root / each) in paths for each in found)
