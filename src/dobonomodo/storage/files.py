"""Which files a location has, in an order that does not depend on the machine, and whether they are still the same."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dobonomodo.model.plain import Document
from dobonomodo.problems.problem import LISTED_AT_MOST
from dobonomodo.storage.manifest import HIDDEN
from dobonomodo.storage.pointer import find_folder


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A file as it was when a run set out to read it."""

    path: str
    size: int
    modified: int
    """In nanoseconds since 1970."""
    etag: str | None = None
    """The tag of an object's content; None for a file of this machine."""

    @classmethod
    def of(cls, path: Path) -> PinnedFile:
        """A file as it is now; links are followed, so that a link that moves on does not move the run."""
        real = path.resolve()
        try:
            found = real.stat()
        except FileNotFoundError as fault:
            raise FileNotFoundError(fault.errno, fault.strerror, str(path)) from fault
        return cls(str(real), found.st_size, found.st_mtime_ns)

    def document(self) -> dict[str, object]:
        """As plain data."""
        own: dict[str, object] = {"path": self.path, "size": self.size, "modified": self.modified}
        return own if self.etag is None else {**own, "etag": self.etag}

    @classmethod
    def load(cls, document: Document) -> PinnedFile:
        """From plain data."""
        return cls(str(document["path"]), int(document["size"]), int(document["modified"]), document.get("etag"))


def leads_out(folder: Path, path: Path) -> bool:
    """Whether a path ends up outside of a folder, by symbolic links or otherwise; what does not exist yet is taken as it is."""
    return not is_below(os.path.realpath(path), [os.path.realpath(folder)])


def datasource_folders(prefix: Path) -> tuple[str, ...]:
    """Where files of a datasource may be: below its folder, or where the outputs that are that folder keep theirs. No links."""
    real = find_folder(prefix)
    return tuple(os.path.realpath(each) for each in (real, real.parent / HIDDEN / real.name))


def is_below(real: str, folders: Iterable[str]) -> bool:
    """Whether a path without links is one of some folders, or below one."""
    return any(real == folder or real.startswith(os.path.join(folder, "")) for folder in folders)


def pin_files(path: Path) -> tuple[PinnedFile, ...]:
    """The files at a path: the file itself, or every file below a folder that is not hidden."""
    return tuple(PinnedFile.of(each) for each in list_files(path))


def list_files(path: Path) -> tuple[Path, ...]:
    """The data files at a path, by name. No visible file is skipped: every file in a data folder is data.

    Below a folder, names that start with ``_`` or ``.`` are the marks of writers; a location that names such a file itself
    gets it.
    """
    if not stat.S_ISDIR(path.stat().st_mode):
        return (path,)
    real = path.resolve()
    return tuple(found for _, found in sorted(_walk(real, "", {real})))


def list_beside(missing: Path) -> tuple[str, ...]:
    """What there is in the nearest folder above a path that is missing; names that are most like it come first."""
    folder = missing.parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    wanted = missing.relative_to(folder).parts[0]
    try:
        return most_alike(os.listdir(folder), wanted)
    except OSError:
        return ()


def most_alike(names: Iterable[str], wanted: str) -> tuple[str, ...]:
    """Names that are not hidden; those that are most like another come first."""
    shown = [name for name in names if not is_hidden(name)]
    return tuple(sorted(shown, key=lambda name: (-_count_equal(name, wanted), name))[:LISTED_AT_MOST])


def _count_equal(one: str, other: str) -> int:
    """How many characters at the start are the same."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _walk(folder: Path, prefix: str, seen: set[Path]) -> Iterator[tuple[str, Path]]:
    """Files with the names to sort them by; a folder that cannot be listed fails.

    A link is followed before what is behind it is listed, so that files of one version of it do not mix with those of the next.
    """
    for name in sorted(os.listdir(folder)):
        if is_hidden(name):
            continue
        path = folder / name
        if not path.is_dir():
            yield prefix + name, path
            continue
        real = path.resolve()
        if real not in seen:
            seen.add(real)
            yield from _walk(real, f"{prefix}{name}/", seen)


def is_hidden(name: str) -> bool:
    """Whether what is below a folder is a mark of a writer, and no data."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def find_changes(before: Sequence[PinnedFile]) -> tuple[str, ...]:
    """Changes to files since they were pinned; none, if they can be read as they were."""
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
            changes.append(f"`{pinned.path}` was changed")
    return tuple(changes)


def link_file(path: Path, copy: Path) -> None:
    """Hard-link a file, or copy it if the disk does not support links."""
    try:
        os.link(path, copy)
    except OSError:
        shutil.copy2(path, copy)
