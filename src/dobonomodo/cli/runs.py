"""`dobo runs`: the runs there were, one of them, and the report about it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dobonomodo.cli.arguments import RunId, periods, projects
from dobonomodo.cli.console import Exit, Json, in_folder, open_workspace, say, show, show_json, stop, writing
from dobonomodo.cli.table import show_lines

if TYPE_CHECKING:
    from dobonomodo.runs import RunView

runs = typer.Typer(help="List runs, show one, make its report.", no_args_is_help=True)

Project = Annotated[str | None, typer.Option("--project", help="Only runs of this project.", autocompletion=projects)]


@runs.command("list")
def list_runs(
    project: Project = None,
    period: Annotated[
        str | None, typer.Option("--period", "-p", help="Only runs for this period.", autocompletion=periods)
    ] = None,
    status: Annotated[str | None, typer.Option("--status", help="Only runs with this status.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="At most so many.")] = 20,
    as_json: Json = False,
) -> None:
    """The latest runs, newest first."""
    found = open_workspace().runs(project=project, period=period, status=status, limit=limit)
    if as_json:
        show_json("runs", [view.describe() for view in found])
    elif found:
        show_lines(render_runs(found))
    if not found:
        say("there are no runs")
        stop(Exit.NOTHING)


def render_runs(found: Iterable[RunView]) -> list[tuple[str, ...]]:
    """A line for each run, below their head."""
    return [
        ("RUN", "PROJECT", "PERIOD", "STATUS", "SECONDS", "ROWS", "BY"),
        *(
            (
                view.id,
                view.project + (" (draft)" if view.draft else ""),
                view.period,
                view.status,
                f"{view.seconds:.1f}",
                f"{sum(output.rows for output in view.outputs.values()):,}",
                view.by,
            )
            for view in found
        ),
    ]


@runs.command("show")
def show_run(run_id: RunId, as_json: Json = False) -> None:
    """All about one run."""
    workspace = open_workspace()
    view = workspace.find_run(run_id)
    if as_json:
        show_json("runs", view.describe(), problems=[*view.problems, *view.warnings], ok=view.status == "completed")
        return
    from dobonomodo.cli.progress import show_end

    head = "draft" if view.draft else f"version {view.version}"
    show(
        f"run {view.id}: {view.project} ({head}), period {view.period}, by {view.by}, clock {view.started_at:%Y-%m-%d %H:%M:%S} UTC"
    )
    show_end(view, resumable=workspace.can_resume(view.id))


@runs.command("report")
def report(
    run_id: RunId,
    to: Annotated[Path | None, typer.Option("--to", "-o", metavar="FILE", help="Where to write it.")] = None,
    as_json: Json = False,
) -> None:
    """Write the report of a run: one HTML file that needs nothing else."""
    from dobonomodo.runs.report import render_report

    workspace = open_workspace()
    view = workspace.find_run(run_id)
    path = in_folder(to) if to is not None else workspace.root / ".dobo" / "runs" / view.id / "report.html"
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render_report(view, resumable=workspace.can_resume(view.id)), encoding="utf-8")
    if as_json:
        show_json("runs", {"run_id": view.id, "report": str(path)})
    else:
        show(str(path))
