"""Rewrites Parquet files: with names and types of a table's columns, and an additional column for the run period."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.failpoint import reach
from dobonomodo.formula import Type
from dobonomodo.plan.registration import unite_columns
from dobonomodo.storage.faults import removing_on_failure, writing_failed
from dobonomodo.storage.folder import link_file
from dobonomodo.storage.kept import hash_file
from dobonomodo.storage.schema import arrow_type, type_of_arrow

if TYPE_CHECKING:
    import pyarrow

AT_ONCE = 4
"""Files that are hashed or written at the same time."""


@dataclass(frozen=True, slots=True)
class Fit:
    """How rows are added to others in a table (C-86)."""

    columns: Mapping[str, Type]
    """What the table has then, in their order and spelling."""
    widened: frozenset[str] = frozenset()
    """The columns that must hold more than they do, so that existing files are written again."""


def fit_columns(there: Mapping[str, Type], written: Sequence[Mapping[str, Type]], *, table: str) -> Fit:
    """How rows with these columns are added to those that stay; refuses columns that cannot be read together."""
    united = unite_columns([there, *written])
    if united.conflicts:
        raise writing_failed(table, united.explain())
    return Fit(united.columns, frozenset(name for name in there if united.columns[name] != there[name]))


def hash_files(hashes: dict[Path, str], files: Sequence[Path]) -> None:
    """Add the SHA-256 of files that have none yet."""
    fresh = [path for path in files if path not in hashes]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        hashes.update(zip(fresh, pool.map(hash_file, fresh), strict=True))


def clear_folder(folder: Path) -> Path:
    """Clear a folder before it is written: removes leftovers of a killed attempt."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    return folder


def is_fitting(path: Path, columns: Mapping[str, Type]) -> bool:
    """Whether a file has its columns as they are spelled and typed in a table; it may lack some."""
    import pyarrow.parquet as pq

    return all(columns.get(field.name) == type_of_arrow(field.type) for field in pq.read_schema(path))


def fit_files(files: Sequence[Path], folder: Path, columns: Mapping[str, Type]) -> list[Path]:
    """Files as a table spells and types their columns: links if all are like that, else written again."""
    if not all(is_fitting(path, columns) for path in files):
        return rewrite_files(files, folder, columns)
    folder.mkdir(parents=True, exist_ok=True)
    linked = []
    with removing_on_failure(folder):
        for number, path in enumerate(files):
            linked.append(_name_file(folder, number))
            link_file(path, linked[-1])
            reach("output.converting")
    return linked


def rewrite_files(
    files: Sequence[Path], folder: Path, columns: Mapping[str, Type], *, added: tuple[str, str] | None = None
) -> list[Path]:
    """Write files again with columns as they are spelled and typed here; what a file lacks stays out of it.

    ``added`` is a column with the same text in every row.
    """
    folder.mkdir(parents=True, exist_ok=True)
    targets = [_name_file(folder, number) for number in range(len(files))]
    with removing_on_failure(folder), ThreadPoolExecutor(AT_ONCE) as pool:
        # Going through the results raises what went wrong.
        list(pool.map(partial(_rewrite_file, columns=columns, added=added), files, targets))
    return targets


def _rewrite_file(path: Path, target: Path, *, columns: Mapping[str, Type], added: tuple[str, str] | None) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        schema = _respell(file.schema_arrow, columns)
        whole = schema if added is None else schema.append(pa.field(added[0], pa.string()))
        with pq.ParquetWriter(target, whole) as writer:
            for batch in file.iter_batches():
                fitting = batch.rename_columns(schema.names).cast(schema)
                if added is not None:
                    texts = pa.repeat(pa.scalar(added[1], pa.string()), batch.num_rows)
                    fitting = pa.RecordBatch.from_arrays([*fitting.columns, texts], schema=whole)
                writer.write_batch(fitting)
                reach("output.converting")


def _name_file(folder: Path, number: int) -> Path:
    return folder / f"part-{number:05}.parquet"


def _respell(schema: pyarrow.Schema, columns: Mapping[str, Type]) -> pyarrow.Schema:
    import pyarrow as pa

    spelled = {name.casefold(): name for name in columns}
    names = [spelled[field.name.casefold()] for field in schema]
    return pa.schema([(name, arrow_type(columns[name])) for name in names])
