"""Metadata: definitions and their versions, the life of projects, periods, runs and leases, and the history of it all."""

from dobonomodo.store.audit import Doubt, StoreAudit, audit_store
from dobonomodo.store.history import Entry, Event, Head, Kind, Subject, find_break
from dobonomodo.store.life import (
    LIVE,
    PERIOD_LIFE,
    PROJECT_LIFE,
    PeriodEvent,
    PeriodStatus,
    ProjectEvent,
    ProjectStatus,
)
from dobonomodo.store.opening import open_store
from dobonomodo.store.signoff import Approvals, SignOff
from dobonomodo.store.store import (
    PROJECT,
    Action,
    Activation,
    Change,
    Definition,
    Held,
    Lease,
    Override,
    PeriodRecord,
    Pin,
    Run,
    Store,
    Version,
)

__all__ = [
    "LIVE",
    "PERIOD_LIFE",
    "PROJECT",
    "PROJECT_LIFE",
    "Action",
    "Activation",
    "Approvals",
    "Change",
    "Definition",
    "Doubt",
    "Entry",
    "Event",
    "Head",
    "Held",
    "Kind",
    "Lease",
    "Override",
    "PeriodEvent",
    "PeriodRecord",
    "PeriodStatus",
    "Pin",
    "ProjectEvent",
    "ProjectStatus",
    "Run",
    "SignOff",
    "Store",
    "StoreAudit",
    "Subject",
    "Version",
    "audit_store",
    "find_break",
    "open_store",
]
