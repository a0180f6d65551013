"""The data of an explanation, from which text, JSON, HTML and notebooks are rendered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from dobonomodo.formula.meaning import Value, write_number
from dobonomodo.formula.moment import Day, Moment

Plain = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a formula."""

    text: str
    values: str
    """The same with values in place of its operands."""
    value: Value

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {"text": self.text, "values": self.values, "value": plain(self.value)}


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A formula as its author wrote it, and its value."""

    text: str
    value: Value
    parts: tuple[Part, ...] = ()
    """The parts that were evaluated, innermost first."""
    reads: frozenset[str] = frozenset()
    """The columns of the row that it reads."""

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {"text": self.text, "value": plain(self.value), "parts": [each.to_dict() for each in self.parts]}


@dataclass(frozen=True, slots=True)
class StoredPlace:
    """A stored row: of which dataset, and where."""

    dataset: str
    version: int
    place: str
    key: Mapping[str, Value]
    values: Mapping[str, Value]
    further: Explanation | None = None
    """For a row that another run wrote, how that run made it."""
    file: str | None = None
    """The file that it was read from."""
    stored: Mapping[str, Value] = field(default_factory=dict)
    """All values that are stored, in lower case, those of system columns too."""

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {
            "dataset": self.dataset,
            "version": self.version,
            "place": self.place,
            "key": plain_row(self.key),
            "values": plain_row(self.values),
            "further": self.further.to_dict() if self.further is not None else None,
        }


@dataclass(frozen=True, slots=True)
class JoinedRow:
    """What a join found for the row."""

    alias: str
    on: Evaluated | None
    """None where no row was found."""
    text: str
    """The condition."""
    dataset: str
    row: StoredPlace | None
    wanted: Mapping[str, Value] = field(default_factory=dict)
    """The columns of the dataset that were compared for equality, and with what."""

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {
            "alias": self.alias,
            "on": self.text,
            "dataset": self.dataset,
            "wanted": plain_row(self.wanted),
            "row": self.row.to_dict() if self.row is not None else None,
        }


Effect = Literal["selected", "not selected", "already deleted", "deleted", "added"]
"""What an operation did with the row."""


@dataclass(frozen=True, slots=True)
class Touch:
    """One operation and the row."""

    seq: int
    name: str
    type: str
    effect: Effect
    condition: Evaluated | None = None
    """The selector."""
    joins: tuple[JoinedRow, ...] = ()
    values: Mapping[str, Evaluated] = field(default_factory=dict)
    """The columns that it set, or what a check expects."""
    sets: tuple[str, ...] = ()
    """The names of all of them, also where values are left out."""
    reads: Mapping[str, tuple[Evaluated, ...]] = field(default_factory=dict)
    """What totals read of the row that are not sums of amounts of rows, by column."""

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {
            "seq": self.seq,
            "name": self.name,
            "type": self.type,
            "effect": self.effect,
            "condition": self.condition.to_dict() if self.condition is not None else None,
            "joins": [each.to_dict() for each in self.joins],
            "values": {name: each.to_dict() for name, each in self.values.items()},
            "reads": {name: [each.to_dict() for each in read] for name, read in self.reads.items()},
        }


@dataclass(frozen=True, slots=True)
class Contributor:
    """A row that a summary was made of."""

    key: Mapping[str, Value]
    """What identifies it: its natural or group key."""
    row_id: str | None
    amounts: Mapping[str, Value]
    """What it adds to each total that is the sum of such amounts."""
    place: str | None
    reads: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    """What the other totals read of it: by column, the arguments with their values."""

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {
            "key": plain_row(self.key),
            "row_id": self.row_id,
            "amounts": plain_row(self.amounts),
            "reads": {name: plain_row(read) for name, read in self.reads.items()},
            "place": self.place,
        }


@dataclass(frozen=True, slots=True)
class Summary:
    """The group of a summary row."""

    key: Mapping[str, Value]
    rows: int
    totals: Mapping[str, Evaluated]
    contributors: tuple[Contributor, ...]
    """The largest first; not necessarily all."""
    sums: frozenset[str]
    """The totals that are exactly the sums of amounts of rows."""

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {
            "key": plain_row(self.key),
            "rows": self.rows,
            "totals": {name: {**each.to_dict(), "is_sum": name in self.sums} for name, each in self.totals.items()},
            "contributors": [each.to_dict() for each in self.contributors],
        }


@dataclass(frozen=True, slots=True)
class Contribution:
    """The contribution of a row to a total."""

    to: Explanation
    """The summary row; it is stored, or contributes to another one."""
    rows: int
    """How many rows the total is made of."""
    amounts: Mapping[str, Value]
    """What the row adds to each total that was asked about."""
    columns: frozenset[str] | None
    """The columns of the row that these are computed from; None for all."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a row has its values: a stored one, or one that contributes to it.

    It exists only if the stored row was recomputed with equal values.
    """

    run: str
    project: str
    period: str
    table: str
    row: Mapping[str, Value]
    """The row as it is stored; of a contributor, as the total saw it."""
    key: Mapping[str, Value]
    """The key in the question."""
    column: str | None
    """The column that was asked about; None for all."""
    operations: tuple[Touch, ...]
    """The operations that could act on the row, the last first."""
    origin: StoredPlace | Summary | None
    """Where the row comes from."""
    contribution: Contribution | None = None
    """For a row that is not stored but contributes to one that is."""
    names: Mapping[str, str] = field(default_factory=dict)
    """For columns that are written under other names, by these: the names that they have in the operations."""

    @property
    def asked(self) -> frozenset[str] | None:
        """The columns that are explained, as operations name them; None for all."""
        if self.contribution is not None:
            return self.contribution.columns
        return frozenset([self.working_column]) if self.working_column is not None else None

    @property
    def working_column(self) -> str | None:
        """The column that was asked about, as operations name it."""
        return self.names.get(self.column, self.column) if self.column is not None else None

    def to_dict(self) -> dict[str, object]:
        """As plain data, which `--json` prints."""
        is_summary = isinstance(self.origin, Summary)
        return {
            "run_id": self.run,
            "project": self.project,
            "period": self.period,
            "table": self.table,
            "key": plain_row(self.key),
            "column": self.column,
            "row": plain_row(self.row),
            "names": dict(self.names),
            "operations": [each.to_dict() for each in self.operations],
            "loaded": self.origin.to_dict() if self.origin is not None and not is_summary else None,
            "summary": self.origin.to_dict() if self.origin is not None and is_summary else None,
            "amounts": plain_row(self.contribution.amounts) if self.contribution is not None else None,
            "part_of": self.contribution.to.to_dict() if self.contribution is not None else None,
            "proved": True,
        }

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from dobonomodo.why.html import render_part

        return render_part(self)

    def to_html(self) -> str:
        """A self-contained page."""
        from dobonomodo.why.html import render_page

        return render_page(self)

    def __str__(self) -> str:
        from dobonomodo.why.text import render_text

        return "\n".join(render_text(self))


def with_relevant(touches: tuple[Touch, ...], columns: frozenset[str] | None) -> Iterator[Touch]:
    """The operations, last first, each with those values alone that some columns depend on."""
    if columns is None:
        yield from touches
        return
    needed = set(columns)
    for touch in touches:
        found = {name: each for name, each in touch.values.items() if name in needed}
        read = {name: each for name, each in touch.reads.items() if name in needed}
        reads = _columns_of(found, read)
        aliases = {name.partition(".")[0] for name in reads if "." in name}
        joins = tuple(each for each in touch.joins if each.alias in aliases)
        if touch.effect in ("selected", "added"):
            needed |= reads
            needed |= {name for each in joins if each.on is not None for name in each.on.reads}
        condition = touch.condition if found or read else None
        if condition is not None:
            needed |= condition.reads
        yield replace(touch, values=found, reads=read, joins=joins, condition=condition)


def columns_behind(touches: tuple[Touch, ...], columns: frozenset[str] | None) -> frozenset[str] | None:
    """The columns of a row, before any operation, that some columns depend on; None for all."""
    if columns is None:
        return None
    return columns.union(*(_columns_of(each.values, each.reads) for each in with_relevant(touches, columns)))


def _columns_of(values: Mapping[str, Evaluated], reads: Mapping[str, tuple[Evaluated, ...]]) -> frozenset[str]:
    """The columns that formulas read: those of values, and those of what totals read that are not sums."""
    formulas = (*values.values(), *(each for read in reads.values() for each in read))
    return frozenset(name for each in formulas for name in each.reads)


def plain_row(row: Mapping[str, Value]) -> dict[str, object]:
    """A row as plain data."""
    return {name: plain(value) for name, value in row.items()}


def plain(value: Value) -> object:
    """A value as plain data: exact numbers as text, dates and times in ISO 8601."""
    match value:
        case None | bool() | int() | str():
            return value
        case Moment():
            return f"{str(value).replace(' ', 'T')}Z"
        case Day():
            return str(value)
        case _:
            return write_number(value)


def show(value: Value) -> str:
    """A value for people."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            return value
        case _:
            return str(plain(value))
