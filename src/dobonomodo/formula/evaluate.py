"""Checked trees evaluated in plain Python, without Spark: the value of a formula and of each of its parts.

It follows the rendered SQL: exact decimals, NULL logic, rounding, dates, texts and errors are the same. If a NULL or a
FALSE decides the result and Spark may or may not raise an error of another operand, the evaluator returns the value.
Functions have their meaning in the catalogue, operators have it here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from operator import eq, ge, gt, le, lt, ne
from typing import Any, assert_never

from dobonomodo.formula.functions.dates import add_days, days_between
from dobonomodo.formula.functions.signature import RunValues
from dobonomodo.formula.meaning import (
    EXACT,
    Arguments,
    Neighbour,
    Number,
    Place,
    Scalar,
    Steps,
    Total,
    Value,
    all_true,
    any_true,
    as_value,
    attempt,
    attempt_one,
    choose,
    divide,
    fit,
    is_null,
    overflow,
    present,
)
from dobonomodo.formula.moment import MICROS_OF_DAY, Day, Moment
from dobonomodo.formula.print import print_checked
from dobonomodo.formula.typed import (
    Apply,
    Cast,
    ColumnRef,
    Literal,
    Operation,
    Over,
    ParameterRef,
    Typed,
    flat_name,
    walk,
)
from dobonomodo.formula.types import INTEGER, TEXT, TIMESTAMP, DecimalType, Type, as_decimal
from dobonomodo.problems import Problem, RunFailed

Row = Mapping[str, object]
"""The values of a row: those of joined columns as ``alias.column``, dates and times as Python's or the evaluator's."""


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """A part of a formula and its value."""

    node: Typed
    value: Value = None
    problem: Problem | None = None
    """Why there is no value."""
    reached: bool = True
    """False for what was not needed, such as the branch of an IF that was not taken."""
    parts: tuple[Result, ...] = ()
    """The operands, conversions passed over."""
    rows: tuple[Value, ...] = ()
    """For an aggregate, the value of its first argument in each row that counts."""

    @property
    def text(self) -> str:
        """The formula of this part."""
        return print_checked(self.node)

    @property
    def text_with_values(self) -> str:
        """The formula of this part, with values in place of its operands."""
        return print_checked(self.node, operands=[part.value if part.reached else part.node for part in self.parts])

    def get(self) -> Value:
        """The value; ``RunFailed`` where there is none."""
        if self.problem is not None:
            raise RunFailed(self.problem)
        return self.value


def evaluate(node: Typed, row: Row, run: RunValues) -> Result:
    """A formula for one row."""
    return _Evaluation(row, run).explain(node)


def compute(node: Typed, row: Row, run: RunValues) -> Value:
    """The value of a formula for one row, without those of its parts; ``RunFailed`` where there is none."""
    return _Evaluation(row, run).compute(node)


def compute_over(node: Over, rows: Sequence[Row], at: int, run: RunValues) -> Value:
    """The value of one window for the row at a place; the order of the window leaves no ties that matter."""
    return _window(node, rows, at, run).get()


def evaluate_known(node: Typed, row: Row, run: RunValues, windows: Mapping[Over, Result]) -> Result:
    """A formula for one row whose windows are computed already."""
    found = {id(each): windows[each] for each in walk(node) if isinstance(each, Over)}
    return _Evaluation(row, run, found).explain(node)


def evaluate_group(node: Typed, rows: Sequence[Row], run: RunValues) -> Result:
    """A formula with aggregates for the rows of one group, of which there is at least one."""
    totals = {id(each): _total(each, rows, run) for each in walk(node) if _is_total(each)}
    return _Evaluation(rows[0], run, totals).explain(node)


def evaluate_over(node: Typed, rows: Sequence[Row], at: int, run: RunValues) -> Result:
    """A formula with windows for the row at a place among others.

    ``rows`` are those that the windows see, or at least the partitions of the row, in the order in which ties are broken:
    by operation, key and place in the source.
    """
    windows = {id(each): _window(each, rows, at, run) for each in walk(node) if isinstance(each, Over)}
    return _Evaluation(rows[at], run, windows).explain(node)


def _window(node: Over, rows: Sequence[Row], at: int, run: RunValues) -> Result:
    each = [_Evaluation(row, run) for row in rows]
    try:
        keys = [[one.compute(key) for key in node.partition] for one in each]
        members = [number for number, key in enumerate(keys) if key == keys[at]]
        sorted_by = {number: [each[number].compute(order.key) for order in node.order] for number in members}
        for place, order in reversed(list(enumerate(node.order))):
            members.sort(key=lambda number: _null_first(sorted_by[number][place]), reverse=order.descending)
        arguments = [[each[number].compute(argument) for argument in node.call.operands] for number in members]
        place_of_row = Place(members.index(at), arguments, [sorted_by[number] for number in members])
        value, frame = _over(node, place_of_row)
    except RunFailed as fault:
        return Result(node, problem=fault.problem)
    return Result(node, value, rows=tuple(row[0] for row in frame) if node.call.operands else ())


def _null_first(value: Value) -> tuple[bool, Value]:
    return value is not None, value


def _over(node: Over, place: Place) -> tuple[Value, Arguments]:
    """The value, and the arguments in the rows that it is made of."""
    meaning, last = node.call.function.python, place.at
    if isinstance(meaning, Neighbour):
        return meaning.of(place), [place.arguments[place.at]]
    if not isinstance(meaning, Total):
        raise AssertionError(f"{node.call.function.name} is not for windows")
    while last + 1 < len(place.keys) and place.keys[last + 1] == place.keys[place.at]:
        last += 1
    frame = place.arguments[: last + 1]
    return meaning.of(node.type, frame), frame


def _is_total(node: Typed) -> bool:
    return isinstance(node, Apply) and isinstance(node.function.python, Total)


def _total(node: Typed, rows: Sequence[Row], run: RunValues) -> Result:
    if not isinstance(node, Apply) or not isinstance(node.function.python, Total):
        raise AssertionError(node)
    try:
        arguments = [[_Evaluation(row, run).compute(each) for each in node.operands] for row in rows]
        value = node.function.python.of(node.type, arguments)
    except RunFailed as fault:
        return Result(node, problem=fault.problem)
    return Result(node, value, rows=tuple(each[0] for each in arguments) if node.operands else ())


class _Evaluation:
    """One formula over one row. Steps are kept on an explicit stack, without recursion."""

    def __init__(self, row: Row, run: RunValues, totals: Mapping[int, Result] | None = None) -> None:
        self.row = row
        self.run = run
        self.totals = totals or {}
        self.known: dict[int, Value | RunFailed] = {}

    def compute(self, node: Typed) -> Value:
        """The value of a node; those of all nodes that are needed for it are known afterwards."""
        pending: list[tuple[Typed, Steps]] = []
        wanted: Typed | None = node
        found: Value | RunFailed = None
        while True:
            if wanted is not None:
                if id(wanted) not in self.known:
                    pending.append((wanted, self._begin(wanted)))
                    found = None
                else:
                    found = self.known[id(wanted)]
            if not pending:
                break
            current, steps = pending[-1]
            wanted = None
            try:
                wanted = steps.throw(found) if isinstance(found, RunFailed) else steps.send(found)
            except StopIteration as done:
                found = done.value
            except RunFailed as fault:
                found = fault
            if wanted is None:
                pending.pop()
                self.known[id(current)] = found
        if isinstance(found, RunFailed):
            raise found
        return found

    def _begin(self, node: Typed) -> Steps:
        """What gives the value of a node."""
        match node:
            case Literal():
                return _give(_in_type(node.value, node.type))
            case ColumnRef():
                return _give(_in_type(self.row[flat_name(node)], node.type))
            case ParameterRef():
                return _give(_in_type(self.run.parameters[node.name], node.type))
            case Cast():
                return _cast(node)
            case Operation():
                return _OPERATORS[node.operator](node)
            case Apply() | Over() if id(node) in self.totals:
                return _give_total(self.totals[id(node)], node.operands if isinstance(node, Over) else ())
            case Over():
                raise AssertionError(f"{node.call.function.name} over rows that are not given")
            case Apply():
                meaning = node.function.python
                if not isinstance(meaning, Scalar):
                    raise AssertionError(f"{node.function.name} outside a group")
                return meaning.steps(node, self.run)
            case _:
                assert_never(node)

    def explain(self, node: Typed) -> Result:
        """The values of a node and its parts."""
        with suppress(RunFailed):
            self.compute(node)
        return self._result(node)

    def _result(self, node: Typed) -> Result:
        found = self.known.get(id(node))
        inner = node
        while isinstance(inner, Cast):
            inner = inner.operand
        total = self.totals.get(id(inner))
        return Result(
            node,
            value=None if isinstance(found, RunFailed) else found,
            problem=found.problem if isinstance(found, RunFailed) else None,
            reached=id(node) in self.known,
            parts=() if total and isinstance(inner, Apply) else tuple(self._result(each) for each in inner.operands),
            rows=total.rows if total else (),
        )


def _give(value: Value) -> Steps:
    yield from ()
    return value


def _give_total(total: Result, shown: Sequence[Typed]) -> Steps:
    """``shown``: operands whose values in the row itself are kept beside it."""
    yield from attempt(shown)
    return total.get()


def _in_type(value: object, kind: Type) -> Value:
    """A given value, decimals with the places of their type."""
    found = as_value(value)
    return fit(found, kind) if isinstance(kind, DecimalType) and isinstance(found, int | Decimal) else found


# --- operators


def _cast(node: Cast) -> Steps:
    value = yield node.operand
    match value:
        case None:
            return None
        case int() | Decimal() if isinstance(node.type, DecimalType):
            return fit(value, node.type)
        case Decimal() if node.type == INTEGER:
            return fit(value, node.type)
        case Day() if node.type == TIMESTAMP:
            return _midnight(value)
        case int() | Day() if node.type == TEXT:
            return str(value)
        case _:
            raise AssertionError(f"{value!r} as {node.type}")


def _midnight(day: Day) -> Moment:
    micros = day.number * MICROS_OF_DAY
    if not -(2**63) <= micros < 2**63:
        raise overflow(day)
    return Moment(micros)


def _strict(function: Callable[..., Any]) -> Callable[[Operation], Steps]:
    """An operator over values that are all present; with the type of its result."""

    def steps(node: Operation) -> Steps:
        values = yield from present(node.operands)
        return None if values is None else function(node.type, *values)

    return steps


def _negate(kind: Type, number: Number) -> Number:
    return fit(Decimal(number).copy_negate(), kind)


def _compute(function: Callable[[Decimal, Decimal], Decimal]) -> Callable[[Type, Number, Number], Number]:
    return lambda kind, left, right: fit(function(Decimal(left), Decimal(right)), kind)


def _quotient(node: Operation) -> Steps:
    """A divisor of zero decides."""
    divisor = yield from attempt_one(node.operands[1])
    if divisor == 0:
        return None
    values = yield from present(node.operands)
    return None if values is None else divide(values[0], values[1], as_decimal(node.type))


def _compare(function: Callable[..., bool]) -> Callable[[Operation], Steps]:
    return _strict(lambda kind, left, right: function(left, right))


def _in(node: Operation) -> Steps:
    """TRUE as soon as one item is equal; else NULL where one is."""
    subject = yield node.operands[0]
    if subject is None:
        return None
    values, fault = yield from attempt(node.operands[1:])
    if subject in values:
        return True
    if fault is not None:
        raise fault
    return None if None in values else False


def _between(node: Operation) -> Steps:
    """FALSE as soon as one end is passed."""
    subject = yield node.operands[0]
    low, first = yield from attempt(node.operands[1:2])
    high, second = yield from attempt(node.operands[2:])
    tests = [*(_ordered(end, subject) for end in low), *(_ordered(subject, end) for end in high)]
    if False in tests or subject is None:
        return None if subject is None else False
    if fault := first or second:
        raise fault
    return None if None in tests else True


def _ordered(low: Any, high: Any) -> bool | None:
    return None if low is None or high is None else low <= high


def _not(steps: Callable[[Operation], Steps]) -> Callable[[Operation], Steps]:
    def negated(node: Operation) -> Steps:
        value = yield from steps(node)
        return None if value is None else not value

    return negated


def is_like(text: str, pattern: str) -> bool:
    """``%`` is any text, ``_`` any one character, everything else itself. Linear where patterns of Python's go back and forth."""
    at = place = 0
    star, resumed = -1, 0
    while at < len(text):
        if place < len(pattern) and pattern[place] == "%":
            star, resumed = place, at
            place += 1
        elif place < len(pattern) and pattern[place] in ("_", text[at]):
            at, place = at + 1, place + 1
        elif star >= 0:
            resumed += 1
            at, place = resumed, star + 1
        else:
            return False
    return not pattern[place:].strip("%")


_like = _strict(lambda kind, text, pattern: is_like(text, pattern))

_OPERATORS: Mapping[str, Callable[[Operation], Steps]] = {
    "AND": lambda node: all_true(node.operands),
    "OR": lambda node: any_true(node.operands),
    "NOT": _strict(lambda kind, value: not value),
    "IS NULL": lambda node: is_null(node.operands),
    "IS NOT NULL": _not(lambda node: is_null(node.operands)),
    "NEGATE": _strict(_negate),
    "+": _strict(_compute(EXACT.add)),
    "-": _strict(_compute(EXACT.subtract)),
    "*": _strict(_compute(EXACT.multiply)),
    "/": _quotient,
    "%": _strict(_compute(EXACT.remainder)),
    "DIV": _strict(_compute(EXACT.divide_int)),
    "&": _strict(lambda kind, left, right: left + right),
    "=": _compare(eq),
    "<>": _compare(ne),
    "<": _compare(lt),
    "<=": _compare(le),
    ">": _compare(gt),
    ">=": _compare(ge),
    "IN": _in,
    "NOT IN": _not(_in),
    "BETWEEN": _between,
    "NOT BETWEEN": _not(_between),
    "LIKE": _like,
    "NOT LIKE": _not(_like),
    "CASE": lambda node: choose(node.operands),
    "ADD DAYS": _strict(lambda kind, day, count: add_days(day, count)),
    "SUBTRACT DAYS": _strict(lambda kind, day, count: add_days(day, -count)),
    "DAYS BETWEEN": _strict(lambda kind, end, start: days_between(end, start)),
}
