"""Which files a location has, in an order that does not depend on the machine, and whether they are still the same."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A file as it was when a run set out to read it."""

    path: str
    size: int
    modified: int
    """In nanoseconds since 1970."""

    @classmethod
    def of(cls, path: Path) -> PinnedFile:
        """A file as it is now; links are followed, so that a link that moves on does not move the run."""
        real = path.resolve()
        found = real.stat()
        return cls(str(real), found.st_size, found.st_mtime_ns)

    def document(self) -> dict[str, Any]:
        """As plain data."""
        return {"path": self.path, "size": self.size, "modified": self.modified}

    @classmethod
    def load(cls, document: Mapping[str, Any]) -> PinnedFile:
        """From plain data."""
        return cls(str(document["path"]), int(document["size"]), int(document["modified"]))


def pin_files(path: Path) -> tuple[PinnedFile, ...]:
    """The files at a path: the file itself, or every file below a folder that is not hidden."""
    return tuple(PinnedFile.of(each) for each in list_files(path))


def list_files(path: Path) -> tuple[Path, ...]:
    """The data files at a path, by name. Nothing that can be seen is skipped: whatever lies in a folder of data is data.

    Below a folder, names that start with ``_`` or ``.`` are the marks of writers; a location that names such a file itself
    gets it.
    """
    if path.is_file():
        return (path,)
    if not path.is_dir():
        raise FileNotFoundError(str(path))
    return tuple(sorted(_walk(path), key=lambda each: each.relative_to(path).as_posix()))


def _walk(folder: Path) -> Iterator[Path]:
    seen = set()
    for place, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = [name for name in folders if not _is_hidden(name)]
        yield from (Path(place, name) for name in files if not _is_hidden(name))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def find_changes(before: Sequence[PinnedFile]) -> tuple[str, ...]:
    """What became of files since they were pinned; nothing, if they can be read as they were."""
    changes = []
    for pinned in before:
        try:
            now = PinnedFile.of(Path(pinned.path))
        except OSError:
            changes.append(f"`{pinned.path}` is gone")
            continue
        if now.size != pinned.size:
            changes.append(f"`{pinned.path}` had {pinned.size} bytes, now {now.size}")
        elif now.modified != pinned.modified:
            changes.append(f"`{pinned.path}` was written to since")
    return tuple(changes)
