"""The system columns: one table that defines what each is and who may change it (semantics, Part 3)."""

from __future__ import annotations

from dobonomodo.formula.scope import MAKER
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, Type

ROW_ID = "_row_id"
DELETED = "_deleted"
CREATED_AT = "_created_at"
UPDATED_AT = "_updated_at"
SOURCE_DATASET = "_source_dataset_id"
SOURCE_TABLE = "_source_table"
OPERATION_SEQ = MAKER
LABELS = "_labels"
PERIOD = "_period"
PERIOD_FROM = "_period_from"
PERIOD_TO = "_period_to"
RUN_PERIOD = "_run_period"

PLACE = " place"
"""A hidden column, not part of the working dataset: the position of a row in its source. It does not depend on the clock."""

ALWAYS: dict[str, Type] = {
    ROW_ID: TEXT,
    DELETED: BOOLEAN,
    CREATED_AT: TIMESTAMP,
    UPDATED_AT: TIMESTAMP,
    SOURCE_DATASET: TEXT,
    SOURCE_TABLE: TEXT,
    OPERATION_SEQ: INTEGER,
    LABELS: TEXT,
}
"""On every row of a working dataset."""

TEMPORAL: dict[str | None, dict[str, Type]] = {
    "period": {PERIOD: TEXT},
    "bitemporal": {PERIOD_FROM: DATE, PERIOD_TO: DATE},
    "snapshot": {},
    None: {},
}
"""Added by the temporal mode of the main table."""

VALIDITY = ((PERIOD_FROM, PERIOD_TO), ("valid_from", "valid_to"))
"""The columns between whose days a bitemporal row is valid; the first pair that is stored counts (C-57)."""

SYNONYMS = {"_modified_at": UPDATED_AT, "_source_dataset": SOURCE_DATASET}

RESERVED = frozenset(
    {
        *ALWAYS,
        *SYNONYMS,
        PERIOD,
        PERIOD_FROM,
        PERIOD_TO,
        RUN_PERIOD,
        "_created_by_project_id",
        "_created_by_run_id",
        "_valid_from",
        "_valid_to",
    }
)

ASSIGNABLE = frozenset({LABELS})
GROUPABLE = frozenset({PERIOD, PERIOD_FROM, PERIOD_TO})


def is_system(name: str) -> bool:
    """Whether a column is the system's, in any case."""
    return name.casefold() in RESERVED


_SETTLED = frozenset({DELETED, LABELS, PERIOD, PERIOD_FROM, PERIOD_TO})
"""The system columns that follow from definitions and inputs alone."""


def is_comparable(name: str) -> bool:
    """Whether values of a column can be compared between runs: ids, times and sources differ between any two."""
    return not is_system(name) or name in _SETTLED


def system_columns(temporal_mode: str | None) -> dict[str, Type]:
    """The system columns of a working dataset whose main table has this temporal mode."""
    return {**ALWAYS, **TEMPORAL[temporal_mode]}
