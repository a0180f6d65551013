"""The pinned inputs and the published outputs of a run, as rows that can be looked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from dobonomodo.formula import Columns, Type
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.problems import Rejected
from dobonomodo.problems.run import InputChanged
from dobonomodo.storage import Inputs, Pinned
from dobonomodo.storage.finding import count_rows, find_rows
from dobonomodo.storage.schema import SYSTEM
from dobonomodo.storage.storage import Pin
from dobonomodo.why.row import StoredRow, Wanted


class PinnedRows:
    """The rows that a run has pinned. What has changed since is refused when it is read, not before."""

    def __init__(self, inputs: Inputs, pinned: Pinned) -> None:
        self._inputs, self._pinned = inputs, pinned
        self._files: dict[str, list[list[Path]]] = {}
        self._counts: dict[Path, int] = {}

    def find(
        self, use: DatasetUse, wanted: Wanted, *, numbers: frozenset[int] | None, columns: frozenset[str] | None
    ) -> Iterator[StoredRow]:
        """The rows with wanted values, in the order in which they are stored."""
        types = read_types(use.columns)
        enough = None if columns is None else columns | (types.keys() - {name.casefold() for name in use.columns})
        before = 0
        pins = self._pinned.get(use.key, ())
        for pin, files in zip(pins, self._open(use), strict=True):
            for path in files:
                here = None if numbers is None else {number - before for number in numbers}
                for at, values in find_rows(path, types, wanted, numbers=here, columns=enough):
                    place = f"{_name_part(pin, path, files)}, row {at + 1:,}"
                    yield StoredRow(values, before + at, place, pin.period)
                before += self._count(path)

    def _open(self, use: DatasetUse) -> list[list[Path]]:
        found = self._files.get(use.key)
        if found is None:
            pins = self._pinned.get(use.key, ())
            changes = self._inputs.find_changes({use.key: pins}, listing=False)
            if changes:
                raise Rejected([InputChanged(changes=changes)])
            found = self._files[use.key] = self._inputs.files(use, pins)
        return found

    def _count(self, path: Path) -> int:
        if path not in self._counts:
            self._counts[path] = count_rows(path)
        return self._counts[path]


def read_types(columns: Mapping[str, Type]) -> dict[str, Type]:
    """The columns of stored rows, in lower case, with their types: business columns first, then those of the system."""
    declared = {name.casefold(): kind for name, kind in columns.items()}
    return {**dict(SYSTEM), **declared}


def _name_part(pin: Pin, path: Path, files: list[Path]) -> str:
    return pin.name if len(files) == 1 else f"{pin.name}/{path.name}"


class OutputRows:
    """The rows that an output wrote."""

    def __init__(self, inputs: Inputs, pin: Pin, columns: Mapping[str, Type]) -> None:
        self._inputs, self._pin, self._columns = inputs, pin, columns

    def find(self, wanted: Wanted) -> Iterator[StoredRow]:
        """The rows whose columns have wanted values."""
        use = DatasetUse(
            role="input",
            dataset_id=self._pin.name,
            version=1,
            table=self._pin.name,
            temporal_mode=None,
            columns=Columns(self._columns),
            nullable=frozenset(self._columns),
        )
        folded = {name.casefold(): allowed for name, allowed in wanted.items()}
        names = {name.casefold(): name for name in self._columns}
        for path in self._inputs.files(use, (self._pin,))[0]:
            types = {name.casefold(): kind for name, kind in self._columns.items()}
            for at, values in find_rows(path, types, folded):
                own = {names[name]: value for name, value in values.items()}
                yield StoredRow(own, at, f"{self._pin.name}, row {at + 1:,}")
