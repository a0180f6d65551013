"""The first rows of Parquet files in the order of some columns, as text. Knows pyarrow and no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

CANDIDATES = 1_000
"""Rows that are remembered while the files are read, so that rows with the same key can be told apart by their other columns."""
SCANNED_COLUMNS = 4
"""By so many columns of the order are all rows compared; candidates are then compared by all columns."""
BATCH = 65_536
LONGEST = 200
"""Characters of a text that are shown."""

_FILE, _ROW = " file", " row"


def first_rows(
    files: Sequence[str | Path], columns: Sequence[str], *, order: Sequence[str], count: int
) -> tuple[tuple[str | None, ...], ...]:
    """The first rows by ``order``, then by all columns; NULL comes first.

    Files are read once, and only the columns of the order.
    """
    found = _find_candidates(files, list(order)[:SCANNED_COLUMNS], count)
    if not found:
        return ()
    rows = _read_rows(files, found, columns=list(dict.fromkeys([*order, *columns])))
    ranked = rows.take(_rank(rows, rows.column_names).slice(0, count))
    return tuple(tuple(show_value(row[name]) for name in columns) for row in ranked.to_pylist())


def leading_rows(
    files: Sequence[str | Path], columns: Sequence[str], *, count: int
) -> tuple[tuple[str | None, ...], ...]:
    """The first rows of files as they are in them."""
    names = list(columns)
    rows = (row for _, _, batch in _scan(files, names) for row in batch.to_pylist())
    return tuple(tuple(show_value(row[name]) for name in names) for row in islice(rows, count))


def show_value(value: object) -> str | None:
    """A value as text: exact, times in UTC, long texts cut."""
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case Decimal():
            return f"{value:f}"
        case datetime():
            moment = value.astimezone(UTC) if value.tzinfo is not None else value
            return moment.isoformat().replace("+00:00", "Z")
        case str():
            return value if len(value) <= LONGEST else value[:LONGEST] + "…"
        case _:
            return str(value)


def _find_candidates(files: Sequence[str | Path], order: list[str], count: int) -> dict[int, list[int]]:
    """Row numbers by file, of the rows among which the first ones are."""
    import pyarrow as pa

    best: pa.Table | None = None

    def is_behind(statistics: pq.Statistics | None) -> bool:
        """Whether all values of the first column in a row group come behind all candidates."""
        if best is None or best.num_rows < CANDIDATES or statistics is None or not statistics.has_min_max:
            return False
        least, last = statistics.min, best[order[0]][-1].as_py()
        known = statistics.has_null_count and not statistics.null_count
        return known and type(least) is type(last) and type(least) in (int, str, date) and least > last

    for file, start, batch in _scan(files, order, skips=is_behind):
        near = _find_near(batch, best, order)
        if not len(near):
            continue
        more = batch.take(near).append_column(_FILE, pa.repeat(file, len(near)))
        more = more.append_column(_ROW, pa.compute.add(near.cast(pa.int64()), start))
        both = more if best is None else pa.concat_tables([best, more])
        best = both.take(_rank(both, order).slice(0, max(count, CANDIDATES)))
    return _drop_behind(best, order, count) if best is not None else {}


def _scan(
    files: Sequence[str | Path], columns: list[str], *, skips: Callable[[pq.Statistics | None], bool] = lambda _: False
) -> Iterator[tuple[int, int, pa.Table]]:
    """The rows of all files in pieces, with the number of the file and that of the first row in it.

    ``skips`` says which row groups are not read, by the statistics of the first column.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    for number, path in enumerate(files):
        start = 0
        with pq.ParquetFile(path) as file:
            first = file.schema_arrow.get_field_index(columns[0]) if columns else 0
            for group in range(file.num_row_groups):
                described = file.metadata.row_group(group)
                if skips(described.column(first).statistics):
                    start += described.num_rows
                    continue
                for batch in file.iter_batches(batch_size=BATCH, row_groups=[group], columns=columns):
                    yield number, start, pa.Table.from_batches([batch]).select(columns)
                    start += batch.num_rows


def _find_near(rows: pa.Table, best: pa.Table | None, order: list[str]) -> pa.Array:
    """The numbers of rows that may be among the candidates: not behind all of them by the first column."""
    import pyarrow.compute as pc

    if best is None or best.num_rows < CANDIDATES:
        return _rank(rows, order).slice(0, CANDIDATES)
    first, last = rows[order[0]], best[order[0]][-1]
    missing = pc.is_null(first)
    near = pc.or_(missing, pc.fill_null(pc.less_equal(first, last), False)) if last.is_valid else missing
    found = pc.indices_nonzero(near)
    if len(found) <= CANDIDATES:
        return found
    return found.take(_rank(rows.take(found), order).slice(0, CANDIDATES))


def _rank(rows: pa.Table, columns: Sequence[str]) -> pa.Array:
    """The numbers of rows in order, NULL first. Versions of pyarrow differ in how they are told where NULL comes."""
    import pyarrow.compute as pc

    keyed = rows
    keys = []
    for name in columns:
        if rows[name].null_count:
            keyed = keyed.append_column(f" is {name}", pc.is_valid(rows[name]).cast("int8"))
            keys.append((f" is {name}", "ascending"))
        keys.append((name, "ascending"))
    return pc.sort_indices(keyed, sort_keys=keys)


def _drop_behind(best: pa.Table, order: list[str], count: int) -> dict[int, list[int]]:
    """Drop candidates that sort after the last wanted row and are not equal to it."""
    keys = best.select(order).to_pylist()
    last = next((at for at in range(count, len(keys)) if keys[at] != keys[count - 1]), len(keys))
    found: dict[int, list[int]] = {}
    for file, row in zip(best[_FILE].to_pylist()[:last], best[_ROW].to_pylist()[:last], strict=True):
        found.setdefault(file, []).append(row)
    return found


def _read_rows(files: Sequence[str | Path], found: dict[int, list[int]], *, columns: list[str]) -> pa.Table:
    """Rows by their numbers, reading no further in a file than the last of them."""
    import pyarrow as pa

    parts = []
    for number, wanted in found.items():
        left = sorted(wanted)
        for _, start, batch in _scan([files[number]], columns):
            here = [row - start for row in left if row < start + batch.num_rows]
            if here:
                parts.append(batch.take(pa.array(here)))
            left = left[len(here) :]
            if not left:
                break
    return pa.concat_tables(parts)
