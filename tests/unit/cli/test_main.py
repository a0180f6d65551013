"""What all commands have in common: flags, exit codes, and how exceptions are reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dobonomodo.workspace
from dobonomodo import __version__
from dobonomodo.cli.console import Exit, find_exit
from dobonomodo.problems import Problem
from dobonomodo.problems.operation import PeriodNotRunnable
from dobonomodo.problems.run import RunHeld, SparkLost
from dobonomodo.problems.store import StoreUnavailable
from dobonomodo.problems.workspace import NotDefined, WorkspaceNotFound
from tests.unit.cli.conftest import Dobo, change
from tests.unit.runs.reporting import make_view

COMMANDS = (
    "validate",
    "apply",
    "plan",
    "activate",
    "deactivate",
    "period",
    "show",
    "ls",
    "formula",
    "functions",
    "explain",
    "schema",
)


def test_help_lists_the_commands(dobo: Dobo) -> None:
    for flag in ("--help", "-h"):
        result = dobo(flag)
        assert (result.code, result.err) == (0, "")
        assert all(command in result.out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(dobo: Dobo, command: str) -> None:
    result = dobo(command, "--help")
    assert (result.code, result.err) == (0, "")
    assert f"dobo {command}" in result.out


def test_version(dobo: Dobo) -> None:
    assert dobo("--version")[:2] == (0, f"dobo {__version__}\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("validat",),
        ("--unheard",),
        ("plan",),
        ("plan", "p"),
        ("ls", "things"),
        ("validate", "--output-format", "xml"),
        ("schema", "projct"),
        ("period",),
    ],
)
def test_wrong_usage(dobo: Dobo, sales: Path, arguments: tuple[str, ...]) -> None:
    result = dobo(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err


@pytest.mark.parametrize(("wrong", "right"), [("validat", "validate"), ("pln", "plan"), ("activte", "activate")])
def test_an_unknown_command_gets_a_suggestion(dobo: Dobo, wrong: str, right: str) -> None:
    assert right in dobo(wrong).err


def test_without_arguments_there_is_help(dobo: Dobo) -> None:
    result = dobo()
    assert "validate" in result.out + result.err


def test_another_folder(dobo: Dobo, sales: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert dobo("validate").code != 0
    assert dobo("-C", str(sales), "validate").code == 0
    assert dobo("-C", "sales/projects", "validate").code == 0
    assert dobo("-C", "sales/typo", "validate").code == 2


def test_outside_of_a_workspace(dobo: Dobo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # usage or configuration
    monkeypatch.chdir(tmp_path)
    result = dobo("validate")
    assert (result.code, result.out) == (2, "")
    assert "WORKSPACE_NOT_FOUND" in result.err


def test_an_unknown_environment(dobo: Dobo, sales: Path) -> None:
    # usage or configuration
    assert dobo("--env", "prod", "validate").code == 2


@pytest.mark.parametrize(
    "command", [("plan", "monthly-sale", "-p", "2026-01"), ("show", "unheard"), ("activate", "monthly-sale")]
)
def test_what_is_asked_for_does_not_exist(dobo: Dobo, stored: Path, command: tuple[str, ...]) -> None:
    result = dobo(*command)
    assert result.code in (1, 2, 5)
    assert result.out == ""
    assert "NOT_DEFINED" in result.err


# --- JSON


FAILING = [
    ("validate", "--json"),
    ("plan", "monthly-sales", "-p", "2026-01", "--json"),
    ("apply", "--json"),
    ("activate", "monthly-sales", "--json"),
]


@pytest.mark.parametrize("command", FAILING, ids=lambda command: command[0])
def test_a_refusal_is_one_json_document_too(dobo: Dobo, stored: Path, command: tuple[str, ...]) -> None:
    change(stored, "projects/monthly-sales.yaml", "type: delete", "type: delte")
    result = dobo(*command)
    assert result.code == 1
    assert (result.document["schema"], result.document["ok"]) == (f"dobo/{command[0]}/1", False)
    assert "INVALID_OPERATION" in result.codes


@pytest.mark.parametrize(
    "command",
    [
        ("plan", "unheard", "-p", "2026-01", "--json"),
        ("show", "unheard", "--json"),
        ("period", "close", "2099-01", "--json"),
        ("plan", "monthly-sales", "-p", "x", "--json"),
    ],
    ids=["project", "show", "period", "plan period"],
)
def test_what_does_not_exist_is_one_json_document_too(dobo: Dobo, stored: Path, command: tuple[str, ...]) -> None:
    document = dobo(*command).document
    assert (document["ok"], len(document["problems"])) == (False, 1)


def test_the_fields_of_a_problem(dobo: Dobo, faulty: Path) -> None:
    for problem in dobo("validate", "--json").document["problems"]:
        assert set(problem) == {
            "code",
            "severity",
            "message",
            "hint",
            "file",
            "line",
            "column",
            "operation_seq",
            "operation_name",
            "expression",
        }


# --- conflicts


def test_a_project_that_cannot_run_is_a_conflict(dobo: Dobo, stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dobonomodo.problems import Rejected
    from dobonomodo.problems.operation import PeriodNotRunnable, ProjectNotRunnable

    for problem in (
        ProjectNotRunnable(project_id="p", status="inactive"),
        PeriodNotRunnable(period="2026-01", status="locked"),
    ):

        def refuse(*_: object, problem: object = problem, **__: object) -> None:
            raise Rejected([problem])  # type: ignore[list-item]

        monkeypatch.setattr(dobonomodo.workspace.Workspace, "plan", refuse)
        assert dobo("plan", "monthly-sales", "-p", "2026-01").code == 4


def test_a_period_never_goes_back(dobo: Dobo, stored: Path) -> None:
    assert dobo("period", "close", "2026-01").code == 0
    result = dobo("period", "open", "2026-01")
    assert "INVALID_TRANSITION" in result.err
    assert result.code in (1, 4)


# --- our own faults


def broken(*_: object, **__: object) -> None:
    raise ZeroDivisionError("the sum of all fears")


def test_a_fault_of_ours_is_told_without_a_traceback(dobo: Dobo, sales: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dobonomodo.workspace.Workspace, "problems", broken)
    result = dobo("validate")
    assert (result.code, result.out) == (3, "")
    assert "ZeroDivisionError" in result.err
    assert "Traceback" not in result.err
    assert "--debug" in result.err


def test_a_fault_of_ours_is_a_problem_in_json(dobo: Dobo, sales: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dobonomodo.workspace.Workspace, "problems", broken)
    result = dobo("validate", "--json")
    assert (result.code, result.codes, result.document["ok"]) == (3, ["INTERNAL_ERROR"], False)


@pytest.mark.parametrize(
    ("problems", "code"),
    [
        ([NotDefined(kind="project", id="x")], Exit.FAILURE),
        ([WorkspaceNotFound(folder="x")], Exit.USAGE),
        ([RunHeld(project="p", period="x", holder="me", since="now")], Exit.CONFLICT),
        ([SparkLost(detail="gone")], Exit.ENVIRONMENT),
        ([StoreUnavailable(store="s", reason="r")], Exit.FAILURE),
        ([StoreUnavailable(store="s", reason="r", is_transient=True)], Exit.ENVIRONMENT),
        ([NotDefined(kind="project", id="x"), PeriodNotRunnable(period="x", status="locked")], Exit.CONFLICT),
        ([SparkLost(detail="gone"), WorkspaceNotFound(folder="x")], Exit.USAGE),
        ([], Exit.FAILURE),
    ],
)
def test_the_exit_code_follows_from_who_must_act(problems: list[Problem], code: Exit) -> None:
    assert find_exit(problems) is code


def test_with_debug_there_is_a_traceback(dobo: Dobo, sales: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dobonomodo.workspace.Workspace, "problems", broken)
    result = dobo("--debug", "validate")
    assert result.code == 3
    assert "Traceback" in result.err


def test_a_fault_of_ours_is_told_even_quietly(dobo: Dobo, sales: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dobonomodo.workspace.Workspace, "problems", broken)
    result = dobo("-q", "validate")
    assert result.code == 3
    assert "ZeroDivisionError" in result.err


def test_wrong_usage_is_told_even_quietly(dobo: Dobo, sales: Path) -> None:
    result = dobo("-q", "plan")
    assert result.code == 2
    assert result.err


def test_an_interruption(dobo: Dobo, sales: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(dobonomodo.workspace.Workspace, "problems", interrupted)
    assert dobo("validate").code == 130


def test_an_interruption_among_several_periods(dobo: Dobo, sales: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    view = make_view(period="2026-01", snapshot={"inputs": {}})

    def interrupted(*_: object, listener: Any, **__: object) -> None:
        listener.started(view, None)
        raise KeyboardInterrupt

    monkeypatch.setattr(dobonomodo.workspace.Workspace, "run", interrupted)
    result = dobo("run", "monthly-sales", "-p", "2026-01..2026-02")
    lines = [line.split() for line in result.err.splitlines()]
    assert (result.code, ["to", "resume:", "dobo", "resume", view.id] in lines) == (130, True)
    assert ["2026-01", "interrupted", view.id] in lines
    assert ["2026-02", "not", "run"] in lines


# --- a workspace that cannot be read


@pytest.mark.parametrize(
    "text",
    [
        "workspace: {name: sales, store: 'postgresql://me:hunter2@host/db'}",
        "workspace: {name: sales, sandbox: 5}",
        "workspace: {name: [sales}",
        "workspace: {name: sales, environments: {prod: {spark: {conf: {spark.ssl.keyPassword: hunter2}}}}}",
    ],
)
def test_defaults_do_not_take_the_place_of_settings_that_could_not_be_read(dobo: Dobo, sales: Path, text: str) -> None:
    (sales / "dobo.yaml").write_text(text)
    for command in (
        ("ls", "projects"),
        ("apply", "--yes"),
        ("plan", "monthly-sales", "-p", "2026-01"),
        ("run", "monthly-sales", "-p", "2026-01"),
        ("runs", "list"),
        ("validate",),
    ):
        result = dobo(*command)
        assert (result.code, result.out) == (1, ""), command
        assert "hunter2" not in result.err, command
        assert not (sales / ".dobo").exists(), command


@pytest.mark.parametrize(
    "flags",
    [
        ("--spark-conf", "spark.hadoop.fs.s3a.secret.key=hunter2"),
        ("--spark-conf", "spark.hadoop.fs.s3a.secret.key:hunter2"),
        ("--spark-conf", "spark.driver.extraJavaOptions=-Dx.password=hunter2"),
        ("--remote", "sc://host/;token=hunter2"),
    ],
)
def test_secrets_on_the_command_line(dobo: Dobo, sales: Path, flags: tuple[str, str]) -> None:
    result = dobo("run", "monthly-sales", "-p", "2026-01", *flags)
    assert (result.code, result.out) == (2, "")
    assert result.err
    assert "hunter2" not in result.err


def test_a_secret_that_a_setting_of_spark_refers_to_is_missing(dobo: Dobo, sales: Path) -> None:
    setting = "spark.hadoop.fs.s3a.secret.key=env://NOT_THERE_AT_ALL"
    result = dobo("run", "monthly-sales", "-p", "2026-01", "--json", "--spark-conf", setting)
    assert result.code == 2
    assert result.codes == ["CREDENTIAL_NOT_FOUND"]


# --- colours


def test_no_colours_without_a_terminal(dobo: Dobo, faulty: Path) -> None:
    assert "\x1b[" not in dobo("validate").err


def test_colours_on_request(dobo: Dobo, faulty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = dobo("validate")
    assert "\x1b[" in result.out + result.err


def test_no_colours_on_request(dobo: Dobo, faulty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    result = dobo("validate")
    assert "\x1b[" not in result.out + result.err
    monkeypatch.delenv("NO_COLOR")
    result = dobo("--no-color", "validate")
    assert "\x1b[" not in result.out + result.err


def test_one_call_without_colours_does_not_take_them_from_the_next(
    dobo: Dobo, faulty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    dobo("--no-color", "validate")
    result = dobo("validate")
    assert "\x1b[" in result.out + result.err
