"""The history of a workspace, of a project or of a period."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dobonomodo.problems import Rejected
from dobonomodo.problems.workspace import NotDefined
from dobonomodo.workspace.arguments import read_text

if TYPE_CHECKING:
    from dobonomodo.store import Entry
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.periods import Periods
    from dobonomodo.workspace.stores import Stores


def list_history(
    files: Files, stores: Stores, periods: Periods, *, name: str | None, limit: int | None
) -> tuple[Entry, ...]:
    """What happened, oldest first; a name that no project and no period has or had is refused."""
    store = stores.find_main()
    if name is None:
        return store.list_history(limit=limit) if store is not None else ()
    read_text("name", name, accepted="the id of a project or a period as text")
    if store is not None:
        found = store.list_history(project=name, limit=limit) or store.list_history(period=name, limit=limit)
        if found:
            return found
    if name in files.definitions.projects or periods.has(name):
        return ()
    known = (*files.definitions.projects, *periods.identifiers())
    raise Rejected([NotDefined(kind="project or period", id=name, known=known)])
