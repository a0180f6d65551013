"""Explanations of rows: what each operation did, every formula with values, and where the row comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from dobonomodo.formula.meaning import Value
from dobonomodo.why.explain import Explainer, group_of
from dobonomodo.why.explanation import Explanation, StoredPlace, Summary, Touch
from dobonomodo.why.row import Traced
from dobonomodo.why.text import render_text
from tests.unit.why.orders import AGGREGATE, ALL, DATASETS, KEY, OUTPUT, ROWS, UPDATE, Asked, Given
from tests.world import JANUARY


def explain(column: str | None = None, rows: Given = ROWS, **key: Value) -> Explanation:
    asked = Asked(ALL, rows)
    (row,) = asked.find(**key)
    touches, origin = Explainer(asked.plan, JANUARY).explain(row, asked.output, contributors=2)
    return Explanation(
        run="R",
        project="p",
        period="2026-01",
        table="net",
        row={name: row.values[name] for name in asked.output.write.columns},
        key=key,
        column=column,
        operations=touches,
        origin=origin,
    )


def touch_of(explanation: Explanation, seq: int) -> Touch:
    return next(each for each in explanation.operations if each.seq == seq)


def values_of(touch: Touch) -> Mapping[str, Value]:
    return {name: each.value for name, each in touch.values.items()}


def test_operations_come_last_first() -> None:
    assert [(each.seq, each.effect) for each in explain(id="A1").operations] == [
        (90, "selected"),
        (40, "not selected"),
        (10, "selected"),
    ]


def test_a_formula_with_the_values_of_its_parts() -> None:
    touch = touch_of(explain(id="A1"), 10)
    assert values_of(touch) == {"net": Decimal("90.00")}
    assert [(part.values, part.value) for part in touch.values["net"].parts] == [
        ('"gold" = "gold"', True),
        ("100.00 * 0.9", Decimal("90.000")),
        ("ROUND(90.000, 2)", Decimal("90.00")),
        ("IF(TRUE, 90.00, amount)", Decimal("90.00")),
    ]
    assert touch.condition is not None
    assert (touch.condition.text, touch.condition.value) == ('status = "active"', True)


def test_the_joined_row_and_its_place() -> None:
    (join,) = touch_of(explain(id="A1"), 10).joins
    assert join.row is not None
    assert (join.row.dataset, join.row.key, join.row.place) == ("customers", {"id": "C1"}, "customers.parquet, row 2")


def test_where_a_row_was_loaded() -> None:
    origin = explain(id="A2").origin
    assert isinstance(origin, StoredPlace)
    assert (origin.dataset, origin.place, origin.values["amount"]) == ("orders", "orders.parquet, row 2", Decimal(30))


def test_an_appended_row_was_selected_by_its_operation() -> None:
    found = explain(customer="C1", _operation_seq=30)
    touch = found.operations[-1]
    assert (touch.seq, touch.effect) == (30, "added")
    assert touch.condition is not None
    assert touch.condition.text == "amount > 50"
    assert isinstance(found.origin, StoredPlace)
    assert found.origin.place == "budget.parquet, row 1"


def test_a_summary_row_has_contributors_the_largest_first() -> None:
    origin = explain(status="active", _operation_seq=20).origin
    assert isinstance(origin, Summary)
    assert (origin.key, origin.rows) == ({"status": "active"}, 3)
    assert {name: each.value for name, each in origin.totals.items()} == {"total": Decimal("120.00"), "number": 3}
    assert [(each.key, each.amounts) for each in origin.contributors] == [
        ({"id": "A1"}, {"total": Decimal("90.00"), "number": 1}),
        ({"id": "A2"}, {"total": Decimal("30.00"), "number": 1}),
    ]
    assert origin.sums == {"total", "number"}


def test_text_of_a_column() -> None:
    assert "\n".join(render_text(explain("net", id="A1"))) == (
        "net = 90.00    id A1 of net, period 2026-01, run R\n"
        "\n"
        "90  Write (output): selected\n"
        "40  Empty (delete): not selected\n"
        "10  Price (update)\n"
        '    selected    status = "active"\n'
        '                "active" = "active"  TRUE\n'
        '    net         IF(c.tier = "gold", ROUND(amount * 0.9, 2), amount)\n'
        '                c.tier = "gold"         "gold" = "gold"          TRUE\n'
        "                amount * 0.9            100.00 * 0.9             90.000\n"
        "                ROUND(amount * 0.9, 2)  ROUND(90.000, 2)         90.00\n"
        "                                        IF(TRUE, 90.00, amount)  90.00\n"
        "    c           row id C1 of customers v1 (customers.parquet, row 2), on orders.customer = c.id\n"
        "0   loaded from orders v1 (orders.parquet, row 1): id A1, customer C1, status active, amount 100.00\n"
        "proved: recomputed net equals the stored value"
    )


def test_a_renamed_column_has_the_name_under_which_it_is_written() -> None:
    found = explain("net", id="A1")
    row = {"Net" if name == "net" else name: value for name, value in found.row.items()}
    renamed = replace(found, row=row, column="Net", names={"Net": "net"})
    lines = list(render_text(renamed))
    assert lines[:2] == ["Net = 90.00    id A1 of net, period 2026-01, run R", "in the operations: net for Net"]
    assert lines[-1] == "proved: recomputed Net equals the stored value"
    assert lines[2:-1] == list(render_text(found))[1:-1]
    assert "net for Net" in renamed.to_html()


def test_text_of_a_summary() -> None:
    lines = list(render_text(explain("total", status="active", _operation_seq=20)))
    assert "    group       status active: 3 rows" in lines
    assert "    total       SUM(net) = 120.00" in lines
    assert "      id A1  total 90.00  orders.parquet, row 1" in lines


def test_other_columns_are_only_named() -> None:
    lines = list(render_text(explain("amount", id="A1")))
    assert "10  Price (update): selected, set net" in lines


def test_plain_data() -> None:
    found = explain(id="A1").to_dict()
    assert found["row"]["net"] == "90.00"  # type: ignore[index]
    assert found["loaded"]["key"] == {"id": "A1"}  # type: ignore[index]
    assert found["summary"] is None


SHARED = """
    - seq: 10
      type: allocate
      selector: id = "A1"
      arguments:
        amount: amount
        receivers: {dataset_id: budget}
        driver: receivers.amount
        set: [{column: customer, expression: receivers.customer}]
    - {seq: 90, type: output, arguments: {destination: {datasource_id: out, table: net}}}
"""


def explain_part(customer: str, amount: int = 100) -> tuple[Touch, StoredPlace | Summary | None]:
    asked = Asked(SHARED, {**ROWS, "orders": [{**ROWS["orders"][0], "amount": amount}]})
    (row,) = asked.find(id="A1", customer=customer, _operation_seq=10)
    touches, origin = Explainer(asked.plan, JANUARY).explain(row, asked.output, contributors=2)
    (touch,) = [each for each in touches if each.seq == 10]
    assert touch.values["amount"].value == row.values["amount"]
    return touch, origin


def test_a_part_of_an_amount_has_its_share_and_what_was_set() -> None:
    touch, origin = explain_part("C1")
    assert (touch.effect, list(touch.values), touch.sets) == ("added", ["amount", "customer"], ("amount", "customer"))
    assert [(part.values, part.value) for part in touch.values["amount"].parts] == [
        ("receivers.amount", Decimal(90)),
        ("of all receivers of this row", Decimal(110)),
        ("100.00 * 90.00 / 110.00, cut after 2 digits", Decimal("81.81")),
        ("place 1, units left: 1", Decimal("0.01")),
        ("81.81 + 0.01", Decimal("81.82")),
    ]
    assert isinstance(origin, StoredPlace)


def test_a_part_of_an_amount_has_the_row_of_its_receiver() -> None:
    (join,) = explain_part("C2")[0].joins
    assert join.row is not None
    assert (join.alias, join.dataset, join.row.place) == ("receivers", "budget", "budget.parquet, row 2")


def test_a_part_of_a_negative_amount() -> None:
    assert [part.value for part in explain_part("C2", -100)[0].values["amount"].parts[2:]] == [
        Decimal("-18.18"),
        Decimal(0),
        Decimal("-18.18"),
    ]


def test_a_row_whose_amount_was_distributed_is_deleted_by_that() -> None:
    asked = Asked(SHARED.replace("table: net}", "table: net}, include_deleted: true"))
    (row,) = [each for each in asked.find(id="A1") if each.values["_operation_seq"] == 0]
    touches, _ = Explainer(asked.plan, JANUARY).explain(row, asked.output, contributors=2)
    assert [(each.seq, each.effect) for each in touches if each.seq == 10] == [(10, "deleted")]
    (other,) = asked.find(id="A2")
    touches, _ = Explainer(asked.plan, JANUARY).explain(other, asked.output, contributors=2)
    assert [(each.seq, each.effect) for each in touches if each.seq == 10] == [(10, "not selected")]


def test_parts_are_named_by_what_was_distributed_and_who_received_it() -> None:
    sums = "group_by: [status], aggregations: [{column: total, expression: SUM(amount)}]"
    total = f"- {{seq: 20, type: aggregate, arguments: {{{sums}}}}}"
    asked = Asked(SHARED.replace("    - {seq: 90", f"    {total}\n    - {{seq: 90"))
    (row,) = asked.find(_operation_seq=20, status="active")
    _, origin = Explainer(asked.plan, JANUARY).explain(row, asked.output, contributors=None, column="total")
    assert isinstance(origin, Summary)
    parts = [dict(each.key) for each in origin.contributors if len(each.key) > 1]
    assert parts == [{"id": "A1", "customer": "C1"}, {"id": "A1", "customer": "C2"}]


def test_contributors_without_a_natural_key_are_named_by_their_ids() -> None:
    asked = Asked(AGGREGATE.replace("SUM(net)", "SUM(amount)") + OUTPUT, datasets=DATASETS.replace(KEY, "", 1))
    (row,) = asked.find(status="active", _operation_seq=20)
    _, origin = Explainer(asked.plan, JANUARY).explain(row, asked.output, contributors=1)
    assert isinstance(origin, Summary)
    (first,) = origin.contributors
    assert first.key == {"_row_id": first.row_id}
    touches, _ = contributor(asked, row, **first.key)
    assert values_of(touches[0])["total"] == Decimal(100)


def fit_amount(value: object) -> Decimal:
    return Decimal(str(value)).quantize(Decimal("0.01"))


def contributor(asked: Asked, total: Traced, **key: Value) -> tuple[tuple[Touch, ...], StoredPlace | Summary | None]:
    """How one row of a total became what it adds to it."""
    group = group_of(total)
    assert group is not None
    known = {name: frozenset([value]) for name, value in key.items()}
    (row,) = asked.interpreter.find_members(group, known)
    return Explainer(asked.plan, JANUARY).explain_contributor(row, group, contributors=2)


def test_a_row_of_a_total_is_explained_up_to_it() -> None:
    asked = Asked(ALL)
    (total,) = asked.find(status="active", _operation_seq=20)
    touches, origin = contributor(asked, total, id="A1")
    assert [(each.seq, each.effect) for each in touches] == [(20, "selected"), (10, "selected")]
    assert values_of(touches[0]) == {"total": Decimal(90), "number": 1}
    assert values_of(touches[1]) == {"net": Decimal(90)}
    assert touches[0].condition is not None
    assert [join.dataset for join in touches[1].joins] == ["customers"]
    assert isinstance(origin, StoredPlace)
    assert origin.place == "orders.parquet, row 1"


OTHERS = (
    UPDATE
    + """
    - seq: 20
      name: Totals
      type: aggregate
      selector: status = "active"
      arguments:
        group_by: [status]
        aggregations:
          - {column: number, expression: COUNT(*)}
          - {column: discount, expression: SUM(amount) - SUM(net)}
          - {column: tax, expression: "ROUND(SUM(net * 0.19), 1)"}
          - {column: rate, expression: 100 * SUM(net) / SUM(amount)}
"""
    + OUTPUT
)


def explain_others(column: str | None = None, rows: Given = ROWS) -> Summary:
    asked = Asked(OTHERS, rows)
    (row,) = asked.find(status="active", _operation_seq=20)
    _, origin = Explainer(asked.plan, JANUARY).explain(row, asked.output, contributors=None, column=column)
    assert isinstance(origin, Summary)
    return origin


def test_contributors_have_the_amounts_that_add_up_to_the_total() -> None:
    origin = explain_others()
    assert origin.totals["discount"].value == Decimal(10)
    assert [(each.key["id"], each.amounts["discount"]) for each in origin.contributors] == [
        ("A1", Decimal(10)),
        ("A2", Decimal(0)),
        ("A4", Decimal(0)),
    ]


def test_a_total_that_is_no_sum_of_amounts_shows_what_it_reads() -> None:
    origin = explain_others()
    assert origin.sums == {"number", "discount", "tax"}
    assert [dict(each.reads) for each in origin.contributors][:2] == [
        {"rate": {"net": Decimal(90), "amount": Decimal(100)}},
        {"rate": {"net": Decimal(30), "amount": Decimal(30)}},
    ]


def test_a_rounded_total_has_amounts_only_if_rounding_changed_nothing() -> None:
    assert [each.amounts["tax"] for each in explain_others("tax").contributors] == [
        Decimal("17.1"),
        Decimal("5.7"),
        Decimal(0),
    ]
    rows = {**ROWS, "orders": [*ROWS["orders"], {**ROWS["orders"][1], "id": "A6", "amount": 1}]}
    rounded = explain_others("tax", rows)
    assert rounded.totals["tax"].value == Decimal("23.0")
    assert "tax" not in rounded.sums
    assert [each.reads["tax"] for each in rounded.contributors][:1] == [{"net * 0.19": Decimal("17.1000")}]


def test_contributors_are_sorted_by_their_amounts() -> None:
    assert [each.key["id"] for each in explain_others("rate").contributors] == ["A1", "A2", "A4"]


def test_a_contributor_has_its_amount_and_what_is_read_of_it() -> None:
    asked = Asked(OTHERS)
    (total,) = asked.find(status="active", _operation_seq=20)
    touches, _ = contributor(asked, total, id="A1")
    assert values_of(touches[0]) == {"number": 1, "discount": Decimal(10), "tax": Decimal("17.1")}
    assert touches[0].values["discount"].text == "amount - net"
    assert [(each.text, each.value) for each in touches[0].reads["rate"]] == [
        ("net", Decimal(90)),
        ("amount", Decimal(100)),
    ]


def test_text_of_totals_that_are_no_sums() -> None:
    asked = Asked(OTHERS)
    (row,) = asked.find(status="active", _operation_seq=20)
    touches, origin = Explainer(asked.plan, JANUARY).explain(row, asked.output, contributors=1)
    found = Explanation("R", "p", "2026-01", "net", row.values, {}, None, touches, origin)
    lines = list(render_text(found))
    assert "    discount    SUM(amount) - SUM(net) = 10.00" in lines
    rate = next(line for line in lines if line.startswith("    rate "))
    assert rate.endswith(", which is not a sum of amounts of rows")
    assert any("discount 10.00, tax 17.1000; reads net 90.00, amount 100.00" in line for line in lines)


JOINED = """
    - seq: 30
      name: Budget
      type: append
      arguments:
        source: {dataset_id: budget, joins: [{alias: c, dataset_id: customers, on: budget.customer = c.id}]}
        source_selector: c.tier = "gold"
"""
TOTALS = (
    JOINED
    + """
        aggregation: {group_by: [customer], aggregations: [{column: amount, expression: "SUM(ROUND(budget.amount / 2, 2))"}]}
"""
)


def test_a_row_of_a_total_of_another_dataset_has_the_joins_of_that() -> None:
    asked = Asked(TOTALS + OUTPUT)
    (total,) = asked.find(_operation_seq=30)
    ((touch,), origin) = contributor(asked, total, customer="C1")
    assert (touch.seq, values_of(touch), [join.alias for join in touch.joins]) == (30, {"amount": Decimal(45)}, ["c"])
    assert [part.text for part in touch.values["amount"].parts] == ["amount / 2", "ROUND(amount / 2, 2)"]
    assert touch.condition is not None
    assert (touch.condition.text, touch.condition.value) == ('c.tier = "gold"', True)
    assert isinstance(origin, StoredPlace)
    assert origin.place == "budget.parquet, row 1"


def test_an_appended_row_has_the_joins_of_its_dataset() -> None:
    asked = Asked(JOINED + OUTPUT)
    (row,) = asked.find(_operation_seq=30)
    touches, _ = Explainer(asked.plan, JANUARY).explain(row, asked.output, contributors=2)
    touch = touches[-1]
    assert (touch.effect, [join.alias for join in touch.joins]) == ("added", ["c"])
    assert touch.condition is not None
    assert (touch.condition.text, touch.condition.value) == ('c.tier = "gold"', True)


TWICE = """
    - seq: 60
      type: aggregate
      selector: _operation_seq = 20
      arguments: {group_by: [customer], aggregations: [{column: total, expression: SUM(total)}]}
"""


def test_a_total_of_totals_is_followed_down() -> None:
    asked = Asked(UPDATE + AGGREGATE + TWICE + OUTPUT)
    (whole,) = asked.find(_operation_seq=60)
    touches, origin = contributor(asked, whole, status="active")
    assert [(each.seq, each.effect) for each in touches] == [(60, "selected"), (20, "added")]
    assert isinstance(origin, Summary)
    assert (origin.rows, len(origin.contributors)) == (3, 2)
