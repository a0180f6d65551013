"""Formulas and rows to try: typed syntax trees over a fixed set of columns, and values at the edges of every type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from itertools import product
from typing import Any

from hypothesis import strategies as st

from dobonomodo.formula import FUNCTIONS, Columns, Scope, parse_type, tree
from dobonomodo.formula.functions.signature import Function, Parameter, Signature
from dobonomodo.formula.typed import ColumnRef
from dobonomodo.formula.typed import Literal as TypedLiteral
from dobonomodo.formula.types import BOOLEAN, DATE, DECIMAL, INTEGER, TEXT, TIMESTAMP, DecimalType, Type
from dobonomodo.plan.facts import RunFacts
from dobonomodo.problems import Passage

RUN = RunFacts(datetime(2026, 2, 3, 8, 15, 30, 123456, tzinfo=UTC), "2026-01", date(2026, 1, 1), date(2026, 1, 31))


class Kind(Enum):
    """What an expression may be used for; an integer may stand wherever a number may."""

    TRUTH = BOOLEAN
    WHOLE = INTEGER
    NUMBER = DECIMAL
    TEXT = TEXT
    DAY = DATE
    TIME = TIMESTAMP


def _kind_of(kind: Type) -> Kind:
    return Kind.NUMBER if isinstance(kind, DecimalType) else Kind(kind)


def _types(**names: str) -> dict[str, Type]:
    found = {name: parse_type(text) for name, text in names.items()}
    return {name: kind for name, kind in found.items() if kind is not None}


OWN = _types(
    wide="decimal(38,10)",
    amount="decimal(15,2)",
    rate="decimal(12,8)",
    fine="decimal(38,18)",
    small="decimal(5,0)",
    huge="decimal(38,0)",
    finest="decimal(38,30)",
    share="decimal(18,18)",
    quantity="integer",
    count_of="integer",
    status="string",
    note="string",
    paid="boolean",
    in_scope="boolean",
    day="date",
    due="date",
    at="timestamp",
) | {"odd `name`. $": TEXT}
JOINED = {"fx": _types(rate="decimal(38,18)", currency="string", valid_from="date", factor="integer", live="boolean")}
SELECTORS = {
    "ACTIVE": "paid AND quantity > 0",
    "NESTED": "NOT {{ ACTIVE }} OR ISNULL(status)",
    "JOINED": "fx.rate <> 0 OR fx.live",
}
SCOPE = Scope(
    columns=Columns(OWN),
    table="orders",
    joined={alias: Columns(types) for alias, types in JOINED.items()},
    selectors={name: Passage.alone(text) for name, text in SELECTORS.items()},
)
WINDOWS = replace(SCOPE, windows=True)
KEYS = ("status", "paid")
GROUPED = replace(SCOPE, group_by=tuple(ColumnRef(key, None, OWN[key]) for key in KEYS))
TYPES: dict[str, Type] = OWN | {
    f"{alias}.{name}": kind for alias, types in JOINED.items() for name, kind in types.items()
}
"""The key of every value of a row, and its type."""

# --- values

TEXTS = (
    "",
    " ",
    "a",
    "A",
    "abc",
    "North Sea",
    "nORTH  sEA",
    " padded\t\r\n",
    "100%",
    "a_c",
    "a%c",
    "50\\%",
    "\\",
    "\\\\_",
    "C:\\temp\\new",
    "it's",
    'say "hi"',
    "''",
    "`tick`",
    "${env:HOME}",
    "{{ACTIVE}}",
    "$",
    "{",
    "-- no comment",
    "/* nor this */",
    "line\nbreak",
    "nul\x00inside",
    "\x00",
    "\x007",
    "\x0012",
    "\\u0041",
    "\\n",
    "\N{GRINNING FACE}",
    "x\N{GRINNING FACE}y\N{PILE OF POO}z",
    "e\N{COMBINING ACUTE ACCENT}te\N{COMBINING ACUTE ACCENT}",
    "\N{LATIN SMALL LETTER E WITH ACUTE}t\N{LATIN SMALL LETTER E WITH ACUTE}",
    "stra\N{LATIN SMALL LETTER SHARP S}e",
    "\N{RIGHT-TO-LEFT OVERRIDE}abc",
    "\N{HEBREW LETTER SHIN}\N{HEBREW LETTER LAMED}",
    "\N{ZERO WIDTH JOINER}",
    "\N{NO-BREAK SPACE}x\N{NO-BREAK SPACE}",
    "\N{BYTE ORDER MARK}",
    "aaaa",
    "abababab",
    "Zoe",
    "bob",
)
NUMERALS = (
    "0",
    "42",
    " 42 ",
    "+7",
    "-7",
    "12.5",
    "-0.00000000005",
    "0.00000000004999",
    "1e5",
    "1E-11",
    ".5",
    "5.",
    "1,25",
    "1 000",
    "9223372036854775807",
    "9223372036854775808",
    "9999999999999999999999999999.9999999999",
    "9999999999999999999999999999.99999999995",
    "twelve",
    "+",
    "--1",
    "NaN",
    "Infinity",
    "0x10",
    "1e99",
)
DATE_TEXTS = (
    "2026-01-31",
    "2024-02-29",
    "2026-02-29",
    "1900-02-29",
    "2000-02-29",
    "0001-01-01",
    "9999-12-31",
    "2026-1-31",
    "2026-13-01",
    "2026-00-10",
    "2026",
    "31.01.2026",
    "2026-01-31T00:00:00",
    " 2026-01-31",
    "2026-01-31 ",
    "+12026-01-31",
    "-2026-01-31",
    "0000-01-01",
    "02026-01-31",
    "soon",
)
DAYS = (
    date(1, 1, 1),
    date(9999, 12, 31),
    date(2024, 2, 29),
    date(2000, 2, 29),
    date(1900, 2, 28),
    date(1970, 1, 1),
    date(1969, 12, 31),
    date(1582, 10, 10),
    date(2026, 1, 31),
    date(2026, 12, 31),
    date(2025, 3, 31),
)
MOMENTS = (
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC),
    datetime(2026, 3, 29, 1, 30, 0, 500000, tzinfo=UTC),
    datetime(1582, 10, 10, 10, 10, 10, tzinfo=UTC),
    datetime(2026, 1, 31, 8, 30, tzinfo=UTC),
)
INTEGERS = (
    0,
    1,
    -1,
    2,
    -2,
    3,
    7,
    10,
    12,
    31,
    100,
    -100,
    1250,
    -1250,
    2**31 - 1,
    2**31,
    -(2**31),
    2**62,
    2**63 - 1,
    -(2**63),
)
CHARACTERS = "abcXYZ 01%_\\'\"`-\t\n\x00$\N{GRINNING FACE}\N{COMBINING ACUTE ACCENT}\N{HEBREW LETTER SHIN}"

Pick = Callable[[int, int], int]
"""Chooses a whole number between two, both included: hypothesis, or a generator of random numbers."""


def scaled(units: int, scale: int) -> Decimal:
    """So many units of the last place."""
    return Decimal((int(units < 0), tuple(int(digit) for digit in str(abs(units))), -scale))


class Picking:
    """Draws values of every type, with a liking for the edges."""

    def __init__(self, pick: Pick) -> None:
        self.pick = pick

    def one_of(self, options: Sequence[Any]) -> Any:
        """One of several, all equally likely."""
        return options[self.pick(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        """Whether something happens that does so often; no is the simpler answer."""
        return self.pick(0, 99) >= 100 - percent

    def text(self) -> str:
        """Unusual texts, numbers and dates as text, and any mixture of characters."""
        if self.chance(25):
            return "".join(self.one_of(CHARACTERS) for _ in range(self.pick(0, 8)))
        found: str = self.one_of(TEXTS if self.chance(60) else NUMERALS if self.chance(50) else DATE_TEXTS)
        return found

    def day(self) -> date:
        """Leap days, the first and the last day, and any other."""
        if self.chance(40):
            return date.fromordinal(self.pick(date(2020, 1, 1).toordinal(), date(2030, 12, 31).toordinal()))
        if self.chance(30):
            return date.fromordinal(self.pick(1, date.max.toordinal()))
        found: date = self.one_of(DAYS)
        return found

    def moment(self) -> datetime:
        """Any moment of any day, to the microsecond."""
        if self.chance(40):
            found: datetime = self.one_of(MOMENTS)
            return found
        day = self.day()
        start = datetime(day.year, day.month, day.day, tzinfo=UTC)
        return start + timedelta(microseconds=self.pick(0, 86_400_000_000 - 1)) if self.chance(70) else start

    def integer(self) -> int:
        """Small ones, any others, and those where 32 and 64 bits end."""
        if self.chance(45):
            return self.pick(-40, 40)
        if self.chance(50):
            return self.pick(-(10**6), 10**6) if self.chance(70) else self.pick(-(2**63), 2**63 - 1)
        found: int = self.one_of(INTEGERS)
        return found

    def decimal(self, kind: DecimalType) -> Decimal:
        """Zero, the largest, the smallest, halves at any place, and numbers of any length."""
        precision, scale = kind.precision, kind.scale
        most = 10**precision - 1
        match self.pick(0, 5):
            case 0:
                units = self.one_of((0, 1, -1, 10**scale, -5, most, -most, most - 1))
            case 1 | 2:
                place = self.pick(0, precision - 1)
                units = self.pick(0, 10 ** self.pick(0, precision - place - 1)) * 10 ** (place + 1)
                units += 5 * 10**place + self.one_of((0, 0, 0, -1, 1))
                units *= self.one_of((1, -1))
            case 3:
                units = self.pick(-2_000_000, 2_000_000) * 10 ** max(0, scale - 2)
            case _:
                length = 10 ** self.pick(1, precision)
                units = self.pick(1 - length, length - 1)
        return scaled(max(-most, min(most, units)), scale)

    def value(self, kind: Type) -> Any:
        """A value of a column, now and then NULL."""
        if self.chance(12):
            return None
        if isinstance(kind, DecimalType):
            return self.decimal(kind)
        by_type: dict[Type, Callable[[], Any]] = {
            TEXT: self.text,
            INTEGER: self.integer,
            BOOLEAN: lambda: self.chance(50),
            DATE: self.day,
            TIMESTAMP: self.moment,
        }
        return by_type[kind]()

    def row(self) -> dict[str, Any]:
        """A value for every column."""
        return {name: self.value(kind) for name, kind in TYPES.items()}

    def grouped_row(self) -> dict[str, Any]:
        """A row that shares its keys with others."""
        return self.row() | {"status": self.one_of(("a", "b", "", None))}


# --- which functions give what


@dataclass(frozen=True, slots=True)
class Production:
    """A way to call a function: the parameters, and for each the kinds of argument to draw from."""

    function: Function
    parameters: tuple[Parameter, ...]
    kinds: tuple[tuple[Kind, ...], ...]
    shared: dict[str, Kind]
    result: Kind


MOST_ARGUMENTS = 5


def _kinds_for(parameter: Parameter) -> tuple[Kind, ...]:
    accepted = tuple(kind for kind in Kind if parameter.accepts(kind.value))
    return tuple(kind for kind in accepted if kind is not Kind.WHOLE) if Kind.NUMBER in accepted else accepted


def _productions(function: Function) -> list[Production]:
    found = []
    for signature, _ in function.ways:
        for count in range(MOST_ARGUMENTS + 1):
            parameters = signature.place(count)
            if parameters is not None:
                found += _ways_to_call(function, signature, parameters)
    return found


def _ways_to_call(function: Function, signature: Signature, parameters: tuple[Parameter, ...]) -> list[Production]:
    letters = tuple(dict.fromkeys(parameter.shared for parameter in parameters if parameter.shared))
    found = []
    by_letter = {
        letter: [kind for kind in Kind if all(each.accepts(kind.value) for each in parameters if each.shared == letter)]
        for letter in letters
    }
    for chosen in product(*by_letter.values()):
        shared = dict(zip(letters, chosen, strict=True))
        kinds = tuple((shared[each.shared],) if each.shared else _kinds_for(each) for each in parameters)
        if isinstance(signature.result, str):
            found.append(Production(function, parameters, kinds, shared, shared[signature.result]))
        elif not callable(signature.result):
            found.append(Production(function, parameters, kinds, shared, _kind_of(signature.result)))
        else:
            first = kinds[0] + ((Kind.WHOLE,) if Kind.NUMBER in kinds[0] else ())
            for kind in first:
                rest = tuple(
                    (Kind.WHOLE,) if Kind.NUMBER in each and kind is Kind.WHOLE else each for each in kinds[1:]
                )
                sample = [TypedLiteral(None, each[0].value) for each in ((kind,), *rest)]
                result = _kind_of(signature.result(sample))
                found.append(Production(function, parameters, ((kind,), *rest), shared, result))
    return found


def _by_result(functions: Iterable[Function]) -> dict[Kind, list[list[Production]]]:
    """For each kind, the functions that give it, each with its productions, so that all are drawn equally often."""
    found: dict[Kind, list[list[Production]]] = {kind: [] for kind in Kind}
    for function in functions:
        productions = _productions(function)
        for kind in Kind:
            fitting = [each for each in productions if each.result is kind]
            if fitting:
                found[kind].append(fitting)
    return found


SCALARS = _by_result(each for each in FUNCTIONS if not each.is_aggregate and not each.needs_window)
AGGREGATES = _by_result(each for each in FUNCTIONS if each.is_aggregate)
OVER = _by_result(each for each in FUNCTIONS if each.window is not None)

# --- trees

PATTERNS = (
    "0",
    "0.00",
    "#,##0.00",
    "#,##0",
    "000",
    "00.000",
    "0%",
    "0.0%",
    "0.00%",
    "000.0%",
    "0.0000000000",
    "yyyy-MM-dd",
    "dd.MM.yyyy",
    "yyyy-MM",
    "yyyyMM",
    "yyyyMMdd",
    "yy",
    "MM/dd/yyyy",
    "'yyyy' MM",
    "yyyy-MM-dd HH:mm:ss",
    "HH:mm",
    "😀 dd",
)
CONSTANTS: dict[Kind, tuple[Any, ...]] = {
    Kind.WHOLE: (0, 1, 2, 3, 4, 9, 10, 11, 18, 37, 38, -1, -2, -3, -5, -10, -18, -19, -20, -37, -38),
    Kind.TEXT: (*PATTERNS, ", ", "", "\\", "'", "\x00", "😀"),
}
NUMBERS = (
    "0",
    "1",
    "2",
    "3",
    "7",
    "10",
    "12",
    "100",
    "1000",
    "2147483647",
    "9223372036854775807",
    "9223372036854775808",
    "0.5",
    "0.1",
    "0.0",
    "1.005",
    "2.50",
    "0.00000000005",
    "0.0000000001",
    "100.00",
    "0.00672131",
    "1.1",
    "99.995",
    "99999999999999.9999999999",
    "1234567890123.4567890123",
    "12345678901234567890123456789012345678",
    "0.00000000000000000000000000000000000001",
    "9999999999999999999999999999.9999999999",
    "3.14159265358979323846",
)
LIKE_PATTERNS = (
    "%",
    "_",
    "",
    "%a%",
    "a%",
    "%c",
    "a_c",
    "100\\%",
    "%\\%",
    "\\_",
    "%\\",
    "_%_",
    "x_y%",
    "%\N{GRINNING FACE}%",
    "_\N{GRINNING FACE}_%",
    "%\n%",
)
ISO = ("2026-01-31", "2024-02-29", "0001-01-01", "9999-12-31", "1969-12-31", "1970-01-01")
ISO_TIMES = (
    "2026-01-31T08:30:00Z",
    "2026-01-31 08:30",
    "1970-01-01T00:00:00.000001+01:00",
    "0001-01-01T00:00:00",
    "9999-12-31T23:59:59.999999Z",
)
ORDERED = tuple(kind for kind in Kind if kind is not Kind.TRUTH)


def number(text: str) -> tree.Expression:
    """A number as it is written, negative ones included."""
    return tree.Negate(tree.Number(Decimal(text[1:]))) if text.startswith("-") else tree.Number(Decimal(text))


def _own_columns(kind: Kind, names: Sequence[str]) -> list[tree.Column]:
    found = []
    for name in names:
        of = _kind_of(TYPES[name])
        if of is kind or (kind is Kind.NUMBER and of is Kind.WHOLE):
            alias, dot, column = name.partition(".")
            found.append(tree.Column(column, alias) if dot and alias in JOINED else tree.Column(name))
    return found


COLUMNS = {kind: _own_columns(kind, tuple(TYPES)) for kind in Kind}
COLUMNS[Kind.WHOLE].append(tree.Column("QUANTITY", "Orders"))
KEY_COLUMNS = {kind: _own_columns(kind, KEYS) for kind in Kind}


class Drawing(Picking):
    """Draws trees. ``grouped``: the leaves are aggregates and group keys; ``windows``: some leaves are windows."""

    def __init__(self, pick: Pick, *, grouped: bool = False, windows: bool = False) -> None:
        super().__init__(pick)
        self.grouped = grouped
        self.windows = windows

    def formula(self, depth: int) -> tree.Expression:
        """An expression of any kind."""
        return self.expression(self.one_of(tuple(Kind)), self.pick(1, depth))

    def expression(self, kind: Kind, depth: int) -> tree.Expression:
        if self.chance(3):
            return tree.Null()
        if depth <= 0 or self.chance(12):
            return self.leaf(kind)
        if self.grouped and self.chance(40):
            return self.aggregate(kind)
        if self.windows and OVER[kind] and self.chance(40):
            return self.window(kind)
        makers = OPERATORS[kind]
        if SCALARS[kind] and self.chance(50):
            return self.call(self.one_of(self.one_of(SCALARS[kind])), depth)
        made: tree.Expression = self.one_of(makers)(self, kind, depth - 1)
        return made

    def window(self, kind: Kind) -> tree.Expression:
        """A window, mostly with keys that several rows share."""
        inside = Drawing(self.pick)
        production: Production = self.one_of(self.one_of(OVER[kind]))
        call = inside.call(production, 2)
        assert isinstance(call, tree.Call)
        assert production.function.window is not None
        order = [
            tree.Ordering(inside.window_key(), self.chance(50))
            for _ in range(self.pick(int(production.function.window.needs_order), 2))
        ]
        if not call.arguments and call.name == "COUNT_ALL" and self.chance(50):
            call = replace(call, name="COUNT", star=True)
        return tree.Over(call, tuple(inside.window_key() for _ in range(self.pick(0, 2))), tuple(order))

    def window_key(self) -> tree.Expression:
        if self.chance(60):
            found: tree.Expression = tree.Column(self.one_of(KEYS))
            return found
        found = self.expression(self.one_of(tuple(Kind)), 1)
        literal = isinstance(found, tree.Number | tree.Text | tree.Truth | tree.Null | tree.Negate)
        return tree.Column("quantity") if literal else found

    def leaf(self, kind: Kind) -> tree.Expression:
        if self.grouped and self.chance(75):
            if KEY_COLUMNS[kind] and self.chance(40):
                column: tree.Expression = self.one_of(KEY_COLUMNS[kind])
                return column
            return self.aggregate(kind)
        if not self.grouped and self.chance(70):
            found: tree.Expression = self.one_of(COLUMNS[kind])
            return found
        return self.literal(kind)

    def literal(self, kind: Kind) -> tree.Expression:
        match kind:
            case Kind.TRUTH:
                if self.chance(50) and not self.grouped:
                    return tree.SelectorRef(self.one_of(tuple(SELECTORS)))
                return tree.Truth(self.chance(50))
            case Kind.WHOLE:
                return number(
                    self.one_of(("", "-"))
                    + self.one_of([each for each in NUMBERS if "." not in each and len(each) < 19])
                )
            case Kind.NUMBER:
                return number(self.one_of(("", "", "-")) + self.one_of(NUMBERS))
            case Kind.TEXT:
                return tree.Text(self.text())
            case Kind.DAY:
                return tree.Call("DATE", (tree.Text(self.one_of(ISO)),))
            case Kind.TIME:
                return tree.Call("NOW", ())

    def call(self, production: Production, depth: int) -> tree.Expression:
        names = (production.function.name, *production.function.aliases)
        arguments = [
            self.argument(parameter, self.one_of(kinds), depth - 1)
            for parameter, kinds in zip(production.parameters, production.kinds, strict=True)
        ]
        if production.function.name in ("LPAD", "RPAD"):
            arguments[1] = self.width(depth - 1)
        if production.function.name == "NOT":
            return tree.Not(arguments[0])
        return tree.Call(self.one_of(names), tuple(arguments))

    def width(self, depth: int) -> tree.Expression:
        """A length to pad to; without a bound it would be gigabytes."""
        if self.chance(60):
            return number(str(self.pick(-2, 12)))
        return tree.Call("MOD", (self.expression(Kind.WHOLE, depth), number("12")))

    def argument(self, parameter: Parameter, kind: Kind, depth: int) -> tree.Expression:
        if parameter.constant:
            verify = parameter.verify
            fine = [each for each in CONSTANTS[kind] if verify is None or verify(each) is None]
            value = self.one_of(fine)
            return tree.Text(value) if isinstance(value, str) else number(str(value))
        if parameter.is_date_text and self.chance(30):
            return tree.Text(self.one_of(ISO))
        found = self.expression(kind, depth)
        literal = isinstance(found, tree.Number | tree.Negate | tree.Text)
        return self.leaf_column(kind) if literal and (parameter.verify or parameter.is_date_text) else found

    def leaf_column(self, kind: Kind) -> tree.Expression:
        column: tree.Expression = self.aggregate(kind) if self.grouped else self.one_of(COLUMNS[kind])
        return column

    def aggregate(self, kind: Kind) -> tree.Expression:
        inside = Drawing(self.pick)
        if not AGGREGATES[kind]:
            return inside.literal(kind)
        return inside.call(self.one_of(self.one_of(AGGREGATES[kind])), 2)

    # --- operators

    def binary(self, operators: Sequence[str]) -> Callable[[Kind, int], tree.Expression]:
        return lambda kind, depth: tree.Binary(
            self.one_of(operators), self.expression(kind, depth), self.expression(kind, depth)
        )

    def arithmetic(self, kind: Kind, depth: int) -> tree.Expression:
        return self.binary("+-*" if kind is Kind.WHOLE else "+-*/")(kind, depth)

    def negate(self, kind: Kind, depth: int) -> tree.Expression:
        return tree.Negate(self.expression(kind, depth))

    def days_between(self, kind: Kind, depth: int) -> tree.Expression:
        return self.binary("-")(Kind.DAY, depth)

    def shift(self, kind: Kind, depth: int) -> tree.Expression:
        day, count = self.expression(Kind.DAY, depth), self.expression(Kind.WHOLE, min(depth, 1))
        if self.chance(30):
            return tree.Binary("+", count, day)
        return tree.Binary(self.one_of("+-"), day, count)

    def join(self, kind: Kind, depth: int) -> tree.Expression:
        pieces = (Kind.TEXT, Kind.TEXT, Kind.WHOLE, Kind.DAY)
        return tree.Binary(
            "&", self.expression(self.one_of(pieces), depth), self.expression(self.one_of(pieces), depth)
        )

    def case(self, kind: Kind, depth: int) -> tree.Expression:
        branches = tuple(
            (self.expression(Kind.TRUTH, depth), self.expression(kind, depth)) for _ in range(self.pick(1, 2))
        )
        return tree.Case(branches, self.expression(kind, depth) if self.chance(60) else None)

    def operands(self, kind: Kind, depth: int, count: int) -> list[tree.Expression]:
        found = [self.expression(kind, depth) for _ in range(count)]
        if kind in (Kind.DAY, Kind.TIME):
            for at in range(1, count):
                if self.chance(30):
                    found[at] = tree.Text(self.one_of(ISO if self.chance(70) else ISO_TIMES))
        return found

    def compare(self, kind: Kind, depth: int) -> tree.Expression:
        of = self.one_of(ORDERED) if self.chance(85) else Kind.TRUTH
        operators = ("=", "<>", "<", "<=", ">", ">=") if of in ORDERED else ("=", "<>")
        left, right = self.operands(of, depth, 2)
        return tree.Binary(self.one_of(operators), left, right)

    def is_in(self, kind: Kind, depth: int) -> tree.Expression:
        of = self.one_of(tuple(Kind))
        first, *items = self.operands(of, depth, self.pick(2, 5))
        if of is Kind.NUMBER and self.chance(15):
            items += [number(text) for text in NUMBERS]
        return tree.In(first, tuple(items), self.chance(50))

    def between(self, kind: Kind, depth: int) -> tree.Expression:
        operand, low, high = self.operands(self.one_of(ORDERED), depth, 3)
        return tree.Between(operand, low, high, self.chance(50))

    def like(self, kind: Kind, depth: int) -> tree.Expression:
        pattern = tree.Text(self.one_of(LIKE_PATTERNS)) if self.chance(60) else self.expression(Kind.TEXT, depth)
        return tree.Like(self.expression(Kind.TEXT, depth), pattern, self.chance(50))

    def is_null(self, kind: Kind, depth: int) -> tree.Expression:
        return tree.IsNull(self.expression(self.one_of(tuple(Kind)), depth), self.chance(50))

    def logic(self, kind: Kind, depth: int) -> tree.Expression:
        operands = tuple(self.expression(Kind.TRUTH, depth) for _ in range(self.pick(2, 3)))
        return tree.Logic(self.one_of(("AND", "OR")), operands)

    def negation(self, kind: Kind, depth: int) -> tree.Expression:
        return tree.Not(self.expression(Kind.TRUTH, depth))


_D = Drawing
OPERATORS: dict[Kind, tuple[Callable[[Drawing, Kind, int], tree.Expression], ...]] = {
    Kind.TRUTH: (
        _D.compare,
        _D.compare,
        _D.is_in,
        _D.between,
        _D.like,
        _D.is_null,
        _D.logic,
        _D.logic,
        _D.negation,
        _D.case,
    ),
    Kind.WHOLE: (_D.arithmetic, _D.arithmetic, _D.negate, _D.days_between, _D.case),
    Kind.NUMBER: (_D.arithmetic, _D.arithmetic, _D.arithmetic, _D.arithmetic, _D.negate, _D.case),
    Kind.TEXT: (_D.join, _D.join, _D.case),
    Kind.DAY: (_D.shift, _D.shift, _D.case),
    Kind.TIME: (_D.case,),
}


def _picker(draw: st.DrawFn) -> Pick:
    return lambda low, high: draw(st.integers(low, high))


@st.composite
def formulas(draw: st.DrawFn, depth: int = 3) -> tree.Expression:
    """A formula over one row."""
    return Drawing(_picker(draw)).formula(depth)


@st.composite
def windows(draw: st.DrawFn, depth: int = 2) -> tree.Expression:
    """A formula over a row and those around it; most have a window."""
    return Drawing(_picker(draw), windows=True).formula(depth)


@st.composite
def aggregations(draw: st.DrawFn, depth: int = 2) -> tree.Expression:
    """A formula over a group of rows; most have an aggregate function."""
    return Drawing(_picker(draw), grouped=True).formula(depth)
