"""Why a row is not in an output: each reason is found, with the values that decided."""

from __future__ import annotations

import pytest

from dobonomodo.formula.meaning import Value
from dobonomodo.why.absence import Absence, AbsenceFinder, Reason
from dobonomodo.why.explain import Explainer
from dobonomodo.why.explanation import Explanation
from tests.unit.why.orders import ALL, DELETE, OUTPUT, ROWS, UPDATE, Asked, Given
from tests.world import JANUARY

CHOSEN = """
    - seq: 90
      name: Write
      type: output
      selector: net > 20 AND customer <> "C2" AND amount < 50
      arguments: {destination: {datasource_id: out, table: net}}
"""


def find_reasons(operations: str, rows: Given = ROWS, **key: Value) -> list[Reason]:
    asked = Asked(operations, rows)
    assert asked.find(**key) == []
    finder = AbsenceFinder(asked.plan, JANUARY, asked.loader, Explainer(asked.plan, JANUARY))
    return list(finder.explain_missing(asked.output, key, asked.interpreter))


def test_a_deleted_row() -> None:
    (reason,) = find_reasons(ALL, id="A4")
    assert (reason.kind, reason.place) == ("deleted", "orders.parquet, row 4")
    assert reason.operation is not None
    assert (reason.operation.seq, reason.operation.condition and reason.operation.condition.value) == (40, True)


def test_a_row_that_is_stored_as_deleted() -> None:
    rows = {**ROWS, "orders": [{**ROWS["orders"][0], "_deleted": True}]}
    (reason,) = find_reasons(UPDATE + OUTPUT, rows, id="A1")
    assert (reason.kind, reason.operation) == ("deleted", None)


def test_a_row_of_another_period() -> None:
    (reason,) = find_reasons(ALL, id="A5")
    assert (reason.kind, reason.place) == ("outside", "orders.parquet, row 5")
    assert "2025-12" in reason.text


@pytest.mark.parametrize(("row_id", "text"), [("A2", 'customer <> "C2"'), ("A1", "amount < 50"), ("A3", "net > 20")])
def test_the_first_condition_that_is_not_true(row_id: str, text: str) -> None:
    (reason,) = find_reasons(UPDATE + CHOSEN, id=row_id)
    assert reason.kind == "not selected"
    assert reason.operation is not None
    assert reason.operation.condition is not None
    assert reason.operation.condition.text == text


def test_a_row_that_the_source_selector_leaves_out() -> None:
    reasons = find_reasons(ALL, customer="C2", amount=20)
    assert [(each.kind, each.place) for each in reasons] == [("not selected", "budget.parquet, row 2")]


def test_a_row_that_is_not_stored() -> None:
    (reason,) = find_reasons(UPDATE + DELETE + OUTPUT, id="A11")
    assert (reason.kind, reason.nearest[:1]) == ("not in the input", ("A1",))


def explain_unset(column: str, rows: Given = ROWS, **key: Value) -> list[Reason]:
    asked = Asked(ALL, rows)
    (row,) = asked.find(**key)
    explainer = Explainer(asked.plan, JANUARY)
    touches, origin = explainer.explain(row, asked.output, contributors=0)
    explanation = Explanation("R", "p", "2026-01", "net", {}, key, column, touches, origin)
    return list(
        AbsenceFinder(asked.plan, JANUARY, asked.loader, explainer).explain_unset(asked.output, column, explanation)
    )


def test_an_operation_that_did_not_select_the_row() -> None:
    (reason,) = explain_unset("net", id="A3")
    assert (reason.kind, reason.text) == ("not selected", "operation 10 did not set it: not selected")


def test_an_operation_that_set_the_column() -> None:
    (reason,) = explain_unset("net", id="A1")
    assert (reason.kind, reason.text) == ("set", "operation 10 set it to 90.00")


def test_a_join_without_a_match_shows_keys_that_exist() -> None:
    rows = {**ROWS, "orders": [{**ROWS["orders"][0], "customer": "C11"}]}
    first, second = explain_unset("net", rows, id="A1")
    assert (first.kind, first.text, first.nearest) == ("no match", "no row of customers has id = C11", ("C1",))
    assert second.kind == "set"


def test_an_operation_before_the_row_was_made() -> None:
    (reason,) = explain_unset("net", status="active", _operation_seq=20)
    assert reason.text == "operation 10 did not see the row, which operation 20 made"


def test_columns_that_only_other_rows_have() -> None:
    (reason,) = explain_unset("total", id="A1")
    assert reason.text == "operation 20 sets it only on the rows that it adds"
    (reason,) = explain_unset("amount", id="A1")
    assert reason.kind == "never set"


def test_text() -> None:
    reasons = tuple(find_reasons(ALL, id="A4"))
    found = Absence("R", "p", "2026-01", "net", {"id": "A4"}, None, reasons)
    assert str(found) == (
        "the row with id = A4 in net, period 2026-01, run R:\n"
        "- it was deleted by operation 40 (orders.parquet, row 4)\n"
        "  40  Empty (delete): deleted\n"
        "      selected    amount = 0\n"
        "                  0.00 = 0  TRUE"
    )
    assert found.to_dict()["key"] == {"id": "A4"}


SHARED = """
    - seq: 10
      name: Share
      type: allocate
      selector: id = "A1"
      arguments:
        amount: amount
        receivers: {dataset_id: budget}
        driver: receivers.amount
        set: [{column: customer, expression: receivers.customer}]
"""
SUMMED = """
    - seq: 20
      type: aggregate
      arguments: {group_by: [customer, status], aggregations: [{column: total, expression: SUM(amount)}]}
    - seq: 90
      type: output
      selector: _operation_seq = 20
      arguments: {destination: {datasource_id: out, table: net}}
"""


def test_a_row_whose_amount_was_distributed() -> None:
    (reason,) = find_reasons(SHARED + OUTPUT, id="A1", _operation_seq=0)
    assert (reason.kind, reason.place) == ("deleted", "orders.parquet, row 1")
    assert reason.operation is not None
    assert reason.operation.condition is not None
    assert (reason.operation.seq, reason.operation.condition.text) == (10, 'id = "A1"')
    assert [part.text for part in reason.operation.condition.parts] == ['id = "A1"']


def test_a_summary_that_there_is_not_is_compared_with_those_that_there_are() -> None:
    (reason,) = find_reasons(SUMMED, customer="C1", status="actve")
    assert (reason.kind, reason.nearest) == ("not made", ("active",))
    assert find_reasons(SUMMED, customer="X7", status="gone")[0].kind == "not in the input"


def test_a_row_that_got_lost_on_several_ways_is_told_once() -> None:
    reasons = find_reasons(SHARED + SUMMED.replace("seq: 20", "seq: 30").replace("= 20", "= 30"), id="A1")
    said = [(each.text, each.place) for each in reasons]
    assert ("it was deleted by operation 10", "orders.parquet, row 1") in said
    assert len(said) == len(set(said))
