"""The way between the driver and Spark's workers where they share nothing but an object store.

Files of the driver are uploaded once, where Spark reads them; what Spark has written is downloaded. No other module knows how.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from dobonomodo.problems import RunFailed
from dobonomodo.problems.definition import InvalidValue
from dobonomodo.problems.run import ScratchUnreachable
from dobonomodo.storage.access import Access
from dobonomodo.storage.address import HDFS, Address, check_address
from dobonomodo.storage.files import is_hidden
from dobonomodo.storage.leftover import Leftover
from dobonomodo.storage.object_copies import Copy, download_all
from dobonomodo.storage.objects import FoundObject, Objects, do_at_once, open_objects

if TYPE_CHECKING:
    from pyspark.sql import DataFrameWriter

    from dobonomodo.problems import Passage, Problem

UPLOADED, WRITTEN = "inputs", "outputs"
"""What a run has there: files for Spark to read, and rows that Spark has staged."""
PROBE = "probe-"
"""How the names begin of what is written to try whether workers reach a place."""
OF_PART = "~"
"""Between the number of a part of an output and what Spark calls the file, in the names of files on this machine."""
_PLAIN = re.compile(r"[A-Za-z0-9_./=+-]*")
_SPARK_SCHEME = {"s3": "s3a"}
"""The schemes that Spark knows under another name."""


def modules_of(address: str) -> tuple[str, ...]:
    """What a driver needs for an address."""
    return ("hdfs_native" if address.startswith(f"{HDFS}:") else "obstore", "pyarrow")


def check_scratch(passage: Passage) -> Iterator[Problem]:
    """An address that Spark and the driver can both follow."""
    problems = list(check_address(passage, "scratch"))
    yield from problems
    if problems:
        return
    address, span = Address.parse(passage.value), passage.span(0, len(passage.value))
    found = f"`{passage.value}`"
    if address.scheme == "az" and address.account is None:
        expected = "an address with the account, which Spark has to know"
        advice = "write `abfss://container@account.dfs.core.windows.net/folder`"
        yield InvalidValue(key="scratch", expected=expected, found=found, advice=advice, span=span)
    elif not address.key:
        advice = f"write `{passage.value.rstrip('/')}/dobo`, or another folder"
        yield InvalidValue(
            key="scratch", expected="an address with a folder in the bucket", found=found, advice=advice, span=span
        )
    elif not _PLAIN.fullmatch(address.key):
        expected = "an address of letters, digits and `_ . / = + -`"
        yield InvalidValue(key="scratch", expected=expected, found=found, span=span)


class Transport:
    """The objects of all runs below an address, or those of one run."""

    def __init__(self, objects: Objects, prefix: Address) -> None:
        self.objects, self.prefix = objects, prefix
        self._sizes: dict[str, int] | None = None
        """The bytes of every object that is known, by its key."""
        self._staged: dict[str, str] = {}
        """The keys of rows that Spark has staged, by the names that their files have on this machine."""

    @classmethod
    def of(cls, address: str) -> Self:
        """What is below an address; credentials come by the usual chain of the store's tools."""
        parsed = Address.parse(address)
        return cls(open_objects(parsed, Access()), parsed)

    def below(self, place: str) -> Self:
        """A part of it, such as that of a run."""
        return type(self)(self.objects, self.prefix / place)

    def __str__(self) -> str:
        return str(self.prefix)

    def address(self, place: str) -> str:
        """A place as Spark spells it."""
        scheme, _, rest = str(self.prefix / place).partition("://")
        return f"{_SPARK_SCHEME.get(scheme, scheme)}://{rest}"

    # --- from here to Spark

    def bring(self, files: Sequence[Path]) -> list[str]:
        """The addresses at which Spark reads files of this machine; those that are not there yet are uploaded."""
        with self._explaining():
            places = [self._find(path) for path in files]
            missing = {place: path for place, path in zip(places, files, strict=True) if not self._has(place, path)}
            do_at_once(lambda item: self._upload(*item), missing.items())
        return [self.address(place) for place in places]

    def put(self, place: str, path: Path) -> str:
        """Upload a file; returns its address as Spark spells it."""
        with self._explaining():
            self._upload(place, path)
        return self.address(place)

    def note(self, place: str, text: str) -> None:
        """Keep a short text."""
        with self._explaining():
            self.objects.put(self._key(place), text.encode())

    def read_note(self, place: str) -> str | None:
        """A short text that was kept."""
        with self._explaining():
            found = self.objects.read(self._key(place))
        return found[0].decode() if found is not None else None

    def _find(self, path: Path) -> str:
        """Where the content of a file is, or will be: an upload is named by the file as it is now."""
        known, stat = self._known(), path.stat()
        staged = self._staged.get(path.name)
        if staged is not None and known[self._key(staged)] == stat.st_size:
            return staged
        state = f"{path.absolute()}\0{stat.st_size}\0{stat.st_mtime_ns}"
        return f"{UPLOADED}/{hashlib.sha256(state.encode('utf-8', 'surrogateescape')).hexdigest()[:20]}.parquet"

    def _has(self, place: str, path: Path) -> bool:
        return self._known().get(self._key(place)) == path.stat().st_size

    def _upload(self, place: str, path: Path) -> None:
        self.objects.upload(path, self._key(place))
        self._known()[self._key(place)] = path.stat().st_size

    def _known(self) -> dict[str, int]:
        """What is there: an earlier attempt may have uploaded or written it."""
        if self._sizes is None:
            self._sizes = {}
            for place in (UPLOADED, WRITTEN):
                self._remember(self.objects.list(self._key(place)))
        return self._sizes

    def _remember(self, found: Sequence[FoundObject]) -> None:
        sizes = self._known()
        for each in found:
            sizes[each.key] = each.size
            place = self.prefix.relative(each.key)
            if place.startswith(f"{WRITTEN}/") and _is_data(place):
                self._staged[_file_name(place)] = place

    # --- from Spark to here

    def fetch(self, place: str, folder: Path) -> None:
        """Download the Parquet files that Spark has written; the number of a part comes in front of the name of its file."""
        with self._explaining():
            found = [each for each in self.objects.list(self._key(place)) if _is_data(self.prefix.relative(each.key))]
            folder.mkdir(parents=True, exist_ok=True)
            copies = [Copy(each.key, folder / _file_name(each.key), each.size, each.etag) for each in found]
            download_all(self.objects, copies, None)
            self._remember(found)

    def files(self, place: str) -> list[str]:
        """The names of the Parquet files at a place."""
        with self._explaining():
            found = [self.prefix.relative(each.key) for each in self.objects.list(self._key(place))]
        return [each.rpartition("/")[2] for each in found if _is_data(each)]

    # --- what is left

    def names(self) -> Sequence[str]:
        """What there is right below: runs, or parts of a run."""
        with self._explaining():
            return self.objects.names(self.prefix.key)

    def find_leftover(self, place: str = "", *, kind: str, run: str) -> Leftover:
        """Everything at a place, to be removed."""
        with self._explaining():
            size = sum(each.size for each in self.objects.list(self._key(place)))
        return Leftover(kind, str(self.prefix / place), run, size, partial(self.remove, place))

    def find_last_change(self, place: str = "") -> float:
        """When the newest object was written."""
        with self._explaining():
            return max((each.modified for each in self.objects.list(self._key(place))), default=0.0)

    def remove(self, place: str = "") -> None:
        """Remove everything at a place."""
        with self._explaining():
            self.objects.delete_tree(self._key(place))
        self._sizes, self._staged = None, {}

    def clear(self, *, but: str) -> None:
        """Remove everything but one part."""
        names = self.names()
        for place in [name for name in names if name != but] if but in names else [""]:
            self.remove(place)

    def _key(self, place: str) -> str:
        return (self.prefix / place).key

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Say of which address an error is."""
        try:
            yield
        except OSError as fault:
            detail = fault.strerror or next(iter(str(fault).splitlines()), type(fault).__name__)
            raise RunFailed(ScratchUnreachable(address=str(self), detail=detail)) from fault


def write_rows(writer: DataFrameWriter, folder: Path, place: str, transport: Transport | None) -> None:
    """Let Spark write Parquet files into a folder of this machine: by a place that its workers reach, where they do not see it."""
    if transport is None:
        writer.parquet(str(folder))
    else:
        writer.parquet(transport.address(place))
        shutil.rmtree(folder, ignore_errors=True)
        transport.fetch(place, folder)


def _is_data(place: str) -> bool:
    return place.endswith(".parquet") and not any(is_hidden(part) for part in place.split("/"))


def _file_name(place: str) -> str:
    """The name of a file on this machine: with the number of its part, where Spark has a folder for each."""
    folder, _, name = place.rpartition("/")
    _, is_part, number = folder.rpartition("/")[2].partition("=")
    return f"{number}{OF_PART}{name}" if is_part else name
