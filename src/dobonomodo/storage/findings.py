"""Invalid values of a reading: all are counted, the first ones are kept with their places, so that one run reports them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

from dobonomodo.formula import Type
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.problems.run import CELLS_AT_MOST, WrongCell
from dobonomodo.storage.notation import PLAIN, Notation
from dobonomodo.storage.values import Parsed, convert_values, explain_wrong, show_value

if TYPE_CHECKING:
    import pyarrow

RECORD = ""
"""Records with another number of values are counted under this name."""
MISSING = "is NULL, and the column is not nullable"
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Findings:
    """The invalid values in some files or tables."""

    cells: tuple[WrongCell, ...] = ()
    """The first ones, in order."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """By column."""
    remedies: tuple[str, ...] = ()
    """Settings that would fix them, if the values reveal their notation."""

    def __add__(self, other: Findings) -> Findings:
        remedies = tuple(dict.fromkeys((*self.remedies, *other.remedies)))
        cells = (*self.cells, *other.cells)[:CELLS_AT_MOST]
        return Findings(cells, Counter(self.counts) + Counter(other.counts), remedies)

    def __bool__(self) -> bool:
        return bool(self.counts)

    def renamed(self, path: str, name: str) -> Findings:
        """The same of a file that people know under another name."""
        if path == name:
            return self
        cells = tuple(replace(cell, place=cell.place.replace(path, name)) for cell in self.cells)
        return replace(self, cells=cells)

    def summarize(self) -> str:
        """How many values are wrong, and in which columns."""
        by_column = {name: count for name, count in self.counts.items() if name != RECORD}
        parts = []
        if by_column:
            shown = ", ".join(f"{count:,} in `{name}`" for name, count in by_column.items())
            parts.append(f"values that do not match the declaration: {shown}")
        if RECORD in self.counts:
            parts.append(f"records with another number of values: {self.counts[RECORD]:,}")
        return "; ".join(parts)


@dataclass(frozen=True, slots=True, eq=False)
class CheckedBatch:
    """Rows in their declared types, and what is wrong with them."""

    columns: list[pyarrow.Array]
    first: tuple[tuple[int, WrongCell], ...]
    """The first wrong values with their positions in the batch, in order."""
    counts: Mapping[str, int]


def check_batch(
    batch: Iterable[pyarrow.Array],
    types: Mapping[str, Type | None],
    *,
    use: DatasetUse,
    place: str,
    notation: Notation = PLAIN,
) -> CheckedBatch:
    """Convert the columns of a batch, whose texts or values must be exactly of their types; without a type they stay."""
    columns: list[pyarrow.Array] = []
    first: list[tuple[int, WrongCell]] = []
    counts: dict[str, int] = {}
    for (name, kind), column in zip(types.items(), batch, strict=True):
        parsed = convert_values(column, kind, notation) if kind is not None else Parsed(column, ())
        columns.append(parsed.values)
        missing = _find_nulls(column) if column.null_count and is_required(name, use) else []
        wrong = chain(
            ((at, WrongCell(place=place, column=name, rule=MISSING)) for at in missing),
            ((at, _describe(column, at, name, kind, notation, place)) for at in parsed.wrong[:CELLS_AT_MOST] if kind),
        )
        first += wrong
        if number := len(parsed.wrong) + (column.null_count if missing else 0):
            counts[name] = number
    return CheckedBatch(columns, tuple(sorted(first, key=lambda found: found[0])[:CELLS_AT_MOST]), counts)


def is_required(name: str, use: DatasetUse) -> bool:
    """Whether a column must have a value in every row."""
    declared = next((each for each in use.columns if each.casefold() == name.casefold()), None)
    return declared is not None and declared not in use.nullable


def _find_nulls(column: pyarrow.Array) -> list[int]:
    import pyarrow.compute as pc

    found: list[int] = pc.indices_nonzero(column.is_null())[:CELLS_AT_MOST].to_pylist()
    return found


def _describe(column: pyarrow.Array, position: int, name: str, kind: Type, notation: Notation, place: str) -> WrongCell:
    text = show_value(column, position)
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return WrongCell(place=place, column=name, value=shown, rule=explain_wrong(text, kind, notation))
