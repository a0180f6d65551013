"""Files of HDFS: listed, read, written, and a pointer that is replaced by compare-and-swap.

No Java is needed: ``hdfs_native`` talks to the name node. It finds the cluster in the files of ``HADOOP_CONF_DIR``, and the user in
``HADOOP_USER_NAME`` or in a ticket of Kerberos.
"""

from __future__ import annotations

import builtins
import errno
import hashlib
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.storage.access import PATIENCE, Access
from dobonomodo.storage.address import Address
from dobonomodo.storage.manifest import HIDDEN
from dobonomodo.storage.objects import BLOCK, PAGE, FoundObject, ObjectChangedError, Stamp, writing_whole

if TYPE_CHECKING:
    from hdfs_native import Client, FileStatus

_FOUND_BY = ("HADOOP_CONF_DIR", "HADOOP_HOME", "HADOOP_USER_NAME", "KRB5CCNAME")
"""Variables by which the library finds the cluster and the user."""
_PAUSE = 2
"""Seconds at most before a name node that did not answer is asked again."""
_ANSWER = re.compile(r'RPCError\("[^"]*\.(?P<kind>\w+)", "(?P<said>.*?)(?:\\n|"\)|$)')
_ERRNO_BY_KIND = {
    "AccessControlException": errno.EACCES,
    "InvalidPathException": errno.EINVAL,
    "ParentNotDirectoryException": errno.ENOTDIR,
    "PathIsNotEmptyDirectoryException": errno.ENOTEMPTY,
}
_STATES = "-states"
_KEPT_SECONDS = 3600
"""Who has read the pointer finds the state that it named for so long."""
_LOOKS = 20


@dataclass(frozen=True, slots=True)
class HdfsObjects:
    """The files of one cluster. Their keys are paths without the slash at the start."""

    bucket: Address
    access: Access = field(default_factory=Access)

    @classmethod
    def of(cls, address: Address) -> HdfsObjects:
        """Those of the cluster of an address."""
        return cls(replace(address, key=""))

    def for_tasks(self) -> HdfsObjects:
        """Machines of the cluster know it themselves."""
        return self

    def uri(self, key: str) -> str:
        """A file as people name it."""
        return str(replace(self.bucket, key=key))

    def list(self, key: str) -> list[FoundObject]:
        """The files below a folder, by name."""
        return sorted(self._list(key, None), key=lambda each: each.key)

    def look(self, key: str) -> Sequence[FoundObject]:
        """The first files below a folder."""
        return self._list(key, PAGE)

    def _list(self, key: str, most: int | None) -> builtins.list[FoundObject]:
        """List again where a folder was removed meanwhile."""
        for _ in range(_LOOKS):
            try:
                with self._explaining(key):
                    return [*islice(self._walk(key), most)]
            except FileNotFoundError:
                if not self._exists(key):
                    return []
        raise OSError(errno.EAGAIN, "others remove folders all the time", self.uri(key))

    def _walk(self, key: str) -> Iterator[FoundObject]:
        for each in self._client.list_status(_path(key), recursive=True):
            if not each.isdir and each.path != _path(key):
                yield _found(each)

    def _exists(self, key: str) -> bool:
        try:
            with self._explaining(key):
                self._client.get_file_info(_path(key))
        except FileNotFoundError:
            return False
        return True

    def names(self, key: str) -> Sequence[str]:
        """What is in a folder."""
        try:
            with self._explaining(key):
                found = [each.path for each in self._client.list_status(_path(key))]
        except FileNotFoundError:
            return []
        return sorted(each.rpartition("/")[2] for each in found if each != _path(key))

    def find(self, key: str) -> FoundObject | None:
        """One file; None if there is none."""
        try:
            with self._explaining(key):
                status = self._client.get_file_info(_path(key))
        except FileNotFoundError:
            return None
        return None if status.isdir else _found(status)

    def read(self, key: str) -> tuple[bytes, Stamp] | None:
        """The content of a small file with its stamp, which was taken before; None if there is none."""
        found = self.find(key)
        if found is None:
            return None
        try:
            with self._explaining(key):
                return self._client.read(_path(key)).read(), Stamp(found.etag)
        except FileNotFoundError:
            return None

    def download(self, key: str, path: Path, *, size: int, etag: str) -> None:
        """Copy a file that has its tag before and after."""
        with writing_whole(path) as file:
            self._require(key, etag)
            with self._explaining(key):
                for block in self._client.read(_path(key)).read_range_stream(0, size):
                    file.write(block)
            self._require(key, etag)

    def _require(self, key: str, etag: str) -> None:
        found = self.find(key)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", self.uri(key))
        if found.etag != etag:
            raise ObjectChangedError(errno.ESTALE, "it was changed", self.uri(key))

    def hash(self, key: str) -> str | None:
        """The SHA-256 of a file; None if there is none."""
        digest = hashlib.sha256()
        try:
            with self._explaining(key):
                for block in self._client.read(_path(key)):
                    digest.update(block)
        except FileNotFoundError:
            return None
        return digest.hexdigest()

    def upload(self, path: Path, key: str) -> Stamp:
        """Copy a file; it has its name once all of it is there."""
        with path.open("rb") as file:
            return self._put(key, iter(lambda: file.read(BLOCK), b""), overwrite=True)

    def put(self, key: str, content: bytes) -> Stamp:
        """Make or replace a small file."""
        return self._put(key, [content], overwrite=True)

    def put_if_match(self, key: str, content: bytes, stamp: Stamp | None) -> Stamp | None:
        """A new file is made in one act. One that is there is looked at, then replaced: HDFS has no condition for that."""
        if stamp is not None and ((found := self.find(key)) is None or found.etag != stamp.etag):
            return None
        try:
            return self._put(key, [content], overwrite=stamp is not None)
        except FileExistsError:
            return None

    def _put(self, key: str, blocks: Iterable[bytes], *, overwrite: bool) -> Stamp:
        """Write under another name, then rename, which keeps the time of the file."""
        unfinished = f"{_path(key).rpartition('/')[0]}/.{secrets.token_hex(16)}"
        with self._explaining(key):
            try:
                with self._client.create(unfinished) as file:
                    for block in blocks:
                        file.write(block)
                status = self._client.get_file_info(unfinished)
                self._client.rename(unfinished, _path(key), overwrite=overwrite)
            except BaseException:
                with suppress(OSError, RuntimeError):
                    self._client.delete(unfinished)
                raise
        return Stamp(_tag(status))

    def delete(self, keys: Iterable[str]) -> None:
        """Remove files, and the folders of runs that are empty then."""
        folders = set()
        for key in keys:
            with self._explaining(key), suppress(FileNotFoundError):
                self._client.delete(_path(key))
            folders |= {*_folders_of_runs(key)}
        for folder in sorted(folders, reverse=True):
            with suppress(OSError, RuntimeError):
                self._client.delete(_path(folder))

    def delete_tree(self, key: str) -> None:
        """Remove a file, or a folder and all in it."""
        if not key:
            raise AssertionError("a file system is never emptied")
        with self._explaining(key), suppress(FileNotFoundError):
            self._client.delete(_path(key), recursive=True)

    # --- the pointer

    def read_pointer(self, key: str) -> tuple[bytes, Stamp] | None:
        """The folder of the pointer has one file, whose name is that of a state."""
        for _ in range(_LOOKS):
            token = self._read_token(key)
            if token is None:
                return None
            if (found := self.read(_state_key(key, token))) is not None:
                return found[0], Stamp(token)
        raise FileNotFoundError(errno.ENOENT, "the pointer leads nowhere", self.uri(_state_key(key, token or "")))

    def _read_token(self, key: str) -> str | None:
        names = [each.key.rpartition("/")[2] for each in self.list(_pointer_folder(key))]
        if len(names) > 1:
            raise OSError(errno.EINVAL, "the pointer has several files", self.uri(_pointer_folder(key)))
        return names[0] if names else None

    def replace_pointer(self, key: str, content: bytes, stamp: Stamp | None) -> Stamp | None:
        """Rename the file of the pointer from the name that was read to a new one: of several, one finds it.

        The first pointer is a folder with its file in it, which gets its name by a rename that replaces nothing. Afterwards old
        states are removed that were there before: who was about to name one of them has read an earlier pointer.
        """
        token, folder = secrets.token_hex(16), _pointer_folder(key)
        old = self._find_old_states(key, stamp)
        self.put(_state_key(key, token), content)
        try:
            with self._explaining(folder):
                if stamp is None:
                    self._client.create(_path(f"{folder}-{token}/{token}")).close()
                    self._client.rename(_path(f"{folder}-{token}"), _path(folder))
                else:
                    self._client.rename(_path(f"{folder}/{stamp.etag}"), _path(f"{folder}/{token}"))
        except (FileExistsError, FileNotFoundError):
            self.delete([f"{folder}-{token}/{token}"])
            # The library may have tried again after a lost answer.
            return Stamp(token) if self._read_token(key) == token else None
        self.delete(old)
        return Stamp(token)

    def _find_old_states(self, key: str, stamp: Stamp | None) -> builtins.list[str]:
        """The states that are old, without that of the pointer, which readers may be about to read."""
        current, oldest = _state_key(key, stamp.etag if stamp is not None else ""), time.time() - _KEPT_SECONDS
        folder = f"{_pointer_folder(key)}{_STATES}"
        return [each.key for each in self.list(folder) if each.key != current and each.modified < oldest]

    @property
    def _client(self) -> Client:
        patience = float(os.environ.get(PATIENCE, "60"))
        return _connect(self.bucket.bucket, patience, tuple(os.environ.get(name) for name in _FOUND_BY))

    @contextmanager
    def _explaining(self, key: str) -> Iterator[None]:
        """Convert an error of the library to an ``OSError`` with the address, without the stack of the server."""
        place = self.uri(key)
        try:
            yield
        except FileNotFoundError as fault:
            raise FileNotFoundError(errno.ENOENT, _summarize(fault), place) from None
        except FileExistsError as fault:
            raise FileExistsError(errno.EEXIST, _summarize(fault), place) from None
        except (OSError, RuntimeError, ValueError) as fault:
            answer = _ANSWER.search(str(fault))
            if isinstance(fault, PermissionError):
                raise PermissionError(errno.EACCES, f"HDFS refuses: {_summarize(fault)}", place) from None
            if answer is None:
                raise OSError(errno.EIO, f"HDFS did not answer: {_summarize(fault)}", place) from None
            number = _ERRNO_BY_KIND.get(answer["kind"], errno.EIO)
            raise OSError(number, f"HDFS refuses: {answer['kind']}: {answer['said']}", place) from None


@lru_cache(maxsize=8)
def _connect(node: str, patience: float, found_by: tuple[str | None, ...]) -> Client:
    """A client for each cluster and user; it asks again for so many seconds."""
    from hdfs_native import Client

    del found_by
    attempts, pause = max(1, int(patience / _PAUSE)), _PAUSE * 1000
    retrying = {"dfs.client.failover.max.attempts": attempts, "dfs.client.failover.sleep.max.millis": pause}
    return Client(f"hdfs://{node}", {name: str(value) for name, value in retrying.items()})


def _path(key: str) -> str:
    return f"/{key}"


def _pointer_folder(key: str) -> str:
    return key.removesuffix(".json")


def _state_key(key: str, token: str) -> str:
    return f"{_pointer_folder(key)}{_STATES}/{token}.json"


def _folders_of_runs(key: str) -> Iterator[str]:
    """The folders that a file is in, as far as they are the product's own."""
    parts = key.split("/")[:-1]
    if HIDDEN in parts:
        yield from ("/".join(parts[:end]) for end in range(parts.index(HIDDEN) + 2, len(parts) + 1))


def _tag(status: FileStatus) -> str:
    """What tells a file from another one of the same name, as far as the name node tells."""
    return f"{status.modification_time}-{status.length}"


def _found(status: FileStatus) -> FoundObject:
    return FoundObject(status.path.lstrip("/"), status.length, _tag(status), status.modification_time / 1000)


def _summarize(fault: Exception) -> str:
    """The first line; the rest is the stack of the server."""
    return next(iter(str(fault).splitlines()), type(fault).__name__)
