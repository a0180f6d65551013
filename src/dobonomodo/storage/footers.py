"""Footers of Parquet files, each read once.

Files are read sequentially: threads save no time on a disk, and their memory grows with the number of files.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.storage.schema import spark_type

if TYPE_CHECKING:
    import pyarrow.parquet

KEPT_AT_MOST = 100_000

Columns = tuple[tuple[str, str], ...]
"""Names and types, as Spark calls them."""


@dataclass(frozen=True, slots=True)
class Footer:
    """How Spark is to read a file, and how many rows it has."""

    columns: Columns
    rows: int


_kept: dict[tuple[str, int, int], Footer] = {}
"""By path, size and modification time: a changed file is another file."""
_shared: dict[Columns, Columns] = {}
"""Most files of a folder have the same columns, which are kept once."""


def read_footer(path: Path) -> Footer:
    """The footer of a file. Raises what Arrow or the disk raises."""
    import pyarrow.parquet as pq

    if (known := _kept.get(_key(path))) is not None:
        return known
    with pq.ParquetFile(path) as file:
        return keep_footer(path, file)


def keep_footer(path: Path, file: pyarrow.parquet.ParquetFile) -> Footer:
    """The footer of a file that is open; it need not be opened for it again."""
    _make_room()
    metadata = file.metadata
    old_times = {
        metadata.schema.column(at).path
        for at in range(metadata.num_columns)
        if metadata.schema.column(at).physical_type == "INT96"
    }
    columns = tuple(
        (field.name, "timestamp" if field.name in old_times else spark_type(field.type)) for field in file.schema_arrow
    )
    footer = Footer(_shared.setdefault(columns, columns), metadata.num_rows)
    _kept[_key(path)] = footer
    return footer


def _make_room() -> None:
    if len(_kept) >= KEPT_AT_MOST:
        _kept.clear()
        _shared.clear()


def take_footer(path: Path, footer: Footer, *, size: int, modified: int) -> bool:
    """Keep a footer that somebody else has read; False if the file is not as it was seen there."""
    key = _key(path)
    if key[1:] != (size, modified):
        return False
    _make_room()
    _kept[key] = Footer(_shared.setdefault(footer.columns, footer.columns), footer.rows)
    return True


def _key(path: Path) -> tuple[str, int, int]:
    found = path.stat()
    return str(path), found.st_size, found.st_mtime_ns


def count_rows(files: Iterable[Path]) -> int:
    """The number of rows in some Parquet files."""
    return sum(read_footer(path).rows for path in files)
