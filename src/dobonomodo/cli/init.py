"""`dobo init`: a new workspace from a template."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from dobonomodo.cli.console import Json, in_folder, say, show_json, usage_error, writing

SCHEMA_FILE = "schema.json"
IGNORED = ".dobo/\nresults/\n"
KEPT = frozenset({"README.md", ".gitignore"})
"""Files that a folder may have before; they stay as they are."""


class Template(StrEnum):
    """The workspaces that come with dobo."""

    SALES = "sales"
    FX = "fx"
    CLOSE = "close"
    LAKE = "lake"
    MINIMAL = "minimal"


PROJECTS = {
    Template.SALES: "monthly-sales",
    Template.FX: "group-result",
    Template.CLOSE: "close",
    Template.LAKE: "silver",
    Template.MINIMAL: "totals",
}


@dataclass(frozen=True, slots=True)
class Made:
    """A workspace that was made."""

    folder: str
    files: int
    project: str

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return asdict(self)


def init(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder; created if it does not exist.")
    ] = Path(),
    template: Annotated[Template, typer.Option("--template", help="The template.")] = Template.MINIMAL,
    from_files: Annotated[
        list[Path] | None,
        typer.Option(
            "--from", metavar="FILE", help="Instead of a template: a CSV, Excel or Parquet file; again for more."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Create a workspace that runs without changes, with data, a project, scenarios and a README; or one that loads your files."""
    directory = in_folder(directory)
    if from_files:
        _init_from(directory, from_files, as_json=as_json)
        return
    with writing(directory):
        kept = [name for name in sorted(KEPT) if (directory / name).exists()]
        written = make_workspace(directory, template)
    if as_json:
        show_json("init", Made(str(directory), written, PROJECTS[template]))
        return
    say(f"made {written} files in {directory}")
    for name in kept:
        say(f"{directory / name} exists and was not changed")
    if directory != Path():
        say(f"next: cd {directory}")
    say("next: dobo validate" if directory == Path() else "      dobo validate")
    say(f"      dobo run {PROJECTS[template]} --period 2026-01")


def _init_from(directory: Path, files: list[Path], *, as_json: bool) -> None:
    """A workspace with copies of some files, and definitions that load them unchanged."""
    from dobonomodo.cli.proposal import PROJECT, propose_workspace

    with writing(directory):
        proposed = propose_workspace(files)
        contents = {**_with_schemas(proposed.contents), **_common()}
        written = write_workspace(directory, contents)
    if as_json:
        show_json("init", Made(str(directory), written, PROJECT))
        return
    say(f"made {written} files in {directory}")
    for note in proposed.notes:
        say(f"note: {note}")
    say(f"next: cd {directory}")
    say(f"      dobo show {proposed.table} --rows 5 --period {proposed.period}")
    say(f"      dobo run {PROJECT} --period {proposed.period}")


def make_workspace(directory: Path, template: str) -> int:
    """Write a template with its data; every definition points an editor to its schema. Never overwrites a file."""
    return write_workspace(directory, lambda: _read_template(template))


def write_workspace(directory: Path, make: Mapping[str, bytes] | Callable[[], Mapping[str, bytes]]) -> int:
    """Write the files of a new workspace; never overwrites one."""
    if (directory / "dobo.yaml").exists():
        usage_error(f"{directory} already contains a workspace")
    contents = make() if callable(make) else make
    wanted = {
        name: content for name, content in contents.items() if name not in KEPT or not (directory / name).exists()
    }
    for place in (directory, *directory.parents):
        if place.exists() and not place.is_dir():
            usage_error(f"{place} is a file, not a folder")
    if taken := next((name for name in wanted if (directory / name).exists()), None):
        usage_error(f"{directory / taken} already exists; nothing was written")
    _write_all({directory / name: content for name, content in wanted.items()})
    return len(wanted)


def _write_all(contents: Mapping[Path, bytes]) -> None:
    """All files, or none where one cannot be written."""
    made: list[Path] = []
    try:
        for path, content in contents.items():
            for folder in [*reversed(path.parents)]:
                if not folder.exists():
                    folder.mkdir()
                    made.append(folder)
            made.append(path)
            path.write_bytes(content)
    except BaseException:
        for path in reversed(made):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        raise


def _read_template(template: str) -> dict[str, bytes]:
    """All files of a new workspace by path."""
    from importlib.resources import as_file, files

    from dobonomodo.cli.sample import SAMPLES

    contents: dict[str, bytes] = {}
    with as_file(files("dobonomodo") / "templates" / template) as source:
        for path in sorted(each for each in source.rglob("*") if each.is_file()):
            contents[path.relative_to(source).as_posix()] = path.read_bytes()
    contents = _with_schemas(contents)
    if template in SAMPLES:
        contents |= dict(SAMPLES[template]())
    return {**contents, **_common()}


def _with_schemas(contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """Definitions that point editors to their schema."""
    found: dict[str, bytes] = {}
    for name, content in contents.items():
        up = "../" * name.count("/") or "./"
        head = f"# yaml-language-server: $schema={up}{SCHEMA_FILE}\n".encode() if name.endswith(".yaml") else b""
        found[name] = head + content
    return found


@cache
def _common() -> Mapping[str, bytes]:
    """What every new workspace has. The schema takes long to make."""
    from dobonomodo.model.json_schema import make_any_schema
    from dobonomodo.plan.operations.catalogue import argument_schemas
    from dobonomodo.storage import options_by_type

    schema = make_any_schema(arguments_by_type=argument_schemas(), options_by_type=options_by_type())
    return {
        SCHEMA_FILE: (json.dumps(schema, indent=1, ensure_ascii=False) + "\n").encode(),
        ".gitignore": IGNORED.encode(),
    }
