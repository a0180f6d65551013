"""`dobo activate` and `dobo deactivate`: the life of a project."""

from __future__ import annotations

from typing import Annotated

import typer

from dobonomodo.cli.arguments import ProjectId
from dobonomodo.cli.console import Json, open_workspace, say, show_json, show_problems
from dobonomodo.cli.decisions import Reason


def activate(
    project: ProjectId,
    dataset_version: Annotated[
        int | None, typer.Option("--dataset-version", metavar="N", help="Pin this version of the input dataset.")
    ] = None,
    keep_pin: Annotated[
        bool,
        typer.Option("--keep-pin", help="Resolve a conflict by keeping the pinned version of the input dataset."),
    ] = False,
    no_test: Annotated[bool, typer.Option("--no-test", help="Do not run the scenarios; needs --reason.")] = False,
    reason: Reason = None,
    as_json: Json = False,
) -> None:
    """Check everything, run the scenarios, pin the input dataset and make the newest version the active one. All or nothing."""
    workspace = open_workspace()
    if keep_pin:
        state = workspace.keep_pin(project)
    else:
        test = not no_test
        state = workspace.activate(project, dataset_version=dataset_version, test=test, reason=reason, report=say)
    if as_json:
        show_json("activate", state, problems=state.warnings)
        return
    show_problems(list(state.warnings))
    number = len(state.tested)
    passed = f", {number} scenario{'' if number == 1 else 's'} passed" if number else ""
    pin = state.activation.pin if state.activation else None
    reads = f", reading {pin.dataset} v{pin.version}" if pin else ""
    say(f"{project} v{state.version} is {state.status}{reads}{passed}")


def deactivate(project: ProjectId, as_json: Json = False) -> None:
    """Stop a project from running."""
    state = open_workspace().deactivate(project)
    if as_json:
        show_json("deactivate", state)
        return
    say(f"{project} v{state.version} is {state.status}")
