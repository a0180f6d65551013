"""Why a row is not in an output, or why a column of it was not set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from dobonomodo.formula import Typed
from dobonomodo.formula.evaluate import evaluate
from dobonomodo.formula.meaning import Value
from dobonomodo.formula.print import print_checked
from dobonomodo.plan import Plan, Step
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.pairing import find_pairing
from dobonomodo.plan.relation import Keep, Lookup, Rel, Scan, Stack, walk_between, walk_relation
from dobonomodo.plan.system import DELETED, is_system
from dobonomodo.problems.problem import LISTED_AT_MOST, nearest
from dobonomodo.why.explain import Explainer, place_of, selector_of
from dobonomodo.why.explanation import Explanation, JoinedRow, Touch, plain_row, show, with_relevant
from dobonomodo.why.interpret import Interpreter, conjuncts
from dobonomodo.why.key import show_key
from dobonomodo.why.loading import Loader
from dobonomodo.why.row import AT_MOST, Traced
from dobonomodo.why.text import render_touch

Kind = Literal[
    "there", "not in the input", "outside", "deleted", "not selected", "set", "never set", "no match", "not made"
]


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason, with its evidence."""

    kind: Kind
    text: str
    place: str | None = None
    """The stored place of the row that was dropped."""
    operation: Touch | None = None
    nearest: tuple[str, ...] = ()
    """Existing keys that are similar to the one that was searched."""

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {
            "kind": self.kind,
            "text": self.text,
            "place": self.place,
            "operation": self.operation.to_dict() if self.operation is not None else None,
            "nearest": list(self.nearest),
        }


@dataclass(frozen=True, slots=True)
class Absence:
    """Why a row is missing, or a column of it was not set."""

    run: str
    project: str
    period: str
    table: str
    key: Mapping[str, Value]
    column: str | None
    reasons: tuple[Reason, ...]

    def to_dict(self) -> dict[str, object]:
        """As plain data, which `--json` prints."""
        return {
            "run_id": self.run,
            "project": self.project,
            "period": self.period,
            "table": self.table,
            "key": plain_row(self.key),
            "column": self.column,
            "reasons": [each.to_dict() for each in self.reasons],
        }

    def lines(self) -> Iterator[str]:
        """For a terminal."""
        what = f"column {self.column} of the row" if self.column is not None else "the row"
        yield f"{what} with {show_key(self.key)} in {self.table}, period {self.period}, run {self.run}:"
        for reason in self.reasons:
            where = f" ({reason.place})" if reason.place is not None else ""
            yield f"- {reason.text}{where}"
            if reason.operation is not None:
                yield from (f"  {line}" for line in render_touch(reason.operation))
            if reason.nearest:
                yield f"  nearest: {', '.join(reason.nearest)}"

    def __str__(self) -> str:
        return "\n".join(self.lines())


class AbsenceFinder:
    """Finds reasons in one plan."""

    def __init__(self, plan: Plan, facts: RunFacts, loader: Loader, explainer: Explainer) -> None:
        self._plan, self._facts, self._loader, self._explainer = plan, facts, loader, explainer

    def explain_missing(self, step: Step, asked: Mapping[str, Value], interpreter: Interpreter) -> Iterator[Reason]:
        """Why an output wrote no row with a key; ``interpreter`` has searched for it."""
        keeps = {id(node): node for node in _main_nodes(step.write.rows) if isinstance(node, Keep)}
        dropped = [row for row in interpreter.dropped if id(row.node) in keeps and _fits(row.values, asked)]
        dropped = [row for row in dropped if _names(row.values, asked) or _is_identified(row, asked)]
        if dropped:
            yield from islice(_once(self._explain_dropped(row, step) for row in dropped), LISTED_AT_MOST)
            return
        if found := list(self._explain_summaries(step, asked, interpreter)):
            yield from found
            return
        uses = {scan.use.key for scan in _main_nodes(step.write.rows) if isinstance(scan, Scan)}
        outside = [each for each in self._loader.outside if each.use.key in uses and _fits(each.row.values, asked)]
        if outside:
            for each in outside[:LISTED_AT_MOST]:
                yield Reason("outside", f"a row of {each.use.dataset_id} is not read: {each.reason}", each.row.place)
            return
        scans = {each.use.key: each for each in _main_nodes(step.write.rows) if isinstance(each, Scan)}
        able = [scan for scan in scans.values() if any(name in scan.use.columns for name in asked)]
        for scan in able or scans.values():
            yield self._explain_unstored(scan, asked)

    def _explain_summaries(self, step: Step, asked: Mapping[str, Value], interpreter: Interpreter) -> Iterator[Reason]:
        """Of an output that no loaded row can get to: the rows that differ from the key in one column."""
        if 0 in find_pairing(step) or not set(asked) <= set(step.write.columns):
            return
        for name, value in asked.items():
            rest = {each: frozenset([other]) for each, other in asked.items() if each != name}
            rows = interpreter.find(step.write.rows, rest)
            if rows:
                written = {each: value for each, value in asked.items() if each != name}
                which = f"rows with {show_key(written)}" if written else "rows"
                known = sorted({show(row.values[name]) for row in rows})
                text = f"there are {which}, but none with {show_key({name: value})}"
                yield Reason("not made", text, nearest=_nearest(show(value), known))

    def _explain_dropped(self, row: Traced, until: Step) -> Reason:
        place = place_of(row)
        where = place.place if place is not None else None
        step = self._step_of(row.node)
        if row.values.get(DELETED) is True:
            touches, _ = self._explainer.explain(row.below[0], until, contributors=0)
            deleted = next((each for each in touches if each.effect == "deleted"), None)
            if deleted is None:
                return Reason("deleted", "it is stored as deleted", where)
            return Reason("deleted", f"it was deleted by operation {deleted.seq}", where, deleted)
        condition = row.node.condition if isinstance(row.node, Keep) else None
        touch = self._first_untrue(step, condition, row) if condition is not None and step is not None else None
        seq = step.spec.seq if step is not None else 0
        return Reason("not selected", f"operation {seq} did not select it", where, touch)

    def _first_untrue(self, step: Step, condition: Typed, row: Traced) -> Touch | None:
        """The first part of a condition that is FALSE or NULL."""
        written = selector_of(condition)
        for part in conjuncts(written) if written is not None else ():
            result = evaluate(part, row.values, self._facts)
            if result.value is not True:
                found = self._explainer.evaluate(print_checked(part), part, row.values)
                return Touch(step.spec.seq, step.spec.name, step.spec.type, "not selected", found)
        return None

    def _step_of(self, node: Rel) -> Step | None:
        return next(
            (
                step
                for step in self._plan.steps
                if any(each is node for each in walk_between(step.top, step.before.node))
            ),
            None,
        )

    def _explain_unstored(self, scan: Scan, asked: Mapping[str, Value]) -> Reason:
        use = scan.use
        known = {name: value for name, value in asked.items() if name in use.columns}
        places = ", ".join(map(str, use.locations))
        text = f"no row of {use.dataset_id} has {show_key(known or asked)}"
        near: list[str] = []
        for name, value in known.items():
            if isinstance(value, str):
                near += self._near(scan, name, value)
        return Reason("not in the input", text, places or None, nearest=tuple(near))

    def _near(self, scan: Scan, name: str, value: str) -> list[str]:
        """Values of a column that are similar to a missing one."""
        folded = name.casefold()
        rows = self._loader.source.find(scan.use, {}, numbers=None, columns=frozenset([folded]))
        known = {str(row.values[folded]) for row in islice(rows, AT_MOST) if row.values.get(folded) is not None}
        return [] if value in known else list(_nearest(value, sorted(known)))

    # --- columns that were not set

    def explain_unset(self, step: Step, column: str, explanation: Explanation) -> Iterator[Reason]:
        """What the operations that can set a column did with an existing row."""
        touches = {touch.seq: touch for touch in explanation.operations}
        setters = [
            each for each in self._plan.steps if column in each.lowered.formulas and each.spec.seq <= step.spec.seq
        ]
        for each in reversed(setters):
            touch = touches.get(each.spec.seq)
            if touch is None:
                yield Reason("not selected", _explain_untouched(each, explanation))
                continue
            if touch.effect in ("selected", "added"):
                yield from self._explain_value(each, column, touch)
                return
            yield Reason("not selected", f"operation {touch.seq} did not set it: {touch.effect}", None, touch)
        if not setters:
            yield Reason("never set", "no operation sets it")

    def _explain_value(self, step: Step, column: str, touch: Touch) -> Iterator[Reason]:
        for join in touch.joins:
            if join.row is None:
                text = (
                    f"no row of {join.dataset} has {show_key(join.wanted)}"
                    if join.wanted
                    else f"no row matches {join.text}"
                )
                yield Reason("no match", text, nearest=tuple(self._near_keys(step, join)))
        value = touch.values.get(column)
        shown = show(value.value) if value is not None else "a value"
        (only,) = with_relevant((touch,), frozenset([column]))
        yield Reason("set", f"operation {touch.seq} set it to {shown}", None, only)

    def _near_keys(self, step: Step, join: JoinedRow) -> Iterator[str]:
        """Keys of a joined dataset that are similar to the one that was searched."""
        for node in walk_between(step.after.node, step.before.node):
            if isinstance(node, Lookup) and node.alias == join.alias:
                scan = next(each for each in walk_relation(node.source) if isinstance(each, Scan))
                for name, value in join.wanted.items():
                    if isinstance(value, str):
                        yield from self._near(scan, name, value)


def _explain_untouched(step: Step, explanation: Explanation) -> str:
    """Why an operation did not act on a row."""
    maker = next((touch.seq for touch in explanation.operations if touch.effect == "added"), None)
    if maker is not None and step.spec.seq < maker:
        return f"operation {step.spec.seq} did not see the row, which operation {maker} made"
    return f"operation {step.spec.seq} sets it only on the rows that it adds"


def _nearest(value: str, known: Sequence[str]) -> tuple[str, ...]:
    """Up to three values that are similar to a missing one."""
    found: list[str] = []
    while len(found) < 3 and (near := nearest(value, [each for each in known if each not in found])) is not None:
        found.append(near)
    return tuple(found)


def _once(reasons: Iterable[Reason]) -> Iterator[Reason]:
    """Each reason once: a row can be dropped on several paths."""
    seen = set()
    for each in reasons:
        if (each.text, each.place) not in seen:
            seen.add((each.text, each.place))
            yield each


def _names(values: Mapping[str, Value], asked: Mapping[str, Value]) -> bool:
    """Whether a row has all columns of a key."""
    folded = {name.casefold() for name in values}
    return all(is_system(name) or name.casefold() in folded for name in asked)


def _is_identified(row: Traced, asked: Mapping[str, Value]) -> bool:
    """Whether a key with more columns than a row still identifies the row."""
    place = place_of(row)
    if place is None or not place.key:
        return place is not None
    named = {name.casefold() for name in asked}
    return all(name.casefold() in named for name in place.key)


def _main_nodes(node: Rel) -> Iterator[Rel]:
    """The nodes whose rows become rows of a node: not those that are only joined."""
    pending: list[Rel] = [node]
    while pending:
        here = pending.pop()
        yield here
        if isinstance(here, Scan):
            continue
        if isinstance(here, Stack):
            pending.append(here.more)
        pending.append(here.rows)


def _fits(values: Mapping[str, Value], asked: Mapping[str, Value]) -> bool:
    folded = {name.casefold(): value for name, value in values.items()}
    named = {name.casefold(): value for name, value in asked.items() if not is_system(name)}
    return all(folded[name] == value for name, value in named.items() if name in folded)
