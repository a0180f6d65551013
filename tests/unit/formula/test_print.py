"""Trees as text: as few parentheses as needed, and the same tree again when read."""

from __future__ import annotations

import pytest

from dobonomodo.formula import print_formula
from tests.unit.formula.orders import parsed

SAME = [
    "amount",
    "orders.amount",
    "`net amount`",
    "`a``b`",
    "`case`",
    "orders.`Net Amount`",
    "1",
    "1.50",
    '"a"',
    '"say ""hi"""',
    "TRUE",
    "NULL",
    "{{active}}",
    "NOW()",
    "COUNT(*)",
    "LEFT(a, 1)",
    "AND(a, b)",
    "-a",
    "--a",
    "a - -b",
    "-(a + b)",
    "a + b * c",
    "(a + b) * c",
    "a - b - c",
    "a - (b - c)",
    "a / (b / c)",
    "a * (b / c)",
    "a + (b + c)",
    "a & b & c",
    "a & (b & c)",
    "a & b + c",
    "(a & b) + c",
    "a = b + 1",
    "(a = b) = c",
    "a = (b = c)",
    "(a = b) IS NULL",
    "(a IS NULL) = b",
    "(NOT a) = b",
    "NOT a = b",
    "NOT NOT a",
    "NOT (a AND b)",
    "(NOT a) + b",
    "a AND b AND c",
    "a AND (b AND c)",
    "a AND b OR c AND d",
    "a AND (b OR c)",
    "(a OR b) AND c",
    "a IN (b, c = d)",
    "(a = b) IN (c, NOT d)",
    "a NOT IN (1)",
    "a BETWEEN b AND c AND d",
    "a BETWEEN (b AND c) AND d",
    "a NOT BETWEEN -1 AND b & c",
    '(a LIKE b) NOT LIKE "x%"',
    "a IS NOT NULL",
    "CASE WHEN a = 1 THEN b WHEN c THEN d ELSE e END",
    "CASE WHEN a THEN b END + 1",
    "-CASE WHEN a THEN b END",
]


@pytest.mark.parametrize("text", SAME)
def test_stays_as_it_is(text: str) -> None:
    assert print_formula(parsed(text)) == text


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("  amount  ", "amount"),
        ("((a))+(b)", "a + b"),
        ("(a * b) + c", "a * b + c"),
        ("a and not b or c", "a AND NOT b OR c"),
        ("a == b", "a = b"),
        ("a != b", "a <> b"),
        ("a || b", "a & b"),
        ("'it''s'", '"it\'s"'),
        ("10%", "0.10"),
        ("1e3", "1000"),
        ("1.5E-2", "0.015"),
        ("left( a,1 )", "LEFT(a, 1)"),
        ("{{  x  }}", "{{x}}"),
        ("`plain`", "plain"),
        ("a -- note\n+ b", "a + b"),
        ("NOT(a)", "NOT a"),
        ("(a = b) AND (c = d)", "a = b AND c = d"),
        ("case when a then 1 end", "CASE WHEN a THEN 1 END"),
        ("a = NOT(b)", "a = (NOT b)"),
    ],
)
def test_is_put_in_order(text: str, printed: str) -> None:
    assert print_formula(parsed(text)) == printed
    assert parsed(printed) == parsed(text)
    assert print_formula(parsed(printed)) == printed


@pytest.mark.parametrize("name", ["1st", "a b", "a.b", "AND", "é", "naïve", "x\ny", "{{x}}", "a`"])
def test_names(name: str) -> None:
    written = "`" + name.replace("`", "``") + "`"
    assert parsed(print_formula(parsed(written))) == parsed(written)
