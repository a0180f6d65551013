"""`dobo runs`: list runs, show one, write its report."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dobonomodo.cli.arguments import OptionalRunId, RunId, periods, projects
from dobonomodo.cli.console import (
    Exit,
    Json,
    in_folder,
    open_workspace,
    say,
    show,
    show_json,
    stop,
    usage_error,
    writing,
)
from dobonomodo.cli.decisions import describe_decisions
from dobonomodo.cli.table import show_lines

if TYPE_CHECKING:
    from dobonomodo.runs import RunView

runs = typer.Typer(help="List runs, show one, write its report.", no_args_is_help=True)

Project = Annotated[str | None, typer.Option("--project", help="Only runs of this project.", autocompletion=projects)]


@runs.command("list")
def list_runs(
    project: Project = None,
    period: Annotated[
        str | None, typer.Option("--period", "-p", help="Only runs for this period.", autocompletion=periods)
    ] = None,
    status: Annotated[str | None, typer.Option("--status", help="Only runs with this status.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="The maximum number of runs.")] = 20,
    as_json: Json = False,
) -> None:
    """The latest runs, newest first."""
    found = open_workspace().runs(project=project, period=period, status=status, limit=limit)
    if as_json:
        show_json("runs", found)
    elif found:
        show_lines(render_runs(found))
    if not found:
        say("there are no runs")
        stop(Exit.NOTHING)


def render_runs(found: Iterable[RunView]) -> list[tuple[str, ...]]:
    """A line for each run, below their head; overrides of closed periods where there are any."""
    listed = list(found)
    more = any(view.override is not None for view in listed)
    return [
        ("RUN", "PROJECT", "PERIOD", "STATUS", "SECONDS", "ROWS", "BY", *(("OVERRIDE",) if more else ())),
        *(
            (
                view.id,
                view.project + (" (draft)" if view.draft else ""),
                view.period,
                view.status,
                f"{view.seconds:.1f}",
                f"{sum(output.rows for output in view.outputs.values()):,}",
                view.by,
                *((view.override.reason if view.override is not None else "",) if more else ()),
            )
            for view in listed
        ),
    ]


@runs.command("show")
def show_run(run_id: RunId, as_json: Json = False) -> None:
    """All about one run."""
    from dobonomodo.runs.record import Compared

    workspace = open_workspace()
    view = workspace.find_run(run_id)
    others = workspace.compare(view.id)
    if as_json:
        problems = [*view.problems, *view.warnings]
        show_json("runs", Compared(view, others), problems=problems, ok=view.status == "completed")
        return
    from dobonomodo.cli.progress import show_end
    from dobonomodo.model.locale import LOCALES

    head = "draft" if view.draft else f"version {view.version}"
    show(
        f"run {view.id}: {view.project} ({head}), period {view.period}, by {view.by}, clock {view.started_at:%Y-%m-%d %H:%M:%S} UTC"
    )
    for line in describe_decisions(view):
        show(line)
    locale = LOCALES[workspace.settings.locale]
    show_end(view, resumable=workspace.can_resume(view.id), others=others, locale=locale)


@runs.command("report")
def report(
    run_id: OptionalRunId = None,
    every: Annotated[bool, typer.Option("--all", help="Reports of all runs, and an index of them.")] = False,
    to: Annotated[
        Path | None, typer.Option("--to", "-o", metavar="PATH", help="The file to write; with --all, the folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the report of a run: one self-contained HTML file."""
    if (run_id is None) != every:
        usage_error("give one RUN, or --all")
    from dobonomodo.workspace.reports import WrittenReport

    workspace = open_workspace()
    given = in_folder(to) if to is not None else None
    run = workspace.find_run(run_id).id if run_id is not None else None
    with writing(given if given is not None else workspace.root / ".dobo"):
        path = workspace.write_report(run, given) if run is not None else workspace.write_reports(given)
    if as_json:
        show_json("runs", WrittenReport(run, path))
    else:
        show(str(path))
