"""``allocate``: distribute the amounts of the selected rows to receivers in proportion to a driver, to the last cent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, StrictInt

from dobonomodo.formula import ColumnRef, Columns, Scope, Type, Typed, columns_of, convert, flat_name
from dobonomodo.formula.typed import Operation as Operator
from dobonomodo.formula.typed import Order
from dobonomodo.formula.types import (
    BOOLEAN,
    INTEGER,
    MAX_DIGITS,
    TEXT,
    UNKNOWN,
    DecimalType,
    as_decimal,
    describe,
    is_number,
    widen_column,
)
from dobonomodo.model.document import Places
from dobonomodo.model.entity import Entity
from dobonomodo.model.horizon import MISSING_HELP, PERIOD_HELP, Missing, PeriodHorizon, check_horizon
from dobonomodo.model.schema import AS_OF, AsOf
from dobonomodo.model.value import Count, Expected, Filled, Id, Setting
from dobonomodo.plan.columns import is_hole, joined_columns, resolve_name
from dobonomodo.plan.context import Context
from dobonomodo.plan.dataset import time_reading, unknown_use
from dobonomodo.plan.expression import (
    ACTIVE,
    CLOCK,
    FALSE,
    TRUE,
    all_of,
    apply,
    coalesce,
    column,
    equal,
    if_else,
    integer,
    null,
    over,
)
from dobonomodo.plan.operations.lowered import Formula, Lowered, derive, stack
from dobonomodo.plan.operations.operation import Effect, Facts, Operation
from dobonomodo.plan.operations.update import Assignment, find_conflict, find_join, find_target
from dobonomodo.plan.relation import Derive, Group, Keep, Lookup, Match, Rel, Require, Scan, Stack, Window, walk_between
from dobonomodo.plan.rows import Origin, Rows, merge
from dobonomodo.plan.shares import (
    TOTAL_DIGITS,
    ZERO,
    Shares,
    amount_digits,
    compare,
    in_units,
    part_amounts,
    power,
)
from dobonomodo.plan.system import (
    DELETED,
    LABELS,
    PERIOD,
    PERIOD_FROM,
    PERIOD_TO,
    PLACE,
    ROW_ID,
    UPDATED_AT,
    is_system,
)
from dobonomodo.problems import Problem
from dobonomodo.problems.definition import InvalidOperation, OperationReason, ReservedColumn
from dobonomodo.problems.formula import TypeMismatch, UnknownColumn
from dobonomodo.problems.operation import JoinAliasConflict
from dobonomodo.problems.problem import listed
from dobonomodo.problems.run import Allocation, AllocationReason

if TYPE_CHECKING:
    from dobonomodo.plan.step import Step

RECEIVERS = "receivers"
"""What columns of receivers are qualified with."""
MOST_PLACES = 10
_SHARED = " shared"
_BEFORE = " before"
_TOTALS = " totals"
_DRIVER = " driver"
_WEIGHT = " weight"
_POOL = " pool"
_END_OF_ID = 8
"""Length of the prefix by which Spark compares texts first."""

_Digits = Annotated[StrictInt, Field(ge=0, le=MOST_PLACES), Expected(f"a whole number from 0 to {MOST_PLACES}")]


class Receivers(Entity):
    """The dataset whose rows receive; its columns are ``receivers.column``."""

    dataset_id: Id = Field(description="The dataset of the receivers.")
    dataset_version: Count | None = Field(
        default=None, description="A fixed version; the default is the latest active version."
    )
    selector: Setting | None = Field(
        default=None, description="The condition for its rows; only its own columns are visible."
    )
    as_of: AsOf | None = Field(default=None, description=f"{AS_OF} The default is the setting of the dataset.")
    period: PeriodHorizon | None = Field(default=None, description=PERIOD_HELP)
    missing: Missing | None = Field(default=None, description=MISSING_HELP)

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """Periods that can be counted."""
        yield from check_horizon(places, "period")


class Allocate(Operation):
    """Distribute an amount of each selected row to receivers; the parts add up to the amount exactly."""

    type: ClassVar[str] = "allocate"
    facts: ClassVar[Facts] = Facts(Effect.SELECTS | Effect.ADDS, badge="÷", color="orange", counted="distributed")

    amount: Filled = Field(description="The column that is distributed.")
    receivers: Receivers = Field(description="The rows that receive.")
    driver: Setting = Field(description="In which proportion; a number, 0 or more, of receiver and distributed row.")
    match: Setting | None = Field(
        default=None, description="Which receivers belong to a row; the default is all of them."
    )
    set: tuple[Assignment, ...] = Field(default=(), description="Columns of the new rows, computed for each receiver.")
    round: _Digits = Field(default=2, description="The decimal places of each part.")
    pool: Literal["delete", "keep", "offset"] = Field(
        default="delete",
        description="What to do with a distributed row: delete it (the default), keep it, or offset it by a row with the negative amount.",
    )
    no_receivers: Literal["stop", "keep"] = Field(
        default="stop",
        description="Fail the run where a row has no receivers (the default), or keep such a row unchanged.",
    )

    def lower(self, rows: Rows, ctx: Context) -> Lowered:
        """Pair amounts with receivers, part them, put the parts below the rows, and delete or offset the amounts."""
        selected = ctx.selected(rows)
        checked = _Checked.of(self, rows, ctx)
        amount, driver = checked.amount, checked.driver
        if amount is None or driver is None or is_hole(selected) or is_hole(checked.match):
            kinds = {name: kind for name, (_, kind) in checked.values.items() if name not in rows.columns}
            return Lowered(replace(rows, node=Derive(rows.node, {name: null(kind) for name, kind in kinds.items()})))
        pools = all_of(selected, Operator("IS NOT NULL", (amount,), BOOLEAN))
        deletes, offsets = self.pool == "delete", self.pool == "offset"
        shares = Shares(amount.name, self.round, deletes, offsets, self.no_receivers == "keep")
        made = _Parts(rows, checked, pools, shares, ctx.spec.seq)
        pairs, part = made.lower()
        return self._place(rows, checked, made, pairs, part, shares, ctx)

    def _place(
        self, rows: Rows, checked: _Checked, made: _Parts, pairs: Rel, part: Typed, shares: Shares, ctx: Context
    ) -> Lowered:
        """The parts, and the offsets of amounts, below the rows; what is distributed is deleted where it should be."""
        seq, amount = ctx.spec.seq, checked.known_amount
        over_rows, distributed = made.find_distributed()
        marks: dict[str, Typed] = {}
        if shares.deletes:
            marks = {
                DELETED: if_else(distributed, TRUE, column(DELETED, rows.columns)),
                UPDATED_AT: if_else(distributed, CLOCK, column(UPDATED_AT, rows.columns)),
            }
        kept, marked = rows, None
        if marks or over_rows is not rows.node:
            kept = derive(rows, marks, conditions=(made.pools,), seq=seq, over=over_rows)
            marked = kept.node
        kind = _part_type(amount.type, shares.places)
        changes: dict[str, Type] = {amount.name: kind}
        changes |= {name: type_ for name, (_, type_) in checked.values.items()}
        copied: dict[str, Typed] = {
            name: column(name, rows.columns)
            for name in rows.columns
            if not is_system(name) or name in (LABELS, PERIOD, PERIOD_FROM, PERIOD_TO)
        }
        values = {**copied, amount.name: part, **{name: value for name, (value, _) in checked.values.items()}}
        source = (rows.dataset_id, rows.table)
        node, added = stack(kept, changes, pairs, values, ctx, by=made.id_columns, source=source)
        if shares.offsets:
            pools = Keep(over_rows, distributed)
            negative = Operator("NEGATE", (convert(amount, kind),), kind)
            below, marked = replace(kept, node=node), marked or node
            node, offsets = stack(
                below, changes, pools, {**copied, amount.name: negative}, ctx, by=(ROW_ID,), source=source
            )
            added = Stack(added, offsets)
        after = replace(
            kept,
            node=node,
            origins=checked.origins(kept, made.pools, seq),
            # Rows that are equal in all of these can be exchanged for each other.
            keys={**rows.keys, seq: tuple(name for name in node.schema.columns if not is_system(name))},
            parts={**rows.parts, seq: _key_of_parts(rows, amount.name, checked)},
        )
        reads = rows.names_in(
            made.pools, checked.known_driver, checked.match, *(value for value, _ in checked.values.values())
        )
        return Lowered(
            after,
            selected=distributed,
            added=added,
            shares=shares,
            marked=marked,
            reads=reads | {amount.name},
            sets=frozenset({amount.name, *checked.values}),
            formulas={amount.name: checked.driver_formula, **checked.formulas},
            conditions=checked.conditions,
        )

    @classmethod
    def describe(cls, step: Step) -> list[str]:
        """What is distributed to whom in which proportion, and what is done with the distributed rows."""
        lowered, shares = step.lowered, step.lowered.shares
        if shares is None:
            return []
        lines: list[str] = []
        for node in walk_between(step.top, step.before.node):
            if isinstance(node, Scan) and not lines:
                chosen = lowered.conditions.get(node.use.table)
                where = f" where {chosen}" if chosen else ""
                lines.append(f"distributes {step.show_column(shares.column)} to rows of {node.use.dataset_id}{where}")
        if matched := lowered.conditions.get(RECEIVERS):
            lines.append(f"matched on {matched}")
        formulas = dict(lowered.formulas)
        places = f"{shares.places} digit{'' if shares.places == 1 else 's'} behind the point"
        lines.append(f"in proportion to {formulas.pop(shares.column)}, in parts of {places}")
        lines += [f"with {step.show_column(name)} = {each}" for name, each in formulas.items()]
        becomes = f"keeps the rows it distributes; the total of {shares.column} grows by the parts"
        if shares.deletes:
            becomes = f"deletes the rows it distributes; the total of {shares.column} stays"
        if shares.offsets:
            becomes = f"adds a row with the negative amount for each; the total of {shares.column} stays"
        otherwise = (
            "keeps rows without receivers" if shares.may_lack_receivers else "fails where a row has no receivers"
        )
        return [*lines, becomes, otherwise]


@dataclass(frozen=True, slots=True, eq=False)
class _Checked:
    """The arguments of an allocation, checked against the columns."""

    receivers: Rel
    columns: Columns
    """Those of receivers."""
    key: tuple[str, ...]
    """Their natural key, if they have one."""
    amount: ColumnRef | None
    driver: Typed | None
    match: Typed
    values: dict[str, tuple[Typed, Type]]
    """What is set on new rows, and the types of these columns."""
    driver_formula: Formula
    formulas: dict[str, Formula]
    conditions: dict[str, Formula]
    origins_by_receiver: dict[str, Origin]
    chosen: Typed | None

    @property
    def known_amount(self) -> ColumnRef:
        """The column that is distributed, where it is one."""
        if self.amount is None:
            raise AssertionError("checked before")
        return self.amount

    @property
    def known_driver(self) -> Typed:
        """The driver, where it is a number."""
        if self.driver is None:
            raise AssertionError("checked before")
        return self.driver

    @classmethod
    def of(cls, given: Allocate, rows: Rows, ctx: Context) -> _Checked:
        """Every argument, with a problem for each that is wrong."""
        places = ctx.arguments
        if (taken_by := find_conflict(RECEIVERS, rows, ctx)) is not None:
            span = places.key_span("receivers")
            ctx.report(JoinAliasConflict(alias=RECEIVERS, taken_by=taken_by, fixed=True, span=span))
        amount = _find_amount(rows, ctx)
        scan, chosen, conditions = _find_receivers(given.receivers, ctx)
        columns = joined_columns(scan.schema.columns)
        scope = ctx.scope(rows, joined={RECEIVERS: columns})
        driver = _check_driver(scope, ctx)
        on: Typed = TRUE
        if given.match is not None:
            passage = places.passage("match")
            on = ctx.check(passage, scope, wanted=BOOLEAN, what="`match`")
            conditions[RECEIVERS] = Formula(passage.value, on)
        values, formulas = _check_set(given.set, amount, rows, scope, ctx)
        passage = places.passage("driver")
        return cls(
            receivers=Keep(replace(scan, placed=True), all_of(ACTIVE, chosen)),
            columns=columns,
            key=tuple(stored for name in scan.use.natural_key if (stored := columns.spelling(name)) is not None),
            amount=amount,
            driver=driver,
            match=on,
            values=values,
            driver_formula=Formula(passage.value, driver if driver is not None else null(UNKNOWN)),
            formulas=formulas,
            conditions=conditions,
            origins_by_receiver={
                f"{RECEIVERS}.{name}": Origin(frozenset({f"{scan.use.dataset_id}.{name}"})) for name in columns
            },
            chosen=chosen,
        )

    def origins(self, rows: Rows, pools: Typed, seq: int) -> dict[str, Origin]:
        """Where columns come from afterwards. What chooses receivers is a condition of all that is made for them."""
        seen = replace(rows, origins={**rows.origins, **self.origins_by_receiver})
        qualified = [
            replace(each, qualifier=RECEIVERS) for each in (columns_of(self.chosen) if self.chosen is not None else ())
        ]
        conditions = seen.conditions_of(pools, self.match, *qualified)
        made: dict[str, tuple[Typed, ...]] = {self.known_amount.name: (self.known_amount, self.known_driver)}
        made |= {name: (value,) for name, (value, _) in self.values.items()}
        found = dict(rows.origins)
        for name, parts in made.items():
            origin = merge([*([found[name]] if name in found else []), seen.origin_of(*parts)])
            found[name] = replace(origin, conditions=origin.conditions | conditions).through(seq)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """From rows to parts: pairs of a row and a receiver, what must hold of them, and the part of each."""

    rows: Rows
    checked: _Checked
    pools: Typed
    """The rows that have an amount to distribute."""
    shares: Shares
    seq: int

    @property
    def row_id(self) -> ColumnRef:
        """The column that identifies an amount."""
        return column(ROW_ID, self.rows.columns)

    @property
    def pool(self) -> tuple[ColumnRef, ...]:
        """What partitions the pairs. All ids of a run have the same prefix, so sorting by the end of an id first is faster."""
        return (ColumnRef(_POOL, None, TEXT), self.row_id)

    @property
    def id_columns(self) -> tuple[str, ...]:
        """What row ids of parts are made from: the distributed row, and the natural key or the position of the receiver."""
        return (ROW_ID, *(f"{RECEIVERS}.{name}" for name in self.checked.key or (ROW_ID,)))

    @property
    def weight(self) -> ColumnRef:
        """The driver in units of its last digit."""
        digits = min(TOTAL_DIGITS, as_decimal(self.checked.known_driver.type).precision)
        return ColumnRef(_WEIGHT, None, DecimalType(digits, 0))

    def lower(self) -> tuple[Rel, Typed]:
        """The pairs, and the part of each."""
        node, total = self._sum_up(self._pair(unmatched=not self.shares.may_lack_receivers))
        shown = tuple(self._show_pool())
        if self.checked.key:
            repeated = all_of(*self._repeats())
            receiver = tuple(self._show_receiver())
            node = self._require(node, repeated, AllocationReason.REPEATED_RECEIVER, (*shown, *receiver))
        node = self._require(node, compare(">=", total, power(TOTAL_DIGITS)), AllocationReason.LARGE_DRIVER, shown)
        has_total = compare(">", total, ZERO)
        if self.shares.may_lack_receivers:
            node = Keep(node, has_total)
        else:
            without = Operator("NOT", (coalesce(has_total, FALSE),), BOOLEAN)
            node = self._require(node, without, AllocationReason.NO_RECEIVERS, shown)
        ties = [Order(self._of_receiver(name)) for name in (*self.checked.key, PLACE)]
        return part_amounts(
            node,
            pool=self.pool,
            amount=self.checked.known_amount,
            weight=self.weight,
            total=total,
            places=self.shares.places,
            ties=ties,
        )

    def find_distributed(self) -> tuple[Rel, Typed]:
        """The rows, with what is needed to know which of them are distributed, and the condition for these."""
        if not self.shares.may_lack_receivers:
            return self.rows.node, self.pools
        pairs = self._pair(unmatched=False)
        totals = Group(pairs, {"pool": self.row_id}, {"total": apply("SUM", self.weight)})
        kind = totals.schema.columns["total"]
        same = equal(self.row_id, ColumnRef("pool", _TOTALS, TEXT))
        node = Lookup(self.rows.node, _TOTALS, totals, same, self.pools)
        return node, all_of(self.pools, compare(">", ColumnRef("total", _TOTALS, kind), ZERO))

    def _pair(self, *, unmatched: bool) -> Rel:
        """Amounts with their receivers. Amounts and drivers are what they must be, or the run fails."""
        checked = self.checked
        pairs = Match(
            self.rows.node, RECEIVERS, checked.receivers, checked.match, self.pools, unmatched=unmatched, places=True
        )
        driver = convert(checked.known_driver, as_decimal(checked.known_driver.type))
        given = ColumnRef(_DRIVER, None, driver.type)
        node: Rel = Derive(
            pairs, {_DRIVER: if_else(self._received, driver, null(driver.type)) if unmatched else driver}
        )
        for violated, reason, shown in self._requirements(given):
            node = self._require(node, violated, reason, shown)
        weight = in_units(given, as_decimal(given.type).scale, as_decimal(self.weight.type).precision)
        return Derive(node, {_WEIGHT: weight, _POOL: apply("RIGHT", self.row_id, integer(_END_OF_ID))})

    def _requirements(self, driver: ColumnRef) -> Iterator[tuple[Typed, AllocationReason, tuple[ColumnRef, ...]]]:
        amount, places = self.checked.known_amount, self.shares.places
        kind, limit = as_decimal(amount.type), amount_digits(places) - places
        pool, both = tuple(self._show_pool()), (*self._show_pool(), *self._show_receiver())
        if kind.scale > places:
            rounded = apply("ROUND", amount, integer(places))
            yield compare("<>", amount, rounded), AllocationReason.FINE_AMOUNT, pool
        if kind.whole > limit:
            large = compare(">=", apply("ABS", convert(amount, kind)), power(limit))
            yield large, AllocationReason.LARGE_AMOUNT, pool
        empty = all_of(self._received, Operator("IS NULL", (driver,), BOOLEAN))
        yield empty, AllocationReason.NULL_DRIVER, both
        yield compare("<", driver, ZERO), AllocationReason.NEGATIVE_DRIVER, both
        digits = as_decimal(driver.type)
        if digits.precision > TOTAL_DIGITS:
            yield compare(">=", driver, power(TOTAL_DIGITS - digits.scale)), AllocationReason.LARGE_DRIVER, both

    def _sum_up(self, pairs: Rel) -> tuple[Rel, ColumnRef]:
        """The pairs with the total of drivers of their amount, and with the previous receiver by key."""
        if self.checked.key:
            order = [Order(self._of_receiver(name)) for name in (*self.checked.key, PLACE)]
            before = {
                each.key.name: over("LAG", each.key, partition=self.pool, order=order)
                for each in order
                if isinstance(each.key, ColumnRef)
            }
            pairs = Window(pairs, _BEFORE, before)
        # Above the receivers by key, so that Spark sorts once.
        node = Window(pairs, _SHARED, {"total": over("SUM", self.weight, partition=self.pool)})
        return node, ColumnRef("total", _SHARED, node.schema.joined[_SHARED]["total"])

    def _repeats(self) -> Iterator[Typed]:
        """Conditions for a receiver that has the same key as the one before it."""
        yield Operator("IS NOT NULL", (ColumnRef(PLACE, _BEFORE, INTEGER),), BOOLEAN)
        for name in self.checked.key:
            here = self._of_receiver(name)
            before = replace(here, qualifier=_BEFORE)
            nulls = (Operator("IS NULL", (each,), BOOLEAN) for each in (here, before))
            yield Operator("OR", (equal(here, before), all_of(*nulls)), BOOLEAN)

    def _require(self, node: Rel, violated: Typed, reason: AllocationReason, shown: Sequence[ColumnRef]) -> Rel:
        condition = all_of(self.pools, violated)
        return Require(node, condition, Allocation.code, str(reason), tuple(shown), self.seq)

    @property
    def _received(self) -> Typed:
        return Operator("IS NOT NULL", (self._of_receiver(PLACE),), BOOLEAN)

    def _of_receiver(self, name: str) -> ColumnRef:
        kind = INTEGER if name == PLACE else self.checked.columns[name]
        return ColumnRef(name, RECEIVERS, kind)

    def _show_pool(self) -> Iterator[ColumnRef]:
        """The columns that are shown for a distributed row: its key, the columns that select it, and the amount."""
        own = [self.rows.columns.spelling(name) for name in self.rows.keys.get(0, ())]
        used = [each.name for each in columns_of(self.pools) if each.qualifier is None and not is_system(each.name)]
        names = dict.fromkeys([*(name for name in own if name is not None), *used])
        names.pop(self.checked.known_amount.name, None)
        yield from (column(name, self.rows.columns) for name in names)
        yield self.checked.known_amount

    def _show_receiver(self) -> Iterator[ColumnRef]:
        used = dict.fromkeys([*columns_of(self.checked.match), *columns_of(self.checked.known_driver)])
        named = [self._of_receiver(name) for name in self.checked.key]
        yield from dict.fromkeys([*named, *(each for each in used if each.qualifier == RECEIVERS)])


def _find_amount(rows: Rows, ctx: Context) -> ColumnRef | None:
    """The column that is distributed: a number of the working dataset."""
    at = ctx.arguments.at("amount")
    if at is None:
        return None
    found = resolve_name(at, ctx.scope(rows))
    if isinstance(found, Problem):
        ctx.report(found)
    elif found.qualifier is not None:
        ctx.report(UnknownColumn(name=flat_name(found), known=tuple(rows.columns), span=at.span()))
    elif is_system(found.name):
        ctx.report(ReservedColumn(name=found.name, span=at.span()))
    elif found.type == UNKNOWN:
        return None
    elif not is_number(found.type):
        span, given = at.span(), describe(found.type)
        advice = _list_numbers(rows.columns)
        ctx.report(TypeMismatch(what="`amount`", expected="a column of numbers", found=given, span=span, advice=advice))
    else:
        return found
    return None


def _find_receivers(given: Receivers, ctx: Context) -> tuple[Scan, Typed | None, dict[str, Formula]]:
    """The rows that receive, the condition for them, and that condition as it was written."""
    places = ctx.arguments.at("receivers") or ctx.arguments
    known = find_join(given.dataset_id, given.dataset_version, places, ctx)
    if known is None:
        return Scan(unknown_use("join", given.dataset_id, alias=RECEIVERS)), None, {}
    scan = ctx.scan(known, "join", alias=RECEIVERS, timing=time_reading(given, places), at=places.at("dataset_id"))
    ctx.check_as_of(places, scan.use)
    if given.selector is None or not given.selector.strip():
        return scan, None, {}
    scope = ctx.scope_of(scan)
    passage = places.passage("selector")
    chosen = ctx.check(passage, scope, wanted=BOOLEAN, what="a selector")
    return scan, chosen, {scan.use.table: Formula(passage.value, chosen)}


def _check_driver(scope: Scope, ctx: Context) -> Typed | None:
    passage = ctx.arguments.passage("driver")
    driver = ctx.check(passage, scope)
    if is_hole(driver):
        return None
    if is_number(driver.type):
        return driver
    ctx.report(
        TypeMismatch(
            what="`driver`",
            expected="a number",
            found=describe(driver.type),
            span=passage.span(0, len(passage.value)),
            expression=passage.value,
            advice=_list_numbers(scope.joined[RECEIVERS], qualifier=RECEIVERS),
        )
    )
    return None


def _list_numbers(columns: Columns, *, qualifier: str = "") -> str | None:
    """The columns of numbers, for a hint."""
    names = [name for name, kind in columns.items() if is_number(kind) and not is_system(name)]
    found = [f"{qualifier}.{name}" if qualifier else name for name in names]
    return f"columns of numbers: {listed(found)}" if found else None


def _check_set(
    given: Sequence[Assignment], amount: ColumnRef | None, rows: Rows, scope: Scope, ctx: Context
) -> tuple[dict[str, tuple[Typed, Type]], dict[str, Formula]]:
    """What is set on new rows, with the types of the columns, and the formulas as they were written."""
    upcoming = frozenset(each.column for each in given if rows.columns.spelling(each.column) is None)
    inside = replace(scope, upcoming=upcoming)
    taken: dict[str, Places] = {}
    values: dict[str, tuple[Typed, Type]] = {}
    formulas: dict[str, Formula] = {}
    for position, assignment in enumerate(given):
        places = ctx.arguments.at("set", position) or ctx.arguments
        passage = places.passage("expression")
        value = ctx.check(passage, inside)
        name = find_target(assignment, places, rows, taken, ctx)
        if name is None:
            continue
        if amount is not None and name == amount.name:
            reason = OperationReason.SET_AMOUNT
            ctx.report(InvalidOperation(reason=reason, found=name, span=places.span("column")))
            continue
        value, kind = ctx.assign(name, value, places, rows)
        if name == LABELS:
            value = coalesce(value, column(LABELS, rows.columns))
        values[name] = (convert(value, kind), kind)
        formulas[name] = Formula(passage.value, value)
    return values, formulas


def _key_of_parts(rows: Rows, amount: str, checked: _Checked) -> tuple[str, ...]:
    """The key of a part: the key of the distributed row, and the columns that are set from receivers."""
    own = rows.keys.get(0, ())
    given = [
        name
        for name, (value, _) in checked.values.items()
        if name != amount and any(each.qualifier == RECEIVERS for each in columns_of(value))
    ]
    return tuple(dict.fromkeys((*own, *given))) if own else ()


def _part_type(amount: Type, places: int) -> Type:
    """The type of a column of amounts that holds parts of so many places."""
    exact = as_decimal(amount)
    if exact.scale >= places:
        return amount
    part = DecimalType(min(MAX_DIGITS, exact.whole + places), places)
    return widen_column(amount, part) or amount
