"""`dobo evidence`: one package for an auditor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dobonomodo.cli.arguments import RunId
from dobonomodo.cli.console import Json, in_folder, open_workspace, say, show, show_json, writing
from dobonomodo.cli.why import read_keys

if TYPE_CHECKING:
    from dobonomodo.workspace.cells import Cell


def evidence(
    run_id: RunId,
    to: Annotated[Path, typer.Option("--to", "-o", metavar="FILE.zip", help="The file to write.")],
    cell: Annotated[
        list[str] | None,
        typer.Option(
            "--cell",
            metavar="[TABLE:]COLUMN=VALUE,...",
            help="Explain the row with these values in the package; repeatable.",
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option("--sample", min=0, help="How many rows of each output are explained; the default is 3."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the evidence of a run to one ZIP file, with a program that verifies it."""
    path = in_folder(to)
    with writing(path):
        found = open_workspace().write_evidence(run_id, path, cells=[*map(_read_cell, cell or ())], sample=sample)
    if as_json:
        show_json("evidence", found)
        return
    show(str(found.path))
    say(f"fingerprint {found.fingerprint}: give it to somebody else to keep; check with `python {found.path}`")


def _read_cell(text: str) -> Cell:
    """`TABLE:COLUMN=VALUE,...`; the name of a table may be left out."""
    from dobonomodo.workspace.cells import Cell

    table, colon, key = text.partition(":")
    if not colon or "=" in table:
        table, key = "", text
    return Cell(read_keys([key]), table or None)
