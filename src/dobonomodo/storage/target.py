"""The writing half of the port of storages: one output of one run at its destination.

Outputs with the same ``place`` are published atomically. Addresses are text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from dobonomodo.model.plain import Document
from dobonomodo.storage.faults import writing_failed
from dobonomodo.storage.footers import count_rows

if TYPE_CHECKING:
    from dobonomodo.formula import Type
    from dobonomodo.plan.dataset import Stored
    from dobonomodo.plan.registration import United
    from dobonomodo.storage.executors import Executors
    from dobonomodo.storage.fence import Fence
    from dobonomodo.storage.leftover import Leftover
    from dobonomodo.storage.transport import Transport


@dataclass(frozen=True, slots=True)
class OutputPlace:
    """One output of one run, and where it goes, as storages see it."""

    seq: int
    table: str
    schema: str | None
    columns: Mapping[str, Type]
    period: str
    run: str
    fence: Fence
    """Of the attempt that is running."""
    attempt: int
    """The number of the attempt that wrote the rows, which may be an earlier one."""
    folder: str
    """For files of the output that are made on this machine and go elsewhere; it is removed with the run's staged files."""
    file: str | None = None
    """The name of the file for this period, where the output writes one of its own name."""
    sheet: str | None = None
    """The part of that file, where it holds several outputs."""
    apart: bool = False
    """Whether Spark cannot write where the output goes, but in the folder of the run alone."""
    executors: Executors | None = None
    """Who brings rows where the output goes, where they are many; None where this machine does it."""
    transport: Transport | None = None
    """The way to workers that share no files with this machine."""


@dataclass(frozen=True, slots=True)
class Commit:
    """What one output of one run put into a destination."""

    run: str
    seq: int
    rows: int
    digest: str
    fence: int | None = None
    """The number of the attempt that wrote the rows; None in records of versions without numbers."""
    of_failed_run: bool = False
    """Whether it is the quarantine of a run that a check stopped."""

    def document(self) -> dict[str, object]:
        """As plain data."""
        own = {"run": self.run, "seq": self.seq, "rows": self.rows, "digest": self.digest, "fence": self.fence}
        return {**own, "of_failed_run": True} if self.of_failed_run else own

    @classmethod
    def load(cls, document: Document) -> Commit:
        """From plain data."""
        rows, fence = int(document["rows"]), document.get("fence")
        is_failed = bool(document.get("of_failed_run"))
        return cls(document["run"], int(document["seq"]), rows, document["digest"], fence, is_failed)


class Noted(NamedTuple):
    """The head of the history as a destination recorded it: it proves whether the history was truncated or rewritten."""

    store: str
    number: int
    hash: str

    @classmethod
    def load(cls, document: Document) -> Noted:
        """From plain data."""
        return cls(str(document["store"]), int(document["number"]), str(document["hash"]))


@dataclass(frozen=True, slots=True)
class Inspected:
    """The current state of an output, compared with its record."""

    heads: tuple[Noted, ...] = ()
    """What the destination notes of the history, for this output and all others that went there."""
    changed: tuple[str, ...] = ()
    """Files that exist but differ from the record."""
    gone: tuple[str, ...] = ()
    """Files that are missing: a later run may have replaced them."""
    files: int = 0
    """The number of files that match the record."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that an output wrote, as its record has it."""

    path: str
    """From the workspace, where it is inside; else the whole path or address."""
    sha256: str | None
    """None if the run did not record it."""
    is_named: bool = False
    """Whether it is the file that people open, which later runs replace."""


class Target(Protocol):
    """One output of one run at its destination."""

    @property
    def place(self) -> str:
        """Outputs with the same place are published together."""
        ...

    def check(self, *, mode: str) -> United:
        """Refuse a destination that cannot accept the rows, before anything is computed; returns the columns that stay."""
        ...

    def start(self) -> str | None:
        """The address at which Spark writes the rows as they are published; None if they are converted."""
        ...

    def convert(self, files: Sequence[str]) -> bool:
        """Convert Parquet files to the format of the destination, in staging; False if they already have it."""
        ...

    def claim(self) -> None:
        """Fail if a later run has claimed the destination; otherwise earlier runs are refused from now on."""
        ...

    def find_commit(self) -> Commit | None:
        """What this output published, if it did."""
        ...

    def publish(self, group: Sequence[Publication]) -> None:
        """Publish all outputs of this place atomically; outputs that are already published stay unchanged."""
        ...

    def stored(self) -> Stored:
        """Where the output is, once it is published."""
        ...

    def find_leftovers(self) -> list[Leftover]:
        """What attempts at this output wrote up to this fencing number, and never published."""
        ...

    def registered(self) -> tuple[Mapping[str, Type], Stored]:
        """The columns of the dataset that the output registers, and where its rows are: the destination as it is now."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Publication:
    """An output that is ready, and how it is published."""

    target: Target
    commit: Commit
    mode: str
    registers: bool
    """Whether the destination as it is then stays readable, as a version of a dataset."""
    files: tuple[str, ...]
    """The Parquet files, where what was converted has to be made again."""
    since: float
    """When the run started, whose inputs are left alone."""
    head: Noted | None = None
    """The history before it is published, for the destination to note."""

    def staged_files(self) -> tuple[str, ...]:
        """The Parquet files, all of them. A run that is continued elsewhere may not find them, and must not publish the rest."""
        found = count_rows(Path(each) for each in self.files if Path(each).exists())
        if found != self.commit.rows:
            detail = f"{found} of {self.commit.rows} staged rows are there; continue the run where its folder is"
            raise writing_failed(self.target.place, detail)
        return self.files
