"""`dobo functions`: the catalogue, or all there is to know of one function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from dobonomodo.cli.console import Exit, Json, make_console, show, show_json, show_problems, stop

if TYPE_CHECKING:
    from dobonomodo.formula.functions import Function


def _complete(incomplete: str) -> list[tuple[str, str]]:
    from dobonomodo.formula.functions import FUNCTION_BY_NAME

    wanted = incomplete.upper()
    return [(name, each.summary) for name, each in FUNCTION_BY_NAME.items() if name.startswith(wanted)]


def functions(
    name: Annotated[str | None, typer.Argument(help="One function.", autocompletion=_complete)] = None,
    as_json: Json = False,
) -> None:
    """List the functions, or explain one with its examples."""
    from dobonomodo.formula.functions import CHAPTERS, FUNCTION_BY_NAME, FUNCTIONS
    from dobonomodo.formula.scope import MADE_BY

    if name is None:
        if as_json:
            show_json("functions", FUNCTIONS)
            return
        _show_table(CHAPTERS)
        return
    found = FUNCTION_BY_NAME.get(name.upper())
    if name.upper() == MADE_BY and not as_json:
        show(f'{MADE_BY}("name of an operation")\n\nWhether that operation made the row, whatever its number is.')
        return
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


def _show_table(chapters: tuple[tuple[str, tuple[Function, ...]], ...]) -> None:
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
