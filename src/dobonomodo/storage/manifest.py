"""What each version of a destination of files holds: which files, with which columns, of which types."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dobonomodo.formula import Type
from dobonomodo.formula.types import parse_type
from dobonomodo.model.plain import Document
from dobonomodo.storage.schema import type_of_arrow

HIDDEN = ".dobo-data"
MANIFEST = "manifest.json"
DATA = "data"


@dataclass(frozen=True, slots=True)
class Part:
    """The files that one output wrote, which all have the same columns."""

    files: tuple[str, ...]
    columns: Mapping[str, Type | None]
    """A type that nobody recorded is None."""

    def document(self) -> dict[str, object]:
        """As plain data."""
        types = {name: None if kind is None else str(kind) for name, kind in self.columns.items()}
        return {"files": list(self.files), "columns": types}

    @classmethod
    def load(cls, document: Document) -> Part:
        """From plain data."""
        columns = {name: parse_type(kind) if kind else None for name, kind in document["columns"].items()}
        return cls(tuple(document["files"]), columns)


def read_parts(version: Path) -> list[Part]:
    """What is in a version; nothing if it has no manifest, as it was not published."""
    try:
        manifest: Document = json.loads((version / MANIFEST).read_text())
    except FileNotFoundError:
        return []
    if "parts" in manifest:
        return [Part.load(each) for each in manifest["parts"]]
    return list(_read_unrecorded(version, manifest["columns"]))


def read_hashes(version: Path) -> dict[str, str]:
    """The SHA-256 of the files of a version, as far as its manifest has them."""
    try:
        manifest: Document = json.loads((version / MANIFEST).read_text())
    except FileNotFoundError:
        return {}
    return dict(manifest.get("sha256", {}))


def _read_unrecorded(version: Path, names: Sequence[str]) -> Iterator[Part]:
    """What is in a version whose manifest has no types: Parquet files say it themselves, CSV files do not."""
    files = sorted(path for path in (version / DATA).iterdir())
    for path in files:
        columns = _read_footer(path) if path.suffix == ".parquet" else dict.fromkeys(names)
        yield Part((path.name,), columns)


def _read_footer(path: Path) -> dict[str, Type | None]:
    import pyarrow.parquet as pq

    return {field.name: type_of_arrow(field.type) for field in pq.read_schema(path)}


def version_of(path: Path) -> Path | None:
    """The version that a file belongs to; None for a file that no run wrote."""
    is_ours = len(path.parents) > 3 and path.parent.name == DATA and path.parents[3].name == HIDDEN
    return path.parents[1] if is_ours else None


def current_versions(folder: Path) -> list[Path]:
    """The versions that readers of a destination find, by period."""
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path.resolve().parent for path in entries if path.is_symlink()]


def columns_of_file(path: Path) -> list[str] | None:
    """The columns that a run recorded for a file; None for a file that no run wrote."""
    version = version_of(path)
    parts = read_parts(version) if version is not None else []
    return next((list(part.columns) for part in parts if path.name in part.files), None)


def find_columns(files: Iterable[Path]) -> tuple[str, ...]:
    """Every column, in lower case, of the destinations that some files belong to, whichever period has it."""
    versions = {version for path in files if (version := version_of(path)) is not None}
    stores = {version.parent for version in versions}
    versions |= {each for store in stores for each in current_versions(store.parent.parent / store.name)}
    names = {name.casefold() for version in versions for part in read_parts(version) for name in part.columns}
    return tuple(sorted(names))
