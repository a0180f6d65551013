"""Bytes in, bytes out: how the rows of a location become a frame, and a frame becomes files or a table."""

from dobonomodo.storage.catalogue import STORAGES, Storages, find_storage, load_pin, load_stored
from dobonomodo.storage.inputs import Inputs, Pinned
from dobonomodo.storage.outputs import Outputs, StagedRows, WrittenOutput
from dobonomodo.storage.parquet import read_parquet
from dobonomodo.storage.storage import Pin, Storage, Stored

__all__ = [
    "STORAGES",
    "Inputs",
    "Outputs",
    "Pin",
    "Pinned",
    "StagedRows",
    "Storage",
    "Storages",
    "Stored",
    "WrittenOutput",
    "find_storage",
    "load_pin",
    "load_stored",
    "read_parquet",
]
