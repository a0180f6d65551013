"""The rows that a run writes: staged by Spark as Parquet, verified, converted, then published together, each place atomically."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.failpoint import reach
from dobonomodo.formula import Columns, Type
from dobonomodo.model.datasource import DataSource
from dobonomodo.model.plain import Document
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.plan.registration import explain_modes
from dobonomodo.plan.relation import Write
from dobonomodo.storage.executors import Executors
from dobonomodo.storage.faults import find_lack_of_room, is_of_spark, is_passing, removing_on_failure, writing_failed
from dobonomodo.storage.fence import Fence
from dobonomodo.storage.files import link_file
from dobonomodo.storage.folder import remove_marks
from dobonomodo.storage.footers import count_rows
from dobonomodo.storage.leftover import Leftover
from dobonomodo.storage.links import Links
from dobonomodo.storage.parquet import read_parquet
from dobonomodo.storage.target import Commit, Noted, OutputPlace, Publication, Target
from dobonomodo.storage.transport import OF_PART, WRITTEN, Transport, write_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

    from dobonomodo.plan.dataset import Stored
    from dobonomodo.storage.catalogue import Storages

ROW_GROUP = 1 << 24
"""Bytes of a row group: finding a row reads one row group, so they are smaller than Spark's default."""


@dataclass(frozen=True, slots=True, eq=False)
class WrittenOutput:
    """One output of a plan: where its rows go, with which columns."""

    seq: int
    write: Write
    columns: Mapping[str, Type]


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Where the rows of an output are before they are published."""

    folder: str
    """The folder of the Parquet files that Spark wrote; relative to the workspace where it is inside."""
    attempt: int
    """The number of the attempt that wrote them, or converted them."""

    def document(self) -> dict[str, object]:
        """As plain data."""
        return {"folder": self.folder, "attempt": self.attempt}

    @classmethod
    def load(cls, document: Document) -> StagedRows:
        """From plain data."""
        return cls(document["folder"], int(document["attempt"]))


def _name_parts(folder: Path) -> None:
    """Bring the files of all parts together, each with the number of its part in its name."""
    for part in [path for path in folder.iterdir() if path.is_dir()]:
        remove_marks(part)
        for path in part.iterdir():
            path.rename(folder / f"{part.name.rpartition('=')[2]}{OF_PART}{path.name}")
        part.rmdir()


def _part_of(path: Path) -> int | None:
    number, separator, _ = path.name.partition(OF_PART)
    return int(number) if separator else None


class Outputs:
    """Writes the outputs of one run."""

    def __init__(
        self,
        storages: Storages,
        *,
        folder: Path,
        period: str,
        run: str,
        fence: Fence,
        started: float,
        in_one_file: Callable[[], bool] = lambda: False,
        apart: bool = False,
        transport: Transport | None = None,
        executors: Executors | None = None,
    ) -> None:
        """``apart``: Spark writes only into the folder of the run, or to where ``transport`` brings rows from.

        ``executors`` convert and copy large outputs.
        """
        self._transport, self._executors = transport, executors
        self._storages, self._run_folder = storages, folder
        self._period, self._run, self._started = period, run, started
        self.fence = fence
        self._in_one_file, self._apart = in_one_file, apart

    @property
    def _folder(self) -> Path:
        """Each attempt at a run has its own folder: an earlier attempt may still be writing, without knowing that it lost its lease."""
        return self._run_folder / "outputs" / str(self.fence.number)

    # --- where

    def target(self, output: WrittenOutput, *, attempt: int | None = None) -> Target:
        """The destination of an output; ``attempt`` is the one that wrote its rows, if not this one."""
        destination = output.write.destination
        storage = self._storages.of_destination(destination)
        place = OutputPlace(
            seq=output.seq,
            table=destination.name if isinstance(self._storages.sandbox, DataSource) else destination.table,
            schema=destination.schema if self._storages.sandbox is None else None,
            columns=output.columns,
            period=self._period,
            run=self._run,
            fence=self.fence,
            attempt=self.fence.number if attempt is None else attempt,
            folder=str(self._run_folder / "outputs" / "tables"),
            file=destination.file_name(self._period),
            sheet=destination.sheet,
            apart=self._apart,
            executors=self._executors,
            transport=self._transport,
        )
        return storage.target(place)

    def check(self, output: WrittenOutput) -> None:
        """Refuse a destination that cannot accept the rows, before anything is computed."""
        write = output.write
        there = self.target(output).check(mode=write.mode)
        wrong = explain_modes(there.columns, output.columns) if write.register_as is not None else None
        if wrong is not None:
            raise writing_failed(str(write.destination), wrong)

    def find_commit(self, output: WrittenOutput) -> Commit | None:
        """What an output published, if it did."""
        return self.target(output).find_commit()

    def find_leftovers(self, output: WrittenOutput) -> list[Leftover]:
        """What attempts at an output left at its destination, unpublished."""
        return self.target(output).find_leftovers()

    # --- writing

    def stage(self, frame: DataFrame, output: WrittenOutput, *, divided_by: str | None = None) -> StagedRows:
        """Let Spark compute all rows and write them to staging.

        ``divided_by`` is a column that is not written: rows with different numbers in it are in different files.
        """
        own = self._folder / str(output.seq)
        folder = Path(self.target(output).start() or own)
        reach("output.staging")
        with self._explaining(output.write), removing_on_failure(folder):
            shutil.rmtree(own, ignore_errors=True)
            folder.parent.mkdir(parents=True, exist_ok=True)
            whole = frame.coalesce(1) if output.write.in_one_file or self._in_one_file() else frame
            writer = whole.write.mode("overwrite").option("parquet.block.size", ROW_GROUP)
            if divided_by is None:
                self._write(writer, output, folder)
            else:
                self._write(writer.partitionBy(divided_by), output, folder)
                _name_parts(folder)
                if not any(folder.iterdir()):
                    # Without rows Spark makes no folder of a part, and no file that says which columns there are.
                    empty = frame.sparkSession.createDataFrame([], frame.schema).drop(divided_by)
                    self._write_empty_file(empty, output, folder)
        reach("output.staged")
        return self.staged_in(folder)

    def share(
        self,
        output: WrittenOutput,
        host: WrittenOutput,
        staged: StagedRows,
        parts: Collection[int],
        spark: SparkSession,
    ) -> StagedRows:
        """Take the files of some parts of another output, which is staged, for an output that has the same columns."""
        folder = Path(self.target(output).start() or self._folder / str(output.seq))
        reach("output.staging")
        with self._explaining(output.write), removing_on_failure(folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for path in map(Path, self.files_of(staged)):
                if _part_of(path) in parts:
                    link_file(path, folder / path.name)
            if not any(folder.iterdir()) and (rows := self.reopen(host, staged, spark)) is not None:
                self._write_empty_file(rows.limit(0), output, folder)
        reach("output.staged")
        return self.staged_in(folder)

    def _write(self, writer: DataFrameWriter, output: WrittenOutput, folder: Path) -> None:
        """Let Spark write the files of an output."""
        write_rows(writer, folder, f"{WRITTEN}/{self.fence.number}/{output.seq}", self._transport)
        remove_marks(folder)

    def _write_empty_file(self, rows: DataFrame, output: WrittenOutput, folder: Path) -> None:
        """Write a file without rows that holds the schema."""
        self._write(rows.coalesce(1).write.mode("overwrite"), output, folder)

    def staged_in(self, folder: Path) -> StagedRows:
        """Rows that are in a folder now. Relative to the workspace where it is inside, so that the workspace can be moved."""
        real, root = os.path.realpath(folder), os.path.realpath(self._storages.root)
        inside = Path(real).is_relative_to(root)
        return StagedRows(os.path.relpath(real, root) if inside else real, self.fence.number)

    def files_of(self, staged: StagedRows) -> tuple[str, ...]:
        """The Parquet files of staged rows."""
        folder = Path(os.path.realpath(self._storages.root)) / staged.folder
        if self._transport is not None and not folder.exists():
            self._fetch(folder, self._transport)
        return tuple(str(path) for path in sorted(folder.glob("*.parquet")))

    def _fetch(self, folder: Path, transport: Transport) -> None:
        """Download what a run on another machine staged, all files or none."""
        own, unfinished = Path(os.path.realpath(self._run_folder)), folder.with_name(f"{folder.name}.part")
        if folder.is_relative_to(own):
            shutil.rmtree(unfinished, ignore_errors=True)
            transport.fetch(folder.relative_to(own).as_posix(), unfinished)
            unfinished.replace(folder)

    def reopen(
        self, output: WrittenOutput, staged: StagedRows, spark: SparkSession, *, part: int | None = None
    ) -> DataFrame | None:
        """The rows that were staged, or one part of them, before anybody else sees them; None if there is no file with any."""
        name = output.write.destination.name
        use = DatasetUse(
            role="input",
            dataset_id=name,
            version=1,
            table=name,
            temporal_mode=None,
            columns=Columns(output.columns),
            nullable=frozenset(output.columns),
        )
        folder = self._folder / "links" / (str(output.seq) if part is None else f"{output.seq}-{part}")
        links = Links(folder, self._transport)
        paths = map(Path, self.files_of(staged))
        files = [path for path in paths if part is None or _part_of(path) == part]
        return read_parquet(spark, files, use, links=links, positions=False) if files else None

    def convert(self, output: WrittenOutput, staged: StagedRows, *, rows: int) -> StagedRows:
        """Verify the number of rows, and convert them to the format of their destination."""
        target, files = self.target(output), self.files_of(staged)
        with self._explaining(output.write):
            written = count_rows(Path(path) for path in files)
            if written != rows:
                detail = f"{written} rows were staged instead of {rows}"
                raise writing_failed(str(output.write.destination), detail)
            if target.convert(files):
                staged = replace(staged, attempt=self.fence.number)
        reach("output.converted")
        return staged

    def claim(self, outputs: Sequence[WrittenOutput]) -> None:
        """Fail if a later run has claimed a destination; otherwise earlier runs are refused from now on."""
        for output in outputs:
            self.target(output).claim()

    def publish(
        self,
        outputs: Sequence[tuple[WrittenOutput, StagedRows, int, str]],
        *,
        head: Noted | None = None,
        of_failed_run: bool = False,
    ) -> None:
        """Publish staged outputs, each with its row count and digest: all outputs of one place atomically.

        ``head`` is the latest entry of the history, which the destinations note; ``of_failed_run``: that a check stopped the run.
        """
        publications = [
            Publication(
                self.target(output, attempt=staged.attempt),
                Commit(self._run, output.seq, rows, digest, of_failed_run=of_failed_run),
                output.write.mode,
                registers=output.write.register_as is not None,
                files=self.files_of(staged),
                since=self._started,
                head=head,
            )
            for output, staged, rows, digest in outputs
        ]
        ordered = sorted(publications, key=lambda each: (each.target.place, each.commit.seq))
        for _, places in groupby(ordered, key=lambda each: each.target.place):
            group = list(places)
            reach("publish.before")
            group[0].target.publish(group)
            reach("publish.after")

    @contextmanager
    def _explaining(self, write: Write) -> Iterator[None]:
        """Convert disk errors, also those that Spark reports, to failures of the output; the engine explains other Spark errors."""
        from pyarrow import ArrowException

        try:
            yield
        except (OSError, ArrowException) as fault:
            if is_of_spark(fault):
                raise
            detail = getattr(fault, "strerror", None) or next(iter(str(fault).splitlines()), "")
            raise writing_failed(str(write.destination), detail, retry_helps=is_passing(fault)) from fault
        except Exception as fault:
            if lack := find_lack_of_room(fault):
                raise writing_failed(str(write.destination), lack, retry_helps=True) from fault
            raise

    # --- afterwards

    def stored(self, output: WrittenOutput) -> Stored:
        """Where an output is, once it is published."""
        return self.target(output).stored()

    def registered(self, output: WrittenOutput) -> tuple[Mapping[str, Type], Stored]:
        """The columns of the dataset that an output registers, and where its rows are: the destination as it is now."""
        return self.target(output).registered()
