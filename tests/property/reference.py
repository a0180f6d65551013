"""The expression language evaluated in plain Python, by meaning: exact numbers, no Spark, no rendered SQL.

It reads the checked tree only. A value that cannot be given is a ``Fault``; a fault that an engine may or may not
reach, because a NULL beside it already decides the result, is not ``certain``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import assert_never

from dobonomodo.formula.typed import Apply, Cast, ColumnRef, Literal, Operation, Over, ParameterRef, Typed, walk
from dobonomodo.formula.types import INTEGER, TEXT, TIMESTAMP, DecimalType, Type, as_decimal, type_product, type_sum
from dobonomodo.plan.facts import RunFacts

MICROS_OF_DAY = 86_400_000_000
EPOCH = date(1970, 1, 1).toordinal()
FOUR_CENTURIES = 146_097
"""Days after which the calendar repeats."""


class Fault(Exception):
    """There is no value."""

    def __init__(self, reason: str = "", *, certain: bool = True) -> None:
        super().__init__(reason)
        self.certain = certain


class Overflow(Fault):
    """The value does not fit its type."""


class BadDate(Fault):
    """A text or three numbers that are no date."""


class BadNumber(Fault):
    """A text that is no number."""


@dataclass(frozen=True, order=True, slots=True)
class Day:
    """A day of the proleptic Gregorian calendar, counted from 1970-01-01; any year."""

    number: int

    @classmethod
    def of(cls, year: int, month: int, day: int) -> Day:
        turns, within = divmod(year - 1, 400)
        try:
            ordinal = date(within + 1, month, day).toordinal()
        except ValueError as error:
            raise BadDate(f"{year}-{month}-{day}") from error
        return cls.checked(ordinal - EPOCH + turns * FOUR_CENTURIES)

    @classmethod
    def checked(cls, number: int) -> Day:
        if not -(2**31) <= number < 2**31:
            raise Overflow("day")
        return cls(number)

    @property
    def parts(self) -> tuple[int, int, int]:
        turns, within = divmod(self.number + EPOCH - 1, FOUR_CENTURIES)
        found = date.fromordinal(within + 1)
        return found.year + 400 * turns, found.month, found.day

    def plus_months(self, months: int) -> Day:
        year, month, day = self.parts
        years, month = divmod(year * 12 + month - 1 + months, 12)
        return Day.of(years, month + 1, min(day, _days_in(years, month + 1)))

    def last_of_month(self) -> Day:
        year, month, _ = self.parts
        return Day.of(year, month, _days_in(year, month))

    def __str__(self) -> str:
        year, month, day = self.parts
        return f"{_year(year)}-{month:02d}-{day:02d}"


@dataclass(frozen=True, order=True, slots=True)
class Moment:
    """A point in time, in microseconds since 1970 in UTC."""

    micros: int

    @property
    def day(self) -> Day:
        return Day(self.micros // MICROS_OF_DAY)

    @property
    def clock(self) -> tuple[int, int, int, int]:
        seconds, micros = divmod(self.micros % MICROS_OF_DAY, 1_000_000)
        return seconds // 3600, seconds // 60 % 60, seconds % 60, micros

    def __str__(self) -> str:
        hour, minute, second, micros = self.clock
        fraction = f".{micros:06d}".rstrip("0") if micros else ""
        return f"{self.day} {hour:02d}:{minute:02d}:{second:02d}{fraction}"


Value = None | bool | int | Decimal | str | Day | Moment
Row = Mapping[str, object]


def evaluate(node: Typed, row: Row, run: RunFacts) -> Value:
    """The value of an expression for one row: column names (``alias.name`` for joined ones) to Python values."""
    return _Evaluator(run, row, None).value(node)


def aggregate(node: Typed, rows: Sequence[Row], run: RunFacts) -> Value:
    """The value of an expression for a group of rows that have the same keys; there is at least one row.

    All its aggregates are computed, also those in a branch of a CASE that is not taken.
    """
    evaluator = _Evaluator(run, rows[0], rows)
    for part in walk(node):
        if isinstance(part, Apply) and part.function.is_aggregate:
            evaluator.unsure(part)
    return evaluator.value(node)


def windowed(node: Typed, rows: Sequence[Row], at: int, run: RunFacts) -> Value:
    """The value of an expression with windows for one of the rows that they see; rows that are equal stay in this order.

    All its windows are computed, also those in a branch of a CASE that is not taken.
    """
    evaluator = _Evaluator(run, rows[at], None, among=(rows, at))
    for part in walk(node):
        if isinstance(part, Over):
            evaluator.value(part)
    return evaluator.value(node)


def as_value(value: object) -> Value:
    """A Python value in the evaluator's own terms."""
    match value:
        case datetime():
            moment = value if value.tzinfo else value.replace(tzinfo=UTC)
            since = moment - datetime(1970, 1, 1, tzinfo=UTC)
            return Moment(since.days * MICROS_OF_DAY + since.seconds * 1_000_000 + since.microseconds)
        case date():
            return Day(value.toordinal() - EPOCH)
        case None | bool() | int() | Decimal() | str() | Day() | Moment():
            return value
        case _:
            raise TypeError(value)


# --- numbers


def to_scale(value: Fraction | Decimal | int, scale: int) -> Decimal:
    """Rounded to so many places, halves away from zero."""
    exact = Fraction(value)
    units, rest = divmod(abs(exact) * Fraction(10) ** scale, 1)
    units += rest >= Fraction(1, 2)
    return _from_units(int(units), scale, negative=exact < 0)


def _from_units(units: int, scale: int, *, negative: bool = False) -> Decimal:
    digits = tuple(int(digit) for digit in str(units))
    return Decimal((int(negative and units != 0), digits, -scale))


def fit(value: Fraction | Decimal | int, kind: Type) -> Value:
    """A number in a type: rounded to its scale, refused if it has more digits before the point."""
    if isinstance(kind, DecimalType):
        rounded = to_scale(value, kind.scale)
        if abs(Fraction(rounded)) >= Fraction(10) ** kind.whole:
            raise Overflow(str(value))
        return rounded
    whole = Fraction(value)
    assert kind == INTEGER, kind
    assert whole.denominator == 1, value
    if not -(2**63) <= whole < 2**63:
        raise Overflow(str(value))
    return int(whole)


def negative(value: int | Decimal, kind: Type) -> Value:
    """The number with the other sign, every digit kept; as for zero minus the number, it may have one digit less."""
    if isinstance(kind, DecimalType) and abs(Fraction(value)) >= Fraction(10) ** type_sum(kind, kind).right.whole:
        raise Overflow(str(value), certain=False)
    return fit(-Fraction(value), kind)


def _int32(value: int) -> int:
    if not -(2**31) <= value < 2**31:
        raise Overflow(str(value))
    return value


def _bounded(value: int, digits: int) -> int:
    if abs(value) >= 10**digits:
        raise Overflow(str(value))
    return value


DIGITS_OF_STEPS = {"ADD DAYS": 7, "SUBTRACT DAYS": 7, "DATEADD": 7, "EDATE": 6, "EOMONTH": 6}


def _check_steps(name: str, values: Sequence[Value]) -> None:
    """Too many days or months may be noticed before it is seen that there is no date to add them to."""
    count = values[-1] if name in DIGITS_OF_STEPS else None
    if isinstance(count, int) and abs(count) >= 10 ** DIGITS_OF_STEPS[name]:
        raise Overflow(str(count), certain=False)


def _days_in(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and leap else (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]


def _year(year: int) -> str:
    if year > 9999:
        return f"+{year}"
    return f"{year:04d}" if year >= 0 else f"-{-year:04d}"


def plain(value: Decimal) -> str:
    """All digits, no exponent."""
    return f"{value:f}"


# --- nodes


class _Evaluator:
    def __init__(
        self, run: RunFacts, row: Row, rows: Sequence[Row] | None, *, among: tuple[Sequence[Row], int] | None = None
    ) -> None:
        self.run = run
        self.row = row
        self.rows = rows
        self.among = among
        self.known: dict[int, Value | Fault] = {}
        """By node, since a comparison looks at its operands twice and comparisons nest."""

    def value(self, node: Typed) -> Value:
        if id(node) not in self.known:
            try:
                self.known[id(node)] = self._value(node)
            except Fault as fault:
                self.known[id(node)] = fault
        found = self.known[id(node)]
        if isinstance(found, Fault):
            raise type(found)(str(found), certain=found.certain)
        return found

    def _value(self, node: Typed) -> Value:
        match node:
            case Literal():
                return self._literal(node)
            case ColumnRef():
                return as_value(self.row[node.name if node.qualifier is None else f"{node.qualifier}.{node.name}"])
            case ParameterRef():
                return self._literal(Literal(self.run.parameters[node.name], node.type))
            case Cast():
                return self._cast(self.value(node.operand), node.type)
            case Operation():
                return self._operation(node)
            case Apply():
                if node.function.is_aggregate:
                    return self._aggregate(node)
                if lazy := LAZY.get(node.function.name):
                    return lazy(self, node)
                return self._call(node)
            case Over():
                try:
                    return self._over(node)
                except Fault as fault:
                    raise type(fault)(str(fault), certain=False) from fault
            case _:
                assert_never(node)

    def _over(self, node: Over) -> Value:
        assert self.among is not None
        rows, at = self.among
        each = [_Evaluator(self.run, row, None) for row in rows]
        given = [tuple(one.value(operand) for operand in node.call.operands) for one in each]
        parts = [tuple(one.value(key) for key in node.partition) for one in each]
        keys = [tuple(one.value(order.key) for order in node.order) for one in each]

        def compare(one: int, other: int) -> int:
            """Below zero where one row comes before the other by the keys."""
            for order, left, right in zip(node.order, keys[one], keys[other], strict=True):
                if left != right:
                    before = left is None or (right is not None and left < right)  # type: ignore[operator]
                    return 1 if before == order.descending else -1
            return 0

        mine = [number for number in range(len(rows)) if parts[number] == parts[at]]
        numbers = {1 + sum((compare(b, a) or b - a) < 0 for b in mine): a for a in mine}
        number = next(number for number, row in numbers.items() if row == at)

        def value(number: int) -> Value:
            return given[numbers[number]][0] if number in numbers else None

        distance = given[at][1] if len(given[at]) > 1 else 1
        assert isinstance(distance, int)
        match node.call.function.name:
            case "ROW_NUMBER":
                return number
            case "RANK":
                return 1 + sum(compare(each, at) < 0 for each in mine)
            case "DENSE_RANK":
                return 1 + len({keys[each] for each in mine if compare(each, at) < 0})
            case "LAG":
                return value(number - distance)
            case "LEAD":
                return value(number + distance)
            case "FIRST":
                return value(1)
            case "LAST":
                return value(len(mine))
        seen = [rows[each] for each in mine if compare(each, at) <= 0]
        return _Evaluator(self.run, rows[at], seen).value(node.call)

    def _literal(self, node: Literal) -> Value:
        value = as_value(node.value)
        return fit(value, node.type) if isinstance(value, int | Decimal) and not isinstance(value, bool) else value

    def _cast(self, value: Value, kind: Type) -> Value:
        match value:
            case None:
                return None
            case bool():
                raise TypeError(kind)
            case int() | Decimal() if isinstance(kind, DecimalType):
                return fit(value, kind)
            case int() | Day() if kind == TEXT:
                return str(value)
            case Day() if kind == TIMESTAMP:
                return _midnight(value)
            case _:
                raise TypeError((value, kind))

    def all(self, nodes: Sequence[Typed]) -> list[Value]:
        """The values of operands that all count; a fault beside a NULL may go unnoticed."""
        values: list[Value] = []
        faults: list[Fault] = []
        for node in nodes:
            try:
                values.append(self.value(node))
            except Fault as fault:
                faults.append(fault)
        if faults:
            hidden = None in values or not all(fault.certain for fault in faults) or len(set(nodes)) < len(nodes)
            raise type(faults[0])(str(faults[0]), certain=not hidden)
        return values

    def decided(self, node: Typed, nodes: Sequence[Typed]) -> list[Value]:
        """The values of operands of which the second can decide the result, so that the others need not be computed."""
        try:
            return self.all(nodes)
        except Fault as fault:
            name = node.function.name if isinstance(node, Apply) else getattr(node, "operator", "")
            decides = {"/": 0, "MOD": 0, "MID": 1}.get(name)
            if decides is None or not fault.certain:
                raise
            raise type(fault)(str(fault), certain=not self._is_below(nodes[1], decides, name)) from fault

    def _is_below(self, node: Typed, limit: int, name: str) -> bool:
        try:
            value = self.value(node)
        except Fault:
            return False
        assert isinstance(value, int | Decimal)
        return value < limit if name == "MID" else to_scale(value, 25) == 0

    def unsure(self, node: Typed) -> Value:
        """A value that an engine may find it can do without."""
        try:
            return self.value(node)
        except Fault as fault:
            raise type(fault)(str(fault), certain=False) from fault

    # --- operators

    def _operation(self, node: Operation) -> Value:
        match node.operator:
            case "AND" | "OR":
                return self.logic(node.operands, decided_by=node.operator == "OR")
            case "IS NULL":
                return self.unsure(node.operands[0]) is None
            case "IS NOT NULL":
                return self.unsure(node.operands[0]) is not None
            case "CASE":
                return self._case(node.operands)
            case "IN" | "NOT IN" | "BETWEEN" | "NOT BETWEEN" | "=" | "<>" | "<" | "<=" | ">" | ">=":
                return self._compare(node)
        values = self.decided(node, node.operands)
        if None in values:
            _check_steps(node.operator, values)
            return None
        return self._compute(node, values)

    def logic(self, nodes: Sequence[Typed], *, decided_by: bool) -> Value:
        values = []
        faults = []
        for node in nodes:
            try:
                values.append(self.value(node))
            except Fault as fault:
                faults.append(fault)
        if faults:
            raise type(faults[0])(certain=False)
        if decided_by in values:
            return decided_by
        return None if None in values else not decided_by

    def _case(self, operands: Sequence[Typed]) -> Value:
        *branches, otherwise = operands
        for test, value in zip(branches[::2], branches[1::2], strict=True):
            if self.unsure(test) is True:
                return self.value(value)
        return self.value(otherwise)

    def _compare(self, node: Operation) -> Value:
        """Compared as they are (C-90)."""
        try:
            values = self.all(node.operands)
        except Fault as fault:
            single = len(node.operands) == 2 and node.operands[0] != node.operands[1]
            raise type(fault)(str(fault), certain=fault.certain and single) from fault
        subject, *others = values
        operator = node.operator
        if operator.endswith("IN"):
            found = _any(_equal(subject, other) for other in others)
            return _not(found) if operator == "NOT IN" else found
        if operator.endswith("BETWEEN"):
            within = _not(_any((_less(subject, others[0]), _less(others[1], subject))))
            return _not(within) if operator == "NOT BETWEEN" else within
        (other,) = others
        match operator:
            case "=":
                return _equal(subject, other)
            case "<>":
                return _not(_equal(subject, other))
            case "<":
                return _less(subject, other)
            case ">":
                return _less(other, subject)
            case "<=":
                return _not(_less(other, subject))
            case ">=":
                return _not(_less(subject, other))
        raise AssertionError(operator)

    def _compute(self, node: Operation, values: list[Value]) -> Value:
        match node.operator, values:
            case "NOT", [bool(condition)]:
                return not condition
            case "NEGATE", [int() | Decimal() as number]:
                return negative(number, node.type)
            case "+", [int() | Decimal() as left, int() | Decimal() as right]:
                return fit(Fraction(left) + Fraction(right), node.type)
            case "-", [int() | Decimal() as left, int() | Decimal() as right]:
                return fit(Fraction(left) - Fraction(right), node.type)
            case "*", [int() | Decimal() as left, int() | Decimal() as right]:
                return fit(Fraction(left) * Fraction(right), node.type)
            case "/", [int() | Decimal() as left, int() | Decimal() as right]:
                return fit(Fraction(left) / Fraction(right), node.type) if right else None
            case "&", [str(left), str(right)]:
                return left + right
            case (("LIKE" | "NOT LIKE"), [str(text), str(pattern)]):
                return is_like(text, pattern) == (node.operator == "LIKE")
            case "ADD DAYS", [Day(number), int(count)]:
                return Day.checked(number + _bounded(count, 7))
            case "SUBTRACT DAYS", [Day(number), int(count)]:
                return Day.checked(number - _bounded(count, 7))
            case "DAYS BETWEEN", [Day(end), Day(start)]:
                return _int32(end - start)
        raise AssertionError((node.operator, values))

    # --- functions

    def _call(self, node: Apply) -> Value:
        values = self.decided(node, node.operands)
        name = node.function.name
        if name in ("MIN", "MAX"):
            present = [value for value in values if value is not None]
            chosen: Value = (min if name == "MIN" else max)(present, default=None)
            return fit(chosen, node.type) if isinstance(chosen, int | Decimal) else chosen
        if None in values:
            if name == "MOD":
                _check_remainder(node, values)
            _check_steps(name, values)
            return None
        if nullary := NULLARY.get(name):
            return nullary(self.run)
        return CALLS[name](node, *values)

    # --- groups

    def _aggregate(self, node: Apply) -> Value:
        assert self.rows is not None
        name = node.function.name
        if name == "COUNT_ALL":
            return len(self.rows)
        each = [_Evaluator(self.run, row, None) for row in self.rows]
        try:
            columns = [[one.value(operand) for one in each] for operand in node.operands]
        except Fault as fault:
            raise type(fault)(str(fault), certain=False) from fault
        values = [value for value in columns[0] if value is not None]
        match name:
            case "SUM":
                return _sum(values, node.type)
            case "AVG":
                kind = node.type
                assert isinstance(kind, DecimalType)
                whole = kind.whole
                numbers = [Fraction(value) for value in values]  # type: ignore[arg-type]
                if any(abs(number) >= 10**whole for number in numbers):
                    raise Overflow(name, certain=False)
                return fit(sum(numbers, Fraction(0)) / len(numbers), kind) if numbers else None
            case "COUNT":
                return len(values)
            case "COUNT_IF":
                return sum(value is True for value in values)
            case "COUNT_DISTINCT":
                return len(set(values))
            case "MIN_AGG":
                return min(values, default=None)
            case "MAX_AGG":
                return max(values, default=None)
            case "FIRST_BY" | "LAST_BY":
                keyed = [
                    (key, value is not None, value)
                    for value, key in zip(columns[0], columns[1], strict=True)
                    if key is not None
                ]
                keyed.sort(key=_by_key_then_value)
                return (keyed[0] if name == "FIRST_BY" else keyed[-1])[2] if keyed else None
            case "STRING_AGG":
                separator = columns[1][0]
                assert isinstance(separator, str)
                return separator.join(sorted(map(str, values))) if values else None
        raise AssertionError(name)


def _by_key_then_value(entry: tuple[Value, bool, Value]) -> tuple[object, ...]:
    key, present, value = entry
    return (key, present, value) if present else (key, present)


def _sum(values: Sequence[Value], kind: Type) -> Value:
    numbers = [Fraction(value) for value in values]  # type: ignore[arg-type]
    if not numbers:
        return None
    assert isinstance(kind, DecimalType)
    on_the_way = max(sum(number for number in numbers if number > 0), -sum(number for number in numbers if number < 0))
    total = fit(sum(numbers), kind)
    if on_the_way >= Fraction(10) ** kind.whole:
        raise Overflow("may overflow in some orders", certain=False)
    return total


def _equal(one: Value, other: Value) -> bool | None:
    return None if one is None or other is None else one == other


def _less(one: Value, other: Value) -> bool | None:
    return None if one is None or other is None else one < other  # type: ignore[operator]


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _any(values: object) -> bool | None:
    listed = list(values)  # type: ignore[call-overload]
    if True in listed:
        return True
    return None if None in listed else False


def is_like(text: str, pattern: str) -> bool:
    """``%`` is any text, ``_`` any one character, everything else itself."""
    parts = {"%": ".*", "_": "."}
    return re.fullmatch("".join(parts.get(char) or re.escape(char) for char in pattern), text, re.DOTALL) is not None


def _midnight(day: Day) -> Moment:
    micros = day.number * MICROS_OF_DAY
    if not -(2**63) <= micros < 2**63:
        raise Overflow(str(day))
    return Moment(micros)


# --- functions that need not look at all their arguments


def _if(self: _Evaluator, node: Apply) -> Value:
    test, one, other = node.operands
    return self.value(one) if self.unsure(test) is True else self.value(other)


def _ifs(self: _Evaluator, node: Apply) -> Value:
    for test, value in zip(node.operands[::2], node.operands[1::2], strict=True):
        if self.unsure(test) is True:
            return self.value(value)
    return None


def _switch(self: _Evaluator, node: Apply) -> Value:
    subject, *rest = node.operands
    pairs, default = (rest[:-1], rest[-1]) if len(rest) % 2 else (rest, None)
    wanted = self.unsure(subject)
    for listed, result in zip(pairs[::2], pairs[1::2], strict=True):
        if self.unsure(listed) == wanted and wanted is not None:
            return self.value(result)
    return self.value(default) if default else None


def _coalesce(self: _Evaluator, node: Apply) -> Value:
    for operand in node.operands:
        if (value := self.unsure(operand)) is not None:
            return value
    return None


def _nullif(self: _Evaluator, node: Apply) -> Value:
    value, other = self.all(node.operands)
    return None if value is None or _equal(value, other) else value


def _zero_if_null(self: _Evaluator, node: Apply) -> Value:
    value = self.value(node.operands[0])
    return fit(0, node.type) if value is None else value


def _mid(self: _Evaluator, node: Apply) -> Value:
    text, start, count = self.decided(node, node.operands)
    if text is None or start is None or count is None:
        return None
    assert isinstance(text, str)
    assert isinstance(start, int)
    assert isinstance(count, int)
    if start < 1:
        return None
    return text[start - 1 :][: max(0, count)]


LAZY: dict[str, Callable[[_Evaluator, Apply], Value]] = {
    "IF": _if,
    "IFS": _ifs,
    "SWITCH": _switch,
    "COALESCE": _coalesce,
    "IFNULL": _coalesce,
    "NULLIF": _nullif,
    "ZEROIFNULL": _zero_if_null,
    "MID": _mid,
    "AND": lambda self, node: self.logic(node.operands, decided_by=False),
    "OR": lambda self, node: self.logic(node.operands, decided_by=True),
    "NOT": lambda self, node: _not(self.value(node.operands[0])),  # type: ignore[arg-type]
    "ISNULL": lambda self, node: self.unsure(node.operands[0]) is None,
}

NULLARY: dict[str, Callable[[RunFacts], Value]] = {
    "TODAY": lambda run: as_value(run.started_at.astimezone(UTC).date()),
    "NOW": lambda run: as_value(run.started_at),
    "RUN_PERIOD": lambda run: run.period,
    "PERIOD_START": lambda run: as_value(run.period_start),
    "PERIOD_END": lambda run: as_value(run.period_end),
}


# --- functions of values that are all there

Number = int | Decimal


def _rounding(choose: Callable[[int, Fraction], int]) -> Callable[..., Value]:
    """Rounding of the size of a number: from its whole units and the rest to the units that are kept."""

    def rounded(node: Apply, number: Number, places: int = 0) -> Value:
        if not isinstance(number, Decimal) and places >= 0:
            return number
        units, rest = divmod(abs(Fraction(number)) * Fraction(10) ** places, 1)
        size = choose(int(units), rest) / Fraction(10) ** places
        return fit(-size if number < 0 else size, node.type)

    return rounded


HALF = Fraction(1, 2)


def _check_remainder(node: Apply, values: Sequence[Value]) -> None:
    """Beside a NULL an operand that is too long may still be noticed."""
    try:
        for value in values:
            if isinstance(value, int | Decimal):
                fit(value, node.type)
    except Overflow as fault:
        raise Overflow(str(fault), certain=False) from fault


def _remainder(node: Apply, dividend: Number, divisor: Number) -> Value:
    """Of the numbers in the type of the result: beyond 25 places it cannot hold the digits of both."""
    exact, by = Fraction(fit(dividend, node.type)), Fraction(fit(divisor, node.type))  # type: ignore[arg-type]
    return fit(exact - by * (exact // by), node.type) if by else None


_DECIMAL_TEXT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BLANK = "".join(map(chr, range(33)))


def _value(node: Apply, text: str) -> Value:
    trimmed = text.strip(_BLANK)
    if not _DECIMAL_TEXT.fullmatch(trimmed):
        raise BadNumber(text)
    mantissa, _, exponent = trimmed.lower().partition("e")
    if exponent and abs(int(exponent)) > 10_000:
        raise Overflow(text)
    return fit(Fraction(mantissa) * Fraction(10) ** int(exponent or 0), node.type)


def _to_decimal(node: Apply, value: Number | str) -> Value:
    return _value(node, value) if isinstance(value, str) else fit(value, node.type)


def _to_integer(node: Apply, value: Number | str) -> Value:
    if isinstance(value, str):
        trimmed = value.strip(_BLANK + "".join(map(chr, range(0x7F, 0xA0))))
        if not re.fullmatch("[+-]?[0-9]+", trimmed):
            raise BadNumber(value)
        return fit(int(trimmed), INTEGER)
    return fit(int(value), INTEGER)


def _try(function: Callable[..., Value]) -> Callable[..., Value]:
    def tried(node: Apply, *values: Value) -> Value:
        try:
            return function(node, *values)
        except Fault:
            return None

    return tried


def _proper(node: Apply, text: str) -> str:
    return " ".join(word[:1].title() + word[1:] for word in text.lower().split(" "))


def _left(node: Apply, text: str, count: int) -> str:
    return text[: max(0, count)]


def _right(node: Apply, text: str, count: int) -> str:
    return text[-count:] if count > 0 else ""


def _padding(text: str, count: int, pad: str) -> str:
    if count >= 2**31:
        raise Overflow(str(count))
    missing = count - len(text)
    return (pad * missing)[:missing] if missing > 0 and pad else ""


def _lpad(node: Apply, text: str, count: int, pad: str = " ") -> str:
    return (_padding(text, count, pad) + text)[: max(0, count)]


def _rpad(node: Apply, text: str, count: int, pad: str = " ") -> str:
    return (text + _padding(text, count, pad))[: max(0, count)]


def _text(node: Apply, value: Number | Day | Moment, pattern: str) -> str:
    if isinstance(value, Day | Moment):
        return _write_moment(value, pattern)
    return _write_number(as_decimal(node.operands[0].type), value, pattern)


def _write_moment(value: Day | Moment, pattern: str) -> str:
    year, month, day = (value.day if isinstance(value, Moment) else value).parts
    hour, minute, second, _ = value.clock if isinstance(value, Moment) else (0, 0, 0, 0)
    words = {
        "yyyy": _year(year),
        "yy": f"{year % 100:02d}",
        "MM": f"{month:02d}",
        "dd": f"{day:02d}",
        "HH": f"{hour:02d}",
        "mm": f"{minute:02d}",
        "ss": f"{second:02d}",
    }
    return re.sub("|".join(words), lambda found: words[found[0]], pattern)


def _write_number(kind: DecimalType, value: Number, pattern: str) -> str:
    whole, _, places = pattern.rstrip("%").partition(".")
    exact = Fraction(value)
    if pattern.endswith("%"):
        exact *= 100
        scale = min(kind.scale, len(places) + 2)
        kept = DecimalType(min(38, kind.whole + 1 + scale), scale)
        product = type_product(kept, DecimalType(3, 0))
        if abs(to_scale(value, scale)) >= Fraction(10) ** product.left.whole:
            raise Overflow(str(value))
    rounded = to_scale(exact, len(places))
    fit(rounded, DecimalType(38, len(places)))
    digits, _, fraction = plain(rounded).lstrip("-").partition(".")
    digits = f"{int(digits):,}" if "," in whole else digits.rjust(len(whole), "0")
    sign = "-" if rounded < 0 else ""
    return sign + digits + (f".{fraction}" if fraction else "") + ("%" if pattern.endswith("%") else "")


def _to_text(node: Apply, value: Value) -> str:
    match value:
        case bool():
            return str(value).lower()
        case Decimal():
            written = plain(value)
            return written.rstrip("0").rstrip(".") if "." in written else written
        case _:
            return str(value)


def _date(node: Apply, *values: Value) -> Value:
    match values:
        case (str(text),):
            return parse_day(text)
        case (Moment() as moment,):
            return moment.day
        case (int(year), int(month), int(day)):
            return Day.of(_int32(year), _int32(month), _int32(day))
    raise AssertionError(values)


def parse_day(text: str) -> Day:
    """A date written as year-month-day with four, two and two digits."""
    found = re.fullmatch("([0-9]{4})-([0-9]{2})-([0-9]{2})", text)
    if not found or found[1] == "0000":
        raise BadDate(text)
    return Day.of(int(found[1]), int(found[2]), int(found[3]))


def _day_of(value: Day | Moment) -> Day:
    return value.day if isinstance(value, Moment) else value


def _in_same_week(value: Day | Moment) -> date:
    """A date with the same weeks: the calendar repeats every 400 years."""
    year, month, day = _day_of(value).parts
    return date(2000 + year % 400, month, day)


CALLS: dict[str, Callable[..., Value]] = {
    "ABS": lambda node, number: negative(number, node.type) if number < 0 else number,
    "SIGN": lambda node, number: 0 if number == 0 else -1 if number < 0 else 1,
    "ROUND": _rounding(lambda units, rest: units + (rest >= HALF)),
    "ROUNDUP": _rounding(lambda units, rest: units + (rest > 0)),
    "ROUNDDOWN": _rounding(lambda units, rest: units),
    "BROUND": _rounding(lambda units, rest: units + (rest > HALF or (rest == HALF and units % 2 == 1))),
    "FLOOR": lambda node, number: fit(Fraction(number) // 1, node.type),
    "CEIL": lambda node, number: fit(-(-Fraction(number) // 1), node.type),
    "MOD": _remainder,
    "VALUE": _value,
    "TRY_VALUE": _try(_value),
    "TO_DECIMAL": _to_decimal,
    "TRY_TO_DECIMAL": _try(_to_decimal),
    "TO_INTEGER": _to_integer,
    "TRY_TO_INTEGER": _try(_to_integer),
    "CONCAT": lambda node, *texts: "".join(map(str, texts)),
    "UPPER": lambda node, text: text.upper(),
    "LOWER": lambda node, text: text.lower(),
    "PROPER": _proper,
    "TRIM": lambda node, text: text.strip(" \t\r\n"),
    "LEFT": _left,
    "RIGHT": _right,
    "LEN": lambda node, text: len(text),
    "CONTAINS": lambda node, text, part: part in text,
    "STARTSWITH": lambda node, text, part: text.startswith(part),
    "ENDSWITH": lambda node, text, part: text.endswith(part),
    "FIND": lambda node, part, text: text.find(part) + 1,
    "REPLACE": lambda node, text, part, other: text.replace(part, other) if part else text,
    "LPAD": _lpad,
    "RPAD": _rpad,
    "TEXT": _text,
    "TO_TEXT": _to_text,
    "DATE": _date,
    "TRY_DATE": _try(_date),
    "YEAR": lambda node, value: _day_of(value).parts[0],
    "QUARTER": lambda node, value: (_day_of(value).parts[1] + 2) // 3,
    "MONTH": lambda node, value: _day_of(value).parts[1],
    "DAY": lambda node, value: _day_of(value).parts[2],
    "WEEKDAY": lambda node, value: _in_same_week(value).isoweekday() % 7 + 1,
    "ISOWEEKNUM": lambda node, value: _in_same_week(value).isocalendar().week,
    "DATEDIFF": lambda node, end, start: _int32(end.number - start.number),
    "DATEADD": lambda node, day, count: Day.checked(day.number + _bounded(count, 7)),
    "EDATE": lambda node, day, months: day.plus_months(_bounded(months, 6)),
    "EOMONTH": lambda node, day, months: day.plus_months(_bounded(months, 6)).last_of_month(),
}
GROUPED = frozenset(
    (
        "SUM",
        "AVG",
        "COUNT",
        "COUNT_ALL",
        "COUNT_IF",
        "COUNT_DISTINCT",
        "MIN_AGG",
        "MAX_AGG",
        "FIRST_BY",
        "LAST_BY",
        "STRING_AGG",
    )
)
NEIGHBOURS = frozenset(("RANK", "DENSE_RANK", "ROW_NUMBER", "LAG", "LEAD", "FIRST", "LAST"))
KNOWN = frozenset(CALLS) | frozenset(LAZY) | frozenset(NULLARY) | GROUPED | NEIGHBOURS | {"MIN", "MAX"}
"""Every function that has a meaning here."""
