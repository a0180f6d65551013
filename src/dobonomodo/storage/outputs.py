"""The rows that a run writes: staged by Spark as Parquet, verified, turned into what the destination wants, published in one act."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dobonomodo.formula import Columns, Type
from dobonomodo.model.datasource import CsvOptions, DataSource
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.plan.registration import explain_modes, unite_columns
from dobonomodo.plan.relation import Write
from dobonomodo.problems.failpoint import reach
from dobonomodo.storage.csv import write_csv
from dobonomodo.storage.database import TableTarget, kept_name
from dobonomodo.storage.faults import find_lack_of_room, is_passing, removing_on_failure, writing_failed
from dobonomodo.storage.fence import Fence
from dobonomodo.storage.files import leads_out
from dobonomodo.storage.folder import Commit, FolderTarget, remove_marks
from dobonomodo.storage.inputs import open_database, prefix_of
from dobonomodo.storage.leftover import Leftover
from dobonomodo.storage.manifest import read_parts
from dobonomodo.storage.parquet import count_rows, read_parquet

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


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A destination with all that it takes to write there."""

    target: FolderTarget | TableTarget
    kind: str
    delimiter: str = ","
    has_header: bool = True
    datasource_id: str | None = None


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

    def place(self, seq: int, write: Write, columns: Mapping[str, Type]) -> Place:
        """The destination of an output."""
        destination = write.destination
        source = self._datasources.get(destination.datasource_id or "")
        table, schema, kind = destination.table, destination.schema, destination.kind
        options = source.options if source is not None else None
        delimiter, has_header = (
            (options.delimiter, options.has_header) if isinstance(options, CsvOptions) else (",", True)
        )
        if self._sandbox is not None:
            if isinstance(self._sandbox, Path):
                folder = self._sandbox / (destination.datasource_id or "files") / table
                kind = "csv" if kind == "csv" else "parquet"
                made = self._folder_target(folder, self._sandbox, kind, seq, columns)
                return Place(made, kind, delimiter, has_header)
            source, kind, schema = self._sandbox, self._sandbox.type, None
        if kind == "database" and source is not None:
            database = open_database(source, root=self._root)
            target = TableTarget(
                database, table, schema or database.schema, self._period, self._run, seq, dict(columns), self.fence
            )
            return Place(target, kind, datasource_id=source.id)
        prefix = prefix_of(source, self._root) if source is not None else self._root
        made = self._folder_target(prefix / table, prefix, kind, seq, columns)
        return Place(made, kind, delimiter, has_header)

    def _folder_target(
        self, folder: Path, within: Path, kind: str, seq: int, columns: Mapping[str, Type]
    ) -> FolderTarget:
        # Links between files are relative, and would lead elsewhere from behind a link.
        path = Path(os.path.realpath(folder))
        if leads_out(within, path) or path == Path(os.path.realpath(within)):
            raise writing_failed(str(folder), f"it leads out of the folder it belongs to, to `{path}`")
        return FolderTarget(path, f".{kind}", self._period, self._run, seq, dict(columns), self.fence)

    def check(self, seq: int, write: Write, columns: Mapping[str, Type]) -> None:
        """Refuse a destination that cannot take the rows, before anything is computed."""
        target = self.place(seq, write, columns).target
        there = target.check(mode=write.mode) if isinstance(target, FolderTarget) else target.check()
        wrong = explain_modes(there.columns, columns) if write.register_as is not None else None
        if wrong is not None:
            raise writing_failed(str(write.destination), wrong)

    def find_commit(self, seq: int, write: Write, columns: Mapping[str, Type]) -> Commit | None:
        """What an output published, if it did."""
        return self.place(seq, write, columns).target.find_commit()

    def find_leftovers(self, seq: int, write: Write, columns: Mapping[str, Type]) -> list[Leftover]:
        """What attempts at an output left at its destination, unpublished."""
        return self.place(seq, write, columns).target.find_leftovers()

    # --- writing

    def stage(self, frame: DataFrame, write: Write, *, seq: int, columns: Mapping[str, Type]) -> Staged:
        """Have Spark compute and write all rows, where nobody reads them yet."""
        place = self.place(seq, write, columns)
        own = self._folder / str(seq)
        if isinstance(place.target, FolderTarget) and place.kind == "parquet" and place.target.find_commit() is None:
            folder = place.target.start()
        else:
            folder = own
        reach("output.staging")
        with self._explaining(write), removing_on_failure(folder):
            shutil.rmtree(own, ignore_errors=True)
            folder.parent.mkdir(parents=True, exist_ok=True)
            whole = frame.coalesce(1) if self._in_one_file() else frame
            whole.write.mode("overwrite").parquet(str(folder))
            remove_marks(folder)
        reach("output.staged")
        return Staged(seq, write, columns, folder)

    def reopen(self, staged: Staged, spark: SparkSession) -> DataFrame:
        """The rows that were staged, before anybody else sees them."""
        use = DatasetUse(
            role="input",
            dataset_id=staged.write.destination.name,
            version=1,
            table=staged.write.destination.name,
            temporal_mode=None,
            columns=Columns(staged.columns),
            nullable=frozenset(staged.columns),
        )
        files = sorted(staged.folder.glob("*.parquet"))
        if not files:
            raise writing_failed(str(staged.write.destination), "the staged rows are gone")
        links = self._folder / "links" / str(staged.seq)
        return read_parquet(spark, files, use, links=links, positions=False)

    def publish(self, staged: Staged, *, rows: int, digest: str) -> dict[str, Any]:
        """Verify what was staged, then make it what readers find; gives where it is. What is published stays as it is."""
        place = self.place(staged.seq, staged.write, staged.columns)
        if place.target.find_commit() is None:
            self._publish(place, staged, Commit(self._run, staged.seq, rows, digest))
        return self.location(staged.seq, staged.write, staged.columns)

    def _publish(self, place: Place, staged: Staged, commit: Commit) -> None:
        with self._explaining(staged.write):
            written = count_rows(staged.folder.glob("*.parquet"))
        if written != commit.rows:
            detail = f"{written} rows were staged instead of {commit.rows}"
            raise writing_failed(str(staged.write.destination), detail)
        if isinstance(place.target, TableTarget):
            self._publish_table(place.target, staged, commit)
        else:
            self._publish_folder(place.target, place, staged, commit)

    @contextmanager
    def _explaining(self, write: Write) -> Iterator[None]:
        """What Spark or the disk says, as a fault of the output; what else Spark says is for the engine to explain."""
        from pyarrow import ArrowException

        try:
            yield
        except (OSError, ArrowException) as fault:
            detail = getattr(fault, "strerror", None) or next(iter(str(fault).splitlines()), "")
            raise writing_failed(str(write.destination), detail, retry_helps=is_passing(fault)) from fault
        except Exception as fault:
            if lack := find_lack_of_room(fault):
                raise writing_failed(str(write.destination), lack, retry_helps=True) from fault
            raise

    def _publish_folder(self, target: FolderTarget, place: Place, staged: Staged, commit: Commit) -> None:
        if place.kind == "csv":
            data = target.start()
            with self._explaining(staged.write), removing_on_failure(data):
                data.mkdir()
                write_csv(
                    sorted(staged.folder.glob("*.parquet")),
                    data,
                    columns=staged.columns,
                    delimiter=place.delimiter,
                    has_header=place.has_header,
                    to=str(target.folder),
                )
        reach("output.converted")
        reach("publish.before")
        target.publish(commit, mode=staged.write.mode, since=self._started)
        reach("publish.after")
        if place.kind == "csv":
            shutil.rmtree(staged.folder, ignore_errors=True)

    def _publish_table(self, target: TableTarget, staged: Staged, commit: Commit) -> None:
        kept = kept_name(target.table, self._run, staged.seq) if staged.write.register_as else None
        try:
            target.stage(sorted(staged.folder.glob("*.parquet")))
            reach("output.converted")
            reach("publish.before")
            target.publish(commit, mode=staged.write.mode, keep_as=kept)
            reach("publish.after")
        except BaseException:
            target.clear()
            raise
        shutil.rmtree(staged.folder, ignore_errors=True)

    # --- afterwards

    def location(self, seq: int, write: Write, columns: Mapping[str, Type]) -> dict[str, Any]:
        """Where an output is, once it is published."""
        place = self.place(seq, write, columns)
        target = place.target
        if isinstance(target, TableTarget):
            return {
                "kind": "database",
                "datasource_id": place.datasource_id,
                "schema": target.schema,
                "table": target.table,
            }
        return {
            "kind": place.kind,
            "folder": self._portable(target.folder),
            "data": self._portable(target.published_data()),
            "files": target.own_files(),
            "delimiter": place.delimiter,
            "has_header": place.has_header,
        }

    def registered(
        self, seq: int, write: Write, columns: Mapping[str, Type]
    ) -> tuple[Mapping[str, Type], dict[str, Any]]:
        """The columns of the dataset that an output registers, and where its rows are: the destination as it stands now.

        The columns are those of all its periods (C-64, C-86).
        """
        place = self.place(seq, write, columns)
        target = place.target
        if isinstance(target, TableTarget):
            kept = kept_name(target.table, self._run, seq)
            united: Mapping[str, Type] = target.find_columns(kept)
            where: dict[str, Any] = {"datasource_id": place.datasource_id, "schema": target.schema, "table": kept}
        else:
            folders = target.all_data()
            united = unite_columns(part.columns for each in folders for part in read_parts(each.parent)).columns
            where = {
                "folders": [self._portable(folder) for folder in folders],
                "delimiter": place.delimiter,
                "has_header": place.has_header,
            }
        return united, {"kind": place.kind, **where, "columns": list(united)}

    def _portable(self, path: Path) -> str:
        """Relative to the workspace where it is inside, so that the workspace can be moved."""
        try:
            return path.resolve().relative_to(self._root.resolve()).as_posix()
        except ValueError:
            return str(path)
