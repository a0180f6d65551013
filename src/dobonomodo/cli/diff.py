"""`dobo diff`: what differs between two versions of a project, by operation and formula."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dobonomodo.cli.console import Json, open_workspace, say, show, show_json

if TYPE_CHECKING:
    from dobonomodo.model.difference import FieldChange

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}


def diff(
    one: Annotated[str, typer.Argument(metavar="PROJECT@v3", help="A version; without @v, the files.")],
    other: Annotated[str, typer.Argument(metavar="PROJECT@v4", help="Another version.")],
    as_json: Json = False,
) -> None:
    """Show what differs between two versions of a project: operations, formulas, selectors, inputs."""
    found = open_workspace().diff_projects(one, other)
    if as_json:
        show_json("diff", found)
        return
    if not found:
        say(f"{one} and {other} are the same")
        return
    for field in found.fields:
        _show_field(field, indent="")
    for operation in found.operations:
        show(f"{_SIGNS[operation.change]} {operation.seq} {operation.name} ({operation.type})")
        for field in operation.fields:
            _show_field(field, indent="    ")


def _show_field(field: FieldChange, *, indent: str) -> None:
    if field.before is None or field.after is None:
        sign, value = ("+", field.after) if field.before is None else ("-", field.before)
        show(f"{indent}{sign} {field.path}: {_text(value)}")
    else:
        show(f"{indent}{field.path}: {_text(field.before)} -> {_text(field.after)}")


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
