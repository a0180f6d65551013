from __future__ import annotations

import json
from decimal import Decimal

from dobonomodo.plan.counts import JoinCounts, UnmatchedKey
from dobonomodo.runs.figures import Figures, OutputFigures
from tests.unit.runs.making import make_figures


def test_columns_keep_their_order_in_a_store_that_sorts_keys() -> None:
    figures = make_figures({"zebra": Decimal(1), "ant": Decimal(2)})
    read = Figures.load(json.loads(json.dumps(figures.document(), sort_keys=True)))
    assert list(read.outputs[0].totals) == ["zebra", "ant"]


def test_figures_of_outputs_come_together() -> None:
    first = Figures(
        loaded={"a": Decimal(1)},
        outputs=(OutputFigures(50, "one", "lake:one", 1, {}),),
        changes={10: {"a": Decimal(2)}},
        joins=(JoinCounts(10, "r", "rates", ("k",), 2, 1, (UnmatchedKey(("x",), 1),)),),
    )
    second = Figures(
        loaded={"b": Decimal(3)},
        outputs=(OutputFigures(40, "two", "lake:two", 2, {}),),
        changes={10: {"b": Decimal(4)}, 30: {"a": Decimal(5)}},
        joins=(JoinCounts(10, "r", "rates", ("k",), 2, 1), JoinCounts(0, "l", "lookup", (), 1, 0)),
    )
    merged = first.merge(second)
    assert merged.loaded == {"a": 1, "b": 3}
    assert [each.seq for each in merged.outputs] == [40, 50]
    assert merged.changes == {10: {"a": 2, "b": 4}, 30: {"a": 5}}
    assert [(each.seq, each.alias, len(each.most_frequent)) for each in merged.joins] == [(0, "l", 0), (10, "r", 1)]


def test_an_output_that_is_written_again_replaces_what_was_known_of_it() -> None:
    first, second = make_figures({"amount": Decimal(1)}), make_figures({"amount": Decimal(2)})
    assert [each.totals for each in first.merge(second).outputs] == [{"amount": 2}]
    assert first.without([90]).outputs == ()
    assert first.without([1]) == first
