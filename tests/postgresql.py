"""A real PostgreSQL on loopback: found or installed from Debian, and started in a folder that goes away again."""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

USER = "tester"
PASSWORD = "open-sesame-7"

SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = '{folder}'
port = {port}
fsync = off
max_connections = 60
shared_buffers = 16MB
"""


class UnavailableError(Exception):
    """There is no PostgreSQL, and none can be had."""


@dataclass(frozen=True)
class Server:
    """A running server; ``fresh_database`` gives each test one of its own."""

    port: int
    folder: Path
    programs: Path
    _control: Sequence[str]
    _numbers: Iterator[int]

    @contextmanager
    def fresh_database(self) -> Iterator[str]:
        """The address of an empty database, which is gone afterwards: each takes room for its catalogue."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0", database="postgres")
        try:
            yield self.url(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)", database="postgres")

    def start(self) -> None:
        _run([*self._control, "--log", str(self.folder / "server.log"), "start"], folder=self.folder)

    def stop(self) -> None:
        """At once, as if its machine were switched off; who is connected finds out."""
        _run([*self._control, "--mode", "immediate", "stop"], folder=self.folder)

    def url(self, database: str, *, password: str = PASSWORD) -> str:
        return f"postgresql://{USER}:{password}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, *, database: str) -> None:
        arguments = ["-h", self.folder, "-p", self.port, "-U", USER, "-d", database, "-X", "-q", "-c", statement]
        _run([self.programs / "psql", *map(str, arguments)], folder=self.folder)


@pytest.fixture(scope="session")
def postgresql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    try:
        # Processes that share the tests share this folder; apt-get gives up where another one is at work.
        with (tmp_path_factory.getbasetemp().parent / "postgresql.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            programs = find_programs()
    except UnavailableError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no test of PostgreSQL: {error}")
    with running_server(programs) as server:
        yield server


@contextmanager
def running_server(programs: Path) -> Iterator[Server]:
    """A server with an empty cluster, without durability: it lives as long as the tests."""
    folder = Path(tempfile.mkdtemp(prefix="dobo-postgresql-"))
    data = folder / "data"
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, _owner())
        (folder / "password").write_text(PASSWORD)
        options = ["--username", USER, "--auth-local", "trust", "--auth-host", "scram-sha-256", "--encoding", "UTF8"]
        files = ["--pgdata", str(data), "--pwfile", str(folder / "password"), "--no-sync"]
        _run([programs / "initdb", *options, *files], folder=folder)
        port = _free_port()
        with (data / "postgresql.conf").open("a") as settings:
            settings.write(SETTINGS.format(folder=folder, port=port))
        control = [str(programs / "pg_ctl"), "--pgdata", str(data), "--silent", "--wait"]
        server = Server(port, folder, programs, control, count(1))
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def find_programs() -> Path:
    """Where PostgreSQL is; it is installed if it is nowhere."""
    return _find_programs() or _install()


def _find_programs() -> Path | None:
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    debian = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(debian, key=lambda path: int(path.parts[-3]), default=None)
    return newest.parent if newest else None


def _install() -> Path:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise UnavailableError("initdb is not on the path, and only root on Debian can install it")
    # Otherwise the package starts a cluster of its own on the usual port.
    options = Path("/etc/postgresql-common/createcluster.conf")
    options.parent.mkdir(exist_ok=True)
    options.write_text("create_main_cluster = false\n")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "UCF_FORCE_CONFFOLD": "1"}
    install = ["apt-get", "install", "-qq", "-y", "--no-install-recommends", "postgresql"]
    for command in (["apt-get", "update", "-qq"], install):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UnavailableError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    if programs := _find_programs():
        return programs
    raise UnavailableError("the package `postgresql` has no initdb")


def _owner() -> str:
    """PostgreSQL refuses to run as root."""
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _run(command: Sequence[str | Path], *, folder: Path) -> None:
    owner = _owner() if os.geteuid() == 0 else None
    done = subprocess.run(
        command, cwd=folder, user=owner, extra_groups=[] if owner else None, capture_output=True, text=True, check=False
    )
    if done.returncode:
        log = folder / "server.log"
        written = log.read_text() if log.exists() else ""
        raise RuntimeError(f"{Path(command[0]).name} failed: {done.stdout}{done.stderr}{written}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
