"""The first rows of stored data, for a look. Needs no Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from dobonomodo.formula import Type
from dobonomodo.formula.types import TEXT
from dobonomodo.model.datasource import DataSource
from dobonomodo.storage.csv import sample_csv
from dobonomodo.storage.inputs import open_database
from dobonomodo.storage.manifest import columns_of_file


def sample_rows(
    location: Mapping[str, Any],
    columns: Mapping[str, Type],
    rows: int,
    *,
    root: Path,
    datasources: Mapping[str, DataSource],
) -> list[dict[str, Any]]:
    """The first rows of an output or a registered dataset, in no particular order.

    ``columns`` are the recorded types. CSV files need them, and without a header the order of the columns too.
    """
    if location["kind"] == "database":
        return _sample_table(location, rows, root=root, datasources=datasources)
    found = islice(_read_files(location, columns, rows, root), rows)
    # Periods of a registered dataset may lack columns that others have (C-86).
    return [_complete(row, location["columns"]) for row in found] if "folders" in location else list(found)


def _complete(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    folded = {name.casefold(): value for name, value in row.items()}
    return {name: folded.get(name.casefold()) for name in columns}


def _read_files(
    location: Mapping[str, Any], columns: Mapping[str, Type], rows: int, root: Path
) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    folders = [location["data"]] if "data" in location else location["folders"]
    for folder in folders:
        for path in sorted((root / folder).iterdir()):
            if location["kind"] == "parquet":
                with pq.ParquetFile(path) as file:
                    for batch in file.iter_batches(batch_size=256):
                        yield from batch.to_pylist()
            else:
                known = {name.casefold(): kind for name, kind in columns.items()}
                own = {name: known.get(name.casefold(), TEXT) for name in columns_of_file(path) or columns}
                yield from sample_csv(
                    path, own, rows, delimiter=location["delimiter"], has_header=location["has_header"]
                )


def _sample_table(
    location: Mapping[str, Any], rows: int, *, root: Path, datasources: Mapping[str, DataSource]
) -> list[dict[str, Any]]:
    from psycopg import sql
    from psycopg.rows import dict_row

    database = open_database(datasources[location["datasource_id"]], root=root)
    schema, table = location.get("schema"), location["table"]
    name = sql.Identifier(schema, table) if schema else sql.Identifier(table)
    with database.connect() as connection, connection.cursor(row_factory=dict_row) as cursor:
        # The number is put into the text: psycopg would look for its `%s` in the names too.
        return cursor.execute(sql.SQL("SELECT * FROM {} LIMIT {}").format(name, rows)).fetchall()
