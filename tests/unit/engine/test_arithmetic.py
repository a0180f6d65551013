"""Which answers of a server are those of Spark."""

from __future__ import annotations

import pytest

from dobonomodo.engine.arithmetic import ANSWERS, find_differences

WRONG = {
    "CAST(max(n) AS DECIMAL(10,2)) / 3": "0.33",
    "avg(d)": "1.006666",
    "CAST(max(d) + 0.000001 AS DECIMAL(38,18)) * CAST(0.5 AS DECIMAL(38,18))": "0.505000",
    "round(max(d) - 0.985, 2)": "0.02",
    "max(s)": "2026-01-01 09:30:00",
    "upper(max(t))": "İĞDIR",
    "xxhash64(max(T), max(D), max(n) IS NULL)": "1",
}


def test_the_answers_of_spark_are_accepted() -> None:
    assert find_differences(ANSWERS, overflow=None) == ()


@pytest.mark.parametrize("sql", ANSWERS)
def test_each_answer_counts(sql: str) -> None:
    (difference,) = find_differences({**ANSWERS, sql: WRONG[sql]}, overflow=None)
    assert sql in difference
    assert WRONG[sql] in difference
    assert find_differences({**ANSWERS, sql: None}, overflow=None) != ()


def test_an_overflow_must_be_refused() -> None:
    (difference,) = find_differences(ANSWERS, overflow="-9223372036854775808")
    assert "-9223372036854775808" in difference
    assert find_differences(ANSWERS, overflow="None") != ()


def test_a_compatible_server_that_was_seen_to_differ_is_refused() -> None:
    """The answers of pysail 0.7.2, which speaks the protocol of Spark Connect."""
    answers = {
        **ANSWERS,
        "avg(d)": "1.006666",
        "CAST(max(d) + 0.000001 AS DECIMAL(38,18)) * CAST(0.5 AS DECIMAL(38,18))": "0.505000500000000000000000000000000000",
    }
    assert len(find_differences(answers, overflow="-9223372036854775808")) == 3


def test_a_server_without_answers_is_refused() -> None:
    assert len(find_differences({}, overflow=None)) == len(ANSWERS)
