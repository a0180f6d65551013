"""The checks of a run on a terminal: one line each, with the values that were compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from dobonomodo.plan.check import CheckResult

_PASSED, _FAILED, _WARNED = ("✓", "green"), ("✗", "red"), ("!", "yellow")


def show_checks(console: Console, checks: Sequence[CheckResult]) -> None:
    """All checks of a run; nothing where it has none."""
    from rich.markup import escape

    if not checks:
        return
    console.print("\nchecks")
    for each in checks:
        mark, color = _PASSED if each.holds else _WARNED if each.severity == "warn" else _FAILED
        number = f"{each.seq:>4}  " if each.seq else f"{'':>4}  "
        console.print(f" [{color}]{mark}[/] {number}{escape(each.name)}  [dim]{escape(describe_check(each))}[/]")


def describe_check(check: CheckResult) -> str:
    """What came of a check, in a few words."""
    if check.status == "empty":
        return "no row reached it"
    sides = ""
    if check.left is not None and check.right is not None:
        sides = f"{check.left} and {check.right}"
        if check.difference is not None and not check.holds:
            sides += f", difference {check.difference}"
    if check.what == "total":
        return sides or ("holds" if check.holds else "does not hold")
    if check.holds:
        return f"{check.reached:,} {check.what}"
    return f"{check.violations:,} of {check.reached:,} {check.what} violate it"
