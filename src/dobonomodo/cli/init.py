"""`dobo init`: a new workspace from a template."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dobonomodo.cli.console import say, usage_error

SCHEMA_FILE = "schema.json"


class Template(StrEnum):
    """The workspaces that come with dobo."""

    SALES = "sales"
    MINIMAL = "minimal"


def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The folder; made if it is not there.")] = Path(),
    template: Annotated[Template, typer.Option("--template", help="What to start from.")] = Template.MINIMAL,
) -> None:
    """Make a workspace that works as it is, with a project, a scenario and a README."""
    written = make_workspace(directory, template)
    say(f"made {written} files in {directory}")
    say(f"next: cd {directory} && dobo validate" if str(directory) != "." else "next: dobo validate")


def make_workspace(directory: Path, template: str) -> int:
    """Copy a template; every definition points an editor to its schema. Never overwrites a file."""
    from importlib.resources import as_file, files

    from dobonomodo.model.json_schema import make_any_schema
    from dobonomodo.plan.operations.catalogue import argument_schemas

    if (directory / "dobo.yaml").exists():
        usage_error(f"there is a workspace in {directory} already")
    count = 0
    with as_file(files("dobonomodo") / "templates" / template) as source:
        for path in sorted(each for each in source.rglob("*") if each.is_file()):
            relative = path.relative_to(source)
            text = path.read_text(encoding="utf-8")
            if path.suffix == ".yaml":
                up = "../" * (len(relative.parts) - 1) or "./"
                text = f"# yaml-language-server: $schema={up}{SCHEMA_FILE}\n{text}"
            count += _write(directory / relative, text)
    schema = make_any_schema(arguments_by_type=argument_schemas())
    count += _write(directory / SCHEMA_FILE, json.dumps(schema, indent=1, ensure_ascii=False) + "\n")
    return count + _write(directory / ".gitignore", ".dobo/\n")


def _write(path: Path, text: str) -> int:
    if path.exists():
        usage_error(f"{path} is there already")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return 1
