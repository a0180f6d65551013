"""Iceberg tables as a storage: a snapshot of a table is a list of Parquet files, which Spark reads as such.

No Spark connector is needed: ``pyiceberg`` accesses the catalog.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from dobonomodo.model.datasource import StorageOptions
from dobonomodo.model.document import Places
from dobonomodo.model.secret import find_secrets, is_plain_address
from dobonomodo.model.template import check_table_name
from dobonomodo.model.value import Filled, Text
from dobonomodo.plan.dataset import DatasetUse, Location
from dobonomodo.plan.destination import DestinationKind
from dobonomodo.problems import Problem
from dobonomodo.problems.definition import InvalidValue
from dobonomodo.storage.access import ANSWERING, CONNECTING, S3Access, find_s3
from dobonomodo.storage.address import Address, is_address
from dobonomodo.storage.faults import loading_failed
from dobonomodo.storage.file_storage import check_place
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
    name_types,
)
from dobonomodo.storage.object_shelf import ObjectShelf
from dobonomodo.storage.objects import do_at_once
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
from dobonomodo.storage.table_home import LocalFiles, ObjectFiles, TableHome, local_path
from dobonomodo.storage.target import Inspected, OutputPlace, Target

if TYPE_CHECKING:
    import pyarrow
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

_LOCAL = "sqlite:///"
_DATABASE = re.compile(r"postgres(?:ql)?://")
_CATALOG = re.compile(r"sqlite:///[^?]+$|https?://")
_FIELD_ID = b"PARQUET:field_id"
AT_ONCE = "one transaction for all tables where the catalog offers that"
ONE_BY_ONE = "one transaction for each table, one after the other; after a kill the rest is completed"


class IcebergOptions(StorageOptions):
    """A catalog of Iceberg tables."""

    uri: Filled = Field(
        description="The catalog: `sqlite:///catalog.db`, the URL of a PostgreSQL database without a password, or the address "
        "of a REST catalog."
    )
    warehouse: Filled = Field(
        description="The folder of the tables; a relative path starts at the workspace. In an object store, an address such "
        "as `s3://bucket/folder`."
    )
    endpoint: Text | None = Field(
        default=None, description="The address of the object store's server; the default is the cloud's own."
    )
    region: Text | None = Field(default=None, description="The region of the bucket.")
    catalog: Filled = Field(default="default", description="The name of the catalog, by which it knows its tables.")
    namespace: Filled = Field(default="default", description="The namespace of tables that name none.")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """A catalog that can be reached. An address with a secret in it is reported as that."""
        if any(find_secrets(places, "options")):
            return
        uri = places.text("uri") or ""
        if uri.strip() and not (is_plain_address(uri) if _DATABASE.match(uri) else _CATALOG.match(uri)):
            yield InvalidValue(
                key="uri",
                expected="the address of a catalog",
                found="this text",
                advice="write `sqlite:///catalog.db`, `postgresql://user@host:5432/database`, or the address of a REST catalog",
                span=places.span("uri"),
            )
        yield from check_place(places, "warehouse", schemes=("s3",))
        if places.text("namespace") is not None:
            yield from check_table_name(places.passage("namespace"), "namespace")


def _load_sql(name: str, uri: str, warehouse: str, **more: str) -> Catalog:
    """The catalog in a database; who opens it first makes its tables, and others may do so at the same time."""
    from pyiceberg.catalog import load_catalog
    from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

    load = partial(load_catalog, name, type="sql", uri=uri, warehouse=warehouse, **more)
    for _ in range(4):
        with suppress(OperationalError, ProgrammingError, IntegrityError):
            return load()
    return load()


@lru_cache(maxsize=8)
def _load_database(name: str, uri: str, warehouse: str, more: tuple[tuple[str, str], ...]) -> Catalog:
    """The catalog in a server's database. It keeps no connections: nobody would close them."""
    from pyiceberg.catalog.sql import SqlCatalog
    from sqlalchemy import NullPool, create_engine

    own = _DATABASE.sub("postgresql+psycopg://", uri)
    catalog = _load_sql(name, own, warehouse, **dict(more))
    if isinstance(catalog, SqlCatalog):
        catalog.engine.dispose()
        catalog.engine = create_engine(own, poolclass=NullPool)
    return catalog


@dataclass(frozen=True, slots=True)
class IcebergStorage(TableFilesStorage):
    """The tables of an Iceberg catalog."""

    kind: ClassVar[str] = KIND
    options: ClassVar[type[StorageOptions]] = IcebergOptions
    destinations: ClassVar[DestinationKind] = DestinationKind(are_paths=False, inline=False, has_schemas=True)
    modules: ClassVar[Sequence[str]] = ("pyiceberg", "pyarrow")
    connector: ClassVar[str] = "org.apache.iceberg:iceberg-spark-runtime"
    removal: ClassVar[str] = "the expiry of snapshots"

    @property
    def _options(self) -> IcebergOptions:
        return IcebergOptions.model_validate(self.source.options)

    @property
    def _is_rest(self) -> bool:
        """Whether the catalog is a server that may commit several tables at once; databases are not asked to."""
        return not self._options.uri.startswith(_LOCAL) and not _DATABASE.match(self._options.uri)

    @property
    def together(self) -> str:
        """What a catalog offers is known to the run alone: a plan is made without it."""
        return f"{AT_ONCE}, else {ONE_BY_ONE}" if self._is_rest else ONE_BY_ONE

    @property
    def objects(self) -> ObjectShelf | None:
        """The object store that the warehouse is in."""
        is_remote = is_address(self._options.warehouse)
        return ObjectShelf.of(self.source, self.root, option="warehouse") if is_remote else None

    @property
    def _warehouse(self) -> str:
        shelf = self.objects
        return str(shelf.prefix) if shelf is not None else str(self.root / self._options.warehouse)

    def _home(self, place: str, *, copies: Path = NOWHERE) -> TableHome:
        """The files below a path or an address; ``copies`` is for those that are to be uploaded, or were downloaded."""
        if (shelf := self.objects) is None:
            return LocalFiles(local_path(place))
        return ObjectFiles(shelf.objects, Address.parse(place), copies)

    def home_of(self, stored: StoredTableFiles, *, copies: Path = NOWHERE) -> TableHome:
        """Files have their whole addresses."""
        del stored
        return self._home(self._warehouse, copies=copies)

    def _open(self, *, writing: bool = False) -> Catalog:
        """The catalog. Other settings, such as a token, come from pyiceberg's own configuration."""
        from pyiceberg.catalog import load_catalog

        own, shelf = self._options, self.objects
        more = _name_access(find_s3(shelf.objects.access)) if shelf is not None else {}
        if _DATABASE.match(own.uri):
            return _load_database(own.catalog, own.uri, self._warehouse, tuple(more.items()))
        if self._is_rest:
            warehouse = self._warehouse if shelf is not None else own.warehouse
            return load_catalog(own.catalog, type="rest", uri=own.uri, warehouse=warehouse, **more)
        database = self.root / own.uri.removeprefix(_LOCAL)
        if writing:
            database.parent.mkdir(parents=True, exist_ok=True)
            if shelf is None:
                Path(self._warehouse).mkdir(parents=True, exist_ok=True)
        elif not database.exists():
            raise NoCatalogError(2, "No such file or directory", str(database))
        return _load_sql(own.catalog, f"{_LOCAL}{database}", self._warehouse, **more)

    # --- checking

    def call(self) -> Answer | None:
        """Whether the server of the catalog answers, and the object store; files and folders need none."""
        answer = None
        if not self._options.uri.startswith(_LOCAL):
            try:
                self._open().list_namespaces()
            except Exception as fault:  # noqa: BLE001  whatever it is, the catalog does not answer
                return Answer(explain_fault(fault), works=False)
            answer = Answer("the catalog answers")
        said = shelf.call() if (shelf := self.objects) is not None else None
        if answer is None or said is None:
            return answer or said
        return Answer(f"{answer.detail}; {said.detail}", works=said.works)

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
        unsupported = _find_unsupported_feature(table)
        types = name_types(table.schema())
        differences = find_differences(types.items(), use.as_stored())
        if differences:
            raise loading_failed(use, f"table `{location}` does not match the declaration", differences=differences)
        given = {column for each in identity_columns(table).values() for _, column in each}
        files = list_iceberg(table)
        pinned = self._pin_files(use, f"{schema}.{name}", table.metadata.current_snapshot_id or 0, files)
        partitions = tuple((each, types[each]) for each in types if each in given)
        values = tuple(tuple(dict(file.values).get(each) for each, _ in partitions) for file in files)
        unsupported = unsupported or self._find_changed_columns(table, pinned)
        if unsupported is not None:
            # The connector finds the snapshot by the metadata of the table, whatever catalog it is in.
            self.require_connector(use, str(location), unsupported, table.metadata_location, pinned.version)
        return replace(
            pinned,
            name=str(location),
            values=values,
            partitions=partitions,
            columns=fold(types),
            period=location.period,
            native=table.metadata_location if unsupported is not None else None,
        )

    def _load(self, use: DatasetUse, schema: str, name: str) -> Table:
        try:
            catalog = self._open()
            table = load_table(catalog, (*schema.split("."), name))
            if table is None:
                there = [each[-1] for each in catalog.list_tables(tuple(schema.split(".")))]
                detail = f"table `{schema}.{name}` does not exist in the catalog"
                raise loading_failed(use, detail, present=there) from FileNotFoundError(name)
        except NoCatalogError as fault:
            raise loading_failed(use, f"table `{schema}.{name}`: there is no catalog `{fault.filename}`") from fault
        except catalog_faults() as fault:
            detail = f"table `{schema}.{name}` cannot be read: {explain_fault(fault)}"
            raise loading_failed(use, detail, retry_helps=True) from fault
        except OSError as fault:
            detail = f"table `{schema}.{name}` cannot be read: {fault.strerror or explain_fault(fault)}"
            raise loading_failed(use, detail, retry_helps=self.objects is not None) from fault
        return table

    def _find_changed_columns(self, table: Table, pin: TableFilesPin) -> str | None:
        """A column that was renamed, dropped, or replaced by another of the same name: files have what the table has not."""
        import pyarrow.parquet as pq

        known = {field.field_id: field.name for field in table.schema().fields}

        def read_schema(file: PinnedFile) -> pyarrow.Schema:
            with table.io.new_input(file.path).open() as opened:
                return pq.read_schema(opened)

        for file, schema in zip(pin.files, do_at_once(read_schema, pin.files), strict=True):
            for field in schema:
                number = int((field.metadata or {}).get(_FIELD_ID, b"-1"))
                if number < 0 or known.get(number) == field.name:
                    continue
                if number in known or field.name in known.values():
                    return f"renamed columns (`{known.get(number, field.name)}` is `{field.name}` in `{file.path}`)"
                return f"dropped columns (`{field.name}` is in `{file.path}`)"
        return None

    def _pin_files(self, use: DatasetUse | None, name: str, version: int, files: Sequence[TableFile]) -> TableFilesPin:
        """Files of a snapshot as they are now; what is gone fails."""
        home = self._home(self._warehouse)
        pinned = self.pin_each(lambda file: home.pin(file.path), files, use=use, table=name, version=version)
        empty: tuple[tuple[str | None, ...], ...] = ((),) * len(files)
        return TableFilesPin(self.kind, name, self.source.id, name, version, pinned, empty)

    def pin_registered(self, use: DatasetUse, stored: Stored) -> tuple[Pin, ...]:
        """The files of the snapshot that was registered."""
        own = stored_files(stored)
        pin = self._pin_files(use, f"{own.schema}.{own.table}", own.version, own.files)
        return (replace(pin, name=f"{self.source.id}:{own.schema}.{own.table}", columns=fold(own.columns or ())),)

    def pin_output(self, stored: Stored, *, name: str, period: str) -> Pin:
        """The files that the output wrote; if they were removed, the files that hold the rows of its period now."""
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

    # --- writing

    def target(self, output: OutputPlace) -> Target:
        """A table of the catalog."""
        schema = output.schema or self._options.namespace
        copies = Path(output.folder) / self.source.id / schema / output.table
        return IcebergTarget(
            self.source.id,
            output.table,
            output.period,
            output.run,
            output.seq,
            dict(output.columns),
            output.fence,
            output.attempt,
            partial(self._open, writing=True),
            partial(self._home, copies=copies),
            self._warehouse,
            schema,
            f"{self._options.uri} {self._warehouse} {self._options.catalog}" if self._is_rest else None,
        )

    def inspect(self, stored: Stored, *, run: str, seq: int) -> Inspected:
        """The hashes of the files, and what snapshots note."""
        own = stored_files(stored)
        return inspect_snapshot(own, self._find(own), self.home_of(own), run=run, seq=seq)


class NoCatalogError(FileNotFoundError):
    """The file of a catalog does not exist."""


def _name_access(found: S3Access) -> dict[str, str]:
    """The S3 settings under the names of pyiceberg."""
    endpoint = {"s3.endpoint": found.endpoint} if found.endpoint is not None else {}
    keys = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token")
    # Its own limits are a second for a connection and three for an answer, which a busy server needs longer for.
    limits = {"s3.connect-timeout": str(CONNECTING), "s3.request-timeout": str(ANSWERING)}
    return {"s3.region": found.region, **limits, **endpoint, **dict(zip(keys, found.keys, strict=False))}


def _find_unsupported_feature(table: Table) -> str | None:
    """Why the files alone do not determine the rows: delete files, files of other formats."""
    if table.metadata.format_version > 2:
        return f"format version {table.metadata.format_version}"
    for task in table.scan().plan_files():
        if task.delete_files:
            return "delete files"
        if task.file.file_format.value.lower() != "parquet":
            return f"files of format {task.file.file_format.value}"
    return None
