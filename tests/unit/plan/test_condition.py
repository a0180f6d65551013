"""Conditions of joins: which parts are equalities, what is a range, and what is neither."""

from __future__ import annotations

import pytest

from dobonomodo.formula import Columns, Scope, check_formula
from dobonomodo.formula.print import print_checked
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType, Type
from dobonomodo.plan import DatasetUse
from dobonomodo.plan.condition import Bound, Condition, Way, take_apart
from dobonomodo.plan.expression import TRUE
from dobonomodo.plan.relation import Lookup, Scan
from dobonomodo.problems import Passage

OWN: dict[str, Type] = {
    "k": TEXT,
    "day": DATE,
    "at": TIMESTAMP,
    "amount": DecimalType(15, 2),
    "number": INTEGER,
    "wide": DecimalType(38, 0),
}
JOINED: dict[str, Type] = {
    "k": TEXT,
    "kind": TEXT,
    "low": DATE,
    "high": DATE,
    "since": TIMESTAMP,
    "least": DecimalType(9, 4),
    "most": INTEGER,
    "flag": BOOLEAN,
    "fine": DecimalType(38, 30),
}


def condition(text: str) -> Condition:
    rows, source = (
        Scan(DatasetUse("join", name, 1, name, None, Columns(types))) for name, types in (("o", OWN), ("r", JOINED))
    )
    checked = check_formula(Passage.alone(text), Scope(columns=Columns(OWN), joined={"r": Columns(JOINED)}))
    assert checked.tree is not None, checked.problems
    return take_apart(Lookup(rows, "r", source, checked.tree, TRUE))


def shown(bound: Bound | None, sign: str) -> str:
    if bound is None:
        return ""
    return f"{print_checked(bound.value)} {sign if bound.strict else sign + '='}{' or open' if bound.open else ''}"


@pytest.mark.parametrize(
    ("text", "low", "high", "kind"),
    [
        ("k = r.k AND r.low <= day AND day <= r.high", "r.low <=", "r.high >=", DATE),
        ("day > r.low AND r.high > day", "r.low <", "r.high >", DATE),
        ("day BETWEEN r.low AND r.high", "r.low <=", "r.high >=", DATE),
        ("AND(day >= r.low, OR(ISNULL(r.high), day < r.high))", "r.low <=", "r.high > or open", DATE),
        ("(r.low IS NULL OR r.low <= day) AND day < r.high", "r.low <= or open", "r.high >", DATE),
        ("day >= r.low", "r.low <=", "", DATE),
        ("number <= r.most", "", "r.most >=", INTEGER),
        ("at >= r.since AND at < r.high", "r.since <=", "r.high >", TIMESTAMP),
        ("day >= r.since AND (ISNULL(r.high) OR day < r.high)", "r.since <=", "r.high > or open", TIMESTAMP),
        ("amount >= r.least AND amount < r.most", "r.least <=", "r.most >", DecimalType(23, 4)),
        ("day >= r.low AND day < r.low + 30", "r.low <=", "r.low + 30 >", DATE),
        ("day + 1 >= r.low AND day + 1 < DATEADD(r.high, 1)", "r.low <=", "DATEADD(r.high, 1) >", DATE),
        ("amount >= r.least - 0.5", "r.least - 0.5 <=", "", DecimalType(17, 4)),
        ("amount < r.least * 1.5", "", "r.least * 1.5 >", DecimalType(18, 5)),
        ('day < COALESCE(r.high, DATE("9999-12-31"))', "", 'COALESCE(r.high, DATE("9999-12-31")) >', DATE),
    ],
)
def test_a_point_in_a_range(text: str, low: str, high: str, kind: Type) -> None:
    found = condition(text)
    assert found.way is Way.RANGE
    assert found.range is not None
    assert (shown(found.range.low, "<"), shown(found.range.high, ">"), found.range.type) == (low, high, kind)


def test_conditions_over_one_side_are_told_apart() -> None:
    found = condition('k = r.k AND r.kind = "a" AND number > 3 AND day >= r.low AND 1 < 2 AND NOT r.flag')
    assert found.sides is not None
    assert [print_checked(each) for each in found.sides.of_rows] == ["number > 3", "1 < 2"]
    assert [print_checked(each) for each in found.sides.of_source] == ['r.kind = "a"', "NOT r.flag"]
    assert len(found.keys) == 1
    assert len(found.rest) == 5


def test_equalities_with_conditions_over_one_side_are_joined_by_key() -> None:
    assert condition('k = r.k AND r.kind = "a"').way is Way.KEY
    assert condition("k = r.k").way is Way.KEY


@pytest.mark.parametrize(
    "text",
    [
        'r.kind = "a"',
        "k = r.k AND k <> r.kind",
        "k = r.k OR day >= r.low",
        "day >= r.low AND number <= r.most",
        "day >= r.low AND day > r.high",
        "day + 1 >= r.low AND day <= r.high",
        "day < r.low + r.most",
        "day < r.low + 10000000",
        "number < r.most + 1",
        "amount < r.least / 2",
        "amount < r.fine + 1",
        "k = r.k AND TO_INTEGER(r.kind) = 1",
        "wide >= r.fine",
        "day >= r.low OR ISNULL(r.high)",
        "NOT day < r.low",
        "k LIKE r.kind",
    ],
)
def test_other_conditions_are_compared_with_each_candidate(text: str) -> None:
    found = condition(text)
    assert found.way is Way.SEARCH
    assert found.range is None
