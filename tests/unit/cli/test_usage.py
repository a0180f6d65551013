"""A command that was called wrongly is answered with what was meant, and with what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from dobonomodo.cli.usage import join_help
from dobonomodo.problems.render import INDENT
from tests.unit.cli.conftest import Dobo


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("run", "monthly-sales", "--month", "2026-01"), "--period"),
        (("plan", "monthly-sales", "--mont", "2026-01"), "--period"),
        (("plan", "monthly-sales", "--perod", "2026-01"), "--period"),
        (("run", "monthly-sales", "-p", "2026-01", "--as-off", "2026-01-31"), "--as-of"),
        (("run", "monthly-sales", "-p", "2026-01", "--date", "2026-01-31"), "--as-of"),
        (("run", "monthly-sales", "-p", "2026-01", "--clock", "x"), "--started-at"),
        (("run", "monthly-sales", "-p", "2026-01", "--force"), "--override-closed"),
        (("run", "monthly-sales", "-p", "2026-01", "--dryrun"), "--dry-run"),
        (("validate", "--format", "json"), "--output-format"),
        (("validate", "--fromat", "json"), "--output-format"),
        (("validate", "--directory", "x"), "-C"),
        (("--environment", "prod", "validate"), "--env"),
    ],
)
def test_an_unknown_option_is_answered_with_the_one_that_was_meant(
    dobo: Dobo, sales: Path, arguments: tuple[str, ...], meant: str
) -> None:
    result = dobo(*arguments)
    assert (result.code, result.out) == (2, "")
    assert f"`{meant}`?" in result.err
    command = "" if arguments[0].startswith("-") else f" {arguments[0]}"
    assert f"dobo{command} --help" in result.err


def test_nothing_is_suggested_for_an_option_like_no_other(dobo: Dobo, sales: Path) -> None:
    for option in ("--zzzzzz", "-z"):
        result = dobo("doctor", option)
        assert result.code == 2
        assert "?" not in result.err
        assert "dobo doctor --help" in result.err


@pytest.mark.parametrize(
    ("arguments", "there_is"),
    [
        (("run",), "monthly-sales"),
        (("plan",), "monthly-sales"),
        (("activate",), "monthly-sales"),
        (("run", "monthly-sales"), "2026-01"),
        (("plan", "monthly-sales"), "2026-01"),
        (("period", "close"), "2026-01"),
        (("show",), "monthly-sales"),
        (("ls",), "projects"),
    ],
)
def test_a_missing_argument_is_answered_with_what_there_is(
    dobo: Dobo, sales: Path, arguments: tuple[str, ...], there_is: str
) -> None:
    result = dobo(*arguments)
    assert (result.code, result.out) == (2, "")
    assert f"`{there_is}`" in result.err
    command = " ".join(("dobo", *arguments)).removesuffix(" monthly-sales")
    assert f"{command} --help" in result.err


def test_a_missing_period_comes_with_a_command_that_can_be_typed(dobo: Dobo, sales: Path) -> None:
    (line,) = (line for line in dobo("plan", "monthly-sales").err.splitlines() if "--period 20" in line)
    command = line.partition("dobo ")[2].split()
    assert dobo(*command).code == 0


def test_closed_periods_are_not_offered(dobo: Dobo, stored: Path) -> None:
    assert dobo("period", "close", "2026-01").code == 0
    assert "`2026-01`" not in dobo("run", "monthly-sales").err


def test_outside_of_a_workspace_nothing_is_listed(dobo: Dobo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = dobo("run")
    assert (result.code, result.out) == (2, "")
    assert "dobo run --help" in result.err


def test_an_option_without_its_value(dobo: Dobo, sales: Path) -> None:
    result = dobo("run", "monthly-sales", "-p")
    assert result.code == 2
    assert "dobo run --help" in result.err


def test_a_function_that_is_none_is_a_problem(dobo: Dobo) -> None:
    result = dobo("functions", "NTILE")
    assert (result.code, result.out) == (5, "")
    assert "UNKNOWN_FUNCTION" in result.err
    assert "ROW_NUMBER" in result.err
    assert dobo("functions", "NTILE", "--json").codes == ["UNKNOWN_FUNCTION"]


def test_rows_of_an_operation_are_listed_with_the_functions(dobo: Dobo) -> None:
    assert "MADE_BY" in dobo("functions").out
    assert 'MADE_BY("name of an operation")' in dobo("functions", "made_by").out
    (found,) = dobo("functions", "MADE_BY", "--json").document["data"]
    assert (found["name"], found["usage"]) == ("MADE_BY", ['MADE_BY("name of an operation")'])
    assert [each["name"] for each in dobo("functions", "--json").document["data"]][-1] == "MADE_BY"


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("--json", "run"), "`dobo run` needs PROJECT", "there is `monthly-sales`; Try: dobo run --help"),
        (("run", "--json"), "`dobo run` needs PROJECT", "there is `monthly-sales`"),
        (("validate", "--json", "--fromat"), "`dobo validate` has no option `--fromat`", "`--output-format`"),
        (("--json", "nothing"), "nothing", "dobo --help"),
        (("--json",), "Missing command", "dobo --help"),
        (("--json", "runs"), "Missing command", "Try: dobo runs --help"),
    ],
)
def test_a_wrong_call_as_json(dobo: Dobo, sales: Path, arguments: tuple[str, ...], message: str, hint: str) -> None:
    result = dobo(*arguments)
    assert (result.code, result.codes, result.document["ok"]) == (2, ["INVALID_USAGE"], False)
    (problem,) = result.document["problems"]
    assert message in problem["message"]
    assert hint in (problem["hint"] or "")


def test_help_that_was_folded_is_one_text() -> None:
    assert join_help(["   help: there is `a`,", " " * INDENT + "`b`", "Try: dobo --help"]) == (
        "there is `a`, `b`; Try: dobo --help"
    )
    assert join_help([]) is None
