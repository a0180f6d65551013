"""What is only seen in a process of its own: which packages are imported, and that another process makes the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dobonomodo.cli.init import Template, make_workspace
from dobonomodo.store import open_store
from tests.world import copy_workspace

SOURCE = Path(__file__).parents[2] / "src"
SPARK = {"pyspark", "py4j"}


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    return copy_workspace("sales", tmp_path / "sales")


def python(*arguments: str, folder: Path) -> str:
    """What a new interpreter prints."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def packages_after(statements: str, *arguments: str, folder: Path) -> set[str]:
    """The packages that are there after some statements in a new interpreter."""
    code = f"import sys\n{statements}\nprint('@@', *{{name.partition('.')[0] for name in sys.modules}})"
    return set(python("-c", code, *arguments, folder=folder).rpartition("@@ ")[2].split())


def packages_after_command(*arguments: str, folder: Path) -> set[str]:
    statements = "from dobonomodo.cli.main import run\nif code := run(sys.argv[1:]): sys.exit(code)"
    return packages_after(statements, *arguments, folder=folder)


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import dobonomodo.formula, dobonomodo.problems", SPARK),
        ("import dobonomodo.engine", {"pyspark"}),
        ("import dobonomodo.store", {"sqlalchemy", "alembic", "psycopg", *SPARK}),
    ],
)
def test_importing_a_layer_imports_little(tmp_path: Path, statement: str, absent: set[str]) -> None:
    there = packages_after(statement, folder=tmp_path)
    assert "dobonomodo" in there
    assert not there & absent


def test_opening_a_store_that_is_up_to_date_needs_no_alembic(tmp_path: Path) -> None:
    open_store("sqlite:///store.db", root=tmp_path).close()
    statements = (
        "from pathlib import Path\n"
        "from dobonomodo.store import open_store\n"
        "open_store('sqlite:///store.db', root=Path('.')).close()"
    )
    there = packages_after(statements, folder=tmp_path)
    assert "sqlalchemy" in there
    assert not there & {"alembic", "psycopg", *SPARK}


def test_help_imports_little(sales: Path) -> None:
    there = packages_after_command("--help", folder=sales)
    assert not there & {"pydantic", "sqlalchemy", "alembic", "lark", "rich", *SPARK}


def test_validate_imports_no_spark_and_without_a_store_no_database(sales: Path) -> None:
    # A project of twenty operations, so that everything that checking needs is imported.
    path = sales / "projects" / "monthly-sales.yaml"
    more = "".join(
        f"    - {{seq: {seq}, type: update, arguments: {{assignments: [{{column: c{seq}, expression: 'ROUND(amount * {seq}, 2)'}}]}}}}\n"
        for seq in range(101, 116)
    )
    path.write_text(path.read_text(encoding="utf-8").replace("seq: 5", "seq: 500") + more, encoding="utf-8")
    there = packages_after_command("validate", folder=sales)
    assert "lark" in there
    assert not there & {"sqlalchemy", "alembic", "rich", *SPARK}


def test_plan_imports_no_spark(sales: Path) -> None:
    there = packages_after_command("plan", "monthly-sales", "-p", "2026-01", "--sql", folder=sales)
    assert "lark" in there
    assert not there & {"sqlalchemy", *SPARK}


def test_as_a_module(sales: Path) -> None:
    assert python("-m", "dobonomodo.cli", "ls", "projects", "-o", "name", folder=sales) == "monthly-sales\n"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("dobo pla", ["plan"]),
        ("dobo run m", ["monthly-sales"]),
        ("dobo -C elsewhere run ", []),
        ("dobo plan monthly-sales --period 2026-1", ["2026-10", "2026-11", "2026-12"]),
        ("dobo functions SUBS", ["SUBSTITUTE"]),
    ],
)
def test_a_shell_completes(sales: Path, typed: str, offered: list[str]) -> None:
    variables = {"_DOBO_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split(" ")) - 1)}
    code = f"import os; os.environ |= {variables!r}; from dobonomodo.cli.main import main; main()"
    assert python("-c", code, folder=sales).split() == offered


@pytest.mark.parametrize(
    "arguments", [("functions",), ("functions", "--json"), ("validate",), ("plan", "monthly-sales")]
)
def test_nobody_reads_what_is_said(sales: Path, arguments: tuple[str, ...]) -> None:
    """As after `| head -1`: the command ends as it would have, with its own exit code and without a traceback."""
    ends = []
    for closed in (False, True):
        reading, writing = os.pipe()
        if closed:
            os.close(reading)
        command = [sys.executable, "-m", "dobonomodo.cli", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        with subprocess.Popen(command, cwd=sales, env=environment, stdout=writing, stderr=writing) as process:
            os.close(writing)
            if not closed:
                with open(reading) as file:
                    file.read()
        ends.append(process.returncode)
    assert ends[0] == ends[1]


def test_another_process_makes_the_same_templates_without_spark(tmp_path: Path) -> None:
    templates = [str(each) for each in Template]
    statements = (
        "from pathlib import Path\n"
        "from dobonomodo.cli.init import make_workspace\n"
        f"for each in {templates}: make_workspace(Path('there', each), each)"
    )
    assert not packages_after(statements, folder=tmp_path) & SPARK
    for template in templates:
        make_workspace(tmp_path / "here" / template, template)
    here, there = (
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (tmp_path / "here", tmp_path / "there")
    )
    assert len(here) > 20
    assert here == there
