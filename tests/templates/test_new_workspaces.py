"""Every template as it is made: definitions without problems, and all that a run reads. Without Spark."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import jsonschema
import pyarrow.parquet as pq
import pytest

from dobonomodo.cli.init import PROJECTS, Template
from dobonomodo.cli.main import run
from dobonomodo.model import load_documents
from dobonomodo.problems import Source
from dobonomodo.workspace import Workspace

TEMPLATES = [str(template) for template in Template]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every template, made once."""
    root = tmp_path_factory.mktemp("templates")
    for template in TEMPLATES:
        assert run(["init", str(root / template), "--template", template]) == 0
    return {template: root / template for template in TEMPLATES}


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_new_workspace_has_no_problems(made: dict[str, Path], template: str) -> None:
    folder = made[template]
    assert Workspace.open(folder).problems() == ()
    assert {"README.md", "dobo.yaml", "schema.json", ".gitignore", "data"} <= {each.name for each in folder.iterdir()}


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("period", ["2026-01", "2026-02"])
def test_what_a_run_reads_is_there(made: dict[str, Path], template: str, period: str) -> None:
    workspace = Workspace.open(made[template])
    plan = workspace.plan(PROJECTS[Template(template)], period=period).plan
    read = [location for use in plan.uses for location in use.locations]
    assert read
    assert all((made[template] / "data" / (location.path or "")).exists() for location in read)


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_definition_names_its_schema_and_fits_it(made: dict[str, Path], template: str) -> None:
    root = made[template]
    fits = jsonschema.Draft7Validator(json.loads((root / "schema.json").read_text())).validate
    files = sorted(root.rglob("*.yaml"))
    assert len(files) >= 6
    for path in files:
        text = path.read_text(encoding="utf-8")
        first = text.splitlines()[0]
        assert first.startswith("# yaml-language-server: $schema=")
        assert (path.parent / first.partition("=")[2]).resolve() == (root / "schema.json").resolve()
        for document in load_documents(Source(path.name, text))[0]:
            fits(json.loads(json.dumps(document.data, default=str)))


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_readme_names_the_commands_and_the_project(made: dict[str, Path], template: str) -> None:
    text = (made[template] / "README.md").read_text(encoding="utf-8")
    project = PROJECTS[Template(template)]
    assert all(
        command in text for command in ("dobo validate", f"dobo run {project}", "dobo test", f"dobo activate {project}")
    )


def test_the_orders_are_many_and_exact(made: dict[str, Path]) -> None:
    tables = [pq.read_table(path) for path in sorted((made["sales"] / "data/orders").glob("*.parquet"))]
    assert [len(table) for table in tables] == [48_731, 51_269]
    amounts = [amount for table in tables for amount in table["amount"].to_pylist()]
    assert sum(amounts) == Decimal("101799111.50")
    assert len({order for table in tables for order in table["order_id"].to_pylist()}) == 100_000
