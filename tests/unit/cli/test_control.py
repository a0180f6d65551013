"""Control characters never reach a terminal as they are: what is shown has them escaped, and JSON stays JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from xml.etree import ElementTree

import pytest

from dobonomodo.cli import console
from dobonomodo.cli.progress import LiveProgress, show_end
from dobonomodo.cli.table import show_rows
from dobonomodo.plan.counts import OperationCounts
from dobonomodo.problems.recorded import load_problem
from dobonomodo.runs.record import Output, RunView
from dobonomodo.storage.folder import StoredFiles
from dobonomodo.storage.parquet import ParquetFormat
from dobonomodo.workspace import now
from dobonomodo.workspace.sampling import Sample
from tests.unit.cli.conftest import Dobo, change

HOSTILE = "a\x1b]0;owned\x07\x1b[2J\r\x00\x08\x7f\x9b31m\u202egnp\u2066\u2028\x85\ud800\U000e0041z"
"""Escape sequences of two kinds, bell, return, NUL, backspace, delete, C1, bidi, line ends, half a character, a tag."""
WRITTEN = HOSTILE.encode("unicode_escape").decode().replace("\\x9b", "\\u009b")
OURS = re.compile(r"\x1b\[[0-9;]*m")
"""Colours, which only we write."""


def is_harmless(text: str) -> bool:
    return all(each.isprintable() or each == "\n" for each in text)


@pytest.mark.parametrize("tell", [console.say, console.complain, console.show])
def test_lines_are_harmless(capsys: pytest.CaptureFixture[str], tell: Callable[[str], None]) -> None:
    tell(f"before {HOSTILE}\nafter")
    told = "".join(capsys.readouterr())
    assert is_harmless(told)
    assert "\\x1b]0;owned\\x07" in told
    assert "\\u202egnp" in told
    assert told.endswith("\nafter\n")


def test_json_is_harmless_and_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    console.show_json("thing", Sample({HOSTILE: ({HOSTILE: "ä 漢"},)}))
    out = capsys.readouterr().out
    assert is_harmless(out)
    assert json.loads(out)["data"] == {HOSTILE: [{HOSTILE: "ä 漢"}]}
    assert "ä 漢" in out


def test_rows_are_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows(HOSTILE, [{HOSTILE: HOSTILE, "b": 1, f"{HOSTILE}2": None}])
    assert is_harmless("".join(capsys.readouterr()))


def hostile_run() -> RunView:
    problem = {"code": "DATA_LOAD", "message": HOSTILE, "hint": HOSTILE, "operation_seq": 10, "operation_name": HOSTILE}
    name = f"[/]{HOSTILE}[bold]"
    output = Output(20, name, name, 1, "-", name, 1, 0.1, {}, StoredFiles(ParquetFormat(), name, name, ()))
    return RunView(
        id="20260101-000000-abcdef",
        project=name,
        version=1,
        period=name,
        status="failed",
        by=name,
        started_at=now(),
        created_at=now(),
        updated_at=now(),
        seconds=1.0,
        draft=False,
        operations=(OperationCounts(10, name, "update", rows_in=1, selected=1, rows_out=1),),
        outputs={name: output},
        last_completed_operation=None,
        problems=(load_problem({**problem, "expression": HOSTILE}),),
    )


def test_the_end_of_a_run_is_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    show_end(hostile_run(), resumable=False)
    told = "".join(capsys.readouterr())
    assert is_harmless(told)
    assert "[/]a\\x1b]0;owned" in "".join(told.split())


def test_live_progress_is_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    progress = LiveProgress()
    progress.started(hostile_run(), cast("Any", None))
    progress.working(HOSTILE)
    progress.output_started(cast("Any", SimpleNamespace(spec=SimpleNamespace(seq=10, name=HOSTILE))))
    progress._console.print(progress._render())
    progress.stop()
    assert is_harmless(OURS.sub("", "".join(capsys.readouterr())))


@pytest.mark.parametrize("form", ["full", "concise", "github", "json"])
@pytest.mark.parametrize("color", [False, True])
def test_problems_of_hostile_definitions_are_harmless(
    dobo: Dobo, sales: Path, monkeypatch: pytest.MonkeyPatch, form: str, color: bool
) -> None:
    monkeypatch.setenv("FORCE_COLOR" if color else "NO_COLOR", "1")
    change(sales, "projects/monthly-sales.yaml", "type: delete", f'type: "{WRITTEN}"')
    change(sales, "dobo.yaml", "name: sales", 'name: sales, "\\x1b[31m\\u202e": 1')
    (sales / "datasets" / "\x1b[31m\u202e.yaml").write_text("dataset: {id: \u202eb\u009b, main_table: 5}\n# \u202e\n")
    result = dobo("validate", "--output-format", form)
    assert result.code == 1
    told = result.out + (OURS.sub("", result.err) if color else result.err)
    assert told
    assert is_harmless(told)


@pytest.mark.parametrize(
    "command",
    [
        ("plan", HOSTILE, "-p", "2026-01"),
        ("plan", "monthly-sales", "-p", HOSTILE),
        ("show", HOSTILE),
        ("ls", HOSTILE),
        (HOSTILE,),
        (f"--{HOSTILE}",),
        ("-C", HOSTILE, "validate"),
        ("--env", HOSTILE, "validate"),
        ("validate", HOSTILE),
        ("explain", HOSTILE),
        ("functions", HOSTILE),
        ("formula", HOSTILE),
        ("formula", f'"{HOSTILE}" & 1'),
        ("formula", "x", "--column", HOSTILE),
        ("runs", "show", HOSTILE),
        ("resume", HOSTILE),
        ("period", "close", HOSTILE),
        ("test", "-k", HOSTILE),
    ],
    ids=lambda command: " ".join(command).encode("unicode_escape").decode()[:40],
)
def test_what_was_typed_is_shown_harmlessly(dobo: Dobo, stored: Path, command: tuple[str, ...]) -> None:
    result = dobo(*command)
    assert result.code != 3
    assert result.out + result.err
    assert is_harmless(result.out + result.err)


def test_names_that_are_listed_and_shown_are_harmless(dobo: Dobo, stored: Path) -> None:
    change(stored, "datasources/stores.yaml", "name: Lake", 'name: "\\x1b[31m\\u202eLake"')
    for command in (("ls", "datasources"), ("show", "ds-lake"), ("ls", "datasources", "--json"), ("apply", "--yes")):
        result = dobo(*command)
        assert result.code == 0
        assert is_harmless(result.out + result.err)


def test_a_report_of_scenarios_is_xml() -> None:
    from dobonomodo.scenarios import render_junit
    from dobonomodo.scenarios.run import Result

    result = Result(HOSTILE, HOSTILE, (HOSTILE,))
    text = render_junit([result])
    assert is_harmless(text)
    assert ElementTree.fromstring(text).find("testcase/failure") is not None
