"""What storages of tables share: rows are extracted into Parquet files in the folder of the run, and read from there.

Knows nothing of how a database is reached or asked.
"""

from __future__ import annotations

import hashlib
import shutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from dobonomodo.model.datasource import DataSource
from dobonomodo.model.plain import Document
from dobonomodo.plan.dataset import DatasetUse, Location
from dobonomodo.problems.run import CELLS_AT_MOST, WrongCell
from dobonomodo.storage.executors import Executors
from dobonomodo.storage.faults import loading_failed
from dobonomodo.storage.findings import CheckedBatch, Findings
from dobonomodo.storage.footers import count_rows
from dobonomodo.storage.kept import InputFile, hash_file
from dobonomodo.storage.local_shelf import LocalShelf
from dobonomodo.storage.parquet import ParquetFormat, ParquetStorage, read_stored
from dobonomodo.storage.storage import Belongs, Pin, Scratch, Session, Storage, Stored
from dobonomodo.storage.values import show_value

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

    from dobonomodo.storage.rows import StoredRows


@dataclass(frozen=True, slots=True)
class TablePin:
    """A table, with a fingerprint of the rows that were read."""

    kind: str
    name: str
    datasource_id: str
    table: str
    schema: str | None
    period: str | None = None
    fingerprint: str | None = None
    run_period: str | None = None
    """Only what runs for this period wrote."""
    parts: int | None = None
    """Into how many files the rows were extracted, if not into one: the same rows give the same files."""

    @property
    def size(self) -> int:
        """What was extracted has a size of its own."""
        return 0

    def document(self) -> dict[str, object]:
        """As plain data."""
        own = {name: getattr(self, name) for name in self.__slots__ if name != "parts" or self.parts is not None}
        return {**own, "files": []}

    @classmethod
    def load(cls, document: Document) -> TablePin:
        """From plain data."""
        return cls(**{name: document.get(name) for name in cls.__slots__})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class TableRead:
    """The result of a statement."""

    rows: int
    first: tuple[tuple[int, WrongCell], ...]
    """The first wrong values with their positions, in order; those of tables with keys have the key of the row."""
    counts: Mapping[str, int]
    sha256: str | None
    """Of the file; None if something is wrong, and there is none."""

    def findings(self, before: int) -> Findings:
        """What is wrong, where so many rows are before these ones."""
        cells = (replace(cell, row=cell.row or f"row {before + at}") for at, cell in self.first)
        return Findings(tuple(cells), self.counts)


@dataclass(slots=True)
class CheckedRows:
    """Counts the rows of a statement, batch by batch, and what is wrong with them."""

    keys: Sequence[str]
    """By which people find a row."""
    rows: int = 0
    first: list[tuple[int, WrongCell]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, checked: CheckedBatch, batch: Mapping[str, pyarrow.Array], rows: int) -> None:
        """One more batch; ``batch`` has the values as they were read, by column."""
        placed = ((self.rows + 1 + at, self._name_row(cell, batch, at)) for at, cell in checked.first)
        self.first += list(placed)[: CELLS_AT_MOST - len(self.first)]
        self.counts.update(checked.counts)
        self.rows += rows

    def _name_row(self, cell: WrongCell, batch: Mapping[str, pyarrow.Array], at: int) -> WrongCell:
        """A wrong value with the key of its row, if there is one."""
        return replace(cell, row=", ".join(f"`{key}` {show_value(batch[key], at)}" for key in self.keys) or None)

    def finish(self, unfinished: Path, target: Path) -> TableRead:
        """Rename a file that is complete, or delete it if something is wrong."""
        if self.counts:
            unfinished.unlink()
        else:
            unfinished.replace(target)
        return TableRead(self.rows, tuple(self.first), self.counts, None if self.counts else hash_file(target))


@dataclass(frozen=True, slots=True)
class ExtractedStorage(ABC):
    """The tables of a database."""

    source: DataSource
    root: Path

    kind: ClassVar[str]

    @classmethod
    def open(
        cls,
        source: DataSource | None,
        *,
        root: str,
        record: Pin | Stored | None = None,
        session: Session | None = None,
    ) -> Self:
        """The database of a datasource."""
        del record, session
        if source is None:
            raise AssertionError("a table belongs to a datasource")
        return cls(source, Path(root))

    @classmethod
    def load_pin(cls, document: Document) -> Pin:
        """From plain data."""
        return TablePin.load(document)

    def with_options(self, options: Sequence[tuple[str, object]]) -> Storage:
        """There are none."""
        del options
        return self  # type: ignore[return-value]  # what is missing here is in the classes of the kinds

    def in_folder(self, folder: str, *, within: str) -> Storage:
        """Drafts write Parquet files in place of tables."""
        return ParquetStorage(LocalShelf(self.root, Path(folder), Path(within)), ParquetFormat())

    @property
    @abstractmethod
    def schema(self) -> str | None:
        """The schema of tables that name none."""

    @abstractmethod
    def find_existing(self, use: DatasetUse, locations: Sequence[Location]) -> list[Location]:
        """The tables that there are."""

    @abstractmethod
    def extract_rows(
        self, use: DatasetUse, pin: TablePin, files: Sequence[Path], scratch: Scratch, *, belongs: Belongs
    ) -> tuple[Findings, tuple[str, ...]]:
        """Read a table into Parquet files, unless a value is invalid; returns the hashes of the files."""

    def count_parts(self, pin: TablePin, executors: Executors | None) -> int | None:
        """Into how many files a table is read; None for one."""
        del pin, executors
        return None

    # --- checking

    def leaves(self, location: Location) -> bool:
        """Names of tables lead nowhere else."""
        del location
        return False

    def escapes(self, table: str) -> bool:
        """Names of tables lead nowhere else."""
        del table
        return False

    # --- reading

    def pin(self, use: DatasetUse, locations: Sequence[Location]) -> tuple[Pin, ...]:
        """The names of tables; their content is known when it is read. Of tables that may be missing, only existing ones."""
        if use.may_be_missing:
            locations = self.find_existing(use, locations)
        return tuple(
            TablePin(self.kind, str(each), self.source.id, name_location(each), each.schema or self.schema, each.period)
            for each in locations
        )

    def find_changes(self, pin: Pin, *, listing: bool) -> Iterable[str]:
        """The rows were extracted; whether they can be extracted again is known when that is done."""
        del pin, listing
        return ()

    def extract(self, use: DatasetUse, pin: Pin, scratch: Scratch, *, belongs: Belongs) -> tuple[Pin, Findings]:
        """Extract the table into one Parquet file, or several if it is large, unless an earlier attempt did."""
        own = _table_pin(pin)
        mark = Path(scratch.file(0)).with_suffix(".sha256")
        done = _read_mark(own, mark)
        if done is None or not all(Path(each).exists() for each in _files(done, scratch)):
            Path(scratch.folder).mkdir(parents=True, exist_ok=True)
            own = own if own.fingerprint is not None else replace(own, parts=self.count_parts(own, scratch.executors))
            files = [Path(each) for each in _files(own, scratch)]
            findings, hashes = self.extract_rows(use, own, files, scratch, belongs=belongs)
            if findings:
                return pin, findings
            done = _write_mark(own, hashes, mark)
        if own.fingerprint is not None and own != done:
            raise loading_failed(use, f"table `{own.table}` has changed since the run took its snapshot")
        return done, Findings()

    def input_files(self, pin: Pin, scratch: Scratch) -> tuple[InputFile, ...]:
        """What was extracted of the table: its fingerprint is the hash of that file, or of the hashes of several."""
        return tuple(InputFile(each, is_ours=True) for each in _files(_table_pin(pin), scratch))

    def from_kept(self, pin: Pin, files: Sequence[str], scratch: Scratch) -> Pin:
        """Put the extracted rows where an earlier attempt would have left them."""
        own = _table_pin(pin)
        targets = [Path(each) for each in _files(own, scratch)]
        for source, target in zip(files, targets, strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        _write_mark(own, [hash_file(each) for each in targets], targets[0].with_suffix(".sha256"))
        return own

    def extracted(self, pin: Pin, scratch: Scratch) -> Sequence[str]:
        """One for the table, or several for a large one."""
        return _files(_table_pin(pin), scratch)

    def count(self, pin: Pin, scratch: Scratch) -> int:
        """The number of rows that were extracted."""
        return count_rows(Path(each) for each in _files(_table_pin(pin), scratch))

    def read(
        self, spark: SparkSession, use: DatasetUse, pin: Pin, scratch: Scratch, *, before: Callable[[], int]
    ) -> StoredRows:
        """The rows that were extracted."""
        files = [Path(each) for each in _files(_table_pin(pin), scratch)]
        return read_stored(spark, files, use, links=scratch.links, period=pin.period, before=before)


def name_location(location: Location) -> str:
    """The table of a location; what a path strategy calls a path is its name too."""
    return location.table or location.path or ""


def find_keys(stored: Iterable[str], use: DatasetUse, primary: Callable[[], Iterable[str]]) -> tuple[str, ...]:
    """The natural or else the primary key, in the spelling of the table."""
    folded = {name.casefold(): name for name in stored}
    keys = use.natural_key or primary()
    return tuple(folded[key.casefold()] for key in keys if key.casefold() in folded)


def order_of(keys: Iterable[str], columns: Iterable[str]) -> Iterator[str]:
    """The columns by which rows are sorted. All follow the key: rows that share one have a stable order too, and equal ones

    need none (C-85).
    """
    return iter(dict.fromkeys((*keys, *columns)))


def _files(pin: TablePin, scratch: Scratch) -> list[str]:
    """What a table is extracted to."""
    return [scratch.file(number) for number in range(pin.parts or 1)]


def _write_mark(pin: TablePin, hashes: Sequence[str], mark: Path) -> TablePin:
    """Record the fingerprint of files, and their number if there are several, which says that they are complete."""
    together = hashlib.sha256("".join(hashes).encode()).hexdigest()
    unfinished = mark.with_name(mark.name + ".part")
    unfinished.write_text(hashes[0] if len(hashes) == 1 else f"{together} {len(hashes)}")
    unfinished.replace(mark)
    return _read_mark(pin, mark) or pin


def _read_mark(pin: TablePin, mark: Path) -> TablePin | None:
    """The pin with what was recorded of the files; None if they are not complete."""
    if not mark.exists():
        return None
    fingerprint, _, parts = mark.read_text().partition(" ")
    return replace(pin, fingerprint=fingerprint, parts=int(parts) if parts else None)


def _table_pin(pin: Pin) -> TablePin:
    if not isinstance(pin, TablePin):
        raise AssertionError("a database has made it")
    return pin
