"""Objects of S3, Google Cloud Storage and Azure as files: listed, read, written, and replaced by compare-and-swap.

Messages contain only the code and the sentence of the server's response: the rest may contain secrets.
"""

from __future__ import annotations

import errno
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from dobonomodo.storage.access import Access, carry, connect, connect_arrow
from dobonomodo.storage.address import Address
from dobonomodo.storage.objects import BLOCK, PAGE, FoundObject, ObjectChangedError, Stamp, writing_whole

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutMode
    from obstore.store import ObjectStore

_ANSWER = re.compile(r"<Code>([^<]*)</Code>(?:\s*<Message>([^<]*)</Message>)?")
_STATUS = re.compile(r"status code: (\d+ [A-Za-z ]+)")
_REFUSED = re.compile(r"\b(?:AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|40[13] )")
_MISSING = re.compile(r"\b(?:NoSuchBucket|404 )")


@dataclass(frozen=True, slots=True)
class StoreObjects:
    """The objects of one bucket. Keys start at the bucket."""

    bucket: Address
    access: Access

    @classmethod
    def of(cls, address: Address, access: Access) -> StoreObjects:
        """Those of the bucket of an address."""
        return cls(replace(address, key=""), access)

    def for_tasks(self) -> Self:
        """The same on machines that have neither our environment nor our files."""
        return replace(self, access=carry(self.access, self.bucket.scheme))

    def uri(self, key: str) -> str:
        """An object as people name it."""
        return str(replace(self.bucket, key=key))

    def list(self, key: str) -> list[FoundObject]:
        """The objects below a key, by name."""
        import obstore

        with self._explaining(key):
            pages = list(obstore.list(self._store, key or None))
        return sorted((_found(each) for page in pages for each in page), key=lambda each: each.key)

    def look(self, key: str) -> Sequence[FoundObject]:
        """The first objects below a key, at most a page of them: enough to see that the store answers."""
        import obstore

        with self._explaining(key):
            pages = obstore.list(self._store, key or None, chunk_size=PAGE)
            return [_found(each) for each in next(iter(pages), ())]

    def names(self, key: str) -> Sequence[str]:
        """The next parts of all keys below a key."""
        import obstore

        with self._explaining(key):
            found = obstore.list_with_delimiter(self._store, key or None)
        keys = {*found["common_prefixes"], *(each["path"] for each in found["objects"])} - {key}
        return sorted(each.rpartition("/")[2] for each in keys)

    def find(self, key: str) -> FoundObject | None:
        """One object; None if there is none."""
        import obstore

        try:
            with self._explaining(key):
                return _found(obstore.head(self._store, key))
        except FileNotFoundError:
            return None

    def read(self, key: str) -> tuple[bytes, Stamp] | None:
        """The content of a small object with its stamp; None if there is none."""
        import obstore

        try:
            with self._explaining(key):
                got = obstore.get(self._store, key)
                return bytes(got.bytes()), Stamp(got.meta["e_tag"] or "", got.meta["version"])
        except FileNotFoundError:
            return None

    def download(self, key: str, path: Path, *, size: int, etag: str) -> None:
        """Download an object to a file, atomically; raises ``ObjectChangedError`` if its tag differs."""
        import obstore

        with self._explaining(key), writing_whole(path) as file:
            for start in range(0, size, BLOCK):
                part = (start, min(start + BLOCK, size))
                file.write(obstore.get(self._store, key, options={"if_match": etag, "range": part}).bytes())

    def hash(self, key: str) -> str | None:
        """The SHA-256 of an object; None if there is none."""
        import obstore

        digest = hashlib.sha256()
        try:
            with self._explaining(key):
                for block in obstore.get(self._store, key).stream(min_chunk_size=BLOCK):
                    digest.update(block)
        except FileNotFoundError:
            return None
        return digest.hexdigest()

    def upload(self, path: Path, key: str) -> Stamp:
        """Make an object of a file."""
        return self._put(key, path, "overwrite")

    def put(self, key: str, content: bytes) -> Stamp:
        """Make or replace a small object."""
        return self._put(key, content, "overwrite")

    def put_if_match(self, key: str, content: bytes, stamp: Stamp | None) -> Stamp | None:
        """Replace a small object; None if it is not what the stamp says. Without a stamp, there must be none yet."""
        try:
            return self._put(key, content, "create" if stamp is None else _condition(stamp))
        except (FileExistsError, ObjectChangedError):
            return None

    def _put(self, key: str, content: bytes | Path, mode: PutMode) -> Stamp:
        import obstore

        with self._explaining(key):
            done = obstore.put(self._store, key, content, mode=mode)
        return Stamp(done["e_tag"] or "", done["version"])

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; those that are gone already are no fault."""
        import obstore

        listed = [*keys]
        if not listed:
            return
        try:
            with self._explaining(listed[0]):
                obstore.delete(self._store, listed)
        except FileNotFoundError:
            return

    def delete_tree(self, key: str) -> None:
        """Remove an object and all below it, also the empty ones by which Hadoop marks folders: their keys end with a slash."""
        if not key:
            raise AssertionError("a bucket is never emptied")
        self.delete(each.key for each in self.list(key))
        self.delete([key])
        # Obstore lists them by keys without the slash, under which it finds nothing to delete.
        if self.bucket.scheme == "s3" and self.list(key):
            with self._explaining(key), suppress(FileNotFoundError):
                connect_arrow(self.access).delete_dir(f"{self.bucket.bucket}/{key}")

    def read_pointer(self, key: str) -> tuple[bytes, Stamp] | None:
        """It is an object like any other."""
        return self.read(key)

    def replace_pointer(self, key: str, content: bytes, stamp: Stamp | None) -> Stamp | None:
        """The store compares and swaps by itself."""
        return self.put_if_match(key, content, stamp)

    @property
    def _store(self) -> ObjectStore:
        return connect(self.bucket, self.access)

    @contextmanager
    def _explaining(self, key: str) -> Iterator[None]:
        """Convert an error of a store to an ``OSError`` with the address, without the original, which contains headers."""
        from obstore import exceptions

        place = self.uri(key)
        try:
            yield
        except FileNotFoundError as fault:
            raise FileNotFoundError(errno.ENOENT, _summarize(fault), place) from None
        except exceptions.AlreadyExistsError:
            raise FileExistsError(errno.EEXIST, "it exists", place) from None
        except exceptions.PreconditionError:
            raise ObjectChangedError(errno.ESTALE, "it was changed", place) from None
        except (exceptions.BaseError, ValueError) as fault:
            said = _summarize(fault)
            denied = isinstance(fault, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError)
            if denied or _REFUSED.search(said):
                raise PermissionError(errno.EACCES, f"the object store refuses: {said}", place) from None
            if _MISSING.search(said):
                raise FileNotFoundError(errno.ENOENT, said, place) from None
            raise OSError(errno.EIO, f"the object store did not answer: {said}", place) from None


def _condition(stamp: Stamp) -> PutMode:
    """What must be there to be replaced."""
    return {"e_tag": stamp.etag} if stamp.version is None else {"e_tag": stamp.etag, "version": stamp.version}


def _found(meta: ObjectMeta) -> FoundObject:
    return FoundObject(meta["path"], meta["size"], meta["e_tag"] or "", meta["last_modified"].timestamp())


def _summarize(fault: Exception) -> str:
    """The code and the sentence of an answer, or what kind of fault there was."""
    said = str(fault)
    if (answer := _ANSWER.search(said)) is not None:
        return f"{answer[1]}: {answer[2]}" if answer[2] else answer[1]
    if (status := _STATUS.search(said)) is not None:
        return status[1].strip()
    if isinstance(fault, ValueError):
        return said.partition("\n")[0]
    kinds = ("Connection refused", "timed out", "dns error", "certificate", "credential")
    return next((kind for kind in kinds if kind.lower() in said.lower()), type(fault).__name__)
