"""A lowered check: a condition on rows, or on aggregates over states of the working dataset and other datasets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Literal

from dobonomodo.formula import Typed, columns_of
from dobonomodo.formula.typed import Apply, walk
from dobonomodo.formula.types import is_number
from dobonomodo.model.locale import ENGLISH, Locale
from dobonomodo.model.plain import Document
from dobonomodo.plan.relation import Group, Rel
from dobonomodo.problems import OperationRef, RunFailed
from dobonomodo.problems.run import Cells, CheckEmpty, CheckFailed

START = "start"
"""The working dataset as it was loaded."""
AGAINST = "against"
"""Another dataset."""

Severity = Literal["stop", "warn"]
Status = Literal["passed", "failed", "empty"]

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?")
_PICKED = frozenset({"MIN_AGG", "MAX_AGG", "FIRST_BY", "LAST_BY"})
"""Aggregates whose value is one of the values that rows have: a whole number may then be a number of something."""


def state_after(seq: int) -> str:
    """The working dataset as an operation left it."""
    return f"after_{seq}"


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """One aggregate over one state of the working dataset."""

    name: str
    """Its column in the groups of the check."""
    rows: Rel
    selected: Typed
    """The rows to aggregate, with the values of that state."""
    aggregate: Apply


@dataclass(frozen=True, slots=True, eq=False)
class RowCondition:
    """A condition that every selected row must meet."""

    rows: Rel
    selected: Typed
    violated: Typed
    """The selected rows for which the condition is false or unknown."""
    shown: tuple[str, ...]
    """The columns that are shown for a violating row: its key, and the columns that the condition reads."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupCondition:
    """A condition on aggregates: once for all rows, or once per group."""

    groups: Group
    """The keys as ``#name``, the aggregates as ``=number``, and the number of rows as ``ROWS``."""
    holds: Typed
    """The condition over the columns of the groups."""
    left: Typed | None
    right: Typed | None
    """The two sides, where the condition is a comparison."""
    measures: tuple[Measure, ...]
    """The aggregates, where each can be computed while an output is written; else the groups need a job of their own."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the group keys."""
        return tuple(name.removeprefix("#") for name in self.groups.keys)

    @property
    def compares_numbers(self) -> bool:
        """Whether the condition compares two numbers."""
        sides = (self.left, self.right)
        return all(side is not None and is_number(side.type) for side in sides)

    @property
    def has_amounts(self) -> bool:
        """Whether the two sides are numbers that were added up or counted."""
        sides = [side for side in (self.left, self.right) if side is not None]
        used = {column.name for side in sides for column in columns_of(side)}
        aggregates = [value for name, value in self.groups.values.items() if name in used]
        found = [each for value in aggregates for each in walk(value) if isinstance(each, Apply)]
        return all(is_number(side.type) for side in sides) and any(each.function.name not in _PICKED for each in found)


ROWS = "=rows"


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """A planned check."""

    seq: int
    name: str
    severity: Severity
    may_be_empty: bool
    text: str
    """The expression as it was written."""
    condition: RowCondition | GroupCondition
    excludes: bool = False
    """Whether violating rows are deleted."""
    tolerance: Decimal | None = None
    """How far, in percent, the number of rows may be from that of the run before."""

    def result(
        self,
        *,
        reached: int,
        violations: int,
        left: str | None = None,
        right: str | None = None,
        difference: str | None = None,
        sample: tuple[Cells, ...] = (),
    ) -> CheckResult:
        """The result. A check that was evaluated for no row has not passed, unless that is allowed."""
        if reached == 0:
            status: Status = "passed" if self.may_be_empty else "empty"
        else:
            status = "failed" if violations else "passed"
        what: Literal["rows", "groups", "total"] = "rows"
        if isinstance(self.condition, GroupCondition):
            what = "groups" if self.condition.groups.keys else "total"
        if self.tolerance is not None:
            what = "total"
        limit = str(self.tolerance) if self.tolerance is not None else None
        amounts = limit is not None or (isinstance(self.condition, GroupCondition) and self.condition.has_amounts)
        return CheckResult(
            self.seq,
            self.name,
            self.text,
            self.severity,
            status,
            what,
            reached,
            violations,
            left,
            right,
            difference,
            sample,
            limit,
            amounts,
        )


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check in a run."""

    seq: int
    name: str
    text: str
    severity: Severity
    status: Status
    what: Literal["rows", "groups", "total"]
    reached: int
    """How many rows or groups it was evaluated for."""
    violations: int = 0
    left: str | None = None
    right: str | None = None
    difference: str | None = None
    sample: tuple[Cells, ...] = field(default=())
    tolerance: str | None = None
    """How far, in percent, the number of rows may be from that of the previous period."""
    amounts: bool | None = None
    """Whether the sides were added up or counted; not known of results that older versions recorded."""

    def against(self, previous: CheckResult | None) -> CheckResult:
        """The same, compared with the number of rows of the previous period, if there is one."""
        if self.tolerance is None or previous is None:
            return self
        before, allowed = previous.reached, Decimal(self.tolerance)
        differs = abs(self.reached - before) * 100 > allowed * before
        return replace(
            self,
            status="failed" if differs else "passed",
            violations=1 if differs else 0,
            left=str(self.reached),
            right=str(before),
            difference=str(self.reached - before),
        )

    @property
    def holds(self) -> bool:
        """Whether it passed."""
        return self.status == "passed"

    @property
    def outcome(self) -> Literal["passed", "failed", "warned"]:
        """The effect on the run."""
        return "passed" if self.holds else "failed" if self.severity == "stop" else "warned"

    def describe(self, locale: Locale = ENGLISH) -> str:
        """The result, in a few words."""
        if self.status == "empty":
            return "no row reached it"
        sides = ""
        if self.left is not None and self.right is not None:
            sides = f"{self._show_side(self.left, locale)} and {self._show_side(self.right, locale)}"
            if self.difference is not None and not self.holds:
                sides += f", difference {self._show_side(self.difference, locale)}"
        if self.what == "total":
            return sides or ("holds" if self.holds else "does not hold")
        if self.holds:
            return f"{locale.show(self.reached)} {self.what}"
        return f"{locale.show(self.violations)} of {locale.show(self.reached)} {self.what} violate it"

    def _show_side(self, text: str, locale: Locale) -> str:
        """A side of a comparison. Amounts are grouped; other whole numbers are not, since they may be numbers of something."""
        number = _NUMBER.fullmatch(text)
        return locale.show(Decimal(text)) if number and (self.amounts or number["fraction"]) else text

    @property
    def stops(self) -> bool:
        """Whether nothing of the run may be published."""
        return not self.holds and self.severity == "stop"

    def problem(self, published: Sequence[str] = ()) -> CheckFailed | CheckEmpty | None:
        """The problem, if it did not pass, with the outputs that were published before."""
        if self.holds:
            return None
        operation = OperationRef(self.seq, self.name)
        if self.status == "empty":
            return CheckEmpty(name=self.name, operation=operation)
        return CheckFailed(
            operation=operation,
            name=self.name,
            what=self.what,
            violations=self.violations,
            reached=self.reached,
            left=self.left,
            right=self.right,
            difference=self.difference,
            sample=self.sample,
            published=tuple(published),
            expression=self.text,
        )

    def document(self) -> dict[str, object]:
        """As plain data."""
        own: dict[str, object] = {name: getattr(self, name) for name in self.__slots__}
        return {**own, "sample": [[list(cell) for cell in row] for row in self.sample]}

    @classmethod
    def load(cls, document: Document) -> CheckResult:
        """From plain data."""
        found: Mapping[str, object] = {name: document.get(name) for name in cls.__slots__}
        sample = tuple(tuple((cell[0], cell[1]) for cell in row) for row in document["sample"])
        return cls(**{**found, "sample": sample})  # type: ignore[arg-type]


def find_stop(
    results: Iterable[CheckResult], *, until: int | None = None, published: Sequence[str] = ()
) -> RunFailed | None:
    """The failure that prevents publication, with every failed check; with ``until``, only checks before that operation.

    ``published`` are the outputs that were published already.
    """
    stopping = [each for each in results if each.stops and (until is None or each.seq < until)]
    problems = [problem for each in stopping if (problem := each.problem(published)) is not None]
    return RunFailed(problems[0], others=problems[1:]) if problems else None
