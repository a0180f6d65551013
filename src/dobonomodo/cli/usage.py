"""Explains usage errors of commands: the option that was meant, and the valid choices."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from dobonomodo.cli.console import Settings, open_workspace, terminal_width
from dobonomodo.problems.problem import listed, nearest
from dobonomodo.problems.render import INDENT, fold_words

if TYPE_CHECKING:
    from typer.exceptions import TyperException

    from dobonomodo.workspace import Workspace

_MEANT: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("--month", "--months", "--quarter", "--year", "--periods", "--for"), ("--period", "--level")),
    **dict.fromkeys(("--date", "--day", "--asof", "--valid-on"), ("--as-of",)),
    **dict.fromkeys(("--clock", "--now", "--time", "--at"), ("--started-at",)),
    **dict.fromkeys(("--force", "--override", "--closed"), ("--override-closed", "--yes", "--replay")),
    **dict.fromkeys(("--dir", "--directory", "--folder", "--workspace", "--cwd", "--root"), ("-C",)),
    **dict.fromkeys(("--environment", "--profile", "--stage"), ("--env",)),
    **dict.fromkeys(("--format", "-f", "--out"), ("--output-format", "--output", "--json")),
    **dict.fromkeys(("--conf", "--config", "--set"), ("--spark-conf",)),
    **dict.fromkeys(("--check", "--dryrun", "--plan", "-n"), ("--dry-run",)),
    **dict.fromkeys(("--limit", "--head", "--top"), ("--rows", "--limit")),
    **dict.fromkeys(("--columns", "-c"), ("--column",)),
}
"""Options that people try, and those they may mean, the first that the command has."""


def explain_usage(error: TyperException) -> str:
    """The message, a remedy where there is one, and the command that shows more."""
    message = error.format_message()
    if message.startswith("Usage:"):
        if not Settings.as_json:
            return message
        message = "Missing command."
    context: Any = getattr(error, "ctx", None)
    path = context.command_path if context is not None else f"dobo {Settings.command}".removesuffix(" dobo")
    lines = [message]
    if context is not None and getattr(error, "possibilities", False) is not False:
        lines = _explain_option(getattr(error, "option_name", ""), context)
    elif context is not None and type(error).__name__ == "MissingParameter":
        lines = _explain_missing(getattr(error, "param", None), context)
    return "\n".join([*lines, f"Try: {path} --help"])


def join_help(lines: Iterable[str]) -> str | None:
    """The lines behind a message as one, without the layout for people."""
    parts: list[str] = []
    for line in lines:
        if parts and line.startswith(" " * INDENT):
            parts[-1] += f" {line.strip()}"
        else:
            parts.append(line.strip().removeprefix("help: "))
    return "; ".join(parts) or None


def _explain_option(name: str, context: Any) -> list[str]:
    known = [each for parameter in context.command.params for each in getattr(parameter, "opts", ()) if each[0] == "-"]
    tried = (nearest(name, [*known, *_MEANT]) if name.startswith("--") else None) or name
    meant = tried if tried in known else next((each for each in _MEANT.get(tried, ()) if each in known), None)
    lines = [f"`{context.command_path}` has no option `{name}`"]
    return [*lines, *_help(f"did you mean `{meant}`?")] if meant else lines


def _explain_missing(parameter: Any, context: Any) -> list[str]:
    """What is missing, and what there is."""
    name = getattr(parameter, "name", None) or ""
    shown = parameter.opts[0] if name == "period" else name.replace("_id", "").upper()
    lines = [f"`{context.command_path}` needs {f'`{shown}`' if name == 'period' else shown}"]
    found = _find_known(name)
    if found:
        lines += _help(f"there is {listed(found)}")
    if name == "period" and found:
        lines.append(f"   such as: {context.command_path} {_given(context)}--period {found[0]}")
    return lines


def _help(text: str) -> list[str]:
    start = "   help: "
    first, *more = fold_words(text, terminal_width(sys.stderr), indent=INDENT, start=len(start))
    return [start + first, *(" " * INDENT + line for line in more)]


def _given(context: Any) -> str:
    project = context.params.get("project")
    return f"{project} " if project else ""


def _find_known(name: str) -> list[str]:
    """The ids of a kind in the workspace; empty if there is no workspace, which another command reports."""
    from dobonomodo.cli.ls import Kind
    from dobonomodo.problems import Rejected, RunFailed

    if name == "kind":
        return [kind.value for kind in Kind]
    find = _FINDERS.get(name)
    if find is None:
        return []
    try:
        return list(find(open_workspace()))
    except (Rejected, RunFailed, OSError, ImportError):
        return []


def _open_periods(workspace: Workspace) -> Iterable[str]:
    periods = [each for _, schedule in workspace.schedules() for each in schedule.finest_first()]
    return dict.fromkeys(each.identifier for each in periods if each.status == "open")


_FINDERS: dict[str, Callable[[Workspace], Iterable[str]]] = {
    "project": lambda workspace: (row.id for row in workspace.listing("project")),
    "name": lambda workspace: (row.id for kind in ("project", "dataset") for row in workspace.listing(kind)),
    "period": _open_periods,
    "identifier": _open_periods,
    "run_id": lambda workspace: (
        f"{view.id} ({view.project}, {view.period}, {view.status})" for view in workspace.runs(limit=5)
    ),
}
