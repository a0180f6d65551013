"""The rows that an explanation depends on as a scenario. That it passes is tested on Spark."""

from __future__ import annotations

from typing import Any

import yaml

from dobonomodo.why.interpret import Interpreter
from dobonomodo.why.loading import Loader
from dobonomodo.why.scenario import Mask, UsedSource, find_used, write_scenario
from tests.unit.why.orders import ALL, ROWS, Asked, Given
from tests.world import JANUARY

SNAPSHOT: dict[str, Any] = {
    "period": {"identifier": "2026-01", "start_date": "2026-01-01", "end_date": "2026-01-31"},
    "started_at": "2026-02-03T08:00:00+00:00",
    "as_of": None,
    "datasets": [
        {
            "version": 1,
            "document": {
                "id": "orders",
                "checks": [{"expect": "amount > 0"}],
                "main_table": {"name": "orders", "columns": [{"name": "id", "type": "string", "source": "ID"}]},
            },
        }
    ],
    "project": {"document": {"id": "p", "operations": [{"seq": seq} for seq in (10, 20, 30, 40, 90, 95)]}},
}


def export(rows: Given = ROWS, **key: Any) -> dict[str, Any]:
    asked = Asked(ALL, rows)
    (row,) = asked.find(**key)
    text = write_scenario(
        "n", SNAPSHOT, asked.plan, asked.output, row, find_used(row), {"id": "A1", "_period": "2026-01"}, table="net"
    )
    found: dict[str, Any] = yaml.safe_load(text)["scenario"]
    return found


def test_only_the_rows_that_are_needed() -> None:
    found = export(id="A1")
    (orders,) = [each for each in found["datasets"] if each["dataset"]["id"] == "orders"]
    assert orders["rows"] == [
        {"id": "A1", "customer": "C1", "status": "active", "amount": "100.00", "_period": "2026-01"}
    ]


def test_a_summary_needs_all_rows_of_its_group() -> None:
    found = export(status="active", _operation_seq=20)
    assert [row["id"] for row in found["datasets"][0]["rows"]] == ["A1", "A2", "A4"]


def test_what_does_not_belong_to_a_scenario_is_left_out() -> None:
    found = export(id="A1")
    dataset = found["datasets"][0]["dataset"]
    assert ("checks" in dataset, "source" in dataset["main_table"]["columns"][0]) == (False, False)
    assert [each["seq"] for each in found["project"]["operations"]] == [10, 20, 30, 40, 90]


def test_system_columns_are_not_expected() -> None:
    assert export(id="A1")["expect"]["outputs"]["net"]["rows"] == [{"id": "A1"}]


def test_masked_texts_are_consistent_and_keep_what_formulas_name() -> None:
    asked = Asked(ALL)
    (row,) = asked.find(id="A1")
    mask = Mask(asked.plan)
    used = {key: mask.rows(each) for key, each in find_used(row).items()}
    (order,) = used["orders", 1, "orders"].rows.values()
    (customer,) = used["customers", 1, "customers"].rows.values()
    assert order.values["customer"] == customer.values["id"] != "C1"
    assert (order.values["status"], customer.values["tier"], order.values["_period"]) == ("active", "gold", "2026-01")
    loader = Loader(UsedSource(used), JANUARY, None, asked.seed)
    interpreter = Interpreter(loader, facts=JANUARY, seed=asked.seed)
    (again,) = [each for each in interpreter.find(asked.output.write.rows, {}) if each.identity == row.identity]
    assert again.values["net"] == row.values["net"]
