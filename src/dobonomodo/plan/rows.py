"""The working dataset between operations: a node, its columns, and their lineage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from dobonomodo.formula import ColumnRef, Columns, Typed, columns_of, flat_name
from dobonomodo.formula.typed import Over
from dobonomodo.plan.relation import Rel


@dataclass(frozen=True, slots=True)
class Origin:
    """The lineage of a column."""

    inputs: frozenset[str] = frozenset()
    """Stored columns, as ``dataset.column``, whose values flow in."""
    conditions: frozenset[str] = frozenset()
    """Stored columns that decide which rows are changed or counted."""
    operations: tuple[int, ...] = ()
    """The operations that made or changed it, in order."""

    def through(self, seq: int) -> Origin:
        """The same, changed by one more operation."""
        return replace(self, operations=(*(each for each in self.operations if each != seq), seq))


def merge(origins: Iterable[Origin]) -> Origin:
    """The union of several lineages."""
    inputs: set[str] = set()
    conditions: set[str] = set()
    operations: set[int] = set()
    for origin in origins:
        inputs |= origin.inputs
        conditions |= origin.conditions
        operations |= set(origin.operations)
    return Origin(frozenset(inputs), frozenset(conditions), tuple(sorted(operations)))


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The state between two operations."""

    node: Rel
    table: str
    dataset_id: str
    origins: Mapping[str, Origin]
    """By column; joined columns as ``alias.column``."""
    summaries_of: tuple[int, ...] = ()
    """The aggregates whose summary rows are among the rows."""
    periodless_of: tuple[int, ...] = ()
    """The operations whose rows have no ``_period``."""
    keys: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The natural or group key of rows, by the operation that made them; 0 for loaded rows."""
    levels: Mapping[int, str] = field(default_factory=dict)
    """The key column that distinguishes subtotals from groups."""
    parts: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The key of parts of an amount without the amount itself: of what was distributed, and of who received it."""
    certain: bool = True
    """False after an operation that could not be read, when columns may be missing here."""

    @property
    def columns(self) -> Columns:
        return self.node.schema.columns

    @property
    def joined(self) -> Mapping[str, Columns]:
        return self.node.schema.joined

    def origin_of(self, *expressions: Typed) -> Origin:
        """The lineage of expressions."""
        values, keys = _split(expressions)
        origin = merge(self.origins.get(name, Origin()) for name in values)
        if not keys:
            return origin
        chosen = merge(self.origins.get(name, Origin()) for name in keys)
        return replace(origin, conditions=origin.conditions | chosen.inputs | chosen.conditions)

    def names_in(self, *expressions: Typed) -> frozenset[str]:
        """The columns of the rows and their lookups that expressions use, the latter as ``alias.column``."""
        return frozenset(
            flat_name(column)
            for expression in expressions
            for column in columns_of(expression)
            if column.qualifier is None or column.qualifier in self.joined
        )

    def conditions_of(self, *expressions: Typed) -> frozenset[str]:
        """The stored columns that conditions use."""
        origin = self.origin_of(*expressions)
        return origin.inputs | origin.conditions


def _split(expressions: Iterable[Typed]) -> tuple[list[str], list[str]]:
    """The columns that expressions are made of, and those that only say which rows a window counts."""
    values: list[str] = []
    keys: list[str] = []
    pending = list(expressions)
    while pending:
        current = pending.pop()
        if isinstance(current, Over):
            arguments = current.call.operands or tuple(each.key for each in current.order)
            pending.extend(arguments)
            keys += [flat_name(column) for column in columns_of(current)]
        elif isinstance(current, ColumnRef):
            values.append(flat_name(current))
        else:
            pending.extend(current.operands)
    return values, keys
