"""A table that is a list of Parquet files as a destination: files are written to staging, one commit adds them to the table.

This is the part that all table formats share. The target of each kind defines how a commit is made and what it records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Generic, NoReturn, Self, TypeVar
from urllib.parse import quote

from dobonomodo.formula import Type
from dobonomodo.model.plain import Document
from dobonomodo.plan.registration import United
from dobonomodo.storage.faults import is_passing, writing_failed
from dobonomodo.storage.fence import Fence
from dobonomodo.storage.leftover import Leftover
from dobonomodo.storage.rewriting import Fit, clear_folder, fit_columns, hash_files, is_fitting, rewrite_files
from dobonomodo.storage.table_files import OWN, StoredTableFiles, TableFile, is_key
from dobonomodo.storage.table_home import TableHome
from dobonomodo.storage.target import Commit, Publication, Target
from dobonomodo.storage.tries import look_again

T = TypeVar("T")
"""A table as the library of its kind has it, as it was at one moment."""

TRIES = 100


@dataclass(frozen=True, slots=True, eq=False)
class Change(Generic[T]):
    """What one commit does to the table that was read."""

    table: T
    fit: Fit
    replaces: bool
    """Whether the files of the period that are there go."""
    is_fresh: bool
    """Whether no rows stay, whose columns would have to stay too."""
    pending: Sequence[Publication]
    files: Mapping[int, Sequence[Path]]
    """By operation, those of the outputs; what a later output of the same run replaces has none."""
    widened: Sequence[tuple[Path, str | None]]
    """Files that stay, written again with wider numbers, with their periods."""
    hashes: Mapping[Path, str]

    @property
    def added(self) -> list[Path]:
        """The files of all outputs."""
        return [path for paths in self.files.values() for path in paths]


@dataclass(frozen=True, slots=True)
class TableFilesTarget(ABC, Generic[T]):
    """One output of one run into a table."""

    datasource_id: str
    table: str
    period: str
    run: str
    seq: int
    columns: Mapping[str, Type]
    fence: Fence
    attempt: int
    """The number of the attempt that wrote the files, which may be an earlier one than the one that publishes them."""

    kind: ClassVar[str]

    # --- what each kind says

    @property
    @abstractmethod
    def place(self) -> str:
        """The table: each has a history of its own."""

    @property
    def namespace(self) -> str | None:
        """The namespace of the table, where tables have them."""
        return None

    @property
    def name(self) -> str:
        """How messages name the table."""
        return self.table if self.namespace is None else f"{self.namespace}.{self.table}"

    @abstractmethod
    def _open(self) -> T | None:
        """The table as it is now, if there is one; refuses one that no run can write to."""

    @abstractmethod
    def _create(self) -> T | None:
        """Create the table, without rows, unless another process does; None if it has to be opened again."""

    @abstractmethod
    def _home(self, table: T) -> TableHome:
        """Where the files of the table are."""

    @abstractmethod
    def _find_key(self, table: T) -> str:
        """The column that holds the run period. A table keeps the one that it has."""

    @abstractmethod
    def _list(self, table: T) -> list[TableFile]:
        """The files of the table."""

    @abstractmethod
    def _all_columns(self, table: T) -> dict[str, Type]:
        """The columns of the table, with the one that holds the run period."""

    @abstractmethod
    def _find_fence(self, table: T) -> int | None:
        """The fencing number that was claimed last."""

    @abstractmethod
    def _claim(self, table: T) -> bool:
        """Write our fencing number, on top of exactly the version that was read; False if there is a later one."""

    @abstractmethod
    def is_published(self, table: T) -> bool:
        """Whether the table says that this output is published."""

    @abstractmethod
    def _read_note(self, table: T) -> Document:
        """What a commit noted of this output, which is published."""

    @abstractmethod
    def _read_stored(self, table: T, note: Document) -> tuple[int, list[TableFile], list[str]]:
        """The version that the output made, its files, and their hashes."""

    @abstractmethod
    def _version(self, table: T) -> int:
        """The version of the table."""

    @abstractmethod
    def _commit_change(self, change: Change[T]) -> bool:
        """Publish on top of exactly the version that was read; False if there is a later one, which must be read first."""

    @abstractmethod
    def _explain(self, fault: Exception) -> tuple[str, bool] | None:
        """The library's message for an error, and whether a retry helps; None for other errors."""

    def _file_columns(self, table: T, fit: Fit) -> Mapping[str, Type]:
        """The columns of files."""
        del table
        return fit.columns

    # --- before anything is computed

    def check(self, *, mode: str) -> United:
        """Refuse a table that cannot accept the rows; returns the columns of the rows that stay."""
        with self._explaining():
            table = self._open()
            self._prepare(table)
            if table is None:
                return United({})
            self._fit(table, [self.columns], replaces=mode == "replace")
            return United(self._staying_columns(table, replaces=mode == "replace"))

    @abstractmethod
    def _prepare(self, table: T | None) -> None:
        """Make sure that files can be written."""

    def _require_key(self, keys: Sequence[str]) -> None:
        """Refuse a table that is partitioned in another way than runs do."""
        if len(keys) != 1 or not is_key(keys[0]):
            self._refuse("the table is not partitioned by `_run_period`: no run created it; choose another table")
        if keys[0].casefold() in {name.casefold() for name in self.columns}:
            self._refuse(f"the table is partitioned by `{keys[0]}`, which is now also a column; choose another table")

    def _staying_files(self, table: T, *, replaces: bool) -> list[TableFile]:
        """The files that no publication for the period removes."""
        files = self._list(table)
        return [file for file in files if not replaces or [value for _, value in file.values] != [self.period]]

    def _own_columns(self, table: T) -> dict[str, Type]:
        """The columns of the table, without the one that holds the run period."""
        key = self._find_key(table)
        return {name: kind for name, kind in self._all_columns(table).items() if name != key}

    def _staying_columns(self, table: T, *, replaces: bool) -> dict[str, Type]:
        """The columns of the rows that stay; none if all are replaced."""
        return self._own_columns(table) if self._staying_files(table, replaces=replaces) else {}

    def _fit(self, table: T, written: Sequence[Mapping[str, Type]], *, replaces: bool) -> Fit:
        """How rows with these columns go beside those that stay (C-86)."""
        return fit_columns(self._staying_columns(table, replaces=replaces), written, table=self.name)

    # --- where nobody reads it yet

    @property
    def _own(self) -> str:
        return f"{OWN}{self.run}-{self.seq}-"

    def _folder(self, home: TableHome, key: str, more: str = "", *, period: str | None = None) -> Path:
        """Where this attempt puts the output's files, before and after they are published.

        Each attempt at a run has a folder of its own: an earlier one may still be writing, and not know that it lost. The list of
        files says which period a file is of; some readers go by its path.
        """
        parent = f"{key}={quote(self.period if period is None else period, safe='')}"
        return home.data / parent / f"{self._own}{self.attempt}{more}"

    @abstractmethod
    def start(self) -> str | None:
        """The folder in which Spark writes the rows as they are published; None if they are converted."""

    @abstractmethod
    def convert(self, files: Sequence[str]) -> bool:
        """Convert Parquet files to the form of the table, in staging; False if they already have it."""

    # --- claiming and publishing

    def claim(self) -> None:
        """Fail if a later run has claimed the table; otherwise the table refuses earlier runs from now on."""
        with self._explaining():
            for table in self._commit_attempts():
                if self._is_claimed(table) or self._claim(table):
                    return

    def _is_claimed(self, table: T) -> bool:
        seen = self._find_fence(table)
        if seen is not None and seen > self.fence.number:
            raise self.fence.lost()
        return seen == self.fence.number

    def publish(self, group: Sequence[Publication]) -> None:
        """Replace the period's rows, or add to them, for all outputs that go to the table, in one commit."""
        hashes: dict[Path, str] = {}
        with self._explaining():
            for table in self._commit_attempts():
                self._is_claimed(table)
                pending = [each for each in group if not self.like(each.target).is_published(table)]
                if not pending or self._commit_change(self._make_change(table, pending, hashes)):
                    return

    def _make_change(self, table: T, pending: Sequence[Publication], hashes: dict[Path, str]) -> Change[T]:
        """What is to be committed. ``hashes`` keeps what an earlier try has computed."""
        replacing = [at for at, each in enumerate(pending) if each.mode == "replace"]
        replaces = bool(replacing)
        # What one output writes, a later one of the same run may replace.
        written = pending[max(replacing, default=0) :]
        targets = [self.like(each.target) for each in written]
        fit = self._fit(table, [each.columns for each in targets], replaces=replaces)
        files = {
            each.seq: each.fitting_files(table, publication, fit)
            for each, publication in zip(targets, written, strict=True)
        }
        is_fresh = not self._staying_columns(table, replaces=replaces)
        widened = self._widen(table, fit, replaces=replaces) if fit.widened else []
        change = Change(table, fit, replaces, is_fresh, pending, files, widened, hashes)
        hash_files(hashes, change.added)
        return change

    def fitting_files(self, table: T, publication: Publication, fit: Fit) -> list[Path]:
        """The files of the output as the table is to have them; those that are not are written again."""
        home, key = self._home(table), self._find_key(table)
        folder, columns = self._folder(home, key), self._file_columns(table, fit)
        if not folder.is_dir():
            self.convert(publication.staged_files())
        files = sorted(folder.glob("*.parquet"))
        if not all(is_fitting(path, columns) for path in files):
            files = rewrite_files(files, clear_folder(self._folder(home, key, "-again")), columns)
        home.put(files)
        return files

    def _widen(self, table: T, fit: Fit, *, replaces: bool) -> list[tuple[Path, str | None]]:
        """The files that stay, written again with wider numbers."""
        home, key = self._home(table), self._find_key(table)
        widened: list[tuple[Path, str | None]] = []
        for number, file in enumerate(self._staying_files(table, replaces=replaces)):
            ((_, period),) = file.values
            folder = clear_folder(self._folder(home, key, f"-wider-{number}", period=period))
            written = rewrite_files([home.fetch(file.path)], folder, self._file_columns(table, fit))
            home.put(written)
            widened += [(path, period) for path in written]
        return widened

    def _commit_attempts(self) -> Iterator[T]:
        """Yield the current table for each retry while others commit to it."""
        return look_again(lambda: self._open() or self._create(), name=self.name, tries=TRIES, pause=0.02)

    def like(self, target: Target) -> Self:
        """Another output of the same group: what has the same place is of the same kind."""
        if not isinstance(target, type(self)):
            raise AssertionError("what has the same place is of the same kind")
        return target

    # --- afterwards

    def find_commit(self) -> Commit | None:
        """What this output published, if it did."""
        with self._explaining():
            table = self._open()
            return Commit.load(self._read_note(table)) if table is not None and self.is_published(table) else None

    def stored(self) -> StoredTableFiles:
        """Where the output is, once it is published."""
        with self._explaining():
            table = self._open()
            if table is None or not self.is_published(table):
                raise AssertionError("it is published")
            version, files, hashes = self._read_stored(table, self._read_note(table))
            return self._place_files(version, files, hashes=tuple(hashes))

    def registered(self) -> tuple[Mapping[str, Type], StoredTableFiles]:
        """The columns of the table, and its version (C-64, C-86)."""
        with self._explaining():
            table = self._open()
            if table is None:
                raise AssertionError("it is published")
            columns = self._own_columns(table)
            return columns, self._place_files(self._version(table), self._list(table), columns=tuple(columns))

    def _place_files(
        self,
        version: int,
        files: Sequence[TableFile],
        *,
        hashes: tuple[str, ...] | None = None,
        columns: tuple[str, ...] | None = None,
    ) -> StoredTableFiles:
        return StoredTableFiles(
            self.kind, self.datasource_id, self.namespace, self.table, version, tuple(files), hashes, columns
        )

    def find_leftovers(self) -> list[Leftover]:
        """What attempts up to this fencing number wrote, and no commit has."""
        with self._explaining():
            table = self._open()
            home = self._find_home(table)
            if home is None:
                return []
            published = self._find_attempts(table) if table is not None else set()
            return [
                replace(leftover, run=self.run)
                for name, leftover in home.find_folders(self._own)
                if (number := self._attempt_of(name)) is not None and number not in published
            ]

    @abstractmethod
    def _find_home(self, table: T | None) -> TableHome | None:
        """Where attempts may have left files; None if they can have left none."""

    @abstractmethod
    def _noted_attempts(self, table: T) -> Iterator[int]:
        """The numbers of the attempts at this output that commits note, as far back as the table tells."""

    def _find_attempts(self, table: T) -> set[int]:
        """The numbers of the attempts at this output that were published."""
        folders = {file.path.split("/")[-2] for file in self._list(table) if "/" in file.path}
        listed = (self._attempt_of(name) for name in folders if name.startswith(self._own))
        return {*self._noted_attempts(table), *(number for number in listed if number is not None)}

    def _attempt_of(self, name: str) -> int | None:
        """The number of the attempt at this output that made a folder, unless a later one is at work."""
        number = name.removeprefix(self._own).partition("-")[0]
        return int(number) if number.isdigit() and int(number) <= self.fence.number else None

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except Exception as fault:
            if (known := self._explain(fault)) is not None:
                raise writing_failed(self.name, known[0], retry_helps=known[1]) from fault
            if not isinstance(fault, OSError):
                raise
            raise writing_failed(self.name, fault.strerror or str(fault), retry_helps=is_passing(fault)) from fault

    def _refuse(self, detail: str) -> NoReturn:
        raise writing_failed(self.name, detail)
