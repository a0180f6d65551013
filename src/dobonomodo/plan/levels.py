"""Subtotals: groups of several levels at once, and totals of the nodes of a tree over one of their keys.

Rows are read once: each is expanded to the keys of every level that it counts for, then all are grouped together (GROUPING SETS).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dobonomodo.formula import ColumnRef, Typed, convert, rewrite
from dobonomodo.formula.typed import Apply, Operation
from dobonomodo.formula.types import BOOLEAN, INTEGER, TEXT
from dobonomodo.plan.check import Check, RowCondition
from dobonomodo.plan.expression import FALSE, TRUE, all_of, equal, if_else, integer, null, text
from dobonomodo.plan.relation import ANCESTOR, DEPTH, NODE, Ancestors, Derive, Expand, Group, Keep, Lookup, Match, Rel
from dobonomodo.plan.rows import Rows
from dobonomodo.problems import OperationRef

ALL = "all"
"""The level of one row over everything."""
LEVEL = " level"
"""The key that distinguishes levels."""
_TREE = " tree"
_OF_NODE = " of node"


@dataclass(frozen=True, slots=True)
class Level:
    """One kind of summary rows."""

    name: str
    keys: tuple[str, ...]
    """The group keys that it keeps; the others are NULL."""


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A tree over the values of a group key."""

    key: str
    column: ColumnRef
    """The column of the rows that the key is."""
    pairs: Ancestors

    @property
    def match(self) -> Typed:
        """Which pairs belong to a row."""
        node = ColumnRef(NODE, _TREE, self.pairs.schema.columns[NODE])
        return equal(self.column, convert(node, self.column.type))


def name_of_nodes(level: str) -> str:
    """The name of the level of node totals; groups have their own level."""
    return f"{level} total"


def roll_up(group: Group, keys: Mapping[str, ColumnRef], levels: Sequence[Level], tree: Tree | None) -> Group:
    """The groups of all levels, with the level as one more key."""
    over: Rel = group.rows
    if tree is not None:
        over = Match(over, _TREE, tree.pairs, tree.match, TRUE, unmatched=True)
    choices = [choice for level in levels for choice in _choices(level, keys, tree)]
    expanded: Rel = Expand(over, tuple(choices))
    if tree is not None:
        above = Operation(">", (ColumnRef(DEPTH, _TREE, INTEGER), integer(0)), BOOLEAN)
        expanded = Keep(expanded, equal(ColumnRef(_OF_NODE, None, BOOLEAN), if_else(above, TRUE, FALSE)))
    grouped: dict[str, Typed] = {name: ColumnRef(_hidden(name), None, key.type) for name, key in keys.items()}
    expanded_key = {key: grouped[name] for name, key in keys.items()}
    values = {name: _with_keys(value, expanded_key) for name, value in group.values.items()}
    return Group(expanded, {**grouped, LEVEL: ColumnRef(LEVEL, None, TEXT)}, values)


def _hidden(key: str) -> str:
    """The hidden column for a key in the levels of a row; names of users never begin with a blank."""
    return f" {key}"


def _choices(level: Level, keys: Mapping[str, ColumnRef], tree: Tree | None) -> list[dict[str, Typed]]:
    """The keys of a row in a level, and with a tree those of the nodes above it."""
    own: dict[str, Typed] = {_hidden(name): key if name in level.keys else null(key.type) for name, key in keys.items()}
    if tree is None:
        return [{**own, LEVEL: text(level.name)}]
    found: list[dict[str, Typed]] = [{**own, LEVEL: text(level.name), _OF_NODE: FALSE}]
    if tree.key in level.keys:
        ancestor = ColumnRef(ANCESTOR, _TREE, tree.pairs.schema.columns[ANCESTOR])
        node = {**own, _hidden(tree.key): convert(ancestor, tree.column.type)}
        found.append({**node, LEVEL: text(name_of_nodes(level.name)), _OF_NODE: TRUE})
    return found


def _with_keys(value: Typed, keys: Mapping[ColumnRef, Typed]) -> Typed:
    """A formula whose keys are those of the level; inside of aggregates columns are those of the rows."""

    def change(node: Typed) -> Typed | None:
        if isinstance(node, Apply) and node.function.is_aggregate:
            return node
        return keys.get(node) if isinstance(node, ColumnRef) else None

    return rewrite(value, change)


def watch_leaves(rows: Rows, selected: Typed, tree: Tree, operation: OperationRef) -> tuple[Rows, Check]:
    """The rows, and a check that warns of values that are not in the tree: each is a root of its own."""
    roots = Keep(tree.pairs, equal(ColumnRef(DEPTH, None, INTEGER), integer(0)))
    found = Lookup(rows.node, _TREE, roots, tree.match, selected)
    present = Operation("IS NOT NULL", (tree.column,), BOOLEAN)
    absent = Operation("IS NULL", (ColumnRef(NODE, _TREE, tree.pairs.schema.columns[NODE]),), BOOLEAN)
    condition = RowCondition(found, selected, all_of(selected, present, absent), (tree.column.name,))
    said = f"{tree.column.name} is a node of {tree.pairs.dataset_id}"
    check = Check(operation.seq, operation.name, "warn", True, said, condition)
    return replace(rows, node=Derive(found, {}, forget=frozenset({_TREE}))), check
