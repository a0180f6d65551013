"""The result of lowering an operation, and nodes that several operations share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dobonomodo.formula import Type, Typed, columns_of, convert
from dobonomodo.formula.typed import Over, rewrite
from dobonomodo.plan.check import Check
from dobonomodo.plan.columns import columns_with
from dobonomodo.plan.context import Context
from dobonomodo.plan.expression import CLOCK, FALSE, column, integer, null, text
from dobonomodo.plan.relation import AssignIds, Derive, Rel, Reshape, Stack, Write
from dobonomodo.plan.rows import Origin, Rows
from dobonomodo.plan.shares import Shares
from dobonomodo.plan.system import (
    CREATED_AT,
    DELETED,
    LABELS,
    OPERATION_SEQ,
    ROW_ID,
    SOURCE_DATASET,
    SOURCE_TABLE,
    UPDATED_AT,
)
from dobonomodo.problems.operation import SummariesAggregated


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """An expression as its author wrote it, and the tree that it was checked to."""

    text: str
    tree: Typed

    def __str__(self) -> str:
        return " ".join(self.text.split())


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """A lowered operation."""

    rows: Rows
    selected: Typed | None = None
    """The rows of the working dataset that it acts on, for the row counts of a run."""
    added: Rel | None = None
    """The rows it makes."""
    write: Write | None = None
    check: Check | None = None
    """What must hold of rows."""
    shares: Shares | None = None
    """How amounts are distributed."""
    marked: Rel | None = None
    """The node at which it is known which rows are selected, where that is not the last one."""
    reads: frozenset[str] = frozenset()
    """The columns of the working dataset that it requires; those of lookups as ``alias.column``."""
    sets: frozenset[str] = frozenset()
    """The columns that it gives values of a type that they must be able to take."""
    formulas: Mapping[str, Formula] = field(default_factory=dict)
    """What it computes, by column."""
    conditions: Mapping[str, Formula] = field(default_factory=dict)
    """Its conditions on other datasets: of joined rows by alias, of appended rows by table."""


def derive(
    rows: Rows,
    values: Mapping[str, Typed],
    *,
    conditions: Sequence[Typed] = (),
    seq: int,
    over: Rel | None = None,
    origins: Mapping[str, Origin] | None = None,
    on_by_alias: Mapping[str, Typed] | None = None,
    whole: bool = False,
    computed: Mapping[Over, Typed] | None = None,
) -> Rows:
    """The rows with columns computed anew by an operation; ``over`` is the node with the joined columns.

    ``on_by_alias`` are the conditions of those joins; ``whole``: every row that counts is changed; ``computed``: the columns
    of ``over`` that have the values of windows.
    """
    below = over or rows.node
    windows = computed or {}
    given = {
        name: rewrite(value, lambda part: windows.get(part) if isinstance(part, Over) else None) if windows else value
        for name, value in values.items()
    }
    node = Derive(below, given, forget=frozenset(below.schema.joined) - frozenset(rows.joined))
    seen = rows if origins is None else replace(rows, origins=origins)
    changed = {}
    for name, value in values.items():
        joins = _joins_of((*conditions, value), on_by_alias or {})
        chosen = seen.conditions_of(*conditions, *joins)
        changed[name] = _origin(seen, value, chosen, whole=whole).through(seq)
    return replace(rows, node=node, origins={**rows.origins, **changed})


def _joins_of(expressions: Sequence[Typed], on_by_alias: Mapping[str, Typed]) -> list[Typed]:
    """The conditions of the joins that expressions use, and of those that these use in turn."""
    found: dict[str, Typed] = {}
    pending = list(expressions)
    while pending:
        for used in columns_of(pending.pop()):
            alias = used.qualifier
            if alias is not None and alias in on_by_alias and alias not in found:
                found[alias] = on_by_alias[alias]
                pending.append(on_by_alias[alias])
    return list(found.values())


def _origin(rows: Rows, value: Typed, chosen: frozenset[str], *, whole: bool) -> Origin:
    """The value's own columns; the condition in front of a conditional one is not among its values."""
    conditional = getattr(value, "operator", "") == "CASE" and len(value.operands) == 3
    parts = value.operands[1 : 2 if whole else 3] if conditional else (value,)
    origin = rows.origin_of(*parts)
    return replace(origin, conditions=origin.conditions | chosen)


def stack(
    rows: Rows,
    changes: Mapping[str, Type],
    made: Rel,
    values: Mapping[str, Typed],
    ctx: Context,
    *,
    by: tuple[str, ...],
    source: tuple[str, str],
) -> tuple[Rel, Rel]:
    """The rows and, below them, new rows made from ``made``: the node of all, and that of the new ones.

    ``changes`` are the types of columns that the new rows widen or add; ``by`` identifies a new row.
    """
    columns = columns_with(rows.columns, changes)
    seq = ctx.spec.seq
    # Where nothing is known of the rows, every name would be one of their columns; only those that are listed are there.
    there = dict(rows.columns.items())
    before = {
        name: convert(column(name, rows.columns), kind) if name in there else null(kind)
        for name, kind in columns.items()
        if there.get(name) != kind
    }
    kept = Derive(rows.node, before) if before else rows.node
    system: dict[str, Typed] = {
        DELETED: FALSE,
        CREATED_AT: CLOCK,
        UPDATED_AT: CLOCK,
        SOURCE_DATASET: text(source[0]),
        SOURCE_TABLE: text(source[1]),
        OPERATION_SEQ: integer(seq),
        LABELS: text(""),
    }
    given = {**system, **values}
    identified = AssignIds(made, seq, by)
    given[ROW_ID] = column(ROW_ID, identified.schema.columns)
    added = Reshape(identified, {name: convert(given.get(name, null(kind)), kind) for name, kind in columns.items()})
    return Stack(kept, added), added


def warn_of_summaries(rows: Rows, ctx: Context, *, chosen_by: Iterable[Typed], window: bool = False) -> None:
    """Warn of totals that can count details and their summaries (W-01), unless the rows are chosen by what made them."""
    used = {column.name for each in chosen_by for column in columns_of(each)}
    if rows.summaries_of and OPERATION_SEQ not in used:
        span = ctx.spec.places.key_span("type")
        ctx.report(SummariesAggregated(earlier=rows.summaries_of[-1], window=window, span=span))
