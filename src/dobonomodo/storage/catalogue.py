"""The kinds of storage: how they load the definition of a datasource, and which kind a datasource, a destination or a record
belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from dobonomodo.model.datasource import DataSource, StorageOptions, datasource_model
from dobonomodo.model.document import Places
from dobonomodo.model.entity import Entity, Loaded
from dobonomodo.model.plain import Document
from dobonomodo.plan.dataset import DatasetUse, Location
from dobonomodo.plan.destination import Destination, DestinationKind, Together
from dobonomodo.problems import InternalError, Problem
from dobonomodo.storage.catalog_table import CatalogTableStorage
from dobonomodo.storage.csv import CsvStorage
from dobonomodo.storage.database import DatabaseStorage
from dobonomodo.storage.delta import DeltaStorage
from dobonomodo.storage.excel import ExcelStorage
from dobonomodo.storage.faults import loading_failed
from dobonomodo.storage.file_storage import FileStorage
from dobonomodo.storage.folder import StoredFiles
from dobonomodo.storage.iceberg import IcebergStorage
from dobonomodo.storage.parquet import ParquetStorage
from dobonomodo.storage.sql import SqlStorage
from dobonomodo.storage.storage import Pin, Session, Storage, Stored
from dobonomodo.storage.table_files import StoredTableFiles, TableFilesStorage
from dobonomodo.storage.target import Inspected, WrittenFile

OWN_LOCATIONS = "files"
"""The folder of the sandbox for outputs that give themselves a location."""
SEVERAL_PLACES = "a recorded intent that is completed, never rolled back halfway"
"""The guarantee for outputs whose places cannot be changed atomically."""

NAMED = ", then one rename for each named file; after a kill the rest is completed"

STORAGES: tuple[type[Storage], ...] = (
    ParquetStorage,
    CsvStorage,
    ExcelStorage,
    DatabaseStorage,
    SqlStorage,
    DeltaStorage,
    IcebergStorage,
    CatalogTableStorage,
)


def find_storage(kind: str) -> type[Storage]:
    """The storage of a kind."""
    found = next((each for each in STORAGES if each.kind == kind), None)
    if found is None:
        raise InternalError(f"there is no storage of kind `{kind}`")
    return found


def has_file(stored: Stored, name: str) -> bool:
    """Whether the record of an output has a data file of this name; no storage is opened."""
    return isinstance(stored, StoredFiles | StoredTableFiles) and name in stored.file_names


def options_by_type() -> dict[str, type[StorageOptions]]:
    """The options of each type of datasource."""
    return {each.kind: each.options for each in STORAGES}


def destination_kinds() -> Mapping[str, DestinationKind]:
    """What a plan has to know of each kind."""
    return _destination_kinds(STORAGES)


def load_datasource(places: Places, *, seed: str = "") -> Loaded[DataSource]:
    """A datasource of a type that there is, with options that its storage takes; what was left out is filled in."""
    loaded = _datasource_model(STORAGES).load(places, seed=seed)
    if loaded.value is None:
        return Loaded(None, loaded.problems)
    source = DataSource.model_validate(loaded.value.document())
    source.attach(loaded.value.places)
    return Loaded(source, loaded.problems)


def check_locations(resolver: Places, datasources: Mapping[str, DataSource]) -> Iterator[Problem]:
    """The options that the rules of a resolver set for their locations, by the kinds of their datasources."""
    rules = resolver.at("rules")
    for rule in rules.elements() if rules is not None and rules.is_list else ():
        places = rule.at("strategy", "options")
        source = datasources.get(rule.text("strategy", "datasource_id") or "")
        if places is not None and places.is_mapping and source is not None:
            yield from destination_kinds()[source.type].check_options(places, source.type)


def check_drivers(datasources: Iterable[DataSource]) -> Iterator[Problem]:
    """What active datasources need that is not installed here."""
    for source in datasources:
        options = source.places.at("options")
        if source.status == "active" and options is not None:
            yield from find_storage(source.type).options.find_missing(options)


@cache
def _destination_kinds(storages: tuple[type[Storage], ...]) -> Mapping[str, DestinationKind]:
    return {each.kind: replace(each.destinations, options=each.options.of_location) for each in storages}


@cache
def _datasource_model(storages: tuple[type[Storage], ...]) -> type[Entity]:
    return datasource_model({each.kind: each.options for each in storages})


def load_pin(document: Document) -> Pin:
    """A pin from plain data."""
    return find_storage(document["kind"]).load_pin(document)


def load_stored(document: Document) -> Stored:
    """The place of written rows from plain data."""
    return find_storage(document["kind"]).load_stored(document)


@dataclass(frozen=True, slots=True)
class Storages:
    """The storages of a workspace."""

    root: Path
    datasources: Mapping[str, DataSource]
    sandbox: Path | DataSource | None = None
    """Where drafts write, whatever their destinations are: a folder, or a datasource."""
    session: Session | None = None
    """Returns the Spark session for storages that need one."""

    def open(self, source: DataSource) -> Storage:
        """The storage of a datasource."""
        return find_storage(source.type).open(source, root=str(self.root), session=self.session)

    def of_source(self, name: str, *, use: DatasetUse) -> Storage:
        """The storage of a datasource that a reading names."""
        source = self.datasources.get(name)
        if source is None:
            raise loading_failed(use, f"there is no datasource `{name}`")
        if source.status != "active":
            raise loading_failed(use, f"datasource `{name}` is disabled")
        return self.open(source)

    def of_location(self, location: Location, *, use: DatasetUse) -> Storage:
        """The storage of a location that a reading names, with the options that the location sets."""
        found = self.of_source(location.datasource_id, use=use)
        kind, options = destination_kinds()[found.kind], Places.of_data(dict(location.options))
        if (wrong := next(kind.check_options(options, found.kind), None)) is not None:
            raise loading_failed(use, f"the options of `{location}`: {wrong.message()}")
        return found.with_options(location.options)

    def of_record(self, record: Pin | Stored, *, use: DatasetUse | None = None) -> Storage:
        """The storage that can read what a record is about. Files need no datasource: they have addresses of their own."""
        name = record.datasource_id
        if name is not None and use is not None:
            return self.of_source(name, use=use)
        source = self.datasources[name] if name is not None else None
        return find_storage(record.kind).open(source, root=str(self.root), record=record, session=self.session)

    def list_files(self, stored: Stored) -> tuple[WrittenFile, ...]:
        """The files that an output wrote; none where its rows are in a database."""
        storage = self.of_record(stored)
        return storage.list_files(stored) if isinstance(storage, FileStorage | TableFilesStorage) else ()

    def inspect_named(self, stored: Stored) -> Inspected:
        """Whether the file that people open is what the run wrote; nothing is known of outputs that write no such file."""
        storage = self.of_record(stored)
        return storage.inspect_named(stored) if isinstance(storage, FileStorage) else Inspected()

    def of_destination(self, destination: Destination) -> Storage:
        """The storage that an output writes to."""
        source = self.datasources.get(destination.datasource_id or "")
        if isinstance(self.sandbox, DataSource):
            return self.open(self.sandbox)
        found = find_storage(destination.kind).open(source, root=str(self.root), session=self.session)
        named = found.with_options(destination.options)
        if self.sandbox is None:
            return named
        folder = self.sandbox / (destination.datasource_id or OWN_LOCATIONS)
        return named.in_folder(str(folder), within=str(self.sandbox))

    def together(self, destinations: Sequence[Destination]) -> Together:
        """The guarantee for publishing the outputs of a run together."""
        groups: dict[str, list[Destination]] = {}
        for each in destinations:
            groups.setdefault(self._place(each), []).append(each)
        words = {
            place: self.of_destination(group[0]).together + (NAMED if any(each.file for each in group) else "")
            for place, group in groups.items()
        }
        if len(words) == 1:
            return Together(next(iter(words.values())))
        return Together(SEVERAL_PLACES, words)

    def _place(self, destination: Destination) -> str:
        """The name of the place that is published atomically; a location that an output defines itself is published separately."""
        if isinstance(self.sandbox, DataSource):
            return self.sandbox.id
        own = str(destination) if self.sandbox is None else OWN_LOCATIONS
        return destination.datasource_id or own
