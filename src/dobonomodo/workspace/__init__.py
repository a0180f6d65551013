"""The workspace: what one can do with a folder of definitions. The only package that knows all concrete classes."""

from dobonomodo.workspace.files import FILE, FOLDERS, KINDS, SUFFIXES, find_root
from dobonomodo.workspace.lifecycle import Applied
from dobonomodo.workspace.periods import require_runnable
from dobonomodo.workspace.planning import PlannedRun
from dobonomodo.workspace.recorded import load_recorded
from dobonomodo.workspace.session import SessionOptions
from dobonomodo.workspace.stamp import now, who
from dobonomodo.workspace.workspace import Workspace

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
