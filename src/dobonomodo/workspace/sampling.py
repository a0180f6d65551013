"""Sampling: the first rows of what a run wrote or a dataset holds, read without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from dobonomodo.formula import Type
from dobonomodo.formula.types import TEXT
from dobonomodo.model import Dataset, Project
from dobonomodo.plan.dataset import DatasetUse, column_types
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.system import PERIOD, VALIDITY
from dobonomodo.problems import Rejected, RunFailed
from dobonomodo.problems.package import require_modules
from dobonomodo.problems.run import DataLoad, RunNotFound
from dobonomodo.problems.workspace import NotDefined
from dobonomodo.runs.state import RunStatus
from dobonomodo.storage import Inputs, Storages, Stored, find_storage, load_stored
from dobonomodo.storage.schema import SYSTEM
from dobonomodo.storage.storage import Row
from dobonomodo.workspace.naming import LATEST
from dobonomodo.workspace.recorded import load_recorded
from dobonomodo.workspace.session import SparkChoice
from dobonomodo.workspace.stamp import now

if TYPE_CHECKING:
    from dobonomodo.runs import RunView
    from dobonomodo.store import Version
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.periods import Periods
    from dobonomodo.workspace.planning import Planning

Found = tuple[Stored, Mapping[str, Type]]
"""Where rows are, and the types of their columns."""


@dataclass(frozen=True, slots=True)
class Sample(Mapping[str, tuple[Row, ...]]):
    """The first rows of some tables, by table."""

    rows: Mapping[str, tuple[Row, ...]]
    failed_run: str | None = None
    """The run that wrote the tables, if it failed: they are its quarantines, or were published before."""

    def __getitem__(self, table: str) -> tuple[Row, ...]:
        """The rows of a table."""
        return self.rows[table]

    def __iter__(self) -> Iterator[str]:
        """The tables."""
        return iter(self.rows)

    def __len__(self) -> int:
        """How many tables there are."""
        return len(self.rows)

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {table: list(rows) for table, rows in self.rows.items()}


def sample_run(name: str, rows: int, *, find: Callable[[str], RunView], files: Files) -> Sample:
    """The first rows of a run's outputs, by table. A name that no run has may be meant for a dataset."""
    try:
        view = find(name)
    except Rejected as rejected:
        if name == LATEST or not any(isinstance(each, RunNotFound) and not each.known for each in rejected.problems):
            raise
        known = (LATEST, *files.definitions.datasets)
        raise Rejected([NotDefined(kind="run or dataset", id=name, known=known)]) from None
    written = {table: (output.location, output.types()) for table, output in view.outputs.items()}
    found = _sample(written, rows, files, run=view.id)
    return replace(found, failed_run=view.id) if view.status == RunStatus.FAILED else found


def sample_registered(version: Version, rows: int, *, files: Files) -> Sample:
    """The first rows of a version that a run registered, by table."""
    return _sample({version.id: (load_stored(version.location or {}), _registered_types(version))}, rows, files)


def sample_input(
    name: str, rows: int, period: str | None, *, files: Files, planning: Planning, periods: Periods
) -> Sample:
    """The first rows of a dataset as a run for a period reads them: checked, in their types, those of the period alone."""
    chosen = periods.find(period) if period is not None else periods.choose(["latest"], today=now().date())[0]
    project = Project.from_data({"id": name, "input_dataset_id": name, "operations": []})
    draft = planning.draft(project)
    planned = planning.plan(project, draft.datasets, period=chosen)
    if planned.plan is None:
        raise Rejected(planning.find_reasons(draft, planned.problems))
    use = planned.plan.input
    facts = RunFacts(now(), chosen.identifier, chosen.start_date, chosen.end_date)
    datasources = files.definitions.datasources
    for location in use.locations:
        if (source := datasources.get(location.datasource_id)) is not None:
            require_modules(find_storage(source.type).modules)
    with TemporaryDirectory() as folder:
        inputs = Inputs(
            root=files.root,
            datasources=datasources,
            folder=Path(folder),
            facts=facts,
            as_of=None,
            session=SparkChoice(files).session(),
        )
        pinned = inputs.extract([use], inputs.pin([use]))
        paths = [path for paths in inputs.files(use, pinned[use.key]) for path in paths]
        found = islice((row for path in paths for row in _read_rows(path, use) if _belongs(row, use, facts)), rows)
        return Sample({f"{name} {chosen.identifier}": tuple(found)})


def _read_rows(path: Path, use: DatasetUse) -> Iterator[Row]:
    """The rows of a file under the names of the dataset, stored system columns behind its own."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=1_000):
            for stored in batch.to_pylist():
                named = {use.columns.spelling(use.name_of(key)) or key: value for key, value in stored.items()}
                system = {key: value for key, value in named.items() if key.casefold() in SYSTEM}
                yield {**{key: named.get(key) for key in use.columns}, **system}


def _belongs(row: Row, use: DatasetUse, facts: RunFacts) -> bool:
    """Whether a run for the period reads a row, by the temporal mode of its dataset (R-104)."""
    if use.temporal_mode == "period" and PERIOD in row:
        return row[PERIOD] in {facts.period, *(each.period for each in use.locations)}
    if use.temporal_mode == "bitemporal":
        day = use.valid_on(facts, None)
        start, end = next((pair for pair in VALIDITY if pair[0] in row and pair[1] in row), (None, None))
        first, last = (_day(row.get(name or "")) for name in (start, end))
        return first is not None and first <= day and (last is None or last > day)
    return True


def _day(value: object) -> date | None:
    return value.date() if isinstance(value, datetime) else value if isinstance(value, date) else None


def _sample(found: Mapping[str, Found], rows: int, files: Files, *, run: str | None = None) -> Sample:
    """The first rows of tables. ``run`` wrote them, if they are its outputs and not datasets."""
    for stored, _ in found.values():
        require_modules(find_storage(stored.kind).modules)
    storages = Storages(files.root, files.definitions.datasources, session=SparkChoice(files).session())
    read = {}
    for table, (stored, columns) in found.items():
        with _reporting_faults(table, run):
            read[table] = tuple(storages.of_record(stored).sample(stored, columns, rows))
    return Sample(read)


@contextmanager
def _reporting_faults(table: str, run: str | None) -> Iterator[None]:
    """Raises what the system or Arrow reports of files as a problem that names the table."""
    from pyarrow import ArrowException

    try:
        yield
    except (OSError, ArrowException, UnicodeDecodeError) as fault:
        detail = f"its files cannot be read: {next(iter(str(fault).splitlines()), '')}"
        remedy = "`dobo audit verify` names files that were changed"
        if isinstance(fault, FileNotFoundError):
            detail = f"`{fault.filename}` is missing" if fault.filename is not None else detail
            remedy = "a later run replaced it, or `dobo audit verify` reports it"
        raise RunFailed(DataLoad(dataset_id=table, run=run, detail=detail, remedy=remedy)) from fault


def _registered_types(version: Version) -> dict[str, Type]:
    """The columns of a registered version in the order in which they are stored, with their types."""
    declared = column_types(load_recorded(version, Dataset).main_table.columns)
    stored = (version.location or {}).get("columns", list(declared))
    return {name: declared.get(name) or SYSTEM.get(name.casefold(), TEXT) for name in stored}
