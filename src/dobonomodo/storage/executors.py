"""The port to Spark executors, for work that grows with the data: items are processed in parallel, by the same code as on the driver.

Storages define the work; the engine distributes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")

MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes above which executors do the work. Below them, a job costs more than it saves."""

    csv_bytes: int = 128 * MEGABYTE
    """All CSV files of a location."""
    checked_bytes: int = 256 * MEGABYTE
    """The columns of Parquet files of a location that have to be read to be checked."""
    footers: int = 5_000
    """The Parquet files of a location, whose footers are read."""
    object_bytes: int = 256 * MEGABYTE
    """The objects of a location, or the files of an output that become objects."""
    table_rows: int = 4_000_000
    """The rows of a table, as far as the database knows their number."""
    table_bytes: int = 256 * MEGABYTE
    """The files of an output whose rows go into a table."""

    @classmethod
    def of(cls, least: int) -> Limits:
        """The same for everything."""
        return cls(**dict.fromkeys(cls.__slots__, least))


class Executors(Protocol):
    """The executors of the Spark that a run computes on."""

    @property
    def limits(self) -> Limits:
        """When they are asked."""
        ...

    def do(self, work: Callable[[T], R], things: Sequence[T]) -> list[R] | None:
        """The results of the same work on several items, in their order; raises the first error in that order.

        None if executors cannot do it, which has been reported: then the driver does. ``work`` is a function of a module,
        or a ``partial`` of one. An item may be processed twice, even in parallel, since Spark may repeat a task.
        """
        ...
