from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from dobonomodo.plan.counts import KindTotals
from dobonomodo.runs.comparison import Difference, Other, compare, compare_outputs, describe_figures
from dobonomodo.runs.figures import Figures, FirstRows, OutputFigures


def output(seq: int, table: str, rows: int, **totals: str | None) -> OutputFigures:
    known = {name: Decimal(text) if text is not None else None for name, text in totals.items()}
    return OutputFigures(seq, table, f"lake:{table}", rows, known)


def other(*outputs: OutputFigures) -> Other:
    return Other("previous run", "run-1", "2026-01", Figures(outputs=outputs))


@pytest.mark.parametrize(
    ("now", "before", "difference", "percent"),
    [
        ("110.00", "100.00", "10.00", "10.0"),
        ("90", "100", "-10", "-10.0"),
        ("-110", "-100", "-10", "-10.0"),
        ("100", "-100", "200", "200.0"),
        ("1", "3", "-2", "-66.7"),
        ("100.05", "100", "0.05", "0.1"),
        ("99.95", "100", "-0.05", "-0.1"),
        ("5", "0.00", "5.00", None),
        ("0", "0", "0", None),
        ("5", None, None, None),
        (None, "5", None, None),
        ("9" * 38, "-" + "9" * 38, "1" + "9" * 37 + "8", "200.0"),
        ("9" * 38, "0." + "0" * 9 + "1", "9" * 37 + "8.9999999999", "9" * 37 + "8" + "9" * 10 + "00.0"),
    ],
)
def test_a_difference_is_exact(
    now: str | None, before: str | None, difference: str | None, percent: str | None
) -> None:
    def number(text: str | None) -> Decimal | None:
        return Decimal(text) if text is not None else None

    found = compare(number(now), number(before))
    assert (found.before, found.difference, found.percent) == (number(before), number(difference), number(percent))


def test_outputs_are_compared_by_destination() -> None:
    figures = Figures(outputs=(output(20, "a", 5, x="1"), output(30, "b", 6)))
    before = other(output(20, "b", 4), output(25, "a", 3, x="3", y="9"))
    first, second = compare_outputs(figures, [before])
    assert [(line.column, str(line.now), str(line.compared[0].difference)) for line in first.lines] == [
        (None, "5", "2"),
        ("x", "1", "-2"),
    ]
    assert [line.compared[0].before for line in second.lines] == [4]


def test_two_outputs_into_one_destination_are_told_apart_by_their_number() -> None:
    figures = Figures(outputs=(output(20, "a", 5), output(30, "a", 6)))
    found = compare_outputs(figures, [other(output(30, "a", 1), output(20, "a", 2))])
    assert [each.lines[0].compared[0].before for each in found] == [2, 1]


def test_what_was_not_there_before_has_no_difference() -> None:
    figures = Figures(outputs=(output(20, "a", 5, new="1.00"),))
    nothing = Difference(None, None, None)
    others = [other(), other(output(20, "a", 5)), Other("period 2025-12", "run-0", "2025-12", None)]
    (found,) = compare_outputs(figures, others)
    assert found.lines[0].compared == (nothing, Difference(Decimal(5), Decimal(0), Decimal(0)), nothing)
    assert found.lines[1].compared == (nothing, nothing, nothing)


def test_figures_as_plain_data_are_exact_text() -> None:
    first = FirstRows(("id", "x"), ("id",), (("1", "0.10"), ("2", None)))
    rows = OutputFigures(20, "a", "lake:a", 2, {"x": Decimal("0.10"), "wide": None}, first)
    figures = Figures({"x": Decimal("1E+2")}, (rows,), {10: {"x": Decimal("-99.90")}})
    described = describe_figures(figures, [other(output(20, "a", 1, x="0.20"))])
    assert described["loaded"] == {"x": "100"}
    assert described["operations"] == [{"seq": 10, "changes": {"x": "-99.90"}}]
    (shown,) = described["outputs"]
    assert shown["totals"] == {"x": "0.10", "wide": None}
    assert shown["first_rows"] == [{"id": "1", "x": "0.10"}, {"id": "2", "x": None}]
    assert shown["compared"][0]["totals"]["x"] == {"before": "0.20", "difference": "-0.10", "percent": "-50.0"}
    assert described["compared_with"] == [{"name": "previous run", "run_id": "run-1", "period": "2026-01"}]


def of_kinds(*kinds: tuple[int, str, int, str], rows: int = 5, total: str = "30") -> OutputFigures:
    made = tuple(KindTotals(seq, name, None, count, {"x": Decimal(text)}) for seq, name, count, text in kinds)
    return replace(output(20, "a", rows, x=total), kinds=made)


def test_kinds_of_rows_have_totals_in_place_of_one_sum() -> None:
    figures = Figures(outputs=(of_kinds((0, "", 3, "10"), (10, "Sum", 2, "20")),))
    before = other(of_kinds((0, "", 1, "4"), (5, "Sum", 1, "4"), rows=2, total="8"))
    (found,) = compare_outputs(figures, [before])
    shown: list[tuple[str, object, object]] = [
        (line.label, line.now, line.compared[0].difference) for line in found.shown
    ]
    assert shown == [
        ("rows", 5, 3),
        ("rows: loaded rows", 3, 2),
        ("rows: Sum", 2, 1),
        ("x: loaded rows", 10, 6),
        ("x: Sum", 20, 16),
    ]
    assert not found.mixes
    described = describe_figures(figures, [before])["outputs"]
    assert described[0]["totals"] == {"x": "30"}
    assert described[0]["compared"][0]["totals"]["x"]["difference"] == "22"
    assert described[0]["kinds"][1] == {"seq": 10, "name": "Sum", "level": None, "rows": 2, "totals": {"x": "20"}}


def test_a_kind_that_has_none_of_a_column_is_left_out() -> None:
    one, both, none = (
        compare_outputs(Figures(outputs=(of_kinds((0, "", 3, mine), (10, "Sum", 2, its), total=total),)), [])[0]
        for mine, its, total in (("0", "30", "30"), ("1", "29", "30"), ("0", "0", "0"))
    )
    assert [line.label for line in one.shown if line.column] == ["x: Sum"]
    assert [line.label for line in both.shown if line.column] == ["x: loaded rows", "x: Sum"]
    assert [line.label for line in none.shown if line.column] == ["x"]


def test_totals_of_rows_that_may_be_of_several_kinds_are_said_to_be_so() -> None:
    unknown = replace(output(20, "a", 5, x="1"), kinds=None)
    (found,) = compare_outputs(Figures(outputs=(unknown,)), [])
    assert found.mixes
    assert [line.label for line in found.shown] == ["rows", "x"]
    (without,) = compare_outputs(Figures(outputs=(replace(output(20, "a", 5), kinds=None),)), [])
    assert not without.mixes
