"""Runs and leases."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "dobo_run",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("project", sa.Text, nullable=False),
        sa.Column("version", sa.Integer),
        sa.Column("period", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("updated_at", sa.Text, nullable=False),
        sa.Column("snapshot", sa.Text, nullable=False),
        sa.Column("progress", sa.Text, nullable=False),
    )
    op.create_index("dobo_run_latest", "dobo_run", ["created_at"])
    op.create_table(
        "dobo_lease",
        sa.Column("project", sa.Text, primary_key=True),
        sa.Column("period", sa.Text, primary_key=True),
        sa.Column("fence", sa.Integer, nullable=False),
        sa.Column("holder", sa.Text),
        sa.Column("taken_at", sa.Text, nullable=False),
        sa.Column("expires_at", sa.Text, nullable=False),
    )
