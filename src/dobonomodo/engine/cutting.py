"""Cuts plans: rows up to a node are materialised once, and the rest of the plan starts from them.

Each aggregate doubles the plan, since its rows are both summed up and kept. Large plans take Spark longer to plan than to
compute.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from dobonomodo.formula.sql import quote_name

_PATTERN = re.compile(r"[\\{}\[\]*?]")
"""What Spark takes for a pattern in the name of what it reads, unless a backslash is before it."""

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Cut:
    """How a plan is cut."""

    apply: Callable[[DataFrame], DataFrame]
    in_memory: bool
    """Whether the rows are held in memory, where all frames of a run can share them."""


def hold_in_memory() -> Cut:
    """Cache rows in memory; the first job that needs them computes them. They are lost with the worker."""
    return Cut(lambda frame: frame.localCheckpoint(eager=False), in_memory=True)


def stage_in(folder: str, spark: SparkSession) -> Cut:
    """Write rows to files in a folder that all workers share, in a separate job."""
    numbers = count()

    def stage(frame: DataFrame) -> DataFrame:
        names, place = frame.columns, f"{folder}/stage-{next(numbers)}"
        # Plain names, because hidden names contain blanks and dots.
        frame.toDF(*(f"c{at}" for at in range(len(names)))).write.mode("overwrite").parquet(place)
        stored = spark.read.parquet(_PATTERN.sub(r"\\\g<0>", place))
        return stored.selectExpr(*(f"c{at} AS {quote_name(name)}" for at, name in enumerate(names)))

    return Cut(stage, in_memory=False)
