"""Database access of the store: one writer at a time, errors as problems.

Handles the differences between SQLite and PostgreSQL; independent of the tables.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Dialect, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, StatementError
from sqlalchemy.pool import NullPool

from dobonomodo.problems import InternalError, Rejected, RunFailed
from dobonomodo.problems.package import missing_package
from dobonomodo.problems.store import InvalidStoreUrl, StoreFault, StoreInvalid, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

WAIT_SECONDS = 30
"""How long a writer waits for the one before it."""

WAIT_VARIABLE = "DOBO_STORE_WAIT_SECONDS"
"""For tests: another time to wait."""

CONNECT_SECONDS = 10

SCHEMES = ("sqlite", "postgresql")

# SQLSTATE classes of errors after which the same call can succeed.
_PASSING_STATES = ("08", "40", "53", "55", "57", "58")

_WRITABLE = "give this user write permission for the file and its folder"
# The same for SQLite, by the beginning of the error's name, each with a remedy.
_PASSING_NAMES = {
    "SQLITE_BUSY": "another process writes to the store; try again when it is done",
    "SQLITE_LOCKED": "another process writes to the store; try again when it is done",
    "SQLITE_FULL": "free some space on the disk",
    "SQLITE_IOERR": None,
    "SQLITE_READONLY": _WRITABLE,
    "SQLITE_CANTOPEN": _WRITABLE,
    "SQLITE_PERM": _WRITABLE,
}
_COMPILED: dict[object, object] = {}
"""The statements of SQLite stores, compiled. There are as many as the store has methods."""

_FAULTS = {"SQLITE_CORRUPT": StoreFault.DAMAGED, "SQLITE_NOTADB": StoreFault.FOREIGN}


class Database:
    """An engine, and the two kinds of transaction there are. ``name`` is its address without a password."""

    path: Path | None = None
    """The file of SQLite."""

    def __init__(self, url: str, *, root: Path, password: str | None = None) -> None:
        self._secrets: tuple[str, ...] = ()
        scheme = _check_scheme(url)
        try:
            if scheme == "sqlite":
                self.path = path = root / _parse_path(url)
                self.name = f"sqlite:///{path}"
                path.parent.mkdir(parents=True, exist_ok=True)
                self._engine = _create_sqlite(path)
            else:
                bare, given = _parse_server(url)
                self._secrets = tuple(secret for secret in (password, *given) if secret)
                self.name = bare.set(query={}).render_as_string()
                self._engine = _create_postgresql(bare, password=next(iter(self._secrets), None))
        except OSError as error:
            raise self.unreachable(error) from error
        except ImportError as error:
            raise missing_package(["psycopg"]) from error

    def __repr__(self) -> str:
        return f"Database({self.name!r})"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads."""
        with self._translated(), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that may write: the only one of its kind in this store while it lasts.

        What it reads is therefore still valid when it writes, and no transaction has to be retried.
        """
        with (
            self._translated(),
            self._engine.connect().execution_options(writes=True) as connection,
            connection.begin(),
        ):
            if connection.dialect.name == "postgresql":
                connection.execute(text(f"SET LOCAL lock_timeout = '{int(_wait_seconds() * 1000)}ms'"))
                connection.execute(
                    text("SELECT pg_advisory_xact_lock(hashtext('dobonomodo'), hashtext(current_schema()))")
                )
            yield connection

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (IntegrityError, DataError) as error:
            raise InternalError(f"the store refused a record: {self._scrub(str(error.orig))}") from error
        except DBAPIError as error:
            raise self._explain(error) from error
        except StatementError as error:
            # A value was refused before it reached the database (tables.py).
            if error.orig is None:
                raise
            raise error.orig from None

    def invalid(self, fault: StoreFault, detail: str = "") -> RunFailed:
        """The database is not a store that can be used."""
        return RunFailed(StoreInvalid(store=self.name, fault=fault, detail=detail))

    def unreachable(self, error: OSError) -> RunFailed:
        """The file or its folder cannot be used."""
        obstructed = isinstance(error, NotADirectoryError | FileExistsError)
        reason = error.strerror or type(error).__name__
        remedy = f"`{error.filename}` prevents that: move it, or set `store` in `dobo.yaml` to another path"
        return self._unavailable(reason, is_transient=not obstructed, remedy=remedy if obstructed else _WRITABLE)

    def _explain(self, error: DBAPIError) -> RunFailed:
        reason, name = str(error.orig), getattr(error.orig, "sqlite_errorname", None)
        if name is None:
            state = getattr(error.orig, "sqlstate", None)
            # A server that cannot be reached gives no state.
            return self._unavailable(reason, is_transient=not state or str(state).startswith(_PASSING_STATES))
        if self.path is not None and self.path.is_dir():
            return self.invalid(StoreFault.FOLDER)
        for beginning, fault in _FAULTS.items():
            if name.startswith(beginning):
                return self.invalid(fault, reason)
        for beginning, remedy in _PASSING_NAMES.items():
            if name.startswith(beginning):
                return self._unavailable(reason, is_transient=True, remedy=remedy)
        return self._unavailable(reason)

    def _unavailable(self, reason: str, *, is_transient: bool = False, remedy: str | None = None) -> RunFailed:
        reason = " ".join(self._scrub(reason).split())
        return RunFailed(StoreUnavailable(store=self.name, reason=reason, remedy=remedy, is_transient=is_transient))

    def _scrub(self, reason: str) -> str:
        for secret in self._secrets:
            reason = reason.replace(secret, "***")
        return reason


def _wait_seconds() -> float:
    return float(os.environ.get(WAIT_VARIABLE, WAIT_SECONDS))


def _check_scheme(url: str) -> str:
    scheme, colon, _ = url.partition(":")
    if scheme not in SCHEMES:
        raise _invalid(scheme if colon else "", "is of an unknown kind", known=SCHEMES)
    return scheme


def _parse_path(url: str) -> Path:
    # Not by SQLAlchemy, whose versions differ in what a percent sign means in a path.
    _, slashes, path = url.partition("sqlite:///")
    if not slashes or "?" in path:
        raise _invalid("sqlite", "is not three slashes and a path")
    if path in ("", ":memory:"):
        raise _invalid("sqlite", "names no file")
    return Path(path)


def _parse_server(url: str) -> tuple[URL, tuple[str, ...]]:
    """The address without passwords, and the passwords."""
    if url.count("@") > 1:
        # The text after the first @ would be read as a host, and shown.
        raise _invalid("postgresql", "has more than one `@`: write `%40` for one inside a password")
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise _invalid("postgresql", "cannot be read") from error
    queried = parsed.query.get("password", ())
    secrets = (parsed.password or "", *((queried,) if isinstance(queried, str) else queried))
    return parsed.difference_update_query(["password"])._replace(password=None), secrets


def _invalid(scheme: str, reason: str, *, known: tuple[str, ...] = ()) -> Rejected:
    return Rejected([InvalidStoreUrl(scheme=scheme, reason=reason, known=known)])


def _create_sqlite(path: Path) -> Engine:
    # Connections are opened for each transaction: the file may be replaced, and processes may fork.
    dialect, timeout = _sqlite_dialect(), _wait_seconds()
    engine = Engine(
        NullPool(lambda: dialect.connect(str(path), timeout=timeout, isolation_level=None)),
        dialect,
        URL.create("sqlite", database=str(path)),
        hide_parameters=True,
        execution_options={"compiled_cache": _COMPILED},
    )
    event.listen(engine, "begin", _begin_sqlite)
    return engine


@cache
def _sqlite_dialect() -> Dialect:
    """One for all stores: what is compiled for one of them is compiled for all. It learns of SQLite when it first connects."""
    with create_engine("sqlite://", poolclass=NullPool).connect() as connection:
        return connection.dialect


def _begin_sqlite(connection: Connection) -> None:
    # The sqlite3 module begins transactions by rules of its own, which `isolation_level` has turned off.
    if not connection.get_execution_options().get("writes"):
        connection.exec_driver_sql("BEGIN")
        return
    # A commit of a rollback journal is durable only when its folder is synchronised too.
    connection.exec_driver_sql("PRAGMA synchronous = EXTRA")
    # Never WAL: SQLite below 3.51.3 can corrupt it, and a store in a shared folder meets programs of several ages.
    connection.exec_driver_sql("PRAGMA journal_mode = DELETE")
    # Taking the write lock at once means that what is read below cannot be overtaken.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _create_postgresql(url: URL, *, password: str | None) -> Engine:
    arguments: dict[str, Any] = {"connect_timeout": CONNECT_SECONDS} if "connect_timeout" not in url.query else {}
    if password is not None:
        arguments["password"] = password
    return create_engine(
        url.set(drivername="postgresql+psycopg"),
        # Each statement must see what was committed while it waited for the lock.
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,
        hide_parameters=True,
        connect_args=arguments,
    )
