"""Files and tables that killed runs leave behind: a description with a size, and how to remove them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file, a folder or a table that is no longer needed."""

    kind: str
    """Such as `run folder` or `staging table`."""
    place: str
    """The path, or the name of the table."""
    run: str | None
    bytes: int
    remove: Callable[[], None] = field(repr=False, compare=False)

    @classmethod
    def of_path(cls, path: Path, *, kind: str, run: str | None = None) -> Leftover:
        """A file or a folder."""
        return cls(kind, str(path), run, _size_of(path), lambda: _remove(path))

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {"kind": self.kind, "place": self.place, "run_id": self.run, "bytes": self.bytes}


def find_last_change(path: Path) -> float:
    """When a file, or anything in a folder, was last written; a folder's own time does not tell of folders in it."""
    return max((found.lstat().st_mtime for found in _walk(path)), default=0.0)


def _size_of(path: Path) -> int:
    return sum(found.lstat().st_size for found in _walk(path) if not found.is_dir())


def _walk(path: Path) -> list[Path]:
    return [found for found in (path, *(path.rglob("*") if path.is_dir() else ())) if os.path.lexists(found)]


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
