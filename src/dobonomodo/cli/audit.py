"""`dobo audit`: proves that history, records and outputs are unchanged."""

from __future__ import annotations

import typer

from dobonomodo.cli.console import Exit, Json, open_workspace, say, show, show_json, show_problems, stop
from dobonomodo.cli.table import show_lines

audit = typer.Typer(help="Check that history, records and outputs are unchanged.", no_args_is_help=True)

_SHOWN = 10


@audit.callback()
def _group() -> None:
    """Check that history, records and outputs are unchanged."""


@audit.command("verify")
def verify(as_json: Json = False) -> None:
    """Check the history, every record and the SHA-256 of every output. Needs no Spark."""
    found = open_workspace().audit(report=lambda _: None)
    if as_json:
        show_json("audit", found, problems=found.problems, ok=not found.problems)
    else:
        show_lines(
            [
                ("CHECKED", "NUMBER"),
                ("entries of the history", f"{found.entries:,}"),
                ("versions of definitions", f"{found.versions:,}"),
                ("statuses of periods", f"{found.periods:,}"),
                ("runs", f"{found.runs:,}"),
                ("outputs", f"{found.outputs:,}"),
                ("files and manifests with the recorded SHA-256", f"{found.files:,}"),
                ("notes of the history at destinations", f"{found.heads:,}"),
            ]
        )
        for each in found.unproved[:_SHOWN]:
            show(f"not proved: {each}")
        if len(found.unproved) > _SHOWN:
            show(f"not proved: {len(found.unproved) - _SHOWN} more")
        show_problems(list(found.problems))
        if not found.problems:
            say("everything is what it was")
    if found.problems:
        stop(Exit.FAILURE)
