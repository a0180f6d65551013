"""Columns of the working dataset: their order, the types they take, and the names by which operations find them."""

from __future__ import annotations

from collections.abc import Mapping

from dobonomodo.formula import ColumnRef, Columns, Scope, Type, Typed
from dobonomodo.formula import parse as parse_formula
from dobonomodo.formula import tree as syntax
from dobonomodo.formula.types import DATE, NULL, TEXT, TIMESTAMP, UNKNOWN, DecimalType, is_number, widen_column
from dobonomodo.model.document import Places
from dobonomodo.plan.system import ALWAYS, PERIOD, PERIOD_FROM, PERIOD_TO, SYNONYMS
from dobonomodo.problems import Passage, Problem
from dobonomodo.problems.formula import ExpressionSyntax, SyntaxReason, UnknownColumn

LONG_DIGITS = 18
"""Digits of a decimal that Spark keeps in a machine word."""

_SYSTEM = frozenset({*ALWAYS, PERIOD, PERIOD_FROM, PERIOD_TO})


def columns_with(columns: Columns, changes: Mapping[str, Type]) -> Columns:
    """The columns with some types changed, new ones at the end of the business columns."""
    types = dict(columns)
    if all(types.get(name) == kind for name, kind in changes.items()):
        return columns
    new = {name: kind for name, kind in changes.items() if name not in types}
    types |= {name: kind for name, kind in changes.items() if name in types}
    business = {name: kind for name, kind in types.items() if not name.startswith("_") or name not in _SYSTEM}
    system = {name: kind for name, kind in types.items() if name not in business}
    return Columns({**business, **new, **system}, synonyms=SYNONYMS)


class AnyColumns(Columns):
    """Unknown columns: every name is accepted, so that each error is reported once."""

    def spelling(self, name: str) -> str | None:
        return super().spelling(name) or name

    def __getitem__(self, name: str) -> Type:
        return super().__getitem__(name) if name in self._types else UNKNOWN


def joined_columns(source: Columns, *, more: tuple[str, ...] = ()) -> Columns:
    """The columns of a source that are visible under an alias: its own, the temporal ones, and ``more``."""
    return type(source)({name: kind for name, kind in source.items() if name not in ALWAYS or name in more})


def assigned_type(existing: Type, given: Type) -> Type | None:
    """The type of a column after an assignment (C-26), or None when the value does not fit."""
    if UNKNOWN in (existing, given):
        return existing if existing != UNKNOWN else given
    if given in (NULL, existing) or (existing, given) == (TIMESTAMP, DATE):
        return existing
    return widen_column(existing, given) if is_number(existing) and is_number(given) else None


def new_column_type(given: Type) -> Type:
    """The type of a new column: room for more digits than a literal happens to have, at no cost."""
    if given == NULL:
        return TEXT
    if isinstance(given, DecimalType) and given.precision < LONG_DIGITS:
        return DecimalType(LONG_DIGITS, given.scale)
    return given


def resolve_name(places: Places, scope: Scope) -> ColumnRef | Problem:
    """The column that a text such as ``orders.region`` names."""
    passage = places.passage()
    if passage.value.strip() == "*" or passage.value.endswith(".*"):
        return UnknownColumn(name="*", known=tuple(scope.columns), span=passage.span(0, len(passage.value)))
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
    if column.qualifier is not None and not scope.is_main(column.qualifier):
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


def is_hole(value: Typed) -> bool:
    """Whether a problem was reported in the place of this value."""
    return value.type == UNKNOWN
