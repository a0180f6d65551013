"""An interpreter of the lowered plan for the wanted rows: one rule per node.

Known values are pushed down to the scans (predicate pushdown), so that only matching rows are read; then rows are computed
upwards, and each keeps its lineage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import assert_never

from dobonomodo.engine.rowid import IdSeed, write_id_by_key
from dobonomodo.formula import ColumnRef, Typed, columns_of, flat_name
from dobonomodo.formula.evaluate import compute, compute_over, evaluate_group
from dobonomodo.formula.meaning import Value, as_value, write_number
from dobonomodo.formula.typed import Cast, Literal, Operation
from dobonomodo.formula.types import Type, is_number
from dobonomodo.plan.condition import parts_of
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.relation import (
    ANCESTOR,
    DEPTH,
    NODE,
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
)
from dobonomodo.plan.system import PLACE, ROW_ID
from dobonomodo.plan.tree import Above, find_ancestors
from dobonomodo.why.amount import amount_of, arguments_of
from dobonomodo.why.loading import Loader
from dobonomodo.why.row import AT_MOST, LargeGroups, TooManyRows, Traced, Wanted, satisfies

_Single = Keep | Derive | Reshape | Lookup | Window | AssignIds | Require
"""Nodes that keep rows, or drop some."""
_Below = tuple[dict[str, frozenset[Value]], frozenset[str] | None]
"""What is known of the rows of an input, and which of its columns are enough."""

_Question = tuple[int, frozenset[tuple[str, frozenset[Value]]], frozenset[str] | None]
"""A node, what is known of its rows, and which columns are enough."""


class Interpreter:
    """Computes rows of nodes."""

    def __init__(
        self,
        loader: Loader,
        *,
        facts: RunFacts,
        seed: IdSeed,
        always: frozenset[str] = frozenset(),
        large: LargeGroups | None = None,
        by: str | None = None,
    ) -> None:
        self._loader, self._facts, self._seed, self._large = loader, facts, seed, large
        self._always = always | {ROW_ID}
        """Columns of the rows of groups that are needed to name them."""
        self._by = by.casefold() if by is not None else None
        """The total by which the rows of large groups are sorted; the default is the first one."""
        self.dropped: list[Traced] = []
        """The rows that a filter has dropped, each as it was before it, with the node of the filter."""
        self._found: dict[_Question, list[Traced]] = {}
        """A cache of earlier searches: the rows of a partition or of a tree are needed several times."""

    def find(self, node: Rel, wanted: Wanted, needed: frozenset[str] | None = None) -> list[Traced]:
        """The rows of a node that have wanted values; ``needed`` are the columns that are enough."""
        question = (id(node), frozenset(wanted.items()), needed)
        found = self._found.get(question)
        if found is None:
            found = self._found[question] = self._find(node, wanted, needed)
        return found

    def _find(self, node: Rel, wanted: Wanted, needed: frozenset[str] | None) -> list[Traced]:
        chain: list[tuple[_Single, Wanted, frozenset[str] | None]] = []
        here, known, enough = node, wanted, needed if needed is None else needed | set(wanted)
        while not isinstance(here, Scan | Group | Stack | Match | Expand | Ancestors):
            below = self._push(here, known, enough)
            if below is None:
                return []
            chain.append((here, known, enough))
            (known, enough), here = below, here.rows
        rows = self._find_branch(here, known, enough)
        for each, known, enough in reversed(chain):
            rows = [row for row in self._lift(each, rows, enough) if satisfies(row.values, known)]
        return rows

    # --- down

    def _push(self, node: _Single, wanted: Wanted, needed: frozenset[str] | None) -> _Below | None:
        """The known values of the rows below; None if no row can match."""
        match node:
            case Keep():
                return dict(wanted), _with(needed, [node.condition])
            case Require():
                return dict(wanted), needed
            case Derive() | Reshape():
                return self._push_values(node, wanted, needed)
            case AssignIds():
                own = {name: allowed for name, allowed in wanted.items() if name != ROW_ID}
                return own, None if needed is None else needed | set(node.by)
            case Lookup():
                own = {name: allowed for name, allowed in wanted.items() if name in node.rows.schema.names}
                enough = None if needed is None else frozenset(n for n in needed if not n.startswith(f"{node.alias}."))
                return own, _with(enough, [node.only, *_without_alias(node.on, node.alias)])
            case Window():
                own = {name: allowed for name, allowed in wanted.items() if name in node.rows.schema.names}
                enough = None if needed is None else frozenset(n for n in needed if not n.startswith(f"{node.alias}."))
                return own, _with(enough, node.values.values())
            case _:
                assert_never(node)

    def _push_values(self, node: Derive | Reshape, wanted: Wanted, needed: frozenset[str] | None) -> _Below | None:
        known: dict[str, frozenset[Value]] = {}
        for name, allowed in wanted.items():
            value = node.values.get(name)
            if value is None:
                known[name] = allowed
                continue
            bare = without_casts(value)
            if isinstance(bare, Literal):
                if compute(value, {}, self._facts) not in allowed:
                    return None
            elif isinstance(bare, ColumnRef) and _are_alike(value.type, bare.type):
                below = flat_name(bare)
                known[below] = known[below] & allowed if below in known else allowed
        if needed is None:
            return known, None
        kept = frozenset(name for name in needed if name not in node.values)
        return known, _with(kept, [value for name, value in node.values.items() if name in needed])

    # --- where rows come from

    def _find_branch(
        self, node: Scan | Group | Stack | Match | Expand | Ancestors, wanted: Wanted, needed: frozenset[str] | None
    ) -> list[Traced]:
        match node:
            case Scan():
                return self._loader.load(node, wanted, needed)
            case Stack():
                return self._find_stacked(node, wanted, needed)
            case Group():
                return [row for row in self._find_groups(node, wanted) if satisfies(row.values, wanted)]
            case Match():
                own = {name: allowed for name, allowed in wanted.items() if name in node.rows.schema.names}
                rows = self.find(node.rows, own, None)
                return [row for row in self._match(node, rows) if satisfies(row.values, wanted)]
            case Expand():
                own = {name: allowed for name, allowed in wanted.items() if name in node.rows.schema.names}
                rows = self.find(node.rows, own, None)
                return [row for row in self._expand(node, rows) if satisfies(row.values, wanted)]
            case Ancestors():
                return [row for row in self._find_ancestors(node) if satisfies(row.values, wanted)]
            case _:
                assert_never(node)

    def _find_stacked(self, node: Stack, wanted: Wanted, needed: frozenset[str] | None) -> list[Traced]:
        rows = self.find(node.rows, wanted, needed)
        joined = {f"{alias}.{name}": None for alias, columns in node.schema.joined.items() for name in columns}
        own = {name: allowed for name, allowed in wanted.items() if name not in joined}
        are_null = all(None in allowed for name, allowed in wanted.items() if name in joined)
        more = self.find(node.more, own, needed) if are_null else []
        return [
            *(replace(row, node=node, below=(row,)) for row in rows),
            *(replace(row, node=node, below=(row,), values={**joined, **row.values}) for row in more),
        ]

    def _find_groups(self, node: Group, wanted: Wanted) -> Iterator[Traced]:
        known = {
            flat_name(key): wanted[name]
            for name, key in node.keys.items()
            if name in wanted and isinstance(key, ColumnRef)
        }
        used = _with(self._always & set(node.rows.schema.names), [*node.keys.values(), *node.values.values()])
        try:
            found = self.find(node.rows, known, used)
        except TooManyRows:
            if self._large is None:
                raise
            yield from self._find_large(self._large, node, wanted)
            return
        members: dict[tuple[Value, ...], list[Traced]] = {}
        for row in found:
            key = tuple(compute(each, row.values, self._facts) for each in node.keys.values())
            members.setdefault(key, []).append(row)
        for key, rows in members.items():
            values: dict[str, Value] = dict(zip(node.keys, key, strict=True))
            given = [row.values for row in rows]
            for name, value in node.values.items():
                values[name] = evaluate_group(value, given, self._facts).get()
            yield Traced(node, values, tuple(rows), (id(node), *key))

    def find_members(self, group: Traced, wanted: Wanted) -> list[Traced]:
        """The rows of a group that have wanted values, with all their columns."""
        node = group.node
        if not isinstance(node, Group):
            raise TypeError("not a group")
        known = dict(wanted)
        for name, key in node.keys.items():
            if isinstance(key, ColumnRef):
                own = frozenset([group.values[name]])
                known[flat_name(key)] = known[flat_name(key)] & own if flat_name(key) in known else own
        return [
            row
            for row in self.find(node.rows, known)
            if all(compute(key, row.values, self._facts) == group.values[name] for name, key in node.keys.items())
        ]

    def _find_large(self, large: LargeGroups, node: Group, wanted: Wanted) -> Iterator[Traced]:
        keys = {name: wanted[name] for name in node.keys if name in wanted}
        names = [name for name in node.rows.schema.columns if name in self._always and name != ROW_ID]
        shares: dict[str, Typed] = {}
        for name, value in sorted(node.values.items(), key=lambda each: each[0].casefold() != f"={self._by}"):
            amount = amount_of(value, node.keys.values(), self._facts)
            shares |= {name: amount} if amount is not None else arguments_of(value)
        for value in node.values.values():
            shares |= arguments_of(value)
        for each in large.read(node, keys, names=names, shares=shares):
            identity = (id(node), *(each.values[name] for name in node.keys))
            yield Traced(node, each.values, (), identity, large=each)

    # --- up

    def _lift(self, node: _Single, rows: list[Traced], needed: frozenset[str] | None) -> Iterable[Traced]:
        match node:
            case Keep():
                return self._keep(node, rows)
            case Require():
                return [replace(row, node=node, below=(row,)) for row in rows]  # the run has met it
            case Derive() | Reshape():
                return [self._derive(node, row, needed) for row in rows]
            case AssignIds():
                return [self._identify(node, row) for row in rows]
            case Lookup():
                return self._look_up(node, rows, needed)
            case Window():
                return self._window(node, rows)
            case _:
                assert_never(node)

    def _keep(self, node: Keep, rows: list[Traced]) -> Iterator[Traced]:
        for row in rows:
            made = replace(row, node=node, below=(row,))
            if compute(node.condition, row.values, self._facts) is True:
                yield made
            else:
                self.dropped.append(made)

    def _derive(self, node: Derive | Reshape, row: Traced, needed: frozenset[str] | None) -> Traced:
        values: dict[str, Value] = {}
        if isinstance(node, Derive):
            gone = tuple(f"{alias}." for alias in node.forget)
            values = {name: value for name, value in row.values.items() if not gone or not name.startswith(gone)}
        elif PLACE in row.values:
            values[PLACE] = row.values[PLACE]
        for name, value in node.values.items():
            if needed is None or name in needed:
                values[name] = compute(value, row.values, self._facts)
        return replace(row, node=node, values=values, below=(row,))

    def _identify(self, node: AssignIds, row: Traced) -> Traced:
        keys = [write_key(row.values[name]) for name in node.by]
        made = write_id_by_key(self._seed, f"operation/{node.seq}", keys)
        return replace(row, node=node, values={**row.values, ROW_ID: made}, below=(row,))

    def _look_up(self, node: Lookup, rows: list[Traced], needed: frozenset[str] | None) -> Iterator[Traced]:
        """Each row with at most one match. If no joined column is needed, the source is not read."""
        names = [f"{node.alias}.{name}" for name in node.schema.joined[node.alias]]
        missing: dict[str, Value] = dict.fromkeys(names)
        if needed is not None and not needed & missing.keys():
            yield from (replace(row, node=node, values={**row.values, **missing}, below=(row,)) for row in rows)
            return
        for row, found in self._pair(node, rows):
            if len(found) > 1:
                raise SeveralMatches(node)
            joined = found[0] if found else None
            values = {**row.values, **(_beside(node, joined) if joined is not None else missing)}
            below = (row,) if joined is None else (row, joined)
            yield replace(row, node=node, values=values, below=below)

    def _expand(self, node: Expand, rows: list[Traced]) -> Iterator[Traced]:
        for row in rows:
            for number, choice in enumerate(node.choices):
                given = {name: compute(value, row.values, self._facts) for name, value in choice.items()}
                identity = (*row.identity, number)
                yield replace(row, node=node, values={**row.values, **given}, below=(row,), identity=identity)

    def _find_ancestors(self, node: Ancestors) -> Iterator[Traced]:
        rows = self.find(node.rows, {}, None)
        pairs = [(row.values[node.child.name], row.values[node.parent.name]) for row in rows]
        tree: list[Above[Value]] = find_ancestors(pairs)
        for each in tree:
            values: dict[str, Value] = {NODE: each.node, ANCESTOR: each.ancestor, DEPTH: each.depth}
            yield Traced(node, values, tuple(rows), (id(node), each.node, each.depth))

    def _match(self, node: Match, rows: list[Traced]) -> Iterator[Traced]:
        for row, found in self._pair(node, rows):
            if node.unmatched and not found and compute(node.only, row.values, self._facts) is True:
                names = [f"{node.alias}.{name}" for name in node.schema.joined[node.alias]]
                yield replace(row, node=node, values={**row.values, **dict.fromkeys(names)}, below=(row,))
            for joined in found:
                values = {**row.values, **_beside(node, joined)}
                identity = (*row.identity, *joined.identity)
                yield replace(row, node=node, values=values, below=(row, joined), identity=identity)

    def _pair(self, node: Lookup | Match, rows: list[Traced]) -> list[tuple[Traced, list[Traced]]]:
        """Each row with the rows of the source that match it; those of all rows are read at once."""
        keys = find_keys(node.on, node.alias)
        looking: list[tuple[Traced, tuple[Value, ...]]] = []
        paired: dict[int, list[Traced]] = {}
        for row in rows:
            if compute(node.only, row.values, self._facts) is True:
                key = tuple(compute(each, row.values, self._facts) for each, _ in keys)
                if None not in key:
                    looking.append((row, key))
        wanted = {name: frozenset(key[at] for _, key in looking) for at, (_, name) in enumerate(keys)}
        source: dict[tuple[Value, ...], list[Traced]] = {}
        for each in self.find(node.source, wanted) if looking else ():
            source.setdefault(tuple(each.values[name] for _, name in keys), []).append(each)
        if not keys and len(looking) * len(source.get((), ())) > AT_MOST * 20:
            raise TooManyRows(next(_scans(node.source)).use)
        for row, key in looking:
            paired[id(row)] = [
                each
                for each in source.get(key, ())
                if compute(node.on, {**row.values, **_beside(node, each)}, self._facts) is True
            ]
        return [(row, paired.get(id(row), [])) for row in rows]

    def _window(self, node: Window, rows: list[Traced]) -> Iterator[Traced]:
        """Each row with the values of its windows; the other rows of its partitions are looked for."""
        for row in rows:
            values, seen = dict(row.values), []
            for name, over in node.values.items():
                known = {
                    flat_name(key): frozenset([row.values[flat_name(key)]])
                    for key in over.partition
                    if isinstance(key, ColumnRef)
                }
                others = self.find(node.rows, known, _with(frozenset(), [over]))
                at = next((number for number, each in enumerate(others) if each.identity == row.identity), None)
                if at is None:
                    raise AssertionError("a row is in its own partition")
                given = [{PLACE: 0, **each.values} for each in others]
                values[f"{node.alias}.{name}"] = compute_over(over, given, at, self._facts)
                seen += others
            yield replace(row, node=node, values=values, below=(row, *seen))


class SeveralMatches(Exception):
    """A row has several matches in a lookup, which would have stopped the run: its inputs are others now."""

    def __init__(self, node: Lookup) -> None:
        super().__init__(node.alias)
        self.alias = node.alias


def find_keys(on: Typed, alias: str) -> list[tuple[Typed, str]]:
    """What a condition compares with columns of an alias: values of the rows, and the columns."""
    found = []
    for part in conjuncts(on):
        if not isinstance(part, Operation) or part.operator != "=":
            continue
        for one, other in (part.operands, part.operands[::-1]):
            bare = without_casts(other)
            own = not any(each.qualifier == alias for each in columns_of(one))
            if own and isinstance(bare, ColumnRef) and bare.qualifier == alias and _are_alike(one.type, bare.type):
                found.append((one, bare.name))
                break
    return found


def conjuncts(condition: Typed) -> Iterator[Typed]:
    """The parts of a condition that must all be true."""
    if isinstance(condition, Operation) and condition.operator == "AND":
        for each in condition.operands:
            yield from conjuncts(each)
    else:
        yield condition


def write_key(value: Value) -> str | None:
    """A value as Spark writes it in a text."""
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case str():
            return value
        case Decimal():
            return write_number(value)
        case _:
            return str(value)


def _with(needed: frozenset[str] | None, expressions: Iterable[Typed]) -> frozenset[str] | None:
    """The columns that are needed, and those that expressions read."""
    if needed is None:
        return None
    return needed | {flat_name(column) for each in expressions for column in columns_of(each)}


def _without_alias(on: Typed, alias: str) -> Sequence[Typed]:
    return [column for column in columns_of(on) if column.qualifier != alias]


def _beside(node: Lookup | Match, joined: Traced) -> Mapping[str, Value]:
    return {f"{node.alias}.{name}": joined.values[name] for name in node.schema.joined[node.alias]}


def constants_of(rows: Rel) -> Iterator[tuple[str, Value]]:
    """What a filter says of all rows that pass it: columns that equal a constant, such as the number of an operation."""
    for part in parts_of(rows.condition) if isinstance(rows, Keep) else ():
        if isinstance(part, Operation) and part.operator == "=":
            column, constant = part.operands
            if isinstance(column, ColumnRef) and isinstance(constant, Literal) and column.type == constant.type:
                yield flat_name(column), as_value(constant.value)


def without_casts(value: Typed) -> Typed:
    """What a value is converted from."""
    while isinstance(value, Cast):
        value = value.operand
    return value


def _are_alike(one: Type, other: Type) -> bool:
    """Whether equal values of two types are the same in Python."""
    return one == other or (is_number(one) and is_number(other))


def _scans(node: Rel) -> Iterator[Scan]:
    from dobonomodo.plan.relation import walk_relation

    return (each for each in walk_relation(node) if isinstance(each, Scan))
