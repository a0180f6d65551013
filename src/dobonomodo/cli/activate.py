"""`dobo activate` and `dobo deactivate`: the life of a project."""

from __future__ import annotations

from typing import Annotated

import typer

from dobonomodo.cli.arguments import ProjectId
from dobonomodo.cli.console import Json, open_workspace, say, show_json


def activate(
    project: ProjectId,
    dataset_version: Annotated[
        int | None, typer.Option("--dataset-version", metavar="N", help="Pin this version of the input dataset.")
    ] = None,
    keep_pin: Annotated[
        bool,
        typer.Option("--keep-pin", help="End a conflict by keeping the pinned version of the input dataset."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check everything, pin the input dataset and make the newest version the active one. All or nothing."""
    workspace = open_workspace()
    version = workspace.keep_pin(project) if keep_pin else workspace.activate(project, dataset_version=dataset_version)
    pin = version.activation.pin if version.activation else None
    if as_json:
        data = {"project": project, "version": version.version, "status": version.status, "pin": pin and pin._asdict()}
        show_json("activate", data)
        return
    reads = f", reading {pin.dataset} v{pin.version}" if pin else ""
    say(f"{project} v{version.version} is {version.status}{reads}")


def deactivate(project: ProjectId, as_json: Json = False) -> None:
    """Stop a project from running."""
    version = open_workspace().deactivate(project)
    if as_json:
        show_json("deactivate", {"project": project, "version": version.version, "status": version.status})
        return
    say(f"{project} v{version.version} is {version.status}")
