"""A plan as data: what programs can rely on. How it reads is in the golden plans."""

from __future__ import annotations

import json

from dobonomodo.plan.explain import describe_plan, render_plan, render_step
from tests.unit.plan.building import aggregate, append, delete, join, output, plan_of, update
from tests.world import JANUARY

TEXT = (
    update(
        "tier = c.tier", "quantity = 1.5", selector="paid", joins=join("c", "customers", "c.id = customer_id"), seq=10
    )
    + aggregate("region", "total = SUM(amount)", seq=20)
    + append("budget", seq=30)
    + delete("amount = 0", seq=40)
    + output("{datasource_id: lake, table: sums}", seq=50, columns="[region, total, _row_id]", include_deleted="true")
    + output("{type: csv, path: out/all}", seq=60, mode="append", register_as_dataset="all")
)
PLAN = plan_of(TEXT, output=False)
DESCRIBED = describe_plan(PLAN, JANUARY)


def test_it_is_plain_data() -> None:
    assert json.loads(json.dumps(DESCRIBED)) == DESCRIBED


def test_what_is_read() -> None:
    assert [
        (use["role"], use["dataset"], use["version"], use["alias"], use["operation_seq"]) for use in DESCRIBED["reads"]
    ] == [
        ("input", "sales", 1, None, None),
        ("join", "customers", 1, "c", 10),
        ("append", "budget", 1, None, 30),
    ]
    assert DESCRIBED["reads"][1]["columns"] == {"id": "string", "tier": "string", "country": "string"}


def test_what_is_done() -> None:
    assert [(step["seq"], step["type"], step["name"]) for step in DESCRIBED["operations"]] == [
        (10, "update", "update-10"),
        (20, "aggregate", "aggregate-20"),
        (30, "append", "append-30"),
        (40, "delete", "delete-40"),
        (50, "output", "output-50"),
        (60, "output", "output-60"),
    ]
    first = DESCRIBED["operations"][0]
    assert (first["selector"], first["adds"], first["changes"]) == (
        "paid",
        {"tier": "string"},
        {"quantity": "decimal(20,1)"},
    )


def test_the_reads_of_a_step_are_what_it_uses() -> None:
    assert [name for name in DESCRIBED["operations"][1]["reads"] if not name.startswith("_")] == ["amount", "region"]


def test_what_is_written() -> None:
    first, second = DESCRIBED["writes"]
    assert (first["seq"], first["destination"], first["table"], first["mode"]) == (50, "lake:sums", "sums", "replace")
    assert (first["include_deleted"], first["register_as"]) == (True, None)
    assert (second["destination"], second["table"], second["mode"], second["register_as"]) == (
        "csv:out/all",
        "all",
        "append",
        "all",
    )


def test_the_lineage_of_every_output_column() -> None:
    region, total, row_id = DESCRIBED["writes"][0]["columns"]
    assert total == {
        "name": "total",
        "type": "decimal(25,2)",
        "inputs": ["sales.amount"],
        "conditions": [],
        "operations": [20],
    }
    assert (region["inputs"], region["operations"]) == (["budget.region", "sales.region"], [30])
    assert row_id["name"] == "_row_id"


def test_sql_only_on_request() -> None:
    assert "sql" not in DESCRIBED["operations"][0]
    assert describe_plan(PLAN, JANUARY, sql=True)["operations"][0]["sql"] == render_step(PLAN.steps[0], JANUARY)


def test_without_a_run_there_is_no_period() -> None:
    assert (describe_plan(PLAN)["period"], DESCRIBED["period"]) == (None, "2026-01")
    assert "2026-01" not in render_plan(PLAN)


def test_every_operation_has_sql() -> None:
    assert all(render_step(step, JANUARY) for step in PLAN.steps[:4])


def test_everything_that_is_written_or_read_is_in_the_text() -> None:
    text = render_plan(PLAN, JANUARY)
    for expected in (
        "sales",
        "customers",
        "budget",
        "update-10",
        "lake:sums",
        "csv:out/all",
        "registered as all",
        "total",
    ):
        assert expected in text


def test_lines_have_no_blanks_at_their_end() -> None:
    for sql in (False, True):
        assert [line for line in render_plan(PLAN, JANUARY, sql=sql).splitlines() if line != line.rstrip()] == []


def test_a_file_beside_a_table_is_named() -> None:
    both = plan_of(output('{datasource_id: lake, table: t, file: "t-{{period}}.parquet"}'), output=False)
    assert "and the file t-{{period}}.parquet" in render_plan(both)
    alone = plan_of(output('{type: csv, file: "t-{{period}}.csv"}'), output=False)
    assert "and the file" not in render_plan(alone)


def test_a_project_without_output_writes_nothing() -> None:
    assert describe_plan(plan_of(delete(), output=False))["writes"] == []
