"""Rows with their lineage, and the port that reads stored rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dobonomodo.formula import Typed
from dobonomodo.formula.meaning import Value
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.plan.relation import Group, Rel

if TYPE_CHECKING:
    from dobonomodo.engine.grouping import LargeGroup

Wanted = Mapping[str, frozenset[Value]]
"""The known values of the wanted rows, by column. Joined columns are ``alias.column``."""

AT_MOST = 50_000
"""Maximum number of rows that are computed in Python; Spark computes more."""


class TooManyRows(Exception):
    """More rows than Python should compute."""

    def __init__(self, use: DatasetUse) -> None:
        super().__init__(use.dataset_id)
        self.use = use


@dataclass(frozen=True, slots=True, eq=False)
class StoredRow:
    """A row as it is stored."""

    values: Mapping[str, Value]
    """By column, in lower case; only those columns that are stored."""
    number: int | None
    """Its place among all rows of the reading, from 0."""
    place: str
    """The file or table, and the row in it, for people."""
    period: str | None = None
    """The period that all rows of its location belong to."""
    file: str | None = None
    """The file that the run read it from."""


class Source(Protocol):
    """Where the pinned rows of a run are found."""

    def find(
        self, use: DatasetUse, wanted: Wanted, *, numbers: frozenset[int] | None, columns: frozenset[str] | None
    ) -> Iterable[StoredRow]:
        """The rows of a reading whose columns, in lower case, have wanted values.

        ``numbers``: only rows at these places. ``columns``: business columns, in lower case, that are enough.
        """
        ...


class LargeGroups(Protocol):
    """Computes groups of more rows than Python should."""

    def read(self, node: Group, keys: Wanted, *, names: Sequence[str], shares: Mapping[str, Typed]) -> list[LargeGroup]:
        """The groups whose keys have wanted values."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """A row of a node."""

    node: Rel
    values: Mapping[str, Value]
    """By the name of the column in a frame of the node."""
    below: tuple[Traced, ...]
    """The row that it was made of, then the joined one if there is one; for a group, all its rows."""
    identity: tuple[object, ...]
    """What identifies it among the rows of the node."""
    stored: StoredRow | None = None
    """For a scan."""
    large: LargeGroup | None = None
    """For a group whose rows Python has not computed."""


def satisfies(values: Mapping[str, Value], wanted: Wanted) -> bool:
    """Whether a row has the values that are looked for."""
    return all(values[name] in allowed for name, allowed in wanted.items())
