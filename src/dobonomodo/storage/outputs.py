"""The rows that a run writes: staged by Spark as Parquet, verified, converted, then published together, each place in one act."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dobonomodo.failpoint import reach
from dobonomodo.formula import Columns, Type
from dobonomodo.model.datasource import CsvOptions, DataSource
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.plan.registration import explain_modes
from dobonomodo.plan.relation import Write
from dobonomodo.storage.csv import CsvFormat
from dobonomodo.storage.database import TableTarget
from dobonomodo.storage.faults import find_lack_of_room, is_of_spark, is_passing, removing_on_failure, writing_failed
from dobonomodo.storage.fence import Fence
from dobonomodo.storage.files import leads_out
from dobonomodo.storage.folder import FolderTarget, Format, remove_marks
from dobonomodo.storage.inputs import open_database, prefix_of
from dobonomodo.storage.leftover import Leftover
from dobonomodo.storage.parquet import ParquetFormat, count_rows, read_parquet
from dobonomodo.storage.pointer import find_folder
from dobonomodo.storage.target import Commit, Publication, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, eq=False)
class Staged:
    """Rows that are written and not yet published."""

    seq: int
    write: Write
    columns: Mapping[str, Type]
    folder: Path
    """The Parquet files that Spark wrote."""
    attempt: int
    """The number of the attempt that wrote them, or converted them."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The Parquet files."""
        return tuple(sorted(self.folder.glob("*.parquet")))


class Outputs:
    """Writes the outputs of one run. A draft writes into the sandbox, whatever its destinations are."""

    def __init__(
        self,
        *,
        root: Path,
        datasources: Mapping[str, DataSource],
        folder: Path,
        period: str,
        run: str,
        fence: Fence,
        started: float,
        sandbox: Path | DataSource | None = None,
        in_one_file: Callable[[], bool] = lambda: False,
    ) -> None:
        self._root, self._datasources, self._run_folder = root, datasources, folder
        self._period, self._run, self._started, self._sandbox = period, run, started, sandbox
        self.fence = fence
        self._in_one_file = in_one_file

    @property
    def _folder(self) -> Path:
        """Each attempt at a run has a folder of its own: an earlier one may still be writing, and not know that it lost."""
        return self._run_folder / "outputs" / str(self.fence.number)

    # --- where

    def target(self, seq: int, write: Write, columns: Mapping[str, Type], *, attempt: int | None = None) -> Target:
        """The destination of an output; ``attempt`` is the one that wrote its rows, if not this one."""
        number = self.fence.number if attempt is None else attempt
        destination = write.destination
        source = self._datasources.get(destination.datasource_id or "")
        table, schema = destination.table, destination.schema
        options = source.options if source is not None else None
        csv = CsvFormat(options.delimiter, options.has_header) if isinstance(options, CsvOptions) else CsvFormat()
        form: Format = csv if destination.kind == "csv" else ParquetFormat()
        if self._sandbox is not None and isinstance(self._sandbox, Path):
            prefix = self._sandbox / (destination.datasource_id or "files")
            return self._folder_target(prefix / table, prefix, self._sandbox, form, seq, columns, number)
        if self._sandbox is not None:
            source, schema = self._sandbox, None
            form = csv if source.type == "csv" else ParquetFormat()
        if source is not None and source.type == "database":
            database = open_database(source, root=self._root)
            named = schema or database.schema
            return TableTarget(
                database, table, named, self._period, self._run, seq, dict(columns), self.fence, number, source.id
            )
        if source is not None:
            prefix = prefix_of(source, self._root)
            return self._folder_target(prefix / table, prefix, prefix, form, seq, columns, number)
        # A location of its own is its own group.
        folder = self._root / table
        return self._folder_target(folder, folder.parent, self._root, form, seq, columns, number)

    def _folder_target(
        self,
        folder: Path,
        prefix: Path,
        within: Path,
        form: Format,
        seq: int,
        columns: Mapping[str, Type],
        attempt: int,
    ) -> FolderTarget:
        # Links between files are relative, and would lead elsewhere from behind a link.
        path = find_folder(folder)
        if leads_out(within, path) or path == Path(os.path.realpath(within)):
            raise writing_failed(str(folder), f"it leads out of the folder it belongs to, to `{path}`")
        return FolderTarget(
            path,
            Path(os.path.realpath(prefix)),
            Path(os.path.realpath(self._root)),
            form,
            self._period,
            self._run,
            seq,
            dict(columns),
            self.fence,
            attempt,
        )

    def check(self, seq: int, write: Write, columns: Mapping[str, Type]) -> None:
        """Refuse a destination that cannot take the rows, before anything is computed."""
        there = self.target(seq, write, columns).check(mode=write.mode)
        wrong = explain_modes(there.columns, columns) if write.register_as is not None else None
        if wrong is not None:
            raise writing_failed(str(write.destination), wrong)

    def find_commit(self, seq: int, write: Write, columns: Mapping[str, Type]) -> Commit | None:
        """What an output published, if it did."""
        return self.target(seq, write, columns).find_commit()

    def find_leftovers(self, seq: int, write: Write, columns: Mapping[str, Type]) -> list[Leftover]:
        """What attempts at an output left at its destination, unpublished."""
        return self.target(seq, write, columns).find_leftovers()

    # --- writing

    def stage(self, frame: DataFrame, write: Write, *, seq: int, columns: Mapping[str, Type]) -> Staged:
        """Have Spark compute and write all rows, where nobody reads them yet."""
        own = self._folder / str(seq)
        folder = self.target(seq, write, columns).start() or own
        reach("output.staging")
        with self._explaining(write), removing_on_failure(folder):
            shutil.rmtree(own, ignore_errors=True)
            folder.parent.mkdir(parents=True, exist_ok=True)
            whole = frame.coalesce(1) if self._in_one_file() else frame
            whole.write.mode("overwrite").parquet(str(folder))
            remove_marks(folder)
        reach("output.staged")
        return Staged(seq, write, columns, folder, self.fence.number)

    def reopen(self, staged: Staged, spark: SparkSession) -> DataFrame | None:
        """The rows that were staged, before anybody else sees them; None if they are not there any more."""
        use = DatasetUse(
            role="input",
            dataset_id=staged.write.destination.name,
            version=1,
            table=staged.write.destination.name,
            temporal_mode=None,
            columns=Columns(staged.columns),
            nullable=frozenset(staged.columns),
        )
        links = self._folder / "links" / str(staged.seq)
        return read_parquet(spark, staged.files, use, links=links, positions=False) if staged.files else None

    def convert(self, staged: Staged, *, rows: int) -> Staged:
        """Verify the number of rows, and bring them into the form of their destination."""
        target = self.target(staged.seq, staged.write, staged.columns)
        with self._explaining(staged.write):
            written = count_rows(staged.files)
            if written != rows:
                detail = f"{written} rows were staged instead of {rows}"
                raise writing_failed(str(staged.write.destination), detail)
            if target.convert(staged.files):
                staged = replace(staged, attempt=self.fence.number)
        reach("output.converted")
        return staged

    def claim(self, outputs: Sequence[Staged]) -> None:
        """Refuse to go on if a destination has seen a later run; otherwise, earlier runs are refused from now on."""
        for staged in outputs:
            self.target(staged.seq, staged.write, staged.columns).claim()

    def publish(self, outputs: Sequence[tuple[Staged, int, str]]) -> None:
        """Make staged outputs, each with its rows and digest, what readers find: all of one place in one act."""
        publications = [
            Publication(
                self.target(staged.seq, staged.write, staged.columns, attempt=staged.attempt),
                Commit(self._run, staged.seq, rows, digest),
                staged.write.mode,
                registers=staged.write.register_as is not None,
                files=staged.files,
                since=self._started,
            )
            for staged, rows, digest in outputs
        ]
        ordered = sorted(publications, key=lambda each: (each.target.place, each.commit.seq))
        for _, places in groupby(ordered, key=lambda each: each.target.place):
            group = list(places)
            reach("publish.before")
            group[0].target.publish(group)
            reach("publish.after")

    @contextmanager
    def _explaining(self, write: Write) -> Iterator[None]:
        """What Spark or the disk says, as a fault of the output; what else Spark says is for the engine to explain."""
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

    def location(self, seq: int, write: Write, columns: Mapping[str, Type]) -> dict[str, Any]:
        """Where an output is, once it is published."""
        return self.target(seq, write, columns).location()

    def registered(
        self, seq: int, write: Write, columns: Mapping[str, Type]
    ) -> tuple[Mapping[str, Type], dict[str, Any]]:
        """The columns of the dataset that an output registers, and where its rows are: the destination as it stands now."""
        return self.target(seq, write, columns).registered()

    # --- as plain data

    def describe(self, staged: Staged) -> dict[str, Any]:
        """Where rows are staged, relative to the workspace where they are inside, so that the workspace can be moved."""
        folder = os.path.realpath(staged.folder)
        root = os.path.realpath(self._root)
        inside = Path(folder).is_relative_to(root)
        return {"folder": os.path.relpath(folder, root) if inside else folder, "attempt": staged.attempt}

    def load(self, seq: int, write: Write, columns: Mapping[str, Type], document: Mapping[str, Any]) -> Staged:
        """What ``describe`` gave."""
        folder = Path(os.path.realpath(self._root)) / document["folder"]
        return Staged(seq, write, columns, folder, int(document["attempt"]))
