"""`dobo sign` and `dobo unsign`: sign something as it is now, or withdraw the sign-off."""

from __future__ import annotations

from typing import Annotated

import typer

from dobonomodo.cli.arguments import signables
from dobonomodo.cli.console import Json, open_workspace, say, show_json
from dobonomodo.cli.decisions import Reason

What = Annotated[
    str,
    typer.Argument(
        metavar="WHAT",
        help="A run, a version (PROJECT@v3), a period, or with --override PROJECT@PERIOD.",
        autocompletion=signables,
    ),
]
Override = Annotated[
    bool, typer.Option("--override", help="Approve that a project is run for a closed period (PROJECT@PERIOD).")
]


def sign(
    what: What,
    override: Override = False,
    comment: Annotated[str | None, typer.Option("--comment", metavar="TEXT", help="What was checked.")] = None,
    as_json: Json = False,
) -> None:
    """Sign a run, a version of a project or the results of a period, as they are now. A later run or version makes it void."""
    signed = open_workspace().sign(what, override=override, comment=comment)
    if as_json:
        show_json("sign", signed)
    else:
        say(f"{signed.by} has signed {signed.subject} (fingerprint {signed.fingerprint[:16]})")


def unsign(what: What, override: Override = False, reason: Reason = None, as_json: Json = False) -> None:
    """Withdraw your own sign-off."""
    withdrawn = open_workspace().unsign(what, override=override, reason=reason)
    if as_json:
        show_json("unsign", withdrawn)
    else:
        say(f"{withdrawn[0].by} has withdrawn the sign-off of {withdrawn[0].subject}")
