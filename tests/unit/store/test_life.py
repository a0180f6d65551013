from __future__ import annotations

from itertools import product

import pytest

from dobonomodo.problems import Rejected
from dobonomodo.problems.store import InvalidTransition
from dobonomodo.store import LIVE, PERIOD_LIFE, PROJECT_LIFE, PeriodStatus, ProjectEvent, ProjectStatus, further
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


def test_periods_go_one_step_or_stay() -> None:
    allowed = {(before, before) for before in PeriodStatus} | {(OPEN, CLOSED), (CLOSED, LOCKED)}
    for before, to in product(PeriodStatus, repeat=2):
        if (before, to) in allowed:
            assert next_period_status(before, to, calendar="c", identifier="p") is to
        else:
            with pytest.raises(Rejected) as refusal:
                next_period_status(before, to, calendar="c", identifier="p")
            (problem,) = refusal.value.problems
            assert isinstance(problem, InvalidTransition)
            assert problem.possible == PERIOD_LIFE[before]


def test_the_further_of_two_statuses() -> None:
    for one, other in product(PeriodStatus, repeat=2):
        assert further(one, other) is further(other, one)
    assert (further(OPEN, CLOSED), further(LOCKED, CLOSED), further(OPEN, OPEN)) == (CLOSED, LOCKED, OPEN)
