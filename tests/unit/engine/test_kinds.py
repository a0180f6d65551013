"""Which kinds of rows an output may hold, and when their totals are known. That they are right is tested on Spark."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from dobonomodo.engine import kinds as module
from dobonomodo.engine.kinds import (
    Kind,
    can_be_summed,
    carry_levels,
    count_kinds,
    find_kinds,
    list_kinds,
    read_kinds,
    sum_kinds,
    without_kinds,
)
from dobonomodo.plan import Plan, Step
from dobonomodo.plan.counts import KindTotals
from tests.unit.plan.building import aggregate, append, output, plan_of, update

LAKE = "{datasource_id: lake, table: out}"
TOTALS = aggregate("region", "total = SUM(amount)", seq=10)


def make(text: str, **options: Any) -> tuple[Plan, Step]:
    plan = plan_of(text + output(LAKE, seq=500, **options), output=False)
    return plan, plan.steps[-1]


def metrics_of(step: Step, kinds: tuple[Kind, ...], rows: dict[int, int], total: str = "1.00") -> dict[str, Any]:
    sums = sum_kinds(step, kinds, chosen="TRUE", tracked=True)
    counted = {kind.metric: rows.get(kind.seq) for kind in kinds}
    return {**dict.fromkeys(sums, Decimal(total)), **counted, "rows": sum(rows.values())}


def test_rows_are_loaded_or_added_by_an_operation() -> None:
    plan, step = make(TOTALS + append("budget", seq=20) + update("amount = 1", seq=30))
    assert [(kind.seq, kind.level) for kind in find_kinds(plan, step)] == [(0, None), (10, None), (20, None)]


def test_levels_are_kinds_of_their_own() -> None:
    levels = aggregate("region, status", "total = SUM(amount)", seq=10)
    levels += "    rollup: [all, region]\n    level_column: level\n"
    plan, step = make(levels)
    kinds = find_kinds(plan, step)
    assert [(kind.seq, kind.level) for kind in kinds] == [(0, None), (10, "status"), (10, "all"), (10, "region")]
    assert kinds[2].condition(tracked=False) == "`_operation_seq` = 10L AND `level` = 'all'"
    assert kinds[2].condition(tracked=True).endswith("` level level` = 'all'")
    assert carry_levels(kinds) == ["`level` AS ` level level`"]
    for columns, tracked, known in (
        ("[region, total]", False, False),
        ("[region, total, _operation_seq]", False, False),
        ("[region, total, level, _operation_seq]", False, True),
        ("[region, total]", True, True),
    ):
        assert can_be_summed(make(levels, columns=columns)[1], kinds, tracked=tracked) is known


def test_a_selector_may_leave_one_kind() -> None:
    plan, step = make(TOTALS, selector="_operation_seq = 10 AND total > 0")
    assert [kind.seq for kind in find_kinds(plan, step)] == [10]
    assert not can_be_summed(step, find_kinds(plan, step), tracked=True)


def test_many_kinds_are_not_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, step = make(TOTALS)
    kinds = find_kinds(plan, step)
    assert can_be_summed(step, kinds, tracked=True)
    monkeypatch.setattr(module, "SUMS_AT_MOST", 7)
    assert not can_be_summed(step, kinds, tracked=True)


def test_kinds_without_rows_are_left_out() -> None:
    plan, step = make(TOTALS + append("budget", seq=20))
    kinds = find_kinds(plan, step)
    found = read_kinds(step, kinds, metrics_of(step, kinds, {0: 3, 20: 2}))
    assert found is not None
    assert [(each.seq, each.rows) for each in found] == [(0, 3), (20, 2)]
    assert found[0].totals == {"quantity": 1, "amount": 1, "total": 1}
    assert read_kinds(step, kinds, metrics_of(step, kinds, {10: 3})) == ()
    assert read_kinds(step, kinds[:1], {}) == ()


def test_a_single_kind_is_listed_with_the_totals_of_all_rows() -> None:
    plan, step = make(TOTALS)
    kinds = find_kinds(plan, step)
    (found,) = list_kinds(step, kinds, metrics_of(step, kinds, {10: 3})) or ()
    assert (found.seq, found.rows, found.totals["total"]) == (10, 3, Decimal(1))
    plan, step = make("")
    kinds = find_kinds(plan, step)
    metrics: dict[str, Any] = {"rows": 2, "total_0": 7, "total_1": 8}
    (found,) = list_kinds(step, kinds, metrics) or ()
    assert (found.label, found.rows, list(found.totals.values())) == ("loaded rows", 2, [Decimal(7), Decimal(8)])
    assert list_kinds(step, kinds, {**metrics, "rows": 0}) == ()


def test_kinds_are_not_known_where_they_were_not_measured_or_do_not_hold_all_rows() -> None:
    plan, step = make(TOTALS)
    kinds = find_kinds(plan, step)
    found = metrics_of(step, kinds, {0: 3, 10: 2})
    assert read_kinds(step, kinds, without_kinds(found)) is None
    assert read_kinds(step, kinds, {**found, "rows": 6}) is None
    assert without_kinds(found) == {"rows": 5}


def test_every_kind_is_counted() -> None:
    counted = count_kinds((Kind(0, ""), Kind(10, "Sum")), chosen="c", tracked=False)
    assert list(counted.values()) == [
        f"sum(CASE WHEN c AND `_operation_seq` = {seq}L THEN 1L ELSE 0L END)" for seq in (0, 10)
    ]


def test_kinds_have_labels() -> None:
    assert KindTotals(0, "", None, 1, {}).label == "loaded rows"
    assert KindTotals(10, "Sum", "all", 1, {}).label == "Sum, all"
