"""Stored rows as a frame, with columns that identify rows without an id."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dobonomodo.formula.sql import literal, quote_name
from dobonomodo.formula.types import DATE, INTEGER, TEXT
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.plan.system import PERIOD, PERIOD_FROM, PERIOD_TO

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROW_NUMBER = " row"
"""Counts rows over all files and locations of a reading. Names of ours start with a blank, which no name of a user's does."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredRows:
    """The rows of one location, with declared columns in their declared types and whatever system columns are stored.

    Rows without a stored id are told apart by ``ROW_NUMBER``; where there is none, by their natural key or all that is in them.
    """

    frame: DataFrame
    period: str | None = None
    """The period that all rows belong to, where the location says it."""
    positioned: Callable[[], DataFrame] | None = None
    """The same rows with their positions, where those must be asked for because they cost something."""
    count: Callable[[], int] | None = None
    """How many rows are stored, where that is known without reading them."""

    @property
    def has_positions(self) -> bool:
        """Whether the place of a row in its source is known."""
        return self.positioned is not None or ROW_NUMBER in self.frame.columns


def empty_rows(spark: SparkSession, use: DatasetUse) -> StoredRows:
    """No rows, of a reading that has no location."""
    system = {PERIOD: TEXT, PERIOD_FROM: DATE, PERIOD_TO: DATE, ROW_NUMBER: INTEGER}
    columns = ", ".join(
        f"{literal(None, kind)} AS {quote_name(name)}" for name, kind in {**use.columns, **system}.items()
    )
    return StoredRows(spark.sql(f"SELECT {columns}").where("FALSE"))
