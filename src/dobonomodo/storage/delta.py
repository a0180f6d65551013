"""Delta tables as a storage: a version of a table is a list of Parquet files, which Spark reads as such.

No connector of the cluster is needed: ``deltalake`` reads and writes the log of a table.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from dobonomodo.model.datasource import StorageOptions
from dobonomodo.model.document import Places
from dobonomodo.model.value import Filled
from dobonomodo.plan.dataset import DatasetUse, Location
from dobonomodo.plan.destination import DestinationKind
from dobonomodo.problems import Problem
from dobonomodo.storage.address import OBJECT_STORES, is_address
from dobonomodo.storage.delta_home import DeltaHome, LocalHome, ObjectHome
from dobonomodo.storage.delta_target import (
    KIND,
    DeltaTarget,
    explain_fault,
    inspect_version,
    is_passing_fault,
    list_delta,
    name_types,
)
from dobonomodo.storage.faults import is_passing, loading_failed, writing_failed
from dobonomodo.storage.file_storage import FilesOptions, check_place
from dobonomodo.storage.files import PinnedFile, leads_out, list_beside
from dobonomodo.storage.object_shelf import ObjectShelf
from dobonomodo.storage.schema import find_differences
from dobonomodo.storage.storage import Answer, Pin, Stored
from dobonomodo.storage.table_files import (
    NOWHERE,
    StoredTableFiles,
    TableFile,
    TableFilesPin,
    TableFilesStorage,
    fold,
    stored_files,
)
from dobonomodo.storage.target import Inspected, OutputPlace, Target

if TYPE_CHECKING:
    from deltalake import DeltaTable


READABLE = frozenset({"timestampNtz", "vacuumProtocolCheck", "v2Checkpoint"})
"""Features of tables that do not change what their files hold."""


class DeltaOptions(FilesOptions):
    """A folder of Delta tables, each a folder below it, on this machine or in an object store."""

    path_prefix: Filled = Field(
        description="The folder; a relative path starts at the workspace. In an object store, an address such as "
        "`s3://bucket/folder`."
    )

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """A folder that a file system or an object store can have."""
        yield from check_place(places, "path_prefix", schemes=OBJECT_STORES)


@dataclass(frozen=True, slots=True)
class DeltaStorage(TableFilesStorage):
    """The Delta tables below a folder."""

    kind: ClassVar[str] = KIND
    options: ClassVar[type[StorageOptions]] = DeltaOptions
    destinations: ClassVar[DestinationKind] = DestinationKind(are_paths=True, inline=False, has_schemas=False)
    modules: ClassVar[Sequence[str]] = ("deltalake", "pyarrow")
    together: ClassVar[str] = "one commit for each table, one after the other; after a kill the rest is completed"
    connector: ClassVar[str] = "io.delta:delta-spark"
    removal: ClassVar[str] = "VACUUM"

    @property
    def objects(self) -> ObjectShelf | None:
        """The object store; None where tables are folders of this machine."""
        return ObjectShelf.of(self.source, self.root) if is_address(str(self.source.options["path_prefix"])) else None

    @property
    def _prefix(self) -> Path:
        return self.root / str(self.source.options["path_prefix"])

    def _home(self, table: str, *, copies: Path = NOWHERE) -> DeltaHome:
        """The place of a table; ``copies`` is for files that are to be uploaded, or were downloaded."""
        if (shelf := self.objects) is None:
            return LocalHome(Path(os.path.realpath(self._prefix / table)))
        return ObjectHome(shelf.objects, shelf.prefix / table, copies)

    def home_of(self, stored: StoredTableFiles, *, copies: Path = NOWHERE) -> DeltaHome:
        """The place of its table."""
        return self._home(stored.table, copies=copies)

    # --- checking

    def call(self) -> Answer | None:
        """What an object store says; a folder needs no server."""
        shelf = self.objects
        return shelf.call() if shelf is not None else None

    def leaves(self, location: Location) -> bool:
        """Whether a symbolic link leads out of the datasource."""
        return self.escapes(location.path or location.table or "")

    def escapes(self, table: str) -> bool:
        """Whether a symbolic link leads out of the datasource."""
        return self.objects is None and leads_out(self._prefix, self._prefix / table)

    # --- reading

    def pin_table(self, use: DatasetUse, location: Location) -> TableFilesPin:
        """One table as it is now."""
        name = location.path or location.table or ""
        home = self._home(name)
        if self.escapes(name):
            raise loading_failed(use, f"`{location}` points outside its datasource, to `{home.uri}`")
        table = self._open(use, home)
        feature = _find_unsupported_feature(table)
        native = home.spark_uri if feature is not None else None
        if feature is not None:
            self.require_connector(use, str(location), f"`{feature}`", home.spark_uri, table.version())
        types = name_types(table)
        differences = find_differences(types.items(), use.as_stored())
        if differences:
            raise loading_failed(use, f"table `{location}` does not match the declaration", differences=differences)
        partitions = tuple((each, types[each]) for each in table.metadata().partition_columns)
        pinned = self._pin_files(use, name, table.version(), list_delta(table))
        named = replace(pinned, name=str(location), columns=fold(types), period=location.period, native=native)
        return named if native is not None else replace(named, partitions=partitions)

    def _open(self, use: DatasetUse, home: DeltaHome) -> DeltaTable:
        from deltalake.exceptions import DeltaError

        try:
            if (wrong := home.explain()) is not None:
                raise loading_failed(use, f"`{home.uri}`: {wrong}")
            table = home.open()
            if table is None and isinstance(home, LocalHome):
                home.data.stat()
        except FileNotFoundError as fault:
            rule = f"rule `{use.rule}` of resolver `{use.resolver_id}` names this path" if use.rule else None
            detail, there = f"table `{home.uri}` does not exist", list_beside(Path(home.uri))
            raise loading_failed(use, detail, remedy=rule, present=there) from fault
        except OSError as fault:
            detail = f"`{home.uri}`: {fault.strerror or explain_fault(fault)}"
            raise loading_failed(use, detail, retry_helps=is_passing(fault)) from fault
        except DeltaError as fault:
            detail = f"table `{home.uri}` cannot be read: {explain_fault(fault)}"
            raise loading_failed(use, detail, retry_helps=is_passing_fault(fault)) from fault
        if table is None:
            detail = f"`{home.uri}` is not a Delta table: it has no log `_delta_log`"
            raise loading_failed(use, detail) from FileNotFoundError(home.uri)
        return table

    def _pin_files(self, use: DatasetUse | None, name: str, version: int, files: Sequence[TableFile]) -> TableFilesPin:
        """Files of a version as they are now; what is gone fails."""
        home = self._home(name)

        def pin(file: TableFile) -> PinnedFile:
            if isinstance(home, LocalHome) and leads_out(self._prefix, home.data / file.path):
                raise OSError(None, "it points outside its datasource", file.path)
            return home.pin(file.path)

        pinned = self.pin_each(pin, files, use=use, table=name, version=version)
        partitions = tuple((column, "string") for column, _ in files[0].values) if files else ()
        values = tuple(tuple(value for _, value in file.values) for file in files)
        return TableFilesPin(self.kind, name, self.source.id, name, version, pinned, values, partitions)

    def pin_registered(self, use: DatasetUse, stored: Stored) -> tuple[Pin, ...]:
        """The files of the version that was registered."""
        own = stored_files(stored)
        pin = self._pin_files(use, own.table, own.version, own.files)
        return (replace(pin, name=f"{self.source.id}:{own.table}", columns=fold(own.columns or ())),)

    def pin_output(self, stored: Stored, *, name: str, period: str) -> Pin:
        """The files that the output wrote; if they were removed, the files that hold the rows of its period now."""
        own = stored_files(stored)
        try:
            return replace(self._pin_files(None, own.table, own.version, own.files), name=name)
        except FileNotFoundError:
            table = self._home(own.table).open()
            if table is None or own.is_kept:
                raise
            files = [file for file in list_delta(table) if [value for _, value in file.values] == [period]]
            return replace(self._pin_files(None, own.table, table.version(), files), name=name)

    # --- writing

    def target(self, output: OutputPlace) -> Target:
        """A table of the datasource."""
        home = self._home(output.table, copies=Path(output.folder) / self.source.id / output.table)
        if self.escapes(output.table) or home.uri == os.path.realpath(self._prefix):
            raise writing_failed(str(self._prefix / output.table), f"it points outside its folder, to `{home.uri}`")
        return DeltaTarget(
            self.source.id,
            output.table,
            output.period,
            output.run,
            output.seq,
            dict(output.columns),
            output.fence,
            output.attempt,
            home,
        )

    def inspect(self, stored: Stored, *, run: str, seq: int) -> Inspected:
        """The hashes of the files, and what the log notes."""
        own = stored_files(stored)
        return inspect_version(own, self._home(own.table), run=run, seq=seq)


def _find_unsupported_feature(table: DeltaTable) -> str | None:
    """The table feature because of which the files alone do not determine the rows: column mapping, deletion vectors."""
    features = set(table.protocol().reader_features or ())
    if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        return "columnMapping"
    if "deletionVectors" in features and _has_deletion_vectors(table):
        return "deletionVectors"
    return next(iter(sorted(features - READABLE - {"columnMapping", "deletionVectors"})), None)


def _has_deletion_vectors(table: DeltaTable) -> bool:
    from deltalake.exceptions import DeltaError

    try:
        return any(batch.num_rows for batch in table.deletion_vectors())
    except DeltaError:
        # There is one, and the library cannot read it.
        return True
