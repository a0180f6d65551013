"""Searches rows in the pinned inputs and the published outputs of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from dobonomodo.formula import Columns, Type
from dobonomodo.formula.meaning import Value
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.problems import Rejected
from dobonomodo.problems.run import InputChanged
from dobonomodo.storage import Inputs, Pinned
from dobonomodo.storage.finding import DamagedFileError, count_rows, find_rows
from dobonomodo.storage.inputs import InputHashes
from dobonomodo.storage.kept import KeptInputs
from dobonomodo.storage.schema import SYSTEM
from dobonomodo.storage.storage import Pin
from dobonomodo.why.row import StoredRow, Wanted


@dataclass(frozen=True, slots=True)
class _Part:
    """A file of a reading: where it is read, and what it was when the run read it."""

    path: Path
    name: str
    file: str
    period: str | None


class PinnedRows:
    """The pinned rows of a run, from kept copies if the originals have changed. Lost inputs raise when they are read, not before."""

    def __init__(self, inputs: Inputs, pinned: Pinned, *, hashes: InputHashes, kept: KeptInputs) -> None:
        self._inputs, self._pinned, self._hashes, self._kept = inputs, pinned, hashes, kept
        self._opened: dict[str, list[_Part]] = {}
        self._counts: dict[Path, int] = {}

    def find(
        self, use: DatasetUse, wanted: Wanted, *, numbers: frozenset[int] | None, columns: frozenset[str] | None
    ) -> Iterator[StoredRow]:
        """The rows with wanted values, in the order in which they are stored."""
        names = _Names(use)
        before = 0
        for part in self._open(use):
            here = None if numbers is None else {number - before for number in numbers}
            found = find_rows(
                part.path, names.types, names.as_stored(wanted), numbers=here, columns=names.enough(columns)
            )
            try:
                for at, values in found:
                    place = f"{part.name}, row {at + 1:,}"
                    yield StoredRow(names.as_declared(values), before + at, place, part.period, part.file)
                before += self._count(part.path)
            except DamagedFileError as fault:
                raise Rejected([InputChanged(changes=(_explain(part.file, fault),))]) from fault

    def _open(self, use: DatasetUse) -> list[_Part]:
        found = self._opened.get(use.key)
        if found is None:
            pinned = {use.key: self._pinned.get(use.key, ())}
            restored = self._inputs.restore([use], pinned, self._hashes, self._kept).pinned
            changes = self._inputs.find_changes(restored, listing=False)
            if changes:
                raise Rejected([InputChanged(changes=changes)])
            files = self._inputs.files(use, restored[use.key])
            # A place is named as the run knew it, also where a copy is read.
            names = self._inputs.names(use, pinned[use.key])
            found = [
                _Part(path, pin.name if len(paths) == 1 else f"{pin.name}/{Path(name).name}", name, pin.period)
                for pin, paths, known in zip(pinned[use.key], files, names, strict=True)
                for path, name in zip(paths, known, strict=True)
            ]
            self._opened[use.key] = found
        return found

    def _count(self, path: Path) -> int:
        if path not in self._counts:
            self._counts[path] = count_rows(path)
        return self._counts[path]


class _Names:
    """The columns of a reading, by their names in lower case, as declared and as stored."""

    def __init__(self, use: DatasetUse) -> None:
        self._stored = {name.casefold(): use.sources.get(name, name).casefold() for name in use.columns}
        self._declared = {stored: name for name, stored in self._stored.items()}
        business = {self._stored[name.casefold()]: kind for name, kind in use.columns.items()}
        self.types: dict[str, Type] = {**SYSTEM, **business}

    def as_stored(self, wanted: Wanted) -> Wanted:
        return {self._stored.get(name, name): allowed for name, allowed in wanted.items()}

    def as_declared(self, values: Mapping[str, Value]) -> dict[str, Value]:
        return {self._declared.get(name, name): value for name, value in values.items()}

    def enough(self, columns: frozenset[str] | None) -> set[str] | None:
        """Those columns, and all of the system."""
        if columns is None:
            return None
        return {name for name in self.types if name not in self._declared or self._declared[name] in columns}


class OutputRows:
    """The rows that an output wrote. A file that cannot be read raises ``DamagedFileError``."""

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
            # What is extracted of an output must not be taken for what is extracted of an input.
            alias=f"output-{sha256(self._pin.name.encode()).hexdigest()[:16]}",
        )
        folded = {name.casefold(): allowed for name, allowed in wanted.items()}
        names = {name.casefold(): name for name in self._columns}
        types = {name.casefold(): kind for name, kind in self._columns.items()}
        files, known = self._inputs.files(use, (self._pin,))[0], self._inputs.names(use, (self._pin,))[0]
        for path, file in zip(files, known, strict=True):
            try:
                for at, values in find_rows(path, types, folded):
                    own = {names[name]: value for name, value in values.items()}
                    yield StoredRow(own, at, f"{self._pin.name}, row {at + 1:,}")
            except DamagedFileError as fault:
                raise DamagedFileError(_explain(file, fault)) from fault


def _explain(file: str, fault: DamagedFileError) -> str:
    return f"`{file}` cannot be read: {fault}"
