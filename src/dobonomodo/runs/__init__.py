"""The life of a run: its states, its snapshot, how it is executed and resumed, and the report about it. No Spark here."""

from dobonomodo.runs.record import Output, RunView, view_run
from dobonomodo.runs.runner import Data, Engine, Listener, Quiet, Runner
from dobonomodo.runs.snapshot import RunSpec, restore_snapshot, take_snapshot
from dobonomodo.runs.state import RUN_LIFE, RunEvent, RunStatus, next_run_status

__all__ = [
    "RUN_LIFE",
    "Data",
    "Engine",
    "Listener",
    "Output",
    "Quiet",
    "RunEvent",
    "RunSpec",
    "RunStatus",
    "RunView",
    "Runner",
    "next_run_status",
    "restore_snapshot",
    "take_snapshot",
    "view_run",
]
