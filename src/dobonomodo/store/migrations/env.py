"""Run by Alembic for each upgrade, on the connection and inside the transaction of ``format.py``."""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table=context.config.attributes["version_table"],
)
with context.begin_transaction():
    context.run_migrations()
