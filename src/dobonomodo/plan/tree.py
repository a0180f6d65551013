"""A tree of values, such as accounts and report lines, given as pairs of child and parent: who is above whom."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from dobonomodo.problems.run import HierarchyReason

NODES_AT_MOST = 100_000
"""Pairs of child and parent that are read of a hierarchy."""
PAIRS_AT_MOST = 2_000_000
"""Pairs of a node and one above it that are computed of them."""

N = TypeVar("N", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Above(Generic[N]):
    """A node, and a total that its rows count for.

    ``depth`` is 0 for the group of the node itself. From 1 on it counts the totals: of the node, if it has others below it, and of
    those above it.
    """

    node: N
    ancestor: N
    depth: int


class NotATree(Exception):
    """Pairs that do not form a tree, with the nodes that prove it."""

    def __init__(self, reason: HierarchyReason, nodes: tuple[object, ...] = ()) -> None:
        super().__init__(reason)
        self.reason, self.nodes = reason, nodes


def find_ancestors(pairs: Iterable[tuple[N | None, N | None]]) -> list[Above[N]]:
    """Every node with itself and all totals that it counts for.

    A pair without a child only declares its parent as a node; a pair without a parent declares that the child may be a root.
    A node with two parents, or above itself, is refused.
    """
    parents: dict[N, N | None] = {}
    for child, parent in pairs:
        if child is None:
            if parent is not None:
                parents.setdefault(parent, None)
            continue
        known = parents.get(child)
        if known is not None and parent is not None and known != parent:
            raise NotATree(HierarchyReason.SECOND_PARENT, (child, *sorted((known, parent), key=str)))
        parents[child] = parent if parent is not None else known
        if parent is not None:
            parents.setdefault(parent, None)
    inner = set(parents.values())
    found: list[Above[N]] = []
    for node in parents:
        way: dict[N, None] = {}
        here: N | None = node
        while here is not None:
            if here in way:
                cycle = list(way)[list(way).index(here) :]
                raise NotATree(HierarchyReason.CYCLE, (*cycle, here))
            way[here] = None
            here = parents[here]
            if len(found) + len(way) > PAIRS_AT_MOST:
                raise NotATree(HierarchyReason.TOO_LARGE)
        found.append(Above(node, node, 0))
        totals = list(way) if node in inner else list(way)[1:]
        found += [Above(node, each, depth) for depth, each in enumerate(totals, start=1)]
    return found
