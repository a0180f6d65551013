"""The port of storages: the interface of every kind of place for rows.

One file per kind implements it, and ``STORAGES`` in ``catalogue.py`` lists the kinds. Addresses cross the port as text: a place
need not be a folder of this machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

from dobonomodo.formula import Type
from dobonomodo.model.plain import Document
from dobonomodo.plan.dataset import DatasetUse, Location, Stored
from dobonomodo.plan.destination import DestinationKind
from dobonomodo.storage.executors import Executors
from dobonomodo.storage.findings import Findings
from dobonomodo.storage.kept import InputFile
from dobonomodo.storage.links import Links
from dobonomodo.storage.target import Inspected, OutputPlace, Target
from dobonomodo.storage.transport import Transport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.model.datasource import DataSource, StorageOptions
    from dobonomodo.storage.rows import StoredRows

__all__ = ["Answer", "Belongs", "Pin", "Row", "Scratch", "Session", "Storage", "Stored"]

Row = dict[str, object]
Session = Callable[[], "SparkSession"]
"""Returns the Spark session, and opens it on first use: most storages never need it."""


class Pin(Protocol):
    """What there was to read in one location when a run took its snapshot. The snapshot keeps it as plain data."""

    @property
    def kind(self) -> str:
        """The kind of storage."""
        ...

    @property
    def name(self) -> str:
        """How people name the location."""
        ...

    @property
    def period(self) -> str | None:
        """The period that all rows belong to, where the location says it."""
        ...

    @property
    def datasource_id(self) -> str | None:
        """The datasource that is needed to read it; None for files, which have addresses of their own."""
        ...

    @property
    def size(self) -> int:
        """Bytes, as far as they are known without reading."""
        ...

    def document(self) -> dict[str, object]:
        """As plain data."""
        ...


@dataclass(frozen=True, slots=True)
class Scratch:
    """Where a reading puts what it extracts, and how the workers of Spark reach it."""

    folder: str
    stem: str
    """How the names of its files begin."""
    is_shared: bool = False
    """Whether the workers see nothing but this folder, so that what is elsewhere has to be copied into it."""
    executors: Executors | None = None
    """Processes large inputs; None if this machine does it."""
    transport: Transport | None = None
    """The way to workers that share no files with this machine."""

    def file(self, number: int) -> str:
        """The Parquet file with a number."""
        return f"{self.folder}/{self.stem}-{number}.parquet"

    def bring(self, path: Path, number: int) -> Path:
        """Where Spark reads a file: where it is, unless it has to be copied."""
        apart = self.is_shared and not path.is_relative_to(self.folder)
        return Path(self.file(number)) if apart else path

    @property
    def links(self) -> Links:
        """How Spark addresses the files."""
        return Links(Path(self.folder) / "links" / self.stem, self.transport)


@dataclass(frozen=True, slots=True)
class Answer:
    """The response of a place to ``call``."""

    detail: str
    works: bool = True


@dataclass(frozen=True, slots=True)
class Belongs:
    """Which rows belong to a run: those of these periods, or those that are valid on this day."""

    periods: tuple[str, ...]
    as_of: date


class Storage(Protocol):
    """One datasource, or the locations that outputs give themselves, of one kind."""

    kind: ClassVar[str]
    """The type of its datasources."""
    options: ClassVar[type[StorageOptions]]
    """What is set on a datasource, with the rules for it."""
    destinations: ClassVar[DestinationKind]
    """What a plan has to know of its destinations."""
    modules: ClassVar[Sequence[str]]
    """The Python modules that it needs."""

    @property
    def together(self) -> str:
        """What publishing several outputs together means here, for ``dobo plan`` and the record of a run."""
        ...

    @classmethod
    def open(
        cls,
        source: DataSource | None,
        *,
        root: str,
        record: Pin | Stored | None = None,
        session: Session | None = None,
    ) -> Self:
        """The storage of a datasource; without one, that of locations that outputs give themselves, or of a record.

        ``root`` is the workspace, at which relative addresses start. ``session`` is for what Spark alone can read or write.
        """
        ...

    @classmethod
    def load_pin(cls, document: Document) -> Pin:
        """A pin from plain data."""
        ...

    @classmethod
    def load_stored(cls, document: Document) -> Stored:
        """The place of written rows from plain data."""
        ...

    def with_options(self, options: Sequence[tuple[str, object]]) -> Storage:
        """The same with options that a location sets."""
        ...

    def in_folder(self, folder: str, *, within: str) -> Storage:
        """The same for drafts, which write into a folder of the sandbox whatever their destination is."""
        ...

    # --- checking, before anything is read

    def call(self) -> Answer | None:
        """Whether a server answers, for ``dobo doctor``; None where there is no server."""
        ...

    def leaves(self, location: Location) -> bool:
        """Whether a location to read leads out of the datasource, as far as can be seen now."""
        ...

    def escapes(self, table: str) -> bool:
        """Whether a destination leads out of the datasource, as far as can be seen now."""
        ...

    # --- reading

    def pin(self, use: DatasetUse, locations: Sequence[Location]) -> tuple[Pin, ...]:
        """Pin the current rows in the locations of a reading; a missing location raises."""
        ...

    def pin_registered(self, use: DatasetUse, stored: Stored) -> tuple[Pin, ...]:
        """What there is to read of a registered version (C-83)."""
        ...

    def pin_output(self, stored: Stored, *, name: str, period: str) -> Pin:
        """The rows of one published output of a run for a period."""
        ...

    def find_changes(self, pin: Pin, *, listing: bool) -> Iterable[str]:
        """Changes since the pin was made; with ``listing``, also files that were added."""
        ...

    def extract(self, use: DatasetUse, pin: Pin, scratch: Scratch, *, belongs: Belongs) -> tuple[Pin, Findings]:
        """Check all values, and make the rows readable for Spark, unless an earlier attempt did. The pin gets a fingerprint."""
        ...

    def input_files(self, pin: Pin, scratch: Scratch) -> tuple[InputFile, ...]:
        """The files that hold the pinned rows, once they are extracted: what is hashed and kept of an input."""
        ...

    def from_kept(self, pin: Pin, files: Sequence[str], scratch: Scratch) -> Pin:
        """The pin for reading copies of its files, in the same order, in place of what it was made of."""
        ...

    def count(self, pin: Pin, scratch: Scratch) -> int:
        """The number of rows, once they are extracted."""
        ...

    def extracted(self, pin: Pin, scratch: Scratch) -> Sequence[str]:
        """The Parquet files with the rows, one for each part of the location, whether they are extracted already or not."""
        ...

    def read(
        self, spark: SparkSession, use: DatasetUse, pin: Pin, scratch: Scratch, *, before: Callable[[], int]
    ) -> StoredRows:
        """The rows as a frame, once they are extracted; ``before`` counts the rows of the locations before this one."""
        ...

    def sample(self, stored: Stored, columns: Mapping[str, Type], rows: int) -> list[Row]:
        """The first rows that are stored, in no particular order, without Spark. ``columns`` have the recorded types."""
        ...

    # --- writing

    def target(self, output: OutputPlace) -> Target:
        """One output of one run at its destination."""
        ...

    def inspect(self, stored: Stored, *, run: str, seq: int) -> Inspected:
        """Whether a published output is what its record says, as far as can be known without reading rows."""
        ...

    def keep(self, stored: Stored, *, period: str, run: str, seq: int) -> Stored | None:
        """Keep the rows of a published output readable after later runs replace them; returns their place. ``run`` and ``seq``

        identify the output. Idempotent. None if the rows are lost.
        """
        ...
