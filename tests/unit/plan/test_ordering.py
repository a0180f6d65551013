"""The order in which rows of an output are shown."""

from __future__ import annotations

import pytest

from dobonomodo.plan.ordering import order_of, shown_columns
from tests.unit.plan.building import aggregate, append, output, plan_of, update

LAKE = "{datasource_id: lake, table: out}"


@pytest.mark.parametrize(
    ("operations", "columns", "order"),
    [
        ("", "", ["order_id"]),
        ("", "[amount, ORDER_ID]", ["order_id"]),
        (aggregate("region, _period", "total = SUM(amount)", seq=10), "", ["order_id", "region"]),
        (aggregate("region", "total = SUM(amount)", seq=10), "[region, total]", ["region"]),
        (aggregate("status, region", "total = SUM(amount)", seq=10), "[total, region, status]", ["status", "region"]),
        (append("budget", seq=10), "", ["order_id"]),
        (update("net = amount", seq=10), "[amount, net, _labels]", ["amount", "net"]),
        ("", "[_labels]", ["_labels"]),
    ],
)
def test_by_the_key_else_by_all_columns(operations: str, columns: str, order: list[str]) -> None:
    options = {"columns": columns} if columns else {}
    plan = plan_of(operations + output(LAKE, seq=50, **options), output=False)
    assert list(order_of(plan, plan.steps[-1])) == order


def test_groups_that_come_later_do_not_count() -> None:
    text = output(LAKE, seq=5, columns="[region, amount]") + aggregate("region", "total = SUM(amount)", seq=10)
    plan = plan_of(text, output=False)
    assert order_of(plan, plan.steps[0]) == ("region", "amount")


def test_system_columns_are_not_shown() -> None:
    plan = plan_of(output(LAKE, seq=5), output=False)
    assert shown_columns(plan.steps[0])[0] == "order_id"
    assert not any(name.startswith("_") for name in shown_columns(plan.steps[0]))
