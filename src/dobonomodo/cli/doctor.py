"""`dobo doctor`: checks the prerequisites of a run. Works without a workspace, without PySpark and without Java."""

from __future__ import annotations

import re
import secrets
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dobonomodo.cli.console import Exit, Json, Settings, colored, open_workspace, show, show_json, stop

if TYPE_CHECKING:
    from dobonomodo.model import DataSource
    from dobonomodo.storage import Storage
    from dobonomodo.workspace import Workspace

Status = Literal["ok", "warning", "failed"]

OLDEST_PYTHON = (3, 11)
OLDEST_SQLITE = (3, 35)
ROOM_TO_WORK = 5 * 2**30
ROOM_AT_LEAST = 2**30
DRIVERS = {"psycopg": "psycopg", "adbc-driver-postgresql": "adbc_driver_postgresql"}
"""The packages that PostgreSQL needs, with the modules that they bring."""
COLORS = {"ok": "32", "warning": "33", "failed": "31"}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check. A failed check has a remedy: what to do."""

    check: str
    status: Status
    detail: str
    remedy: str | None = None

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return asdict(self)


def doctor(as_json: Json = False) -> None:
    """Check Python, Java, Spark, disk, store, drivers and secrets; show how to fix what is missing."""
    findings = []
    for finding in examine():
        findings.append(finding)
        if not as_json:
            _show(finding)
    failed = [finding for finding in findings if finding.status == "failed"]
    if as_json:
        show_json("doctor", findings, ok=not failed)
    elif failed:
        show(f"\n{len(failed)} of {len(findings)} checks failed")
    else:
        show("\nready to run")
    if failed:
        stop(Exit.ENVIRONMENT)


def examine() -> Iterator[Finding]:
    """All checks, one after the other."""
    yield _check_python()
    workspace, around = _find_workspace()
    remote = workspace.settings.spark.remote if workspace is not None else None
    yield _check_java(remote)
    yield _check_package("PySpark", "pyspark", extra="connect" if remote else "spark")
    yield _check_package("PyArrow", "pyarrow", extra="spark")
    yield _check_sqlite()
    yield _check_room("temporary files", Path(tempfile.gettempdir()))
    yield around
    if workspace is not None:
        yield from _check_workspace(workspace)


# --- the machine


def _check_python() -> Finding:
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info[:2] < OLDEST_PYTHON:
        needed = ".".join(str(part) for part in OLDEST_PYTHON)
        return Finding("Python", "failed", version, f"install Python {needed} or newer")
    return Finding("Python", "ok", f"{version} at {sys.executable}")


def _check_java(remote: str | None) -> Finding:
    from dobonomodo.engine import require_java
    from dobonomodo.problems import RunFailed

    try:
        java = require_java()
    except RunFailed as failed:
        if remote is not None:
            return Finding("Java", "ok", "none, and none is needed: Spark runs on a server")
        return Finding("Java", "failed", failed.problem.message(), failed.problem.hint())
    return Finding("Java", "ok", f"{java.version}, found by {java.origin}")


def _check_package(check: str, package: str, *, extra: str) -> Finding:
    wanted = _wanted_version(package)
    remedy = f"pip install 'dobonomodo[{extra}]'"
    try:
        version = metadata.version(package)
    except metadata.PackageNotFoundError:
        return Finding(check, "failed", "not installed", remedy)
    if not _fits(version, wanted):
        return Finding(check, "failed", f"{version}, needed is {wanted}", remedy)
    return Finding(check, "ok", version)


def _wanted_version(package: str) -> str:
    """The range of versions that our own package requires, such as ``<4.4,>=4.1``."""
    try:
        requirements = metadata.requires("dobonomodo") or ()
    except metadata.PackageNotFoundError:
        return ""
    for requirement in requirements:
        name, wanted = re.fullmatch(r"([\w.-]+)(?:\[[^]]*\])?([^;]*).*", requirement, re.DOTALL).groups()  # type: ignore[union-attr]
        if name.lower() == package:
            return str(wanted).strip()
    return ""


def _fits(version: str, wanted: str) -> bool:
    """Whether a version is between the bounds; numbers only, which is all that our bounds have."""
    found = _numbers(version)
    bounds = re.findall(r"(>=|<)\s*([\d.]+)", wanted)
    return all(found >= _numbers(bound) if sign == ">=" else found < _numbers(bound) for sign, bound in bounds)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", re.split(r"[^\d.]", version)[0]))


def _check_sqlite() -> Finding:
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        needed = ".".join(str(part) for part in OLDEST_SQLITE)
        return Finding(
            "SQLite", "warning", version, f"use a Python with SQLite {needed} or newer, or a PostgreSQL store"
        )
    return Finding("SQLite", "ok", version)


def _check_room(what: str, folder: Path) -> Finding:
    check = f"disk, {what}"
    free = shutil.disk_usage(folder).free
    detail = f"{free / 2**30:.1f} GB free at {folder}"
    if free >= ROOM_TO_WORK:
        return Finding(check, "ok", detail)
    remedy = f"free some disk space; a run needs about three times the size of its inputs, and {ROOM_TO_WORK >> 30} GB are safe"
    return Finding(check, "warning" if free >= ROOM_AT_LEAST else "failed", detail, remedy)


# --- the workspace


def _find_workspace() -> tuple[Workspace | None, Finding]:
    from dobonomodo.problems import Rejected

    check = "workspace"
    try:
        workspace = open_workspace()
    except Rejected as rejected:
        problem = rejected.problems[0]
        if problem.code == "WORKSPACE_NOT_FOUND":
            return None, Finding(check, "ok", f"none at or above {Path(Settings.folder or '.').resolve()}")
        return None, Finding(check, "failed", problem.message(), problem.hint() or "dobo validate")
    errors = [problem for problem in workspace.problems() if problem.severity == "error"]
    if errors:
        detail = f"{workspace.root} has {len(errors)} error{'' if len(errors) == 1 else 's'}"
        return workspace, Finding(check, "warning", detail, "dobo validate")
    return workspace, Finding(check, "ok", str(workspace.root))


def _check_workspace(workspace: Workspace) -> Iterator[Finding]:
    from dobonomodo.storage import Storages

    yield _check_room("workspace", workspace.root)
    yield _check_writing(workspace.root)
    yield from _guarded("store", lambda: _check_store(workspace))
    yield from _guarded("scratch", lambda: _check_scratch(workspace.settings.scratch))
    used = [source for source in workspace.definitions.datasources.values() if source.status == "active"]
    storages = Storages(workspace.root, workspace.definitions.datasources)
    needed = {module for source in used for module in storages.open(source).modules}
    missing: set[str] = set()
    if needed & set(DRIVERS.values()) or workspace.settings.store.startswith("postgresql"):
        for package, module in DRIVERS.items():
            finding = _check_package(f"driver {package}", package, extra="postgresql")
            missing |= {module} if finding.status == "failed" else set()
            yield finding
    for source in used:
        found = True
        if source.credential_ref is not None:
            secret = _check_secret(source, workspace.root)
            found = secret.status == "ok"
            yield secret
        storage = storages.open(source)
        if found and not missing & set(storage.modules):
            check = f"{source.type} {source.id}"
            yield from _guarded(check, partial(_check_server, storage, check))


def _check_writing(root: Path) -> Finding:
    own = root / ".dobo"
    folder = own if own.is_dir() else root
    try:
        with tempfile.TemporaryFile(dir=folder):
            return Finding("permission", "ok", f"{folder} can be written to")
    except OSError as fault:
        detail = f"{folder} cannot be written to: {fault.strerror}"
        return Finding(
            "permission", "failed", detail, f"give this user write permission for {folder}, or use another folder"
        )


def _check_store(workspace: Workspace) -> Finding:
    workspace.require_settings()
    url = workspace.settings.store
    path = url.removeprefix("sqlite:///")
    if path != url and not (workspace.root / path).exists():
        return Finding("store", "ok", f"{path} is created by the first run")
    store = workspace.store
    count = len(store.list_definitions("project"))
    return Finding(
        "store", "ok", f"{path if path != url else 'PostgreSQL'}, {count} project{'' if count == 1 else 's'}"
    )


def _check_scratch(scratch: str | None) -> Finding | None:
    """Whether this machine can write to an object store and remove from it, where it exchanges files with Spark there."""
    from dobonomodo.problems.package import require_modules
    from dobonomodo.storage.address import is_address
    from dobonomodo.storage.transport import PROBE, Transport, modules_of

    if scratch is None or not is_address(scratch):
        return None
    require_modules(modules_of(scratch))
    try:
        probe = Transport.of(scratch).below(f"{PROBE}{secrets.token_hex(4)}")
    except ValueError as fault:
        return Finding("scratch", "failed", f"{scratch} is not {fault}", "run `dobo validate`")
    probe.note("here", "")
    probe.remove()
    return Finding("scratch", "ok", f"{scratch} can be written to; the first run tries whether Spark can, too")


def _check_secret(source: DataSource, root: Path) -> Finding:
    from dobonomodo.problems import Rejected
    from dobonomodo.storage.secret import find_secret

    check = f"secret of {source.id}"
    try:
        find_secret(source.credential_ref, root=root, owner=f"datasource `{source.id}`")
    except Rejected as rejected:
        problem = rejected.problems[0]
        return Finding(check, "failed", problem.message(), problem.hint())
    return Finding(check, "ok", f"{source.credential_ref} is set")


def _check_server(storage: Storage, check: str) -> Finding | None:
    answer = storage.call()
    if answer is None or answer.works:
        return Finding(check, "ok", answer.detail) if answer is not None else None
    remedy = "check that the server is running, that its address is correct and that the user may connect"
    return Finding(check, "failed", answer.detail, remedy)


def _guarded(check: str, find: Callable[[], Finding | None]) -> Iterator[Finding]:
    """Run a check; an error of the environment makes it fail, but does not end the command."""
    from dobonomodo.problems import Rejected, RunFailed

    try:
        if (found := find()) is not None:
            yield found
    except RunFailed as failed:
        yield Finding(check, "failed", failed.problem.message(), failed.problem.hint())
    except Rejected as rejected:
        yield Finding(check, "failed", rejected.problems[0].message(), rejected.problems[0].hint())


def _show(finding: Finding) -> None:
    mark = f"{finding.status:<7}"
    if colored(sys.stdout):
        mark = f"\x1b[{COLORS[finding.status]}m{mark}\x1b[0m"
    show(f"  {finding.check:<22} {finding.detail}", mark=mark)
    if finding.remedy is not None:
        first, *rest = finding.remedy.strip().splitlines()
        show(f"{'':9}to do: {first}")
        for line in rest:
            show(f"{'':16}{line.strip()}")
