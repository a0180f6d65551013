"""What is kept of rows for checks: what several of them read is kept once."""

from __future__ import annotations

from dobonomodo.engine.checking import Checking, with_difference
from tests.unit.plan.building import plan_of

CHECKS = """\
- {seq: 1, type: check, selector: paid, arguments: {expect: amount > 0}}
- {seq: 2, type: check, selector: paid, arguments: {expect: NOT ISNULL(region)}}
- {seq: 3, type: check, selector: paid, arguments: {expect: SUM(amount) > 0}}
- {seq: 4, type: check, selector: paid, arguments: {expect: SUM(amount) < SUM(quantity)}}
"""


def test_what_checks_share_is_kept_once() -> None:
    checking = Checking(plan_of(CHECKS))
    ((kept,)) = checking.values.values()
    names = [each.name for each in kept]
    assert names == [" reached1", " check1", " check2", " measure3=0", " measure4=1"]


def test_what_is_kept_of_other_rows_is_apart() -> None:
    delete = "- {seq: 2, type: delete, selector: quantity = 0}\n"
    checks = CHECKS.splitlines(keepends=True)
    checking = Checking(plan_of(checks[0] + delete + checks[2]))
    assert [[each.name for each in kept] for kept in checking.values.values()] == [
        [" reached1", " check1"],
        [" reached3", " measure3=0"],
    ]


def test_violating_groups_are_shown_with_the_difference_of_numbers() -> None:
    numbers = (("region", "north"), ("left", "10.00"), ("right", "10.25"))
    assert with_difference(numbers) == (*numbers, ("difference", "-0.25"))
    missing = (("region", "north"), ("left", "10.00"), ("right", "NULL"))
    assert with_difference(missing) == missing
