"""The expressions that operations are built from."""

from __future__ import annotations

from dobonomodo.formula import ColumnRef, render_formula
from dobonomodo.plan.expression import ACTIVE, CLOCK, TRUE, all_of, equal, if_else, integer, null, text
from tests.unit.formula.orders import type_of
from tests.world import JANUARY

PAID = ColumnRef("paid", None, type_of("boolean"))


def sql(expression: object) -> str:
    return render_formula(expression, JANUARY)  # type: ignore[arg-type]


def test_no_condition_is_true() -> None:
    assert all_of() == all_of(None, TRUE) == TRUE


def test_one_condition_stands_alone() -> None:
    assert all_of(None, PAID, TRUE) == PAID


def test_several_conditions() -> None:
    assert sql(all_of(ACTIVE, PAID)) == "((NOT `_deleted`) AND `paid`)"


def test_a_choice_has_the_type_of_its_first_value() -> None:
    assert sql(if_else(PAID, null(type_of("decimal(20,2)")), integer(1))) == (
        "CASE WHEN `paid` THEN CAST(NULL AS DECIMAL(20,2)) ELSE CAST(1BD AS DECIMAL(20,2)) END"
    )


def test_the_clock_is_that_of_the_run() -> None:
    # C-17
    assert "2026-02-03" in sql(CLOCK)


def test_equality_and_texts() -> None:
    assert equal(PAID, PAID).type == type_of("boolean")
    assert sql(equal(text("a"), text("b"))) == "('a' = 'b')"
