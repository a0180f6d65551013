"""``aggregate``: summarise the selected rows and append the summary rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from dobonomodo.formula import ColumnRef, Scope, Type, Typed, convert, flat_name
from dobonomodo.formula.types import UNKNOWN, describe
from dobonomodo.model.document import Places
from dobonomodo.model.entity import Entity
from dobonomodo.model.shape import CheckedApart
from dobonomodo.model.value import Filled, Setting, is_identifier
from dobonomodo.plan.columns import assigned_type, is_hole, resolve_name
from dobonomodo.plan.context import Context
from dobonomodo.plan.expression import column
from dobonomodo.plan.operations.lowered import Formula, Lowered, stack, warn_of_summaries
from dobonomodo.plan.operations.operation import Effect, Facts, Operation
from dobonomodo.plan.relation import Group, Keep, Rel, walk_between
from dobonomodo.plan.rows import Rows, merge
from dobonomodo.plan.system import GROUPABLE, PERIOD, is_system
from dobonomodo.problems import Passage, Problem
from dobonomodo.problems.definition import InvalidColumnName
from dobonomodo.problems.formula import TypeMismatch
from dobonomodo.problems.operation import (
    DuplicateAggColumn,
    DuplicateGroupBy,
    EmptyAggregations,
    EmptyGroupBy,
    SystemColumnConflict,
)

if TYPE_CHECKING:
    from dobonomodo.plan.step import Step

Check = Callable[[Passage, Scope], Typed]


class Aggregation(Entity):
    """A column of the summary rows and what it is computed as."""

    column: Annotated[str, CheckedApart()] = Field(description="The result column.")
    expression: Setting = Field(description="An expression with an aggregate function, such as SUM(amount).")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """A name of the user's own."""
        name = places.get("column")
        if name is None:
            return
        if isinstance(name, str) and name.startswith("_"):
            yield SystemColumnConflict(name=name, span=places.span("column"))
        elif not isinstance(name, str) or not is_identifier(name):
            yield InvalidColumnName(name=str(name), span=places.span("column"))


class Grouping(Entity):
    """Group keys and what is computed for each group."""

    group_by: tuple[Filled, ...] = Field(default=(), description="The group keys.")
    aggregations: tuple[Aggregation, ...] = Field(default=(), description="The values computed for each group.")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """At least one key and one aggregation."""
        for key, problem in (("group_by", EmptyGroupBy), ("aggregations", EmptyAggregations)):
            given = places.at(key)
            if given is None or given.node.value is None or (given.is_list and not given.node.value):
                yield problem(span=places.key_span(key))


class Aggregate(Grouping, Operation):
    """Append one summary row for each group of the selected rows; the rows themselves stay."""

    type: ClassVar[str] = "aggregate"
    facts: ClassVar[Facts] = Facts(Effect.SELECTS | Effect.ADDS, badge="Σ", color="violet", counted="summed")

    def lower(self, rows: Rows, ctx: Context) -> Lowered:
        """Group the selected rows, give the groups the columns of the working dataset, put them below it."""
        selected = ctx.selected(rows)
        warn_of_summaries(rows, ctx, chosen_by=(selected,))
        scope = ctx.scope(rows)
        groups = group(self, Keep(rows.node, selected), scope, ctx.arguments, ctx, check=ctx.check)
        changes: dict[str, Type] = {}
        for name, value, places in groups.values:
            stored = rows.columns.spelling(name) or name
            existing = rows.columns.get(stored)
            kind = assigned_type(existing, value.type) if not is_hole(value) else existing or UNKNOWN
            if kind is None:
                ctx.report(mismatch(stored, existing or UNKNOWN, value.type, places))
                kind = existing or UNKNOWN
            changes[stored] = kind
        made = groups.node
        values: dict[str, Typed] = {
            key.name: convert(column(name, made.schema.columns), key.type)
            for name, key in groups.keys.items()
            if key.qualifier is None
        }
        values |= {
            (rows.columns.spelling(name) or name): column(f"={name}", made.schema.columns)
            for name, value, _ in groups.values
            if not is_hole(value)
        }
        node, added = stack(
            rows, changes, made, values, ctx, by=tuple(groups.keys), source=(rows.dataset_id, rows.table)
        )
        chosen = rows.conditions_of(selected)
        seq = ctx.spec.seq
        origins = dict(rows.origins)
        for name, value, _ in groups.values:
            stored = rows.columns.spelling(name) or name
            made_of = merge([*([origins[stored]] if stored in origins else []), rows.origin_of(value)])
            origins[stored] = replace(made_of, conditions=made_of.conditions | chosen).through(seq)
        has_period = any(key.name == PERIOD for key in groups.keys.values())
        after = replace(
            rows,
            node=node,
            origins=origins,
            summaries_of=(*rows.summaries_of, seq),
            keys={**rows.keys, seq: tuple(key.name for key in groups.keys.values() if key.qualifier is None)},
            periodless_of=rows.periodless_of
            if has_period or PERIOD not in rows.columns
            else (*rows.periodless_of, seq),
        )
        reads = rows.names_in(selected, *groups.keys.values(), *(value for _, value, _ in groups.values))
        return Lowered(
            after,
            selected=selected,
            added=added,
            reads=reads,
            sets=frozenset(changes),
            formulas={(rows.columns.spelling(name) or name): formula for name, formula in groups.formulas.items()},
        )

    @classmethod
    def describe(cls, step: Step) -> list[str]:
        """The groups and what is computed for each."""
        return describe_groups(step, show=step.show_column)


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The groups of some rows. Keys and results have names of their own until they find their columns."""

    node: Rel
    keys: Mapping[str, ColumnRef]
    values: tuple[tuple[str, Typed, Places], ...]

    @property
    def formulas(self) -> dict[str, Formula]:
        """What is computed for each group, by column."""
        return {name: Formula(places.passage("expression").value, value) for name, value, places in self.values}


def group(
    grouping: Grouping,
    over: Rel,
    scope: Scope,
    places: Places,
    ctx: Context,
    *,
    check: Check,
    report: Callable[[Problem], None] | None = None,
) -> Groups:
    """Check keys and aggregations, and group ``over``.

    In the grouped rows a key is called ``#name`` and a result ``=name``, so that a result may have the name of a column it reads.
    """
    tell = report or ctx.report
    keys: dict[str, ColumnRef] = {}
    for position, _ in enumerate(grouping.group_by):
        at = places.at("group_by", position) or places
        found = resolve_name(at, scope)
        if isinstance(found, Problem):
            tell(found)
        elif f"#{flat_name(found)}" in keys:
            ctx.report(DuplicateGroupBy(name=flat_name(found), span=at.span()))
        elif found.qualifier is None and is_system(found.name) and found.name not in GROUPABLE:
            ctx.report(SystemColumnConflict(name=found.name, grouped=True, span=at.span()))
        else:
            keys[f"#{flat_name(found)}"] = found
    inside = replace(scope, group_by=tuple(keys.values()))
    values: list[tuple[str, Typed, Places]] = []
    taken: set[str] = set()
    for position, aggregation in enumerate(grouping.aggregations):
        at = places.at("aggregations", position) or places
        value = check(at.passage("expression"), inside)
        name = aggregation.column
        if name.startswith("_") or not is_identifier(name):
            continue
        is_key = any(key.qualifier is None and key.name.casefold() == name.casefold() for key in keys.values())
        if is_key or name.casefold() in taken:
            ctx.report(DuplicateAggColumn(name=name, is_key=is_key, span=at.span("column")))
            continue
        taken.add(name.casefold())
        values.append((name, value, at))
    sound = {f"={name}": value for name, value, _ in values if not is_hole(value)}
    return Groups(Group(over, keys, sound), keys, tuple(values))


def describe_groups(step: Step, *, show: Callable[[str], str]) -> list[str]:
    """The keys of the groups that a step makes, and the formulas over them; ``show`` says how to show a column."""
    groups = [node for node in walk_between(step.top, step.before.node) if isinstance(node, Group)]
    keys = [f"one row for each {', '.join(name.removeprefix('#') for name in node.keys)}" for node in groups]
    return [*keys, *(f"with {show(name)} = {formula}" for name, formula in step.lowered.formulas.items())]


def mismatch(name: str, existing: Type, given: Type, places: Places) -> Problem:
    """A result of another kind than its column."""
    passage = places.passage("expression")
    return TypeMismatch(
        what=f"column `{name}`",
        expected=describe(existing),
        found=describe(given),
        span=passage.span(0, len(passage.value)),
        expression=passage.value,
    )
