"""Storages of files: what Parquet, CSV and Excel share, wherever the files are.

A subclass defines the format: how a file becomes Parquet that Spark reads, and how its first rows are shown. A shelf
defines where files are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

from pydantic import Field

from dobonomodo.formula import Type
from dobonomodo.model.datasource import DataSource, StorageOptions
from dobonomodo.model.document import Places
from dobonomodo.model.plain import Document
from dobonomodo.model.secret import find_secrets
from dobonomodo.model.template import check_folder
from dobonomodo.model.value import Filled, Text
from dobonomodo.plan.dataset import DatasetUse, Location
from dobonomodo.plan.destination import DestinationKind
from dobonomodo.problems import Problem, RunFailed
from dobonomodo.problems.definition import InvalidValue
from dobonomodo.problems.run import DataLoad, InputChanged
from dobonomodo.storage.address import HDFS, check_address, is_address
from dobonomodo.storage.faults import is_passing, loading_failed
from dobonomodo.storage.files import PinnedFile
from dobonomodo.storage.findings import Findings
from dobonomodo.storage.folder import Format, StoredFiles, StoredFolders
from dobonomodo.storage.footers import count_rows
from dobonomodo.storage.kept import InputFile
from dobonomodo.storage.local_shelf import LocalShelf
from dobonomodo.storage.manifest import version_of
from dobonomodo.storage.object_shelf import ObjectShelf
from dobonomodo.storage.objects import ObjectChangedError
from dobonomodo.storage.shelf import Listed, Shelf
from dobonomodo.storage.storage import Answer, Belongs, Pin, Row, Scratch, Session, Storage, Stored
from dobonomodo.storage.target import Inspected, OutputPlace, Target, WrittenFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.storage.rows import StoredRows


T = TypeVar("T")


class FolderOptions(StorageOptions):
    """A folder of this machine."""

    path_prefix: Filled = Field(description="The folder; a relative path starts at the workspace.")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """A folder that a file system can have. An address with a secret in it is reported as that."""
        if places.text("path_prefix") is not None and not any(find_secrets(places, "options")):
            yield from check_folder(places.passage("path_prefix"), "path_prefix")


class FilesOptions(FolderOptions):
    """A folder of files, on this machine, in an object store or in HDFS."""

    path_prefix: Filled = Field(
        description="The folder; a relative path starts at the workspace. In an object store or in HDFS, an address such as "
        "`s3://bucket/folder`."
    )
    endpoint: Text | None = Field(
        default=None, description="The address of the object store's server; the default is the cloud's own."
    )
    region: Text | None = Field(default=None, description="The region of the bucket.")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """A folder that a file system or an object store can have."""
        yield from check_place(places, "path_prefix")


def check_place(places: Places, option: str, *, schemes: Sequence[str] | None = None) -> Iterable[Problem]:
    """A folder that a file system or an object store can have; ``schemes`` are those that are supported, if not all are."""
    text = places.text(option)
    is_hdfs = (text or "").lower().startswith(f"{HDFS}:")
    if is_hdfs or not is_address(text or ""):
        for key in ("endpoint", "region"):
            if places.at(key) is not None:
                where = "in HDFS" if is_hdfs else "on this machine"
                expected, found = f"no such option where the files are {where}", f"`{key}`"
                yield InvalidValue(key=key, expected=expected, found=found, span=places.key_span(key))
    # An address with a secret in it is reported as that.
    if text is None or any(find_secrets(places, "options")):
        return
    check = partial(check_address, schemes=schemes) if is_address(text) else check_folder
    yield from check(places.passage(option), option)


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
    datasource_id: str | None = None
    """The datasource that is needed to read it; None for files of this machine, which have addresses of their own."""

    @property
    def kind(self) -> str:
        """The kind of storage."""
        return self.format.kind

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
        if self.datasource_id is not None:
            own["datasource_id"] = self.datasource_id
        files = [file.document() for file in self.files]
        return {**own, **self.format.options, "optional": list(self.optional), "files": files}

    @classmethod
    def load(cls, document: Document, form: Format) -> FilePin:
        """From plain data."""
        files = tuple(PinnedFile.load(each) for each in document["files"])
        optional, source = tuple(document.get("optional", ())), document.get("datasource_id")
        return cls(form, document["name"], files, document.get("period"), document.get("listed"), optional, source)


@dataclass(frozen=True, slots=True)
class FileStorage(ABC):
    """Files of one kind."""

    shelf: Shelf
    """Where they are."""
    format: Format

    kind: ClassVar[str]
    options: ClassVar[type[StorageOptions]]
    destinations: ClassVar[DestinationKind] = DestinationKind(
        are_paths=True, inline=True, has_schemas=False, has_named_files=True
    )
    modules: ClassVar[Sequence[str]] = ("pyarrow",)
    together: ClassVar[str] = "one change of a pointer for all tables of the datasource"

    @classmethod
    def open(
        cls,
        source: DataSource | None,
        *,
        root: str,
        record: Pin | Stored | None = None,
        session: Session | None = None,
    ) -> Self:
        """The folder of a datasource; without one, the workspace."""
        del session
        said = record.document() if record is not None else source.options if source is not None else {}
        return cls(_open_shelf(source, Path(root)), cls.load_format(said))

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
        """The same files in another folder of this machine."""
        return replace(self, shelf=LocalShelf(self.shelf.root, Path(folder), Path(within)))

    # --- checking

    def call(self) -> Answer | None:
        """What the server of the files says."""
        return self.shelf.call()

    def leaves(self, location: Location) -> bool:
        """Whether a location leads out of the datasource."""
        return self.shelf.leaves(location)

    def escapes(self, table: str) -> bool:
        """Whether a destination leads out of the datasource."""
        return self.shelf.escapes(table)

    # --- reading

    def pin(self, use: DatasetUse, locations: Sequence[Location]) -> tuple[Pin, ...]:
        """The files that there are now."""
        found = [(self._list(use, partial(self.shelf.list_location, use, each)), each) for each in locations]
        return self._complete(
            use, [self._pin(listed, str(location), period=location.period) for listed, location in found]
        )

    def pin_registered(self, use: DatasetUse, stored: Stored) -> tuple[Pin, ...]:
        """The files in the folders that were registered."""
        folders = _written(stored).folders
        found = [(self._list(use, partial(self.shelf.list_folder, each)), each) for each in folders]
        return self._complete(use, [self._pin(listed, folder) for listed, folder in found])

    def _pin(self, listed: Listed, name: str, *, period: str | None = None) -> FilePin:
        return FilePin(self.format, name, listed.files, period, listed.place, datasource_id=self.shelf.datasource_id)

    def _complete(self, use: DatasetUse, pins: Sequence[FilePin]) -> tuple[FilePin, ...]:
        """Pins that know which columns files of the same destinations have (C-86)."""
        optional = self._list(use, lambda: self.shelf.find_columns([file for each in pins for file in each.files]))
        return tuple(replace(each, optional=optional) for each in pins)

    def pin_output(self, stored: Stored, *, name: str, period: str) -> Pin:
        """The files that the output wrote."""
        del period
        files = self.shelf.pin(_own_files(stored))
        return FilePin(self.format, name, files, datasource_id=self.shelf.datasource_id)

    def _list(self, use: DatasetUse, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except FileNotFoundError as fault:
            rule = f"rule `{use.rule}` of resolver `{use.resolver_id}` names this path" if use.rule else None
            detail = f"file or folder `{fault.filename}` does not exist"
            raise loading_failed(use, detail, remedy=rule, present=self.shelf.list_beside(fault.filename)) from fault
        except OSError as fault:
            detail = f"`{fault.filename}`: {fault.strerror}"
            raise loading_failed(use, detail, retry_helps=is_passing(fault)) from fault

    def find_changes(self, pin: Pin, *, listing: bool) -> Iterable[str]:
        """Files that are gone or were written to; with ``listing``, also files that were added to a folder."""
        own = file_pin(pin)
        try:
            yield from self.shelf.find_changes(own.files)
            if listing and own.listed is not None and not own.is_managed:
                yield from (f"`{path}` is new" for path in self.shelf.find_new(own.listed, own.files))
        except OSError as fault:
            detail = f"`{fault.filename}`: {fault.strerror}"
            raise RunFailed(DataLoad(dataset_id=own.name, detail=detail, is_transient=is_passing(fault))) from fault

    def extract(self, use: DatasetUse, pin: Pin, scratch: Scratch, *, belongs: Belongs) -> tuple[Pin, Findings]:
        """Check every file; what is not Parquet becomes Parquet."""
        del belongs
        own = file_pin(pin)
        try:
            self.shelf.fetch(own.files, scratch)
        except ObjectChangedError as fault:
            raise RunFailed(InputChanged(changes=(f"`{fault.filename}` was changed",))) from fault
        except FileNotFoundError as fault:
            raise RunFailed(InputChanged(changes=(f"`{fault.filename}` is gone",))) from fault
        except OSError as fault:
            detail = f"`{fault.filename}`: {fault.strerror}"
            raise loading_failed(use, detail, retry_helps=is_passing(fault)) from fault
        stored = replace(use, optional=frozenset(own.optional))
        sources = self.shelf.paths(own.files, scratch)
        files = list(zip(own.files, sources, self.parquet_files(own, scratch), strict=True))
        done = self.extract_apart(stored, files, scratch) or [None] * len(files)
        found = (
            self.extract_named(stored, *each) if there is None else there
            for each, there in zip(files, done, strict=True)
        )
        return pin, sum(found, Findings())

    def extract_apart(
        self, use: DatasetUse, files: Sequence[tuple[PinnedFile, Path, Path]], scratch: Scratch
    ) -> Sequence[Findings | None] | None:
        """The findings of executors per file: None for a file that they could not extract, or if this machine extracts all."""
        del use, files, scratch
        return None

    def extract_named(self, use: DatasetUse, file: PinnedFile, source: Path, target: Path) -> Findings:
        """Extract a file; errors name the file as users know it."""
        with named_as({str(source): file.path}):
            found = self.extract_file(use, source, target)
        return found.renamed(str(source), file.path)

    def input_files(self, pin: Pin, scratch: Scratch) -> tuple[InputFile, ...]:
        """The files themselves, or copies of objects."""
        files = file_pin(pin).files
        paths = self.shelf.paths(files, scratch)
        return tuple(
            InputFile(str(path), is_ours=str(path) != file.path, name=file.path)
            for file, path in zip(files, paths, strict=True)
        )

    def from_kept(self, pin: Pin, files: Sequence[str], scratch: Scratch) -> Pin:
        """A pin of copies instead of the files; other files next to them are ignored."""
        del scratch
        copies = tuple(PinnedFile.of(Path(path)) for path in files)
        return replace(file_pin(pin), files=copies, listed=None, datasource_id=None)

    @abstractmethod
    def extract_file(self, use: DatasetUse, source: Path, target: Path) -> Findings:
        """Check one file and convert it to Parquet, unless that was done; returns its errors."""

    def parquet_files(self, pin: FilePin, scratch: Scratch) -> list[Path]:
        """The Parquet files of a pin, before or after they are made."""
        return [Path(scratch.file(number)) for number in range(len(pin.files))]

    def extracted(self, pin: Pin, scratch: Scratch) -> Sequence[str]:
        """One for each file."""
        return [str(path) for path in self.parquet_files(file_pin(pin), scratch)]

    def count(self, pin: Pin, scratch: Scratch) -> int:
        """The number of rows, from the footers of the Parquet files."""
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
        found = list(islice(self._sample(_written(stored), columns, rows), rows))
        # Periods of a registered dataset may lack columns that others have (C-86).
        named = stored.columns
        return found if named is None else [_complete_row(row, named) for row in found]

    def _sample(self, stored: StoredFiles | StoredFolders, columns: Mapping[str, Type], rows: int) -> Iterator[Row]:
        for path in self.shelf.open_files(stored):
            yield from self.sample_file(path, columns, rows)

    @abstractmethod
    def sample_file(self, path: Path, columns: Mapping[str, Type], rows: int) -> Iterable[Row]:
        """The first rows of one file that a run wrote, in their recorded types."""

    # --- writing

    def target(self, output: OutputPlace) -> Target:
        """A table of the datasource."""
        return self.shelf.target(output, self.format)

    def inspect(self, stored: Stored, *, run: str, seq: int) -> Inspected:
        """The hashes of the files and of their manifest."""
        del run, seq
        return self.shelf.inspect(_own_files(stored))

    def list_files(self, stored: Stored) -> tuple[WrittenFile, ...]:
        """Those of the data, then the one that people open."""
        own = _own_files(stored)
        hashes = own.hashes or (None,) * len(own.files)
        files = [WrittenFile(f"{own.data}/{name}", sha256) for name, sha256 in zip(own.files, hashes, strict=True)]
        named = [WrittenFile(own.named, own.named_sha256, is_named=True)] if own.named is not None else []
        return (*files, *named)

    def inspect_named(self, stored: Stored) -> Inspected:
        """The hash of the file that people open."""
        return self.shelf.inspect_named(_own_files(stored))

    def keep(self, stored: Stored, *, period: str, run: str, seq: int) -> Stored | None:
        """The files stay where they are."""
        del period, run, seq
        return self.shelf.keep(_own_files(stored))


def _open_shelf(source: DataSource | None, root: Path) -> Shelf:
    if source is None:
        return LocalShelf(root)
    prefix = str(source.options["path_prefix"])
    return ObjectShelf.of(source, root) if is_address(prefix) else LocalShelf(root, root / prefix)


@contextmanager
def named_as(names: Mapping[str, str]) -> Iterator[None]:
    """Failures name files, given by their paths, as people know them."""
    try:
        yield
    except RunFailed as failed:
        problem = failed.problem
        if not isinstance(problem, DataLoad):
            raise
        for path, name in names.items():
            problem = problem.renamed(path, name)
        raise RunFailed(problem) from failed


def file_pin(pin: Pin) -> FilePin:
    """The pin of a storage of files."""
    if not isinstance(pin, FilePin):
        raise AssertionError("a storage of files has made it")
    return pin


def _written(stored: Stored) -> StoredFiles | StoredFolders:
    if not isinstance(stored, StoredFiles | StoredFolders):
        raise AssertionError("a storage of files has written it")
    return stored


def _own_files(stored: Stored) -> StoredFiles:
    if not isinstance(stored, StoredFiles):
        raise AssertionError("an output has files of its own")
    return stored


def _complete_row(row: Row, columns: Sequence[str]) -> Row:
    folded = {name.casefold(): value for name, value in row.items()}
    return {name: folded.get(name.casefold()) for name in columns}
