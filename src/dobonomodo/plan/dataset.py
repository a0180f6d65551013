"""Datasets as planning sees them: their versions, and how an operation reads one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Literal, Protocol

from dobonomodo.formula import Columns, Type
from dobonomodo.formula.types import DECIMAL, DecimalType, parse_type
from dobonomodo.model.dataset import Dataset
from dobonomodo.model.document import Places
from dobonomodo.model.horizon import CURRENT, Horizon
from dobonomodo.model.plain import Document
from dobonomodo.model.schema import AsOf, Column, DataType, TemporalMode
from dobonomodo.plan.columns import AnyColumns
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.system import SYNONYMS, system_columns
from dobonomodo.problems import OperationRef, Span

Role = Literal["input", "lookup", "join", "append", "against"]


class Stored(Protocol):
    """The place of written rows: of one output, or of a registered version of a dataset."""

    @property
    def kind(self) -> str:
        """The kind of storage."""
        ...

    @property
    def datasource_id(self) -> str | None:
        """The datasource that is needed to read it; None where the address says it all."""
        ...

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The stored columns in their order, where they are recorded: for a registered version."""
        ...

    @property
    def shown(self) -> str | None:
        """How people find it, where that says more than the name of the destination."""
        ...

    @property
    def place(self) -> tuple[str | None, ...]:
        """What two outputs have in common that write to the same destination."""
        ...

    @property
    def lasting(self) -> Stored | None:
        """The place of the same rows, whatever later runs write to the destination; None where those replace them."""
        ...

    def document(self) -> dict[str, object]:
        """As plain data."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class KnownDataset:
    """A version of a dataset that can be planned with."""

    dataset: Dataset
    version: int
    registered: Stored | None = None
    """Where its rows are, if an output registered it."""
    has_period: bool = False
    """Whether its stored rows carry ``_period`` although its temporal mode does not say so."""
    registered_by: tuple[str, ...] = ()
    """The projects that will register it, where none has yet."""
    planned: bool = False
    """Whether the dataset is known only from the plan of such a project."""


class Datasets(Protocol):
    """What datasets there are."""

    def ids(self) -> Sequence[str]:
        """Every id, for suggestions."""
        ...

    def versions(self, dataset_id: str) -> Sequence[int]:
        """The versions that can be read, none for an unknown id."""
        ...

    def is_broken(self, dataset_id: str) -> bool:
        """Whether a dataset exists and cannot be read, which is reported where it is defined."""
        ...

    def find(self, dataset_id: str, version: int | None = None) -> KnownDataset | None:
        """A version, or without one the highest that is active."""
        ...


def freeze_options(options: Mapping[str, object]) -> tuple[tuple[str, object], ...]:
    """Options as a value that can be compared and hashed."""
    return tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in options.items())


@dataclass(frozen=True, slots=True)
class Location:
    """A place that rows are read from, and the period whose rows are there, if it is by period."""

    datasource_id: str
    kind: str
    path: str | None = None
    table: str | None = None
    schema: str | None = None
    period: str | None = None
    options: tuple[tuple[str, object], ...] = ()
    """Options of the datasource that are different here."""

    def __str__(self) -> str:
        where = self.path if self.path is not None else ".".join(filter(None, (self.schema, self.table)))
        return f"{self.datasource_id}:{where}"


@dataclass(frozen=True, slots=True)
class ReadPeriod:
    """A period that rows are read for."""

    identifier: str
    start_date: date
    end_date: date

    def document(self) -> dict[str, str]:
        """As plain data."""
        return {
            "identifier": self.identifier,
            "start_date": self.start_date.isoformat(),
            "end_date": self.end_date.isoformat(),
        }

    @classmethod
    def load(cls, document: Mapping[str, str]) -> ReadPeriod:
        """From plain data."""
        start, end = date.fromisoformat(document["start_date"]), date.fromisoformat(document["end_date"])
        return cls(document["identifier"], start, end)


@dataclass(frozen=True, slots=True)
class Timing:
    """What a definition says about the time of a reading, and where it is written."""

    as_of: AsOf | None = None
    horizon: Horizon = CURRENT
    may_be_missing: bool = False
    places: Places | None = None


@dataclass(frozen=True, slots=True, eq=False)
class DatasetUse:
    """One reading of a table: what for, in which version, with which columns, from where."""

    role: Role
    dataset_id: str
    version: int
    table: str
    temporal_mode: TemporalMode | None
    columns: Columns
    """Business columns, as declared."""
    as_of: AsOf | None = None
    """The day on which its rows must be valid, where the definitions name one."""
    horizon: Horizon = CURRENT
    """The periods that it is for, as the definitions say."""
    periods: tuple[ReadPeriod, ...] | None = None
    """Those periods, where they are other ones than the run's and that is known."""
    may_be_missing: bool = False
    """Whether a period may be missing or without rows."""
    natural_key: tuple[str, ...] = ()
    nullable: frozenset[str] = frozenset()
    alias: str | None = None
    operation: OperationRef | None = None
    """The operation that reads it; None for the input and its lookups."""
    resolver_id: str | None = None
    rule: str | None = None
    """The rule of the resolver that made the locations."""
    locations: tuple[Location, ...] = ()
    registered: Stored | None = None
    registered_by: tuple[str, ...] = ()
    """The projects that must run before there are rows to read, if they are not found otherwise."""
    planned: bool = False
    place: Span | None = None
    """Where the project names it."""
    optional: frozenset[str] = frozenset()
    """Columns, in lower case, that stored rows may lack and that are then NULL, if they may be (C-86)."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """What columns are called where they are stored, if not by their names."""

    @property
    def key(self) -> str:
        """Identifies a reading within a project, also in snapshots."""
        return reading_key(self.role, self.dataset_id, self.version, self.table, self.seq, self.alias)

    @property
    def is_awaited(self) -> bool:
        """Whether its rows are still to be registered."""
        return bool(self.registered_by) and self.registered is None and not self.locations and self.resolver_id is None

    def valid_on(self, run: RunFacts, as_of: date | None) -> date:
        """The day on which bitemporal rows must be valid: the run's own, else the one that is named (C-94).

        The run's own is for its own period alone.
        """
        if self.periods is not None and self.periods:
            other = self.periods[-1]
            return other.end_date if self.as_of == "period_end" else other.start_date
        return as_of or (run.period_end if self.as_of == "period_end" else run.period_start)

    def identifiers(self, run: RunFacts) -> tuple[str, ...]:
        """The periods that rows of a dataset with periods may belong to."""
        own = [run.period] if self.periods is None else [each.identifier for each in self.periods]
        return tuple(dict.fromkeys([*own, *(each.period for each in self.locations if each.period is not None)]))

    @property
    def seq(self) -> int | None:
        """The number of the operation that reads it."""
        return self.operation.seq if self.operation is not None else None

    def as_stored(self) -> DatasetUse:
        """The same with the names that columns have where they are stored."""
        if not self.sources:
            return self
        return replace(
            self,
            columns=Columns({self.sources.get(name, name): kind for name, kind in self.columns.items()}),
            natural_key=tuple(self.sources.get(name, name) for name in self.natural_key),
            nullable=frozenset(self.sources.get(name, name) for name in self.nullable),
            sources={},
        )

    def name_of(self, stored: str) -> str:
        """The column that has a name where it is stored; the name itself for any other."""
        folded = stored.casefold()
        return next((name for name, source in self.sources.items() if source.casefold() == folded), stored)


class Timed(Protocol):
    """A part of a definition that reads a dataset."""

    @property
    def as_of(self) -> AsOf | None: ...
    @property
    def period(self) -> Horizon | None: ...
    @property
    def missing(self) -> str | None: ...


def time_reading(given: Timed, places: Places | None) -> Timing:
    """What a definition says about the time of a reading."""
    return Timing(given.as_of, given.period or CURRENT, given.missing == "empty", places)


def reading_key(role: str, dataset_id: str, version: int, table: str, seq: int | None, alias: str | None) -> str:
    """The key of a reading, from what a plan or a record says of it."""
    return f"{role}/{dataset_id}/v{version}/{table}/{seq or 0}/{alias or ''}"


def recorded_key(reading: Document) -> str:
    """The key of a reading in the snapshot of a run."""
    return reading_key(*(reading[name] for name in ("role", "dataset", "version", "table", "operation_seq", "alias")))


def stored_names(columns: Sequence[Column]) -> dict[str, str]:
    """What columns are called where they are stored, those that are not called by their names."""
    return {column.name: column.source for column in columns if column.source is not None}


def column_types(columns: Sequence[Column]) -> dict[str, Type]:
    """Declared columns with the types that formulas compute with."""
    return {column.name: type_of(column.type) for column in columns}


def type_of(declared: DataType) -> Type:
    """The type that formulas compute with."""
    if declared.precision is not None and declared.scale is not None:
        return DecimalType(declared.precision, declared.scale)
    return parse_type(declared.name) or DECIMAL


def working_columns(columns: Mapping[str, Type], temporal_mode: TemporalMode | None) -> Columns:
    """The columns of a working dataset: the business columns, then those of the system."""
    made = type(columns) if isinstance(columns, Columns) else Columns
    return made({**columns, **system_columns(temporal_mode)}, synonyms=SYNONYMS)


def unknown_use(role: Role, dataset_id: str, *, alias: str | None = None) -> DatasetUse:
    """A reading of a dataset that could not be found."""
    return DatasetUse(role, dataset_id, 0, "", None, AnyColumns({}), alias=alias)
