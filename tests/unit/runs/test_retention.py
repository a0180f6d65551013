"""Which runs need the copies of their inputs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dobonomodo.runs.retention import find_locked_result, find_locked_runs, find_needed_hashes
from dobonomodo.store import Entry, PeriodEvent, Run, Subject

AT = datetime(2026, 2, 3, 8, tzinfo=UTC)


def run(name: str, *, status: str = "completed", period: str = "2026-01", draft: bool = False, fence: int = 1) -> Run:
    project: dict[str, Any] = {"status": "draft" if draft else "active", "document": {}}
    return Run(
        id=name,
        project="close",
        version=1,
        period=period,
        status=status,
        by="ann",
        created_at=AT + timedelta(minutes=fence),
        updated_at=AT,
        snapshot={"project": project},
        progress={"inputs": {"input/lines": [[f"{name}-1", None], [f"{name}-2"]]}},
        fence=fence,
    )


FIRST, SECOND, FAILED, DRAFT = (
    run("first"), run("second", fence=2), run("failed", status="failed", fence=3), run("draft", draft=True, fence=4)
)  # fmt: skip
NEXT = run("next", period="2026-02")
ALL = (FIRST, SECOND, FAILED, DRAFT, NEXT)


@pytest.mark.parametrize(
    ("policy", "protected", "names"),
    [
        ("always", (), ["draft", "failed", "first", "next", "second"]),
        ("current", (), ["next", "second"]),
        ("current", ("first",), ["first", "next", "second"]),
        ("no", (), []),
        ("no", ("first",), ["first"]),
    ],
)
def test_needed(policy: str, protected: tuple[str, ...], names: list[str]) -> None:
    needed = find_needed_hashes(ALL, policy=policy, protected=protected)
    assert needed == {f"{name}-{number}" for name in names for number in (1, 2)}


def test_a_run_of_a_version_that_hashed_nothing_needs_nothing() -> None:
    assert find_needed_hashes([replace(FIRST, progress={})], policy="always", protected=()) == frozenset()


def test_results_of_a_reopened_period_are_needed_until_it_is_locked_again() -> None:
    def entry(event: str, *runs: str) -> Entry:
        detail = {"kept": [{"run": name} for name in runs]} if runs else None
        return Entry(subject=Subject.of_period("2026-01"), event=event, at=AT, by="ann", detail=detail)

    reopened = [entry(PeriodEvent.LOCK), entry(PeriodEvent.REOPEN, "first", "other")]
    assert find_locked_runs(reopened) == {"first", "other"}
    assert find_locked_runs([*reopened, entry(PeriodEvent.CLOSE), entry(PeriodEvent.LOCK)]) == frozenset()


def test_the_first_run_after_a_locked_period_was_reopened_has_something_to_compare_with() -> None:
    def entry(event: str, minute: int, *runs: str) -> Entry:
        detail = {"kept": [{"run": name, "project": "close"} for name in runs]} if runs else None
        at = AT + timedelta(minutes=minute)
        return Entry(subject=Subject.of_period("2026-01"), event=event, at=at, by="ann", detail=detail)

    locked, first, second = run("first"), run("second", fence=3), run("third", fence=4)
    history = [entry(PeriodEvent.LOCK, 1), entry(PeriodEvent.REOPEN, 2, "first")]
    assert find_locked_result(history, [locked, first], first) == "first"
    assert find_locked_result(history, [locked, first, second], second) is None
    assert find_locked_result(history, [locked, DRAFT], DRAFT) is None
    assert find_locked_result(history, [locked, replace(first, status="failed"), second], second) == "first"
    assert find_locked_result([*history, entry(PeriodEvent.LOCK, 3)], [locked, second], second) is None
    assert find_locked_result([], [first], first) is None
