"""The relational nodes that every operation is lowered to.

The engine is one ``match`` over them. A node defines rows, never how to compute them; its expressions are checked trees. It
computes its schema from its inputs, once, and raises for expressions that do not fit: that would be a bug of the operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from dobonomodo.formula import ColumnRef, Columns, Type, Typed, columns_of
from dobonomodo.formula.typed import Over
from dobonomodo.formula.types import BOOLEAN, INTEGER, TEXT, UNKNOWN
from dobonomodo.plan.columns import columns_with, joined_columns
from dobonomodo.plan.dataset import DatasetUse, working_columns
from dobonomodo.plan.destination import Destination
from dobonomodo.plan.system import PLACE, ROW_ID, SYNONYMS
from dobonomodo.problems import InternalError, OperationRef

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """The columns of rows, and the columns of joins and windows as ``alias.column``."""

    columns: Columns
    joined: Mapping[str, Columns] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of all columns in a frame."""
        return [*self.columns, *(f"{alias}.{name}" for alias, columns in self.joined.items() for name in columns)]


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """Scan: the stored rows of a dataset that belong to the run's period, with all system columns."""

    use: DatasetUse
    carried: Mapping[str, Type] = field(default_factory=dict)
    """System columns that stored rows may have whatever the temporal mode is; NULL where they do not."""
    placed: bool = False
    """Whether rows carry their place, for a match that sorts by it."""
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        columns = working_columns(self.use.columns, self.use.temporal_mode)
        more = {name: kind for name, kind in self.carried.items() if name not in columns}
        _set_schema(self, Schema(Columns({**columns, **more}, synonyms=SYNONYMS) if more else columns))


@dataclass(frozen=True, slots=True, eq=False)
class Keep:
    """Keep (filter): the rows for which a condition is true; where it is unknown, the row goes."""

    rows: Rel
    condition: Typed
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        _check_condition(self.condition, self.rows.schema)
        _set_schema(self, self.rows.schema)


@dataclass(frozen=True, slots=True, eq=False)
class Derive:
    """Derive (extend): the same rows with some columns computed anew, all from the values before.

    New columns come behind the other business columns. The columns of the joins in ``forget`` go.
    """

    rows: Rel
    values: Mapping[str, Typed]
    forget: frozenset[str] = frozenset()
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        before = self.rows.schema
        _check_columns(self.values.values(), before)
        joined = {alias: columns for alias, columns in before.joined.items() if alias not in self.forget}
        columns = columns_with(before.columns, {name: value.type for name, value in self.values.items()})
        _set_schema(self, Schema(columns, joined))


@dataclass(frozen=True, slots=True, eq=False)
class Reshape:
    """Reshape (project): the same rows with exactly these columns in this order."""

    rows: Rel
    values: Mapping[str, Typed]
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        _check_columns(self.values.values(), self.rows.schema)
        columns = Columns({name: value.type for name, value in self.values.items()}, synonyms=SYNONYMS)
        _set_schema(self, Schema(columns))

    def handed_on(self, name: str) -> ColumnRef | None:
        """A column of the rows below under its own name."""
        kind = self.rows.schema.columns.get(name)
        return ColumnRef(name, None, kind) if kind is not None else None


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """Lookup (left join): the same rows with the columns of at most one matching row of ``source``.

    They are NULL without a match. Only rows for which ``only`` is true take part; one of them with more than one match
    fails the run.
    """

    rows: Rel
    alias: str
    source: Rel
    on: Typed
    only: Typed
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        _set_schema(self, _join(self))


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """Match (inner join): each row for which ``only`` is true, once with every row of ``source`` that matches it.

    A row without a match is dropped, or with ``unmatched`` stays once, with NULL in the joined columns (left join); a row with
    several matches is multiplied. The joined columns include the row id of the source, so that both ids identify a result for
    ``AssignIds``.
    """

    rows: Rel
    alias: str
    source: Rel
    on: Typed
    only: Typed
    unmatched: bool = False
    places: bool = False
    """Whether the joined columns include the place of the source's row; the scan of the source must be ``placed``."""
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        schema = _join(self, more=(ROW_ID,))
        if self.places:
            beside = Columns({**schema.joined[self.alias], PLACE: INTEGER})
            schema = Schema(schema.columns, {**schema.joined, self.alias: beside})
        _set_schema(self, schema)


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Window: the same rows with additional columns of ``alias`` that are computed over the rows of a partition.

    Rows may be sorted by ``PLACE``.
    """

    rows: Rel
    alias: str
    values: Mapping[str, Over]
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        before = self.rows.schema
        placed = Schema(Columns({**before.columns, PLACE: INTEGER}), before.joined)
        _check_columns(self.values.values(), placed)
        if self.alias in before.joined:
            raise InternalError(f"a window makes columns beside those of `{self.alias}`")
        added = Columns({name: over.type for name, over in self.values.items()})
        _set_schema(self, Schema(before.columns, {**before.joined, self.alias: added}))

    @property
    def reads_places(self) -> bool:
        """Whether rows are sorted by their place."""
        return any(each.name == PLACE for over in self.values.values() for each in columns_of(over))


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Group (aggregate): one row per group: the keys, NULL being a key like any other, and what is computed over the group."""

    rows: Rel
    keys: Mapping[str, Typed]
    values: Mapping[str, Typed]
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        parts = {**self.keys, **self.values}
        _check_columns(parts.values(), self.rows.schema)
        _set_schema(self, Schema(Columns({name: part.type for name, part in parts.items()})))


@dataclass(frozen=True, slots=True, eq=False)
class AssignIds:
    """AssignIds: the same rows with new row ids, made from the run, the operation and the values of the columns ``by``."""

    rows: Rel
    seq: int
    by: tuple[str, ...]
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        before = self.rows.schema
        if missing := set(self.by) - set(before.names):
            raise InternalError(f"row ids by columns that are not there: {', '.join(sorted(missing))}")
        columns = before.columns if ROW_ID in before.columns else Columns({**before.columns, ROW_ID: TEXT})
        _set_schema(self, Schema(columns, before.joined))


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """Stack (union all): the rows of both, which have the same columns; joined columns of ``rows`` are NULL in ``more``."""

    rows: Rel
    more: Rel
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        first, second = self.rows.schema.columns, self.more.schema.columns
        if set(first) != set(second):
            raise InternalError(f"stacked rows differ in {', '.join(sorted(set(first) ^ set(second)))}")
        for name, kind in first.items():
            if kind != second[name] and UNKNOWN not in (kind, second[name]):
                raise InternalError(f"stacked rows have `{name}` as {kind} and as {second[name]}")
        _set_schema(self, self.rows.schema)


@dataclass(frozen=True, slots=True, eq=False)
class Expand:
    """Expand: each row once for each of the ``choices``, with the columns of that choice. All choices have the same columns."""

    rows: Rel
    choices: tuple[Mapping[str, Typed], ...]
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        before = self.rows.schema
        added = {name: value.type for name, value in self.choices[0].items()}
        for choice in self.choices:
            _check_columns(choice.values(), before)
            if {name: value.type for name, value in choice.items()} != added:
                raise InternalError("choices differ in their columns")
        _set_schema(self, Schema(Columns({**before.columns, **added}), before.joined))


@dataclass(frozen=True, slots=True, eq=False)
class Ancestors:
    """Ancestors: the pairs of a tree, as ``NODE``, ``ANCESTOR`` and ``DEPTH``: every node with itself and all totals
    that it counts for.

    The rows have a child and its parent each; a bounded number of them is read before the job. The run fails if they are
    not a tree.
    """

    rows: Rel
    child: ColumnRef
    parent: ColumnRef
    dataset_id: str
    operation: OperationRef
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        _check_columns((self.child, self.parent), self.rows.schema)
        kind = self.child.type
        _set_schema(self, Schema(Columns({NODE: kind, ANCESTOR: kind, DEPTH: INTEGER})))


NODE, ANCESTOR, DEPTH = "node", "ancestor", "depth"


@dataclass(frozen=True, slots=True, eq=False)
class Require:
    """Require (assert): the same rows. The run fails where ``violated`` is true, with a code, a reason and the values of ``shown``.

    Spark may evaluate it for rows that are filtered out above it, so the condition itself must exclude them.
    """

    rows: Rel
    violated: Typed
    code: str
    reason: str
    shown: tuple[ColumnRef, ...]
    seq: int
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        _check_condition(self.violated, self.rows.schema)
        _check_columns(self.shown, self.rows.schema)
        _set_schema(self, self.rows.schema)


Rel = (
    Scan | Keep | Derive | Reshape | Lookup | Match | Window | Group | AssignIds | Stack | Require | Expand | Ancestors
)


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    """Rows that go to a destination: these columns in this order."""

    rows: Rel
    columns: tuple[str, ...]
    destination: Destination
    mode: Literal["replace", "append"]
    register_as: str | None
    include_deleted: bool
    names: Mapping[str, str] = field(default_factory=dict)
    """What columns are called where they are written, if not by their names."""
    order: tuple[SortKey, ...] = ()
    """The order of the rows, which are then in one file; none if it does not matter."""

    @property
    def in_one_file(self) -> bool:
        """Whether all rows must be in one file."""
        return bool(self.order) or self.destination.file is not None

    def written_name(self, column: str) -> str:
        """What a column is called where it is written."""
        return self.names.get(column, column)

    def working_names(self, values: Mapping[str, T]) -> dict[str, T]:
        """Values by the names that columns have where they are written, by those of the working dataset."""
        names = {written: name for name, written in self.names.items()}
        return {names.get(name, name): value for name, value in values.items()}

    def written_types(self, columns: Mapping[str, Type]) -> dict[str, Type]:
        """The columns as they are written, with the types that they have in the working dataset."""
        return {self.written_name(name): columns[name] for name in self.columns}


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column by which rows are ordered. NULL comes first, or last where the order is descending."""

    column: str
    descending: bool = False

    def __str__(self) -> str:
        return f"{self.column} descending" if self.descending else self.column


# --- schemas


def _set_schema(node: Rel, schema: Schema) -> None:
    object.__setattr__(node, "schema", schema)  # nodes are frozen, and a schema is computed once


def _join(node: Lookup | Match, *, more: tuple[str, ...] = ()) -> Schema:
    before = node.rows.schema
    columns = joined_columns(node.source.schema.columns, more=more)
    schema = Schema(before.columns, {**before.joined, node.alias: columns})
    _check_condition(node.on, schema)
    _check_condition(node.only, before)
    return schema


def _check_condition(condition: Typed, schema: Schema) -> None:
    if condition.type not in (BOOLEAN, UNKNOWN):
        raise InternalError(f"a condition is {condition.type}")
    _check_columns((condition,), schema)


def _check_columns(expressions: Iterable[Typed], schema: Schema) -> None:
    """Every column that expressions read is there, in its type."""
    seen: set[int] = set()  # a selector is part of every value that an update computes
    pending = list(expressions)
    while pending:
        each = pending.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, ColumnRef):
            _check_column(each, schema)
        else:
            pending.extend(each.operands)


def _check_column(column: ColumnRef, schema: Schema) -> None:
    columns = schema.columns if column.qualifier is None else schema.joined.get(column.qualifier)
    if columns is None or column.name not in columns:
        raise InternalError(f"column `{column.qualifier or ''}.{column.name}` is not there")
    kind = columns[column.name]
    if kind != column.type and UNKNOWN not in (kind, column.type):
        raise InternalError(f"column `{column.name}` is {kind}, not {column.type}")


# --- walking


def inputs_of(node: Rel) -> tuple[Rel, ...]:
    """The direct inputs of a node."""
    match node:
        case Scan():
            return ()
        case Lookup() | Match():
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
    """What a node computes or tests; a column that is only handed on is neither."""
    match node:
        case Keep():
            yield node.condition
        case Require():
            yield node.violated
        case Expand():
            yield from (value for choice in node.choices for value in choice.values())
        case Derive():
            yield from node.values.values()
        case Reshape():
            yield from (value for name, value in node.values.items() if value != node.handed_on(name))
        case Lookup() | Match():
            yield node.on
            yield node.only
        case Window():
            yield from node.values.values()
        case Group():
            yield from node.keys.values()
            yield from node.values.values()
        case _:
            return
