"""`dobo clean`: remove what killed runs left behind."""

from __future__ import annotations

from typing import Annotated

import typer

from dobonomodo.cli.console import Exit, Json, open_workspace, say, show, show_json, show_problems, stop


def clean(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be removed.")] = False,
    as_json: Json = False,
) -> None:
    """Remove what killed runs left, and copies of inputs that no run needs. Runs that can be resumed keep their inputs."""
    cleaned = open_workspace().clean(dry_run=dry_run)
    if as_json:
        show_json("clean", cleaned, problems=cleaned.problems, ok=not cleaned.problems)
    else:
        lines = [(_render_size(each.bytes), each.kind, each.place) for each in cleaned.leftovers]
        widths = [max((len(line[at]) for line in lines), default=0) for at in range(2)]
        for size, kind, place in lines:
            show(f"{size:>{widths[0]}}  {kind:<{widths[1]}}  {place}")
        show_problems(list(cleaned.problems))
        verb = "would be removed" if dry_run else "removed"
        say(f"{len(lines)} {verb}, {_render_size(cleaned.bytes)}" if lines else "there is nothing to remove")
    if cleaned.problems:
        stop(Exit.ENVIRONMENT)


def _render_size(size: int) -> str:
    amount, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"
