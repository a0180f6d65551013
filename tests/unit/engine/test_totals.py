"""Which aggregates give the totals of a plan. That they are right is tested on Spark."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from dobonomodo.engine import totals as module
from dobonomodo.engine.observation import Counting, Measuring
from dobonomodo.engine.totals import Ends, History, Known, Sum, numeric_columns, read_totals
from dobonomodo.formula.types import INTEGER, DecimalType
from dobonomodo.plan import Plan
from tests.unit.plan.building import aggregate, append, delete, output, plan_of, update

LAKE = "{datasource_id: lake, table: out}"


def make(text: str, **output_options: Any) -> tuple[Plan, History]:
    plan = plan_of(text + output(LAKE, seq=500, **output_options), output=False)
    return plan, History(plan, Counting(plan).mark_by_seq)


def parts(plan: Plan, history: History, column: str) -> list[tuple[int | None, int]]:
    """The sums that a column has: of which operation, and whether they are added or taken off."""
    sums = history.sums(plan.steps[-1], Known()).values()
    return [(each.seq, each.sign) for each in sums if each.column == column]


def test_numeric_business_columns_have_totals() -> None:
    plan, _ = make("")
    assert numeric_columns(plan.steps[-1]) == {"quantity": INTEGER, "amount": DecimalType(15, 2)}


def test_only_a_column_that_is_there_before_is_kept() -> None:
    plan, history = make(update("net = amount", "amount = amount * 2", seq=10) + update("net = 1", seq=20))
    kept = [(each.number, each.column) for values in history.kept.values() for each in values]
    assert kept == [(0, "amount"), (1, "net")]
    assert parts(plan, history, "net") == [(10, 1), (20, 1), (20, -1)]
    assert parts(plan, history, "amount") == [(None, 1), (10, 1), (10, -1)]
    assert parts(plan, history, "quantity") == [(None, 1)]


def test_a_column_that_no_output_writes_is_not_kept() -> None:
    _, history = make(update("amount = amount * 2", seq=10), columns="[order_id, quantity]")
    assert history.kept == {}


def test_an_output_before_the_assignment_needs_no_kept_value() -> None:
    first = output("{datasource_id: lake, table: first}", seq=5, columns="[amount]")
    plan, history = make(first + update("amount = amount * 2", seq=10), columns="[order_id]")
    assert history.kept == {}
    assert parts(plan, history, "amount") == []
    assert [each.column for each in history.sums(plan.steps[0], Known()).values()] == ["amount"]


def test_added_and_deleted_rows_have_sums_where_they_can_have_a_value() -> None:
    text = aggregate("region", "total = SUM(amount)", seq=10) + append("budget", seq=20) + delete("amount = 0", seq=30)
    plan, history = make(text)
    assert parts(plan, history, "total") == [(10, 1), (30, -1)]
    assert parts(plan, history, "amount") == [(None, 1), (20, 1), (30, -1)]


def test_a_column_that_is_widened_to_38_digits_has_changes() -> None:
    fine = update(f"amount = 0.{'0' * 29}1", seq=10)
    plan, history = make(fine)
    assert plan.steps[-1].before.columns["amount"] == DecimalType(38, 25)
    assert parts(plan, history, "amount") == [(None, 1), (10, 1), (10, -1)]
    # 28 digits before the point would leave ten behind it; those that are there stay.
    plan, history = make(fine + append("budget", seq=30))
    assert plan.steps[-1].before.columns["amount"] == DecimalType(38, 25)
    assert parts(plan, history, "amount") == [(None, 1), (10, 1), (10, -1), (30, 1)]


def test_what_is_kept_and_summed_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(update("amount = amount + 1", seq=seq) for seq in (10, 20, 30)) + update("quantity = 1", seq=40)
    monkeypatch.setattr(module, "KEPT_AT_MOST", 2)
    plan, history = make(text)
    assert [each.column for values in history.kept.values() for each in values] == ["quantity"]
    assert parts(plan, history, "amount") == []
    assert parts(plan, history, "quantity") == [(None, 1), (40, 1), (40, -1)]
    monkeypatch.setattr(module, "SUMS_AT_MOST", 2)
    assert history.sums(plan.steps[-1], Known()) == {}


def test_hidden_columns_that_an_output_does_not_read_are_not_carried_to_it() -> None:
    first = output("{datasource_id: lake, table: first}", seq=15, columns="[amount]")
    plan = plan_of(update("amount = 1", "quantity = 2", seq=10) + first + output(LAKE, seq=50), output=False)
    measuring = Measuring(plan, Counting(plan), digests=False)
    assert measuring.unread(plan.steps[1]) == {" before0 quantity"}
    assert measuring.unread(plan.steps[2]) == frozenset()


@pytest.mark.parametrize(
    ("found", "rows", "wanted"),
    [
        (Decimal("1.50"), 2, "-1.50"),
        (None, 0, "0.00"),
        (None, 3, None),
        (Decimal("9" * 36 + ".99"), 1, "-" + "9" * 36 + ".99"),
    ],
)
def test_a_sum_without_rows_is_zero_and_one_that_overflows_is_not_known(
    found: Decimal | None, rows: int, wanted: str | None
) -> None:
    part = Sum("amount", DecimalType(15, 2), "", "selected_10", 10, -1)
    value = read_totals({"s": part}, {"s": found, "selected_10": rows})["amount"]
    assert (str(value) if value is not None else None) == wanted


ROWS = {"loaded": 9, "active": 9, "selected_10": 5, "added_20": 2, "selected_30": 1, "selected_40": 1}


def read(text: str, found: dict[str, Any], ends: Ends, **options: Any) -> dict[int | None, dict[str, str | None]]:
    """The totals of a plan, from sums that were observed; ``found`` has all that are asked for, and no others."""
    plan, history = make(text, **options)
    assert set(history.sums(plan.steps[-1], ends.known)) == set(found)
    totals = history.read(plan.steps[-1], {**ROWS, **found}, ends)
    return {
        seq: {name: str(value) if value is not None else None for name, value in each.items()}
        for seq, each in totals.items()
    }


def test_parts_are_added_exactly_and_one_that_is_not_known_makes_all_unknown() -> None:
    text, columns = update("amount = amount * 2", seq=10), {"columns": "[order_id, amount]"}
    big = Decimal("9" * 36 + ".99")
    found = {"sum amount 0": 1, "sum amount 1": big, "sum amount 2": Decimal("-" + str(big))}
    assert read(text, found, Ends(), **columns)[10] == {"amount": str(2 * 10**36 - 1) + ".98"}
    assert read(text, {**found, "sum amount 1": None}, Ends(), **columns)[10] == {"amount": None}


CHANGES = (
    update("amount = amount * 2", seq=10)
    + aggregate("region", "total = SUM(amount)", seq=20)
    + delete("amount = 0", seq=30)
)


def test_where_totals_of_active_rows_are_known_one_sum_of_each_column_follows() -> None:
    ends = Ends({"quantity": Decimal(7), "amount": Decimal("24.00"), "total": Decimal("9.00")})
    found = {
        "sum amount 1": Decimal("8.00"),
        "sum amount 2": Decimal("3.00"),
        "sum amount 3": Decimal("1.0000"),
        "sum quantity 1": 0,
        "sum total 1": Decimal("3.00"),
    }
    assert read(CHANGES, found, ends) == {
        None: {"quantity": "7", "amount": "20.00"},
        10: {"amount": "5.00"},
        20: {"total": "12.00"},
        30: {"quantity": "0", "amount": "-1.00", "total": "-3.00"},
    }


def test_where_totals_of_all_rows_are_known_too_so_does_what_was_deleted() -> None:
    active = {"quantity": Decimal(7), "amount": Decimal("24.00"), "total": Decimal("9.00")}
    everything = {"quantity": Decimal(9), "amount": Decimal("27.00"), "total": Decimal("9.00")}
    twice = CHANGES + delete("amount = 1", seq=40)
    found = {
        "sum amount 1": Decimal("8.00"),
        "sum amount 2": Decimal("3.00"),
        "sum amount 3": Decimal("1.00"),
        "sum quantity 1": 2,
        "sum total 1": None,
    }
    assert read(twice, found, Ends(active, everything)) == {
        None: {"quantity": "9", "amount": "22.00"},
        10: {"amount": "5.00"},
        20: {"total": None},
        30: {"quantity": "-2", "amount": "-1.00", "total": None},
        40: {"quantity": "0", "amount": "-2.00", "total": None},
    }


@pytest.mark.parametrize(("end", "change"), [(None, Decimal(1)), (Decimal(1), None)])
def test_what_follows_from_a_sum_that_is_not_known_is_not_known(end: Decimal | None, change: Decimal | None) -> None:
    totals = read(
        delete("amount = 0", seq=30), {"sum amount 1": change}, Ends({"amount": end}), columns="[order_id, amount]"
    )
    assert totals[None] == {"amount": None}
