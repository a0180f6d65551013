"""Packages that only some commands need: which extra brings which, and what is said where one is not installed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar

from dobonomodo.problems.faults import RunFailed
from dobonomodo.problems.problem import Blame, Example, Problem, Severity, listed

EXTRA_BY_MODULE = {
    "pyspark": "spark",
    "py4j": "spark",
    "pyarrow": "spark",
    "grpc": "connect",
    "grpc_status": "connect",
    "google": "connect",
    "pandas": "connect",
    "zstandard": "connect",
    "psycopg": "postgresql",
    "adbc_driver_manager": "postgresql",
    "adbc_driver_postgresql": "postgresql",
    "python_calamine": "excel",
    "xlsxwriter": "excel",
    "obstore": "objects",
    "hdfs_native": "hdfs",
    "deltalake": "delta",
    "pyiceberg": "iceberg",
}
"""By module, the extra of this package that brings it."""

SPARK = ("pyspark", "pyarrow")
POSTGRESQL = ("psycopg", "adbc_driver_manager", "adbc_driver_postgresql", "pyarrow")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageMissing(Problem):
    """A command needs Python packages that are not installed. Validating and planning need none of them."""

    code: ClassVar[str] = "PACKAGE_MISSING"
    blamed: ClassVar[Blame] = Blame.ENVIRONMENT
    example: ClassVar[Example] = Example("pip install dobonomodo", "pip install 'dobonomodo[spark]'")

    modules: tuple[str, ...]
    extras: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    """Of others, where no extra brings the modules."""

    def message(self) -> str:
        return f"this needs {listed(self.modules)}, which {_are(self.modules)} not installed"

    def hint(self) -> str | None:
        return _advise(self.extras, self.packages)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverMissing(Problem):
    """The driver of a database is not installed here. Definitions are valid without it; runs that read the database are not."""

    code: ClassVar[str] = "W-16"
    severity: ClassVar[Severity] = "warning"
    blamed: ClassVar[Blame] = Blame.ENVIRONMENT
    example: ClassVar[Example] = Example(
        'datasource: {id: m, type: sql, options: {url: "market.db", driver: adbc_driver_nowhere}}',
        'datasource: {id: m, type: sql, options: {url: "sqlite:///market.db"}}',
    )

    modules: tuple[str, ...]
    packages: tuple[str, ...]

    def message(self) -> str:
        return f"runs need {listed(self.modules)} to read this, which {_are(self.modules)} not installed here"

    def hint(self) -> str | None:
        return _advise((), self.packages)


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _advise(extras: Sequence[str], packages: Sequence[str]) -> str:
    own = [f"dobonomodo[{','.join(extras)}]"] if extras else []
    return "pip install " + " ".join(f"'{name}'" if "[" in name else name for name in (*own, *packages))


def require_modules(names: Iterable[str]) -> None:
    """Raise where modules are not installed; all that are missing are named at once. Imports none of them."""
    if (missing := find_missing_modules(names)) is not None:
        raise RunFailed(missing)


def find_missing_modules(names: Iterable[str]) -> PackageMissing | None:
    """The modules that are not installed, as one problem; None if all are. Imports none of them."""
    missing = tuple(name for name in dict.fromkeys(names) if not _is_installed(name))
    return _name_packages(missing) if missing else None


def missing_package(names: Iterable[str]) -> RunFailed:
    """The failure of a command that needs modules which are not installed."""
    return RunFailed(_name_packages(tuple(names)))


def _name_packages(modules: tuple[str, ...]) -> PackageMissing:
    extras = tuple(dict.fromkeys(EXTRA_BY_MODULE[name] for name in modules))
    return PackageMissing(modules=modules, extras=extras)


def find_missing_package(error: ImportError) -> RunFailed | None:
    """What a failed import means, if it is one of a package that an extra brings."""
    name = (error.name or "").partition(".")[0]
    return missing_package([name]) if name in EXTRA_BY_MODULE else None


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False
