"""`dobo dataset infer`: infers definitions from all values of a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dobonomodo.cli.console import Json, in_folder, say, show, show_json, usage_error
from dobonomodo.problems import render

if TYPE_CHECKING:
    from dobonomodo.model.plain import PlainDict
    from dobonomodo.storage.inference import Inferred

dataset = typer.Typer(help="Propose the definition of a dataset for a file.", no_args_is_help=True)

FOLDER = "data"
"""The folder of a datasource that nobody has named."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Definitions that load a file unchanged."""

    inferred: Inferred

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        own = self.inferred
        return {
            "file": str(own.path),
            "rows": own.rows,
            "dataset": own.dataset(),
            "datasource": describe_datasource([own], folder=str(own.path.parent)),
            "other_keys": [list(key) for key in own.other_keys],
            "notes": list(own.notes),
        }


@dataset.command("infer")
def infer_dataset(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A CSV, Excel or Parquet file.")],
    sheet: Annotated[
        str | None,
        typer.Option("--sheet", help="The sheet of a workbook; the default is the first that is not hidden."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Propose a dataset and a datasource that load a file unchanged: types, keys, separator, encoding, formats of numbers and dates."""
    found = infer_file(file, sheet=sheet)
    if as_json:
        show_json("dataset infer", Proposal(found))
        return
    show(render_definition("dataset", found.dataset(), notes=_notes(found)).rstrip())
    show("---")
    show(render_definition("datasource", describe_datasource([found], folder=str(file.parent))).rstrip())
    say(f"looked at {found.rows:,} rows; the definitions load all of them")


def infer_file(file: Path, *, sheet: str | None = None) -> Inferred:
    """The inferred definition of a file; an ambiguous file ends the command."""
    from dobonomodo.problems.package import require_modules
    from dobonomodo.storage.inference import NotInferredError, infer

    path = in_folder(file)
    if not path.is_file():
        usage_error(f"there is no file {path}")
    require_modules(["pyarrow"])
    try:
        return infer(path, sheet=sheet)
    except NotInferredError as fault:
        usage_error(str(fault))
    except OSError as fault:
        usage_error(f"{path}: {fault.strerror or fault}")


def describe_datasource(found: list[Inferred], *, folder: str) -> PlainDict:
    """The datasource of some files of one kind that are written alike."""
    return {"id": found[0].kind, "type": found[0].kind, "options": {"path_prefix": folder, **found[0].options}}


def _notes(found: Inferred) -> list[str]:
    others = [f"identifies the rows of this file: {', '.join(key)}" for key in found.other_keys]
    return [*found.notes, *others]


def render_definition(kind: str, definition: PlainDict, *, notes: list[str] | None = None) -> str:
    """A definition as YAML, with columns and options on a line each, and escapes for invisible characters."""
    import yaml

    class Lines(yaml.SafeDumper):
        """Lists of mappings have one line for each."""

    def represent(dumper: yaml.SafeDumper, data: dict[str, object]) -> yaml.Node:
        plain = all(not isinstance(value, dict) and not _is_list_of_mappings(value) for value in data.values())
        return dumper.represent_mapping("tag:yaml.org,2002:map", data.items(), flow_style=plain and len(data) > 1)

    def represent_list(dumper: yaml.SafeDumper, data: list[object]) -> yaml.Node:
        return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=not _is_list_of_mappings(data))

    def represent_text(dumper: yaml.SafeDumper, data: str) -> yaml.Node:
        return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=None if data.isprintable() else '"')

    Lines.add_representer(str, represent_text)
    Lines.add_representer(dict, represent)
    Lines.add_representer(list, represent_list)
    text: str = yaml.dump({kind: definition}, Dumper=Lines, sort_keys=False, allow_unicode=True, width=140)
    # Escapes of Python are escapes of YAML too, inside of double quotes.
    return "".join(f"# {render.printable(note)}\n" for note in notes or ()) + render.printable_lines(text)


def _is_list_of_mappings(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict) for each in value)
