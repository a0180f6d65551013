"""Storages of files in folders: what Parquet, CSV and their like have in common.

A subclass says what a file is: how it becomes Parquet that Spark reads, and how its first rows are shown.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field

from dobonomodo.formula import Type
from dobonomodo.model.datasource import DataSource, StorageOptions
from dobonomodo.model.document import Places
from dobonomodo.model.plain import Document
from dobonomodo.model.secret import find_secrets
from dobonomodo.model.template import check_folder
from dobonomodo.model.value import Filled
from dobonomodo.plan.dataset import DatasetUse, Location
from dobonomodo.plan.destination import DestinationKind
from dobonomodo.problems import Problem
from dobonomodo.storage.faults import is_passing, loading_failed, writing_failed
from dobonomodo.storage.files import (
    PinnedFile,
    find_changes,
    leads_out,
    leaves_datasource,
    list_beside,
    list_files,
    pin_files,
)
from dobonomodo.storage.findings import Findings
from dobonomodo.storage.folder import FolderTarget, Format, StoredFiles, StoredFolders, inspect_files, keep_files
from dobonomodo.storage.kept import InputFile
from dobonomodo.storage.manifest import find_columns, version_of
from dobonomodo.storage.named import NamedFile
from dobonomodo.storage.pointer import find_folder
from dobonomodo.storage.storage import Answer, Belongs, Pin, Row, Scratch, Storage, Stored
from dobonomodo.storage.target import Inspected, OutputPlace, Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.storage.rows import StoredRows


class FolderOptions(StorageOptions):
    """A folder of files."""

    path_prefix: Filled = Field(description="The folder; a relative path starts at the workspace.")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """A folder that a file system can have. An address with a secret in it is reported as that."""
        if places.text("path_prefix") is not None and not any(find_secrets(places, "options")):
            yield from check_folder(places.passage("path_prefix"), "path_prefix")


@dataclass(frozen=True, slots=True)
class FilePin:
    """The files of one location, as they were."""

    format: Format
    name: str
    files: tuple[PinnedFile, ...]
    period: str | None = None
    listed: str | None = None
    """The file or folder that was listed."""
    optional: tuple[str, ...] = ()
    """Columns, in lower case, that other files of the same destination have; where they are missing they are NULL."""

    @property
    def kind(self) -> str:
        """The kind of storage."""
        return self.format.kind

    @property
    def datasource_id(self) -> None:
        """Files have addresses of their own."""

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def is_managed(self) -> bool:
        """Whether it is a destination of runs, whose folder changes with every publication; its data do not."""
        return any(version_of(Path(file.path)) is not None for file in self.files)

    def document(self) -> dict[str, object]:
        """As plain data."""
        own = {"kind": self.kind, "name": self.name, "period": self.period, "listed": self.listed}
        files = [file.document() for file in self.files]
        return {**own, **self.format.options, "optional": list(self.optional), "files": files}

    @classmethod
    def load(cls, document: Document, form: Format) -> FilePin:
        """From plain data."""
        files = tuple(PinnedFile.load(each) for each in document["files"])
        optional = tuple(document.get("optional", ()))
        return cls(form, document["name"], files, document.get("period"), document.get("listed"), optional)


@dataclass(frozen=True, slots=True)
class FileStorage(ABC):
    """Files in a folder. Relative paths start at the workspace."""

    root: Path
    format: Format
    prefix: Path | None = None
    """The folder of the datasource, whose tables are published together; None for locations that outputs give themselves."""
    within: Path | None = None
    """The folder that destinations must not leave, where that is not the prefix."""

    kind: ClassVar[str]
    options: ClassVar[type[StorageOptions]]
    destinations: ClassVar[DestinationKind] = DestinationKind(
        are_paths=True, inline=True, has_schemas=False, has_named_files=True
    )
    modules: ClassVar[Sequence[str]] = ("pyarrow",)
    together: ClassVar[str] = "one change of a pointer for all tables of the datasource"

    @classmethod
    def open(cls, source: DataSource | None, *, root: str, record: Pin | Stored | None = None) -> Self:
        """The folder of a datasource; without one, the workspace."""
        if source is None:
            return cls(Path(root), cls.load_format(record.document() if record is not None else {}))
        return cls(Path(root), cls.load_format(source.options), Path(root) / source.options["path_prefix"])

    @classmethod
    @abstractmethod
    def load_format(cls, document: Document) -> Format:
        """What the files are, as options of a datasource or a record say it."""

    @classmethod
    def load_pin(cls, document: Document) -> Pin:
        """From plain data."""
        return FilePin.load(document, cls.load_format(document))

    @classmethod
    def load_stored(cls, document: Document) -> Stored:
        """From plain data."""
        form = cls.load_format(document)
        return StoredFolders.load(document, form) if "folders" in document else StoredFiles.load(document, form)

    def with_options(self, options: Sequence[tuple[str, object]]) -> Storage:
        """Files that are written in another way."""
        return replace(self, format=self.load_format({**self.format.options, **dict(options)})) if options else self

    def in_folder(self, folder: str, *, within: str) -> Storage:
        """The same files in another folder."""
        return replace(self, prefix=Path(folder), within=Path(within))

    # --- checking

    def call(self) -> Answer | None:
        """There is no server."""
        return None

    def leaves(self, location: Location) -> bool:
        """Whether a symbolic link leads out of the datasource."""
        if self.prefix is None or location.path is None:
            return False
        return leaves_datasource(self.prefix, self.prefix / location.path)

    def escapes(self, table: str) -> bool:
        """Whether a symbolic link leads out of the datasource, or out of the workspace."""
        folder = self.prefix or self.root
        return leads_out(folder, folder / table)

    # --- reading

    def pin(self, use: DatasetUse, locations: Sequence[Location]) -> tuple[Pin, ...]:
        """The files that there are now."""
        return self._complete(self._pin(use, location) for location in locations)

    def _pin(self, use: DatasetUse, location: Location) -> FilePin:
        prefix = self.prefix or self.root
        path = prefix / (location.path or location.table or "")
        files = self._list(use, path)
        if outside := next((file.path for file in files if leaves_datasource(prefix, Path(file.path))), None):
            detail = f"a symbolic link points outside datasource `{location.datasource_id}`, to `{outside}`"
            raise loading_failed(use, detail)
        return FilePin(self.format, str(location), files, location.period, str(path))

    def pin_registered(self, use: DatasetUse, stored: Stored) -> tuple[Pin, ...]:
        """The files in the folders that were registered."""
        folders = _folders_of(stored)
        paths = [self.root / folder for folder in folders]
        pins = (
            FilePin(self.format, folder, self._list(use, path), listed=str(path))
            for folder, path in zip(folders, paths, strict=True)
        )
        return self._complete(pins)

    def _complete(self, pins: Iterable[FilePin]) -> tuple[FilePin, ...]:
        """Pins that know which columns files of the same destinations have (C-86)."""
        found = tuple(pins)
        optional = find_columns(Path(file.path) for each in found for file in each.files)
        return tuple(replace(each, optional=optional) for each in found)

    def pin_output(self, stored: Stored, *, name: str, period: str) -> Pin:
        """The files that the output wrote."""
        del period
        if not isinstance(stored, StoredFiles):
            raise AssertionError("an output has files of its own")
        data = self.root / stored.data
        return FilePin(self.format, name, tuple(PinnedFile.of(data / file) for file in stored.files))

    def _list(self, use: DatasetUse, path: Path) -> tuple[PinnedFile, ...]:
        try:
            return pin_files(path)
        except FileNotFoundError as fault:
            missing = Path(fault.filename or path)
            rule = f"rule `{use.rule}` of resolver `{use.resolver_id}` gives this path" if use.rule else None
            detail = f"file or folder `{missing}` does not exist"
            raise loading_failed(use, detail, remedy=rule, present=list_beside(missing)) from fault
        except OSError as fault:
            detail = f"`{fault.filename or path}`: {fault.strerror}"
            raise loading_failed(use, detail, retry_helps=is_passing(fault)) from fault

    def find_changes(self, pin: Pin, *, listing: bool) -> Iterable[str]:
        """Files that are gone or were written to; with ``listing``, also files that were added to a folder."""
        own = file_pin(pin)
        yield from find_changes(own.files)
        if listing and own.listed is not None and not own.is_managed:
            known = {file.path for file in own.files}
            yield from (f"`{path}` is new" for path in _real_files(own.listed) if path not in known)

    def extract(self, use: DatasetUse, pin: Pin, scratch: Scratch, *, belongs: Belongs) -> tuple[Pin, Findings]:
        """Check every file; what is not Parquet becomes Parquet."""
        del belongs
        own = file_pin(pin)
        stored = replace(use, optional=frozenset(own.optional))
        files = zip(own.files, self.parquet_files(own, scratch), strict=True)
        found = (self.extract_file(stored, Path(file.path), path) for file, path in files)
        return pin, sum(found, Findings())

    def input_files(self, pin: Pin, scratch: Scratch) -> tuple[InputFile, ...]:
        """The files themselves."""
        del scratch
        return tuple(InputFile(file.path) for file in file_pin(pin).files)

    def from_kept(self, pin: Pin, files: Sequence[str], scratch: Scratch) -> Pin:
        """Copies in place of the files; what there is beside them does not matter."""
        del scratch
        return replace(file_pin(pin), files=tuple(PinnedFile.of(Path(path)) for path in files), listed=None)

    @abstractmethod
    def extract_file(self, use: DatasetUse, source: Path, target: Path) -> Findings:
        """Check one file and make it Parquet, unless that was done; gives what is wrong in it."""

    def parquet_files(self, pin: FilePin, scratch: Scratch) -> list[Path]:
        """The Parquet files of a pin, before or after they are made."""
        return [Path(scratch.file(number)) for number in range(len(pin.files))]

    def extracted(self, pin: Pin, scratch: Scratch) -> Sequence[str]:
        """One for each file."""
        return [str(path) for path in self.parquet_files(file_pin(pin), scratch)]

    def count(self, pin: Pin, scratch: Scratch) -> int:
        """The number of rows, from the footers of the Parquet files."""
        from dobonomodo.storage.parquet import count_rows

        return count_rows(self.parquet_files(file_pin(pin), scratch))

    def read(
        self, spark: SparkSession, use: DatasetUse, pin: Pin, scratch: Scratch, *, before: Callable[[], int]
    ) -> StoredRows:
        """The rows of all files."""
        from dobonomodo.storage.parquet import read_stored

        own = file_pin(pin)
        stored = replace(use, optional=frozenset(own.optional))
        files = self.parquet_files(own, scratch)
        return read_stored(spark, files, stored, links=scratch.links, period=pin.period, before=before)

    def sample(self, stored: Stored, columns: Mapping[str, Type], rows: int) -> list[Row]:
        """The first rows of the first files."""
        found = islice(self._sample(_folders_of(stored), columns, rows), rows)
        # Periods of a registered dataset may lack columns that others have (C-86).
        named = stored.columns
        return list(found) if named is None else [_complete_row(row, named) for row in found]

    def _sample(self, folders: Sequence[str], columns: Mapping[str, Type], rows: int) -> Iterator[Row]:
        for folder in folders:
            for path in sorted((self.root / folder).iterdir()):
                yield from self.sample_file(path, columns, rows)

    @abstractmethod
    def sample_file(self, path: Path, columns: Mapping[str, Type], rows: int) -> Iterable[Row]:
        """The first rows of one file that a run wrote, in their recorded types."""

    # --- writing

    def target(self, output: OutputPlace) -> Target:
        """A folder of the datasource; a location that an output gives itself is published on its own."""
        folder = (self.prefix or self.root) / output.table
        prefix = self.prefix or folder.parent
        within = self.within or self.prefix or self.root
        # Links between files are relative, and would lead elsewhere from behind a link.
        path = find_folder(folder)
        if leads_out(within, path) or path == Path(os.path.realpath(within)):
            raise writing_failed(str(folder), f"it points outside its folder, to `{path}`")
        file = (self.prefix or self.root) / output.file if output.file is not None else None
        if file is not None and leads_out(within, file.parent):
            raise writing_failed(str(file), "it points outside its folder")
        return FolderTarget(
            path,
            Path(os.path.realpath(prefix)),
            Path(os.path.realpath(self.root)),
            self.format,
            output.period,
            output.run,
            output.seq,
            dict(output.columns),
            output.fence,
            output.attempt,
            NamedFile(Path(os.path.realpath(file.parent)) / file.name, output.sheet) if file is not None else None,
        )

    def inspect(self, stored: Stored, *, run: str, seq: int) -> Inspected:
        """The hashes of the files and of their manifest."""
        del run, seq
        if not isinstance(stored, StoredFiles):
            raise AssertionError("an output has files of its own")
        return inspect_files(stored, root=self.root)

    def keep(self, stored: Stored, *, period: str, run: str, seq: int) -> Stored | None:
        """The files stay where they are."""
        del period, run, seq
        if not isinstance(stored, StoredFiles):
            raise AssertionError("an output has files of its own")
        return keep_files(stored, root=self.root)


def file_pin(pin: Pin) -> FilePin:
    """The pin of a storage of files."""
    if not isinstance(pin, FilePin):
        raise AssertionError("a storage of files has made it")
    return pin


def _folders_of(stored: Stored) -> tuple[str, ...]:
    if not isinstance(stored, StoredFiles | StoredFolders):
        raise AssertionError("a storage of files has written it")
    return stored.folders


def _complete_row(row: Row, columns: Sequence[str]) -> Row:
    folded = {name.casefold(): value for name, value in row.items()}
    return {name: folded.get(name.casefold()) for name in columns}


def _real_files(listed: str) -> list[str]:
    try:
        return [str(path.resolve()) for path in list_files(Path(listed))]
    except OSError:
        return []
