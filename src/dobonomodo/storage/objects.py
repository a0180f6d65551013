"""The port for files that are not on this machine: objects of a bucket, or files of HDFS, both named by keys.

What goes wrong is an ``OSError`` like that of a disk, so that everything above explains all places in the same way.
"""

from __future__ import annotations

import builtins
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, Self, TypeVar

from dobonomodo.storage.address import HDFS

if TYPE_CHECKING:
    from dobonomodo.storage.access import Access
    from dobonomodo.storage.address import Address

T = TypeVar("T")
R = TypeVar("R")

PAGE = 1_000
"""Objects that one request lists."""
AT_ONCE = 8
"""Objects that are read or written at the same time."""
BLOCK = 32 << 20
"""Bytes that are read or written by one request: one that takes too long is tried again."""


class ObjectChangedError(OSError):
    """An object is not the one that was expected."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """The version of an object's content, for conditional writes."""

    etag: str
    version: str | None = None


@dataclass(frozen=True, slots=True)
class FoundObject:
    """An object as a listing shows it."""

    key: str
    size: int
    etag: str
    modified: float
    """In seconds since 1970."""


class Objects(Protocol):
    """The objects of one bucket. Keys start at the bucket."""

    @property
    def access(self) -> Access:
        """How the store is reached."""
        ...

    def for_tasks(self) -> Self:
        """The same on machines that have neither our environment nor our files."""
        ...

    def uri(self, key: str) -> str:
        """An object as people name it."""
        ...

    def list(self, key: str) -> list[FoundObject]:
        """The objects below a key, by name."""
        ...

    def look(self, key: str) -> Sequence[FoundObject]:
        """The first objects below a key, at most a page of them: enough to see that the store answers."""
        ...

    def names(self, key: str) -> Sequence[str]:
        """The next parts of all keys below a key."""
        ...

    def find(self, key: str) -> FoundObject | None:
        """One object; None if there is none."""
        ...

    def read(self, key: str) -> tuple[bytes, Stamp] | None:
        """The content of a small object with its stamp; None if there is none."""
        ...

    def download(self, key: str, path: Path, *, size: int, etag: str) -> None:
        """Download an object to a file, atomically; raises ``ObjectChangedError`` if its tag differs."""
        ...

    def hash(self, key: str) -> str | None:
        """The SHA-256 of an object; None if there is none."""
        ...

    def upload(self, path: Path, key: str) -> Stamp:
        """Make an object of a file."""
        ...

    def put(self, key: str, content: bytes) -> Stamp:
        """Make or replace a small object."""
        ...

    def put_if_match(self, key: str, content: bytes, stamp: Stamp | None) -> Stamp | None:
        """Replace a small object; None if it is not what the stamp says. Without a stamp, there must be none yet."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; those that are gone already are no fault."""
        ...

    def read_pointer(self, key: str) -> tuple[bytes, Stamp] | None:
        """The content that ``replace_pointer`` has put last; None if there is none."""
        ...

    def delete_tree(self, key: str) -> None:
        """Remove an object and all below it, also what marks folders."""
        ...

    def replace_pointer(self, key: str, content: bytes, stamp: Stamp | None) -> Stamp | None:
        """Compare and swap: of all who have read the same stamp, one succeeds, and None is the answer to the others."""
        ...


def open_objects(address: Address, access: Access) -> Objects:
    """The objects of the bucket of an address."""
    from dobonomodo.storage.hdfs import HdfsObjects
    from dobonomodo.storage.object_store import StoreObjects

    return HdfsObjects.of(address) if address.scheme == HDFS else StoreObjects.of(address, access)


@contextmanager
def writing_whole(path: Path) -> Iterator[BinaryIO]:
    """A file that has its name once all of it is written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{secrets.token_hex(8)}.{path.name}"[:200])
    try:
        with unfinished.open("wb") as file:
            yield file
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def do_at_once(act: Callable[[T], R], things: Iterable[T]) -> builtins.list[R]:
    """The results of the same act on several things, in their order; the first fault in that order is raised."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(act, things))
