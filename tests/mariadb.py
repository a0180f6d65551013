"""A real MariaDB on loopback, if it is installed: started in a folder that goes away again."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pymysql.connections import Connection

USER = "tester"
PASSWORD = "open sesame@/7%"


@dataclass(frozen=True)
class MariaDb:
    """A running server; ``fresh_database`` gives each test one of its own."""

    port: int
    _numbers: Iterator[int]

    def fresh_database(self) -> str:
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_german2_ci")
        return name

    def url(self, database: str) -> str:
        return f"mysql+pymysql://{USER}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str | None = None) -> Connection:
        import pymysql

        own = {"host": "127.0.0.1", "port": self.port, "user": USER, "password": PASSWORD, "autocommit": True}
        return pymysql.connect(**own, database=database)

    def execute(self, *statements: str, database: str | None = None) -> None:
        with closing(self.connect(database)) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDb]:
    if (server := _find("mariadbd")) is None or (install := _find("mariadb-install-db")) is None:
        pytest.skip(
            "no test of MariaDB: `mariadbd` is not on the path; on Debian `apt-get install mariadb-server` brings it"
        )
    with running_mariadb(server, install) as running:
        yield running


@contextmanager
def running_mariadb(server: Path, install: Path) -> Iterator[MariaDb]:
    """A server with an empty cluster, without durability: it lives as long as the tests."""
    folder = Path(tempfile.mkdtemp(prefix="dobo-mariadb-"))
    owner = _owner() if os.geteuid() == 0 else None
    try:
        if owner is not None:
            shutil.chown(folder, owner)
        files = [f"--datadir={folder / 'data'}", "--skip-name-resolve"]
        made = [str(install), "--no-defaults", *files, "--auth-root-authentication-method=normal"]
        subprocess.run(made, cwd=folder, user=owner, capture_output=True, check=True)
        grant = folder / "grant.sql"
        grant.write_text(f"CREATE USER {USER} IDENTIFIED BY '{PASSWORD}';\nGRANT ALL ON *.* TO {USER};\n")
        grant.chmod(0o644)
        port = _free_port()
        address = ["--bind-address=127.0.0.1", f"--port={port}", f"--socket={folder / 'socket'}"]
        settings = [f"--init-file={grant}", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M"]
        with (folder / "server.log").open("wb") as log:
            process = subprocess.Popen(
                [str(server), "--no-defaults", *files, *address, *settings],
                cwd=folder,
                user=owner,
                stdout=log,
                stderr=log,
            )
        try:
            yield _wait(MariaDb(port, count(1)), process, folder / "server.log")
        finally:
            process.terminate()
            process.wait(60)
    finally:
        shutil.rmtree(folder)


def _wait(server: MariaDb, process: subprocess.Popen[bytes], log: Path) -> MariaDb:
    import pymysql

    for _ in range(600):
        try:
            server.execute("SELECT 1")
            return server
        except pymysql.Error:
            if process.poll() is not None:
                break
            time.sleep(0.1)
    raise RuntimeError(f"MariaDB does not start: {log.read_text()}")


def _find(program: str) -> Path | None:
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    return Path(found) if found else None


def _owner() -> str:
    """MariaDB refuses to run as root."""
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "mysql" if "mysql" in known else "nobody"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
