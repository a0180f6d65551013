"""Definitions with their versions, the life of projects, periods."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "dobo_version",
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("text", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("updated_at", sa.Text, nullable=False),
        sa.Column("updated_by", sa.Text, nullable=False),
        sa.Column("pinned_dataset", sa.Text),
        sa.Column("pinned_version", sa.Integer),
        sa.Column("activated_at", sa.Text),
        sa.Column("activated_by", sa.Text),
        sa.Column("conflict", sa.Text),
        sa.Column("location", sa.Text),
        sa.Column("origin", sa.Text),
    )
    live = sa.text("kind = 'project' AND status IN ('active', 'conflict')")
    op.create_index("dobo_version_live", "dobo_version", ["id"], unique=True, sqlite_where=live, postgresql_where=live)
    op.create_index("dobo_version_origin", "dobo_version", ["kind", "id", "origin"], unique=True)
    op.create_table(
        "dobo_history",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("item", sa.Text, nullable=False),
        sa.Column("event", sa.Text, nullable=False),
        sa.Column("before", sa.Text, nullable=False),
        sa.Column("after", sa.Text, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("detail", sa.Text),
    )
    op.create_index("dobo_history_of", "dobo_history", ["subject", "id"])
    op.create_table(
        "dobo_period",
        sa.Column("calendar", sa.Text, primary_key=True),
        sa.Column("identifier", sa.Text, primary_key=True),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("changed_at", sa.Text, nullable=False),
        sa.Column("changed_by", sa.Text, nullable=False),
    )
