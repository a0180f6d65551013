"""One pointer per datasource of files: changing it publishes any number of tables atomically.

``<table>`` is a link that leads through the pointer ``.dobo-data/.current`` to the state of the table: a folder with one link
per run period. States are never changed, only replaced, and replacing the pointer is one rename. A reader that has resolved
the pointer once sees all tables as they were at that moment.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from dobonomodo.failpoint import reach
from dobonomodo.storage.durable import sync
from dobonomodo.storage.manifest import HIDDEN

CURRENT = ".current"
STATES = ".states"
TABLES = ".tables"

_LONGEST = 200
"""Bytes of a name; file systems take 255."""
_LINKS = 40
"""Links that a path may lead through, as on most systems."""
_HERE = -100
_EXCHANGE = 2


@dataclass(frozen=True, slots=True)
class Pointer:
    """The pointer of the tables below a folder."""

    prefix: Path

    @classmethod
    def of(cls, folder: Path, *, prefix: Path) -> Pointer:
        """The pointer that a table is read through; a table that has none yet gets that of its datasource."""
        found = _find_prefix(folder)
        return cls(found or prefix)

    @property
    def _hidden(self) -> Path:
        return self.prefix / HIDDEN

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One publication at a time, over all runs that write below the folder."""
        self._hidden.mkdir(parents=True, exist_ok=True)
        with (self._hidden / ".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def publish(self, changes: Mapping[Path, Mapping[str, Path]]) -> None:
        """Atomically give tables new links. ``changes`` are folders of data by link and by the folder of the table.

        The lock is held by the caller. Links that are not among the changes stay.
        """
        for folder in changes:
            self._adopt(folder)
        for folder in changes:
            self._link(folder)
        self._swap({folder: {**links_of(folder), **links} for folder, links in changes.items()})

    def _adopt(self, folder: Path) -> None:
        """Move a folder of links, as older versions created it, behind the pointer; readers are not affected."""
        if folder.is_symlink() or not folder.is_dir():
            return
        self._swap({folder: links_of(folder)})
        fresh = self._make_link(folder)
        if _exchange(fresh, folder):
            shutil.rmtree(fresh)
        else:
            old = fresh.with_name(f"{fresh.name}.old")
            folder.rename(old)
            fresh.rename(folder)
            shutil.rmtree(old)
        sync(folder.parent)

    def _link(self, folder: Path) -> None:
        """The link that readers begin with; it leads nowhere until the first state of its table is current."""
        if not folder.is_symlink():
            folder.parent.mkdir(parents=True, exist_ok=True)
            self._make_link(folder).replace(folder)
            sync(folder.parent)

    def _make_link(self, folder: Path) -> Path:
        fresh = folder.with_name(f".{folder.name}.link")
        fresh.unlink(missing_ok=True)
        target = self._hidden / CURRENT / self._key(folder)
        fresh.symlink_to(os.path.relpath(target, folder.parent), target_is_directory=True)
        return fresh

    def _swap(self, links_by_folder: Mapping[Path, Mapping[str, Path]]) -> None:
        """Make a state of all tables in which some have new links, then make it the current one."""
        before = self._hidden / CURRENT
        number = self._next_number()
        state = self._hidden / STATES / number
        state.mkdir(parents=True)
        for entry in sorted(before.iterdir()) if before.exists() else ():
            (state / entry.name).symlink_to(os.readlink(entry), target_is_directory=True)
        for folder, links in links_by_folder.items():
            key = self._key(folder)
            table = self._hidden / TABLES / key / number
            table.mkdir(parents=True)
            for name, data in links.items():
                (table / name).symlink_to(os.path.relpath(data, table), target_is_directory=True)
            sync(table)
            sync(table.parent)
            (state / key).unlink(missing_ok=True)
            (state / key).symlink_to(os.path.relpath(table, state), target_is_directory=True)
        sync(state)
        sync(state.parent)
        fresh = self._hidden / f"{CURRENT}.next"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(os.path.relpath(state, self._hidden), target_is_directory=True)
        reach("publish.during")
        fresh.replace(before)
        sync(self._hidden)

    def sweep(self, *, before: float) -> None:
        """Remove states that were replaced before a time; readers may still follow the others."""
        current = (self._hidden / CURRENT).resolve()
        used = {entry.resolve() for entry in current.iterdir()} if current.is_dir() else set()
        states = [*_entries(self._hidden / STATES)]
        tables = [each for table in _entries(self._hidden / TABLES) for each in _entries(table)]
        for folder in (*states, *tables):
            # Most are recent, and need not be looked at further.
            if folder.lstat().st_mtime < before and folder.resolve() not in {current, *used}:
                shutil.rmtree(folder, ignore_errors=True)

    def _key(self, folder: Path) -> str:
        name = quote(os.path.relpath(folder, self.prefix), safe="")
        if len(name) <= _LONGEST:
            return name
        return f"{name[: _LONGEST - 65]}~{hashlib.sha256(name.encode()).hexdigest()}"

    def _next_number(self) -> str:
        """Unique among the states and tables that there are, those of killed publications too."""
        known = [int(entry.name) for entry in _entries(self._hidden / STATES) if entry.name.isdigit()]
        return str(max(known, default=0) + 1)


def find_folder(path: Path) -> Path:
    """The folder that a path leads to, through links of the user's, up to a link that leads through a pointer."""
    for _ in range(_LINKS):
        path = Path(os.path.realpath(path.parent)) / path.name
        if not path.is_symlink() or _find_prefix(path) is not None:
            return path
        path = Path(os.path.normpath(path.parent / os.readlink(path)))
    return Path(os.path.realpath(path))


def _find_prefix(folder: Path) -> Path | None:
    """The folder whose pointer a link leads through; None for any other folder or link."""
    if not folder.is_symlink():
        return None
    target = Path(os.path.normpath(folder.parent / os.readlink(folder)))
    is_ours = target.parent.name == CURRENT and target.parent.parent.name == HIDDEN
    return target.parent.parent.parent if is_ours else None


def links_of(folder: Path) -> dict[str, Path]:
    """The folders of data that a table has now, by the names of their links."""
    if not folder.is_dir():
        return {}
    return {entry.name: entry.resolve() for entry in folder.iterdir() if entry.is_symlink()}


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _exchange(one: Path, other: Path) -> bool:
    """Atomically exchange two names; False if the system does not support it."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError):
        return False
    return bool(rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)
