"""The snapshot of a run: the day of each reading is recorded, and a plan is restored with the same days."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from dobonomodo.formula.typed import Value
from dobonomodo.plan import Plan
from dobonomodo.plan.destination import Together
from dobonomodo.plan.facts import RunFacts
from dobonomodo.problems import InternalError, Rejected
from dobonomodo.problems.run import SnapshotTooNew
from dobonomodo.runs import restore_snapshot, take_snapshot
from dobonomodo.runs.snapshot import FORMAT, load_datasources
from dobonomodo.storage.table_target import StoredTable
from tests.unit.plan.building import MONTHS, WORLD, plan_of, update, world_from
from tests.world import FIRST_QUARTER

NAMED = date(2026, 2, 14)
WORLD_BUILT = world_from(WORLD)
PLAN = plan_of(
    update(
        "a = one.rate",
        "b = two.rate",
        joins="- {alias: one, dataset_id: rates, on: one.country = region}\n"
        "- {alias: two, dataset_id: rates, as_of: period_end, on: two.country = region}",
    ),
    world=WORLD_BUILT,
)


def snapshot(
    as_of: date | None, *, together: Together | None = None, plan: Plan = PLAN, facts: RunFacts = FIRST_QUARTER
) -> dict[str, Any]:
    known = [WORLD_BUILT.datasets.find(use.dataset_id) for use in plan.uses[:2]]
    taken = take_snapshot(
        plan,
        facts,
        as_of=as_of,
        version=1,
        status="active",
        datasets=[each for each in known if each is not None],
        resolvers=[],
        datasources=WORLD_BUILT.definitions.datasources,
        together=together,
        inputs=None,
        versions={},
    )
    read: dict[str, Any] = json.loads(json.dumps(taken))
    return read


def days(document: dict[str, Any]) -> list[date]:
    """The days that a restored run reads bitemporal rows for."""
    restored = restore_snapshot(document)
    uses = [use for use in restored.plan.uses if use.temporal_mode == "bitemporal"]
    return [use.valid_on(restored.facts, restored.as_of) for use in uses]


@pytest.mark.parametrize(
    ("as_of", "expected"), [(None, [FIRST_QUARTER.period_start, FIRST_QUARTER.period_end]), (NAMED, [NAMED, NAMED])]
)
def test_each_reading_is_recorded_and_restored_with_its_day(as_of: date | None, expected: list[date]) -> None:
    document = snapshot(as_of)
    assert [each["as_of"] for each in document["readings"]] == [None, *(each.isoformat() for each in expected)]
    assert document["as_of"] == (as_of.isoformat() if as_of else None)
    assert days(document) == expected


def test_the_datasource_of_a_registered_version_is_recorded() -> None:
    """It is neither found by a resolver nor written."""
    names = list(WORLD_BUILT.definitions.datasources)
    for name in names:
        stored = StoredTable(name, None, "rates")
        uses = tuple(replace(use, locations=(), registered=stored) for use in PLAN.uses)
        steps = tuple(step for step in PLAN.steps if not step.lowered.write)
        document = snapshot(None, plan=replace(PLAN, uses=uses, steps=steps))
        assert [each["id"] for each in document["datasources"]] == [name]


def test_what_publishing_together_means_is_recorded() -> None:
    assert snapshot(None)["together"] is None
    document = snapshot(None, together=Together("one act", {"lake": "one link"}))
    assert document["together"] == {"means": "one act", "places": {"lake": "one link"}}
    assert restore_snapshot(document).plan.project == PLAN.project


def test_a_snapshot_of_an_older_program() -> None:
    """It has one day for the run, and none for its readings."""
    document = snapshot(None)
    document["as_of"] = "2026-01-01"
    for reading in document["readings"]:
        del reading["as_of"]
    for dataset in document["datasets"]:
        dataset["document"]["main_table"].pop("as_of", None)
    assert days(document) == [FIRST_QUARTER.period_start, FIRST_QUARTER.period_start]


@pytest.mark.parametrize("number", [FORMAT + 1, 99, 0, None, "2"])
def test_a_snapshot_of_another_format_is_refused_and_not_misread(number: object) -> None:
    document = snapshot(None)
    assert document["format"] == FORMAT
    document["format"] = number
    with pytest.raises(Rejected) as refused:
        restore_snapshot(document)
    assert refused.value.problems == (SnapshotTooNew(found=str(number), known=FORMAT),)


def test_a_snapshot_without_a_format_is_refused() -> None:
    document = snapshot(None)
    del document["format"]
    with pytest.raises(Rejected) as refused:
        restore_snapshot(document)
    assert [problem.code for problem in refused.value.problems] == ["SNAPSHOT_TOO_NEW"]


def test_parameters_are_recorded_and_restored_in_their_types() -> None:
    head = "parameters: {uplift: {type: 'decimal(5,4)', default: 0.03}, day: {type: date}}"
    plan = plan_of(update("a = param.uplift", "b = param.day"), head=head, world=WORLD_BUILT)
    given: dict[str, Value] = {"uplift": Decimal("0.05"), "day": NAMED}
    taken = snapshot(None, plan=plan, facts=replace(FIRST_QUARTER, parameters=given))
    assert taken["parameters"] == {"uplift": "0.05", "day": "2026-02-14"}
    assert restore_snapshot(taken).facts.parameters == given


def test_the_periods_of_a_reading_are_recorded_and_restored() -> None:
    joins = "- {alias: b, dataset_id: budget, period: {last: 2}, on: b.region = region}"
    world = WORLD_BUILT.resolving(schedule=MONTHS, period=MONTHS.by_identifier["2026-02"])
    plan = plan_of(update("a = b.amount", joins=joins), world=world)
    taken = snapshot(None, plan=plan)
    assert [each["periods"] for each in taken["readings"]] == [
        None,
        [
            {"identifier": "2026-01", "start_date": "2026-01-01", "end_date": "2026-01-31"},
            {"identifier": "2026-02", "start_date": "2026-02-01", "end_date": "2026-02-28"},
        ],
    ]
    assert restore_snapshot(taken).plan.uses[1].periods == plan.uses[1].periods


def change_project(document: dict[str, Any]) -> None:
    document["project"]["document"]["operations"][0]["arguments"]["assignments"][0]["expression"] = "two.rate"


def break_project(document: dict[str, Any]) -> None:
    document["project"]["document"]["operations"][0]["arguments"]["assignments"][0]["expression"] = "no.rate"


@pytest.mark.parametrize("change", [change_project, break_project])
def test_a_project_that_is_not_the_recorded_one_is_not_run(change: Callable[[dict[str, Any]], None]) -> None:
    document = snapshot(None)
    change(document)
    with pytest.raises(InternalError, match="the plan cannot be restored"):
        restore_snapshot(document)


def test_snapshots_of_older_programs_have_no_parameters() -> None:
    taken = snapshot(None)
    del taken["parameters"]
    assert restore_snapshot(taken).facts.parameters == {}


def test_datasources_are_recorded_and_loaded() -> None:
    assert load_datasources(snapshot(None)) == {"lake": WORLD_BUILT.definitions.datasources["lake"]}
