"""``allocate``: what it reads, makes and conserves."""

from __future__ import annotations

import pytest

from dobonomodo.plan.conservation import find_conservation
from dobonomodo.plan.relation import AssignIds, Lookup, Match, Require, Stack
from tests.unit.plan.building import (
    WORLD_BUILT,
    aggregate,
    codes,
    nodes,
    plan_of,
    problem_in,
    step_of,
    types_after,
)

WORLD = WORLD_BUILT.with_dataset(
    "dataset: {id: heads, natural_key_columns: [region], main_table: {name: heads, columns: "
    "[{name: region, type: string}, {name: heads, type: integer}]}}"
)


def allocate(more: str = "", *, receivers: str = "dataset_id: heads", driver: str = "receivers.heads") -> str:
    tail = f", {more}" if more else ""
    arguments = f"amount: amount, receivers: {{{receivers}}}, driver: {driver}{tail}"
    return f'- {{seq: 1, type: allocate, selector: region = "N", arguments: {{{arguments}}}}}\n'


def changes(more: str) -> dict[str, list[str]]:
    return {
        each.column: [how for _, how in each.changes]
        for each in find_conservation(plan_of(allocate(more), world=WORLD))
    }


@pytest.mark.parametrize("pool", ["delete", "offset"])
def test_the_total_of_the_amount_stays(pool: str) -> None:
    found = changes(f"pool: {pool}")
    assert found["amount"] == []
    assert "adds rows" in found["quantity"]


def test_a_kept_pool_counts_twice() -> None:
    assert changes("pool: keep")["amount"] == ["adds rows"]


def test_ids_are_made_from_the_pool_and_the_natural_key_of_the_receiver() -> None:
    plan = plan_of(allocate(), world=WORLD)
    (ids,) = nodes(step_of(plan, 1).after.node, AssignIds)
    assert (ids.seq, ids.by) == (1, ("_row_id", "receivers.region"))


def test_ids_without_a_natural_key_are_made_from_the_position() -> None:
    plan = plan_of(allocate(receivers="dataset_id: budget", driver="receivers.amount"))
    (ids,) = nodes(step_of(plan, 1).after.node, AssignIds)
    assert ids.by == ("_row_id", "receivers._row_id")
    assert "receiver is repeated" not in {each.reason for each in nodes(step_of(plan, 1).after.node, Require)}


def test_the_default_stops_where_nobody_receives_without_reading_the_rows_again() -> None:
    top = step_of(plan_of(allocate(), world=WORLD), 1).after.node
    assert [match.unmatched for match in nodes(top, Match)] == [True]
    assert nodes(top, Lookup) == []
    kept = step_of(plan_of(allocate("no_receivers: keep"), world=WORLD), 1).after.node
    assert {match.unmatched for match in nodes(kept, Match)} == {False}
    assert len(nodes(kept, Lookup)) == 1


def test_an_offset_is_a_second_kind_of_row() -> None:
    step = step_of(plan_of(allocate("pool: offset"), world=WORLD), 1)
    assert isinstance(step.lowered.added, Stack)
    assert [each.by for each in nodes(step.lowered.added, AssignIds)] == [("_row_id",), ("_row_id", "receivers.region")]
    assert not step.deletes


@pytest.mark.parametrize(
    ("places", "kind"), [(0, "decimal(15,2)"), (2, "decimal(15,2)"), (4, "decimal(17,4)"), (10, "decimal(23,10)")]
)
def test_parts_may_need_more_digits_than_the_amount(places: int, kind: str) -> None:
    assert types_after(plan_of(allocate(f"round: {places}"), world=WORLD), 1)["amount"] == kind


def test_amounts_are_asked_for_what_their_type_allows_only() -> None:
    def reasons(more: str) -> set[str]:
        return {each.reason for each in nodes(step_of(plan_of(allocate(more), world=WORLD), 1).after.node, Require)}

    always = {"driver is NULL", "driver is negative", "driver is too large", "no receivers", "receiver is repeated"}
    assert reasons("round: 2") == always
    assert reasons("round: 1") == {*always, "amount is finer than round"}


@pytest.mark.parametrize(("digits", "is_checked"), [(32, False), (33, True)])
def test_only_amounts_that_could_be_too_large_are_asked_for_that(digits: int, is_checked: bool) -> None:
    columns = f'[{{name: region, type: string}}, {{name: amount, type: "decimal({digits},2)"}}]'
    world = WORLD.with_dataset(f"dataset: {{id: large, main_table: {{name: large, columns: {columns}}}}}")
    plan = plan_of(allocate("round: 2"), world=world, input_id="large")
    reasons = {each.reason for each in nodes(step_of(plan, 1).after.node, Require)}
    assert ("amount is too large" in reasons) == is_checked


def test_lineage_names_amount_driver_and_what_chooses() -> None:
    written = "set: [{column: status, expression: receivers.region}], match: receivers.region = orders.status"
    step = step_of(plan_of(allocate(written, receivers="dataset_id: heads, selector: heads > 0"), world=WORLD), 1)
    amount, status = step.after.origins["amount"], step.after.origins["status"]
    assert amount.inputs == {"sales.amount", "heads.heads"}
    assert amount.conditions >= {"sales.region", "sales.status", "heads.region", "heads.heads"}
    assert status.inputs == {"sales.status", "heads.region"}
    assert amount.operations == status.operations == (1,)
    assert step.after.origins["quantity"].operations == ()


def test_a_plan_says_what_happens() -> None:
    text = allocate("match: receivers.region = orders.region, set: [{column: status, expression: receivers.region}]")
    lines = step_of(plan_of(text, world=WORLD), 1).describe()
    assert lines == [
        "distributes amount to rows of heads",
        "matched on receivers.region = orders.region",
        "in proportion to receivers.heads, in parts of 2 digits behind the point",
        "with status = receivers.region",
        "deletes the rows it distributes; the total of amount stays",
        "fails where a row has no receivers",
    ]
    kept = step_of(plan_of(allocate("pool: keep, no_receivers: keep, round: 1"), world=WORLD), 1).describe()
    assert kept[-3:] == [
        "in proportion to receivers.heads, in parts of 1 digit behind the point",
        "keeps the rows it distributes; the total of amount grows by the parts",
        "keeps rows without receivers",
    ]


def test_a_table_cannot_be_called_receivers() -> None:
    world = WORLD.with_dataset(
        "dataset: {id: r, main_table: {name: Receivers, columns: [{name: region, type: string}, {name: amount, type: integer}]}}"
    )
    problem = problem_in(allocate(driver='"1"'), world=world, input_id="r")
    assert (problem.code, problem.taken_by) == ("JOIN_ALIAS_CONFLICT", "the main table")
    assert problem.hint() == "rename the main table: the operation itself uses this name"


def test_wrong_arguments_hide_nothing_that_follows() -> None:
    wrong = allocate("set: [{column: bonus, expression: receivers.heads}]", driver="receivers.head")
    assert codes(wrong + aggregate("region", "n = SUM(bonus)", seq=2), world=WORLD) == ["UNKNOWN_COLUMN"]


def test_receivers_of_no_day_are_not_read_as_of_one() -> None:
    problem = problem_in(allocate(receivers="dataset_id: heads, as_of: period_end"), world=WORLD)
    assert (problem.code, problem.key) == ("INVALID_VALUE", "as_of")
