"""What the result of a check says, and what it means for the run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dobonomodo.plan.check import CheckResult, Severity, Status, find_stop

RESULT = CheckResult(10, "in balance", "debit = credit", "stop", "failed", "rows", 1_000, 2)


@pytest.mark.parametrize(
    ("severity", "status", "outcome"),
    [
        ("stop", "passed", "passed"),
        ("stop", "failed", "failed"),
        ("stop", "empty", "failed"),
        ("warn", "passed", "passed"),
        ("warn", "failed", "warned"),
        ("warn", "empty", "warned"),
    ],
)
def test_what_it_means_for_the_run(severity: Severity, status: Status, outcome: str) -> None:
    result = replace(RESULT, severity=severity, status=status)
    assert result.outcome == outcome
    assert result.stops == (outcome == "failed")
    assert (find_stop([result]) is not None) == (outcome == "failed")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"status": "empty", "reached": 0}, "no row reached it"),
        ({"status": "passed", "violations": 0}, "1,000 rows"),
        ({"what": "groups", "violations": 3}, "3 of 1,000 groups violate it"),
        ({"what": "total"}, "does not hold"),
        ({"what": "total", "status": "passed"}, "holds"),
        ({"what": "total", "left": "1000", "right": "1001", "difference": "-1"}, "1000 and 1001, difference -1"),
        ({"what": "total", "left": "1000", "right": "1000", "status": "passed", "amounts": True}, "1,000 and 1,000"),
        ({"what": "total", "left": "1000.50", "right": "x", "status": "passed"}, "1,000.50 and x"),
    ],
)
def test_it_is_told_in_a_few_words(changes: dict[str, Any], text: str) -> None:
    assert replace(RESULT, **changes).describe() == text


def test_it_is_recorded_and_read_again() -> None:
    result = replace(RESULT, sample=((("id", "1"), ("debit", "NULL")), (("id", "2"), ("debit", "3"))))
    document = result.document()
    assert document["sample"] == [[["id", "1"], ["debit", "NULL"]], [["id", "2"], ["debit", "3"]]]
    assert CheckResult.load(document) == result


@pytest.mark.parametrize(("rows", "status"), [(90, "passed"), (89, "failed"), (110, "passed"), (111, "failed")])
def test_the_number_of_rows_is_judged_by_the_period_before(rows: int, status: str) -> None:
    counted = replace(RESULT, status="passed", violations=0, what="total", reached=rows, tolerance="10")
    judged = counted.against(replace(counted, reached=100))
    assert (judged.status, judged.left, judged.right) == (status, str(rows), "100")
    assert (judged.difference, judged.violations) == (str(rows - 100), int(status == "failed"))
    assert counted.against(None) == counted


def test_checks_before_an_operation_stop_it() -> None:
    later = replace(RESULT, seq=20, name="complete")
    stopped = find_stop([RESULT, later])
    assert stopped is not None
    assert [problem.operation and problem.operation.seq for problem in (stopped.problem, *stopped.others)] == [10, 20]
    assert find_stop([RESULT, later], until=10) is None


def test_outputs_that_were_published_before_are_named() -> None:
    stopped = find_stop([RESULT], published=["orders"])
    assert stopped is not None
    hint = stopped.problem.hint() or ""
    assert "`orders`" in hint
    assert "no result was published" not in hint
    everything = find_stop([RESULT])
    assert everything is not None
    assert "no result was published" in (everything.problem.hint() or "")
