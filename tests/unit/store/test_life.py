from __future__ import annotations

from itertools import product

import pytest

from dobonomodo.problems import Rejected
from dobonomodo.problems.store import InvalidTransition
from dobonomodo.store import LIVE, PERIOD_LIFE, PROJECT_LIFE, PeriodEvent, PeriodStatus, ProjectEvent, ProjectStatus
from dobonomodo.store.life import next_period_status, next_project_status

OPEN, CLOSED, LOCKED = PeriodStatus


def test_only_live_versions_run_into_conflicts_or_end() -> None:
    for event in (ProjectEvent.CONFLICT, ProjectEvent.SUPERSEDE, ProjectEvent.DEACTIVATE):
        assert {status for status, known in PROJECT_LIFE if known is event} == set(LIVE)


def test_nothing_becomes_a_draft_again() -> None:
    assert ProjectStatus.DRAFT not in PROJECT_LIFE.values()


def test_every_version_can_be_activated() -> None:
    activated = {PROJECT_LIFE.get((status, ProjectEvent.ACTIVATE)) for status in ProjectStatus}
    assert activated == {ProjectStatus.ACTIVE}


def test_a_refusal_names_what_is_possible() -> None:
    with pytest.raises(Rejected) as refusal:
        next_project_status(ProjectStatus.DRAFT, ProjectEvent.KEEP_PIN, project="sales", version=3)
    assert refusal.value.problems == (
        InvalidTransition(
            subject="project `sales` version 3", status="draft", wanted="keep pin", possible=("activate",)
        ),
    )


def test_a_period_goes_on_one_step_at_a_time_and_back_only_by_reopening() -> None:
    moves = {(before, event): after for (before, event), after in PERIOD_LIFE.items() if after is not before}
    assert moves == {
        (OPEN, PeriodEvent.CLOSE): CLOSED,
        (CLOSED, PeriodEvent.LOCK): LOCKED,
        (CLOSED, PeriodEvent.REOPEN): OPEN,
        (LOCKED, PeriodEvent.REOPEN): OPEN,
    }


def test_the_same_again_stays() -> None:
    same = {PeriodEvent.OPEN: OPEN, PeriodEvent.CLOSE: CLOSED, PeriodEvent.LOCK: LOCKED, PeriodEvent.REOPEN: OPEN}
    for event, status in same.items():
        assert next_period_status(status, event, calendar="c", identifier="p") is status


def test_a_refused_event_of_a_period_names_what_is_possible() -> None:
    for before, event in product(PeriodStatus, PeriodEvent):
        if (before, event) in PERIOD_LIFE:
            continue
        with pytest.raises(Rejected) as refusal:
            next_period_status(before, event, calendar="c", identifier="p")
        (problem,) = refusal.value.problems
        assert isinstance(problem, InvalidTransition)
        assert problem.possible == tuple(
            known for (status, known), after in PERIOD_LIFE.items() if status is before and after is not before
        )
