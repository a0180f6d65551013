"""The checks of a run on a terminal: one line each, with the values that were compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from dobonomodo.model.locale import Locale
    from dobonomodo.plan.check import CheckResult

_MARKS = {"passed": ("✓", "green"), "failed": ("✗", "red"), "warned": ("!", "yellow")}


def show_checks(console: Console, checks: Sequence[CheckResult], locale: Locale) -> None:
    """All checks of a run; nothing where it has none."""
    from rich.markup import escape

    if not checks:
        return
    console.print("\nchecks")
    for each in checks:
        mark, color = _MARKS[each.outcome]
        number = f"{each.seq:>4}  " if each.seq else f"{'':>4}  "
        console.print(f" [{color}]{mark}[/] {number}{escape(each.name)}  [dim]{escape(each.describe(locale))}[/]")
