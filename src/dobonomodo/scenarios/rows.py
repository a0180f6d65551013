"""The rows that a scenario gives, read as a run reads its own: the same checks, types and refusals (C-88).

Files go through the reader of a run. Rows in the scenario are texts for the same conversion that CSV files pass through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dobonomodo.engine.reading import ROW_NUMBER, StoredRows
from dobonomodo.formula import Type
from dobonomodo.formula.types import INTEGER, TEXT
from dobonomodo.model import DataSource, Places
from dobonomodo.plan import DatasetUse, Location
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.system import PERIOD, TEMPORAL
from dobonomodo.problems.run import CELLS_AT_MOST, WrongCell
from dobonomodo.scenarios.values import TypedRow, is_plain, make_frame, write_text
from dobonomodo.storage import Inputs
from dobonomodo.storage.faults import loading_failed, refuse
from dobonomodo.storage.findings import Findings, check_batch
from dobonomodo.storage.schema import SYSTEM, find_differences, stored_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = Mapping[str, object]
_SOURCE = "scenario"


@dataclass(frozen=True, slots=True)
class Reading:
    """The inputs of reading other than the rows."""

    spark: SparkSession
    facts: RunFacts
    as_of: date | None
    folder: Path
    """Where CSV files are extracted to."""


class Given(Protocol):
    """Stored rows of a dataset."""

    @property
    def has_period(self) -> bool:
        """Whether the rows carry ``_period``."""
        ...

    def read(self, use: DatasetUse, reading: Reading) -> StoredRows:
        """The rows as a frame; raises ``RunFailed`` where a run would."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class InlineRows:
    """Rows that are written in the scenario. A column that a row leaves out is NULL."""

    rows: Sequence[Row]
    places: Places
    """Of the list of rows."""

    @property
    def has_period(self) -> bool:
        return any(PERIOD in row for row in self.rows)

    def read(self, use: DatasetUse, reading: Reading) -> StoredRows:
        columns, rows = type_rows(self.rows, use, self.places)
        return _frame(reading.spark, columns, rows)


@dataclass(frozen=True, slots=True, eq=False)
class RowsOfFile:
    """A file next to the scenario."""

    folder: Path
    name: str

    @property
    def has_period(self) -> bool:
        """What the file itself says; one that cannot be read says so when it is."""
        import csv

        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.folder / self.name
        try:
            if self._kind == "parquet":
                return PERIOD in pq.read_schema(path).names
            with path.open(encoding="utf-8-sig", newline="") as file:
                return PERIOD in next(csv.reader(file), [])
        except (OSError, ValueError, csv.Error, pa.ArrowException):
            return False

    @property
    def _kind(self) -> str:
        return "csv" if self.name.endswith(".csv") else "parquet"

    def read(self, use: DatasetUse, reading: Reading) -> StoredRows:
        source = DataSource.from_data({"id": _SOURCE, "type": self._kind, "options": {"path_prefix": "."}})
        inputs = Inputs(
            root=self.folder,
            datasources={_SOURCE: source},
            folder=reading.folder,
            facts=reading.facts,
            as_of=reading.as_of,
        )
        placed = replace(use, locations=(Location(_SOURCE, self._kind, path=self.name),))
        pinned = inputs.extract([placed], inputs.pin([placed]))
        (rows,) = inputs.read(reading.spark, placed, pinned[placed.key])
        return rows


@dataclass(frozen=True, slots=True, eq=False)
class WrittenRows:
    """Rows that a run of the scenario has registered; they have been of their types ever since."""

    rows: Sequence[TypedRow]
    columns: Mapping[str, Type]

    @property
    def has_period(self) -> bool:
        return PERIOD in self.columns

    def read(self, use: DatasetUse, reading: Reading) -> StoredRows:
        stored = {name: kind for name, kind in self.columns.items() if name.casefold() in SYSTEM}
        return _frame(reading.spark, {**stored, **use.columns}, self.rows)


def _frame(spark: SparkSession, columns: Mapping[str, Type], rows: Sequence[TypedRow]) -> StoredRows:
    numbered = [{**row, ROW_NUMBER: number} for number, row in enumerate(rows)]
    return StoredRows(make_frame(spark, {**columns, ROW_NUMBER: INTEGER}, numbered), count=lambda: len(rows))


def type_rows(rows: Sequence[Row], use: DatasetUse, places: Places) -> tuple[dict[str, Type], list[TypedRow]]:
    """The columns of some rows and the rows in their types; raises ``RunFailed`` for what a run would refuse."""
    import pyarrow as pa

    given = dict.fromkeys(name for row in rows for name in row)
    folded = {name.casefold() for name in given}
    left_out = [name for name in use.columns if name.casefold() not in folded]
    types = {name: stored_type(name, use) for name in (*given, *left_out)}
    differences = find_differences([(name, kind.sql.lower()) for name, kind in types.items()], use)
    if differences:
        raise loading_failed(use, "the rows of the scenario do not match the declaration", differences=differences)
    place = places.source.name if places.source is not None else _SOURCE
    values = {name: [row.get(name) for row in rows] for name in types}
    texts = [pa.array([write_text(value) for value in values[name]], pa.string()) for name in types]
    checked = check_batch(texts, types, use=use, place=place)
    findings = Findings(tuple(_place(cell, places, at) for at, cell in checked.first), checked.counts)
    refuse(findings + _find_unquoted(values, types, places, place), use)
    read = {stored: column for name, column in zip(types, checked.columns, strict=True) if (stored := _kept(name, use))}
    if not rows:
        read |= {name: pa.array([], pa.string()) for name in TEMPORAL[use.temporal_mode]}
    columns = {name: stored_type(name, use) for name in read}
    lists = [column.to_pylist() for column in read.values()]
    return columns, [dict(zip(read, row, strict=True)) for row in zip(*lists, strict=True)]


def _kept(name: str, use: DatasetUse) -> str | None:
    """The name of a stored column in the dataset; None for an undeclared one, which a run does not read either."""
    declared = next((each for each in use.columns if each.casefold() == name.casefold()), None)
    return declared or (name.casefold() if name.casefold() in SYSTEM else None)


def _place(cell: WrongCell, places: Places, row: int) -> WrongCell:
    span = places.span(row, cell.column or "") or places.span(row)
    return replace(cell, line=span.line if span is not None else None)


def _find_unquoted(
    values: Mapping[str, Sequence[object]], types: Mapping[str, Type], places: Places, place: str
) -> Findings:
    """Numbers and truth values in text columns: YAML has read them, and what was written is not known any more."""
    found = Findings()
    for name, kind in types.items():
        wrong = [at for at, value in enumerate(values[name]) if kind == TEXT and not is_plain(value)]
        cells = [
            WrongCell(
                place=place, column=name, value=write_text(values[name][at]), rule="is not a text; put it in quotes"
            )
            for at in wrong[:CELLS_AT_MOST]
        ]
        if wrong:
            placed = tuple(_place(cell, places, at) for cell, at in zip(cells, wrong, strict=False))
            found += Findings(placed, {name: len(wrong)})
    return found
