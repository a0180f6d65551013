"""The windows of an update: which rows they see, and in which order rows come that are equal in all keys of a window.

A window sees the selected rows alone. They form separate partitions, so that rows are neither split nor read twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from dobonomodo.formula import ColumnRef, Typed
from dobonomodo.formula.typed import Literal, Order, Over, windows_of
from dobonomodo.formula.types import INTEGER
from dobonomodo.plan.expression import ACTIVE, FALSE, TRUE, column, equal, if_else, integer, null
from dobonomodo.plan.relation import Rel, Window
from dobonomodo.plan.rows import Rows
from dobonomodo.plan.system import OPERATION_SEQ, PLACE

ALIAS = " over"
"""The alias of window columns. No alias of users starts with a blank."""


def compute_windows(
    rows: Rows, below: Rel, values: Iterable[Typed], *, selected: Typed
) -> tuple[Rel, dict[Over, Typed]]:
    """The node that computes all windows of some values, and for each window the column that has its value."""
    found = dict.fromkeys(over for value in values for over in windows_of(value))
    if not found:
        return below, {}
    ties = tuple(_break_ties(rows))
    numbered = {str(number): over for number, over in enumerate(found)}
    node = Window(below, ALIAS, {name: _among(over, selected, ties) for name, over in numbered.items()})
    return node, {over: ColumnRef(name, ALIAS, over.type) for name, over in numbered.items()}


def _among(over: Over, selected: Typed, ties: tuple[Order, ...]) -> Over:
    """The same window over the selected rows. For other rows nothing is computed that could fail."""
    safe = over.with_operands([_where(selected, each) for each in over.operands])
    mask = selected if selected == ACTIVE else if_else(selected, TRUE, FALSE)
    window = over.call.function.window
    order = (*safe.order, *ties) if window is not None and window.breaks_ties else safe.order
    return replace(safe, partition=(mask, *safe.partition), order=order)


def _where(selected: Typed, value: Typed) -> Typed:
    return value if isinstance(value, ColumnRef | Literal) else if_else(selected, value, null(value.type))


def _break_ties(rows: Rows) -> Iterator[Order]:
    """By the operation that made a row, then its natural or group key, then its place in the source.

    Ids are not suitable: they depend on the clock, so that another run would break ties differently.
    """
    several = len(rows.keys) > 1
    made_by = column(OPERATION_SEQ, rows.columns)
    if several:
        yield Order(made_by)
    for seq, names in rows.keys.items():
        for name in names:
            key = column(name, rows.columns)
            yield Order(if_else(equal(made_by, integer(seq)), key, null(key.type)) if several else key)
    yield Order(ColumnRef(PLACE, None, INTEGER))
