"""Sampling: the first rows of what a run wrote or a dataset holds, read without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dobonomodo.formula import Type
from dobonomodo.formula.types import TEXT
from dobonomodo.model import Dataset
from dobonomodo.plan.dataset import column_types
from dobonomodo.problems.package import require_modules
from dobonomodo.storage import Storages, Stored, find_storage, load_stored
from dobonomodo.storage.schema import SYSTEM
from dobonomodo.storage.storage import Row
from dobonomodo.workspace.recorded import load_recorded

if TYPE_CHECKING:
    from dobonomodo.runs import RunView
    from dobonomodo.store import Version
    from dobonomodo.workspace.files import Files

Found = tuple[Stored, Mapping[str, Type]]
"""Where rows are, and the types of their columns."""


@dataclass(frozen=True, slots=True)
class Sample(Mapping[str, tuple[Row, ...]]):
    """The first rows of some tables, by table."""

    rows: Mapping[str, tuple[Row, ...]]

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


def sample_run(view: RunView, rows: int, *, files: Files) -> Sample:
    """The first rows of a run's outputs, by table."""
    return _sample({table: (output.location, output.types()) for table, output in view.outputs.items()}, rows, files)


def sample_registered(version: Version, rows: int, *, files: Files) -> Sample:
    """The first rows of a version that a run registered, by table."""
    return _sample({version.id: (load_stored(version.location or {}), _registered_types(version))}, rows, files)


def _sample(found: Mapping[str, Found], rows: int, files: Files) -> Sample:
    for stored, _ in found.values():
        require_modules(find_storage(stored.kind).modules)
    storages = Storages(files.root, files.definitions.datasources)
    return Sample(
        {
            table: tuple(storages.of_record(stored).sample(stored, columns, rows))
            for table, (stored, columns) in found.items()
        }
    )


def _registered_types(version: Version) -> dict[str, Type]:
    """The columns of a registered version in the order in which they are stored, with their types."""
    declared = column_types(load_recorded(version, Dataset).main_table.columns)
    stored = (version.location or {}).get("columns", list(declared))
    return {name: declared.get(name) or SYSTEM.get(name.casefold(), TEXT) for name in stored}
