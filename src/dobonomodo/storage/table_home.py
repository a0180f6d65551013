"""Where the files of a table are: a folder of this machine, or below a key of an object store.

Data files are made in a folder of this machine in both cases. That folder is the table's own, or what is uploaded to it.
A file is named from there, or by its whole path or address.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Protocol
from urllib.parse import unquote, urlparse

from dobonomodo.storage.address import Address, is_address
from dobonomodo.storage.durable import sync, write_durably
from dobonomodo.storage.files import PinnedFile
from dobonomodo.storage.kept import hash_file
from dobonomodo.storage.leftover import Leftover
from dobonomodo.storage.objects import Objects, do_at_once


class TableHome(Protocol):
    """The place of the files of one table. What goes wrong is an ``OSError``."""

    is_remote: ClassVar[bool]
    """Whether files have to be brought there."""

    @property
    def uri(self) -> str:
        """The path or address by which people know it."""
        ...

    @property
    def data(self) -> Path:
        """The folder of this machine in which the files of runs are made."""
        ...

    def locate(self, path: Path) -> str:
        """How a file that was made is named where it goes."""
        ...

    def prepare(self) -> None:
        """Make sure that files can be written."""
        ...

    def put(self, files: Sequence[Path]) -> None:
        """Store data files durably in the table's place, before a commit names them."""
        ...

    def write(self, path: str, content: bytes) -> None:
        """Store a small file durably."""
        ...

    def read(self, path: str) -> bytes | None:
        """The content of a small file; None if there is none."""
        ...

    def name(self, path: str) -> str:
        """The whole path or address of a file of the table."""
        ...

    def pin(self, path: str) -> PinnedFile:
        """A file of the table as it is now."""
        ...

    def hash(self, path: str) -> str:
        """The SHA-256 of a file of the table."""
        ...

    def fetch(self, path: str) -> Path:
        """A file of the table on this machine."""
        ...

    def find_folders(self, start: str) -> Iterator[tuple[str, Leftover]]:
        """The folders of runs whose names start so, and how to remove them."""
        ...


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """A folder of this machine."""

    data: Path

    is_remote: ClassVar[bool] = False

    @property
    def uri(self) -> str:
        """The path."""
        return str(self.data)

    def locate(self, path: Path) -> str:
        """Where it was made."""
        return str(path)

    def prepare(self) -> None:
        """Write a file and remove it."""
        self.data.mkdir(parents=True, exist_ok=True)
        probe = self.data / ".probe"
        probe.touch()
        probe.unlink(missing_ok=True)

    def put(self, files: Sequence[Path]) -> None:
        """They are there; have them be on the disk."""
        for path in files:
            sync(path)
        for folder in {path.parent for path in files} | {self.data}:
            sync(folder)

    def write(self, path: str, content: bytes) -> None:
        """To the disk."""
        target = self._path(path)
        write_durably(target, content)
        sync(target.parent)

    def read(self, path: str) -> bytes | None:
        """From the disk."""
        try:
            return self._path(path).read_bytes()
        except FileNotFoundError:
            return None

    def name(self, path: str) -> str:
        """The path."""
        return str(self._path(path))

    def pin(self, path: str) -> PinnedFile:
        """By size and time."""
        return PinnedFile.of(self._path(path))

    def hash(self, path: str) -> str:
        """Read where it is."""
        return hash_file(self._path(path))

    def fetch(self, path: str) -> Path:
        """Where it is."""
        return self._path(path)

    def find_folders(self, start: str) -> Iterator[tuple[str, Leftover]]:
        """Below the folders of periods."""
        for path in sorted(self.data.glob(f"*/{start}*")):
            yield path.name, Leftover.of_path(path, kind="staged files")

    def _path(self, path: str) -> Path:
        return self.data / local_path(path)


@dataclass(frozen=True, slots=True)
class ObjectFiles:
    """Objects below a key; their files are made in the folder of the run."""

    objects: Objects
    address: Address
    data: Path

    is_remote: ClassVar[bool] = True

    @property
    def uri(self) -> str:
        """The address."""
        return str(self.address)

    def locate(self, path: Path) -> str:
        """The address that it gets."""
        return self.objects.uri(self._key(path.relative_to(self.data).as_posix()))

    def prepare(self) -> None:
        """Ask the store, which refuses where it has to."""
        self.objects.look(self.address.key)

    def put(self, files: Sequence[Path]) -> None:
        """Upload those that are not there yet."""

        def upload(path: Path) -> None:
            key = self._key(path.relative_to(self.data).as_posix())
            found = self.objects.find(key)
            if found is None or found.size != path.stat().st_size:
                self.objects.upload(path, key)

        do_at_once(upload, files)

    def write(self, path: str, content: bytes) -> None:
        """Put it."""
        self.objects.put(self._key(path), content)

    def read(self, path: str) -> bytes | None:
        """Get it."""
        found = self.objects.read(self._key(path))
        return found[0] if found is not None else None

    def name(self, path: str) -> str:
        """The address."""
        return path if is_address(path) else f"{self.address}/{path}"

    def pin(self, path: str) -> PinnedFile:
        """By size and tag."""
        found = self.objects.find(self._key(path))
        if found is None:
            raise self._missing(path)
        return PinnedFile(self.objects.uri(found.key), found.size, int(found.modified * 1e9), found.etag)

    def fetch(self, path: str) -> Path:
        """A copy, in the folder of the run."""
        pinned, key = self.pin(path), self._key(path)
        copy = self.data / ".fetched" / self.address.relative(key)
        self.objects.download(key, copy, size=pinned.size, etag=pinned.etag or "")
        return copy

    def hash(self, path: str) -> str:
        """Read block by block."""
        found = self.objects.hash(self._key(path))
        if found is None:
            raise self._missing(path)
        return found

    def find_folders(self, start: str) -> Iterator[tuple[str, Leftover]]:
        """Below the keys of periods."""
        folders: dict[str, list[tuple[str, int]]] = {}
        for each in self.objects.list(self.address.key):
            parts = self.address.relative(each.key).split("/")
            if len(parts) == 3 and parts[1].startswith(start):
                folders.setdefault("/".join(parts[:2]), []).append((each.key, each.size))
        for folder, held in sorted(folders.items()):
            keys, size = [key for key, _ in held], sum(each for _, each in held)
            remove = partial(self.objects.delete, keys)
            yield folder.rpartition("/")[2], Leftover("staged files", f"{self.address}/{folder}", None, size, remove)

    def _key(self, path: str) -> str:
        if not is_address(path):
            return f"{self.address.key}/{path}".lstrip("/")
        address = Address.parse(path)
        if (address.scheme, address.bucket) != (self.address.scheme, self.address.bucket):
            raise OSError(None, f"it is in another bucket than `{self.address}`", path)
        return address.key

    def _missing(self, path: str) -> FileNotFoundError:
        return FileNotFoundError(2, "No such file or directory", self.name(path))


def local_path(path: str) -> Path:
    """The path of a file of this machine that a table names, maybe by an address."""
    return Path(unquote(urlparse(path).path)) if path.startswith("file:") else Path(path)
