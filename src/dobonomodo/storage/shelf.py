"""The port for places of files: folders of this machine, or an object store.

A file storage knows the format, its shelf the place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dobonomodo.plan.dataset import DatasetUse, Location
    from dobonomodo.storage.files import PinnedFile
    from dobonomodo.storage.folder import Format, StoredFiles, StoredFolders
    from dobonomodo.storage.storage import Answer, Scratch
    from dobonomodo.storage.target import Inspected, OutputPlace, Target


@dataclass(frozen=True, slots=True)
class Listed:
    """The files of one location, and what was listed to find them."""

    files: tuple[PinnedFile, ...]
    place: str


class Shelf(Protocol):
    """Where the files of a storage are. What goes wrong is an ``OSError``."""

    @property
    def root(self) -> Path:
        """The workspace."""
        ...

    @property
    def datasource_id(self) -> str | None:
        """The datasource that is needed to get at the files; None where their addresses say it all."""
        ...

    def call(self) -> Answer | None:
        """Whether a server answers; None where there is none."""
        ...

    def leaves(self, location: Location) -> bool:
        """Whether a location to read leads out of the datasource, as far as can be seen now."""
        ...

    def escapes(self, table: str) -> bool:
        """Whether a destination leads out of the datasource, as far as can be seen now."""
        ...

    # --- reading

    def list_location(self, use: DatasetUse, location: Location) -> Listed:
        """The files of a location, by name."""
        ...

    def list_folder(self, folder: str) -> Listed:
        """The files of a folder that runs wrote."""
        ...

    def list_beside(self, missing: str) -> Sequence[str]:
        """The names next to a missing path."""
        ...

    def pin(self, stored: StoredFiles) -> tuple[PinnedFile, ...]:
        """The files that one output wrote."""
        ...

    def find_columns(self, files: Sequence[PinnedFile]) -> tuple[str, ...]:
        """Every column, in lower case, of the destinations that some files belong to, whichever period has it."""
        ...

    def find_changes(self, files: Sequence[PinnedFile]) -> Iterable[str]:
        """Changes to files since they were pinned; none, if they can be read as they were."""
        ...

    def find_new(self, listed: str, files: Sequence[PinnedFile]) -> Iterable[str]:
        """Files that are where some were listed, and are not among them."""
        ...

    def paths(self, files: Sequence[PinnedFile], scratch: Scratch) -> list[Path]:
        """Where files are read, whether they are there already or not."""
        ...

    def fetch(self, files: Sequence[PinnedFile], scratch: Scratch) -> None:
        """Copy files to where they are read, unless an earlier attempt did."""
        ...

    def open_files(self, stored: StoredFiles | StoredFolders) -> Iterator[Path]:
        """The files that outputs wrote, one after the other; each may be gone when the next one is asked for."""
        ...

    # --- writing

    def target(self, output: OutputPlace, form: Format) -> Target:
        """One output of one run at its destination."""
        ...

    def inspect(self, stored: StoredFiles) -> Inspected:
        """Whether files match their record, and there are no others next to them."""
        ...

    def inspect_named(self, stored: StoredFiles) -> Inspected:
        """Whether the file that people open is what the run wrote, where the output writes one of its own name."""
        ...

    def keep(self, stored: StoredFiles) -> StoredFiles | None:
        """Mark the files of an output to be kept; returns a place that no other run writes to."""
        ...
