"""The columns of each node that something reads: the others are not part of its frame.

Spark leaves out what nothing reads too, but only after it has analysed every expression of every frame. A working dataset has a
dozen system columns that most projects never read, so frames without them are built in less time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dobonomodo.engine.tracking import Tracked
from dobonomodo.formula import Typed, columns_of, flat_name
from dobonomodo.plan.relation import (
    Ancestors,
    AssignIds,
    Derive,
    Expand,
    Group,
    Keep,
    Lookup,
    Match,
    Rel,
    Require,
    Reshape,
    Scan,
    Stack,
    Window,
    inputs_of,
)
from dobonomodo.plan.system import ROW_ID


@dataclass(frozen=True, slots=True)
class Needs:
    """What is read of nodes; everything of a node that is not known."""

    by_node: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """The names of columns in a frame, by the identity of its node."""

    def of(self, node: Rel) -> list[str]:
        """The columns that the frame of a node has."""
        found = self.by_node.get(id(node))
        return node.schema.names if found is None else [name for name in node.schema.names if name in found]

    def of_alias(self, node: Lookup | Match | Window) -> list[str]:
        """Those of them that the node itself adds, by their names without the alias."""
        found = self.by_node.get(id(node))
        added = node.schema.joined[node.alias]
        return [name for name in added if found is None or f"{node.alias}.{name}" in found]


def find_needs(roots: Sequence[tuple[Rel, Iterable[str]]], tracked: Tracked) -> Needs:
    """What is read of all nodes, if ``roots`` are read, and ``tracked`` is recorded on the way."""
    found: dict[int, set[str]] = {}
    nodes = [node for node, _ in roots]
    for node, names in roots:
        found.setdefault(id(node), set()).update(names)
    for node in _from_the_top(nodes):
        own = found.setdefault(id(node), set())
        own.update(_read_beside(node, tracked))
        own.intersection_update(node.schema.names)
        if not own:
            # Rows are counted although no value of them is read.
            own.update(node.schema.names[:1])
        for below, names in _read_below(node, own, tracked):
            found.setdefault(id(below), set()).update(names)
    return Needs({number: frozenset(names) for number, names in found.items()})


def names_in(*expressions: Typed) -> Iterator[str]:
    """The columns that expressions read, by their names in a frame."""
    return (flat_name(column) for each in expressions for column in columns_of(each))


def _from_the_top(roots: Iterable[Rel]) -> list[Rel]:
    """All nodes below some, each after every node that reads it."""
    seen: set[int] = set()
    done: list[Rel] = []
    for root in roots:
        pending = [(root, False)]
        while pending:
            node, is_left = pending.pop()
            if is_left:
                done.append(node)
            elif id(node) not in seen:
                seen.add(id(node))
                pending.append((node, True))
                pending.extend((below, False) for below in inputs_of(node))
    return done[::-1]


def _read_beside(node: Rel, tracked: Tracked) -> Iterator[str]:
    """What is read of the rows of a node whoever reads them: values that are kept, and what tells about a join."""
    for each in tracked.values.get(id(node), ()):
        yield from names_in(each.value)
    if isinstance(node, Lookup | Match):
        yield from names_in(node.on, node.only)


def _read_below(node: Rel, own: set[str], tracked: Tracked) -> Iterator[tuple[Rel, Iterable[str]]]:
    """What a node reads of its inputs, where ``own`` is read of it."""
    match node:
        case Scan():
            return
        case Keep():
            yield node.rows, {*own, *names_in(node.condition)}
        case Require():
            yield node.rows, {*own, *names_in(node.violated, *node.shown)}
        case Derive() | Reshape():
            computed = [value for name, value in node.values.items() if name in own]
            yield node.rows, {*own.difference(node.values), *names_in(*computed), *_recorded(node, tracked)}
        case Stack():
            yield node.rows, {*own, *_recorded(node, tracked)}
            yield node.more, own
        case Lookup() | Match():
            joined = {f"{node.alias}.{name}": name for name in node.schema.joined[node.alias]}
            yield node.source, {joined[name] for name in own if name in joined}
            yield node.rows, own.difference(joined)
        case Window():
            made = {f"{node.alias}.{name}": over for name, over in node.values.items()}
            yield node.rows, {*own.difference(made), *names_in(*(made[name] for name in own if name in made))}
        case Group():
            values = (value for name, value in node.values.items() if name in own)
            yield node.rows, set(names_in(*node.keys.values(), *values))
        case AssignIds():
            yield node.rows, {*own.difference((ROW_ID,)), *node.by}
        case Expand():
            added = node.choices[0]
            values = (value for choice in node.choices for value in choice.values())
            yield node.rows, {*own.difference(added), *names_in(*values)}
        case Ancestors():
            yield node.rows, set(names_in(node.child, node.parent))


def _recorded(node: Derive | Reshape | Stack, tracked: Tracked) -> Iterator[str]:
    """What is recorded of an operation: which rows it selects, and what values were before it."""
    if mark := tracked.marks.get(id(node)):
        yield from names_in(mark.selected)
    yield from (each.column for each in tracked.kept.get(id(node), ()))
