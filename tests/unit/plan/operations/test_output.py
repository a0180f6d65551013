"""``output``: where it writes, which columns, which rows; and the warnings about registration."""

from __future__ import annotations

from typing import Any

import pytest

from dobonomodo.formula.typed import Operation
from dobonomodo.plan import Destination
from dobonomodo.plan.expression import ACTIVE
from dobonomodo.plan.relation import Keep, Write
from dobonomodo.problems.operation import DestinationReason, InvalidDestination
from tests.unit.plan.building import (
    SYSTEM,
    WORLD_BUILT,
    aggregate,
    codes,
    delete,
    found,
    no_problem,
    output,
    plan_of,
    planned,
    problem_in,
    step_of,
    update,
)

BUSINESS = ["order_id", "customer_id", "region", "status", "quantity", "amount", "booked", "shipped_at", "paid"]


def write_of(text: str, *, seq: int = 900, **more: Any) -> Write:
    write = step_of(plan_of(text, output=False, **more), seq).lowered.write
    assert write is not None
    return write


def refused(destination: str) -> InvalidDestination:
    problem = problem_in(output(destination), output=False)
    assert isinstance(problem, InvalidDestination), problem
    return problem


# --- columns


def test_all_columns_are_the_business_columns_and_then_those_of_the_system() -> None:
    # C-63, R-093
    assert list(write_of(update("net = 1") + output()).columns) == [*BUSINESS, "net", *SYSTEM, "_period"]


def test_listed_columns_are_written_in_their_order() -> None:
    # C-63
    assert write_of(output(columns="[paid, orders.amount, _period, REGION]")).columns == (
        "paid",
        "amount",
        "_period",
        "region",
    )


def test_an_empty_list_is_refused() -> None:
    # C-63
    assert found(output(columns="[]"), output=False) == [("EMPTY_PROJECTION", "columns")]


@pytest.mark.parametrize("name", ["amout", "customers.tier", "orders.amout", "_period_from"])
def test_an_unknown_column_is_refused(name: str) -> None:
    # C-63
    assert found(output(columns=f"[{name}, amount]"), output=False) == [("UNKNOWN_COLUMN", name)]


@pytest.mark.parametrize("name", ["*", "orders.*"])
def test_a_star_is_no_column(name: str) -> None:
    # C-63
    text = output(columns=f'["{name}"]')
    assert found(text, output=False) == [("UNKNOWN_COLUMN", name)]
    assert "without `columns`" in (problem_in(text, output=False).hint() or "")


@pytest.mark.parametrize("second", ["amount", "AMOUNT", "orders.amount"])
def test_a_column_twice_is_refused(second: str) -> None:
    # C-63
    assert found(output(columns=f"[amount, {second}]"), output=False) == [("DUPLICATE_OUTPUT_COLUMN", second)]


@pytest.mark.parametrize("name", ["amount + 1", "SUM(amount)"])
def test_a_column_is_no_formula(name: str) -> None:
    assert codes(output(columns=f"['{name}']"), output=False) == ["EXPRESSION_SYNTAX"]


def test_a_column_with_a_blank_in_its_name_can_be_listed() -> None:
    world = WORLD_BUILT.with_dataset(
        "dataset: {id: odd, main_table: {name: odd, columns: [{name: Net Amount, type: decimal}, {name: case, type: string}]}}"
    )
    assert write_of(output(columns="[Net Amount, case]"), world=world, input_id="odd").columns == ("Net Amount", "case")


# --- rows


def test_deleted_rows_are_left_out() -> None:
    #
    plan = plan_of(output(), output=False)
    step = step_of(plan, 900)
    write = step.lowered.write
    assert write is not None
    assert isinstance(write.rows, Keep)
    assert (write.rows.condition, write.rows.rows is plan.start.node, write.include_deleted) == (ACTIVE, True, False)


def test_a_selector_and_the_mask_both_apply() -> None:
    # R-052, C-62
    rows = write_of(output(selector="_deleted OR paid")).rows
    assert isinstance(rows, Keep)
    assert isinstance(rows.condition, Operation)
    assert (rows.condition.operator, rows.condition.operands[0]) == ("AND", ACTIVE)


def test_deleted_rows_are_written_on_request() -> None:
    #
    plan = plan_of(delete("paid") + output(include_deleted="true"), output=False)
    write = step_of(plan, 900).lowered.write
    assert write is not None
    assert (write.rows is step_of(plan, 1).after.node, write.include_deleted) == (True, True)


def test_with_deleted_rows_only_the_selector_applies() -> None:
    #
    rows = write_of(output(include_deleted="true", selector="paid")).rows
    assert isinstance(rows, Keep)
    assert ACTIVE not in (rows.condition, *rows.condition.operands)


def test_an_output_leaves_the_rows_alone() -> None:
    #
    plan = plan_of(output("{type: csv, path: x}", seq=1, columns="[amount]") + update("net = region", seq=2))
    assert step_of(plan, 1).after is plan.start


@pytest.mark.parametrize(
    ("selector", "code"),
    [("amount", "TYPE_MISMATCH"), ("SUM(amount) > 1", "AGGREGATE_NOT_ALLOWED"), ("{{a}}", "SELECTOR_UNDEFINED")],
)
def test_a_selector_is_a_condition(selector: str, code: str) -> None:
    #
    assert codes(output(selector=selector), output=False) == [code]


# --- destinations


def test_a_table_of_a_datasource() -> None:
    # C-66
    assert write_of(output("{datasource_id: lake, table: a/b}")).destination == Destination("parquet", "a/b", "lake")


def test_a_table_in_a_schema_of_a_database() -> None:
    # C-66
    destination = write_of(output("{datasource_id: warehouse, table: t, schema: s}")).destination
    assert destination == Destination("database", "t", "warehouse", "s")
    assert str(destination) == "warehouse:s.t"


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_location_of_its_own(kind: str) -> None:
    # C-66
    destination = write_of(output(f"{{type: {kind}, path: out/orders}}")).destination
    assert (destination, destination.name) == (Destination(kind, "out/orders"), "orders")


@pytest.mark.parametrize(
    ("destination", "reason"),
    [
        ("{}", DestinationReason.MISSING),
        ("null", DestinationReason.MISSING),
        ("{table: x}", DestinationReason.MISSING),
        ("{datasource_id: lake, table: x, path: y}", DestinationReason.BOTH),
        ("{datasource_id: lake, table: x, type: parquet}", DestinationReason.BOTH),
        ("{datasource_id: lake}", DestinationReason.EMPTY_TABLE),
        ('{datasource_id: lake, table: ""}', DestinationReason.EMPTY_TABLE),
        ('{datasource_id: lake, table: "  "}', DestinationReason.EMPTY_TABLE),
        ('{type: parquet, path: ""}', DestinationReason.EMPTY_TABLE),
        ("{type: parquet}", DestinationReason.EMPTY_TABLE),
        ("{datasource_id: old, table: x}", DestinationReason.DISABLED),
        ("{datasource_id: ledger, table: x}", DestinationReason.READ_ONLY),
        ("{datasource_id: ledger, table: x, schema: s}", DestinationReason.READ_ONLY),
        ("{datasource_id: lake, table: x, schema: s}", DestinationReason.NO_DATABASE),
        ("{type: database, path: x}", DestinationReason.NO_FILES),
        ("{type: orc, path: x}", DestinationReason.NO_FILES),
        ("{type: parquet, path: ../x}", DestinationReason.UNSAFE),
        ("{type: parquet, path: /etc/x}", DestinationReason.UNSAFE),
        ("{type: parquet, path: a/../../x}", DestinationReason.UNSAFE),
        ("{type: csv, path: 'C:\\x'}", DestinationReason.UNSAFE),
        ("{type: csv, path: 's3://b/x'}", DestinationReason.UNSAFE),
        ("{datasource_id: lake, table: ../x}", DestinationReason.UNSAFE),
        ('{datasource_id: lake, table: "."}', DestinationReason.UNSAFE),
        ('{datasource_id: lake, table: ".."}', DestinationReason.UNSAFE),
        ('{datasource_id: lake, table: "./"}', DestinationReason.UNSAFE),
        ('{datasource_id: lake, table: "a/."}', DestinationReason.UNSAFE),
        ('{datasource_id: lake, table: "a\\eb"}', DestinationReason.UNSAFE),
        ("{datasource_id: lake, table: 's3a://b/x'}", DestinationReason.UNSAFE),
        ("{datasource_id: lake, table: 's3a:/b/x'}", DestinationReason.UNSAFE),
        ("{datasource_id: warehouse, table: ../../x}", DestinationReason.UNSAFE),
        ('{datasource_id: warehouse, table: "."}', DestinationReason.UNSAFE),
        ('{datasource_id: warehouse, table: "a\\eb"}', DestinationReason.UNSAFE),
        ('{datasource_id: warehouse, table: a, schema: "b\\u202e"}', DestinationReason.UNSAFE),
        ("{type: csv, path: 's3a://b/x'}", DestinationReason.UNSAFE),
        ("{type: csv, path: 'file:/x'}", DestinationReason.UNSAFE),
        ("{type: csv, path: .}", DestinationReason.UNSAFE),
    ],
)
def test_what_is_no_destination(destination: str, reason: DestinationReason) -> None:
    # C-66
    assert refused(destination).reason is reason


def test_an_empty_datasource_is_no_destination() -> None:
    # C-66: empty names are INVALID_DESTINATION
    assert codes(output('{datasource_id: "", table: x}'), output=False) == ["INVALID_DESTINATION"]


@pytest.mark.parametrize("extra", ["table: y", "schema: s"])
def test_keys_that_do_not_belong_to_a_location_are_not_ignored(extra: str) -> None:
    assert codes(output(f"{{type: parquet, path: x, {extra}}}"), output=False) == ["INVALID_DESTINATION"]


def test_an_unknown_datasource() -> None:
    problem = refused("{datasource_id: lak, table: x}")
    assert (problem.reason, problem.name) == (DestinationReason.UNKNOWN_DATASOURCE, "lak")
    assert (problem.known, problem.span and problem.span.line) == (("lake", "warehouse", "ledger", "old"), 8)


def test_without_a_destination() -> None:
    #
    assert codes("- {seq: 1, type: output}\n", output=False) == ["INVALID_DESTINATION"]


def test_a_destination_is_a_mapping() -> None:
    assert codes(output("lake"), output=False) == ["INVALID_VALUE"]


# --- two outputs


LAKE = "{datasource_id: lake, table: out}"


def test_two_outputs_to_one_destination_are_refused() -> None:
    # C-65
    problem = problem_in(output(LAKE, seq=10) + output(LAKE, seq=20), output=False)
    assert isinstance(problem, InvalidDestination)
    assert (problem.reason, problem.first_seq, problem.operation) == (
        DestinationReason.WRITTEN_TWICE,
        10,
        (20, "output-20"),
    )


@pytest.mark.parametrize(
    ("destination", "what"),
    [
        (LAKE, "table"),
        ('{type: csv, file: "a-{{period}}.csv"}', "file"),
        ('{type: excel, file: "a-{{period}}.xlsx", sheet: A}', "sheet"),
    ],
)
def test_only_a_table_can_be_appended_to(destination: str, what: str) -> None:
    problem = problem_in(output(destination, seq=10) + output(destination, seq=20), output=False)
    assert isinstance(problem, InvalidDestination)
    assert (problem.reason, problem.what) == (DestinationReason.WRITTEN_TWICE, what)
    assert ("append" in (problem.hint() or "")) is (what == "table")


def test_the_second_may_append() -> None:
    # C-65
    assert codes(output(LAKE, seq=10) + output(LAKE, seq=20, mode="append"), output=False) == []


def test_the_second_may_not_replace_what_the_first_appended() -> None:
    # C-65
    text = output(LAKE, seq=10, mode="append") + output(LAKE, seq=20, mode="replace")
    assert codes(text, output=False) == ["INVALID_DESTINATION"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("{type: parquet, path: out/x}", "{type: parquet, path: out/x/}"),
        ("{type: parquet, path: out/x}", "{type: parquet, path: ./out//x}"),
        ("{type: parquet, path: out/x}", "{type: csv, path: out/x}"),
    ],
)
def test_one_place_written_in_two_ways_is_one_destination(one: str, other: str) -> None:
    # C-65
    assert codes(output(one, seq=10) + output(other, seq=20), output=False) == ["INVALID_DESTINATION"]


@pytest.mark.parametrize(
    "other",
    ["{datasource_id: lake, table: other}", "{datasource_id: warehouse, table: out}", "{type: parquet, path: out}"],
)
def test_other_destinations_are_fine(other: str) -> None:
    assert codes(output(LAKE, seq=10) + output(other, seq=20), output=False) == []


@pytest.mark.parametrize(
    ("text", "mode"), [(output(), "replace"), (output(mode="replace"), "replace"), (output(mode="append"), "append")]
)
def test_replacing_is_the_default(text: str, mode: str) -> None:
    # C-65
    assert write_of(text).mode == mode


def test_an_unknown_mode() -> None:
    assert found(output(mode="overwrite"), output=False) == [("INVALID_VALUE", "overwrite")]


# --- registration


def test_a_name_to_register() -> None:
    # R-092, C-64
    assert write_of(output(register_as_dataset="processed")).register_as == "processed"


@pytest.mark.parametrize("name", ["a b", '""'])
def test_a_registered_name_is_an_id(name: str) -> None:
    assert codes(output(register_as_dataset=name), output=False) == ["INVALID_VALUE"]


SUMMED = aggregate("region", "total = SUM(amount)")


def test_rows_without_a_period_are_warned_of_when_they_are_registered() -> None:
    # W-05, C-49
    result = planned(SUMMED + output(register_as_dataset="d"), output=False)
    (problem,) = result.problems
    assert (problem.code, problem.made_by, result.plan is not None) == ("W-05", 1, True)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        SUMMED + output(),
        aggregate("_period, region", "total = SUM(amount)") + output(register_as_dataset="d"),
        SUMMED + output(register_as_dataset="d", columns="[region, total]"),
        output(register_as_dataset="d"),
    ],
    ids=["not registered", "grouped by period", "snapshot", "no summaries"],
)
def test_no_warning_without_such_rows(text: str) -> None:
    # W-05
    assert codes(text, output=False) == []


def test_leaving_those_rows_out_ends_the_warning() -> None:
    # W-05: its own hint
    assert codes(SUMMED + output(register_as_dataset="d", selector="_operation_seq = 0"), output=False) == []


def test_a_registered_dataset_has_business_columns() -> None:
    # C-64: only business columns make its schema, and a dataset needs one
    assert codes(output(columns="[_row_id, _period]", register_as_dataset="d"), output=False) != []


def test_a_registered_interval_has_two_ends() -> None:
    """C-64, C-86: a version whose rows are not known to be valid on a day could never be read."""
    rates = {"output": False, "input_id": "rates"}
    both = output(columns="[country, rate, _period_from, _period_to]", register_as_dataset="d")
    assert codes(both, **rates) == []
    half = output(columns="[country, rate, _period_from]", register_as_dataset="d")
    assert found(half, **rates) == [("INVALID_OPERATION", "d")]
    assert codes(output(columns="[country, rate, _period_from]"), **rates) == []


def test_a_registered_dataset_has_no_columns_that_look_like_the_systems() -> None:
    own = update("_own = amount")
    registered = found(own + output(register_as_dataset="d"), output=False)
    assert [each for each in registered if each[0] == "RESERVED_COLUMN"] == [("RESERVED_COLUMN", "d")]
    assert "RESERVED_COLUMN" not in codes(own + output(), output=False)


def test_reads_are_the_selector_and_the_columns() -> None:
    with no_problem(output(columns="[amount]", selector="paid"), output=False) as plan:
        assert step_of(plan, 900).lowered.reads == {"_deleted", "paid", "amount"}


# --- names, order, files


def test_columns_are_written_under_other_names_and_in_an_order() -> None:
    text = output(
        columns='[region, {column: orders.amount, as: "Net amount"}]',
        order_by="[{column: paid, descending: true}, REGION]",
    )
    write = write_of(text)
    assert (write.columns, write.names) == (("region", "amount"), {"amount": "Net amount"})
    assert write.working_names({"Net amount": 1, "region": 2}) == {"amount": 1, "region": 2}
    assert [str(key) for key in write.order] == ["paid descending", "region"]
    assert write.in_one_file


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("[region, {column: amount, as: Region}]", ("DUPLICATE_OUTPUT_COLUMN", "Region")),
        ("[{column: amount, as: _x}]", ("RESERVED_COLUMN", "_x")),
        ('[{column: amount, as: "a\\tb"}]', ("INVALID_COLUMN_NAME", '"a\\tb"')),
        ("[{column: amout, as: x}]", ("UNKNOWN_COLUMN", "amout")),
    ],
)
def test_names_that_cannot_be_written(columns: str, expected: tuple[str, str]) -> None:
    assert found(output(columns=columns), output=False) == [expected]


def test_one_name_in_a_file_for_all_columns_of_it() -> None:
    assert found(output(order_by="[amount, orders.amount]"), output=False) == [
        ("DUPLICATE_OUTPUT_COLUMN", "orders.amount")
    ]


def test_rows_are_ordered_by_columns_that_there_are() -> None:
    assert found(output(order_by="[amount, {column: regoin, descending: true}]"), output=False) == [
        ("UNKNOWN_COLUMN", "regoin")
    ]


def test_options_of_a_destination_are_checked() -> None:
    wrong = output('{type: csv, file: "{{period}}.csv", options: {delimter: ";"}}')
    assert found(wrong, output=False) == [("UNKNOWN_KEY", "delimter")]


def test_a_file_has_a_place_for_the_period() -> None:
    write = write_of(output('{type: csv, file: "results/summary-{{ period }}.csv"}'))
    destination = write.destination
    assert (destination.name, destination.file_name("2026-01")) == ("summary", "results/summary-2026-01.csv")
    assert (destination.is_file, write.in_one_file) == (True, True)
    both = write_of(output('{datasource_id: lake, table: t, file: "t-{{identifier}}.parquet"}')).destination
    assert (both.name, both.is_file, str(both)) == ("t", False, "lake:t")


@pytest.mark.parametrize(
    ("destination", "reason"),
    [
        ("{type: csv, file: summary.csv}", DestinationReason.NO_PERIOD),
        ('{type: csv, file: "{{YYYY}}-{{period}}.csv"}', DestinationReason.TOKEN),
        ('{type: csv, file: "/tmp/{{period}}.csv"}', DestinationReason.UNSAFE),
        ('{type: csv, file: ".x/{{period}}.csv"}', DestinationReason.UNSAFE),
        ('{type: csv, file: "{{period}}/"}', DestinationReason.UNSAFE),
        ('{type: csv, file: "{{period}}.csv", sheet: S}', DestinationReason.NO_SHEETS),
        ('{file: "{{period}}.csv"}', DestinationReason.MISSING),
        ('{type: csv, file: ""}', DestinationReason.EMPTY_TABLE),
    ],
)
def test_files_that_cannot_be_written(destination: str, reason: DestinationReason) -> None:
    assert refused(destination).reason == reason
