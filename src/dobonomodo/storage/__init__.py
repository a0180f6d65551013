"""Bytes in, bytes out: how the rows of a location become a frame, and a frame becomes files or a table."""

from dobonomodo.storage.inputs import Inputs, Pinned, PinnedLocation, key_of
from dobonomodo.storage.outputs import Outputs, Staged
from dobonomodo.storage.parquet import read_parquet

__all__ = ["Inputs", "Outputs", "Pinned", "PinnedLocation", "Staged", "key_of", "read_parquet"]
