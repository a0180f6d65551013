"""Copies of input files that stay when the originals change: each content once for all runs, found by its SHA-256.

A copy is verified whenever it is used; a copy whose hash differs from its name counts as missing.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from dobonomodo.storage.manifest import DATA, HIDDEN, MANIFEST, version_of

FOLDER = ".dobo/inputs"
"""Below the workspace."""
_OURS = "inputs"
_UNFINISHED = ".part"
_CLONE = 0x40049409
"""The request FICLONE of Linux: a copy that shares its blocks with the original."""
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that holds rows of an input."""

    path: str
    is_ours: bool = False
    """Whether this program wrote it and never changes it, so that a link to it is as good as a copy."""
    name: str | None = None
    """How people know it, where that is not the path."""


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A copy that is there."""

    path: Path
    sha256: str

    @property
    def since(self) -> float:
        """When it was put there; a link has the time of its content, so that is not asked."""
        return self.path.lstat().st_ctime

    @property
    def place(self) -> Path:
        """What is to be removed with it: the copy of a run's output has its manifest beside it."""
        version = version_of(self.path)
        return self.path if version is None else version


def hash_file(path: str | Path) -> str:
    """The SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class KeptInputs:
    """The copies of a workspace."""

    folder: Path

    @classmethod
    def of(cls, root: Path) -> KeptInputs:
        """Those of the workspace in a folder."""
        return cls(root / FOLDER)

    def keep(self, file: InputFile) -> str:
        """Hash a file and keep a copy of its content; returns the SHA-256. Raises ``OSError`` if the file cannot be read."""
        sha256 = hash_file(file.path)
        # A copy that cannot be written is simply missing later: the run itself does not need it.
        with suppress(OSError):
            self._add(Path(file.path), sha256, is_ours=file.is_ours)
        return sha256

    def find(self, sha256: str, *, name: str) -> Path | None:
        """The copy of a content, if it is what it says; ``name`` is that of the original."""
        for path in (self._place(sha256, name, managed=False), self._place(sha256, name, managed=True)):
            with suppress(OSError):
                if hash_file(path) == sha256:
                    return path
        return None

    def has(self, sha256: str, *, name: str) -> bool:
        """Whether there is a copy, without reading it."""
        return any(self._place(sha256, name, managed=managed).is_file() for managed in (False, True))

    def files(self) -> Iterator[KeptFile]:
        """All copies, and what killed processes left of some."""
        for path in _entries(self.folder):
            if path.is_file():
                yield KeptFile(path, path.name.partition(".")[0])
        for version in _entries(self.folder / HIDDEN / _OURS):
            for path in _entries(version / DATA):
                yield KeptFile(path, version.name)

    def _place(self, sha256: str, name: str, *, managed: bool) -> Path:
        if managed:
            # Where the manifest is found that says which columns the file has.
            return self.folder / HIDDEN / _OURS / sha256 / DATA / name
        return self.folder / f"{sha256}{Path(name).suffix}"

    def _add(self, source: Path, sha256: str, *, is_ours: bool) -> None:
        version = version_of(source)
        target = self._place(sha256, source.name, managed=version is not None)
        if target.exists():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f"{sha256}.{secrets.token_hex(4)}{_UNFINISHED}")
        try:
            if is_ours or version is not None:
                _link(source, unfinished, sha256)
            else:
                _copy(source, unfinished, sha256)
            if version is not None and (version / MANIFEST).is_file():
                shutil.copyfile(version / MANIFEST, target.parents[1] / MANIFEST)
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)


def _link(source: Path, target: Path, sha256: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        _copy(source, target, sha256)


def _copy(source: Path, target: Path, sha256: str) -> None:
    """Share the blocks where the disk can. Content that has changed since it was hashed is not kept."""
    with source.open("rb") as original, target.open("wb") as copy:
        if _clone(original, copy):
            return
        digest = hashlib.sha256()
        while block := original.read(_BLOCK):
            digest.update(block)
            copy.write(block)
    if digest.hexdigest() != sha256:
        raise OSError(f"`{source}` was changed")


def _clone(original: IO[bytes], copy: IO[bytes]) -> bool:
    try:
        import fcntl

        fcntl.ioctl(copy.fileno(), _CLONE, original.fileno())
    except (ImportError, OSError):
        return False
    return True


def _entries(folder: Path) -> Sequence[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return ()
