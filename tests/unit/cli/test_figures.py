"""Figures on a terminal, wide and narrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dobonomodo.cli import figures as module
from dobonomodo.cli import table
from dobonomodo.cli.figures import show_figures
from dobonomodo.cli.progress import show_end
from dobonomodo.model.locale import ENGLISH, LOCALES
from dobonomodo.plan.counts import OperationCounts
from dobonomodo.runs.comparison import Other
from tests.unit.runs.reporting import make_figures, make_view

OTHERS = (
    Other("previous run", "run-1", "2026-01", make_figures("1234567.00")),
    Other("period 2025-12", "run-0", "2025-12", make_figures("-1.00", rows=2)),
    Other("none", "run-9", "2025-11", None),
)


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    def show(width: int | None = None, locale: Any = ENGLISH, **changes: Any) -> list[str]:
        for each in (table, module):
            monkeypatch.setattr(each, "terminal_width", lambda stream: width)
        show_figures(make_view(**{"figures": make_figures(), **changes}), OTHERS, locale)
        captured = capsys.readouterr()
        assert captured.out == ""
        return captured.err.splitlines()

    return show


def test_totals_are_aligned_beside_those_of_other_runs(lines: Callable[..., list[str]]) -> None:
    shown = lines(120)
    at = next(at for at, line in enumerate(shown) if line.split()[:2] == ["this", "run"])
    head, rows, amount, wide = shown[at : at + 4]
    assert head.split() == ["this", "run", "previous", "run", "change", "%", "period", "2025-12", "change", "%"]
    assert rows.split() == ["rows", "3", "3", "0", "0.0", "2", "+1", "+50.0"]
    wanted = ["amount", "1,234,567.80", "1,234,567.00", "+0.80", "0.0", "-1.00", "+1,234,568.80", "+123,456,880.0"]
    assert amount.split() == wanted
    assert wide.split() == ["wide", "unknown"]
    assert rows.index("3") == amount.index("1,234,567.80") + len("1,234,567.80") - 1


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(lines: Callable[..., list[str]], width: int) -> None:
    deleting = OperationCounts(20, "Drop what nobody has asked for in the last seven years", "delete", 3, 1, 0, 1, 3)
    shown = lines(width, operations=(deleting,))
    assert max(map(len, shown)) <= width
    assert sum(line.split()[:1] == ["amount"] for line in shown) == {60: 2, 80: 2, 120: 1}[width]


def test_numbers_are_written_as_the_locale_says(lines: Callable[..., list[str]]) -> None:
    assert any("1.234.567,80" in line for line in lines(locale=LOCALES["de"]))


def test_joins_and_deleted_rows_are_said(lines: Callable[..., list[str]]) -> None:
    deleting = OperationCounts(20, "Drop", "delete", 3, 1, 0, 1, 3)
    shown = "\n".join(lines(operations=(deleting,)))
    assert (
        "operation 10 joins rates: 2 of 3 rows matched, 66.7 %; no match for currency = XXX (1 row), NULL (1 row)"
        in shown
    )
    assert "operation 20 Drop: 1 row deleted" in shown


def test_figures_of_what_was_not_published_are_not_shown(lines: Callable[..., list[str]]) -> None:
    assert not any("1,234,567.80" in line for line in lines(outputs={}))


def test_without_figures_nothing_is_said(lines: Callable[..., list[str]]) -> None:
    assert lines(figures=None) == []


def test_many_columns_are_for_the_report(lines: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COLUMNS_SHOWN", 1)
    shown = lines()
    assert not any(line.startswith("wide") for line in shown)
    assert any("1 more column" in line for line in shown)


def test_a_run_ends_with_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    show_end(make_view(figures=make_figures()), resumable=False, others=OTHERS)
    err = capsys.readouterr().err
    places = [err.index(each) for each in ("wrote", "1,234,567.80", "joins rates", "completed in", "next:")]
    assert places == sorted(places)
