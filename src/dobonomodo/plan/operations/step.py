"""What lowering an operation gives, and the steps that several operations take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dobonomodo.formula import HOLE, ColumnRef, Columns, Scope, Type, Typed, columns_of, convert, flat_name
from dobonomodo.formula import parse as parse_formula
from dobonomodo.formula import tree as syntax
from dobonomodo.formula.types import DATE, NULL, TEXT, TIMESTAMP, UNKNOWN, DecimalType, is_number, unify
from dobonomodo.model.document import Places
from dobonomodo.plan.context import Context
from dobonomodo.plan.expression import CLOCK, FALSE, integer, nothing, own, text
from dobonomodo.plan.relation import Derive, Mint, Rel, Schema, Stack, Write
from dobonomodo.plan.rows import Origin, Rows
from dobonomodo.plan.system import (
    CREATED_AT,
    DELETED,
    LABELS,
    OPERATION_SEQ,
    ROW_ID,
    SOURCE_DATASET,
    SOURCE_TABLE,
    SYNONYMS,
    UPDATED_AT,
)
from dobonomodo.problems import Passage, Problem
from dobonomodo.problems.formula import ExpressionSyntax, SyntaxReason, UnknownColumn

LONG_DIGITS = 18
"""Digits of a decimal that Spark keeps in a machine word."""


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """What an operation comes down to."""

    rows: Rows
    selected: Typed | None = None
    """The rows it acts on, for the row counts of a run."""
    added: Rel | None = None
    """The rows it makes."""
    write: Write | None = None
    reads: frozenset[str] = frozenset()
    """The columns of the working dataset that it cannot do without; those of lookups as ``alias.column``."""
    sets: frozenset[str] = frozenset()
    """The columns that it gives values of a type that they must be able to take."""


def columns_with(columns: Columns, changes: Mapping[str, Type]) -> Columns:
    """The columns with some types changed, new ones at the end of the business columns."""
    types = dict(columns)
    new = {name: kind for name, kind in changes.items() if name not in types}
    types |= {name: kind for name, kind in changes.items() if name in types}
    business = {name: kind for name, kind in types.items() if not name.startswith("_") or name not in _SYSTEM}
    system = {name: kind for name, kind in types.items() if name not in business}
    return Columns({**business, **new, **system}, synonyms=SYNONYMS)


def derive(
    rows: Rows,
    values: Mapping[str, Typed],
    *,
    conditions: Sequence[Typed] = (),
    seq: int,
    joined: Mapping[str, Columns] | None = None,
    over: Rel | None = None,
    origins: Mapping[str, Origin] | None = None,
    on_by_alias: Mapping[str, Typed] | None = None,
    whole: bool = False,
) -> Rows:
    """The rows with columns computed anew by an operation; ``over`` is the node with joins beside the rows.

    ``on_by_alias`` are the conditions of those joins; ``whole``: every row that counts is changed.
    """
    columns = columns_with(rows.columns, {name: value.type for name, value in values.items()})
    schema = Schema(columns, rows.joined if joined is None else joined)
    node = Derive(over or rows.node, values, schema)
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
        for column in columns_of(pending.pop()):
            alias = column.qualifier
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


def assigned_type(existing: Type | None, given: Type) -> Type | None:
    """The type of a column after an assignment (C-26), or None when the value does not fit."""
    if existing is None:
        return new_column_type(given)
    if UNKNOWN in (existing, given):
        return existing if existing != UNKNOWN else given
    if given in (NULL, existing) or (existing, given) == (TIMESTAMP, DATE):
        return existing
    return unify((existing, given)) if is_number(existing) and is_number(given) else None


def new_column_type(given: Type) -> Type:
    """The type of a new column: room for more digits than a literal happens to have, at no cost."""
    if given == NULL:
        return TEXT
    if isinstance(given, DecimalType) and given.precision < LONG_DIGITS:
        return DecimalType(LONG_DIGITS, given.scale)
    return given


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
    schema = Schema(columns, rows.joined)
    seq = ctx.spec.seq
    before = {
        name: convert(own(name, rows.columns), kind) if name in rows.columns else nothing(kind)
        for name, kind in columns.items()
        if name not in rows.columns or rows.columns[name] != kind
    }
    kept = Derive(rows.node, before, schema) if before else rows.node
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
    minted = Mint(made, seq, by, made.schema)
    complete = {name: convert(given.get(name, nothing(kind)), kind) for name, kind in columns.items() if name != ROW_ID}
    added = Derive(minted, complete, schema)
    return Stack(kept, added, schema), added


def resolve_name(places: Places, scope: Scope) -> ColumnRef | Problem:
    """The column that a text such as ``orders.region`` names."""
    passage = places.passage()
    parsed = parse_formula(passage)
    if not isinstance(parsed.tree, syntax.Column):
        found = scope.resolve(passage.value)
        if found is not None:
            return found
        return parsed.problems[0] if parsed.problems else _not_a_column(passage)
    column = parsed.tree
    found = scope.resolve(column.name, column.qualifier)
    if found is not None:
        return found
    known = scope.columns
    if column.qualifier is not None and not scope.is_own(column.qualifier):
        alias = scope.alias(column.qualifier)
        known = scope.joined[alias] if alias is not None else Columns({})
    return UnknownColumn(
        name=column.name,
        qualifier=column.qualifier,
        known=tuple(known),
        known_qualifiers=tuple(filter(None, (scope.table, *scope.joined))),
        span=passage.span(0, len(passage.value)),
    )


def _not_a_column(passage: Passage) -> Problem:
    return ExpressionSyntax(
        reason=SyntaxReason.UNEXPECTED,
        found=passage.value,
        expected=("a column name",),
        span=passage.span(0, len(passage.value)),
        expression=passage.value,
    )


def names_in(rows: Rows, *expressions: Typed) -> frozenset[str]:
    """The columns of the working dataset and its lookups that expressions use, the latter as ``alias.column``."""
    return frozenset(
        flat_name(column)
        for expression in expressions
        for column in columns_of(expression)
        if column.qualifier is None or column.qualifier in rows.joined
    )


def is_hole(value: Typed) -> bool:
    """Whether a problem was reported in the place of this value."""
    return value is HOLE or value.type == UNKNOWN


_SYSTEM = frozenset(
    {
        ROW_ID,
        DELETED,
        CREATED_AT,
        UPDATED_AT,
        SOURCE_DATASET,
        SOURCE_TABLE,
        OPERATION_SEQ,
        LABELS,
        "_period",
        "_period_from",
        "_period_to",
    }
)
