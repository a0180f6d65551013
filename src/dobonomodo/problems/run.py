"""What can go wrong while a run computes and writes. Earlier outputs stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dobonomodo.problems.problem import Example, Problem, listed


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinMultipleMatches(Problem):
    """A selected row matches more than one row of a joined dataset, and choosing one would change totals silently."""

    code: ClassVar[str] = "JOIN_MULTIPLE_MATCHES"
    example: ClassVar[Example] = Example(
        "two exchange rates for one day and currency", "one exchange rate for a day and currency"
    )

    alias: str
    keys: str
    count: int

    def message(self) -> str:
        return f"`{self.alias}` has {self.count} rows that match {self.keys}; at most one may"

    def hint(self) -> str | None:
        return "mend the data, or make `on` precise enough to leave one row"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArithmeticOverflow(Problem):
    """A number became too large for its type. Whole numbers have 64 bits, decimals 38 digits."""

    code: ClassVar[str] = "ARITHMETIC_OVERFLOW"
    example: ClassVar[Example] = Example("quantity * 9223372036854775807", "TO_DECIMAL(quantity) * 9223372036854775807")

    detail: str

    def message(self) -> str:
        return f"a number is too large: {self.detail}"

    def hint(self) -> str | None:
        return "compute with decimals, or divide first"


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidNumber(Problem):
    """A text that should be a number is none."""

    code: ClassVar[str] = "INVALID_NUMBER"
    example: ClassVar[Example] = Example('VALUE("twelve")', 'TRY_VALUE("twelve")')

    text: str

    def message(self) -> str:
        return f"`{self.text}` is not a number"

    def hint(self) -> str | None:
        return "mend the data, or use the TRY_ form of the function, which gives NULL"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataLoad(Problem):
    """Stored rows cannot be read, or are not what the dataset says they are."""

    code: ClassVar[str] = "DATA_LOAD"
    example: ClassVar[Example] = Example(
        "a Parquet file without the column `amount` that the dataset declares",
        "a Parquet file with all declared columns",
    )

    dataset_id: str
    detail: str
    differences: tuple[str, ...] = ()

    def message(self) -> str:
        more = f": {'; '.join(self.differences)}" if self.differences else ""
        return f"dataset `{self.dataset_id}`: {self.detail}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendDataLoad(DataLoad):
    """The rows to append cannot be read, or are not what their dataset says they are."""

    code: ClassVar[str] = "APPEND_008"
    example: ClassVar[Example] = Example("budget/2026/01.parquet is missing", "budget/2026/01.parquet is there")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputWrite(Problem):
    """An output could not be written."""

    code: ClassVar[str] = "OUTPUT_WRITE"
    example: ClassVar[Example] = Example("a destination on a full disk", "a destination with room")

    destination: str
    detail: str

    def message(self) -> str:
        return f"writing to `{self.destination}` failed: {self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkFailed(Problem):
    """Spark stopped for a reason that is not in the data as far as we can tell."""

    code: ClassVar[str] = "SPARK_FAILED"
    example: ClassVar[Example] = Example("a driver without memory", "`--spark-conf spark.driver.memory=8g`")

    detail: str
    conditions: tuple[str, ...] = ()

    def message(self) -> str:
        kinds = f" ({listed(self.conditions)})" if self.conditions else ""
        return f"Spark stopped{kinds}: {self.detail}"

    def hint(self) -> str | None:
        return "`dobo --debug` shows Spark's own report"


RUN_PROBLEMS: tuple[type[Problem], ...] = (
    JoinMultipleMatches,
    ArithmeticOverflow,
    InvalidNumber,
    DataLoad,
    AppendDataLoad,
    OutputWrite,
    SparkFailed,
)
