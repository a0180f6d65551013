"""Renders history entries and sign-offs as text. Used by several commands."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dobonomodo.runs import RunView
    from dobonomodo.runs.control import Signed
    from dobonomodo.store import Entry

Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why; it is recorded in the history.")]


def moment(at: datetime) -> str:
    """A time as people read it; all are UTC."""
    return f"{at:%Y-%m-%d %H:%M}"


def render_history(entries: Iterable[Entry]) -> list[tuple[str, ...]]:
    """A line for each entry, below their head."""
    return [
        ("WHEN (UTC)", "WHO", "WHAT", "OF", "WHY"),
        *((moment(each.at), each.by, describe_event(each), str(each.subject), _why(each)) for each in entries),
    ]


def describe_event(entry: Entry) -> str:
    """What happened, with the status before and after where there is one."""
    if entry.event == "apply":
        return f"apply ({(entry.detail or {}).get('action', '')})"
    if entry.subject.kind != "run" and entry.before and entry.after and entry.before != entry.after:
        return f"{entry.event} ({entry.before} -> {entry.after})"
    return entry.event


def _why(entry: Entry) -> str:
    approved = (entry.detail or {}).get("approved_by", ())
    words = [entry.reason] if entry.reason else []
    return "; ".join([*words, f"approved by {', '.join(approved)}"] if approved else words)


def render_signed(signed: Iterable[Signed]) -> list[str]:
    """A line for each sign-off; one that does not count any more says why."""
    lines = []
    for each in signed:
        comment = f": {each.comment}" if each.comment else ""
        void = f" (void: {each.void})" if each.void else ""
        lines.append(f"signed by {each.by}, {moment(each.at)} UTC{comment}{void}")
    return lines


def describe_decisions(view: RunView) -> list[str]:
    """What people decided about a run."""
    override = view.override
    if override is None:
        return render_signed(view.signed)
    approved = f" (approved by {', '.join(override.approved_by)})" if override.approved_by else ""
    return [f"closed period overridden by {override.by}: {override.reason}{approved}", *render_signed(view.signed)]
