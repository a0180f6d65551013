"""``aggregate``: summarise the selected rows and append the summary rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from dobonomodo.formula import ColumnRef, Scope, Type, Typed, convert, flat_name
from dobonomodo.formula.typed import Literal
from dobonomodo.formula.types import TEXT, UNKNOWN, describe
from dobonomodo.model.document import Places
from dobonomodo.model.entity import Entity
from dobonomodo.model.schema import AS_OF, AsOf
from dobonomodo.model.shape import CheckedApart
from dobonomodo.model.value import Count, Filled, Id, Setting, is_identifier
from dobonomodo.plan.columns import is_hole, resolve_name
from dobonomodo.plan.context import Context
from dobonomodo.plan.expression import ACTIVE, column
from dobonomodo.plan.levels import ALL, LEVEL, Level, Tree, roll_up, watch_leaves
from dobonomodo.plan.operations.lowered import Formula, Lowered, stack, warn_of_summaries
from dobonomodo.plan.operations.operation import Effect, Facts, Operation
from dobonomodo.plan.operations.update import find_join
from dobonomodo.plan.relation import Ancestors, Expand, Group, Keep, Match, Rel, walk_between
from dobonomodo.plan.rows import Origin, Rows, merge
from dobonomodo.plan.system import GROUPABLE, PERIOD, is_system
from dobonomodo.problems import Passage, Problem
from dobonomodo.problems.definition import InvalidColumnName, InvalidOperation, InvalidValue, OperationReason
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


class Hierarchy(Entity):
    """A tree over the values of a group key: another dataset with a row for each node, which names the node and its parent."""

    column: Filled = Field(description="The group key whose values are nodes of the tree.")
    dataset_id: Id = Field(description="The dataset that has the tree.")
    dataset_version: Count | None = Field(
        default=None, description="A fixed version; the default is the latest active version."
    )
    child: Filled = Field(description="Its column with the node.")
    parent: Filled = Field(description="Its column with the node above; NULL for a root.")
    as_of: AsOf | None = Field(default=None, description=f"{AS_OF} The default is the setting of the dataset.")


class Aggregate(Grouping, Operation):
    """Append one summary row for each group of the selected rows; the rows themselves stay."""

    type: ClassVar[str] = "aggregate"
    facts: ClassVar[Facts] = Facts(Effect.SELECTS | Effect.ADDS, badge="Σ", color="violet", counted="summed")

    rollup: tuple[Filled, ...] = Field(
        default=(),
        description="Subtotals: `all` for one row over everything, a column of `group_by` for one row by it and those before it.",
    )
    hierarchy: Hierarchy | None = Field(default=None, description="A tree over a group key; its nodes get totals.")
    level_column: Annotated[str, CheckedApart()] | None = Field(
        default=None, description="The text column that tells groups, subtotals and totals of nodes apart."
    )

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """Subtotals need a column that distinguishes them from groups whose key is NULL."""
        yield from super().check(places)
        levels = [key for key in ("rollup", "hierarchy") if places.at(key) is not None]
        name = places.get("level_column")
        if levels and name is None:
            reason = OperationReason.NO_LEVEL_COLUMN
            yield InvalidOperation(reason=reason, found=levels[0], span=places.key_span(levels[0]))
        if isinstance(name, str) and name.startswith("_"):
            yield SystemColumnConflict(name=name, span=places.span("level_column"))
        elif name is not None and (not isinstance(name, str) or not is_identifier(name)):
            yield InvalidColumnName(name=str(name), span=places.span("level_column"))

    def lower(self, rows: Rows, ctx: Context) -> Lowered:
        """Group the selected rows, give the groups the columns of the working dataset, put them below it."""
        selected = ctx.selected(rows)
        warn_of_summaries(rows, ctx, chosen_by=(selected,))
        scope = ctx.scope(rows)
        groups = group(self, Keep(rows.node, selected), scope, ctx.arguments, ctx, check=ctx.check)
        kept, check = rows, None
        changes: dict[str, Type] = {}
        level = self._find_level(groups, rows, ctx)
        if level is not None:
            tree = find_tree(self.hierarchy, groups, scope, ctx) if self.hierarchy is not None else None
            levels = self._find_levels(groups, scope, ctx)
            groups = replace(groups, node=roll_up(groups.node, groups.keys, levels, tree))
            changes[level] = TEXT
            if tree is not None:
                kept, check = watch_leaves(rows, selected, tree, ctx.spec.ref)
        for name, value, places in groups.values:
            stored = rows.columns.spelling(name) or name
            _, changes[stored] = ctx.assign(stored, value, places, rows)
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
        by = tuple(groups.keys)
        if level is not None:
            values[level] = column(LEVEL, made.schema.columns)
            by = (*by, LEVEL)
        node, added = stack(kept, changes, made, values, ctx, by=by, source=(rows.dataset_id, rows.table))
        chosen = rows.conditions_of(selected)
        seq = ctx.spec.seq
        origins = dict(rows.origins)
        for name, value, _ in groups.values:
            stored = rows.columns.spelling(name) or name
            made_of = merge([*([origins[stored]] if stored in origins else []), rows.origin_of(value)])
            origins[stored] = replace(made_of, conditions=made_of.conditions | chosen).through(seq)
        if level is not None:
            origins[level] = origins.get(level, Origin()).through(seq)
        has_period = any(key.name == PERIOD for key in groups.keys.values())
        after = replace(
            rows,
            node=node,
            origins=origins,
            summaries_of=(*rows.summaries_of, seq),
            keys={
                **rows.keys,
                seq: (
                    *(key.name for key in groups.keys.values() if key.qualifier is None),
                    *((level,) if level is not None else ()),
                ),
            },
            levels={**rows.levels, seq: level} if level is not None else rows.levels,
            periodless_of=rows.periodless_of
            if has_period or PERIOD not in rows.columns
            else (*rows.periodless_of, seq),
        )
        reads = rows.names_in(selected, *groups.keys.values(), *(value for _, value, _ in groups.values))
        return Lowered(
            after,
            selected=selected,
            added=added,
            check=check,
            reads=reads,
            sets=frozenset(changes),
            formulas={(rows.columns.spelling(name) or name): formula for name, formula in groups.formulas.items()},
        )

    @classmethod
    def describe(cls, step: Step) -> list[str]:
        """The groups and what is computed for each."""
        return describe_groups(step, show=step.show_column)

    def _find_level(self, groups: Groups, rows: Rows, ctx: Context) -> str | None:
        """The stored spelling of the column that says what a row sums up."""
        name = self.level_column
        if name is None or name.startswith("_") or not is_identifier(name):
            return None
        span = ctx.arguments.span("level_column")
        is_key = any(key.qualifier is None and key.name.casefold() == name.casefold() for key in groups.keys.values())
        if is_key or any(name.casefold() == each.casefold() for each, _, _ in groups.values):
            ctx.report(DuplicateAggColumn(name=name, is_key=is_key, span=span))
            return None
        stored = rows.columns.spelling(name) or name
        kind = rows.columns.get(stored)
        if kind not in (None, TEXT, UNKNOWN):
            found = describe(kind)
            ctx.report(TypeMismatch(what=f"`level_column: {name}`", expected="a text column", found=found, span=span))
            return None
        return stored

    def _find_levels(self, groups: Groups, scope: Scope, ctx: Context) -> tuple[Level, ...]:
        """The groups themselves, then the subtotals in the order in which they were written."""
        names = list(groups.keys)
        shown = [name.removeprefix("#") for name in names]
        levels = [Level(shown[-1] if shown else ALL, tuple(names))]
        known = (ALL, *shown[:-1])
        for position, written in enumerate(self.rollup):
            at = ctx.arguments.at("rollup", position) or ctx.arguments
            found = None if written.casefold() == ALL else resolve_name(at, scope)
            name = f"#{flat_name(found)}" if isinstance(found, ColumnRef) else None
            if found is None:
                level = Level(ALL, ())
            elif name is not None and name in names[:-1]:
                level = Level(name.removeprefix("#"), tuple(names[: names.index(name) + 1]))
            else:
                expected, given = "`all` or a column of `group_by` before the last", f"`{written}`"
                span = at.span()
                ctx.report(
                    InvalidValue(key="rollup", expected=expected, found=given, known=known, text=written, span=span)
                )
                continue
            if level in levels:
                ctx.report(DuplicateGroupBy(name=level.name, key="rollup", span=at.span()))
                continue
            levels.append(level)
        return tuple(levels)


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The groups of some rows. Keys and results have names of their own until they find their columns."""

    node: Group
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


def find_tree(given: Hierarchy, groups: Groups, main: Scope, ctx: Context) -> Tree | None:
    """The tree over a group key; None where something is wrong with it, which is reported."""
    places = ctx.arguments.at("hierarchy") or ctx.arguments
    keys = {key.name: (name, key) for name, key in groups.keys.items() if key.qualifier is None}
    named = resolve_name(places.at("column") or places, main)
    spelled = named.name if isinstance(named, ColumnRef) and named.qualifier is None and named.name in keys else None
    known = find_join(given.dataset_id, given.dataset_version, places, ctx)
    if spelled is None:
        expected, found = "a column of `group_by`", f"`{given.column}`"
        span = places.span("column")
        ctx.report(
            InvalidValue(key="column", expected=expected, found=found, known=tuple(keys), text=given.column, span=span)
        )
    if known is None:
        return None
    scan = ctx.scan(known, "join", alias="hierarchy", as_of=given.as_of, at=places.at("dataset_id"))
    ctx.check_as_of(places, scan.use)
    scope = ctx.scope_of(scan)
    columns: list[ColumnRef] = []
    for key in ("child", "parent"):
        at = places.at(key) or places
        column_found = resolve_name(at, scope)
        if isinstance(column_found, Problem):
            ctx.report(column_found)
        elif spelled is not None and column_found.type != keys[spelled][1].type:
            wanted, other = keys[spelled][1].type, column_found.type
            what = f"`{key}` of the hierarchy"
            ctx.report(
                TypeMismatch(what=what, expected=f"{wanted}, as `{spelled}` is", found=str(other), span=at.span())
            )
        else:
            columns.append(column_found)
    if spelled is None or len(columns) < 2:
        return None
    name, column_of_rows = keys[spelled]
    pairs = Ancestors(Keep(scan, ACTIVE), columns[0], columns[1], given.dataset_id, ctx.spec.ref)
    return Tree(name, column_of_rows, pairs)


def describe_groups(step: Step, *, show: Callable[[str], str]) -> list[str]:
    """The keys of the groups that a step makes, and the formulas over them; ``show`` says how to show a column."""
    groups = [node for node in walk_between(step.top, step.before.node) if isinstance(node, Group)]
    keys = []
    for node in groups:
        names = [name.removeprefix("#") for name in node.keys if name != LEVEL]
        keys.append(f"one row for each {', '.join(names)}")
    for each in (node for node in walk_between(step.top, step.before.node) if isinstance(node, Expand)):
        levels = dict.fromkeys(value.value for choice in each.choices if isinstance(value := choice[LEVEL], Literal))
        keys.append(f"on the levels {', '.join(map(str, levels))}")
    for match in (node for node in walk_between(step.top, step.before.node) if isinstance(node, Match)):
        if isinstance(pairs := match.source, Ancestors):
            keys.append(f"with the nodes of {pairs.dataset_id}: {pairs.child.name} below {pairs.parent.name}")
    return [*keys, *(f"with {show(name)} = {formula}" for name, formula in step.lowered.formulas.items())]
