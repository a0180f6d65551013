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
from dobonomodo.storage.files import link_file
from dobonomodo.storage.kept import hash_file
from dobonomodo.storage.schema import arrow_type, type_of_arrow

if TYPE_CHECKING:
    import pyarrow

ROWS = 1 << 18
"""Rows that are in memory of each file while it is written again."""
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
    """Write one file again. Columns with a dictionary keep it: texts are not decoded, and no other column begins one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kept = _find_dictionaries(path)
    texts = [name for name, is_text in kept.items() if is_text]
    with pq.ParquetFile(path, read_dictionary=texts) as file:
        schema = _respell(file.schema_arrow, columns)
        names = {old: new for old, new in zip(file.schema_arrow.names, schema.names, strict=True) if old in kept}
        whole = schema if added is None else schema.append(pa.field(added[0], pa.dictionary(pa.int32(), pa.string())))
        dictionaries = [*names.values(), *([added[0]] if added is not None else [])]
        # Types are those of Parquet: a reader of Arrow need not know which columns were read as dictionaries.
        with pq.ParquetWriter(target, whole, use_dictionary=dictionaries, store_schema=False) as writer:
            for group in range(file.num_row_groups):
                for batch in file.iter_batches(batch_size=ROWS, row_groups=[group]):
                    fitting = batch.rename_columns(schema.names).cast(schema)
                    if added is not None:
                        numbers = pa.repeat(pa.scalar(0, pa.int32()), batch.num_rows)
                        more = pa.DictionaryArray.from_arrays(numbers, pa.array([added[1]]))
                        fitting = pa.RecordBatch.from_arrays([*fitting.columns, more], schema=whole)
                    # A row group of its own, since each has one dictionary for a column.
                    writer.write_table(pa.Table.from_batches([fitting]))
                    reach("output.converting")


def _find_dictionaries(path: Path) -> dict[str, bool]:
    """The columns whose values are all in a dictionary, by the first row group, and whether they are texts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        schema, metadata = file.schema_arrow, file.metadata
    if not metadata.num_row_groups:
        return {}
    group = metadata.row_group(0)
    found = {schema.field(at): group.column(at) for at in range(group.num_columns)}
    return {
        field.name: pa.types.is_string(field.type)
        for field, chunk in found.items()
        # A column with a dot in its name cannot be named to Arrow.
        if chunk.has_dictionary_page and "PLAIN" not in chunk.encodings and "." not in field.name
    }


def _name_file(folder: Path, number: int) -> Path:
    return folder / f"part-{number:05}.parquet"


def _respell(schema: pyarrow.Schema, columns: Mapping[str, Type]) -> pyarrow.Schema:
    import pyarrow as pa

    spelled = {name.casefold(): name for name in columns}
    fields = [(spelled[field.name.casefold()], field.type) for field in schema]
    return pa.schema(
        [(name, kind if pa.types.is_dictionary(kind) else arrow_type(columns[name])) for name, kind in fields]
    )
