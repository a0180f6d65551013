"""Parquet files as a storage: read strictly, with the stable position of every row, and written by Spark in place.

Every other storage extracts its rows to Parquet files and reads them with this module.
"""

from __future__ import annotations

import re
import shutil
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from dobonomodo.formula import Type
from dobonomodo.formula.sql import quote_name, quote_text
from dobonomodo.formula.types import DecimalType
from dobonomodo.model.datasource import StorageOptions
from dobonomodo.model.plain import Document
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.problems import RunFailed
from dobonomodo.problems.run import WrongCell
from dobonomodo.storage.executors import Executors
from dobonomodo.storage.faults import is_passing, loading_failed
from dobonomodo.storage.file_storage import FilePin, FilesOptions, FileStorage, named_as
from dobonomodo.storage.files import PinnedFile
from dobonomodo.storage.findings import MISSING, Findings, check_batch, is_required
from dobonomodo.storage.folder import Format
from dobonomodo.storage.footers import Footer, keep_footer, read_footer, take_footer
from dobonomodo.storage.links import PLAIN, Links
from dobonomodo.storage.rows import ROW_NUMBER, StoredRows
from dobonomodo.storage.schema import SYSTEM, find_differences
from dobonomodo.storage.storage import Row, Scratch

if TYPE_CHECKING:
    import pyarrow.parquet
    from pyspark.sql import DataFrame, SparkSession

_FOOTERS_OF_TASK = 500
_PATTERN = re.compile(r"[*?\[\]{}\\]")
_STRICT = {
    # A session may be set up to skip what it cannot read.
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    # Dates before 1582 are read without rebasing, whoever wrote them.
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}


class Given(NamedTuple):
    """A column that is not in a file and has one value for the whole file, such as a partition column."""

    name: str
    type: str
    """As Spark calls it."""
    value: str | None
    """As text that Spark casts to the type."""

    @property
    def sql(self) -> str:
        """The value in SQL."""
        text = "NULL" if self.value is None else quote_text(self.value)
        return f"CAST({text} AS {self.type})"


@dataclass(frozen=True, slots=True)
class ParquetFile:
    """An inspected file: its schema for Spark, and its number of rows."""

    path: Path
    columns: tuple[tuple[str, str], ...]
    """Those that are in the file."""
    rows: int
    given: tuple[Given, ...] = ()


def inspect_parquet(path: Path, use: DatasetUse, given: Sequence[Given] = ()) -> ParquetFile:
    """Read the footer of a file; raises if its schema does not match the dataset."""
    import pyarrow as pa

    try:
        footer = read_footer(path)
    except (pa.ArrowException, OSError) as fault:
        raise _unreadable(path, use, fault) from fault
    return _require_declared(path, footer, use, given)


def _require_declared(path: Path, footer: Footer, use: DatasetUse, given: Sequence[Given]) -> ParquetFile:
    given = _lacking([name for name, _ in footer.columns], given)
    differences = find_differences((*footer.columns, *(each[:2] for each in given)), use.as_stored())
    if differences:
        raise loading_failed(use, f"`{path}` does not match the declaration", differences=differences)
    return ParquetFile(path, footer.columns, footer.rows, tuple(given))


def find_lacking(path: Path, given: Sequence[Given]) -> list[Given]:
    """The given columns that a file lacks: a column in the file takes precedence."""
    import pyarrow.parquet as pq

    return _lacking(pq.read_schema(path).names, given)


def _lacking(names: Iterable[str], given: Sequence[Given]) -> list[Given]:
    there = {name.casefold() for name in names}
    return [each for each in given if each.name.casefold() not in there]


@dataclass(frozen=True, slots=True)
class Suspected:
    """An inspected file, and the columns that its footer cannot verify."""

    path: Path
    findings: Findings
    """The invalid values that are known from the footer."""
    suspects: Mapping[str, DecimalType | None]
    """The columns that may lack values or hold more digits than they say, decimals with their types."""
    bytes: int
    """What has to be read to know."""


def check_parquet(path: Path, use: DatasetUse, given: Sequence[Given] = ()) -> Findings:
    """The values that a file lacks, and the decimals that have more digits than their type; raises as ``inspect_parquet``.

    Footer statistics suffice in most cases; columns with missing or invalid statistics are read.
    """
    return _read_suspects(use, _look_into(path, use, given))


def check_files(
    files: Sequence[tuple[Path, Sequence[Given]]], use: DatasetUse, executors: Executors | None
) -> list[Findings]:
    """The same for many files; if there is much to read, executors read it."""
    if executors is None:
        return [check_parquet(path, use, given) for path, given in files]
    looked = _look_into_all(files, use, executors)
    suspected = [each for each in looked if each.suspects]
    read: dict[Path, Findings | None] = {}
    if sum(each.bytes for each in suspected) > executors.limits.checked_bytes:
        done = executors.do(partial(_read_in_task, use), [(each, _stamp(each.path)) for each in suspected])
        read = dict(zip((each.path for each in suspected), done or (), strict=False))
    found = ((each, read.get(each.path)) for each in looked)
    return [_read_suspects(use, each) if done is None else done for each, done in found]


def _look_into_all(
    files: Sequence[tuple[Path, Sequence[Given]]], use: DatasetUse, executors: Executors
) -> list[Suspected]:
    """Inspect the footers of files; executors read those of many files, and the results are cached here."""
    seen: list[tuple[Suspected, Footer, tuple[int, int]] | None] = [None] * len(files)
    if len(files) > executors.limits.footers:
        chunks = [files[at : at + _FOOTERS_OF_TASK] for at in range(0, len(files), _FOOTERS_OF_TASK)]
        done = executors.do(partial(_look_in_task, use), chunks)
        seen = [each for chunk in done for each in chunk] if done is not None else seen
    return [
        found[0]
        if found is not None and take_footer(path, found[1], size=found[2][0], modified=found[2][1])
        else _look_into(path, use, given)
        for (path, given), found in zip(files, seen, strict=True)
    ]


def _look_in_task(
    use: DatasetUse, files: Sequence[tuple[Path, Sequence[Given]]]
) -> list[tuple[Suspected, Footer, tuple[int, int]] | None]:
    """The footer of each file, with its size and modification time; None if the executor does not see the file."""
    return [
        (_look_into(path, use, given), read_footer(path), _stamp(path)) if path.exists() else None
        for path, given in files
    ]


def _read_in_task(use: DatasetUse, item: tuple[Suspected, tuple[int, int]]) -> Findings | None:
    """The invalid values of a file; None if the executor does not see the file that the driver saw."""
    suspected, stamp = item
    if not suspected.path.exists() or _stamp(suspected.path) != stamp:
        return None
    return _read_suspects(use, suspected)


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _look_into(path: Path, use: DatasetUse, given: Sequence[Given]) -> Suspected:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            inspected = _require_declared(path, keep_footer(path, file), use, given)
            stored = use.as_stored()
            suspects = _find_suspects(file, stored)
            return Suspected(path, _find_not_given(inspected, stored), suspects, _size_of(file, suspects))
    except (pa.ArrowException, OSError) as fault:
        raise _unreadable(path, use, fault) from fault


def _read_suspects(use: DatasetUse, suspected: Suspected) -> Findings:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, suspects, findings = suspected.path, suspected.suspects, suspected.findings
    if not suspects:
        return findings
    use, first = use.as_stored(), 1
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=list(suspects)):
                checked = check_batch([batch.column(name) for name in suspects], suspects, use=use, place=str(path))
                cells = tuple(replace(cell, row=f"row {first + at}") for at, cell in checked.first)
                findings += Findings(cells, checked.counts)
                first += batch.num_rows
            return findings
    except (pa.ArrowException, OSError) as fault:
        raise _unreadable(path, use, fault) from fault


def _size_of(file: pyarrow.parquet.ParquetFile, columns: Collection[str]) -> int:
    """The bytes of some columns."""
    metadata, total = file.metadata, 0
    for at in range(metadata.num_columns) if columns else ():
        if file.schema.column(at).path in columns:
            groups = (metadata.row_group(group) for group in range(metadata.num_row_groups))
            total += sum(group.column(at).total_compressed_size for group in groups)
    return total


def _find_not_given(file: ParquetFile, use: DatasetUse) -> Findings:
    """The columns that must have values and are given none."""
    missing = [each.name for each in file.given if each.value is None and is_required(each.name, use) and file.rows]
    cells = tuple(WrongCell(place=str(file.path), column=name, rule=MISSING) for name in missing)
    return Findings(cells, dict.fromkeys(missing, file.rows))


def _find_suspects(file: pyarrow.parquet.ParquetFile, use: DatasetUse) -> dict[str, DecimalType | None]:
    """The columns that may lack values or hold more digits than they say, decimals with their types."""
    import pyarrow as pa

    declared = {name.casefold() for name in use.columns}
    leaves = {file.schema.column(at).path: at for at in range(file.metadata.num_columns)}
    groups = [file.metadata.row_group(group) for group in range(file.metadata.num_row_groups)]
    suspects: dict[str, DecimalType | None] = {}
    for stored in file.schema_arrow:
        if stored.name.casefold() not in declared:
            continue
        kind = DecimalType(stored.type.precision, stored.type.scale) if pa.types.is_decimal(stored.type) else None
        chunks = [group.column(leaves[stored.name]) for group in groups]
        lacks = is_required(stored.name, use) and any(map(_may_lack, chunks))
        if lacks or (kind is not None and any(_may_exceed(chunk, kind) for chunk in chunks)):
            suspects[stored.name] = kind
    return suspects


def _may_lack(chunk: pyarrow.parquet.ColumnChunkMetaData) -> bool:
    statistics = chunk.statistics
    return statistics is None or not statistics.has_null_count or statistics.null_count > 0


def _may_exceed(chunk: pyarrow.parquet.ColumnChunkMetaData, kind: DecimalType) -> bool:
    statistics = chunk.statistics
    if statistics is None or not statistics.has_min_max:
        return statistics is None or not statistics.has_null_count or statistics.null_count < chunk.num_values
    return any(each.adjusted() >= kind.whole for each in (statistics.min, statistics.max) if each)


def _unreadable(path: Path, use: DatasetUse, fault: BaseException) -> RunFailed:
    detail = f"`{path}` cannot be read as Parquet: {_first_line(fault)}"
    return loading_failed(use, detail, retry_helps=is_passing(fault))


def read_stored(
    spark: SparkSession,
    files: Sequence[Path],
    use: DatasetUse,
    *,
    links: Links,
    period: str | None,
    before: Callable[[], int],
    given: Sequence[Sequence[Given]] | None = None,
) -> StoredRows:
    """The rows of one location. Positions have a cost, so they are read only on request."""
    read = partial(read_parquet, spark, files, use, links=links, given=given)
    return StoredRows(read(positions=False), period, cache(lambda: read(before=before())))


def read_parquet(
    spark: SparkSession,
    files: Sequence[Path],
    use: DatasetUse,
    *,
    links: Links,
    positions: bool = True,
    before: int = 0,
    given: Sequence[Sequence[Given]] | None = None,
) -> DataFrame:
    """The rows of some files, declared columns in their declared types, with the position of each row among all.

    It is stable under any split, filter or partitioning (``_metadata``, Spark 3.5 and later). ``before`` is how many
    rows there are in other places; ``given`` has for each file the columns that it lacks and whose values are kept elsewhere.
    """
    kept = given if given is not None else [()] * len(files)
    inspected = [inspect_parquet(path, use, each) for path, each in zip(files, kept, strict=True)]
    if not inspected:
        return _empty_frame(spark, use)
    safe = links.addresses([file.path for file in inspected])
    groups: dict[tuple[tuple[tuple[str, str], ...], tuple[Given, ...]], list[str]] = {}
    for file, path in zip(inspected, safe, strict=True):
        groups.setdefault((file.columns, file.given), []).append(path)
    starts = list(accumulate((file.rows for file in inspected[:-1]), initial=before))
    position = _position(safe, starts) if positions else None
    frames = [_read_group(spark, *alike, paths, position, use) for alike, paths in groups.items()]
    frame = frames[0]
    for other in frames[1:]:
        frame = frame.unionByName(other, allowMissingColumns=True)
    return frame


def _read_group(
    spark: SparkSession,
    columns: Sequence[tuple[str, str]],
    given: Sequence[Given],
    paths: Sequence[str],
    position: str | None,
    use: DatasetUse,
) -> DataFrame:
    """Files with the very same columns. Their schema is known, so that Spark needs no job to find it.

    ``position`` is SQL for the position of a row; without it rows come without, since Spark would compute it all the same.
    """
    known = {name.casefold() for name in use.as_stored().columns}
    read = [(name, kind) for name, kind in columns if name.casefold() in known or name.casefold() in SYSTEM]
    schema = ", ".join(f"{quote_name(name)} {kind}" for name, kind in read)
    reader = spark.read.schema(schema).options(**_STRICT)
    frame = reader.parquet(*(_escape(path) for path in paths))
    selected = select_stored([name for name, _ in columns], given, use)
    if position is None:
        return frame.selectExpr(*selected)
    return frame.selectExpr(*selected, f"{position} AS {quote_name(ROW_NUMBER)}")


def select_stored(columns: Sequence[str], given: Sequence[Given], use: DatasetUse) -> list[str]:
    """SQL for the declared columns in their declared types, and for the system columns that are stored."""
    known = {name.casefold() for name in use.as_stored().columns}
    present = {each.name.casefold(): each.sql for each in given}
    present |= {name.casefold(): quote_name(name) for name in columns}
    stored_as = {name: use.sources.get(name, name).casefold() for name in use.columns}
    found = {name: present[stored] for name, stored in stored_as.items() if stored in present}
    declared = [
        f"CAST({found.get(name, 'NULL')} AS {kind.sql}) AS {quote_name(name)}" for name, kind in use.columns.items()
    ]
    stored = [
        f"{present[name.casefold()]} AS {quote_name(name)}"
        for name in (*columns, *(each.name for each in given))
        if name.casefold() in SYSTEM and name.casefold() not in known
    ]
    return [*declared, *stored]


def _position(files: Sequence[str], starts: Sequence[int]) -> str:
    """SQL for the position of a row: where its file starts, and its place there."""
    if len(files) == 1:
        return f"{starts[0]}L + _metadata.row_index"
    names = [path.rpartition("/")[2] for path in files]
    sums = [zlib.crc32(name.encode()) for name in names]
    if len(set(sums)) == len(files) and all(map(PLAIN.fullmatch, names)):
        # Numbers are compared many times faster than names.
        known, found = ", ".join(f"{each}L" for each in sums), "crc32(_metadata.file_name)"
    else:
        known = ", ".join(quote_text(path) for path in files)
        # Spark writes the path as an URL, in which a plus is a plus.
        found = "regexp_replace(url_decode(replace(_metadata.file_path, '+', '%2B')), '^file:/+', '/')"
    start = f"element_at(array({', '.join(f'{each}L' for each in starts)}), CAST(array_position(array({known}), {found}) AS INT))"
    return f"{start} + _metadata.row_index"


def _empty_frame(spark: SparkSession, use: DatasetUse) -> DataFrame:
    """No rows, with every column that rows would have."""
    from dobonomodo.plan.system import TEMPORAL

    columns = {**use.columns, **TEMPORAL[use.temporal_mode]}
    fields = ", ".join(f"{quote_name(name)} {kind.sql}" for name, kind in columns.items())
    return spark.createDataFrame([], f"{fields}, {quote_name(ROW_NUMBER)} BIGINT")


def read_folder_files(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    """The rows of files that Spark wrote, as they are."""
    return spark.read.options(**_STRICT).parquet(*map(_escape, files))


def _escape(path: str) -> str:
    """A path in which Spark finds no pattern; folders above a link may have any name."""
    return _PATTERN.sub(r"\\\g<0>", path)


def copy_once(source: Path, target: Path) -> None:
    """Copy a file, in one act, unless that was done or it is the same file."""
    if target == source or target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".part")
    shutil.copyfile(source, unfinished)
    unfinished.replace(target)


def _first_line(fault: BaseException) -> str:
    return next(iter(str(fault).splitlines()), type(fault).__name__)


class ParquetOptions(FilesOptions):
    """A folder of Parquet files."""


@dataclass(frozen=True, slots=True)
class ParquetFormat:
    """Parquet files as a destination: Spark writes them as they are published."""

    kind: ClassVar[str] = "parquet"
    in_place: ClassVar[bool] = True

    @property
    def options(self) -> Mapping[str, object]:
        """Parquet files say themselves what they are; these are for readers of older versions."""
        return {"delimiter": ",", "has_header": True}

    def convert(self, files: Sequence[Path], folder: Path, *, columns: Mapping[str, Type], to: str) -> None:
        """Nothing to do."""


@dataclass(frozen=True, slots=True)
class ParquetStorage(FileStorage):
    """A folder of Parquet files."""

    kind: ClassVar[str] = "parquet"
    options: ClassVar[type[StorageOptions]] = ParquetOptions

    @classmethod
    def load_format(cls, document: Document) -> Format:
        """Parquet files say themselves what they are."""
        del document
        return ParquetFormat()

    def parquet_files(self, pin: FilePin, scratch: Scratch) -> list[Path]:
        """The files themselves, or copies where workers can reach them."""
        paths = self.shelf.paths(pin.files, scratch)
        return [scratch.bring(path, number) for number, path in enumerate(paths)]

    def extract_file(self, use: DatasetUse, source: Path, target: Path) -> Findings:
        """Check a file; Spark reads it where it is, or a copy of it."""
        found = check_parquet(source, use)
        copy_once(source, target)
        return found

    def extract_apart(
        self, use: DatasetUse, files: Sequence[tuple[PinnedFile, Path, Path]], scratch: Scratch
    ) -> Sequence[Findings | None] | None:
        """Where there are executors, all files at once: what they are to check must be where they see it."""
        if scratch.executors is None:
            return None
        for _, source, target in files:
            copy_once(source, target)
        with named_as({str(target): file.path for file, _, target in files}):
            found = check_files([(target, ()) for _, _, target in files], use, scratch.executors)
        return [each.renamed(str(target), file.path) for each, (file, _, target) in zip(found, files, strict=True)]

    def sample_file(self, path: Path, columns: Mapping[str, Type], rows: int) -> Iterable[Row]:
        """The first rows of a file."""
        import pyarrow.parquet as pq

        del columns, rows
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=256):
                yield from batch.to_pylist()
