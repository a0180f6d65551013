"""Row counts in words."""

from __future__ import annotations

import pytest

from dobonomodo.cli.progress import describe_counts
from dobonomodo.runs import Operation


@pytest.mark.parametrize(
    ("type_name", "said"),
    [
        ("update", "1,000 rows, 7 changed"),
        ("aggregate", "1,000 rows, 3 added"),
        ("append", "1,000 rows, 3 added"),
        ("delete", "1,000 rows, 7 deleted"),
        ("output", "1,000 rows, 7 written"),
        ("of another version", "1,000 rows, 7 selected"),
    ],
)
def test_counts_are_said_as_the_type_asks_for(type_name: str, said: str) -> None:
    assert describe_counts(Operation(1, "a", type_name, rows_in=1000, selected=7, added=3)) == said


def test_an_operation_that_was_not_reached() -> None:
    assert describe_counts(Operation(1, "a", "update")) == "not reached"
