"""Explaining: why a stored row is as it is. Opens what a run pinned and wrote; what it then means is in ``why``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from dobonomodo.plan.system import ROW_ID
from dobonomodo.problems.package import require_modules
from dobonomodo.runs import view_run
from dobonomodo.storage import find_storage
from dobonomodo.why.asking import AskedRun
from dobonomodo.workspace.verifying import find_later

RUNS_SEARCHED = 10_000
"""Among so many of the latest runs the one that wrote a file is looked for."""

if TYPE_CHECKING:
    from dobonomodo.runs import RunView
    from dobonomodo.store import Run, Store
    from dobonomodo.why.absence import Absence
    from dobonomodo.why.explanation import Explanation
    from dobonomodo.workspace.files import Files


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
    depth: int,
) -> Explanation:
    """Why a row of an output has its values; ``depth`` counts the runs that are followed, this one included."""
    with Opener(files, store) as opener:
        run = opener.open(view, record)
        found = run.why(table, _with_id(key, row_id), column=column, contributors=contributors)
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
    """The inputs of a row as a scenario that gives it again."""
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


class Opener:
    """Opens runs that can be asked. What has to be extracted for them is kept until it is closed."""

    def __init__(self, files: Files, store: Store) -> None:
        self._files, self._store = files, store
        self._folder = TemporaryDirectory(prefix="dobo-why-")

    def __enter__(self) -> Opener:
        return self

    def __exit__(self, *fault: object) -> None:
        self._folder.cleanup()

    def open(self, view: RunView, record: Run) -> AskedRun:
        """A run with its record."""
        require_modules(module for each in view.outputs.values() for module in find_storage(each.location.kind).modules)
        return AskedRun(
            view,
            root=self._files.root,
            datasources=self._files.definitions.datasources,
            folder=Path(self._folder.name),
            find_later=lambda output: find_later(record, output, self._store),
        )

    def open_writer(self, file: str) -> tuple[AskedRun, str] | None:
        """The run that wrote a file, and the name of the output; None for a file that no run wrote."""
        folder = Path(file).parent
        for record in self._store.list_runs(limit=RUNS_SEARCHED):
            view = view_run(record)
            for name, output in view.outputs.items():
                folders = getattr(output.location, "folders", ())
                if any((self._files.root / each).resolve() == folder for each in folders):
                    return self.open(view, record), name
        return None
