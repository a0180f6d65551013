"""Checked trees as Spark SQL. What each function becomes is in the golden files."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from dobonomodo.formula import Columns, Scope, columns_of, render_formula
from dobonomodo.formula.render import rendered_depth, rendered_size
from dobonomodo.formula.types import TEXT
from tests.unit.formula.orders import GROUPS, ROWS, check, sql_in
from tests.world import JANUARY


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("amount", "`amount`"),
        ("ORDERS.Amount", "`amount`"),
        ("amount + 1", "(`amount` + 1BD)"),
        ("-quantity", "(- `quantity`)"),
        ("quantity - -1", "(`quantity` - -1L)"),
        ("paid AND in_scope AND and_flag", "(`paid` AND `in_scope` AND `and_flag`)"),
        ("NOT paid", "(NOT `paid`)"),
        ("amount IS NOT NULL", "(`amount` IS NOT NULL)"),
        ('status NOT IN ("a", "b")', "(`status` NOT IN ('a', 'b'))"),
        ("quantity BETWEEN 1 AND 2", "(`quantity` BETWEEN 1L AND 2L)"),
        ("CASE WHEN paid THEN 1 END", "CASE WHEN `paid` THEN 1L ELSE CAST(NULL AS BIGINT) END"),
        ("status & region", "concat(`status`, `region`)"),
        ("order_date - order_date", "CAST(datediff(`order_date`, `order_date`) AS BIGINT)"),
        ("COUNT(*)", "count(1)"),
    ],
)
def test_operators(text: str, sql: str) -> None:
    assert sql_in(text, GROUPS if "*" in text else ROWS) == sql


@pytest.mark.parametrize(
    ("text", "divisor"),
    [
        ("amount / quantity", "nullif(CAST(`quantity` AS DECIMAL(19,0)), 0BD)"),
        ("amount / 0", "nullif(0BD, 0BD)"),
        ("amount / 3", "3BD"),
        ("amount / NULL", "nullif(CAST(NULL AS DECIMAL(15,2)), 0BD)"),
    ],
)
def test_no_division_by_zero(text: str, divisor: str) -> None:
    """C-29: a zero divisor gives NULL; a literal that is not zero needs no guard."""
    assert sql_in(text).endswith(f" / {divisor})")


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        (r'status LIKE "a\%"', r"(`status` LIKE 'a\\\\%')"),
        ('status LIKE "a%_"', "(`status` LIKE 'a%_')"),
        ("status LIKE region", r"(`status` LIKE replace(`region`, '\\', '\\\\'))"),
    ],
)
def test_like_has_no_escapes(text: str, sql: str) -> None:
    assert sql_in(text) == sql


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("NOW()", "TIMESTAMP'2026-02-03T08:00:00.000000Z'"),
        ("TODAY()", "DATE'2026-02-03'"),
        ("RUN_PERIOD()", "'2026-01'"),
        ("PERIOD_START()", "DATE'2026-01-01'"),
        ("PERIOD_END()", "DATE'2026-01-31'"),
    ],
)
def test_facts_of_the_run(text: str, sql: str) -> None:
    """C-17: literals, never the machine's clock."""
    assert sql_in(text) == sql


def test_the_clock_is_read_in_utc() -> None:
    late = datetime(2026, 2, 3, 23, 30, tzinfo=timezone(-timedelta(hours=5)))
    tree = check("TODAY()").tree
    assert tree is not None
    assert render_formula(tree, replace(JANUARY, started_at=late)) == "DATE'2026-02-04'"
    assert render_formula(tree, replace(JANUARY, started_at=late.astimezone(UTC))) == "DATE'2026-02-04'"


def test_what_was_typed_never_reaches_spark() -> None:
    evil = "x'); DROP TABLE orders; --"
    assert sql_in(f'status = "{evil}"') == r"(`status` = 'x\'); DROP TABLE orders; --')"
    scope = Scope(columns=Columns({"a`; DROP": TEXT}))
    assert sql_in("`A``; drop`", scope) == "`a``; DROP`"


def test_columns_that_are_read() -> None:
    tree = check("IF(paid, amount, fx.rate) + amount + Orders.Amount").tree
    assert tree is not None
    assert [(each.qualifier, each.name) for each in columns_of(tree)] == [
        (None, "paid"),
        (None, "amount"),
        ("fx", "rate"),
    ]


def test_size_is_known_before_rendering() -> None:
    text = "quantity"
    for _ in range(5):
        text = f"MOD(amount, {text})"
        tree = check(text).tree
        assert tree is not None
        assert 0.5 < rendered_size(tree) / len(render_formula(tree, JANUARY)) < 2


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        ("amount", 1),
        ('"((("', 1),
        ("(((amount)))", 1),
        ('CONTAINS(UPPER(status), "(((")', 3),
        ('status LIKE "(((%"', 2),
        ("CASE WHEN paid THEN LEN(status) ELSE LEN(UPPER(status)) + 1 END", 6),
    ],
)
def test_depth_is_known_before_rendering(text: str, depth: int) -> None:
    """A name or a value is a level too."""
    tree = check(text).tree
    assert tree is not None
    assert rendered_depth(tree) == depth, render_formula(tree, JANUARY)
