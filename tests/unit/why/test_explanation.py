"""What of an explanation is shown for some columns."""

from __future__ import annotations

from decimal import Decimal

from dobonomodo.why.explanation import Evaluated, JoinedRow, Touch, columns_behind, with_relevant


def read(*columns: str) -> Evaluated:
    return Evaluated("x", Decimal(1), reads=frozenset(columns))


JOIN = JoinedRow("r", read("currency", "r.id"), "currency = r.id", "rates", None)
AVERAGE = Touch(
    20, "Rates", "aggregate", "selected", read("status"), (JOIN,), reads={"mean": (read("r.rate", "amount"),)}
)
SET = {name: read(f"{name}_source") for name in ("amount", "currency", "status", "other")}
UPDATE = Touch(10, "Set", "update", "selected", values=SET, sets=tuple(SET))


def test_a_total_that_is_no_sum_depends_on_what_it_reads() -> None:
    total, update = with_relevant((AVERAGE, UPDATE), frozenset({"mean"}))
    assert total == AVERAGE
    assert set(update.values) == {"amount", "currency", "status"}
    behind = columns_behind((AVERAGE, UPDATE), frozenset({"mean"}))
    assert behind is not None
    assert {"r.rate", "amount", "amount_source", "status_source"} <= behind


def test_other_totals_do_not_depend_on_it() -> None:
    total, update = with_relevant((AVERAGE, UPDATE), frozenset({"other"}))
    assert (total.joins, total.condition, dict(total.reads)) == ((), None, {})
    assert set(update.values) == {"other"}
