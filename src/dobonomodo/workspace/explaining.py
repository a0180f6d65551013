"""Explaining: why a stored row is as it is. Opens what a run pinned and wrote; what it then means is in ``why``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from dobonomodo.plan.system import ROW_ID
from dobonomodo.problems.package import require_modules
from dobonomodo.storage import find_storage
from dobonomodo.why.asking import AskedRun
from dobonomodo.workspace.verifying import find_later

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
) -> Explanation:
    """Why a row of an output has its values."""
    asked = {**key, **({ROW_ID: row_id} if row_id is not None else {})}
    with open_run(view, record, files=files, store=store) as run:
        return run.why(table, asked, column=column, contributors=contributors)


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
    with open_run(view, record, files=files, store=store) as run:
        return run.why_not(table, key, column=column)


@contextmanager
def open_run(view: RunView, record: Run, *, files: Files, store: Store) -> Iterator[AskedRun]:
    """A run that can be asked. What has to be extracted is kept until it is closed."""
    require_modules(module for each in view.outputs.values() for module in find_storage(each.location.kind).modules)
    with TemporaryDirectory(prefix="dobo-why-") as folder:
        yield AskedRun(
            view,
            root=files.root,
            datasources=files.definitions.datasources,
            folder=Path(folder),
            find_later=lambda output: find_later(record, output, store),
        )
