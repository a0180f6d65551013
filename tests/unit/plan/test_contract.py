"""The checks that a dataset declares, as they are planned."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dobonomodo.formula import ColumnRef
from dobonomodo.formula.types import INTEGER
from dobonomodo.plan.check import Check, GroupCondition, RowCondition
from dobonomodo.plan.expression import equal, integer
from tests.unit.plan.building import WORLD_BUILT, plan_of, planned, update


def contract(check: str) -> Check:
    world = WORLD_BUILT.with_dataset(declaring(check))
    (found,) = plan_of(update("twice = id * 2"), world=world, input_id="own").contracts
    return found


def declaring(check: str) -> str:
    columns = "[{name: id, type: integer}, {name: region, type: string}, {name: day, type: date}]"
    return f"dataset: {{id: own, natural_key_columns: [id], checks: [{check}], main_table: {{name: own, columns: {columns}}}}}"


def test_rows_are_unique_by_columns_in_any_case() -> None:
    condition = contract("{unique: [ID, Region]}").condition
    assert isinstance(condition, GroupCondition)
    assert tuple(condition.groups.keys) == ("#id", "#region")
    assert condition.holds == equal(ColumnRef("=0", None, INTEGER), integer(1))


def test_a_violation_shows_its_key_and_the_columns_once() -> None:
    condition = contract("{not_null: [ID, Region]}").condition
    assert isinstance(condition, RowCondition)
    assert condition.shown == ("id", "region")


def test_a_check_that_cannot_be_read_is_reported_where_it_is() -> None:
    world = WORLD_BUILT.with_dataset(declaring('{range: {day: {min: "2026-02-30"}}}'))
    problems = planned(update("twice = id * 2"), world=world, input_id="own").problems
    assert [problem.code for problem in problems] == ["INVALID_DATE"]


def test_the_number_of_rows_may_differ_by_a_part() -> None:
    found = contract('{rows_against_previous: "12.5 %", severity: warn}')
    assert (found.tolerance, found.severity, found.text) == (Decimal("12.5"), "warn", "COUNT(*)")
    assert found.may_be_empty
    assert contract("{not_null: [region]}").tolerance is None


@pytest.mark.parametrize(
    "check", ["{values: {id: [id]}}", "{values: {id: [1, north]}}", "{range: {id: {min: 1, max: id + 1}}}"]
)
def test_a_value_of_a_number_is_a_number_and_no_formula(check: str) -> None:
    world = WORLD_BUILT.with_dataset(declaring(check))
    problems = planned(update("twice = id * 2"), world=world, input_id="own").problems
    assert [problem.code for problem in problems] == ["TYPE_MISMATCH"]


def test_numbers_of_any_sign_and_scale_are_compared() -> None:
    assert contract("{values: {id: [-1, 2.50]}}").text == "(ISNULL(`id`) OR `id` IN (-1, 2.50))"
