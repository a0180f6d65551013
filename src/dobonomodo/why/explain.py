"""Turns a computed row with its lineage into an explanation in terms of the project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from dobonomodo.formula import Typed, columns_of, flat_name
from dobonomodo.formula.evaluate import Result, compute, evaluate, evaluate_group, evaluate_known
from dobonomodo.formula.meaning import EXACT, Total, Value
from dobonomodo.formula.print import print_checked
from dobonomodo.formula.typed import Apply, ColumnRef, Literal, Operation, Over, walk, windows_of
from dobonomodo.formula.types import as_decimal
from dobonomodo.plan import Plan, Step
from dobonomodo.plan.check import RowCondition
from dobonomodo.plan.expression import ACTIVE
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.operations import Effect as Acts
from dobonomodo.plan.operations.lowered import Formula
from dobonomodo.plan.relation import Derive, Group, Keep, Lookup, Match, Rel, Scan, Window, walk_between
from dobonomodo.plan.shares import FLOOR, FLOORS, PLACE, RANKED, SUM, TOTAL, UNITS, Shares
from dobonomodo.plan.system import DELETED, OPERATION_SEQ, ROW_ID
from dobonomodo.why.amount import adds_up, amount_of, arguments_of, simplify_amount
from dobonomodo.why.explanation import (
    Contributor,
    Effect,
    Evaluated,
    JoinedRow,
    Part,
    StoredPlace,
    Summary,
    Touch,
    show,
)
from dobonomodo.why.interpret import find_keys, without_casts
from dobonomodo.why.levels import find_constants, formulas_of
from dobonomodo.why.row import Traced

if TYPE_CHECKING:
    from dobonomodo.engine.grouping import LargeGroup

Path = Mapping[int, Traced]
"""The states of one row on its way through the plan, by the identity of the node."""


class Explainer:
    """Explains rows of one plan."""

    def __init__(self, plan: Plan, facts: RunFacts) -> None:
        self._plan, self._facts = plan, facts

    def explain(
        self, row: Traced, until: Step, *, contributors: int | None, column: str | None = None
    ) -> tuple[tuple[Touch, ...], StoredPlace | Summary | None]:
        """The operations that could act on a row, the last first, and where it comes from.

        ``until`` is the output that wrote it; ``column`` is the one by which contributors are ordered.
        """
        steps = [each for each in self._plan.steps if each.spec.seq <= until.spec.seq]
        return self._explain_path(trace_path(row), steps, until, contributors=contributors, column=column)

    def explain_contributor(
        self, row: Traced, group: Traced, *, contributors: int | None, column: str | None = None
    ) -> tuple[tuple[Touch, ...], StoredPlace | Summary | None]:
        """The same for a row of a group, up to what it adds to the totals of the group."""
        step = self.step_of(group)
        path = trace_path(row)
        formulas = formulas_of(group, step.lowered.formulas)
        amounts = self._find_amounts(group, formulas)
        values = {name: self._explain_amount(amount, row.values) for name, amount in amounts.items()}
        reads = {
            name: tuple(self.evaluate(text, each, row.values) for text, each in arguments_of(formula.tree).items())
            for name, formula in formulas.items()
            if name not in amounts
        }
        condition, joins = self._explain_taken(step, row, path)
        touch = Touch(step.spec.seq, step.spec.name, step.spec.type, "selected", condition, joins, values, reads=reads)
        earlier = [each for each in self._plan.steps if each.spec.seq < step.spec.seq]
        touches, origin = self._explain_path(path, earlier, step, contributors=contributors, column=column)
        return (touch, *touches), origin

    def _find_amounts(self, group: Traced, formulas: Mapping[str, Formula]) -> dict[str, Typed]:
        """What a row adds to each total of a group that is the sum of that, by column."""
        keys = find_constants(group)
        found = {name: amount_of(formula.tree, keys, self._facts) for name, formula in formulas.items()}
        amounts = {name: amount for name, amount in found.items() if amount is not None}
        if group.large is not None:
            sums = {name.removeprefix("=").casefold() for name in group.large.sums}
            return {name: amount for name, amount in amounts.items() if name.casefold() in sums}
        given = [row.values for row in group.below]
        return {
            name: amount
            for name, amount in amounts.items()
            if adds_up(
                evaluate_group(formulas[name].tree, given, self._facts).value,
                (compute(amount, each, self._facts) for each in given),
            )
        }

    def _explain_amount(self, amount: Typed, values: Mapping[str, Value]) -> Evaluated:
        shown = simplify_amount(amount, values, self._facts)
        return self.evaluate(print_checked(shown), shown, values)

    def step_of(self, group: Traced) -> Step:
        """The operation that made a group."""
        for step in self._plan.steps:
            added = step.lowered.added
            if added is not None and any(node is group.node for node in walk_between(added, step.before.node)):
                return step
        raise AssertionError("an operation makes every group of a plan")

    def _explain_path(
        self, path: Path, steps: Sequence[Step], until: Step, *, contributors: int | None, column: str | None
    ) -> tuple[tuple[Touch, ...], StoredPlace | Summary | None]:
        touches: list[Touch] = []
        origin: StoredPlace | Summary | None = None
        for step in reversed(steps):
            if id(step.before.node) not in path:
                if id(step.after.node) in path:
                    touch, origin = self._explain_added(step, path, contributors, column)
                    touches.append(touch)
                continue
            touch_or_none = self._explain_touch(step, path, until)
            if touch_or_none is not None:
                touches.append(touch_or_none)
        if origin is None:
            origin = self._explain_loaded(path)
        return tuple(touches), origin

    # --- operations on a row that is there

    def _explain_touch(self, step: Step, path: Path, until: Step) -> Touch | None:
        lowered = step.lowered
        if lowered.shares is not None:
            return self._explain_share(step, lowered.shares, path)
        if lowered.selected is None or lowered.added is not None:
            return None
        if lowered.write is not None and step is not until and lowered.check is None:
            return None
        if lowered.check is not None and not isinstance(lowered.check.condition, RowCondition):
            return None
        before = path[id(step.before.node)]
        row = self._row_of(step, path)
        chosen = evaluate(lowered.selected, row.values, self._facts).value
        condition = self._explain_selector(step, row)
        effect = self._find_effect(step, before, row, chosen=chosen is True)
        if effect not in ("selected", "deleted"):
            return Touch(step.spec.seq, step.spec.name, step.spec.type, effect, condition)
        joins = tuple(self._explain_joins(step.after.node, step.before.node, path, step.lowered.conditions))
        windows = self._windows(step, path)
        values = {
            name: self.evaluate(str(formula), formula.tree, row.values, windows)
            for name, formula in lowered.formulas.items()
            if not _has_aggregates(formula.tree)
        }
        sets = tuple(values) if lowered.check is None else ()
        return Touch(step.spec.seq, step.spec.name, step.spec.type, effect, condition, joins, values, sets)

    def _explain_share(self, step: Step, shares: Shares, path: Path) -> Touch | None:
        """A part of a distributed amount: how it was computed, what was set, and the row of the receiver."""
        nodes = list(walk_between(step.after.node, step.before.node))
        pair = next((path[id(each)] for each in nodes if isinstance(each, Match) and id(each) in path), None)
        if pair is None or not isinstance(pair.node, Match):
            return self._explain_distributed(step, shares, path)
        summed = next(path[id(each)] for each in nodes if isinstance(each, Window) and each.alias == FLOORS)
        formulas = dict(step.lowered.formulas)
        values = {shares.column: self._explain_part(formulas.pop(shares.column), shares, pair, summed)}
        values |= {name: self.evaluate(str(each), each.tree, pair.values) for name, each in formulas.items()}
        condition = self._explain_selector(step, path[id(step.before.node)])
        joins = (self._explain_join(pair, pair.node, step.lowered.conditions),)
        spec = step.spec
        return Touch(spec.seq, spec.name, spec.type, "added", condition, joins, values, tuple(step.lowered.formulas))

    def _explain_part(self, driver: Formula, shares: Shares, pair: Traced, summed: Traced) -> Evaluated:
        """The share of an amount by the drivers, and the unit that a large remainder gets."""
        unit = Decimal((0, (1,), -shares.places))
        scale = as_decimal(driver.tree.type).scale
        amount = pair.values[shares.column]
        units, total, floor, place, floors = (
            Decimal(value) if isinstance(value := summed.values[name], int | Decimal) else Decimal(0)
            for name in (UNITS, TOTAL, FLOOR, f"{RANKED}.{PLACE}", f"{FLOORS}.{SUM}")
        )
        sign = -1 if isinstance(amount, int | Decimal) and amount < 0 else 1
        left = EXACT.subtract(units, floors)
        share = EXACT.multiply(floor, sign * unit)
        more = sign * unit if place <= left else 0 * unit
        result = evaluate(driver.tree, pair.values, self._facts)
        drivers, text = EXACT.scaleb(total, -scale), f"{shares.column} * driver / total of drivers"
        down = f"{show(amount)} * {show(result.value)} / {show(drivers)}, cut after {shares.places} digits"
        parts = (
            *(part for part in parts_of(result) if part.text != result.text),
            Part("driver", result.text_with_values if result.parts else str(driver), result.value),
            Part("total of drivers", "of all receivers of this row", drivers),
            Part(text, down, share),
            Part("largest remainders", f"place {place:,}, units left: {left:,}", more),
            Part(shares.column, f"{show(share)} + {show(more)}", EXACT.add(share, more)),
        )
        reads = _reads(driver.tree) | {shares.column}
        return Evaluated(text, EXACT.add(share, more), parts, reads)

    def _explain_distributed(self, step: Step, shares: Shares, path: Path) -> Touch | None:
        """The row itself whose amount was distributed, if it was."""
        marked, selected = step.lowered.marked, step.lowered.selected
        if selected is None or not isinstance(marked, Derive) or id(marked.rows) not in path:
            return None
        row = path[id(marked.rows)]
        chosen = evaluate(selected, row.values, self._facts).value is True
        condition = self._explain_selector(step, row)
        was_deleted = path[id(step.before.node)].values.get(DELETED) is True
        other: Effect = "already deleted" if was_deleted else "not selected"
        effect: Effect = ("deleted" if shares.deletes else "selected") if chosen else other
        return Touch(step.spec.seq, step.spec.name, step.spec.type, effect, condition)

    def _find_effect(self, step: Step, before: Traced, row: Traced, *, chosen: bool) -> Effect:
        if not chosen:
            return "already deleted" if before.values.get(DELETED) is True else "not selected"
        check = step.lowered.check
        if check is not None and check.excludes and isinstance(check.condition, RowCondition):
            violated = evaluate(check.condition.violated, row.values, self._facts).value
            return "deleted" if violated is True else "selected"
        return "deleted" if Acts.DELETES in step.facts.effect else "selected"

    def _row_of(self, step: Step, path: Path) -> Traced:
        """The row with the columns of the joins of an operation beside it."""
        after = step.after.node
        if isinstance(after, Derive) and after is not step.before.node and id(after.rows) in path:
            return path[id(after.rows)]
        return path[id(step.before.node)]

    def _explain_selector(self, step: Step, row: Traced) -> Evaluated | None:
        """The condition as it was written, without that the row must not be deleted."""
        selected = step.lowered.selected
        written = step.spec.selector
        if selected is None or not written or not written.strip():
            return None
        tree = selector_of(selected)
        return self.evaluate(" ".join(written.split()), tree, row.values) if tree is not None else None

    def _explain_joins(
        self, node: Rel, stop: Rel | None, path: Path, conditions: Mapping[str, Formula]
    ) -> Iterator[JoinedRow]:
        """The joins between two states of the row, the first to happen first."""
        found: list[JoinedRow] = []
        here = path.get(id(node))
        while here is not None and here.node is not stop:
            if isinstance(here.node, Lookup):
                found.append(self._explain_join(here, here.node, conditions))
            here = here.below[0] if here.below and not isinstance(here.node, Group) else None
        yield from reversed(found)

    def _explain_join(self, row: Traced, node: Lookup | Match, conditions: Mapping[str, Formula]) -> JoinedRow:
        written = conditions.get(node.alias)
        text = str(written) if written is not None else print_checked(node.on)
        dataset = _scan_of(node.source).use.dataset_id
        wanted = {
            name: evaluate(value, row.values, self._facts).value for value, name in find_keys(node.on, node.alias)
        }
        joined = row.below[1] if len(row.below) > 1 else None
        if joined is None:
            return JoinedRow(node.alias, None, text, dataset, None, wanted)
        on = self.evaluate(text, node.on, row.values)
        return JoinedRow(node.alias, on, text, dataset, place_of(joined), wanted)

    def _windows(self, step: Step, path: Path) -> Mapping[Over, Result]:
        """The values of the windows of an operation, as they are numbered where they are computed."""
        after = step.after.node
        below = after.rows if isinstance(after, Derive) else None
        if not isinstance(below, Window):
            return {}
        row = path[id(below)]
        trees = [formula.tree for formula in step.lowered.formulas.values()]
        overs = dict.fromkeys(over for tree in trees for over in windows_of(tree))
        return {over: Result(over, row.values[f"{below.alias}.{number}"]) for number, over in enumerate(overs)}

    # --- where a row comes from

    def _explain_added(
        self, step: Step, path: Path, contributors: int | None, column: str | None
    ) -> tuple[Touch, StoredPlace | Summary | None]:
        added = path[id(step.lowered.added)] if step.lowered.added is not None else None
        touch = Touch(step.spec.seq, step.spec.name, step.spec.type, "added")
        if added is None:
            return touch, None
        group = group_of(added)
        if group is not None and isinstance(group.node, Group):
            return touch, self.summarise(group, group.node, step.lowered.formulas, contributors, column)
        taken = next((each for each in trace_path(added).values() if isinstance(each.node, Keep)), added)
        condition, joins = self._explain_taken(step, taken, path)
        return replace(touch, condition=condition, joins=joins), place_of(added)

    def _explain_taken(self, step: Step, row: Traced, path: Path) -> tuple[Evaluated | None, tuple[JoinedRow, ...]]:
        """Why an operation took a row to make others of, and what it joined to it. ``row`` has the joined columns."""
        conditions = step.lowered.conditions
        if id(step.before.node) in path:
            return self._explain_selector(step, path[id(step.before.node)]), ()
        scan = next((each.node for each in path.values() if isinstance(each.node, Scan)), None)
        written = conditions.get(scan.use.table) if scan is not None else None
        condition = self.evaluate(str(written), written.tree, row.values) if written is not None else None
        return condition, tuple(self._explain_joins(row.node, None, path, conditions))

    def _explain_loaded(self, path: Path) -> StoredPlace | None:
        scans = [each for each in path.values() if isinstance(each.node, Scan)]
        return place_of(scans[0]) if scans else None

    def start_joins(self, path: Path) -> tuple[JoinedRow, ...]:
        """The lookups of the input dataset."""
        return tuple(self._explain_joins(self._plan.start.node, None, path, {}))

    def summarise(
        self,
        group: Traced,
        node: Group,
        formulas: Mapping[str, Formula],
        contributors: int | None,
        column: str | None = None,
    ) -> Summary:
        """The group of a summary row, its totals and its largest rows."""
        key = {name.removeprefix("#").strip(): group.values[name] for name in node.keys}
        formulas = formulas_of(group, formulas)
        if group.large is not None:
            return self._summarise_large(key, group, group.large, formulas)
        given = [row.values for row in group.below]
        totals: dict[str, Evaluated] = {}
        for name, formula in formulas.items():
            result = evaluate_group(formula.tree, given, self._facts)
            totals[name] = Evaluated(str(formula), result.value, tuple(parts_of(result)), _reads(formula.tree))
        amounts = self._find_amounts(group, formulas)
        others = {name: arguments_of(each.tree) for name, each in formulas.items() if name not in amounts}
        mixed = _are_mixed(given)
        found = [self._contributor(row, amounts, others, mixed=mixed) for row in group.below]
        found.sort(key=lambda each: _size(each, column), reverse=True)
        listed = found if contributors is None else found[:contributors]
        return Summary(key, len(found), totals, tuple(listed), frozenset(amounts))

    def _summarise_large(
        self, key: Mapping[str, Value], group: Traced, large: LargeGroup, formulas: Mapping[str, Formula]
    ) -> Summary:
        results = {name.removeprefix("=").casefold(): value for name, value in group.values.items()}
        totals = {
            name: Evaluated(str(formula), results[name.casefold()], (), _reads(formula.tree))
            for name, formula in formulas.items()
        }
        amounts = self._find_amounts(group, formulas)
        others = {name: arguments_of(each.tree) for name, each in formulas.items() if name not in amounts}
        mixed = _are_mixed([each.values for each in large.members])
        members = []
        for each in large.members:
            added = {name.removeprefix("=").casefold(): value for name, value in each.amounts.items()}
            own = {name: added[name.casefold()] for name in amounts}
            reads = {name: {text: each.reads[text] for text in read} for name, read in others.items()}
            members.append(Contributor(self._key_of(each.values, mixed=mixed), None, own, None, reads))
        return Summary(key, large.rows, totals, tuple(members), frozenset(amounts))

    def _key_of(self, values: Mapping[str, Value], *, mixed: bool) -> dict[str, Value]:
        """The natural or group key of a row, else its id; with the operation that made it, if rows of several are mixed."""
        made_by = values.get(OPERATION_SEQ)
        rows = self._plan.steps[-1].after if self._plan.steps else self._plan.start
        seq = made_by if isinstance(made_by, int) else 0
        parts = rows.parts.get(seq, ())
        keys = parts or rows.keys.get(seq) or (ROW_ID,)
        names = (*keys, *([OPERATION_SEQ] if mixed and seq and not parts else []))
        return {name: values[name] for name in names if name in values}

    def _contributor(
        self, row: Traced, amounts: Mapping[str, Typed], others: Mapping[str, Mapping[str, Typed]], *, mixed: bool
    ) -> Contributor:
        """``amounts`` are those that it adds to totals, ``others`` the arguments of the other totals."""
        row_id = row.values.get(ROW_ID)
        stored = next((each.stored for each in trace_path(row).values() if each.stored is not None), None)
        return Contributor(
            self._key_of(row.values, mixed=mixed),
            row_id if isinstance(row_id, str) else None,
            self._compute(amounts, row),
            stored.place if stored is not None else None,
            {name: self._compute(read, row) for name, read in others.items()},
        )

    def _compute(self, formulas: Mapping[str, Typed], row: Traced) -> dict[str, Value]:
        return {name: compute(each, row.values, self._facts) for name, each in formulas.items()}

    def name_member(self, row: Traced) -> str:
        """What identifies a row of a group, as text."""
        key = {**self._key_of(row.values, mixed=True), ROW_ID: row.values.get(ROW_ID)}
        return ", ".join(f"{name} {show(value)}" for name, value in key.items() if value is not None)

    def evaluate(
        self, text: str, tree: Typed, values: Mapping[str, Value], windows: Mapping[Over, Result] | None = None
    ) -> Evaluated:
        """A formula for a row; ``windows`` are those of its windows that are computed already."""
        result = evaluate_known(tree, values, self._facts, windows or {})
        return Evaluated(text, result.value, tuple(parts_of(result)), _reads(tree))


def group_of(row: Traced) -> Traced | None:
    """The group of a summary row; None for other rows."""
    return next((each for each in trace_path(row).values() if isinstance(each.node, Group)), None)


def trace_path(row: Traced) -> dict[int, Traced]:
    """The states of a row from a node down to where it was stored or grouped."""
    path: dict[int, Traced] = {}
    here: Traced | None = row
    while here is not None:
        path[id(here.node)] = here
        here = here.below[0] if here.below and not isinstance(here.node, Group) else None
    return path


def selector_of(selected: Typed) -> Typed | None:
    """The condition that an author wrote, of the rows that an operation acts on."""
    if selected == ACTIVE:
        return None
    here = selected
    # What an operation asks for beyond its selector comes last.
    while isinstance(here, Operation) and here.operator == "AND":
        first, second = here.operands
        if first == ACTIVE:
            return second
        here = first
    return selected


def parts_of(result: Result) -> Iterator[Part]:
    """What a value was computed from, innermost first, each once; without what was only read, or not needed."""
    seen: set[str] = set()
    for each in _walk(result):
        if each.problem is not None or isinstance(without_casts(each.node), Literal | ColumnRef) or not each.reached:
            continue
        text = each.text
        if text not in seen:
            seen.add(text)
            yield Part(text, each.text_with_values if each.parts else text, each.value)


def _walk(result: Result) -> Iterator[Result]:
    for part in result.parts:
        yield from _walk(part)
    yield result


def place_of(row: Traced) -> StoredPlace | None:
    """The stored place of a row that was only filtered or joined since."""
    scan = next((each for each in trace_path(row).values() if isinstance(each.node, Scan)), None)
    if scan is None or scan.stored is None or not isinstance(scan.node, Scan):
        return None
    use = scan.node.use
    values = {name: scan.values[name] for name in use.columns if name in scan.values}
    key = {
        stored: scan.values[stored] for name in use.natural_key if (stored := use.columns.spelling(name)) is not None
    }
    return StoredPlace(
        use.dataset_id,
        use.version,
        scan.stored.place,
        key,
        values,
        file=scan.stored.file,
        stored=scan.stored.values,
    )


def find_scans(row: Traced) -> Iterator[Traced]:
    """Every stored row that a row depends on, each once."""
    return (each for each in walk_traced(row) if isinstance(each.node, Scan))


def walk_traced(row: Traced) -> Iterator[Traced]:
    """A row and all rows of its lineage, each once."""
    seen: set[int] = set()
    pending: list[Traced] = [row]
    while pending:
        here = pending.pop()
        if id(here) in seen:
            continue
        seen.add(id(here))
        yield here
        pending.extend(here.below)


def _are_mixed(rows: Sequence[Mapping[str, Value]]) -> bool:
    """Whether rows were made by several operations, whose keys may be the same."""
    return len({row.get(OPERATION_SEQ) for row in rows}) > 1


def _reads(tree: Typed) -> frozenset[str]:
    return frozenset(flat_name(column) for column in columns_of(tree))


def _has_aggregates(tree: Typed) -> bool:
    """Whether a formula is about several rows; windows are not, since each row has its own."""
    inside = {id(over.call) for over in windows_of(tree)}
    return any(
        isinstance(each, Apply) and isinstance(each.function.python, Total) and id(each) not in inside
        for each in walk(tree)
    )


def _size(each: Contributor, column: str | None) -> list[Decimal]:
    """The sort key of contributors: the amounts that they add, then what is read of them; those of one column if it has any."""
    values = {name: [amount] for name, amount in each.amounts.items()}
    values |= {name: [*read.values()] for name, read in each.reads.items()}
    wanted = values[column] if column in values else [value for listed in values.values() for value in listed]
    return [
        Decimal(value).copy_abs() if isinstance(value, int | Decimal) and not isinstance(value, bool) else Decimal(-1)
        for value in wanted
    ]


def _scan_of(node: Rel) -> Scan:
    from dobonomodo.plan.relation import walk_relation

    return next(each for each in walk_relation(node) if isinstance(each, Scan))


def names_of(steps: Sequence[Step]) -> frozenset[str]:
    """The natural and group keys of all rows of a plan."""
    return frozenset(name for step in steps for names in step.after.keys.values() for name in names)
