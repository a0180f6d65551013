"""How the engine asks for stored rows; what they are is said where they are stored."""

from __future__ import annotations

from typing import Protocol

from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.storage.rows import ROW_NUMBER, StoredRows

__all__ = ["ROW_NUMBER", "Reader", "StoredRows"]


class Reader(Protocol):
    """Finds stored rows."""

    def read(self, use: DatasetUse) -> list[StoredRows]:
        """The rows of every location of a dataset; at least one frame, which may be empty."""
        ...
