"""Row counts of operations and joins, and totals: the engine observes them, the record of a run keeps them, progress and report
show them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal

from dobonomodo.model.plain import Document

_EXACT = Context(prec=100)
"""Sums of decimals with 38 digits need more digits than Python computes with by itself."""

Totals = Mapping[str, Decimal | None]
"""The exact sum of each column; None if it has more digits than Spark can sum."""


@dataclass(frozen=True, slots=True)
class OperationCounts:
    """Row counts of an operation; None if the run did not reach it.

    The working dataset counts with its deleted rows (C-50).
    """

    seq: int
    name: str
    type: str
    rows_in: int | None = None
    selected: int | None = None
    added: int | None = None
    deleted: int | None = None
    rows_out: int | None = None
    milliseconds: int | None = None

    @property
    def seconds(self) -> float | None:
        """Its duration; known only for outputs, since Spark computes the other operations together with them."""
        return None if self.milliseconds is None else self.milliseconds / 1000

    def document(self) -> dict[str, int | str]:
        """As plain data, without unknown values."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in found.items() if value is not None}

    @classmethod
    def load(cls, document: Mapping[str, object]) -> OperationCounts:
        """From plain data."""
        return cls(**{name: document.get(name) for name in cls.__slots__})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class UnmatchedKey:
    """Values of a join's key for which there is no row in the joined dataset, and the number of rows that have them."""

    values: tuple[str | None, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class JoinCounts:
    """How many of the rows that took part in a join found their match."""

    seq: int
    """The operation that joins; 0 for a lookup of the input dataset."""
    alias: str
    dataset: str
    key: tuple[str, ...]
    """The columns of the rows that the condition reads."""
    matched: int
    unmatched: int
    most_frequent: tuple[UnmatchedKey, ...] = ()
    """Unmatched keys, those of the most rows first."""

    @property
    def rows(self) -> int:
        """The rows that took part."""
        return self.matched + self.unmatched

    def document(self) -> dict[str, object]:
        """As plain data."""
        return {
            "seq": self.seq,
            "alias": self.alias,
            "dataset": self.dataset,
            "key": list(self.key),
            "matched": self.matched,
            "unmatched": self.unmatched,
            "most_frequent": [{"values": list(each.values), "rows": each.rows} for each in self.most_frequent],
        }

    @classmethod
    def load(cls, document: Document) -> JoinCounts:
        """From plain data."""
        return cls(
            document["seq"],
            document["alias"],
            document["dataset"],
            tuple(document["key"]),
            document["matched"],
            document["unmatched"],
            tuple(UnmatchedKey(tuple(each["values"]), each["rows"]) for each in document["most_frequent"]),
        )


@dataclass(frozen=True, slots=True)
class ColumnDigests:
    """A digest for each column of an output, of its values together with the keys of their rows."""

    key: tuple[tuple[int, tuple[str, ...]], ...]
    """The columns of the key, by the operation that made the row; 0 for rows of the input."""
    rows: str | None
    """Of the keys alone; None where it is not known."""
    columns: Mapping[str, str | None]
    """By the names that are written, without the columns of the key."""

    def document(self) -> dict[str, object]:
        """As plain data; lists, since databases keep no order of keys."""
        key = [[seq, list(names)] for seq, names in self.key]
        return {"key": key, "rows": self.rows, "columns": [list(each) for each in self.columns.items()]}

    @classmethod
    def load(cls, document: Document) -> ColumnDigests:
        """From plain data."""
        key = tuple((seq, tuple(names)) for seq, names in document["key"])
        return cls(key, document["rows"], dict(document["columns"]))


@dataclass(frozen=True, slots=True)
class KindTotals:
    """Rows of an output of the same kind, and their totals."""

    seq: int
    """The operation that added them; 0 if they were loaded."""
    name: str
    """Of this operation; empty for loaded rows."""
    level: str | None
    """Where the operation makes subtotals on several levels."""
    rows: int
    totals: Totals

    @property
    def label(self) -> str:
        """What they are called."""
        name = self.name if self.seq else "loaded rows"
        return name if self.level is None else f"{name}, {self.level}"


def merge_kinds(kinds: Iterable[KindTotals]) -> dict[str, tuple[int, Totals]]:
    """Rows and totals by what a kind is called: operations may have the same name, and then their rows are one kind for people."""
    found: dict[str, tuple[int, Totals]] = {}
    for kind in kinds:
        rows, totals = found.get(kind.label, (0, {}))
        added = {name: _add(totals.get(name, Decimal(0)), value) for name, value in kind.totals.items()}
        found[kind.label] = (rows + kind.rows, {**totals, **added})
    return found


def _add(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return _EXACT.add(one, other) if one is not None and other is not None else None


@dataclass(frozen=True, slots=True)
class OutputTotals:
    """What an output would write: rows and totals, as a whole and of each kind of rows."""

    rows: int
    totals: Totals
    kinds: tuple[KindTotals, ...] | None
    """The kinds that there are rows of, one or more; None where they are not known."""


@dataclass(frozen=True, slots=True)
class Measures:
    """Figures from the observation of an output, other than row counts. Columns that the output does not write have no totals."""

    totals: Totals = field(default_factory=dict)
    """Of the rows that are written."""
    loaded: Totals = field(default_factory=dict)
    """Of the rows as they were loaded, without deleted ones."""
    changes: Mapping[int, Totals] = field(default_factory=dict)
    """By operation: what it added to the total of each column that it can change."""
    joins: tuple[JoinCounts, ...] = ()
    digests: ColumnDigests | None = None
    """None if not requested, or if no key of the rows is written."""
    kinds: tuple[KindTotals, ...] | None = ()
    """The kinds of rows with their totals, if there are several. None if there may be several, but they are unknown."""
