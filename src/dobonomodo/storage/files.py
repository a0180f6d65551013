"""Which files a location has, in an order that does not depend on the machine."""

from __future__ import annotations

from pathlib import Path


def list_files(path: Path, *, suffixes: tuple[str, ...]) -> tuple[Path, ...]:
    """The data files at a path, by name: the file itself, or all files below a folder.

    Spark skips names that start with ``_`` or ``.`` without a word; below a folder they are the marks of writers, and a
    location that names such a file itself gets it.
    """
    if path.is_file():
        return (path,)
    found = [
        each
        for each in path.rglob("*")
        if each.is_file() and each.suffix in suffixes and not _is_hidden(each.relative_to(path))
    ]
    return tuple(sorted(found, key=lambda each: each.relative_to(path).as_posix()))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) and "=" not in part for part in path.parts)
