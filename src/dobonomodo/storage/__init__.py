"""Bytes in, bytes out: how the rows of a location become a frame, and a frame becomes files or a table."""

from dobonomodo.storage.catalogue import (
    STORAGES,
    Storages,
    check_drivers,
    check_locations,
    destination_kinds,
    find_storage,
    has_file,
    load_datasource,
    load_pin,
    load_stored,
    options_by_type,
)
from dobonomodo.storage.inputs import InputHashes, Inputs, Pinned, RestoredInputs
from dobonomodo.storage.kept import KeptInputs
from dobonomodo.storage.outputs import Outputs, StagedRows, WrittenOutput
from dobonomodo.storage.parquet import read_parquet
from dobonomodo.storage.storage import Pin, Session, Storage, Stored
from dobonomodo.storage.target import Inspected, Noted

__all__ = [
    "STORAGES",
    "InputHashes",
    "Inputs",
    "Inspected",
    "KeptInputs",
    "Noted",
    "Outputs",
    "Pin",
    "Pinned",
    "RestoredInputs",
    "Session",
    "StagedRows",
    "Storage",
    "Storages",
    "Stored",
    "WrittenOutput",
    "check_drivers",
    "check_locations",
    "destination_kinds",
    "find_storage",
    "has_file",
    "load_datasource",
    "load_pin",
    "load_stored",
    "options_by_type",
    "read_parquet",
]
