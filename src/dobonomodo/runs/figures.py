"""The figures of a run that people sign: rows and totals, what each operation changed, how joins matched.

Totals are exact. A total is None if it is unknown: it has more digits than Spark can sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal

from dobonomodo.model.plain import Document
from dobonomodo.plan.counts import ColumnDigests, JoinCounts, KindTotals, Measures, Totals

EXACT = Context(prec=100)
"""Sums of decimals with 38 digits need more digits than Python computes with by itself."""

FIRST_ROWS = 10
"""How many rows of an output are shown."""
UNMATCHED_KEYS = 5
"""How many of the unmatched keys of a join are shown."""


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The first rows of an output, as text; None means NULL."""

    columns: tuple[str, ...]
    order: tuple[str, ...]
    """The columns that they are ordered by, NULL first."""
    rows: tuple[tuple[str | None, ...], ...]

    def document(self) -> dict[str, object]:
        """As plain data."""
        return {"columns": list(self.columns), "order": list(self.order), "rows": [list(row) for row in self.rows]}

    @classmethod
    def load(cls, document: Document) -> FirstRows:
        """From plain data."""
        rows = tuple(tuple(row) for row in document["rows"])
        return cls(tuple(document["columns"]), tuple(document["order"]), rows)


@dataclass(frozen=True, slots=True)
class OutputFigures:
    """What an output wrote: how many rows, and the total of every numeric column."""

    seq: int
    table: str
    destination: str
    rows: int
    totals: Totals
    first: FirstRows | None = None
    digests: ColumnDigests | None = None
    kinds: tuple[KindTotals, ...] | None = ()
    """Where rows were made in several ways: each with its totals. None where there may be several, and they are not known."""

    def document(self) -> dict[str, object]:
        """As plain data."""
        return {
            "seq": self.seq,
            "table": self.table,
            "destination": self.destination,
            "rows": self.rows,
            "totals": _write_totals(self.totals),
            "first": self.first.document() if self.first is not None else None,
            "digests": self.digests.document() if self.digests is not None else None,
            "kinds": [_write_kind(each) for each in self.kinds] if self.kinds is not None else None,
        }

    @classmethod
    def load(cls, document: Document) -> OutputFigures:
        """From plain data."""
        first, totals = document.get("first"), _read_totals(document["totals"])
        digests, kinds = document.get("digests"), document.get("kinds", [])
        return cls(
            document["seq"],
            document["table"],
            document["destination"],
            document["rows"],
            totals,
            FirstRows.load(first) if first is not None else None,
            ColumnDigests.load(digests) if digests is not None else None,
            tuple(_read_kind(each) for each in kinds) if kinds is not None else None,
        )


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a run, as far as it got. Columns that no output writes have no totals."""

    loaded: Totals = field(default_factory=dict)
    """The totals of the rows as they were loaded, without deleted ones."""
    outputs: tuple[OutputFigures, ...] = ()
    changes: Mapping[int, Totals] = field(default_factory=dict)
    """By operation: what it added to the total of each column that it can change."""
    joins: tuple[JoinCounts, ...] = ()
    with_digests: bool = False
    """Whether outputs have digests of their columns, as far as their rows have keys."""

    @classmethod
    def of_output(cls, output: OutputFigures, measures: Measures) -> Figures:
        """The figures from the observation of one output."""
        return cls(measures.loaded, (output,), measures.changes, measures.joins)

    def merge(self, other: Figures) -> Figures:
        """Add the figures of another output: figures that both have are equal, since they describe the same rows."""
        seqs = sorted({*self.changes, *other.changes})
        joins = {(each.seq, each.alias): each for each in (*other.joins, *self.joins)}
        outputs = {each.seq: each for each in (*self.outputs, *other.outputs)}
        return Figures(
            loaded={**self.loaded, **other.loaded},
            outputs=tuple(outputs[seq] for seq in sorted(outputs)),
            changes={seq: {**self.changes.get(seq, {}), **other.changes.get(seq, {})} for seq in seqs},
            joins=tuple(joins[key] for key in sorted(joins)),
            with_digests=self.with_digests,
        )

    def without(self, seqs: Iterable[int]) -> Figures:
        """Without the outputs that have to be written again."""
        left = frozenset(seqs)
        return replace(self, outputs=tuple(each for each in self.outputs if each.seq not in left))

    def document(self) -> dict[str, object]:
        """As plain data; decimals are text."""
        return {
            "loaded": _write_totals(self.loaded),
            "outputs": [each.document() for each in self.outputs],
            "changes": [{"seq": seq, "totals": _write_totals(totals)} for seq, totals in self.changes.items()],
            "joins": [each.document() for each in self.joins],
            "with_digests": self.with_digests,
        }

    @classmethod
    def load(cls, document: Document) -> Figures:
        """From plain data."""
        return cls(
            loaded=_read_totals(document["loaded"]),
            outputs=tuple(OutputFigures.load(each) for each in document["outputs"]),
            changes={each["seq"]: _read_totals(each["totals"]) for each in document["changes"]},
            joins=tuple(JoinCounts.load(each) for each in document["joins"]),
            with_digests=document.get("with_digests", False),
        )


def _write_kind(kind: KindTotals) -> dict[str, object]:
    totals = _write_totals(kind.totals)
    return {"seq": kind.seq, "name": kind.name, "level": kind.level, "rows": kind.rows, "totals": totals}


def _read_kind(document: Document) -> KindTotals:
    totals = _read_totals(document["totals"])
    return KindTotals(document["seq"], document["name"], document["level"], document["rows"], totals)


def _write_totals(totals: Totals) -> list[list[str | None]]:
    # A list, since databases keep no order of keys.
    return [[name, f"{value:f}" if value is not None else None] for name, value in totals.items()]


def _read_totals(document: Iterable[tuple[str, str | None]]) -> dict[str, Decimal | None]:
    return {name: Decimal(text) if text is not None else None for name, text in document}
