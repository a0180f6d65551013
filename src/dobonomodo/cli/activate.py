"""`dobo activate` and `dobo deactivate`: the life of a project."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dobonomodo.cli.arguments import ProjectId
from dobonomodo.cli.console import Json, open_workspace, say, show_json, show_problems
from dobonomodo.cli.decisions import Reason

if TYPE_CHECKING:
    from dobonomodo.problems import Problem
    from dobonomodo.scenarios import Result
    from dobonomodo.store import Version


def activate(
    project: ProjectId,
    dataset_version: Annotated[
        int | None, typer.Option("--dataset-version", metavar="N", help="Pin this version of the input dataset.")
    ] = None,
    keep_pin: Annotated[
        bool,
        typer.Option("--keep-pin", help="End a conflict by keeping the pinned version of the input dataset."),
    ] = False,
    no_test: Annotated[bool, typer.Option("--no-test", help="Do not run the scenarios; needs --reason.")] = False,
    reason: Reason = None,
    as_json: Json = False,
) -> None:
    """Check everything, run the scenarios, pin the input dataset and make the newest version the active one. All or nothing."""
    workspace = open_workspace()
    if keep_pin:
        _show(project, workspace.keep_pin(project), (), (), as_json=as_json)
        return
    active = workspace.activate(project, dataset_version=dataset_version, test=not no_test, reason=reason, report=say)
    _show(project, active.recorded, active.tested, active.warnings, as_json=as_json)


def _show(
    project: str, version: Version, tested: Sequence[Result], warnings: Sequence[Problem], *, as_json: bool
) -> None:
    pin = version.activation.pin if version.activation else None
    if as_json:
        data = {"project": project, "version": version.version, "status": version.status, "pin": pin and pin._asdict()}
        scenarios = [{"name": each.name, "file": each.file, "seconds": round(each.seconds, 3)} for each in tested]
        show_json("activate", {**data, "scenarios": scenarios}, problems=warnings)
        return
    show_problems(list(warnings))
    passed = f", {len(tested)} scenario{'' if len(tested) == 1 else 's'} passed" if tested else ""
    reads = f", reading {pin.dataset} v{pin.version}" if pin else ""
    say(f"{project} v{version.version} is {version.status}{reads}{passed}")


def deactivate(project: ProjectId, as_json: Json = False) -> None:
    """Stop a project from running."""
    version = open_workspace().deactivate(project)
    if as_json:
        show_json("deactivate", {"project": project, "version": version.version, "status": version.status})
        return
    say(f"{project} v{version.version} is {version.status}")
