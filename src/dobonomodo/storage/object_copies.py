"""Copies files between an object store and folders that driver and executors share; executors copy large ones.

If a task cannot reach the store or does not see a file, the driver copies it and reports errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from dobonomodo.storage.executors import Executors
from dobonomodo.storage.kept import hash_file
from dobonomodo.storage.objects import ObjectChangedError, Objects, Stamp, do_at_once


class Copy(NamedTuple):
    """An object, and the file that has or gets its content."""

    key: str
    path: Path
    size: int
    etag: str = ""
    """Of the object that is wanted."""


class Uploaded(NamedTuple):
    """An object that was made of a file."""

    stamp: Stamp
    sha256: str


def download_all(objects: Objects, copies: Sequence[Copy], executors: Executors | None) -> None:
    """Make files of objects, each as it was pinned; raises as ``Objects.download``."""
    wanted = list(copies)
    if executors is not None and sum(each.size for each in wanted) > executors.limits.object_bytes:
        for folder in {each.path.parent for each in wanted}:
            folder.mkdir(parents=True, exist_ok=True)
        done = executors.do(partial(_download_in_task, objects.for_tasks()), wanted) or [False] * len(wanted)
        wanted = [each for each, is_done in zip(wanted, done, strict=True) if not (is_done and _is_there(each))]
    do_at_once(partial(_download, objects), wanted)


def upload_all(objects: Objects, copies: Sequence[Copy], executors: Executors | None) -> list[Uploaded]:
    """Make objects of files, in their order."""
    done: Sequence[Uploaded | None] | None = None
    if executors is not None and sum(each.size for each in copies) > executors.limits.object_bytes:
        done = executors.do(partial(_upload_in_task, objects.for_tasks()), copies)
    left = zip(copies, done or [None] * len(copies), strict=True)
    return do_at_once(lambda item: item[1] or _upload(objects, item[0]), left)


def _is_there(copy: Copy) -> bool:
    return copy.path.exists() and copy.path.stat().st_size == copy.size


def _download(objects: Objects, copy: Copy) -> None:
    objects.download(copy.key, copy.path, size=copy.size, etag=copy.etag)


def _download_in_task(objects: Objects, copy: Copy) -> bool:
    """Whether it was done. An object that has changed is known to have changed."""
    # A folder that is not there is not shared.
    if not copy.path.parent.exists():
        return False
    try:
        _download(objects, copy)
    except (ObjectChangedError, FileNotFoundError):
        raise
    except OSError:
        return False
    return True


def _upload(objects: Objects, copy: Copy) -> Uploaded:
    return Uploaded(objects.upload(copy.path, copy.key), hash_file(copy.path))


def _upload_in_task(objects: Objects, copy: Copy) -> Uploaded | None:
    try:
        if not _is_there(copy):
            return None
        # An earlier attempt at this task may have made it; its tag counts, since another upload could get another one.
        found = objects.find(copy.key)
        if found is not None and found.size == copy.size:
            return Uploaded(Stamp(found.etag), hash_file(copy.path))
        return _upload(objects, copy)
    except OSError:
        return None
