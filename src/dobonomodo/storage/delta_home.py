"""Where a Delta table is: a folder of this machine, or below a key of an object store.

Data files are made in a folder of this machine in both cases. That folder is the table itself, or what is uploaded to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from dobonomodo.storage.address import Address
from dobonomodo.storage.durable import sync
from dobonomodo.storage.files import PinnedFile
from dobonomodo.storage.kept import hash_file
from dobonomodo.storage.leftover import Leftover
from dobonomodo.storage.objects import Objects, do_at_once
from dobonomodo.storage.table_files import is_key

if TYPE_CHECKING:
    from deltalake import DeltaTable

LOG = "_delta_log"
_HURTFUL = re.compile(r"[\[\]\\^|\x00-\x1f]|%[0-9A-Fa-f]{2}")


def log_name(version: int) -> str:
    """The name of the file that holds a version."""
    return f"{version:020}.json"


class DeltaHome(Protocol):
    """The place of one table. What goes wrong is an ``OSError``, or an error of the library."""

    is_remote: ClassVar[bool]
    """Whether files have to be brought there."""

    @property
    def uri(self) -> str:
        """The address by which the library and people know it."""
        ...

    @property
    def options(self) -> dict[str, str] | None:
        """What the library needs to reach it."""
        ...

    @property
    def data(self) -> Path:
        """The folder of this machine in which the files of runs are made."""
        ...

    def explain(self) -> str | None:
        """Why there can be no table; None if there can."""
        ...

    def open(self) -> DeltaTable | None:
        """The table as it is now; None if there is none."""
        ...

    def find_foreign(self) -> str | None:
        """What is there, where there is no table, and no run put there."""
        ...

    def prepare(self) -> None:
        """See to it that files can be written."""
        ...

    def put(self, files: Sequence[Path]) -> None:
        """Have data files be in the table's place for good, before a commit names them."""
        ...

    def settle(self, version: int) -> None:
        """Have the commit of a version be there for good."""
        ...

    def read_log(self, version: int) -> str | None:
        """The commit of a version; None if it was removed."""
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
class LocalHome:
    """A folder of this machine."""

    data: Path

    is_remote: ClassVar[bool] = False

    @property
    def uri(self) -> str:
        """The path."""
        return str(self.data)

    @property
    def options(self) -> None:
        """None are needed."""

    def explain(self) -> str | None:
        """The library takes some characters of a path for others."""
        if self.data.exists() and not self.data.is_dir():
            return "it is a file, not a folder"
        found = _HURTFUL.search(str(self.data))
        return f"its path contains `{found[0]}`, which Delta cannot address" if found else None

    def open(self) -> DeltaTable | None:
        """By its log."""
        return open_table(self) if (self.data / LOG).is_dir() else None

    def find_foreign(self) -> str | None:
        """A name in the folder."""
        names = sorted(path.name for path in self.data.iterdir()) if self.data.is_dir() else []
        return next((name for name in names if not _is_ours(name)), None)

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

    def settle(self, version: int) -> None:
        """Have it be on the disk."""
        sync(self.data / LOG / log_name(version))
        sync(self.data / LOG)

    def read_log(self, version: int) -> str | None:
        """From the folder of the log."""
        try:
            return (self.data / LOG / log_name(version)).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def pin(self, path: str) -> PinnedFile:
        """By size and time."""
        return PinnedFile.of(self.data / path)

    def hash(self, path: str) -> str:
        """Read where it is."""
        return hash_file(self.data / path)

    def fetch(self, path: str) -> Path:
        """Where it is."""
        return self.data / path

    def find_folders(self, start: str) -> Iterator[tuple[str, Leftover]]:
        """Below the folders of periods."""
        for path in sorted(self.data.glob(f"*/{start}*")):
            yield path.name, Leftover.of_path(path, kind="staged files")


@dataclass(frozen=True, slots=True)
class ObjectHome:
    """Objects below a key; their files are made in the folder of the run."""

    objects: Objects
    address: Address
    data: Path

    is_remote: ClassVar[bool] = True

    @property
    def uri(self) -> str:
        """The address."""
        return str(self.address)

    @property
    def options(self) -> dict[str, str]:
        """What a datasource says; the rest the library finds in the environment, as other tools do."""
        access = self.objects.access
        found = {"AWS_ALLOW_HTTP": "true"}
        if access.endpoint is not None:
            found["AWS_ENDPOINT_URL"] = access.endpoint
        if access.region is not None:
            found["AWS_REGION"] = access.region
        if access.secret is not None and self.address.scheme == "s3":
            keys = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
            found |= dict(zip(keys, access.secret.split(":", 2), strict=False))
        return found

    def explain(self) -> str | None:
        """The library takes some characters of a key for others."""
        found = _HURTFUL.search(self.address.key)
        return f"its address contains `{found[0]}`, which Delta cannot address" if found else None

    def open(self) -> DeltaTable | None:
        """By its log."""
        return open_table(self)

    def find_foreign(self) -> str | None:
        """A name below the key."""
        names = (self.address.relative(each.key).partition("/")[0] for each in self.objects.list(self.address.key))
        return next((name for name in names if not _is_ours(name)), None)

    def prepare(self) -> None:
        """Ask the store, which refuses where it has to."""
        self.objects.find(self._key(LOG))

    def put(self, files: Sequence[Path]) -> None:
        """Upload those that are not there yet."""

        def upload(path: Path) -> None:
            key = self._key(path.relative_to(self.data).as_posix())
            found = self.objects.find(key)
            if found is None or found.size != path.stat().st_size:
                self.objects.upload(path, key)

        do_at_once(upload, files)

    def settle(self, version: int) -> None:
        """The store has it."""
        del version

    def read_log(self, version: int) -> str | None:
        """From below the key of the log."""
        found = self.objects.read(self._key(f"{LOG}/{log_name(version)}"))
        return found[0].decode() if found is not None else None

    def pin(self, path: str) -> PinnedFile:
        """By size and tag."""
        found = self.objects.find(self._key(path))
        if found is None:
            raise FileNotFoundError(2, "No such file or directory", f"{self.address}/{path}")
        return PinnedFile(self.objects.uri(found.key), found.size, int(found.modified * 1e9), found.etag)

    def fetch(self, path: str) -> Path:
        """A copy, in the folder of the run."""
        pinned, copy = self.pin(path), self.data / ".fetched" / path
        self.objects.download(self._key(path), copy, size=pinned.size, etag=pinned.etag or "")
        return copy

    def hash(self, path: str) -> str:
        """Read block by block."""
        found = self.objects.hash(self._key(path))
        if found is None:
            raise FileNotFoundError(2, "No such file or directory", f"{self.address}/{path}")
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
        return f"{self.address.key}/{path}"


def open_table(home: DeltaHome) -> DeltaTable | None:
    """A table as it is now; None if there is none."""
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        return DeltaTable(home.uri, storage_options=home.options)
    except TableNotFoundError:
        return None


def _is_ours(name: str) -> bool:
    return name.startswith((".", LOG)) or is_key(name.partition("=")[0])
