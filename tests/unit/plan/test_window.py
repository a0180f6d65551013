"""Windows of an update: which rows they see, how ties are broken, what they are made of."""

from __future__ import annotations

import pytest

from dobonomodo.formula import render_formula
from dobonomodo.formula.typed import Over
from dobonomodo.plan import Plan
from dobonomodo.plan.explain import render_plan, render_step
from dobonomodo.plan.relation import Derive, Lookup, Window
from dobonomodo.plan.window import ALIAS
from dobonomodo.problems.operation import SummariesAggregated
from tests.unit.plan.building import aggregate, append, codes, join, nodes, plan_of, planned, step_of, update
from tests.world import JANUARY

NUMBER = "n = ROW_NUMBER() OVER (PARTITION BY region ORDER BY booked DESC)"
TOTAL = "share = amount / SUM(amount) OVER (PARTITION BY region)"


def window_of(plan: Plan, seq: int = 1) -> Window:
    (found,) = nodes(step_of(plan, seq).after.node, Window)
    return found


def sql_of(plan: Plan, seq: int = 1) -> list[str]:
    return [render_formula(over, JANUARY) for over in window_of(plan, seq).values.values()]


# --- which rows


def test_a_window_sees_the_rows_that_are_not_deleted() -> None:
    # C-95
    assert sql_of(plan_of(update(TOTAL))) == ["sum(`amount`) OVER (PARTITION BY (NOT `_deleted`), `region`)"]


def test_a_window_sees_the_selected_rows() -> None:
    # C-95
    (sql,) = sql_of(plan_of(update(TOTAL, selector='status = "open"')))
    selected = "((NOT `_deleted`) AND (`status` = 'open'))"
    mask = f"CASE WHEN {selected} THEN TRUE ELSE FALSE END"
    assert sql == f"sum(`amount`) OVER (PARTITION BY {mask}, `region`)"


def test_what_could_fail_is_computed_for_the_selected_rows_alone() -> None:
    (sql,) = sql_of(
        plan_of(update("n = SUM(TO_INTEGER(status)) OVER (PARTITION BY DATE(status) ORDER BY VALUE(status))"))
    )
    assert sql.count("CASE WHEN (NOT `_deleted`) THEN") == 3


def test_windows_are_computed_over_joined_columns() -> None:
    plan = plan_of(
        update("n = COUNT(c.tier) OVER (PARTITION BY c.country)", joins=join("c", "customers", "c.id = customer_id"))
    )
    assert isinstance(window_of(plan).rows, Lookup)
    assert dict(step_of(plan, 1).after.joined) == {}


def test_the_same_window_is_computed_once() -> None:
    plan = plan_of(
        update(TOTAL, "total = SUM(amount) OVER (PARTITION BY region)", "rest = 1 - amount / SUM(amount) OVER ()")
    )
    assert len(window_of(plan).values) == 2
    (derive,) = (node for node in nodes(step_of(plan, 1).after.node, Derive) if "share" in node.values)
    assert ALIAS in derive.forget


def test_without_windows_there_is_no_node_for_them() -> None:
    assert nodes(plan_of(update("n = 1")).steps[0].after.node, Window) == []


# --- ties


def test_ties_go_by_natural_key_and_place() -> None:
    # C-95
    (sql,) = sql_of(plan_of(update(NUMBER)))
    order = "`booked` DESC NULLS LAST, `order_id` ASC NULLS FIRST, ` place` ASC NULLS FIRST"
    assert f"ORDER BY {order})" in sql


def test_ties_of_rows_of_several_operations() -> None:
    # C-95
    text = aggregate("region, status", "amount = SUM(amount)", seq=1) + append("budget", seq=2) + update(NUMBER, seq=3)
    (sql,) = sql_of(plan_of(text), 3)
    keys = [
        "`_operation_seq` ASC",
        "CASE WHEN (`_operation_seq` = 0L) THEN `order_id` ELSE CAST(NULL AS STRING) END ASC",
        "CASE WHEN (`_operation_seq` = 1L) THEN `region` ELSE CAST(NULL AS STRING) END ASC",
        "CASE WHEN (`_operation_seq` = 1L) THEN `status` ELSE CAST(NULL AS STRING) END ASC",
        "` place` ASC",
    ]
    assert [key for key in keys if key not in sql] == []
    assert [sql.index(key) for key in keys] == sorted(sql.index(key) for key in keys)
    assert "budget" not in sql


def test_appended_groups_are_told_apart_by_their_keys() -> None:
    grouping = "{group_by: [region], aggregations: [{column: amount, expression: SUM(amount)}]}"
    plan = plan_of(append("budget", grouping=grouping))
    assert step_of(plan, 1).after.keys == {0: ("order_id",), 1: ("region",)}


@pytest.mark.parametrize(
    "formula",
    ["SUM(amount) OVER (ORDER BY booked)", "RANK() OVER (ORDER BY booked)", "COUNT(*) OVER (ORDER BY booked)"],
)
def test_where_ties_do_not_show_places_are_not_read(formula: str) -> None:
    assert not window_of(plan_of(update(f"n = {formula}"))).reads_places


@pytest.mark.parametrize("function", ["ROW_NUMBER()", "LAG(amount)", "LEAD(amount)", "FIRST(amount)", "LAST(amount)"])
def test_where_ties_show_places_are_read(function: str) -> None:
    assert window_of(plan_of(update(f"n = {function} OVER (ORDER BY booked)"))).reads_places


def test_ids_are_never_read_for_ties() -> None:
    # C-95: they depend on the clock
    (sql,) = sql_of(plan_of(update(NUMBER)))
    assert "_row_id" not in sql


# --- where it comes from, and what is said of it


def test_lineage() -> None:
    after = step_of(plan_of(update(TOTAL, NUMBER, selector="paid")), 1).after
    share, number = after.origins["share"], after.origins["n"]
    assert share.inputs == {"sales.amount"}
    assert share.conditions == {"sales.region", "sales.amount", "sales.paid"}
    assert number.inputs == {"sales.booked"}
    assert number.conditions == {"sales.region", "sales.booked", "sales.paid"}
    assert number.operations == (1,)


def test_what_an_update_reads() -> None:
    step = step_of(plan_of(update(NUMBER, selector="paid")), 1)
    assert step.lowered.reads == {"_deleted", "paid", "region", "booked"}


def test_types() -> None:
    columns = step_of(plan_of(update(TOTAL, NUMBER, "last = LAST(booked) OVER (ORDER BY booked)")), 1).after.columns
    assert (str(columns["share"]), str(columns["n"]), str(columns["last"])) == ("decimal(38,10)", "integer", "date")
    assert list(columns).index("_row_id") > list(columns).index("last")


def test_the_plan_shows_windows() -> None:
    plan = plan_of(update(TOTAL))
    assert "sets share (new, decimal(38,10)) = amount / SUM(amount) OVER (PARTITION BY region)" in render_plan(plan)
    lines = render_step(plan.steps[0], JANUARY)
    assert lines[0] == "SELECT sum(`amount`) OVER (PARTITION BY (NOT `_deleted`), `region`) AS ` over.0`"
    assert "` over.0`" in lines[1]


def test_formulas_keep_their_windows() -> None:
    formula = step_of(plan_of(update(TOTAL)), 1).lowered.formulas["share"]
    assert any(isinstance(each, Over) for each in formula.tree.operands)


# --- problems


def test_summary_rows_take_part_with_a_warning() -> None:
    # C-95, W-01
    text = aggregate("region", "amount = SUM(amount)", seq=1) + update(TOTAL, "t = SUM(amount) OVER ()", seq=2)
    (problem,) = (each for each in planned(text).problems if isinstance(each, SummariesAggregated))
    assert (problem.earlier, problem.window, problem.operation and problem.operation.seq) == (1, True, 2)


@pytest.mark.parametrize(
    ("formula", "selector"),
    [
        ("SUM(amount) OVER ()", "_operation_seq = 0"),
        ("SUM(amount) OVER (PARTITION BY _operation_seq)", None),
        ("amount + 1", None),
    ],
)
def test_no_warning_where_summary_rows_are_told_apart(formula: str, selector: str | None) -> None:
    # W-01
    text = aggregate("region", "amount = SUM(amount)", seq=1) + update(f"t = {formula}", seq=2, selector=selector)
    assert codes(text) == []


def test_windows_elsewhere_are_refused() -> None:
    # C-95, R-112
    joins = join("c", "customers", "c.id = customer_id AND COUNT(*) OVER () > 1")
    assert codes(update("n = 1", selector="RANK() OVER (ORDER BY amount) = 1")) == ["AGGREGATE_NOT_ALLOWED"]
    assert codes(update("n = 1", joins=joins)) == ["AGGREGATE_NOT_ALLOWED"]
    assert codes(aggregate("region", "amount = SUM(amount) OVER ()")) == ["AGGREGATE_NOT_ALLOWED"]
    assert codes(append("budget", where="RANK() OVER (ORDER BY amount) = 1")) == ["APPEND_004"]
    grouping = "{group_by: [region], aggregations: [{column: amount, expression: SUM(amount) OVER ()}]}"
    assert codes(append("budget", grouping=grouping)) == ["APPEND_005"]


def test_every_problem_of_a_window_is_found_in_one_go() -> None:
    text = update("a = SUM(amout) OVER (PARTITION BY regoin)", "b = ROW_NUMBER() OVER ()", "c = UPPER(region) OVER ()")
    assert codes(text) == ["UNKNOWN_COLUMN", "UNKNOWN_COLUMN", "INVALID_WINDOW", "INVALID_WINDOW"]
