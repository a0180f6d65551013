"""How Spark addresses files of this machine."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dobonomodo.storage.transport import Transport

PLAIN = re.compile(r"[A-Za-z0-9_./=+-]+")
"""A path or a name in which Spark finds no pattern."""


@dataclass(frozen=True, slots=True)
class Links:
    """By their paths, by links whose names Spark takes literally, or as objects where its workers share no files with us."""

    folder: Path
    """Where links are made."""
    transport: Transport | None = None

    def addresses(self, files: Sequence[Path]) -> list[str]:
        """What Spark reads, for each file."""
        if self.transport is not None:
            return self.transport.bring(files)
        return [self._link(path, number) for number, path in enumerate(files)]

    def _link(self, path: Path, number: int) -> str:
        """A path that Spark takes literally: it skips names with ``_`` or ``.`` in front, and reads ``*?[]{}`` as patterns."""
        if PLAIN.fullmatch(str(path)) and not path.name.startswith(("_", ".")):
            return str(path)
        self.folder.mkdir(parents=True, exist_ok=True)
        link = self.folder / f"file-{_hash_text(str(path)):016x}-{number}.parquet"
        link.unlink(missing_ok=True)
        link.symlink_to(path)
        return str(link)


def _hash_text(text: str) -> int:
    """A number for a text, the same in every process."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()[:8], "big")
