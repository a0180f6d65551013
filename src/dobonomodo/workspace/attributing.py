"""Attribution: recomputes the outputs of two runs with one cause exchanged at a time, and divides differences among causes."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from dobonomodo.formula import columns_of, render_formula
from dobonomodo.model import load_definitions
from dobonomodo.plan.counts import merge_kinds
from dobonomodo.plan.influence import find_influence
from dobonomodo.plan.system import CREATED_AT, UPDATED_AT
from dobonomodo.problems import InternalError, Rejected, RunFailed, Source
from dobonomodo.problems.difference import NotComparable
from dobonomodo.problems.run import SparkLost
from dobonomodo.runs import restore_snapshot
from dobonomodo.runs.attribution import (
    SEPARATED_AT_MOST,
    Attribution,
    Cause,
    Factor,
    Line,
    Pinned,
    find_factors,
    mix,
    round_parts,
    scale_of,
    share_out,
)
from dobonomodo.why.totals import sum_outputs
from dobonomodo.workspace.execution import program_versions

if TYPE_CHECKING:
    from dobonomodo.engine.engine import SparkEngine
    from dobonomodo.model.plain import Document
    from dobonomodo.plan import Plan
    from dobonomodo.plan.counts import Totals
    from dobonomodo.plan.facts import RunFacts
    from dobonomodo.runs import RunSpec
    from dobonomodo.runs.difference import RunDifference
    from dobonomodo.workspace.diffing import Side
    from dobonomodo.workspace.running import RunData


class Number(NamedTuple):
    """A row count or a total of an output."""

    table: str
    column: str | None
    """None for its rows."""
    kind: str | None = None
    """The rows that are counted, where there are several kinds of them; None for all."""

    @property
    def whole(self) -> Number:
        """The number of all rows."""
        return self._replace(kind=None)


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of all outputs. Those of a kind that there are no rows of are 0."""

    values: Mapping[Number, Decimal | None]
    told_apart: frozenset[str] = frozenset()
    """Tables whose rows are known by their kinds."""

    def get(self, number: Number) -> Decimal | None:
        """One of them; None if it is not known."""
        if number.kind is None or number in self.values:
            return self.values.get(number)
        return Decimal(0) if number.table in self.told_apart else None


Group = tuple[Factor, ...]
"""Causes that are exchanged together."""

PROGRAM = Factor(Cause.PROGRAM, "", "version of the program")


class _Impossible(Exception):
    """Some causes cannot be exchanged alone: the result cannot be planned or computed."""


@dataclass(eq=False)
class Attributing:
    """Divides the differences between two runs among their causes."""

    engine: SparkEngine
    open_data: Callable[[str, RunSpec], RunData]
    report: Callable[[str], None]
    values: dict[frozenset[Factor], Numbers] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    without_spark: bool = True
    """Whether few rows are computed in Python. If the result differs from what the runs stored, Spark computes it again."""

    def attribute(self, before: Side, after: Side, difference: RunDifference) -> Attribution:
        """The causes of all differences in rows and totals of ``difference``."""
        one, other = (Pinned(side.record.snapshot, side.view.inputs or {}) for side in (before, after))
        self._require_comparable(before, after)
        factors = find_factors(one, other, reads_clock=_reads_clock(one, other))
        lost = [self._find_lost(side) for side in (before, after)]
        lost_in_both = sorted(set(lost[0]) & set(lost[1]))
        if lost_in_both:
            self._refuse(before, after, f"an input is lost: {'; '.join(lost[1][lost_in_both[0]])}")
        reached = _find_reached(one, other, factors)
        changed = frozenset(_changed_numbers(difference))
        beside = frozenset(factor for factor, numbers in reached.items() if changed.isdisjoint(numbers))
        candidates = [factor for factor in factors if factor not in beside]
        first, free, last = _sort_groups(_group(candidates, one, other), lost)
        still = frozenset(name for factor in beside for name in reached[factor])
        work = _Work(self, one, other, factors, first, last, beside, still, prefer=frozenset(lost[1]))
        separated = work.separate(free)
        if self.without_spark and not _is_stored(difference, work, separated):
            self.without_spark = False
            self.values.clear()
            self.notes.clear()
            separated = work.separate(free)
        return self._describe(before, after, difference, work, separated, lost)

    def _require_comparable(self, before: Side, after: Side) -> None:
        if before.view.project != after.view.project:
            self._refuse(before, after, "they are of different projects; differences between those have no causes")
        for side in (before, after):
            if side.record.snapshot["inputs"] is None:
                self._refuse(before, after, f"run {side.view.id} did not find its inputs")

    def _refuse(self, before: Side, after: Side, reason: str) -> NoReturn:
        raise Rejected([NotComparable(before=before.view.id, after=after.view.id, reason=reason)])

    def _find_lost(self, side: Side) -> Mapping[str, tuple[str, ...]]:
        """The datasets of a run whose rows are lost, with the reasons."""
        data = self.open_data(_scratch_id(), restore_snapshot(side.record.snapshot))
        try:
            return data.find_lost(side.view.inputs or {})
        finally:
            data.clear()

    def compute(self, mixed: Pinned) -> Numbers:
        """Rows and totals of every output of a hypothetical run."""
        try:
            spec = _restore(mixed.snapshot)
        except (InternalError, Rejected) as fault:
            raise _Impossible(str(fault)) from fault
        data = self.open_data(_scratch_id(), spec)
        try:
            restored = data.restore(mixed.hashes)
            if restored.changes:
                raise _Impossible("; ".join(restored.changes))
            stored = data.rows(mixed.hashes)
            results = sum_outputs(spec.plan, spec.facts, stored, as_of=spec.as_of) if self.without_spark else None
            if results is None:
                data.prepare()
                reader = data.reader(self.engine.spark)
                results = self.engine.totals(spec.plan, spec.facts, reader=reader, as_of=spec.as_of)
        except RunFailed as failed:
            if isinstance(failed.problem, SparkLost):
                raise
            raise _Impossible(failed.problem.message()) from failed
        finally:
            data.clear()
        found: dict[Number, Decimal | None] = {}
        steps = {step.spec.seq: step for step in spec.plan.steps}
        told_apart = set()
        for name, seq in _name_outputs(spec.plan).items():
            written, result = steps[seq].write.written_name, results[seq]
            counted: list[tuple[str | None, int, Totals]] = [(None, result.rows, result.totals)]
            if result.kinds is not None:
                told_apart.add(name)
                counted += [(label, *numbers) for label, numbers in merge_kinds(result.kinds).items()]
            for label, rows, totals in counted:
                found[Number(name, None, label)] = Decimal(rows)
                found |= {Number(name, written(column), label): total for column, total in totals.items()}
        return Numbers(found, frozenset(told_apart))

    def _describe(
        self,
        before: Side,
        after: Side,
        difference: RunDifference,
        work: _Work,
        free: Sequence[Group],
        lost: Sequence[Mapping[str, tuple[str, ...]]],
    ) -> Attribution:
        start, end = work.value(()), work.value(free)
        causes: list[Group] = [*free]
        edges = [(*work.first, PROGRAM), (*work.last, PROGRAM)]
        if work.first or work.last:
            causes += [edge for edge in edges if len(edge) > 1] if work.first and work.last else [max(edges, key=len)]
            for side, reasons in zip((before, after), lost, strict=True):
                self.notes += [
                    f"{name} cannot be told apart from the version of the program: of run {side.view.id}, {'; '.join(why)}"
                    for name, why in reasons.items()
                ]
        else:
            causes.append((PROGRAM,))
        lines, unknown = [], []
        for name, was, now in _numbers(difference):
            values = [start.get(name), end.get(name)]
            if (
                was is None
                or now is None
                or None in values
                or any(work.value(each).get(name) is None for each in _subsets(free))
            ):
                unknown.append(name)
                continue
            if name.whole in work.still:
                lines.append(Line(name.table, name.column, was, now, (Decimal(0),) * len(causes), name.kind))
                continue
            lines.append(self._attribute(name, was, now, work, free, causes, edges))
        # All kinds of rows have a line, or none has: a reader adds them up.
        incomplete = {name.whole for name in unknown if name.kind is not None}
        lines = [line for line in lines if line.kind is None or Number(line.table, line.column) not in incomplete]
        if not (work.first or work.last):
            self._require_reproducible(before, after, lines)
        self.notes += [
            f"{factor.name} differs, and reaches no number that changed"
            for factor in work.factors
            if factor in work.beside
        ]
        shown = [at for at, cause in enumerate(causes) if cause != (PROGRAM,) or any(line.parts[at] for line in lines)]
        chosen = [replace(line, parts=tuple(line.parts[at] for at in shown)) for line in lines]
        return Attribution(
            before.view.id,
            after.view.id,
            tuple(" + ".join(factor.name for factor in causes[at]) for at in shown),
            tuple(tuple(str(factor.cause) for factor in causes[at]) for at in shown),
            tuple(line for line in chosen if line.kind is None),
            tuple(f"{name.table}: {name.column or 'rows'}" for name in unknown if name.kind is None),
            tuple(self.notes),
            len(self.values),
            tuple(line for line in chosen if line.kind is not None),
        )

    def _attribute(
        self,
        name: Number,
        was: Decimal,
        now: Decimal,
        work: _Work,
        free: Sequence[Group],
        causes: Sequence[Group],
        edges: Sequence[Group],
    ) -> Line:
        def value(taken: frozenset[int]) -> Fraction:
            found = work.value([free[at] for at in sorted(taken)]).get(name)
            return Fraction(found if found is not None else 0)

        everything = frozenset(range(len(free)))
        parts = share_out(len(free), value)
        start, end = value(frozenset()) - Fraction(was), Fraction(now) - value(everything)
        rest = list(causes[len(free) :])
        more = [Fraction(0)] * len(rest)
        more[rest.index(edges[0]) if edges[0] in rest else 0] += start
        more[rest.index(edges[1]) if edges[1] in rest else 0] += end
        computed = [work.value(each).get(name) for each in _subsets(free)]
        scale = scale_of([was, now, *(each for each in computed if each is not None)])
        return Line(name.table, name.column, was, now, tuple(round_parts([*parts, *more], scale=scale)), name.kind)

    def _require_reproducible(self, before: Side, after: Side, lines: Iterable[Line]) -> None:
        """The part of the program is that of another version: the same one computes the same, or something is wrong."""
        versions = [before.record.snapshot["versions"], after.record.snapshot["versions"], program_versions()]
        if any(line.parts[-1] for line in lines) and all(each == versions[0] for each in versions):
            reason = (
                "the program that made them computes something else from the same inputs; `dobo verify` each of them"
            )
            self._refuse(before, after, reason)


@dataclass(eq=False)
class _Work:
    """What was computed so far, with which causes exchanged."""

    room: Attributing
    before: Pinned
    after: Pinned
    factors: Sequence[Factor]
    first: Group
    """Always taken: their earlier state is lost."""
    last: Group
    """Never taken: their later state is lost."""
    beside: frozenset[Factor]
    """Operations that influence no changed number. They are exchanged only if the others require it."""
    still: frozenset[Number]
    """Numbers that they reach, of which none changed."""
    prefer: frozenset[str]

    def value(self, taken: Iterable[Group]) -> Numbers:
        """Rows and totals with some causes exchanged; computed once."""
        chosen = frozenset(factor for group in taken for factor in group) | frozenset(self.first)
        known = self.room.values
        if chosen not in known:
            names = ", ".join(sorted(factor.name for factor in chosen))
            self.room.report(f"computing the run before again{f', with {names} as after' if names else ''}")
            known[chosen] = self._compute(chosen)
        return known[chosen]

    def _compute(self, chosen: frozenset[Factor]) -> Numbers:
        """With the operations beside as they were, or as they are: the runs that have been are computed as they were."""
        ways = [frozenset[Factor](), self.beside] if self.beside else [frozenset[Factor]()]
        candidates = {*self.factors} - self.beside - {*self.last}
        if candidates <= chosen:
            ways.reverse()
        for at, way in enumerate(ways, start=1):
            try:
                return self.room.compute(mix(self.before, self.after, self.factors, chosen | way, prefer=self.prefer))
            except _Impossible:
                if at == len(ways):
                    raise
        raise AssertionError("there is at least one way")

    def separate(self, groups: Sequence[Group]) -> list[Group]:
        """Groups that can be exchanged in any order: those that cannot are put together, and the smallest of too many."""
        found = list(groups)
        while True:
            try:
                found = self._limit(found)
                for subset in _subsets(found):
                    self.value(subset)
                return found
            except _Impossible:
                if len(found) < 2:
                    raise
                found = self._merge(found)

    def _merge(self, groups: list[Group]) -> list[Group]:
        """Put those together that cannot be exchanged alone, with the next one if it is a single one; in the end, all."""
        alone = [group for group in groups if not self._is_possible(group, groups)]
        if len(alone) < 2 or len(alone) == len(groups):
            alone = groups if len(groups) < 3 or not alone else [*alone, _partner(alone[0], groups)]
        together = tuple(factor for group in groups if group in alone for factor in group)
        self.room.notes.append(f"{_name(together)} cannot be exchanged one without the other")
        rest = [group for group in groups if group not in alone]
        return [*rest, together]

    def _is_possible(self, group: Group, groups: Sequence[Group]) -> bool:
        try:
            self.value([group])
            self.value([each for each in groups if each != group])
        except _Impossible:
            return False
        return True

    def _limit(self, groups: list[Group]) -> list[Group]:
        """At most so many groups: the smallest are put together, by what exchanging each alone changes."""
        if len(groups) <= SEPARATED_AT_MOST:
            return groups
        start = self.value(())

        def effect(group: Group) -> float:
            changed = self.value([group])
            pairs = [(start.get(name), value) for name, value in changed.values.items() if name.kind is None]
            return sum(
                abs(float(now) - float(was)) / (1 + abs(float(was)))
                for was, now in pairs
                if was is not None and now is not None
            )

        ranked = sorted(groups, key=effect, reverse=True)
        kept = ranked[: SEPARATED_AT_MOST - 1]
        smallest = tuple(factor for group in groups if group not in kept for factor in group)
        return [*(group for group in groups if group in kept), smallest]


def _partner(group: Group, groups: Sequence[Group]) -> Group:
    """The group that is most likely needed with another one: a definition, else any."""
    others = [each for each in groups if each != group]
    own = [each for each in others if each[0].cause in (Cause.OPERATION, Cause.PROJECT)]
    return (own or others)[0]


def _name(group: Iterable[Factor]) -> str:
    return " and ".join(factor.name for factor in group)


def _group(factors: Sequence[Factor], one: Pinned, other: Pinned) -> list[Group]:
    """Each cause by itself; rows belong to their period, so that they go with it where that differs."""
    if one.snapshot["period"] == other.snapshot["period"]:
        return [(factor,) for factor in factors]
    tied = tuple(factor for factor in factors if factor.cause in (Cause.INPUT, Cause.DATASET, Cause.FACTS))
    return [*((factor,) for factor in factors if factor not in tied), tied]


def _sort_groups(
    groups: Sequence[Group], lost: Sequence[Mapping[str, tuple[str, ...]]]
) -> tuple[Group, list[Group], Group]:
    """What must be taken first, what can be taken in any order, and what can only come last."""

    def is_lost(group: Group, side: int) -> bool:
        return any(factor.cause in (Cause.INPUT, Cause.DATASET) and factor.id in lost[side] for factor in group)

    first = tuple(factor for group in groups if is_lost(group, 0) for factor in group)
    last = tuple(factor for group in groups if is_lost(group, 1) for factor in group)
    free = [group for group in groups if not is_lost(group, 0) and not is_lost(group, 1)]
    return first, free, last


def _subsets(groups: Sequence[Group]) -> list[list[Group]]:
    return [[group for at, group in enumerate(groups) if chosen >> at & 1] for chosen in range(1 << len(groups))]


def _restore(snapshot: Document) -> RunSpec:
    """The spec of a hypothetical run; raises if it cannot be planned."""
    project = snapshot["project"]
    found, problems = load_definitions([Source("snapshot", json.dumps({"project": project["document"]}))])
    if project["id"] not in found.projects:
        raise Rejected(problems)
    fingerprint = found.projects[project["id"]].fingerprint()
    return restore_snapshot({**snapshot, "project": {**project, "fingerprint": fingerprint}})


def _name_outputs(plan: Plan) -> dict[str, int]:
    """The outputs of a plan as a record names them."""
    found: dict[str, int] = {}
    for step in plan.steps:
        if step.lowered.write is not None:
            name = step.lowered.write.destination.name
            found[name if name not in found else f"{name}#{step.spec.seq}"] = step.spec.seq
    return found


def _numbers(difference: RunDifference) -> Iterable[tuple[Number, Decimal | None, Decimal | None]]:
    """The numbers of all outputs that both runs have; columns that are no numbers have none."""
    for table in difference.tables:
        yield Number(table.table, None), Decimal(table.rows_before), Decimal(table.rows_after)
        for each in table.columns:
            if each.is_number:
                yield Number(table.table, each.column), each.before, each.after
        names = {None, *(each.column for each in table.columns if each.is_number)}
        for kind in table.kinds:
            if kind.column in names:
                yield Number(table.table, kind.column, kind.kind), kind.before, kind.after


def _changed_numbers(difference: RunDifference) -> Iterable[Number]:
    """The numbers of outputs that changed, also those that changed in single rows and not as a whole."""
    for table in difference.tables:
        if table.rows_before != table.rows_after:
            yield Number(table.table, None)
        for each in table.columns:
            if each.differs:
                yield Number(table.table, each.column)
        for kind in table.kinds:
            if kind.difference:
                yield Number(table.table, kind.column)


def _find_reached(one: Pinned, other: Pinned, factors: Iterable[Factor]) -> dict[Factor, frozenset[Number]]:
    """The numbers that each changed operation can change in either run."""
    plans = [restore_snapshot(each.snapshot).plan for each in (one, other)]
    named = [(seq, name) for plan in plans for name, seq in _name_outputs(plan).items()]
    steps = [step for plan in plans for step in plan.steps]
    found: dict[Factor, frozenset[Number]] = {}
    for factor in factors:
        if factor.cause is Cause.OPERATION:
            numbers: set[Number] = set()
            for step, columns in find_influence(steps, int(factor.id)):
                written = step.write.written_name
                reached = [None, *step.write.columns] if columns is None else columns
                names = {name for seq, name in named if seq == step.spec.seq}
                numbers |= {
                    Number(name, written(each) if each is not None else None) for name in names for each in reached
                }
            found[factor] = frozenset(numbers)
    return found


def _is_stored(difference: RunDifference, work: _Work, free: Sequence[Group]) -> bool:
    """Whether what was computed with nothing and with everything exchanged is what the runs stored, as far as inputs are there."""
    start, end = work.value(()), work.value(free)
    return all(
        (bool(work.first) or start.get(name) == was) and (bool(work.last) or end.get(name) == now)
        for name, was, now in _numbers(difference)
    )


def _reads_clock(one: Pinned, other: Pinned) -> bool:
    """Whether a formula of either run depends on the clock of the run."""
    specs = [restore_snapshot(each.snapshot) for each in (one, other)]
    return any(_depends(spec.plan, specs[0].facts, specs[1].facts) for spec in specs)


def _depends(plan: Plan, one: RunFacts, other: RunFacts) -> bool:
    clocks = (one, replace(one, started_at=other.started_at))
    for step in plan.steps:
        lowered = step.lowered
        trees = [each.tree for each in (*lowered.formulas.values(), *lowered.conditions.values())]
        trees += [lowered.selected] if lowered.selected is not None else []
        for tree in trees:
            if any(column.name in (CREATED_AT, UPDATED_AT) for column in columns_of(tree)):
                return True
            if len({render_formula(tree, clock) for clock in clocks}) > 1:
                return True
    return False


def _scratch_id() -> str:
    return f"compare-{secrets.token_hex(6)}"
