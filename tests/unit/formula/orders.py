"""What formulas are tried on: the orders of one month, two joined tables, a few selectors, and the facts of a run."""

from __future__ import annotations

from dataclasses import replace

from dobonomodo.formula import Columns, Scope, check_formula, parse, parse_type, render_formula
from dobonomodo.formula.check import Checked
from dobonomodo.formula.tree import Expression
from dobonomodo.formula.types import Type
from dobonomodo.problems import Passage, Problem
from tests.world import JANUARY


def type_of(text: str) -> Type:
    found = parse_type(text)
    assert found is not None, text
    return found


def columns_from(**types: str) -> Columns:
    return Columns({name: type_of(text) for name, text in types.items()})


COLUMNS = Columns(
    {
        **columns_from(
            amount="decimal(15,2)",
            quantity="integer",
            status="string",
            region="string",
            order_date="date",
            shipped_at="timestamp",
            paid="boolean",
            total="decimal",
            unit_price="decimal(18,8)",
            # Names that begin with a keyword or are a function's.
            notes="string",
            order_total="decimal(18,2)",
            and_flag="boolean",
            true_up="decimal(18,2)",
            nullable_amt="decimal(18,2)",
            in_scope="boolean",
            date_key="integer",
            left="string",
        ),
        "Net Amount": type_of("decimal(18,2)"),
        "case": type_of("string"),
    }
)

JOINED = {
    "fx": columns_from(rate="decimal(12,8)", currency="string", valid_from="date"),
    "customers": columns_from(name="string", rating="integer", since="date"),
}

SELECTORS = {
    name: Passage.alone(text, name=f"selectors/{name}")
    for name, text in {
        "active": 'status = "active"',
        "large": "amount > 1000 OR {{ active }}",
        "loop": "{{loop}}",
        "ping": "paid AND {{pong}}",
        "pong": "NOT {{ping}}",
        "a_number": "amount",
        "unfinished": "amount >",
        "ranked": "RANK() OVER (ORDER BY amount) = 1",
    }.items()
}

ROWS = Scope(columns=COLUMNS, table="orders", joined=JOINED, selectors=SELECTORS, upcoming=frozenset({"net"}))
"""Where the rows of an update are computed; another assignment of the update makes ``net``."""

WINDOWS = replace(ROWS, windows=True)
"""The same in an assignment, which may have windows."""

_REGION = ROWS.resolve("region")
assert _REGION is not None
GROUPS = replace(ROWS, upcoming=frozenset(), group_by=(_REGION,))
"""Where the groups of an aggregate are computed, by region."""


def parsed(text: str) -> Expression:
    result = parse(Passage.alone(text))
    assert result.tree is not None, result.problems
    return result.tree


def check(text: str, scope: Scope = ROWS, *, wanted: Type | None = None) -> Checked:
    return check_formula(Passage.alone(text), scope, wanted=wanted)


def type_in(text: str, scope: Scope = ROWS) -> str:
    """The type of a formula that has no errors."""
    result = check(text, scope)
    assert result.tree is not None, result.problems
    return str(result.type)


def sql_in(text: str, scope: Scope = ROWS) -> str:
    """What a formula that has no errors becomes."""
    result = check(text, scope)
    assert result.tree is not None, result.problems
    return render_formula(result.tree, JANUARY)


def problems_in(text: str, scope: Scope = ROWS) -> tuple[Problem, ...]:
    return check(text, scope).problems


def codes_in(text: str, scope: Scope = ROWS) -> list[str]:
    return [problem.code for problem in problems_in(text, scope)]
