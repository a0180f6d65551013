"""Formulas of groups of several levels: what they are in the groups of one level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dobonomodo.formula import ColumnRef, Typed, flat_name, rewrite
from dobonomodo.formula.moment import Day, Moment
from dobonomodo.formula.typed import Apply, Literal
from dobonomodo.plan.expression import text
from dobonomodo.plan.levels import LEVEL
from dobonomodo.plan.operations.lowered import Formula
from dobonomodo.plan.relation import Expand, Group, Keep, Rel
from dobonomodo.why.row import Traced


def find_constants(group: Traced) -> frozenset[Typed]:
    """The expressions that have the same value in all rows of a group: its keys, also as formulas name them."""
    if not isinstance(group.node, Group):
        return frozenset()
    keys, expand = frozenset(group.node.keys.values()), _expand_of(group.node.rows)
    if expand is None:
        return keys
    level = text(str(group.values[LEVEL]))
    choices = [frozenset(choice.values()) for choice in expand.choices if choice[LEVEL] == level]
    return keys | frozenset.intersection(*choices)


def formulas_of(group: Traced, formulas: Mapping[str, Formula]) -> Mapping[str, Formula]:
    """The formulas with the values of the group for the keys that its level does not keep.

    In a subtotal these are NULL, in the total of a node they are the node, whatever the rows have.
    """
    if not isinstance(group.node, Group) or (expand := _expand_of(group.node.rows)) is None:
        return formulas
    constants, values = find_constants(group), dict[Typed, Typed]()
    for name, hidden in group.node.keys.items():
        # The first choice is that of the groups, which keep all keys.
        written = expand.choices[0][flat_name(hidden)] if isinstance(hidden, ColumnRef) else hidden
        if isinstance(written, ColumnRef) and written not in constants:
            value = group.values[name]
            values[written] = hidden if isinstance(value, Day | Moment) else Literal(value, written.type)

    def change(node: Typed) -> Typed | None:
        return node if isinstance(node, Apply) and node.function.is_aggregate else values.get(node)

    return {name: replace(each, tree=rewrite(each.tree, change)) for name, each in formulas.items()}


def _expand_of(rows: Rel) -> Expand | None:
    """Where rows are expanded to the keys of several levels."""
    while isinstance(rows, Keep):
        rows = rows.rows
    return rows if isinstance(rows, Expand) else None
