"""The format of a store: which one it has, and bringing it up to date. Alembic is imported only when there is work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import inspect, text

from dobonomodo.problems import RunFailed
from dobonomodo.problems.store import StoreTooNew

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from dobonomodo.store.database import Database

FORMAT = "0002"
"""The newest revision in ``migrations/versions``."""

FORMAT_TABLE = "dobo_format"

MIGRATIONS = Path(__file__).parent / "migrations"


def migrate(database: Database, *, to: str = FORMAT) -> None:
    """Create or upgrade a store, all or nothing; one of a newer format is refused and left as it is."""
    with database.reading() as connection:
        if _is_current(connection, database, to):
            return
    with database.writing() as connection:
        # Another process may have upgraded it in between, even beyond what this program knows.
        if not _is_current(connection, database, to):
            _upgrade(connection, to)


def _is_current(connection: Connection, database: Database, to: str) -> bool:
    if not inspect(connection).has_table(FORMAT_TABLE):
        return False
    found: str = connection.execute(text(f"SELECT version_num FROM {FORMAT_TABLE}")).scalar_one()
    if found > FORMAT:
        raise RunFailed(StoreTooNew(store=database.name, found=found, known=FORMAT))
    return found >= to


def _upgrade(connection: Connection, to: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection, "version_table": FORMAT_TABLE})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    command.upgrade(config, to)
