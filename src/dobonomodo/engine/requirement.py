"""Assertions on rows: a row that violates one raises an error inside the job, with a message that names the row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dobonomodo.engine.context import RunContext
from dobonomodo.formula import flat_name
from dobonomodo.formula.sql import quote_text
from dobonomodo.plan.relation import Require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REQUIRED = "REQUIREMENT_NOT_MET"
"""Marks the message by which a requirement stops the job: the operation, a code, a reason, and values of the row follow."""


def require(node: Require, rows: DataFrame, *, run: RunContext) -> DataFrame:
    """The same rows; a violation raises an error inside the job."""
    head = quote_text(f"{REQUIRED}|{node.seq}|{node.code}|{node.reason}|")
    shown = show_values([(run.sql(each), flat_name(each)) for each in node.shown])
    fault = f"CAST(raise_error(concat({head}, {shown})) AS BOOLEAN)"
    return rows.where(f"CASE WHEN {run.sql(node.violated)} THEN {fault} ELSE TRUE END")


def show_values(shown: Sequence[tuple[str, str]]) -> str:
    """SQL for a text that shows values; each value is SQL with its name."""
    pairs = ", ', ', ".join(
        f"{quote_text(f'{name} = ')}, coalesce(CAST({sql} AS STRING), 'NULL')" for sql, name in shown
    )
    return f"concat({pairs})" if pairs else "''"
