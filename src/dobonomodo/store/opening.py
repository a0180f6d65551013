"""Opens a store by its address. SQLAlchemy takes half a second to import, so that waits until a store is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from dobonomodo.store.store import Store


def open_store(url: str, *, root: Path, password: str | None = None) -> Store:
    """The store at ``sqlite:///path`` (relative to ``root``) or ``postgresql://...``, created or upgraded if need be.

    ``password`` goes to PostgreSQL beside the address; without one, libpq finds it by its own rules.
    """
    from dobonomodo.store.database import Database
    from dobonomodo.store.format import create, migrate
    from dobonomodo.store.sql import SqlStore

    database = Database(url, root=root, password=password)
    try:
        create(database)
        migrate(database)
    except OSError as error:
        database.close()
        raise database.unreachable(error) from error
    except BaseException:
        database.close()
        raise
    return SqlStore(database)
