"""`dobo validate`: every problem of a workspace at once, without Spark."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dobonomodo.cli.console import (
    Exit,
    Json,
    in_folder,
    open_workspace,
    say,
    show,
    show_json,
    show_problems,
    stop,
    usage_error,
)


class OutputFormat(StrEnum):
    """How problems are shown."""

    FULL = "full"
    CONCISE = "concise"
    JSON = "json"
    GITHUB = "github"


def validate(
    paths: Annotated[list[Path] | None, typer.Argument(help="Only the problems of these files or folders.")] = None,
    output_format: Annotated[
        OutputFormat, typer.Option("--output-format", help="How problems are shown.")
    ] = OutputFormat.FULL,
    as_json: Json = False,
) -> None:
    """Check every definition and every project; report all problems at once."""
    from dobonomodo.problems import render
    from dobonomodo.workspace.checking import count_definitions

    paths = [in_folder(path) for path in paths or []]
    if missing := next((path for path in paths if not path.exists()), None):
        usage_error(f"there is no {missing}")
    workspace = open_workspace(paths[0] if paths else None)
    problems = [
        each
        for each in workspace.problems()
        if _concerns(each.span.source.name if each.span else None, paths, workspace.root)
    ]
    failed = any(problem.severity == "error" for problem in problems)
    counts = count_definitions(workspace.definitions)
    if as_json or output_format is OutputFormat.JSON:
        show_json("validate", counts, problems=problems, ok=not failed)
    elif output_format is OutputFormat.CONCISE:
        show(render.render_concise(problems)) if problems else None
    elif output_format is OutputFormat.GITHUB:
        show(render.render_github(problems)) if problems else None
    else:
        show_problems(problems)
        if not failed:
            found = ", ".join(
                f"{number} {kind if number != 1 else kind[:-1]}" for kind, number in counts.to_dict().items() if number
            )
            say(f"all fine: {found}" if not problems else f"no errors: {found}")
    if failed:
        stop(Exit.FAILURE)


def _concerns(name: str | None, paths: list[Path] | None, root: Path) -> bool:
    """Whether a file is among those asked for."""
    if not paths or name is None:
        return True
    here = (root / name).resolve()
    return any(here.is_relative_to(path.resolve()) for path in paths)
