"""Arguments that several commands take, which a shell completes from the workspace."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from dobonomodo.cli.console import Settings, open_workspace, usage_error

if TYPE_CHECKING:
    from dobonomodo.workspace import Workspace


def _completing(find: Callable[[Workspace], Iterable[str]]) -> Callable[[typer.Context, str], list[str]]:
    """The matching completions. Problems of the workspace are reported by the command, not by the TAB key."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        from dobonomodo.problems import Rejected, RunFailed

        flags = context.find_root().params
        Settings.folder = Settings.folder or flags.get("directory")
        Settings.environment = Settings.environment or flags.get("environment")
        try:
            return [each for each in find(open_workspace()) if each.startswith(incomplete)]
        except (Rejected, RunFailed, OSError):
            return []

    return complete


projects = _completing(lambda workspace: (row.id for row in workspace.listing("project")))
periods = _completing(
    lambda workspace: dict.fromkeys(
        each.identifier for _, schedule in workspace.schedules() for each in schedule.periods
    )
)
runs = _completing(lambda workspace: ("latest", "previous", *(view.id for view in workspace.runs(limit=50))))


def _periods_of(workspace: Workspace) -> list[str]:
    return [each.identifier for _, schedule in workspace.schedules() for each in schedule.periods]


def _versions_of(workspace: Workspace) -> list[str]:
    return [f"{row.id}@v{row.version}" for row in workspace.listing("project") if row.version]


signables = _completing(
    lambda workspace: (
        *_versions_of(workspace),
        *_periods_of(workspace),
        *(view.id for view in workspace.runs(limit=50)),
    )
)
pasts = _completing(
    lambda workspace: (*(row.id for row in workspace.listing("project")), *dict.fromkeys(_periods_of(workspace)))
)

Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="The value of a parameter; repeatable."),
]


def read_set(given: list[str] | None) -> dict[str, object]:
    """Values of parameters from the command line; if a name is given twice, the last value is used."""
    pairs = [text.partition("=") for text in given or ()]
    for text, (name, sign, _) in zip(given or (), pairs, strict=True):
        if not sign or not name.strip():
            usage_error(f"`{text}` is not NAME=VALUE, such as --set uplift=0.05")
    return {name.strip(): value for name, _, value in pairs}


ProjectId = Annotated[str, typer.Argument(help="The id of the project.", autocompletion=projects)]
PeriodId = Annotated[str, typer.Argument(help="The period.", autocompletion=periods)]
_RUN = typer.Argument(
    metavar="RUN",
    help="The id of a run or a unique part of it, `latest`, `latest:PROJECT`, `previous` or `PROJECT@PERIOD`.",
    autocompletion=runs,
)
RunId = Annotated[str, _RUN]
OptionalRunId = Annotated[str | None, _RUN]
