"""Scratch in an object store, on a Spark that has no connector for any: the store is a folder, and Spark reads `file://`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dobonomodo.storage.access import Access
from dobonomodo.storage.address import Address
from dobonomodo.storage.object_store import StoreObjects
from dobonomodo.storage.transport import Transport

if TYPE_CHECKING:
    from obstore.store import ObjectStore

ADDRESS = "s3://bucket/scratch"


@dataclass(frozen=True, slots=True)
class FolderObjects(StoreObjects):
    """The files of this machine as objects, by the same library."""

    @property
    def _store(self) -> ObjectStore:
        from obstore.store import LocalStore

        return LocalStore("/")

    def delete_tree(self, key: str) -> None:
        """Object stores have no empty folders."""
        shutil.rmtree(f"/{key}", ignore_errors=True)
        Path(f"/{key}").unlink(missing_ok=True)


def use_folder(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """From now on the address is a folder."""
    place = Address("file", "", str(folder.absolute()).lstrip("/"))
    made = Transport(FolderObjects(Address("file", ""), Access()), place)
    patch.setattr(Transport, "of", classmethod(lambda cls, address: made.below("")))


@contextmanager
def addresses_of_spark() -> Iterator[list[str]]:
    """Everything that Spark reads or writes as Parquet meanwhile."""
    from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter

    seen: list[str] = []

    def watch(real: Any) -> Any:
        def parquet(self: Any, *paths: str, **more: Any) -> Any:
            seen.extend(paths)
            return real(self, *paths, **more)

        return parquet

    with pytest.MonkeyPatch.context() as patch:
        for kind in (DataFrameReader, DataFrameWriter):
            patch.setattr(kind, "parquet", watch(kind.parquet))
        yield seen
