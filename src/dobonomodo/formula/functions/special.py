"""Calls that are not functions: they refer to the project, not to values, and the checker replaces them."""

from __future__ import annotations

from dataclasses import dataclass

from dobonomodo.formula.scope import MADE_BY


@dataclass(frozen=True, slots=True)
class Special:
    """One of them, as people see it."""

    name: str
    usage: str
    summary: str
    example: str
    """A selector; it is about the operations of a project, so that it has no value by itself."""

    def to_dict(self) -> dict[str, object]:
        """As a function is described."""
        return {
            "name": self.name,
            "aliases": (),
            "usage": [self.usage],
            "aggregate": False,
            "window": False,
            "summary": self.summary,
            "examples": (),
        }


SPECIALS = (
    Special(
        MADE_BY,
        f'{MADE_BY}("name of an operation")',
        "Whether the operation of that name made the row, whatever its number is.",
        f'NOT {MADE_BY}("Totals")',
    ),
)
