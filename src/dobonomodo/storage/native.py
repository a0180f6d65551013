"""Rows that Spark alone can read: by a connector that the session has, or by the name that a catalog knows.

Such rows have no positions. They are read where they are; what is said here of them, the session has found out by jobs of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.formula.sql import quote_name
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.problems.run import WrongCell
from dobonomodo.storage.faults import is_of_spark, removing_on_failure
from dobonomodo.storage.findings import MISSING, Findings, is_required
from dobonomodo.storage.parquet import select_stored
from dobonomodo.storage.rows import StoredRows
from dobonomodo.storage.storage import Session
from dobonomodo.storage.transport import UPLOADED, Transport, write_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_version(spark: SparkSession, form: str, address: str, version: int) -> DataFrame:
    """One version of the table at an address."""
    return spark.read.format(form).option("versionAsOf", version).load(address)


def why_unreadable(session: Session | None, form: str, address: str, version: int) -> str | None:
    """Why Spark cannot read a version of a table by its own means; None if it can."""
    if session is None:
        return "there is no session of Spark"
    try:
        read_version(session(), form, address, version).schema  # noqa: B018  Spark looks at the table when it is asked
    except Exception as fault:
        if not is_said_by_spark(fault):
            raise
        return "Spark has no such connector" if _is_unknown(fault) else explain_spark(fault)
    return None


def is_said_by_spark(fault: BaseException) -> bool:
    """Whether Spark is there and says what is wrong."""
    return is_of_spark(fault) and not isinstance(fault, ConnectionError | EOFError)


def _is_unknown(fault: BaseException) -> bool:
    return any(word in str(fault) for word in ("DATA_SOURCE_NOT_FOUND", "ClassNotFoundException"))


def explain_spark(fault: BaseException) -> str:
    """What Spark says, in one line: of an error of Java its message, without the stack."""
    cause = getattr(fault, "java_exception", None)
    text = str(cause.getMessage() or cause.toString()) if cause is not None else str(fault)
    return next((line.strip() for line in text.splitlines() if line.strip()), type(fault).__name__)


def find_missing(frame: DataFrame, use: DatasetUse, *, place: str) -> Findings:
    """The values that rows lack, counted by one job. Spark gives types as they are declared, or fails as it reads."""
    stored = use.as_stored()
    names = [name for name in frame.columns if is_required(name, stored)]
    if not names:
        return Findings()
    counted = frame.selectExpr(*(f"count_if({quote_name(name)} IS NULL)" for name in names)).collect()[0]
    counts = {name: count for name, count in zip(names, counted, strict=True) if count}
    return Findings(tuple(WrongCell(place=place, column=name, rule=MISSING) for name in counts), counts)


def rows_without_positions(frame: DataFrame, use: DatasetUse, *, period: str | None) -> StoredRows:
    """The rows with declared columns in their declared types, told apart by what is in them (C-85)."""
    return StoredRows(frame.selectExpr(*select_stored(frame.columns, (), use)), period)


def copy_rows(frame: DataFrame, folder: Path, transport: Transport | None = None) -> Sequence[str]:
    """Parquet files with the rows, for those who read without Spark; made once."""
    if not folder.exists():
        unfinished = folder.with_name(f"{folder.name}.part")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with removing_on_failure(unfinished):
            write_rows(frame.write.mode("overwrite"), unfinished, f"{UPLOADED}/{folder.name}", transport)
        unfinished.replace(folder)
    return [str(path) for path in sorted(folder.glob("*.parquet"))]
