"""A store has an id, a lease a token and a count of renewals, a run the fencing number of its latest attempt."""

from __future__ import annotations

import uuid

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    store = op.create_table("dobo_store", sa.Column("id", sa.Text, primary_key=True))
    op.bulk_insert(store, [{"id": str(uuid.uuid4())}])
    op.add_column("dobo_run", sa.Column("fence", sa.Integer))
    # Whoever held a lease did so under a format that this program replaces; the numbers go on from where they were.
    op.rename_table("dobo_lease", "dobo_lease_before")
    op.create_table(
        "dobo_lease",
        sa.Column("project", sa.Text, primary_key=True),
        sa.Column("period", sa.Text, primary_key=True),
        sa.Column("fence", sa.Integer, nullable=False),
        sa.Column("token", sa.Text),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("renewals", sa.Integer, nullable=False),
        sa.Column("taken_at", sa.Text, nullable=False),
    )
    op.execute(
        "INSERT INTO dobo_lease (project, period, fence, holder, renewals, taken_at) "
        "SELECT project, period, fence, COALESCE(holder, 'nobody'), 0, taken_at FROM dobo_lease_before"
    )
    op.drop_table("dobo_lease_before")
