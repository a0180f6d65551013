"""`make mutants`: changes the source in memory, one place at a time, and tells which changes no test notices.

A seeded sample per package. Each mutant runs in a process of its own: the test of its module first, then those of its package.
"""

from __future__ import annotations

import ast
import os
import random
import resource
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutants.mutating import Mutant, count_mutants, make_mutant

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "dobonomodo"
LIGHT = "not spark and not postgresql"
PACKAGES: dict[str, tuple[str, ...]] = {
    "runs": ("tests/unit/runs", "tests/unit/cli/test_runs.py"),
    "storage": ("tests/unit/storage", "tests/contract/test_storages.py", "tests/contract/test_fencing.py"),
    "plan": ("tests/unit/plan", "tests/golden/test_plans.py", "tests/golden/test_projects.py"),
    "formula": ("tests/unit/formula", "tests/golden/test_formulas.py", "tests/golden/test_problems.py"),
}
IMPORTED_ONCE = (
    "alembic",
    "jinja2",
    "lark",
    "pyarrow.parquet",
    "pydantic",
    "sqlalchemy",
    "typer",
    "yaml",
)
"""What every mutant needs and none changes."""
NEEDS_SERVER = {"storage/database.py", "storage/postgresql.py", "storage/table_rows.py", "storage/table_target.py"}
"""Modules that only a database can test."""
PROCESSOR_SECONDS, SECONDS = 120, 1_200
"""How long a mutant may compute, and how long it may take: much longer, since the machine may be busy with other things."""
KILLED = 0.9
"""The part of the mutants of each package that tests must notice."""


class _Changed(Loader):
    """Finds and loads one module, changed."""

    def __init__(self, name: str, path: Path, mutant: Mutant) -> None:
        self._name, self._path, self._mutant = name, path, mutant

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        del path, target
        return spec_from_loader(name, self, origin=str(self._path)) if name == self._name else None

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(self._path)
        exec(compile(self._mutant.tree, str(self._path), "exec"), module.__dict__)


def survives(path: Path, mutant: Mutant, suites: Sequence[Sequence[str]]) -> bool:
    """Whether all tests pass; the process that tries it is killed when it takes too long, which is noticed and said."""
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
            print(f"{name} {path.relative_to(ROOT)}:{mutant.line}  {mutant.change}", flush=True)  # noqa: T201
        return status == 0
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS + 1))
    signal.alarm(SECONDS)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    name = "dobonomodo." + ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    sys.meta_path.insert(0, _Changed(name, path, mutant))
    for suite in suites:
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", LIGHT]
        if pytest.main([*options, *suite]) != pytest.ExitCode.OK:
            os._exit(1)
    os._exit(0)


def find_suites(path: Path, package: str) -> list[list[str]]:
    folder = path.relative_to(SOURCE).parent
    own = ROOT / "tests" / "unit" / folder / f"test_{path.name}"
    return [*([[str(own)]] if own.exists() else []), list(PACKAGES[package])]


def main(count: int, seed: int, packages: Sequence[str]) -> int:
    """Print what survives, and how many were killed; the exit code tells whether enough were of every package."""
    assert find_spec("dobonomodo") is not None
    for name in IMPORTED_ONCE:
        import_module(name)
    enough = True
    for package in packages:
        places = [
            (path, number)
            for path in sorted((SOURCE / package).rglob("*.py"))
            if path.relative_to(SOURCE).as_posix() not in NEEDS_SERVER
            for number in range(count_mutants(path.read_text(encoding="utf-8")))
        ]
        sample = random.Random(seed).sample(places, min(count, len(places)))
        chosen = [(path, make_mutant(path.read_text(encoding="utf-8"), number)) for path, number in sample]
        unchanged = Mutant(0, "", ast.parse(chosen[0][0].read_text(encoding="utf-8")))
        if not survives(chosen[0][0], unchanged, [PACKAGES[package]]):
            print(f"{package}: tests fail without any change")  # noqa: T201
            return 2
        killed = 0
        for path, mutant in chosen:
            if survives(path, mutant, find_suites(path, package)):
                print(f"survived {path.relative_to(ROOT)}:{mutant.line}  {mutant.change}", flush=True)  # noqa: T201
            else:
                killed += 1
        print(f"{package}: {killed} of {len(chosen)} killed, {len(places)} possible", flush=True)  # noqa: T201
        enough = enough and killed >= KILLED * len(chosen)
    return 0 if enough else 1


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(int(given[0]) if given else 40, int(given[1]) if given[1:] else 1, given[2:] or list(PACKAGES)))
