"""`dobo explain`: what a problem code means, and how to fix it."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from dobonomodo.cli.console import Exit, Json, say, show, show_json, stop, terminal_width
from dobonomodo.problems.render import fold_words

if TYPE_CHECKING:
    from dobonomodo.problems import Problem


def _complete(incomplete: str) -> list[str]:
    from dobonomodo.problems import PROBLEMS

    return [kind.code for kind in PROBLEMS if kind.code.startswith(incomplete.upper())]


def explain(
    code: Annotated[str | None, typer.Argument(help="A code such as UNKNOWN_COLUMN.", autocompletion=_complete)] = None,
    as_json: Json = False,
) -> None:
    """Explain a problem code: its cause, a wrong and a right example. Without a code, list them all."""
    from dobonomodo.problems import PROBLEMS, find_problem
    from dobonomodo.problems.problem import did_you_mean

    if code is None:
        if as_json:
            show_json("explain", [Explained(kind) for kind in PROBLEMS])
            return
        width = max(len(kind.code) for kind in PROBLEMS)
        for kind in PROBLEMS:
            first, *more = fold_words(cause(kind), terminal_width(sys.stdout), indent=width + 2, start=width + 2)
            show("\n".join([f"{kind.code:{width}}  {first}", *(" " * (width + 2) + line for line in more)]))
        return
    found = find_problem(code)
    if found is None:
        if as_json:
            show_json("explain", None, ok=False)
        hint = did_you_mean(code, [kind.code for kind in PROBLEMS])
        say(f"no problem has the code `{code}`; {hint}")
        stop(Exit.NOTHING)
    if as_json:
        show_json("explain", Explained(found))
        return
    show(f"{found.code} ({found.severity})\n\n{cause(found)}\n")
    show(f"wrong:\n{indent(found.example.wrong)}\n\nright:\n{indent(found.example.right)}")


def cause(kind: type[Problem]) -> str:
    """The cause of a problem, in one paragraph."""
    return " ".join((inspect.getdoc(kind) or "").replace("``", "`").split())


def indent(text: str) -> str:
    """Four blanks before every line."""
    return "\n".join(f"    {line}" for line in text.splitlines())


@dataclass(frozen=True, slots=True)
class Explained:
    """A kind of problem, explained."""

    kind: type[Problem]

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {
            "code": self.kind.code,
            "severity": self.kind.severity,
            "cause": cause(self.kind),
            "wrong": self.kind.example.wrong,
            "right": self.kind.example.right,
        }
