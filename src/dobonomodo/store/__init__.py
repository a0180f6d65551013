"""Metadata: definitions and their versions, the life of projects, periods, runs and leases."""

from dobonomodo.store.life import (
    LIVE,
    PERIOD_LIFE,
    PROJECT_LIFE,
    PeriodStatus,
    ProjectEvent,
    ProjectStatus,
    further,
)
from dobonomodo.store.opening import open_store
from dobonomodo.store.store import (
    PROJECT,
    Action,
    Activation,
    Change,
    Definition,
    Document,
    Held,
    Lease,
    PeriodRecord,
    Pin,
    Run,
    Store,
    Transition,
    Version,
)

__all__ = [
    "LIVE",
    "PERIOD_LIFE",
    "PROJECT",
    "PROJECT_LIFE",
    "Action",
    "Activation",
    "Change",
    "Definition",
    "Document",
    "Held",
    "Lease",
    "PeriodRecord",
    "PeriodStatus",
    "Pin",
    "ProjectEvent",
    "ProjectStatus",
    "Run",
    "Store",
    "Transition",
    "Version",
    "further",
    "open_store",
]
