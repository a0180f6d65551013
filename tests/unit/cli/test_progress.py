"""Row counts in words, and how a run ends on the screen."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from dobonomodo.cli.console import Settings, complain, show_problems
from dobonomodo.cli.progress import (
    JsonProgress,
    describe_counts,
    make_progress,
    show_end,
    show_end_of_period,
    show_periods,
)
from dobonomodo.plan.counts import OperationCounts
from dobonomodo.problems.recorded import load_problem
from dobonomodo.runs import RunView
from tests.unit.runs.reporting import make_figures, make_output, make_view


@pytest.mark.parametrize(
    ("type_name", "said"),
    [
        ("update", "1,000 rows, 7 changed"),
        ("aggregate", "1,000 rows, 3 added"),
        ("append", "1,000 rows, 3 added"),
        ("delete", "1,000 rows, 7 deleted"),
        ("output", "1,000 rows, 7 written"),
        ("of another version", "1,000 rows, 7 selected"),
    ],
)
def test_counts_are_said_as_the_type_asks_for(type_name: str, said: str) -> None:
    assert describe_counts(OperationCounts(1, "a", type_name, rows_in=1000, selected=7, added=3)) == said


def test_an_operation_that_was_not_reached() -> None:
    assert describe_counts(OperationCounts(1, "a", "update")) == "not reached"


AT = datetime(2026, 2, 3, 8, tzinfo=UTC)
PROBLEM = {
    "code": "ARITHMETIC_OVERFLOW",
    "message": "a number became too large",
    "hint": "use a wider type",
    "operation_seq": 10,
    "operation_name": "net",
    "expression": "a * b",
}


def run(status: str) -> RunView:
    return RunView(
        id="20260203-080000-abc",
        project="sales",
        version=1,
        period="2026-01",
        status=status,
        by="me",
        started_at=AT,
        created_at=AT,
        updated_at=AT,
        seconds=1.0,
        draft=False,
        operations=(OperationCounts(10, "net", "update", rows_in=3, selected=3, added=0, deleted=0, rows_out=3),),
        outputs={},
        last_completed_operation=None,
        problems=(load_problem(PROBLEM),) if status == "failed" else (),
    )


def test_a_failed_run_says_why_first(capsys: pytest.CaptureFixture[str]) -> None:
    show_end(run("failed"), resumable=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.split()[0] == f"error[{PROBLEM['code']}]:"
    places = [
        err.index(each) for each in ("ARITHMETIC_OVERFLOW", "use a wider type", "selected", "failed in", "resume")
    ]
    assert places == sorted(places)


def test_warnings_come_before_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    warning = load_problem({**PROBLEM, "code": "W-04", "severity": "warning"})
    warned = replace(run("completed"), warnings=(warning,))
    show_end(warned, resumable=False)
    err = capsys.readouterr().err
    assert err.split()[0] == "warning[W-04]:"
    assert err.index("W-04") < err.index("completed in")
    show_end_of_period(warned)
    assert "warning[W-04]: a number became too large" in capsys.readouterr().err
    Settings.quiet = True
    show_end(warned, resumable=False)
    assert capsys.readouterr().err == ""


def test_a_run_that_succeeded_ends_with_the_next_command(capsys: pytest.CaptureFixture[str]) -> None:
    show_end(run("completed"), resumable=False)
    report, verify = capsys.readouterr().err.splitlines()[-2:]
    assert report.startswith("next: dobo runs report 20260203-080000-abc")
    assert verify.startswith("      dobo verify 20260203-080000-abc")


def test_several_periods_end_in_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    january = make_view(period="2026-01", outputs={"out": make_output(rows=1234)})
    february = make_view(period="2026-02", status="failed", outputs={}, id="20260203-080000-000002")
    show_periods(["2026-01", "2026-02", "2026-03"], [january, february])
    lines = [line.split() for line in capsys.readouterr().err.splitlines() if line]
    assert lines == [
        ["period", "status", "rows", "of", "out", "seconds", "run"],
        ["2026-01", "completed", "1,234", "1.5", "20260203-080000-000001"],
        ["2026-02", "failed", "1.5", "20260203-080000-000002"],
        ["2026-03", "not", "run"],
        ["next:", "dobo", "runs", "report", "RUN"],
    ]


def test_the_figures_of_several_periods_are_beside_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    january = make_view(period="2026-01", figures=make_figures("10.00"))
    february = make_view(period="2026-02", figures=make_figures("1234.50", rows=7))
    show_periods(["2026-01", "2026-02"], [january, february])
    lines = [line.split() for line in capsys.readouterr().err.splitlines() if line]
    at = lines.index(["2026-01", "2026-02"])
    assert lines[at + 1 : at + 3] == [["rows", "3", "7"], ["amount", "10.00", "1,234.50"]]


def test_a_completed_period_among_others_takes_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    show_end_of_period(make_view(period="2026-01", outputs={"out": make_output(rows=1234)}, figures=make_figures()))
    assert capsys.readouterr().err.splitlines() == ["period 2026-01 completed in 1.5 s: out 1,234 rows"]


def test_a_period_that_was_interrupted_is_not_one_that_was_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    january = make_view(period="2026-01", outputs={"out": make_output(rows=1234)})
    show_periods(["2026-01", "2026-02", "2026-03"], [january], stopped=("2026-02", "20260203-080000-000002"))
    lines = [line.split() for line in capsys.readouterr().err.splitlines() if line]
    assert lines[2:4] == [["2026-02", "interrupted", "20260203-080000-000002"], ["2026-03", "not", "run"]]


def test_a_log_of_json_has_one_line_for_each_event(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Settings, "log_json", True)
    progress = make_progress()
    assert isinstance(progress, JsonProgress)
    view = run("failed")
    progress.started(view, None)  # type: ignore[arg-type]
    progress.working("waiting for executors (10 s)")
    progress.advanced(view)
    progress.advanced(view)
    progress.finished(view)
    complain("a line\nof two")
    show_problems([load_problem(PROBLEM)])
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["level"], line["event"]) for line in lines] == [
        ("info", "run_started"),
        ("info", "working"),
        ("info", "operation"),
        ("error", "run_finished"),
        ("warning", "message"),
        ("error", "problem"),
    ]
    assert {line["run_id"] for line in lines[:4]} == {view.id}
    assert all(line["time"].endswith("+00:00") for line in lines)
    assert (lines[2]["seq"], lines[2]["text"]) == (10, "3 rows, 3 changed")
    assert (lines[5]["code"], lines[5]["hint"]) == ("ARITHMETIC_OVERFLOW", "use a wider type")
