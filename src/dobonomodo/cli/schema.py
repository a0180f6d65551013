"""`dobo schema`: JSON Schemas with which an editor completes and checks definitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from dobonomodo.cli.console import Json, show_document, show_json, usage_error


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """A JSON Schema."""

    document: dict[str, object]

    def to_dict(self) -> dict[str, object]:
        """As it is."""
        return self.document


def schema(
    kind: Annotated[
        str | None, typer.Argument(help="One kind of definition; the default is a schema for all kinds.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print a JSON Schema. In a file, point to it: # yaml-language-server: $schema=..."""
    from dobonomodo.model import KINDS
    from dobonomodo.model.json_schema import make_any_schema, make_schema
    from dobonomodo.plan.operations.catalogue import argument_schemas
    from dobonomodo.storage import options_by_type

    arguments, options = argument_schemas(), options_by_type()
    if kind is None:
        found = make_any_schema(arguments_by_type=arguments, options_by_type=options)
    elif kind in KINDS:
        found = make_schema(kind, arguments_by_type=arguments, options_by_type=options)
    else:
        usage_error(f"`{kind}` is not a kind of definition; available: {', '.join(KINDS)}")
    if as_json:
        show_json("schema", JsonSchema(found))
    else:
        show_document(found)
