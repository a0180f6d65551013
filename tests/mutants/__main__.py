"""`make mutants`: changes the source in memory, one place at a time, and tells which changes no test notices.

A seeded sample per package. Each mutant runs in a process of its own: the test of its module first, then those of its
package, then all unit and golden tests. Changes of functions that handle objects of Spark are counted apart when those tests do
not notice them; with `--spark` they run the tests of Spark too.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import resource
import signal
import sys
from collections import Counter
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
LIGHT = "not spark and not postgresql and not mariadb and not native"
SPARK = "spark and not postgresql and not mariadb and not native"
PACKAGES: dict[str, str] = {
    "runs": "unit/runs unit/cli/test_runs.py property/test_figures.py process/test_holder.py",
    "storage": "unit/storage property/test_files.py process/test_duckdb.py contract/test_objects.py contract/test_transport.py"
    " contract/test_iceberg_rest.py contract/test_object_stores.py contract/test_delta.py contract/test_iceberg.py"
    " contract/test_fencing.py contract/test_storages.py",
    "plan": "unit/plan property/test_parts.py property/test_trees.py golden/test_plans.py golden/test_projects.py",
    "formula": "unit/formula golden/test_formulas.py golden/test_problems.py",
}
"""The tests of each, those that take long last."""
ALL = ("tests/unit", "tests/golden")
ON_SPARK = ("tests/contract", "tests/spark", "tests/engine", "tests/scenarios")
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
NEEDS_SERVER = {
    f"storage/{name}.py"
    for name in [
        "database",
        "postgresql",
        "table_rows",
        "table_target",
        "hdfs",
        "native",
        "catalog_log",
        "catalog_table",
        "catalog_target",
    ]
}
"""Modules that only a database, a cluster of HDFS or a connector of Spark can test."""
PROCESSOR_SECONDS, SECONDS, SPARK_SECONDS = 120, 1_200, 7_200
"""How long tests may compute, and how long a mutant may take: much longer, since the machine may be busy with other things."""
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


def survives(path: Path, mutant: Mutant, suites: Sequence[Sequence[str]], *, spark: bool = False) -> bool:
    """Whether all tests pass; the process that tries it is killed when it takes too long, which is noticed and said."""
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status):
            say(signal.Signals(os.WTERMSIG(status)).name, path, mutant)
        return status == 0
    signal.alarm(SPARK_SECONDS if spark else SECONDS)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    name = "dobonomodo." + ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    sys.meta_path.insert(0, _Changed(name, path, mutant))
    for suite in suites:
        _limit_processor_time()
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", SPARK if spark else LIGHT]
        if pytest.main([*options, *suite]) != pytest.ExitCode.OK:
            os._exit(1)
    os._exit(0)


def _limit_processor_time() -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + PROCESSOR_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))


def find_suites(path: Path, package: str) -> list[Sequence[str]]:
    folder = path.relative_to(SOURCE).parent
    own = ROOT / "tests" / "unit" / folder / f"test_{path.name}"
    return [*([[str(own)]] if own.exists() else []), tests_of(package), ALL]


def tests_of(package: str) -> Sequence[str]:
    return [f"tests/{name}" for name in PACKAGES[package].split()]


def try_mutant(path: Path, mutant: Mutant, package: str, *, spark: bool) -> str:
    """What becomes of a mutant, in a word."""
    if not survives(path, mutant, find_suites(path, package)):
        return "killed"
    if not mutant.on_spark:
        return "survived"
    if not spark:
        return "for Spark"
    return "survived" if survives(path, mutant, [ON_SPARK], spark=True) else "killed on Spark"


def say(what: str, path: Path, mutant: Mutant) -> None:
    print(f"{what} {path.relative_to(ROOT)}:{mutant.line}  {mutant.change}", flush=True)  # noqa: T201


def main(count: int, seed: int, packages: Sequence[str], *, spark: bool) -> int:
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
        if not survives(chosen[0][0], unchanged, [tests_of(package), ALL]):
            print(f"{package}: tests fail without any change")  # noqa: T201
            return 2
        counts: Counter[str] = Counter()
        for path, mutant in chosen:
            fate = try_mutant(path, mutant, package, spark=spark)
            counts[fate] += 1
            if fate != "killed":
                say(fate, path, mutant)
            print(f"{package}: {counts.total()} of {len(chosen)}", end="\r", file=sys.stderr, flush=True)  # noqa: T201
        counted = ", ".join(f"{number} {fate}" for fate, number in sorted(counts.items()))
        print(f"{package}: {counted} of {len(chosen)}; {len(places)} possible", flush=True)  # noqa: T201
        enough = enough and counts["survived"] <= (1 - KILLED) * len(chosen)
    return 0 if enough else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=40, help="mutants per package")
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("packages", nargs="*", metavar="package", help=f"of {', '.join(PACKAGES)}; all by default")
    parser.add_argument("--spark", action="store_true", help="run the tests of Spark for what only they can notice")
    given = parser.parse_args()
    unknown = sorted(set(given.packages) - set(PACKAGES))
    if unknown:
        parser.error(f"unknown package {', '.join(unknown)}")
    sys.exit(main(given.count, given.seed, given.packages or list(PACKAGES), spark=given.spark))
