"""The workspace: what one can do with a folder of definitions. The only package that knows all concrete classes."""

from dobonomodo.workspace.workspace import (
    FILE,
    FOLDERS,
    KINDS,
    SUFFIXES,
    Applied,
    PlannedRun,
    SessionOptions,
    Workspace,
    find_root,
    load_recorded,
    now,
    require_runnable,
    who,
)

__all__ = [
    "FILE",
    "FOLDERS",
    "KINDS",
    "SUFFIXES",
    "Applied",
    "PlannedRun",
    "SessionOptions",
    "Workspace",
    "find_root",
    "load_recorded",
    "now",
    "require_runnable",
    "who",
]
