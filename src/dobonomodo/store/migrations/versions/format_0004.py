"""The history is a chain of hashes over all that happens; what was recorded before is its beginning."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

from dobonomodo.model.plain import hash_document

revision = "0004"
down_revision = "0003"

_PERIOD_EVENTS = {"closed": "close", "locked": "lock"}


def upgrade() -> None:
    connection = op.get_bind()
    before = connection.execute(sa.text("SELECT * FROM dobo_history ORDER BY number")).mappings().all()
    previous = connection.execute(sa.text("SELECT id FROM dobo_store")).scalar_one()
    op.drop_table("dobo_history")
    history = op.create_table(
        "dobo_history",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("event", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("version", sa.Integer),
        sa.Column("calendar", sa.Text),
        sa.Column("project", sa.Text),
        sa.Column("period", sa.Text),
        sa.Column("before", sa.Text),
        sa.Column("after", sa.Text),
        sa.Column("reason", sa.Text),
        sa.Column("detail", sa.Text),
        sa.Column("previous", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
    )
    op.create_index("dobo_history_kind", "dobo_history", ["kind", "event"])
    op.create_index("dobo_history_project", "dobo_history", ["project"])
    op.create_index("dobo_history_period", "dobo_history", ["period"])
    for number, row in enumerate(before, start=1):
        fields = {**_convert(row), "number": number, "previous": previous}
        hashed = {
            "at": row["at"].replace("+00:00", "Z"),
            "detail": json.loads(row["detail"]) if row["detail"] else None,
        }
        previous = hash_document({**fields, **hashed})
        op.bulk_insert(history, [{**fields, "hash": previous}])


def _convert(row: Any) -> dict[str, object]:
    """An entry of the old history: of a project with its version in `item`, or of a calendar with the period there."""
    is_project = row["subject"] == "project"
    return {
        "at": row["at"],
        "by": row["by"],
        "event": row["event"] if is_project else _PERIOD_EVENTS.get(row["event"], row["event"]),
        "kind": row["subject"],
        "id": row["id"] if is_project else row["item"],
        "version": int(row["item"]) if is_project else None,
        "calendar": None if is_project else row["id"],
        "project": row["id"] if is_project else None,
        "period": None if is_project else row["item"],
        "before": row["before"],
        "after": row["after"],
        "reason": None,
        "detail": row["detail"],
    }
