"""Period calculations as data: read, checked and planned before Spark is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from dobonomodo.problems import Problem, Rejected, RunFailed
    from dobonomodo.runs import RunView
    from dobonomodo.workspace import Workspace

__version__ = "0.1.0"

__all__ = ["Problem", "Rejected", "RunFailed", "RunView", "Workspace", "open"]

_HOMES = {
    "Problem": "dobonomodo.problems",
    "Rejected": "dobonomodo.problems",
    "RunFailed": "dobonomodo.problems",
    "RunView": "dobonomodo.runs",
    "Workspace": "dobonomodo.workspace",
}


def open(folder: str | Path = ".", *, environment: str | None = None) -> Workspace:  # noqa: A001  as interfaces name it
    """The workspace at a folder or around it."""
    from dobonomodo.workspace import Workspace

    return Workspace.open(folder, environment=environment)


def __getattr__(name: str) -> Any:
    """Public names are loaded when they are used, so that importing the package costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module `dobonomodo` has no attribute `{name}`")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
