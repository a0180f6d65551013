"""Nodes: the columns they have, what they refuse, and walking through them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from dobonomodo.formula import ColumnRef, Columns, Typed
from dobonomodo.formula.typed import Order
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, UNKNOWN, DecimalType, Type
from dobonomodo.plan import DatasetUse
from dobonomodo.plan.columns import AnyColumns
from dobonomodo.plan.dataset import Role
from dobonomodo.plan.expression import ACTIVE, TRUE, equal, integer, null, over, text
from dobonomodo.plan.relation import (
    AssignIds,
    Derive,
    Group,
    Keep,
    Lookup,
    Match,
    Rel,
    Reshape,
    Scan,
    Stack,
    Window,
    expressions_of,
    inputs_of,
    walk_between,
    walk_relation,
)
from dobonomodo.plan.system import PLACE
from dobonomodo.problems import InternalError
from tests.unit.plan.building import aggregate, join, plan_of, update


def test_a_walk_meets_every_node_once() -> None:
    plan = plan_of(
        update("t = c.tier", joins=join("c", "customers", "c.id = customer_id"))
        + aggregate("region", "n = COUNT(*)", seq=2)
    )
    met = list(walk_relation(plan.steps[1].after.node))
    assert len(met) == len({id(node) for node in met})
    assert sorted(type(node).__name__ for node in met) == sorted(
        each.__name__ for each in (Stack, Derive, Reshape, AssignIds, Group, Keep, Derive, Lookup, Scan, Keep, Scan)
    )


def test_the_rows_before_are_shared() -> None:
    plan = plan_of(aggregate("region", "n = COUNT(*)"))
    node = plan.steps[0].after.node
    assert isinstance(node, Stack)
    assert [type(each) for each in inputs_of(node)] == [Derive, Reshape]
    (scan,) = [each for each in walk_relation(node) if isinstance(each, Scan)]
    assert scan is plan.start.node
    assert inputs_of(scan) == ()


MONEY = DecimalType(15, 2)
ID = ColumnRef("id", None, TEXT)
AMOUNT = ColumnRef("amount", None, MONEY)
THEIR_ID = ColumnRef("id", "s", TEXT)


def scan(role: Role = "input", types: Mapping[str, Type] | None = None) -> Scan:
    return Scan(DatasetUse(role, "d", 1, "t", None, Columns(types or {"id": TEXT, "amount": MONEY})))


def business(node: Rel) -> dict[str, str]:
    return {name: str(kind) for name, kind in node.schema.columns.items() if not name.startswith("_")}


def test_new_columns_come_behind_the_business_columns() -> None:
    # C-63
    node = Derive(scan(), {"n": integer(1), "amount": null(DATE)})
    assert business(node) == {"id": "string", "amount": "date", "n": "integer"}
    assert list(node.schema.columns)[:4] == ["id", "amount", "n", "_row_id"]


def test_what_is_not_changed_is_shared() -> None:
    rows = scan()
    assert Keep(rows, ACTIVE).schema is rows.schema
    assert Derive(rows, {"id": text("a")}).schema.columns is rows.schema.columns


def test_joined_columns_are_beside_the_rows_until_they_are_forgotten() -> None:
    joined = Lookup(scan(), "s", scan("join"), equal(ID, THEIR_ID), TRUE)
    assert list(joined.schema.joined["s"]) == ["id", "amount"]
    assert joined.schema.names[-2:] == ["s.id", "s.amount"]
    assert Derive(joined, {"id": THEIR_ID}, forget=frozenset({"s"})).schema.joined == {}


def test_matched_rows_have_the_id_of_the_other_row() -> None:
    matched = Match(scan(), "s", scan("join"), equal(ID, THEIR_ID), TRUE)
    assert list(matched.schema.joined["s"]) == ["id", "amount", "_row_id"]
    assert AssignIds(matched, 1, ("_row_id", "s._row_id")).schema.joined == matched.schema.joined


def test_rows_of_a_reshaped_node_have_exactly_its_columns() -> None:
    node = Reshape(scan(), {"amount": AMOUNT, "n": integer(1), "other": AMOUNT})
    assert list(node.schema.columns) == ["amount", "n", "other"]
    assert list(expressions_of(node)) == [integer(1), AMOUNT]


def test_a_window_adds_columns() -> None:
    total = over("SUM", AMOUNT, partition=(ID,))
    node = Window(scan(), "w", {"total": total})
    assert str(node.schema.joined["w"]["total"]) == "decimal(25,2)"
    assert node.schema.columns == scan().schema.columns
    assert list(expressions_of(node)) == [total]
    assert not node.reads_places


def test_a_window_may_sort_by_the_place_of_rows() -> None:
    numbered = over("ROW_NUMBER", order=(Order(ColumnRef(PLACE, None, INTEGER)),))
    assert Window(scan(), "w", {"n": numbered}).reads_places
    with pytest.raises(InternalError):
        Derive(scan(), {"n": ColumnRef(PLACE, None, INTEGER)})


def test_carried_columns_of_a_scan() -> None:
    rows = Scan(scan().use, carried={"_period": TEXT, "_row_id": TEXT})
    assert list(rows.schema.columns)[-2:] == ["_labels", "_period"]


def test_of_an_unknown_dataset_every_column_is_there() -> None:
    rows = Scan(DatasetUse("input", "d", 0, "", None, AnyColumns({})))
    assert Keep(rows, equal(ColumnRef("any", None, DATE), null(DATE))).schema.columns["any"] == UNKNOWN


MISSING = ColumnRef("missing", None, TEXT)
MISTYPED = ColumnRef("amount", None, TEXT)


@pytest.mark.parametrize("column", [MISSING, MISTYPED, THEIR_ID])
def test_columns_must_be_there_in_their_type(column: ColumnRef) -> None:
    condition = equal(column, column)
    rows, other = scan(), scan("join")
    makers: list[Callable[[], Rel]] = [
        lambda: Keep(rows, condition),
        lambda: Derive(rows, {"a": column}),
        lambda: Reshape(rows, {"a": column}),
        lambda: Group(rows, {"a": column}, {}),
        lambda: Group(rows, {}, {"a": column}),
        lambda: Lookup(rows, "o", other, condition, TRUE),
        lambda: Match(rows, "s", other, TRUE, condition),
        lambda: Window(rows, "w", {"a": over("COUNT", column)}),
        lambda: Window(rows, "w", {"a": over("COUNT", ID, partition=(column,))}),
        lambda: Window(rows, "w", {"a": over("ROW_NUMBER", order=(Order(column),))}),
    ]
    for make in makers:
        with pytest.raises(InternalError):
            make()


def test_conditions_are_true_or_false() -> None:
    rows = scan()
    condition: Typed = integer(1)
    makers: list[Callable[[], Rel]] = [
        lambda: Keep(rows, condition),
        lambda: Lookup(rows, "s", rows, condition, TRUE),
        lambda: Match(rows, "s", rows, TRUE, condition),
    ]
    for make in makers:
        with pytest.raises(InternalError):
            make()


@pytest.mark.parametrize(
    "other", [{"id": TEXT}, {"id": TEXT, "amount": INTEGER}, {"id": TEXT, "amount": MONEY, "n": TEXT}]
)
def test_stacked_rows_have_the_same_columns(other: dict[str, Type]) -> None:
    with pytest.raises(InternalError):
        Stack(scan(), scan(types=other))


def test_ids_and_windows_need_columns_that_fit() -> None:
    with pytest.raises(InternalError):
        AssignIds(scan(), 1, ("missing",))
    with pytest.raises(InternalError):
        Window(Match(scan(), "w", scan("join"), TRUE, TRUE), "w", {"n": over("COUNT", ID)})


def test_walking_stops_where_it_is_told() -> None:
    rows = scan()
    top = Match(Keep(rows, ACTIVE), "s", scan("join"), TRUE, TRUE)
    assert [type(node) for node in walk_between(top, rows)] == [Match, Keep, Scan]
    assert ACTIVE.type == BOOLEAN
