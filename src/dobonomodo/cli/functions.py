"""`dobo functions`: the catalogue, or the reference of one function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from dobonomodo.cli.console import Exit, Json, make_console, show, show_json, show_problems, stop

if TYPE_CHECKING:
    from dobonomodo.formula.functions import Function
    from dobonomodo.formula.functions.special import Special


def _complete(incomplete: str) -> list[tuple[str, str]]:
    from dobonomodo.formula.functions import FUNCTION_BY_NAME
    from dobonomodo.formula.functions.special import SPECIALS

    wanted = incomplete.upper()
    known = [*((name, each.summary) for name, each in FUNCTION_BY_NAME.items())]
    known += [(each.name, each.summary) for each in SPECIALS]
    return [(name, summary) for name, summary in known if name.startswith(wanted)]


def functions(
    name: Annotated[str | None, typer.Argument(help="One function.", autocompletion=_complete)] = None,
    as_json: Json = False,
) -> None:
    """List the functions, or explain one with its examples."""
    from dobonomodo.formula.functions import CHAPTERS, FUNCTION_BY_NAME, FUNCTIONS
    from dobonomodo.formula.functions.special import SPECIALS

    if name is None:
        if as_json:
            show_json("functions", [*FUNCTIONS, *SPECIALS])
            return
        _show_table((*CHAPTERS, ("Rows of an operation", SPECIALS)))
        return
    special = next((each for each in SPECIALS if each.name == name.upper()), None)
    if special is not None:
        if as_json:
            show_json("functions", [special])
        else:
            show(f"{special.usage}\n\n{special.summary}\n\nFor example:\n  {special.example}")
        return
    found = FUNCTION_BY_NAME.get(name.upper())
    if found is None:
        _show_unknown(name, as_json=as_json)
    if as_json:
        show_json("functions", [found])
        return
    show("\n".join(found.usages()))
    show(f"\n{found.summary}")
    if found.aliases:
        show(f"Also written {', '.join(found.aliases)}.")
    if found.window is not None and not found.needs_window:
        show(f"In assignments of an update also {found.name}(...) OVER (PARTITION BY ... ORDER BY ...).")
    show("\nIn every row these are true:" if found.needs_window else "\nAll of these are true:")
    for example in found.examples:
        show(f"  {example}")


def _show_unknown(name: str, *, as_json: bool) -> NoReturn:
    from dobonomodo.formula.functions import FUNCTION_BY_NAME
    from dobonomodo.formula.functions.foreign import INSTEAD
    from dobonomodo.problems.formula import UnknownFunction

    problem = UnknownFunction(name=name, known=tuple(FUNCTION_BY_NAME), instead=INSTEAD.get(name.upper()))
    if as_json:
        show_json("functions", [], problems=[problem], ok=False)
    else:
        show_problems([problem])
    stop(Exit.NOTHING)


def _show_table(chapters: Sequence[tuple[str, Sequence[Function | Special]]]) -> None:
    import sys

    from rich.table import Table

    console = make_console(sys.stdout)
    for title, chapter in chapters:
        table = Table(
            title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, show_header=False
        )
        table.add_column(style="cyan", no_wrap=True)
        table.add_column()
        for function in chapter:
            table.add_row(function.name, function.summary)
        console.print(table)
        console.print()
    console.print("dobo functions NAME shows how to call one, with examples.")
