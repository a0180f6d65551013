"""What Spark's connectors say when somebody else committed first. Commits themselves: tests/native."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from dobonomodo.storage.catalog_log import is_being_made, is_conflict, is_not_there


@pytest.mark.parametrize(
    "said",
    [
        "[DELTA_CONCURRENT_APPEND] This transaction failed",
        "[DELTA_METADATA_CHANGED] another process updated it",
        "org.apache.iceberg.exceptions.CommitFailedException: Requirement failed",
        "Cannot fast-forward: main is not an ancestor of x",
        "Failed to enforce scan consistency: resolved Spark table snapshot (1) vs scan snapshot (2)",
    ],
)
def test_who_came_second_tries_again(said: str) -> None:
    assert is_conflict(PySparkException(said))
    assert is_being_made(PySparkException(said))
    assert not is_conflict(ValueError(said))


def test_other_faults_are_no_conflicts() -> None:
    assert not is_conflict(PySparkException("[TABLE_OR_VIEW_NOT_FOUND] x"))
    assert is_not_there(PySparkException("[TABLE_OR_VIEW_NOT_FOUND] x"))
    assert not is_conflict(PySparkException("[TABLE_OR_VIEW_ALREADY_EXISTS] x"))
    assert is_being_made(PySparkException("[TABLE_OR_VIEW_ALREADY_EXISTS] x"))
