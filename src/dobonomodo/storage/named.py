"""Files with names of their own: what people open, beside what the product keeps of every output.

A file is completed under a hidden name and renamed, so that a reader finds the old file or the new one. A mark beside the kept
data says what was put there: so a publication that was killed is completed, and a file that somebody else wrote or changed is
never replaced.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dobonomodo.failpoint import reach
from dobonomodo.storage.durable import sync, write_durably
from dobonomodo.storage.kept import hash_file
from dobonomodo.storage.manifest import HIDDEN

MARK = "named.json"


@dataclass(frozen=True, slots=True)
class NamedFile:
    """One file, or one part of a file that holds several outputs."""

    path: Path
    sheet: str | None = None

    @property
    def unfinished(self) -> Path:
        """Where the file is made; readers of folders skip hidden names."""
        return self.path.with_name(f".{self.path.name}.unfinished")

    def find_obstacle(self, versions: Iterable[Path]) -> str | None:
        """Why the file cannot be replaced; ``versions`` are what earlier publications kept."""
        if HIDDEN in self.path.parts:
            return "it is inside the folder of a table"
        if not self.path.exists():
            return None
        if not self.path.is_file():
            return "it is a folder"
        known = {mark["sha256"] for version in versions if (mark := _read_mark(version)) is not None}
        if hash_file(self.path) in known:
            return None
        return "the file exists, and is not as a run wrote it; move it elsewhere, or choose another name"

    def is_placed(self, version: Path) -> bool:
        """Whether the rows of a version are in the file."""
        mark = _read_mark(version)
        return mark is not None and bool(mark["placed"])

    @staticmethod
    def find_hash(version: Path) -> str | None:
        """The SHA-256 of the file that was made of the rows of a version; None if there was none."""
        mark = _read_mark(version)
        return str(mark["sha256"]) if mark is not None else None

    def place(self, versions: Iterable[Path]) -> None:
        """Put the finished file where it belongs, in one act, and remember it with the versions whose rows it holds."""
        versions = list(versions)
        sync(self.unfinished)
        told = {"file": str(self.path), "sha256": hash_file(self.unfinished)}
        for version in versions:
            write_durably(version / MARK, json.dumps({**told, "placed": False}).encode())
        reach("publish.naming")
        self.unfinished.replace(self.path)
        sync(self.path.parent)
        for version in versions:
            write_durably(version / MARK, json.dumps({**told, "placed": True}).encode())


def _read_mark(version: Path) -> dict[str, object] | None:
    try:
        found: dict[str, object] = json.loads((version / MARK).read_text())
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found
