"""Where a Delta table is, with its log: a folder of this machine, or below a key of an object store."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dobonomodo.storage.durable import sync
from dobonomodo.storage.table_files import is_key
from dobonomodo.storage.table_home import LocalFiles, ObjectFiles, TableHome

if TYPE_CHECKING:
    from deltalake import DeltaTable

LOG = "_delta_log"
_HURTFUL = re.compile(r"[\[\]\\^|\x00-\x1f]|%[0-9A-Fa-f]{2}")


def log_name(version: int) -> str:
    """The name of the file that holds a version."""
    return f"{version:020}.json"


class DeltaHome(TableHome, Protocol):
    """The place of one table. What goes wrong is an ``OSError``, or an error of the library."""

    @property
    def spark_uri(self) -> str:
        """The address by which the connector of Spark knows it."""
        ...

    @property
    def options(self) -> dict[str, str] | None:
        """What the library needs to reach it."""
        ...

    def explain(self) -> str | None:
        """Why there can be no table; None if there can."""
        ...

    def open(self) -> DeltaTable | None:
        """The table as it is now; None if there is none."""
        ...

    def find_foreign(self) -> str | None:
        """Foreign content in a place that has no table yet."""
        ...

    def settle(self, version: int) -> None:
        """Make the commit of a version durable."""
        ...


@dataclass(frozen=True, slots=True)
class LocalHome(LocalFiles):
    """A folder of this machine."""

    @property
    def spark_uri(self) -> str:
        """An address, so that no other file system is asked for the path."""
        return f"file://{self.data}"

    @property
    def options(self) -> None:
        """None are needed."""

    def explain(self) -> str | None:
        """The library misreads some characters of a path."""
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

    def settle(self, version: int) -> None:
        """Have it be on the disk."""
        sync(self.data / LOG / log_name(version))
        sync(self.data / LOG)


@dataclass(frozen=True, slots=True)
class ObjectHome(ObjectFiles):
    """Objects below a key."""

    @property
    def spark_uri(self) -> str:
        """The same address, in the spelling of Hadoop."""
        return self.uri.replace("s3://", "s3a://", 1)

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
        """The library misreads some characters of a key."""
        found = _HURTFUL.search(self.address.key)
        return f"its address contains `{found[0]}`, which Delta cannot address" if found else None

    def open(self) -> DeltaTable | None:
        """By its log."""
        return open_table(self)

    def find_foreign(self) -> str | None:
        """A name below the key."""
        names = (self.address.relative(each.key).partition("/")[0] for each in self.objects.list(self.address.key))
        return next((name for name in names if not _is_ours(name)), None)

    def settle(self, version: int) -> None:
        """The store has it."""
        del version


def open_table(home: DeltaHome) -> DeltaTable | None:
    """A table as it is now; None if there is none."""
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        return DeltaTable(home.uri, storage_options=home.options)
    except TableNotFoundError:
        return None


def read_log(home: DeltaHome, version: int) -> str | None:
    """The commit of a version; None if it was removed."""
    found = home.read(f"{LOG}/{log_name(version)}")
    return found.decode() if found is not None else None


def _is_ours(name: str) -> bool:
    return name.startswith((".", LOG)) or is_key(name.partition("=")[0])
