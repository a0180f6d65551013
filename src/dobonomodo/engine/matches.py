"""Match counts of joins, read from the observation of an output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dobonomodo.engine.digest import Metrics
from dobonomodo.engine.joins import MatchCounts, key_columns
from dobonomodo.engine.totals import excluded_by
from dobonomodo.engine.tracking import Bit, count_where
from dobonomodo.formula import flat_name
from dobonomodo.plan import Plan, Step
from dobonomodo.plan.counts import JoinCounts
from dobonomodo.plan.relation import Lookup, Rel, Scan, walk_relation


@dataclass(frozen=True, slots=True, eq=False)
class Joining:
    """A join whose matches are counted."""

    node: Lookup
    bit: Bit
    step: Step | None
    """The operation that joins; None for a lookup of the input dataset."""
    is_apart: bool = False
    """Whether it is joined to rows that an operation brings in: they are not observed, so that a job of its own counts them."""

    @property
    def seq(self) -> int:
        """The number of that operation."""
        return self.step.spec.seq if self.step is not None else 0

    @property
    def metric(self) -> str:
        """The metric that counts matched rows."""
        return f"matched_{self.bit.number}"


class Matching:
    """The joins of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        found: list[tuple[Lookup, Step | None]] = [(node, None) for node in _lookups_of(plan.start.node, None)]
        found += [(node, step) for step in plan.steps for node in _lookups_of(step.after.node, step.before.node)]
        # Operations have the bits before.
        first = len(plan.steps)
        joins = [Joining(node, Bit(first + at), step) for at, (node, step) in enumerate(found)]
        brought = [(node, step) for step in plan.steps for node in _lookups_of(step.lowered.added, step.before.node)]
        first += len(joins)
        joins += [Joining(node, Bit(first + at), step, is_apart=True) for at, (node, step) in enumerate(brought)]
        self.joins = tuple(joins)
        self._counted: dict[int, MatchCounts | None] = {}
        self.bits = {id(join.node): join.bit for join in self.joins}

    def metrics(self, until: Step) -> dict[str, str]:
        """SQL aggregates over the working dataset before an output."""
        return {join.metric: count_where(join.bit.is_set()) for join in self._before(until) if not join.is_apart}

    def counts(
        self, metrics: Metrics, until: Step, *, count: Callable[[Lookup], MatchCounts | None]
    ) -> tuple[JoinCounts, ...]:
        """The match counts of the joins before an output, in order; ``count`` is called once per join that was not observed."""
        found = []
        for join in self._before(until):
            if not join.is_apart:
                matched = int(metrics[join.metric])
                found.append(_describe(join, MatchCounts(self._taking_part(join, metrics), matched)))
                continue
            if id(join.node) not in self._counted:
                self._counted[id(join.node)] = count(join.node)
            if (counts := self._counted[id(join.node)]) is not None:
                found.append(_describe(join, counts))
        return tuple(sorted(found, key=lambda each: each.seq))

    def find(self, counts: JoinCounts) -> Lookup:
        """The node of a join."""
        return next(join.node for join in self.joins if (join.seq, join.node.alias) == (counts.seq, counts.alias))

    def _before(self, until: Step) -> list[Joining]:
        return [join for join in self.joins if join.seq < until.spec.seq]

    def _taking_part(self, join: Joining, metrics: Metrics) -> int:
        """The rows that an operation selects, or all that are active before it."""
        if join.step is not None and join.node.only is join.step.lowered.selected:
            return int(metrics[f"selected_{join.seq}"])
        active = int(metrics["active"])
        for step in self._plan.steps:
            if step.spec.seq >= join.seq:
                break
            active += metrics.get(f"added_{step.spec.seq}", 0)
            active -= metrics.get(f"selected_{step.spec.seq}", 0) if step.deletes else 0
            active -= metrics.get(excluded_by(step.spec.seq), 0)
        return active


def _describe(join: Joining, counts: MatchCounts) -> JoinCounts:
    return JoinCounts(
        seq=join.seq,
        alias=join.node.alias,
        dataset=_dataset_of(join.node),
        key=tuple(flat_name(column) for column in key_columns(join.node)),
        matched=counts.matched,
        unmatched=counts.rows - counts.matched,
    )


def _lookups_of(node: Rel | None, stop: Rel | None) -> list[Lookup]:
    """The user-defined lookups between a node and ``stop`` below it, in order of execution."""
    found = []
    here = node
    while here is not None and here is not stop:
        if isinstance(here, Lookup) and not here.alias.startswith(" "):
            found.append(here)
        here = None if isinstance(here, Scan) else here.rows
    return found[::-1]


def _dataset_of(node: Lookup) -> str:
    return next(each.use.dataset_id for each in walk_relation(node.source) if isinstance(each, Scan))
