"""Conditions of resolver rules, decided without Spark."""

from __future__ import annotations

from datetime import date

import pytest

from dobonomodo.plan.rule import check_rule, decide
from dobonomodo.problems import Passage
from dobonomodo.problems.parameter import UnknownParameter

FACTS = {
    "table.name": "orders",
    "period.identifier": "2026-01",
    "period.level": "month",
    "period.start_date": date(2026, 1, 1),
    "period.end_date": date(2026, 1, 31),
}


def value(text: str) -> object:
    checked = check_rule(Passage.alone(text))
    assert checked.tree is not None, [each.message() for each in checked.problems]
    return decide(checked.tree, FACTS)


def codes(text: str) -> list[str]:
    return [each.code for each in check_rule(Passage.alone(text)).problems]


@pytest.mark.parametrize(
    "condition",
    [
        'table.name = "orders"',
        'table.name == "orders"',
        'table.name <> "x"',
        'table.name != "x"',
        'Table.Name = "orders"',
        'period.identifier > "2025-12"',
        'period.identifier >= "2026-01"',
        'period.identifier < "2026-02"',
        'period.identifier <= "2026-01"',
        'period.start_date >= "2026-01-01"',
        "period.start_date < period.end_date",
        "period.end_date - period.start_date = 30",
        "period.start_date + 30 = period.end_date",
        "period.end_date - 30 = period.start_date",
        "period.end_date - period.start_date > 5 * 6 - 1",
        "(period.end_date - period.start_date) / 4 = 7.5",
        "-(period.end_date - period.start_date) = -30",
        'table.name IN ("orders", "returns")',
        'table.name NOT IN ("customers")',
        'period.start_date BETWEEN "2026-01-01" AND "2026-12-31"',
        'period.start_date NOT BETWEEN "2025-01-01" AND "2025-12-31"',
        'table.name LIKE "ord%"',
        'table.name LIKE "_rders"',
        'table.name NOT LIKE "x%"',
        'table.name NOT LIKE "ord"',
        'table.name = "orders" AND period.level = "month"',
        'table.name = "x" OR period.level = "month"',
        'NOT table.name = "x"',
        "table.name IS NOT NULL",
        "NOT table.name IS NULL",
        "TRUE",
        'table.name & "-" & period.level = "orders-month"',
        'CASE WHEN period.level = "month" THEN TRUE ELSE FALSE END',
    ],
)
def test_conditions_that_hold(condition: str) -> None:
    assert value(condition) is True


@pytest.mark.parametrize(
    "condition", ['table.name = "ORDERS"', 'table.name LIKE "%.rders"', "FALSE", 'table.name IN ("x")']
)
def test_conditions_that_do_not_hold(condition: str) -> None:
    # C-11: values compare case-sensitively
    assert value(condition) is False


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("table.name = NULL", None),
        ("table.name = NULL OR TRUE", True),
        ("table.name = NULL AND FALSE", False),
        ("NOT table.name = NULL", None),
        ('table.name IN ("x", NULL)', None),
        ('table.name NOT IN ("orders", NULL)', False),
        ("1 / 0 = 1", None),
        ("period.start_date + 999999999 > period.end_date", None),
        ("table.name LIKE NULL", None),
        ("period.start_date BETWEEN NULL AND period.end_date", None),
    ],
)
def test_null_is_unknown(condition: str, expected: object) -> None:
    # C-21, C-29, C-31
    assert value(condition) is expected


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ('table.nam = "x"', "UNKNOWN_COLUMN"),
        ('name = "x"', "UNKNOWN_COLUMN"),
        ('dataset.id = "x"', "UNKNOWN_COLUMN"),
        ("table.name", "TYPE_MISMATCH"),
        ("period.start_date = 1", "TYPE_MISMATCH"),
        ('period.start_date > "2026-02-30"', "INVALID_DATE"),
        ("table.name =", "EXPRESSION_SYNTAX"),
        ('UPPER(table.name) = "X"', "UNKNOWN_FUNCTION"),
        ("period.start_date < TODAY()", "UNKNOWN_FUNCTION"),
        ("{{mine}}", "SELECTOR_UNDEFINED"),
        ("SUM(1) = 1", "AGGREGATE_NOT_ALLOWED"),
    ],
)
def test_what_a_rule_cannot_say(condition: str, code: str) -> None:
    assert codes(condition) == [code]


@pytest.mark.parametrize("condition", ["IF(TRUE, TRUE, FALSE)", "ISNULL(table.name)"])
def test_functions_that_are_operators_underneath(condition: str) -> None:
    """Whether they are allowed or refused, they never raise."""
    checked = check_rule(Passage.alone(condition))
    assert (checked.tree is None) == bool(checked.problems)
    if checked.tree is not None:
        assert decide(checked.tree, FACTS) in (True, False)


def test_a_comparison_of_a_date_with_a_time() -> None:
    assert value('period.start_date < "2026-01-01T12:00:00Z"') is True


def test_a_rule_has_no_parameters() -> None:
    (problem,) = check_rule(Passage.alone("table.name = param.table")).problems
    assert isinstance(problem, UnknownParameter)
    assert not problem.allowed
