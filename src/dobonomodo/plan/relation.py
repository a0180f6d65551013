"""The relational nodes that every operation comes down to. The engine is one ``match`` over them.

A node says what rows there are, never how to get them; expressions in it are checked trees.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from dobonomodo.formula import Columns, Typed
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.plan.destination import Destination


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """The columns of rows: their own, and those that joins have put beside them as ``alias.column``."""

    own: Columns
    joined: Mapping[str, Columns] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """The stored rows of a dataset that belong to the run's period, with every system column in place."""

    use: DatasetUse
    schema: Schema


@dataclass(frozen=True, slots=True, eq=False)
class Keep:
    """The rows for which a condition is true; where it is unknown, the row goes."""

    rows: Rel
    condition: Typed
    schema: Schema


@dataclass(frozen=True, slots=True, eq=False)
class Derive:
    """The same rows with some columns computed anew, all from the values before; new ones come last."""

    rows: Rel
    values: Mapping[str, Typed]
    schema: Schema


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """The same rows with the columns of at most one matching row of ``source`` beside them, NULL without a match.

    Only rows for which ``only`` is true take part; one of them with more than one match fails the run.
    """

    rows: Rel
    alias: str
    source: Rel
    on: Typed
    only: Typed
    schema: Schema


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """One row a group: the keys, NULL being a key like any other, and what is computed over the group."""

    rows: Rel
    keys: Mapping[str, Typed]
    values: Mapping[str, Typed]
    schema: Schema


@dataclass(frozen=True, slots=True, eq=False)
class AssignIds:
    """The same rows with new row ids, made from the run, the operation and the values of ``by``."""

    rows: Rel
    seq: int
    by: tuple[str, ...]
    schema: Schema


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """The rows of both, which have the same columns."""

    rows: Rel
    more: Rel
    schema: Schema


Rel = Scan | Keep | Derive | Lookup | Group | AssignIds | Stack


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    """Rows that go to a destination: these columns in this order."""

    rows: Rel
    columns: tuple[str, ...]
    destination: Destination
    mode: Literal["replace", "append"]
    register_as: str | None
    include_deleted: bool


def inputs_of(node: Rel) -> tuple[Rel, ...]:
    """The nodes that a node is made from."""
    match node:
        case Scan():
            return ()
        case Lookup():
            return (node.rows, node.source)
        case Stack():
            return (node.rows, node.more)
        case _:
            return (node.rows,)


def walk_relation(node: Rel) -> Iterator[Rel]:
    """A node and everything below it, each once."""
    seen: set[int] = set()
    stack = [node]
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        stack.extend(inputs_of(current))


def walk_between(node: Rel, stop: Rel) -> Iterator[Rel]:
    """A node and what is below it, down to ``stop`` and without that."""
    if node is stop:
        return
    yield node
    for each in inputs_of(node):
        yield from walk_between(each, stop)


def expressions_of(node: Rel) -> Iterator[Typed]:
    """What a node computes or tests."""
    match node:
        case Keep():
            yield node.condition
        case Derive():
            yield from node.values.values()
        case Lookup():
            yield node.on
            yield node.only
        case Group():
            yield from node.keys.values()
            yield from node.values.values()
        case _:
            return
