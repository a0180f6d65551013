"""The protocol by which the engine reads stored rows; storages implement it."""

from __future__ import annotations

from typing import Protocol

from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.storage.rows import ROW_NUMBER, StoredRows

__all__ = ["ROW_NUMBER", "Reader", "StoredRows"]


class Reader(Protocol):
    """Reads stored rows."""

    def read(self, use: DatasetUse) -> list[StoredRows]:
        """The rows of every location of a dataset; at least one frame, which may be empty."""
        ...
