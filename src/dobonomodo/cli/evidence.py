"""`dobo evidence`: one package for an auditor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dobonomodo.cli.arguments import RunId
from dobonomodo.cli.console import Json, in_folder, open_workspace, say, show, show_json, writing


def evidence(
    run_id: RunId,
    to: Annotated[Path, typer.Option("--to", "-o", metavar="FILE.zip", help="The file to write.")],
    as_json: Json = False,
) -> None:
    """Write all that proves a run into one file, with a program that checks it."""
    path = in_folder(to)
    with writing(path):
        found = open_workspace().write_evidence(run_id, path)
    if as_json:
        show_json("evidence", found)
        return
    show(str(found.path))
    say(f"fingerprint {found.fingerprint}: give it to somebody else to keep; check with `python {found.path}`")
