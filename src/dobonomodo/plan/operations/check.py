"""``check``: assert a condition on rows or totals. A run whose check fails publishes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from dobonomodo.formula import (
    FUNCTION_BY_NAME,
    ColumnRef,
    Columns,
    Scope,
    Type,
    Typed,
    columns_of,
    convert,
    parse,
    rewrite,
)
from dobonomodo.formula import tree as syntax
from dobonomodo.formula.typed import Apply, walk
from dobonomodo.formula.typed import Literal as Value
from dobonomodo.formula.typed import Operation as Operator
from dobonomodo.formula.types import BOOLEAN, INTEGER, TIMESTAMP, describe, unify_keys
from dobonomodo.model.document import Places
from dobonomodo.model.entity import Entity
from dobonomodo.model.horizon import MISSING_HELP, PERIOD_HELP, Missing, PeriodHorizon, check_horizon
from dobonomodo.model.schema import AS_OF, AsOf
from dobonomodo.model.value import Count, Filled, Flag, Id, Setting
from dobonomodo.plan.check import AGAINST, ROWS, START, Check, GroupCondition, Measure, RowCondition
from dobonomodo.plan.columns import is_hole, resolve_name
from dobonomodo.plan.context import Context
from dobonomodo.plan.dataset import time_reading
from dobonomodo.plan.expression import ACTIVE, CLOCK, FALSE, TRUE, all_of, coalesce, column, if_else, integer, null
from dobonomodo.plan.operations.lowered import Formula, Lowered, derive
from dobonomodo.plan.operations.operation import Effect, Facts, Operation
from dobonomodo.plan.operations.output import DestinationSpec, find_destination
from dobonomodo.plan.operations.update import find_join
from dobonomodo.plan.relation import Group, Keep, Rel, Reshape, Stack, Write
from dobonomodo.plan.rows import Rows
from dobonomodo.plan.system import DELETED, UPDATED_AT
from dobonomodo.problems import Problem
from dobonomodo.problems.definition import InvalidOperation, OperationReason
from dobonomodo.problems.formula import TypeMismatch, UnknownColumn
from dobonomodo.problems.operation import DuplicateGroupBy, JoinAliasConflict

if TYPE_CHECKING:
    from dobonomodo.plan.step import Step

_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
_OBSERVABLE = frozenset({"SUM", "COUNT", "COUNT_ALL", "COUNT_IF", "AVG", "MIN_AGG", "MAX_AGG"})
"""Aggregates that can be computed while rows are written."""
_STATE = re.compile(rf"{START}|after_\d+", re.IGNORECASE)
"""Names of states, whether there are such states or not."""


class Against(Entity):
    """Another dataset to compare with; its columns are ``against.column``."""

    dataset_id: Id = Field(description="The dataset to compare with.")
    dataset_version: Count | None = Field(
        default=None, description="A version to stay with; left out, the latest active one."
    )
    selector: Setting | None = Field(default=None, description="Which of its rows; only its own columns are visible.")
    as_of: AsOf | None = Field(default=None, description=f"{AS_OF} The default is the setting of the dataset.")
    period: PeriodHorizon | None = Field(default=None, description=PERIOD_HELP)
    missing: Missing | None = Field(default=None, description=MISSING_HELP)

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """Periods that can be counted."""
        yield from check_horizon(places, "period")


class CheckRows(Operation):
    """A condition that must be true: for every selected row, for aggregates over them, or for each group."""

    kind: ClassVar[str] = "check"
    type: ClassVar[str] = "check"
    facts: ClassVar[Facts] = Facts(Effect.SELECTS | Effect.CHECKS, badge="✓", color="teal", counted="checked")

    expect: Setting = Field(description="What must be true. FALSE and NULL are violations.")
    group_by: tuple[Filled, ...] = Field(default=(), description="Evaluate it once for each group of these columns.")
    severity: Literal["stop", "warn"] = Field(
        default="stop", description="Publish nothing where it fails (the default), or only say so."
    )
    empty: Literal["fail", "pass"] = Field(default="fail", description="What it means that no row reaches the check.")
    against: Against | None = Field(default=None, description="Another dataset to compare with.")
    quarantine: DestinationSpec | None = Field(default=None, description="Where violating rows are written.")
    exclude: Flag = Field(default=False, description="Delete violating rows and continue; needs `severity: warn`.")

    def lower(self, rows: Rows, ctx: Context) -> Lowered:
        """A condition on rows where the expression has no aggregate; else one on groups of stacked states."""
        if self.exclude and self.severity != "warn":
            self._refuse(OperationReason.EXCLUDED_AND_STOPPED, "exclude", ctx)
        tree = parse(ctx.arguments.passage("expect")).tree
        if self.group_by or self.against is not None or (tree is not None and _is_over_many(tree)):
            return self._lower_groups(rows, ctx)
        return self._lower_rows(rows, ctx)

    @classmethod
    def describe(cls, step: Step) -> list[str]:
        """What must hold, of what, and what happens otherwise."""
        check = step.lowered.check
        if check is None:
            return []
        condition = check.condition
        of = "every row"
        if isinstance(condition, GroupCondition):
            of = f"each {', '.join(condition.keys)}" if condition.keys else "all rows together"
        otherwise = "else nothing is published" if check.severity == "stop" else "else a warning"
        lines = [f"expects {' '.join(check.text.split())} for {of}, {otherwise}"]
        if check.excludes:
            lines.append("deletes the rows that violate it")
        if step.lowered.write is not None:
            lines.append(f"writes the rows that violate it to {step.lowered.write.destination}")
        return lines

    def _refuse(self, reason: OperationReason, key: str, ctx: Context, *, known: tuple[str, ...] = ()) -> None:
        ctx.report(InvalidOperation(reason=reason, found=key, known=known, span=ctx.arguments.key_span(key)))

    # --- single rows

    def _lower_rows(self, rows: Rows, ctx: Context) -> Lowered:
        selected = ctx.selected(rows)
        passage = ctx.arguments.passage("expect")
        holds = ctx.check(passage, ctx.scope(rows), wanted=BOOLEAN, what="`expect`")
        violated = all_of(selected, Operator("NOT", (coalesce(holds, FALSE),), BOOLEAN))
        read = rows.names_in(selected, holds)
        keys = [name for name in ctx.uses[0].natural_key if name in rows.columns] if ctx.uses else []
        own = [each.name for each in columns_of(holds) if each.qualifier is None]
        shown = tuple(dict.fromkeys([*keys, *own]))
        condition = RowCondition(rows.node, selected, violated, shown)
        after = self._exclude(rows, violated, ctx) if self.exclude else rows
        return Lowered(
            after,
            selected=selected,
            write=self._quarantine(rows, violated, ctx),
            check=self._check(condition, passage.value, ctx),
            reads=read,
            formulas={"expect": Formula(passage.value, holds)},
        )

    def _check(self, condition: RowCondition | GroupCondition, text: str, ctx: Context) -> Check:
        spec = ctx.spec
        return Check(spec.seq, spec.name, self.severity, self.empty == "pass", text, condition, self.exclude)

    def _exclude(self, rows: Rows, violated: Typed, ctx: Context) -> Rows:
        """As ``delete`` does it."""
        marked = {
            DELETED: if_else(violated, TRUE, column(DELETED, rows.columns)),
            UPDATED_AT: if_else(violated, CLOCK, column(UPDATED_AT, rows.columns)),
        }
        return derive(rows, marked, conditions=(violated,), seq=ctx.spec.seq)

    def _quarantine(self, rows: Rows, violated: Typed, ctx: Context) -> Write | None:
        if self.quarantine is None:
            return None
        destination = find_destination(self.quarantine, "quarantine", ctx, appends=False)
        return Write(
            rows=Keep(rows.node, violated),
            columns=tuple(rows.columns),
            destination=destination,
            mode="replace",
            register_as=None,
            include_deleted=False,
        )

    # --- aggregates

    def _lower_groups(self, rows: Rows, ctx: Context) -> Lowered:
        for key, given in (("quarantine", self.quarantine is not None), ("exclude", self.exclude)):
            if given:
                self._refuse(OperationReason.ROWS_OF_GROUPS, key, ctx)
        passage = ctx.arguments.passage("expect")
        main = ctx.scope(rows)
        selected = ctx.selected(rows)
        keys = self._keys(main, ctx)
        against = self._against(ctx)
        states = {name: state.columns for name, state in ctx.states.items()}
        others = {**states, **({AGAINST: against.columns} if against is not None else {})}
        self._check_names(rows, passage.value, others, ctx)
        scope = replace(main, joined={**main.joined, **others}, group_by=tuple(keys.values()))
        holds = ctx.check(passage, scope, wanted=BOOLEAN, what="`expect`")
        reads = rows.names_in(selected, *keys.values())
        if is_hole(holds) or is_hole(selected):
            return Lowered(rows, selected=selected, reads=reads)
        sides = _Sides(rows, selected, against, ctx)
        aggregates = tuple(dict.fromkeys(each for each in walk(holds) if _is_aggregate(each)))
        states_by_aggregate = {each: self._states_of(each, others) for each in aggregates if isinstance(each, Apply)}
        if self._refuse_mixed(states_by_aggregate.values(), ctx):
            return Lowered(rows, selected=selected, reads=reads)
        placed = [(each, next(iter(found), None)) for each, found in states_by_aggregate.items()]
        if against is not None and all(side != AGAINST for _, side in placed):
            self._refuse(OperationReason.UNUSED_AGAINST, "against", ctx)
        condition = _make_groups(holds, keys, placed, sides, ctx)
        reads |= frozenset(name for each, side in placed if side is None for name in rows.names_in(each))
        if condition is None:
            return Lowered(rows, selected=selected, reads=reads)
        return Lowered(
            rows,
            selected=selected,
            check=self._check(condition, passage.value, ctx),
            reads=reads,
            formulas={"expect": Formula(passage.value, holds)},
        )

    def _keys(self, scope: Scope, ctx: Context) -> dict[str, ColumnRef]:
        keys: dict[str, ColumnRef] = {}
        for position, _ in enumerate(self.group_by):
            at = ctx.arguments.at("group_by", position) or ctx.arguments
            found = resolve_name(at, scope)
            if isinstance(found, Problem):
                ctx.report(found)
            elif f"#{found.name}" in keys:
                ctx.report(DuplicateGroupBy(name=found.name, span=at.span()))
            else:
                keys[f"#{found.name}"] = found
        return keys

    def _against(self, ctx: Context) -> Side | None:
        places = ctx.arguments.at("against")
        if self.against is None or places is None:
            return None
        known = find_join(self.against.dataset_id, self.against.dataset_version, places, ctx)
        if known is None:
            return None
        timing = time_reading(self.against, places)
        scan = ctx.scan(known, "against", alias=AGAINST, timing=timing, at=places.at("dataset_id"))
        ctx.check_as_of(places, scan.use)
        columns = scan.schema.columns
        chosen = None
        if self.against.selector is not None:
            chosen = ctx.check(places.passage("selector"), ctx.scope_of(scan), wanted=BOOLEAN, what="a selector")
        return Side(scan, all_of(ACTIVE, chosen), columns)

    def _check_names(self, rows: Rows, text: str, others: Mapping[str, Columns], ctx: Context) -> None:
        """A table or lookup with the name of a state that the expression uses could mean either (C-95)."""
        taken = {rows.table.casefold(): "the main table"}
        taken |= {alias.casefold(): "a lookup of the dataset" for alias in rows.joined}
        for name in others:
            if name in taken and f"{name}." in text.casefold():
                span = ctx.arguments.span("expect")
                ctx.report(JoinAliasConflict(alias=name, taken_by=taken[name], span=span))

    def _states_of(self, aggregate: Apply, others: Mapping[str, Columns]) -> frozenset[str | None]:
        """The states that an aggregate is over; None for the rows as they are now."""
        return frozenset(each.qualifier if each.qualifier in others else None for each in columns_of(aggregate))

    def _refuse_mixed(self, found: Iterable[frozenset[str | None]], ctx: Context) -> bool:
        """Whether an aggregate is over more than one state, which is reported."""
        mixed = [states for states in found if len(states) > 1]
        for states in mixed:
            named = tuple(sorted(f"`{name}`" if name else "the rows as they are now" for name in states))
            self._refuse(OperationReason.MIXED_STATES, "expect", ctx, known=named)
        return bool(mixed)


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """Rows that aggregates of a check are over."""

    node: Rel
    selected: Typed
    columns: Columns
    joined: Mapping[str, Columns] = field(default_factory=dict)


class _Sides:
    """The states that a check compares, each with its own selection, found when they are asked for."""

    def __init__(self, rows: Rows, selected: Typed, against: Side | None, ctx: Context) -> None:
        self._ctx = ctx
        self._known: dict[str | None, Side] = {None: Side(rows.node, selected, rows.columns, rows.joined)}
        if against is not None:
            self._known[AGAINST] = against

    def find(self, name: str | None) -> Side:
        """The rows not deleted in a state for which the selector of the check is true with that state's values."""
        if name not in self._known:
            state = self._ctx.states[str(name)]
            selected = all_of(ACTIVE, self._ctx.selector(replace(self._ctx.scope(state), state=name)))
            self._known[name] = Side(state.node, selected, state.columns, state.joined)
        return self._known[name]


def _make_groups(
    holds: Typed,
    keys: Mapping[str, ColumnRef],
    placed: list[tuple[Apply, str | None]],
    sides: _Sides,
    ctx: Context,
) -> GroupCondition | None:
    """All sides stacked, each with its own operands and NULL for those of the others, then grouped once.

    So a group that is missing on one side has NULL sums and counts of zero there.
    """
    used = dict.fromkeys(side for _, side in placed)
    # Rows of the working dataset come first: they carry what the engine remembers of them.
    ordered = sorted(used, key=lambda side: side == AGAINST)
    key_types = _key_types(keys, {side: sides.find(side) for side in ordered}, ctx)
    operands: dict[str, tuple[str | None, Typed]] = {}
    over: dict[str, Apply] = {}
    measures: list[Measure] = []
    for number, (aggregate, side) in enumerate(placed):
        own = _own_columns(aggregate, side)
        if own.function.name == "COUNT_ALL":
            own = Apply(FUNCTION_BY_NAME["COUNT"], 0, (integer(1),), INTEGER)
        refs: list[Typed] = []
        for position, operand in enumerate(own.operands):
            if isinstance(operand, Value) and own.function.name != "COUNT":
                refs.append(operand)
                continue
            name = f"{number}.{position}"
            operands[name] = (side, operand)
            refs.append(ColumnRef(name, None, operand.type))
        over[f"={number}"] = replace(own, operands=tuple(refs))
        found = sides.find(side)
        measures.append(Measure(f"={number}", found.node, found.selected, own))
    if key_types is None:
        return None
    stacked: Rel | None = None
    for side in ordered:
        found = sides.find(side)
        values: dict[str, Typed] = {
            key: convert(_key_in(found, ref, side), key_types[key]) for key, ref in keys.items()
        }
        values |= {name: given if of == side else null(given.type) for name, (of, given) in operands.items()}
        values |= {"one": integer(1)}
        part = Reshape(Keep(found.node, found.selected), values)
        stacked = part if stacked is None else Stack(stacked, part)
    if stacked is None:
        return None
    grouped = {key: ColumnRef(key, None, kind) for key, kind in key_types.items()}
    total = Apply(FUNCTION_BY_NAME["COUNT"], 0, (ColumnRef("one", None, INTEGER),), INTEGER)
    groups = Group(stacked, grouped, {**over, ROWS: total})
    column_by_aggregate = {
        aggregate: ColumnRef(f"={number}", None, aggregate.type) for number, (aggregate, _) in enumerate(placed)
    }

    def change(node: Typed) -> Typed | None:
        if isinstance(node, Apply) and node in column_by_aggregate:
            return column_by_aggregate[node]
        if isinstance(node, ColumnRef):
            key = next((name for name, ref in keys.items() if ref == node), None)
            return convert(ColumnRef(key, None, key_types[key]), node.type) if key is not None else None
        return None

    condition = rewrite(holds, change)
    compared = isinstance(condition, Operator) and condition.operator in _COMPARISONS
    left, right = condition.operands if compared else (None, None)
    for number, side in enumerate(ordered):
        found, count = sides.find(side), Apply(FUNCTION_BY_NAME["COUNT"], 0, (integer(1),), INTEGER)
        measures.append(Measure(f"{ROWS}{number}", found.node, found.selected, count))
    observable = not keys and AGAINST not in used and all(_is_observable(each) for each, _ in placed)
    return GroupCondition(groups, condition, left, right, tuple(measures) if observable else ())


def _own_columns(aggregate: Apply, side: str | None) -> Apply:
    """The aggregate over the columns of its own side, which need no qualifier there."""

    def change(node: Typed) -> Typed | None:
        if side is not None and isinstance(node, ColumnRef) and node.qualifier == side:
            return replace(node, qualifier=None)
        return None

    return replace(aggregate, operands=tuple(rewrite(each, change) for each in aggregate.operands))


def _key_in(side: Side, key: ColumnRef, name: str | None) -> ColumnRef:
    if key.qualifier is not None and name != AGAINST:
        return key
    stored = side.columns.spelling(key.name) or key.name
    return ColumnRef(stored, None, side.columns[stored])


def _key_types(keys: Mapping[str, ColumnRef], sides: Mapping[str | None, Side], ctx: Context) -> dict[str, Type] | None:
    """The types of keys over all sides; None where a side lacks one, or has another kind of values."""
    types: dict[str, Type] = {}
    for position, (name, key) in enumerate(keys.items()):
        at = ctx.arguments.at("group_by", position) or ctx.arguments
        found = []
        for state, side in sides.items():
            if key.qualifier is not None and key.qualifier in side.joined:
                found.append(side.joined[key.qualifier][key.name])
            elif (stored := side.columns.spelling(key.name)) is not None:
                found.append(side.columns[stored])
            else:
                ctx.report(UnknownColumn(name=key.name, known=tuple(side.columns), state=state, span=at.span()))
                return None
        common = unify_keys(found)
        if common is None:
            expected, given = describe(found[0]), describe(found[-1])
            ctx.report(TypeMismatch(what=f"the key `{key.name}`", expected=expected, found=given, span=at.span()))
            return None
        types[name] = common
    return types


def _is_observable(aggregate: Apply) -> bool:
    return aggregate.function.name in _OBSERVABLE and aggregate.type != TIMESTAMP


def _is_aggregate(node: Typed) -> bool:
    return isinstance(node, Apply) and node.function.is_aggregate


def _is_over_many(node: syntax.Expression) -> bool:
    """Whether an expression has an aggregate function, or reads a state that only aggregates can read."""
    for each in _walk(node):
        if isinstance(each, syntax.Call):
            function = FUNCTION_BY_NAME.get(each.name.upper())
            if each.star or (function is not None and function.is_aggregate):
                return True
        elif isinstance(each, syntax.Column) and _STATE.fullmatch(each.qualifier or ""):
            return True
    return False


def _walk(node: syntax.Node) -> Iterator[syntax.Node]:
    yield node
    for each in fields(node):
        value = getattr(node, each.name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, syntax.Node):
                yield from _walk(part)
            elif isinstance(part, tuple):
                yield from (found for one in part if isinstance(one, syntax.Node) for found in _walk(one))
