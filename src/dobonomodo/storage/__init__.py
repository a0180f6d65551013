"""Bytes in, bytes out: how the rows of a location become a frame, and a frame becomes files or a table."""

from dobonomodo.storage.files import list_files
from dobonomodo.storage.parquet import read_parquet

__all__ = ["list_files", "read_parquet"]
