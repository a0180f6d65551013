"""`dobo apply`: record the definitions in the store, after showing what changes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from dobonomodo.cli.console import Exit, Json, open_workspace, say, show, show_json, show_problems, stop, usage_error

if TYPE_CHECKING:
    from dobonomodo.store import Change


def apply(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Record new versions of what changed; show the changes first."""
    from dobonomodo.workspace.lifecycle import Applied

    workspace = open_workspace()
    changes = [change for change in workspace.changes() if change.action != "unchanged"]
    if not changes:
        if as_json:
            show_json("apply", Applied(()))
        else:
            say("nothing has changed")
        return
    if not as_json:
        for change in changes:
            show(_render(change))
    if not yes and (as_json or not sys.stdin.isatty()):
        usage_error("nothing was recorded: add --yes in a non-interactive session")
    if not yes and not typer.confirm("Record this?", default=True, err=True):
        stop(Exit.FAILURE)
    applied = workspace.apply()
    if as_json:
        show_json("apply", applied)
        return
    say(f"recorded {len(changes)} change{'' if len(changes) == 1 else 's'}")
    for project, found in applied.conflicts.items():
        say(f"project {project} is now in conflict:")
        for each in found:
            used = ", ".join(f"{ref.seq} {ref.name}" for ref in each.operations)
            say(f"  column {each.column}: {each.change}; used by operation {used}")
        say(f"  activate an adapted version, or keep the pinned one: dobo activate {project} --keep-pin")
    show_problems([problem for problem in workspace.problems() if problem.severity == "warning"])


def _render(change: Change) -> str:
    definition = change.definition
    sign = {"created": "+", "changed": "~", "touched": "."}[change.action]
    head = f"{sign} {definition.kind} {definition.id}"
    if change.action == "created":
        return f"{head} v{change.version}"
    if change.action == "touched":
        return f"{head} v{change.version}: {', '.join(change.parts)} (in place)"
    return f"{head} v{change.before.version if change.before else 0} -> v{change.version}: {', '.join(change.parts)}"
