"""Iceberg tables as a storage: a snapshot of a table is a list of Parquet files, which Spark reads as such.

No connector of the cluster is needed: ``pyiceberg`` speaks with the catalog.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NoReturn

from pydantic import Field

from dobonomodo.formula import Type
from dobonomodo.model.datasource import StorageOptions
from dobonomodo.model.document import Places
from dobonomodo.model.secret import find_secrets
from dobonomodo.model.template import check_folder, check_table_name
from dobonomodo.model.value import Filled
from dobonomodo.plan.dataset import DatasetUse, Location
from dobonomodo.plan.destination import DestinationKind
from dobonomodo.problems import Problem
from dobonomodo.problems.definition import InvalidValue
from dobonomodo.storage.faults import loading_failed
from dobonomodo.storage.files import PinnedFile
from dobonomodo.storage.iceberg_target import (
    KIND,
    IcebergTarget,
    catalog_faults,
    explain_fault,
    identity_columns,
    inspect_snapshot,
    list_iceberg,
    load_table,
    local_path,
    name_types,
)
from dobonomodo.storage.schema import find_differences
from dobonomodo.storage.storage import Answer, Pin, Row, Stored
from dobonomodo.storage.table_files import (
    StoredTableFiles,
    TableFile,
    TableFilesPin,
    TableFilesStorage,
    fold,
    sample_files,
    stored_files,
)
from dobonomodo.storage.target import Inspected, OutputPlace, Target

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

_LOCAL = "sqlite:///"
_FIELD_ID = b"PARQUET:field_id"


class IcebergOptions(StorageOptions):
    """A catalog of Iceberg tables."""

    uri: Filled = Field(description="The catalog: `sqlite:///catalog.db`, or the address of a REST catalog.")
    warehouse: Filled = Field(description="The folder of the tables; a relative path starts at the workspace.")
    catalog: Filled = Field(default="default", description="The name of the catalog, by which it knows its tables.")
    namespace: Filled = Field(default="default", description="The namespace of tables that name none.")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """A catalog that can be reached. An address with a secret in it is reported as that."""
        if any(find_secrets(places, "options")):
            return
        uri = places.text("uri") or ""
        if uri.strip() and not (re.fullmatch(r"sqlite:///[^?]+", uri) or re.match(r"https?://", uri)):
            yield InvalidValue(
                key="uri",
                expected="the address of a catalog",
                found="this text",
                advice="write `sqlite:///catalog.db`, or the address of a REST catalog",
                span=places.span("uri"),
            )
        if places.text("warehouse") is not None:
            yield from check_folder(places.passage("warehouse"), "warehouse")
        if places.text("namespace") is not None:
            yield from check_table_name(places.passage("namespace"), "namespace")


def _load_local(name: str, uri: str, warehouse: str) -> Catalog:
    """The catalog in a file; who opens it first makes its tables, and others may do so at the same time."""
    from pyiceberg.catalog import load_catalog
    from sqlalchemy.exc import OperationalError

    load = partial(load_catalog, name, type="sql", uri=uri, warehouse=warehouse)
    for _ in range(4):
        with suppress(OperationalError):
            return load()
    return load()


@dataclass(frozen=True, slots=True)
class IcebergStorage(TableFilesStorage):
    """The tables of an Iceberg catalog."""

    kind: ClassVar[str] = KIND
    options: ClassVar[type[StorageOptions]] = IcebergOptions
    destinations: ClassVar[DestinationKind] = DestinationKind(are_paths=False, inline=False, has_schemas=True)
    modules: ClassVar[Sequence[str]] = ("pyiceberg", "pyarrow")
    together: ClassVar[str] = "one transaction for each table, one after the other; after a kill the rest is completed"
    removal: ClassVar[str] = "the expiry of snapshots"

    @property
    def _options(self) -> IcebergOptions:
        return IcebergOptions.model_validate(self.source.options)

    def _open(self, *, writing: bool = False) -> Catalog:
        """The catalog. What else it needs, such as a token, is where pyiceberg looks for it: in its own settings."""
        from pyiceberg.catalog import load_catalog

        own = self._options
        warehouse = self.root / own.warehouse
        if not own.uri.startswith(_LOCAL):
            return load_catalog(own.catalog, type="rest", uri=own.uri, warehouse=own.warehouse)
        database = self.root / own.uri.removeprefix(_LOCAL)
        if writing:
            database.parent.mkdir(parents=True, exist_ok=True)
            warehouse.mkdir(parents=True, exist_ok=True)
        elif not database.exists():
            raise FileNotFoundError(2, "No such file or directory", str(database))
        return _load_local(own.catalog, f"{_LOCAL}{database}", str(warehouse))

    # --- checking

    def call(self) -> Answer | None:
        """Whether a REST catalog answers; a file needs no server."""
        if self._options.uri.startswith(_LOCAL):
            return None
        try:
            self._open().list_namespaces()
        except Exception as fault:  # noqa: BLE001  whatever it is, the catalog does not answer
            return Answer(explain_fault(fault), works=False)
        return Answer("the catalog answers")

    def leaves(self, location: Location) -> bool:
        """Names of tables lead nowhere else."""
        del location
        return False

    def escapes(self, table: str) -> bool:
        """Names of tables lead nowhere else."""
        del table
        return False

    # --- reading

    def pin_table(self, use: DatasetUse, location: Location) -> TableFilesPin:
        """One table as it is now."""
        schema, name = location.schema or self._options.namespace, location.table or location.path or ""
        table = self._load(use, schema, name)
        self._require_readable(use, table, str(location))
        types = name_types(table.schema())
        differences = find_differences(types.items(), use.as_stored())
        if differences:
            raise loading_failed(use, f"table `{location}` does not match the declaration", differences=differences)
        given = {column for each in identity_columns(table).values() for _, column in each}
        files = list_iceberg(table)
        pinned = self._pin_files(use, f"{schema}.{name}", table.metadata.current_snapshot_id or 0, files)
        partitions = tuple((each, types[each]) for each in types if each in given)
        values = tuple(tuple(dict(file.values).get(each) for each, _ in partitions) for file in files)
        self._require_names(use, table, pinned, str(location))
        return replace(
            pinned,
            name=str(location),
            values=values,
            partitions=partitions,
            columns=fold(types),
            period=location.period,
        )

    def _load(self, use: DatasetUse, schema: str, name: str) -> Table:
        try:
            catalog = self._open()
            table = load_table(catalog, (*schema.split("."), name))
            if table is None:
                there = [each[-1] for each in catalog.list_tables(tuple(schema.split(".")))]
                detail = f"table `{schema}.{name}` does not exist in the catalog"
                raise loading_failed(use, detail, present=there) from FileNotFoundError(name)
        except FileNotFoundError as fault:
            raise loading_failed(use, f"table `{schema}.{name}`: there is no catalog `{fault.filename}`") from fault
        except catalog_faults() as fault:
            detail = f"table `{schema}.{name}` cannot be read: {explain_fault(fault)}"
            raise loading_failed(use, detail, retry_helps=True) from fault
        return table

    def _require_readable(self, use: DatasetUse, table: Table, name: str) -> None:
        """Refuse what a list of files does not tell: rows that are deleted by other files, files of other formats."""

        def refuse(feature: str) -> NoReturn:
            remedy = "have the table rewritten without it, or have its rows in other files"
            raise loading_failed(use, f"table `{name}` uses {feature}, which cannot be read here", remedy=remedy)

        if table.metadata.format_version > 2:
            refuse(f"format version {table.metadata.format_version}")
        for task in table.scan().plan_files():
            if task.delete_files:
                refuse("delete files")
            if task.file.file_format.value.lower() != "parquet":
                refuse(f"files of format {task.file.file_format.value}")

    def _require_names(self, use: DatasetUse, table: Table, pin: TableFilesPin, name: str) -> None:
        """Refuse columns that were renamed, or replaced by others of the same name: files have them under other names."""
        import pyarrow.parquet as pq

        known = {field.field_id: field.name for field in table.schema().fields}
        for file in pin.files:
            for field in pq.read_schema(file.path):
                number = int((field.metadata or {}).get(_FIELD_ID, b"-1"))
                if (
                    number >= 0
                    and known.get(number, "") != field.name
                    and (number in known or field.name in known.values())
                ):
                    detail = (
                        f"table `{name}`: column `{known.get(number, field.name)}` is `{field.name}` in `{file.path}`"
                    )
                    remedy = "have the table rewritten, or have its rows in other files"
                    raise loading_failed(use, f"{detail}: renamed columns cannot be read here", remedy=remedy)

    def _pin_files(self, use: DatasetUse | None, name: str, version: int, files: Sequence[TableFile]) -> TableFilesPin:
        """Files of a snapshot as they are now; what is gone fails."""
        pinned = []
        for file in files:
            path = local_path(file.path)
            try:
                pinned.append(PinnedFile.of(path))
            except FileNotFoundError as fault:
                if use is None:
                    raise
                detail = (
                    f"version {version} of table `{name}` lacks `{path}`: {self.removal}, or somebody else, removed it"
                )
                raise loading_failed(use, detail) from fault
        empty: tuple[tuple[str | None, ...], ...] = ((),) * len(files)
        return TableFilesPin(self.kind, name, self.source.id, name, version, tuple(pinned), empty)

    def pin_registered(self, use: DatasetUse, stored: Stored) -> tuple[Pin, ...]:
        """The files of the snapshot that was registered."""
        own = stored_files(stored)
        pin = self._pin_files(use, f"{own.schema}.{own.table}", own.version, own.files)
        return (replace(pin, name=f"{self.source.id}:{own.schema}.{own.table}", columns=fold(own.columns or ())),)

    def pin_output(self, stored: Stored, *, name: str, period: str) -> Pin:
        """The files that the output wrote; those that have the rows of its period now, where they were removed."""
        own = stored_files(stored)
        table_name = f"{own.schema}.{own.table}"
        try:
            return replace(self._pin_files(None, table_name, own.version, own.files), name=name)
        except FileNotFoundError:
            table = self._find(own)
            if table is None or own.is_kept:
                raise
            files = [file for file in list_iceberg(table) if [value for _, value in file.values] == [period]]
            version = table.metadata.current_snapshot_id or 0
            return replace(self._pin_files(None, table_name, version, files), name=name)

    def _find(self, stored: StoredTableFiles) -> Table | None:
        return load_table(self._open(), (*(stored.schema or "").split("."), stored.table))

    def sample(self, stored: Stored, columns: Mapping[str, Type], rows: int) -> list[Row]:
        """The first rows of the first files."""
        own = stored_files(stored)
        files = ((local_path(file.path), file) for file in own.files)
        return sample_files(files, own.columns or tuple(columns), rows)

    # --- writing

    def target(self, output: OutputPlace) -> Target:
        """A table of the catalog."""
        return IcebergTarget(
            partial(self._open, writing=True),
            self.source.id,
            output.schema or self._options.namespace,
            output.table,
            output.period,
            output.run,
            output.seq,
            dict(output.columns),
            output.fence,
            output.attempt,
        )

    def inspect(self, stored: Stored, *, run: str, seq: int) -> Inspected:
        """The hashes of the files, and what snapshots note."""
        own = stored_files(stored)
        return inspect_snapshot(own, self._find(own), run=run, seq=seq)

    def keep(self, stored: Stored, *, period: str, run: str, seq: int) -> Stored | None:
        """The snapshot stays readable by itself, until somebody expires it."""
        del period, run, seq
        own = stored_files(stored)
        there = all(local_path(file.path).is_file() for file in own.files)
        return replace(own, is_kept=True) if there else None
