"""The schema version of a store and its migrations. Alembic is imported only if a migration is necessary."""

from __future__ import annotations

import os
import re
import secrets
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import inspect, text

from dobonomodo.problems import RunFailed
from dobonomodo.problems.store import StoreFault, StoreTooNew
from dobonomodo.store.database import Database
from dobonomodo.store.tables import METADATA

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Connection

FORMAT = "0004"
"""The newest revision in ``migrations/versions``."""

FORMAT_TABLE = "dobo_format"

MIGRATIONS = Path(__file__).parent / "migrations"

UNFINISHED = ".part"
"""The end of the name of a file that is to become a store."""

# Alembic keeps the running migration in a module, which all threads share.
_MIGRATING = threading.Lock()


def create(database: Database) -> None:
    """Make the file of a SQLite store, complete, where there is none; an empty file is therefore not a new store.

    A concurrent creator finds the file of the first.
    """
    path = database.path
    if path is None or path.is_dir():
        return
    if path.exists():
        if path.stat().st_size == 0:
            raise database.invalid(StoreFault.EMPTY)
        return
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(4)}{UNFINISHED}")
    try:
        with closing(Database(f"sqlite:///{unfinished}", root=path.parent)) as fresh:
            fresh.name = database.name
            migrate(fresh)
        _publish(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _publish(unfinished: Path, path: Path) -> None:
    try:
        os.link(unfinished, path)
    except FileExistsError:
        return
    except OSError:
        # A disk without hard links.
        if not path.exists():
            unfinished.replace(path)


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
    tables = inspect(connection).get_table_names()
    if FORMAT_TABLE not in tables:
        _require_own(tables, database)
        return False
    found = connection.scalar(text(f"SELECT version_num FROM {FORMAT_TABLE}"))
    if found is not None and found > FORMAT:
        raise RunFailed(StoreTooNew(store=database.name, found=found, known=FORMAT))
    if found is None or found < "0001" or not re.fullmatch(r"\d{4}", found):
        raise database.invalid(StoreFault.DAMAGED, f"its format is {found or 'not recorded'}")
    if found == FORMAT:
        _require_complete(tables, database)
    return bool(found >= to)


def _require_own(tables: Collection[str], database: Database) -> None:
    """Refuse to put a store into the file of another program; a schema of PostgreSQL may be shared."""
    if database.path is None:
        return
    for table in tables:
        if table in METADATA.tables:
            raise database.invalid(StoreFault.DAMAGED, "its format is not recorded")
        raise database.invalid(StoreFault.FOREIGN, f"it has a table `{table}`")


def _require_complete(tables: Collection[str], database: Database) -> None:
    if database.path is None:
        return
    missing = sorted(METADATA.tables.keys() - set(tables))
    if missing:
        raise database.invalid(StoreFault.DAMAGED, f"it has no table `{missing[0]}`")


def _upgrade(connection: Connection, to: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection, "version_table": FORMAT_TABLE})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    with _MIGRATING:
        command.upgrade(config, to)
