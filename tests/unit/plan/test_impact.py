"""What a new version of the input means for a plan: which used columns it breaks, and for whom."""

from __future__ import annotations

from typing import Any

import pytest

from dobonomodo.plan.impact import find_conflicts
from tests.unit.plan.building import WORLD_BUILT, aggregate, append, dataset_from, delete, join, output, plan_of, update

COLUMNS = {
    "order_id": "string",
    "customer_id": "string",
    "region": "string",
    "status": "string",
    "quantity": "integer",
    "amount": '"decimal(15,2)"',
    "booked": "date",
    "shipped_at": "timestamp",
    "paid": "boolean",
}
ONLY_ID = output(columns="[order_id]")


def version(mode: str = "period", **changes: str | None) -> str:
    columns = {**COLUMNS, **changes}
    listed = ", ".join(f"{{name: {name}, type: {kind}}}" for name, kind in columns.items() if kind is not None)
    return f"dataset: {{id: sales, main_table: {{name: orders, temporal_mode: {mode}, columns: [{listed}]}}}}"


def without(column: str) -> str:
    gone: Any = {column: None}
    return version(**gone)


def conflicts(text: str, new: str, **more: Any) -> list[tuple[str, str, str | None, list[int]]]:
    found = find_conflicts(plan_of(text, **{"output": False, **more}), dataset_from(new))
    return [(each.column, each.before, each.after, [ref.seq for ref in each.operations]) for each in found]


def test_a_removed_column_that_is_used() -> None:
    text = update("net = amount * 2", seq=3) + ONLY_ID
    assert conflicts(text, version(amount=None)) == [("amount", "decimal(15,2)", None, [3])]


def test_a_used_column_of_another_type() -> None:
    text = update("net = amount * 2", seq=3) + ONLY_ID
    assert conflicts(text, version(amount="string")) == [("amount", "decimal(15,2)", "string", [3])]


def test_more_digits_are_another_type() -> None:
    text = update("net = amount * 2", seq=3) + ONLY_ID
    assert conflicts(text, version(amount='"decimal(20,4)"')) == [("amount", "decimal(15,2)", "decimal(20,4)", [3])]


def test_an_added_column_harms_nobody() -> None:
    assert conflicts(update("net = amount") + output(), version(extra="string")) == []


def test_a_column_that_nobody_uses_can_go() -> None:
    assert conflicts(update("net = amount") + ONLY_ID, version(status=None)) == []


def test_another_order_or_another_case_is_no_change() -> None:
    new = version(amount=None, AMOUNT='"decimal(15,2)"')
    assert conflicts(update("net = amount") + ONLY_ID, new) == []


@pytest.mark.parametrize(
    ("operation", "column"),
    [
        (update("net = 1", selector="paid", seq=3), "paid"),
        (update("net = c.tier", joins=join("c", "customers", "c.id = customer_id"), seq=3), "customer_id"),
        (aggregate("region", "n = COUNT(*)", seq=3), "region"),
        (aggregate("region", "n = SUM(quantity)", seq=3), "quantity"),
        (aggregate("region", "n = COUNT(*)", selector="paid", seq=3), "paid"),
        (append("budget", seq=3), "status"),
        (delete("booked > '2026-01-01'", seq=3), "booked"),
        (output("{type: csv, path: x}", columns="[shipped_at]", seq=3), "shipped_at"),
        (output("{type: csv, path: x}", seq=3), "shipped_at"),
        (output("{type: csv, path: x}", columns="[order_id]", selector="paid", seq=3), "paid"),
    ],
    ids=[
        "selector",
        "join",
        "group_by",
        "aggregation",
        "aggregate selector",
        "append",
        "delete",
        "columns",
        "all columns",
        "output selector",
    ],
)
def test_every_way_of_using_a_column(operation: str, column: str) -> None:
    assert [(each[0], each[3]) for each in conflicts(operation + ONLY_ID, without(column))] == [(column, [3])]


def test_a_named_selector_uses_its_columns() -> None:
    found = conflicts(delete("{{p}}", seq=3) + ONLY_ID, version(paid=None), head="selectors: {p: paid}")
    assert [each[0] for each in found] == ["paid"]


def test_all_operations_that_use_it_are_named() -> None:
    text = update("net = amount", seq=3) + delete("amount = 0", seq=5) + output()
    assert conflicts(text, version(amount=None)) == [("amount", "decimal(15,2)", None, [3, 5, 900])]


def test_several_columns() -> None:
    text = update("net = amount", selector="paid", seq=3) + ONLY_ID
    assert [each[0] for each in conflicts(text, version(amount=None, paid="string"))] == ["amount", "paid"]


def test_a_column_that_is_overwritten_before_it_is_used() -> None:
    text = update("status = 'new'", seq=1) + delete("status = 'old'", seq=2) + output(columns="[order_id, status]")
    assert conflicts(text, version(status=None)) == []


def test_a_column_that_is_overwritten_on_some_rows_is_used() -> None:
    text = update("status = 'new'", seq=1, selector="paid") + output(columns="[order_id, status]")
    assert [(each[0], each[3]) for each in conflicts(text, version(status=None))] == [("status", [900])]


def test_a_target_of_another_type_is_a_conflict() -> None:
    # The assignment would be a TYPE_MISMATCH with the new version.
    text = update("amount = 0", seq=3) + ONLY_ID
    assert [(each[0], each[3]) for each in conflicts(text, version(amount="string"))] == [("amount", [3])]


def test_a_column_used_through_another_operation_is_reported_where_it_is_read() -> None:
    text = update("net = amount", seq=1) + delete("net = 0", seq=2) + ONLY_ID
    assert conflicts(text, version(amount=None)) == [("amount", "decimal(15,2)", None, [1])]


def test_another_temporal_mode_takes_the_period_away() -> None:
    text = aggregate("_period", "n = COUNT(*)", seq=3) + ONLY_ID
    assert [(each[0], each[3]) for each in conflicts(text, version("snapshot"))] == [("_period", [3])]


LOOKED_UP = """
dataset:
  id: sales
  main_table: {name: orders, columns: [{name: order_id, type: string}]}
  lookups:
    - alias: zones
      target: {type: table, name: zones, columns: [{name: code, type: string}, {name: zone, type: string}]}
      join_conditions: [{source_column: order_id, target_column: code}]
"""


def test_a_column_of_a_lookup_is_a_column_of_the_dataset() -> None:
    world = WORLD_BUILT.with_dataset(LOOKED_UP, version=2)
    text = update("zone = zones.zone", seq=3) + ONLY_ID
    without = LOOKED_UP.replace(", {name: zone, type: string}", "")
    assert [each[3] for each in conflicts(text, without, world=world)] == [[3]]
    assert conflicts(text, LOOKED_UP, world=world) == []


def test_a_change_in_words() -> None:
    plan = plan_of(update("net = amount", selector="paid"))
    removed, changed = find_conflicts(plan, dataset_from(version(amount=None, paid="string")))
    assert (removed.change, changed.change) == ("removed", "boolean became string")
