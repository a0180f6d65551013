"""Small projects that are valid by construction: all operations but checks, joins, lookups, NULLs, versions and times.

Numbers stay small and have at most two digits behind the point (a product or quotient is rounded at once), so that
what is expected needs no rules about the precision of decimals.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tests.projects.expression import (
    BOOLEAN,
    DATE,
    DECIMAL,
    INTEGER,
    NULL,
    NUMBERS,
    TEXT,
    TIMESTAMP,
    Apply,
    Column,
    Formula,
    Literal,
    MadeBy,
    Named,
    Node,
    Parameter,
    Total,
    Windowed,
    walk,
)
from tests.projects.interpreter import TEMPORAL, Period

CLOCK = datetime(2026, 2, 3, 8, 30, 15, 123456, tzinfo=UTC)
EARLIER = datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC)
RUN = Period("2026-01", date(2026, 1, 1))

LIMIT = 10**9
"""No number gets larger than this."""
DIVISORS = 10**5
"""No divisor does: a quotient that is rounded twice is then still the one that is rounded once."""
ROWS = 3000
"""More rows than a project ever has, to bound a sum."""

TEXTS = ("a", "b", "A", "", "a ", "é", "o'x\"y\\", "{{no}}")
DAYS = tuple(date(2026, 1, day) for day in (1, 2, 15, 31))
CODES = ("1", "2", "10", "x")
"""Texts of the column ``code``, of which all but the last are numbers."""
MAIN = "orders"
FIXED = ("no", "code", "net amount", "#matches", "x.y")
"""Columns that no operation sets: one tells stored rows apart, one has only the texts above, the rest need backticks."""


@dataclass(frozen=True)
class Pool:
    """A column that datasets may have."""

    name: str
    kind: str
    values: tuple[Any, ...] = ()


POOL = (
    Pool("g", TEXT, TEXTS[:4]),
    Pool("qty", INTEGER, (0, 1, 2, 3, 11, 25, -7)),
    Pool("amount", DECIMAL, tuple(Decimal(each) for each in ("0", "1.00", "2.50", "10.01", "-3.33", "99.99"))),
    Pool("code", TEXT, CODES),
    Pool("flag", BOOLEAN, (True, False)),
    Pool("day", DATE, DAYS),
    Pool("c", TEXT, TEXTS),
    Pool("net amount", DECIMAL, tuple(Decimal(each) for each in ("0.5", "12.25", "-1"))),
    Pool("Matches", INTEGER, (1, 2)),
    Pool("#matches", INTEGER, (1, 2, 3)),
    Pool("x.y", TEXT, TEXTS[:3]),
)
KIND_OF = {"no": INTEGER, **{each.name.casefold(): each.kind for each in POOL}}
DECLARED = {
    TEXT: ("string",),
    INTEGER: ("integer",),
    DECIMAL: ("decimal(12,2)", "decimal", "decimal(20,4)"),
    BOOLEAN: ("boolean",),
    DATE: ("date",),
}
NEW = ("n1", "n2", "Matched")
PARAMETERS: dict[str, tuple[Any, ...]] = {
    INTEGER: (0, 1, 12),
    DECIMAL: tuple(Decimal(each) for each in ("0", "0.05", "2.5", "10.00", "-1.25")),
    TEXT: TEXTS,
    BOOLEAN: (True, False),
    DATE: DAYS,
    TIMESTAMP: (CLOCK, EARLIER),
}
"""Values of parameters, by kind."""


@dataclass(frozen=True)
class Case:
    """A project with all that its run depends on."""

    project: dict[str, Any]
    datasets: list[dict[str, Any]]
    period: Period
    clock: datetime = CLOCK
    given: dict[str, Any] = field(default_factory=dict)
    """The parameters that the run is given; the others have defaults."""


@dataclass(frozen=True)
class Known:
    """A column that an expression can see; ``bound`` is a number that its values do not exceed."""

    qualifier: str | None
    name: str
    kind: str
    bound: int = 0


@dataclass(frozen=True)
class Scope:
    """What an expression can see."""

    table: str
    columns: tuple[Known, ...]
    selectors: tuple[Named, ...] = ()
    makers: tuple[tuple[str, int], ...] = ()
    """The operations so far that add rows: names and numbers."""

    def of(self, *kinds: str) -> list[Known]:
        return [each for each in self.columns if each.kind in kinds]

    def has(self, name: str) -> bool:
        return any(each.qualifier is None and each.name == name for each in self.columns)

    def own(self) -> list[Known]:
        """Business columns of the rows themselves."""
        return [each for each in self.columns if each.qualifier is None and not each.name.startswith("_")]


Bounded = tuple[Node, int]


@dataclass
class Drawing:
    """Draws expressions."""

    number: Callable[[int, int], int]
    """A number between two others, both included."""
    parameters: tuple[Parameter, ...] = ()
    """Those of the project; numbers are small."""

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.number(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        return self.number(0, 99) >= 100 - percent

    def some(self, options: Sequence[Any], low: int, high: int) -> list[Any]:
        """Some of the options, each once, in any order."""
        left, taken = list(options), []
        for _ in range(self.number(min(low, len(left)), min(high, len(left)))):
            taken.append(left.pop(self.number(0, len(left) - 1)))
        return taken

    # --- columns and literals

    def column(self, known: Known, table: str) -> Column:
        """A reference in one of the ways in which a user may write it (C-09, C-10)."""
        name = known.name
        if name == "_updated_at" and self.chance(50):
            name = "_modified_at"
        if name == "_source_dataset_id" and self.chance(50):
            name = "_source_dataset"
        if self.chance(20):
            name = name.swapcase()
        if not name.replace("_", "a").isalnum() or self.chance(5):
            name = f"`{name}`"
        qualifier = known.qualifier
        if qualifier is None and self.chance(30):
            qualifier = table
        elif qualifier is not None and self.chance(15):
            qualifier = qualifier.upper()
        written = f"{qualifier}.{name}" if qualifier else name
        return Column(known.qualifier, known.name, known.kind, written)

    def literal(self, kind: str) -> Bounded:
        if self.chance(8):
            return Literal(None, NULL), 0
        parameters = [each for each in self.parameters if each.kind == kind]
        if parameters and self.chance(40):
            return self.pick(parameters), 12
        match kind:
            case "integer":
                return Literal(self.number(0, 12), INTEGER), 12
            case "decimal":
                return Literal(self.pick([Decimal("0.5"), Decimal("2.25"), Decimal("10.00")]), DECIMAL), 10
            case "string":
                return Literal(self.pick(TEXTS[:4] + TEXTS), TEXT), 0
            case "boolean":
                return Literal(self.chance(50), BOOLEAN), 0
            case "date":
                return Literal(self.pick(DAYS), DATE), 0
            case _:
                return Literal(CLOCK, TIMESTAMP), 0

    def leaf(self, scope: Scope, *kinds: str) -> Bounded:
        columns = scope.of(*kinds)
        if columns and self.chance(75):
            known = self.pick(columns)
            return self.column(known, scope.table), known.bound
        return self.literal(self.pick(kinds))

    # --- expressions

    def value(self, scope: Scope, kind: str, depth: int) -> Bounded:
        """An expression of a kind; numbers may be of either."""
        if kind in NUMBERS:
            return self.numeric(scope, depth)
        if kind == BOOLEAN:
            return self.condition(scope, depth), 0
        if depth > 0:
            match self.number(0, 5):
                case 0:
                    return self.choice(scope, kind, depth)
                case 1:
                    return self.first(scope, kind, depth)
                case 2 | 3 if kind == TEXT:
                    parts = tuple(self.value(scope, TEXT, depth - 1)[0] for _ in range(self.number(2, 3)))
                    if not all(_is_null(part) for part in parts):
                        return Apply("CONCAT", parts, TEXT), 0
        return self.leaf(scope, kind)

    def numeric(self, scope: Scope, depth: int) -> Bounded:
        made = self._numeric(scope, depth)
        return made if made[1] <= LIMIT else self.leaf(replace(scope, columns=()), *NUMBERS)

    def _numeric(self, scope: Scope, depth: int) -> Bounded:
        if depth == 0:
            return self.leaf(scope, *NUMBERS)
        match self.number(0, 9):
            case 0 | 1:
                (one, most), (other, more) = self.numeric(scope, depth - 1), self.numeric(scope, depth - 1)
                return (
                    (one, most)
                    if _is_null(one) or _is_null(other)
                    else (_arith(self.pick("+-"), one, other), most + more)
                )
            case 2:
                (one, most), (other, more) = self.numeric(scope, depth - 1), self.numeric(scope, depth - 1)
                if _is_null(one) or _is_null(other):
                    return one, most
                product = _arith("*", one, other)
                return (product if INTEGER in (one.kind, other.kind) else _rounded(product, 2)), most * more
            case 3:
                (one, most), (other, more) = self.numeric(scope, depth - 1), self.numeric(scope, depth - 1)
                if _is_null(one) or _is_null(other) or more > DIVISORS or most > LIMIT // 100:
                    return one, most
                return _rounded(Apply("/", (one, other), DECIMAL), 2), most * 100
            case 4:
                one, most = self.numeric(scope, depth - 1)
                places = self.number(-1, 2)
                return (_rounded(one, places), most + 10) if one.kind == DECIMAL else (one, most)
            case 5:
                one, most = self.numeric(scope, depth - 1)
                return (one, most) if _is_null(one) else (Apply("NEGATE", (one,), one.kind), most)
            case 6:
                return self.choice(scope, INTEGER, depth)
            case 7:
                return self.first(scope, INTEGER, depth)
            case 8 if scope.has("code"):
                code = Known(None, "code", TEXT)
                unsafe = Apply("=", (self.column(code, scope.table), Literal("x", TEXT)), BOOLEAN)
                return Apply("IF", (unsafe, Literal(None, NULL), self.parsed(scope)), INTEGER), 10
            case _:
                return self.leaf(scope, *NUMBERS)

    def parsed(self, scope: Scope) -> Node:
        """A value that is an error for some rows: they must not be asked."""
        return Apply("TO_INTEGER", (self.column(Known(None, "code", TEXT), scope.table),), INTEGER)

    def choice(self, scope: Scope, kind: str, depth: int) -> Bounded:
        test = self.condition(scope, depth - 1)
        (one, most), (other, more) = self.value(scope, kind, depth - 1), self.value(scope, kind, depth - 1)
        return Apply("IF", (test, one, other), _common(one, other)), max(most, more)

    def first(self, scope: Scope, kind: str, depth: int) -> Bounded:
        (one, most), (other, more) = self.value(scope, kind, depth - 1), self.value(scope, kind, depth - 1)
        return Apply("COALESCE", (one, other), _common(one, other)), max(most, more)

    def condition(self, scope: Scope, depth: int) -> Node:
        """A boolean expression, often unknown for some rows."""
        choices = ["number", "text", "seq", "null", "column", "number", "text", "not null", "date", "selector", "time"]
        if depth > 0:
            choices += ["and", "or", "not", "and", "or", "or"]
        match self.pick(choices):
            case "and":
                return Apply("AND", (self.condition(scope, depth - 1), self.condition(scope, depth - 1)), BOOLEAN)
            case "or":
                return Apply("OR", (self.condition(scope, depth - 1), self.condition(scope, depth - 1)), BOOLEAN)
            case "not":
                return Apply("NOT", (self.condition(scope, depth - 1),), BOOLEAN)
            case "null":
                return Apply("ISNULL", (self.column(self.pick(scope.columns), scope.table),), BOOLEAN)
            case "not null":
                null = Apply("ISNULL", (self.column(self.pick(scope.columns), scope.table),), BOOLEAN)
                return Apply("NOT", (null,), BOOLEAN)
            case "column":
                return self.leaf(scope, BOOLEAN)[0]
            case "selector" if scope.selectors:
                named: Named = self.pick(scope.selectors)
                return named
            case "seq" if scope.has("_operation_seq"):
                seq = Known(None, "_operation_seq", INTEGER, 1000)
                if scope.makers and self.chance(50):
                    name, number = self.pick(scope.makers)
                    made = Apply("=", (self.column(seq, scope.table), Literal(number, INTEGER)), BOOLEAN)
                    return MadeBy(name, made)
                return Apply("=", (self.column(seq, scope.table), Literal(0, INTEGER)), BOOLEAN)
            case "text":
                return self.comparison(scope, TEXT, depth)
            case "date":
                return self.comparison(scope, DATE, depth)
            case "time" if scope.of(TIMESTAMP):
                return self.comparison(scope, TIMESTAMP, 0)
            case _:
                return self.comparison(scope, INTEGER, depth)

    def comparison(self, scope: Scope, kind: str, depth: int) -> Node:
        below = max(0, depth - 1)
        one, _ = self.value(scope, kind, below)
        other, _ = self.value(scope, kind, below)
        return Apply(self.pick(["=", "<>", "<", "<=", ">", ">="]), (one, other), BOOLEAN)

    def windowed(self, scope: Scope) -> Bounded:
        """A number over several rows, or a share of it. Functions for which ties matter are left out: those have tests of their own."""
        keys = [each for each in scope.columns if each.kind in (TEXT, BOOLEAN, DATE, INTEGER)]
        partition = tuple(self.column(each, scope.table) for each in self.some(keys, 0, 2))
        order = tuple((self.column(each, scope.table), self.chance(40)) for each in self.some(keys, 0, 2))
        operand, most = self.numeric(scope, 1)
        if order and self.chance(25):
            return Windowed(self.pick(["RANK", "DENSE_RANK"]), None, partition, order, INTEGER), ROWS
        if _is_null(operand) or most * ROWS > LIMIT // 100:
            return Windowed("COUNT", None, partition, order, INTEGER), ROWS
        match self.number(0, 4):
            case 0:
                return _rounded(Windowed("AVG", operand, partition, order, DECIMAL), 2), most + 1
            case 1:
                name = self.pick(["MIN_AGG", "MAX_AGG"])
                return Windowed(name, operand, partition, order, operand.kind), most
            case 2:
                summed = Windowed("SUM", operand, partition, order, DECIMAL)
                return (
                    (_rounded(Apply("/", (operand, summed), DECIMAL), 2), most * 100)
                    if most * ROWS <= DIVISORS
                    else (summed, most * ROWS)
                )
            case 3:
                return Windowed("COUNT", operand, partition, order, INTEGER), ROWS
            case _:
                return Windowed("SUM", operand, partition, order, DECIMAL), most * ROWS

    def total(self, scope: Scope, kind: str, keys: Sequence[Column]) -> Bounded | None:
        """An expression over a group (C-15), None where there is none of the kind."""
        if kind == BOOLEAN:
            return Apply(self.pick([">", "="]), (Total("COUNT", None, INTEGER), Literal(1, INTEGER)), BOOLEAN), 0
        if kind not in NUMBERS:
            matching = [key for key in keys if key.kind == kind]
            operand = self.value(scope, kind, 1)[0]
            if _is_null(operand):
                return None
            least = Total(self.pick(["MIN_AGG", "MAX_AGG"]), operand, kind)
            if matching and self.chance(30):
                many = Apply(">", (Total("COUNT", None, INTEGER), Literal(1, INTEGER)), BOOLEAN)
                return Apply("IF", (many, self.pick(matching), least), kind), 0
            return least, 0
        count = Total("COUNT", None, INTEGER)
        operand, most = self.numeric(scope, 1)
        if _is_null(operand) or most * ROWS > LIMIT:
            return count, ROWS
        summed = Total("SUM", operand, DECIMAL)
        match self.number(0, 6):
            case 0 | 1:
                return summed, most * ROWS
            case 2:
                return Total("COUNT", self.column(self.pick(scope.columns), scope.table), INTEGER), ROWS
            case 3:
                return _rounded(Total("AVG", operand, DECIMAL), 2), most + 1
            case 4:
                return Total(self.pick(["MIN_AGG", "MAX_AGG"]), operand, operand.kind), most
            case 5:
                return _rounded(Apply("/", (summed, count), DECIMAL), 2), most + 1
            case _:
                return count, ROWS


def _is_null(node: Node) -> bool:
    return node.kind == NULL


def _common(one: Node, other: Node) -> str:
    kinds = {each.kind for each in (one, other)} - {NULL}
    return NULL if not kinds else DECIMAL if DECIMAL in kinds else kinds.pop()


def _arith(operator: str, one: Node, other: Node) -> Node:
    return Apply(operator, (one, other), DECIMAL if DECIMAL in (one.kind, other.kind) else INTEGER)


def _rounded(node: Node, places: int) -> Node:
    return Apply("ROUND", (node, Literal(places, INTEGER)), DECIMAL)


# --- datasets


@dataclass
class _Datasets:
    drawing: Drawing
    made: list[dict[str, Any]] = field(default_factory=list)

    def draw(self) -> list[dict[str, Any]]:
        drawing = self.drawing
        names = [each.name for each in POOL]
        main = ["no", *sorted(drawing.some(names, 4, len(names)), key=names.index)]
        others = [f"d{number}" for number in range(1, drawing.number(1, 3) + 1)]
        for dataset_id in others:
            base = main[1:] if drawing.chance(70) else names
            chosen = ["no", *drawing.some(base, 1, 4)]
            if drawing.chance(20):
                chosen = [name.swapcase() for name in chosen]
            self.versions(dataset_id, drawing.pick(["rates", "t", MAIN]), chosen, most=6)
        self.versions("orders-1", MAIN, main, most=10, lookups=self.lookups(main, others))
        return self.made

    def lookups(self, main: Sequence[str], others: Sequence[str]) -> list[dict[str, Any]]:
        drawing = self.drawing
        if not drawing.chance(30):
            return []
        target = drawing.pick(others)
        columns = [each["name"] for each in self.made[-1]["dataset"]["main_table"]["columns"]]
        shared = [name for name in columns if name in main and name != "no"]
        number = next(each for each in self.made if each["dataset"]["id"] == target)["dataset"]["main_table"][
            "columns"
        ][0]
        pair = {"source_column": "qty" if "qty" in main else "no", "target_column": number["name"]}
        if shared and target == self.made[-1]["dataset"]["id"] and drawing.chance(50):
            name = drawing.pick(shared)
            pair = {"source_column": name, "target_column": name}
        return [{"alias": "looked", "target": {"type": "dataset", "id": target}, "join_conditions": [pair]}]

    def versions(
        self, dataset_id: str, table: str, names: Sequence[str], *, most: int, lookups: Sequence[dict[str, Any]] = ()
    ) -> None:
        """One version or two, the second perhaps disabled."""
        drawing = self.drawing
        mode = drawing.pick([None, "snapshot", "period", "bitemporal"])
        columns = []
        for name in names:
            kind = KIND_OF[name.casefold()]
            if kind == INTEGER and name.casefold() != "no" and drawing.chance(15):
                kind = DECIMAL
            columns.append({"name": name, "type": drawing.pick(DECLARED[kind])})
        document: dict[str, Any] = {"id": dataset_id, "main_table": {"name": table, "columns": columns}}
        if mode is not None:
            document["main_table"]["temporal_mode"] = mode
        if drawing.chance(25):
            document["natural_key_columns"] = [drawing.pick(columns)["name"]]
        if lookups:
            document["lookups"] = list(lookups)
        unique = drawing.chance(60)
        for version in range(1, 2 + drawing.chance(25)):
            this = {**document, "status": "disabled"} if version == 2 and drawing.chance(30) else document
            rows = self.rows(columns, mode, most=most, unique=unique)
            located = mode == "period" and drawing.chance(30)
            self.made.append({"dataset": this, "version": version, "rows": rows, "located": located})

    def rows(
        self, columns: Sequence[dict[str, str]], mode: str | None, *, most: int, unique: bool
    ) -> list[dict[str, Any]]:
        """Stored rows. If ``unique``, no value of a column comes twice; ``no`` never does."""
        drawing = self.drawing
        number = min(most, drawing.number(0, 2 * most))
        first = drawing.number(0, 3)
        data: dict[str, list[Any]] = {columns[0]["name"]: [first + at for at in range(number)]}
        for column in columns[1:]:
            values = next(each.values for each in POOL if each.name.casefold() == column["name"].casefold())
            if unique:
                drawn = drawing.some(values, min(number, len(values)), number)
                data[column["name"]] = drawn + [None] * (number - len(drawn))
            else:
                data[column["name"]] = [None if drawing.chance(12) else drawing.pick(values) for _ in range(number)]
        data = {name: [_typed(value, columns, name) for value in values] for name, values in data.items()}
        data |= self.stored(number, mode)
        return [{name: values[at] for name, values in data.items()} for at in range(number)]

    def stored(self, number: int, mode: str | None) -> dict[str, list[Any]]:
        """System columns that the rows bring with them."""
        drawing = self.drawing

        def of(options: Sequence[Any]) -> list[Any]:
            return [drawing.pick(options) for _ in range(number)]

        found: dict[str, list[Any]] = {}
        if mode == "period":
            found["_period"] = of([RUN.identifier, RUN.identifier, RUN.identifier, "2025-12", None])
        if mode == "bitemporal":
            start, end = drawing.pick([("_period_from", "_period_to"), ("valid_from", "valid_to")])
            found[start] = of([date(2025, 1, 1), date(2025, 1, 1), RUN.start_date, date(2026, 1, 2), None])
            found[end] = of([None, None, date(2026, 2, 1), date(2026, 1, 2), RUN.start_date])
        if drawing.chance(40):
            found["_deleted"] = of([False, False, False, True, None])
        if drawing.chance(25):
            found[drawing.pick(["_updated_at", "_modified_at"])] = of([EARLIER, None])
        if drawing.chance(15):
            found["_created_at"] = of([EARLIER, None])
        if drawing.chance(20):
            found["_labels"] = of(["{vip}", "", None])
        if drawing.chance(15):
            found["_operation_seq"] = of([0, 4])
        if drawing.chance(15):
            found[drawing.pick(["_source_dataset_id", "_source_dataset"])] = of(["elsewhere", None])
            found["_source_table"] = of(["there", None])
        if drawing.chance(25):
            some = drawing.chance(50)
            prefix = f"0190a000-0000-7000-8000-{drawing.number(0, 99):04}"
            found["_row_id"] = [None if some and at % 2 else f"{prefix}{at:08}" for at in range(number)]
        return found


def show(value: Any) -> str:
    """The value of a parameter as a user writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date) else str(value)


def _typed(value: Any, columns: Sequence[dict[str, str]], name: str) -> Any:
    declared = next(each["type"] for each in columns if each["name"] == name)
    return Decimal(value) if declared.startswith(DECIMAL) and value is not None else value


# --- projects


class _Projects:
    def __init__(self, drawing: Drawing, datasets: list[dict[str, Any]]) -> None:
        self.drawing, self.datasets = drawing, datasets
        given = self.latest("orders-1")
        self.columns: dict[str, Known] = {each.name: each for each in _declared(given)}
        table = given["main_table"]
        self.temporal = TEMPORAL.get(table.get("temporal_mode"), ())
        self.lookups = [
            replace(each, qualifier=lookup["alias"])
            for lookup in given.get("lookups", ())
            for each in _joined(self.latest(lookup["target"]["id"]))
        ]
        self.selectors: dict[str, Formula] = {}
        self.given: dict[str, Any] = {}
        self.seq = 0
        self.operations: list[dict[str, Any]] = []

    def stored(self, name: str) -> str:
        """The spelling of a column in the working dataset."""
        return next((each for each in self.columns if each.casefold() == name.casefold()), name)

    def latest(self, dataset_id: str) -> dict[str, Any]:
        versions = [each for each in self.datasets if each["dataset"]["id"] == dataset_id]
        active = [each for each in versions if each["dataset"].get("status", "active") == "active"]
        return max(active, key=lambda each: each["version"])["dataset"]  # type: ignore[no-any-return]

    def draw(self) -> dict[str, Any]:
        drawing = self.drawing
        declared = self.draw_parameters()
        for name in ("chosen", "Other_one")[: drawing.number(0, 2)]:
            # Bare names, so that a selector can also be used for the rows of another dataset.
            tree = drawing.condition(replace(self.scope(lookups=False), table=""), 1)
            self.selectors[name] = Formula(_bare(tree))
        for _ in range(drawing.number(1, 7)):
            kinds = [self.update, self.delete, self.aggregate, self.append, self.output, self.update, self.guarded]
            kinds.append(self.allocate)
            drawing.pick(kinds)()
        everything = {"destination": {"datasource_id": "out", "table": "everything"}, "include_deleted": True}
        self.add("output", arguments=everything)
        if drawing.chance(20):
            self.operations.reverse()
        return {
            "id": "generated",
            "input_dataset_id": "orders-1",
            "selectors": dict(self.selectors),
            **({"parameters": declared} if declared else {}),
            "operations": self.operations,
        }

    def draw_parameters(self) -> dict[str, Any]:
        """Some parameters, with or without a default; a run is given those without, and perhaps others."""
        drawing, declared = self.drawing, {}
        for name, kind in drawing.some([(f"p{at}", kind) for at, kind in enumerate(PARAMETERS)], 0, 4):
            own, other = drawing.pick(PARAMETERS[kind]), drawing.pick(PARAMETERS[kind])
            is_given, has_default = drawing.chance(40), drawing.chance(70)
            declared[name] = {"type": "decimal(5,2)" if kind == DECIMAL else kind}
            if has_default:
                declared[name]["default"] = show(other)
            if is_given or not has_default:
                self.given[name] = own
            drawing.parameters += (Parameter(name, self.given.get(name, other), kind),)
        return declared

    # --- what expressions see

    def scope(self, *, lookups: bool = True) -> Scope:
        system = [
            Known(None, "_labels", TEXT),
            Known(None, "_operation_seq", INTEGER, 1000),
            Known(None, "_deleted", BOOLEAN),
            Known(None, "_source_table", TEXT),
            Known(None, "_source_dataset_id", TEXT),
            Known(None, "_updated_at", TIMESTAMP),
            Known(None, "_created_at", TIMESTAMP),
            *(Known(None, name, TEXT if name == "_period" else DATE) for name in self.temporal),
        ]
        named = tuple(Named(name, formula.tree) for name, formula in self.selectors.items())
        more = self.lookups if lookups else []
        makers = tuple((each["name"], each["seq"]) for each in self.operations if "name" in each)
        return Scope(MAIN, (*self.columns.values(), *more, *system), named, makers)

    def selector(self, scope: Scope, *, none: int = 45) -> dict[str, Any]:
        """A selector among the keys of an operation, or none, or a blank one."""
        drawing = self.drawing
        if drawing.chance(none):
            return {"selector": "  "} if drawing.chance(10) else {}
        if scope.selectors and drawing.chance(25):
            return {"selector": Formula(drawing.pick(scope.selectors))}
        return {"selector": Formula(drawing.condition(scope, 2))}

    def add(self, kind: str, *, arguments: dict[str, Any] | None = None, **keys: Any) -> None:
        self.seq += self.drawing.pick([1, 1, 1, 7])
        named = {"name": f"Rows of {self.seq}"} if kind in ("aggregate", "append", "allocate") else {}
        operation = {"seq": self.seq, "type": kind, **named, **keys}
        if arguments is not None:
            operation["arguments"] = arguments
        self.operations.append(operation)

    # --- operations

    def update(self) -> None:
        drawing, scope = self.drawing, self.scope()
        joins: list[dict[str, Any]] = []
        for alias in ("r", "c")[: drawing.pick([0, 0, 1, 1, 2])]:
            join, columns = self.join(scope, alias)
            joins.append(join)
            scope = replace(scope, columns=(*scope.columns, *columns))
        visible = scope if joins and drawing.chance(25) else self.scope()
        keys = self.selector(visible)
        arguments: dict[str, Any] = {"joins": joins} if joins else {}
        self.add("update", arguments={**arguments, "assignments": self.assignments(scope, windows=True)}, **keys)

    def guarded(self) -> None:
        """An update of which some rows would be in error, were they not left out by its selector or deleted before."""
        drawing, scope = self.drawing, self.scope()
        if not scope.has("code"):
            self.delete()
            return
        code, text = Known(None, "code", TEXT), Literal("x", TEXT)
        safe: Node = Apply("<>", (drawing.column(code, MAIN), text), BOOLEAN)
        keys: dict[str, Any] = {}
        if drawing.chance(30):
            self.add("delete", selector=Formula(Apply("=", (drawing.column(code, MAIN), text), BOOLEAN)))
        else:
            keys["selector"] = Formula(
                safe if drawing.chance(50) else Apply("AND", (safe, drawing.condition(scope, 1)), BOOLEAN)
            )
        arguments: dict[str, Any] = {}
        if drawing.chance(40):
            dataset, columns = self.source("r")
            on = Apply("=", (drawing.parsed(scope), drawing.column(columns[0], MAIN)), BOOLEAN)
            arguments["joins"] = [{"alias": "r", **dataset, "on": Formula(on)}]
            scope = replace(scope, columns=(*scope.columns, *columns))
        if drawing.chance(25) and not arguments:
            new = self.new_column(NEW, [])
            grouping: dict[str, Any] = {
                "group_by": [Formula(drawing.column(drawing.pick(self.groupable()), MAIN))],
                "aggregations": [{"column": new, "expression": Formula(Total("SUM", drawing.parsed(scope), DECIMAL))}],
            }
            keyed = grouping["group_by"][0].tree
            known = self.columns.get(new)
            if keyed.name != new and (known is None or known.kind in NUMBERS):
                self.set(new, DECIMAL, 10 * ROWS)
                self.add("aggregate", arguments=grouping, **keys)
                return
        name = drawing.pick(["n1", "qty"])
        known = self.columns.get(name)
        if known is not None and known.kind not in NUMBERS:
            name = "qty"
        self.set(name, INTEGER, 10)
        value = Formula(drawing.parsed(scope))
        self.add("update", arguments={**arguments, "assignments": [{"column": name, "expression": value}]}, **keys)

    def source(self, alias: str) -> tuple[dict[str, Any], tuple[Known, ...]]:
        """A dataset to join, perhaps in an older version; the first of its columns is ``no``."""
        drawing = self.drawing
        dataset_id = drawing.pick(sorted({each["dataset"]["id"] for each in self.datasets}))
        document = self.latest(dataset_id)
        columns = tuple(replace(each, qualifier=alias) for each in _joined(document))
        return {"dataset_id": dataset_id, **self.pin(dataset_id), **self.timing(dataset_id)}, columns

    def timing(self, dataset_id: str) -> dict[str, Any]:
        """Perhaps other periods than the run's."""
        if not self.drawing.chance(25):
            return {}
        mode = self.latest(dataset_id)["main_table"].get("temporal_mode")
        spans = ["previous", "previous_year"] + ([] if mode == "bitemporal" else ["year_to_date", {"last": 2}])
        return {"period": self.drawing.pick(spans), "missing": "empty"}

    def pin(self, dataset_id: str) -> dict[str, Any]:
        versions = [each["version"] for each in self.datasets if each["dataset"]["id"] == dataset_id]
        return {"dataset_version": self.drawing.pick(versions)} if self.drawing.chance(20) else {}

    def join(self, scope: Scope, alias: str) -> tuple[dict[str, Any], tuple[Known, ...]]:
        """A join that has at most one match for most rows of most projects."""
        drawing = self.drawing
        source, columns = self.source(alias)
        inside = replace(scope, columns=(*scope.columns, *columns))
        number = columns[0]

        def by_number() -> Node:
            whole = replace(scope, columns=tuple(scope.of(INTEGER)))
            mine = drawing.leaf(whole, INTEGER) if drawing.chance(60) else drawing.numeric(scope, 1)
            pair = (mine[0], drawing.column(number, scope.table))
            return Apply("=", pair if drawing.chance(60) else pair[::-1], BOOLEAN)

        def by_columns() -> Node:
            pairs = [(mine, theirs) for theirs in columns[1:] for mine in scope.columns if _match(mine, theirs)]
            if not pairs:
                return by_number()
            alike = [pair for pair in pairs if pair[0].name.casefold() == pair[1].name.casefold()]
            if alike and drawing.chance(75):
                pairs = alike
            chosen = [
                Apply("=", (drawing.column(mine, scope.table), drawing.column(theirs, scope.table)), BOOLEAN)
                for mine, theirs in drawing.some(pairs, 1, 2)
            ]
            return chosen[0] if len(chosen) == 1 else Apply("AND", tuple(chosen), BOOLEAN)

        def by_range() -> Node:
            start = Apply("*", (drawing.column(number, scope.table), Literal(10, INTEGER)), INTEGER)
            value = drawing.leaf(scope, *NUMBERS)[0]
            low = Apply("<=", (start, value), BOOLEAN)
            high = Apply("<", (value, Apply("+", (start, Literal(10, INTEGER)), INTEGER)), BOOLEAN)
            return Apply("AND", (low, high), BOOLEAN)

        def by_plain_range() -> Node:
            """A range of which the engine knows that it cannot fail, so that it is searched by range."""
            value, end = drawing.leaf(scope, *NUMBERS)[0], drawing.column(number, scope.table)
            low, high = Apply("<=", (end, value), BOOLEAN), Apply("<=", (value, end), BOOLEAN)
            return Apply("AND", tuple(drawing.some([by_columns(), low, high], 2, 3)), BOOLEAN)

        def by_constant() -> Node:
            return Apply("=", (drawing.column(number, scope.table), Literal(drawing.number(0, 3), INTEGER)), BOOLEAN)

        def by_anything() -> Node:
            return Apply(
                "AND", (drawing.pick([by_constant, by_number, by_range])(), drawing.condition(inside, 1)), BOOLEAN
            )

        def by_columns_and_range() -> Node:
            return Apply("AND", (by_columns(), by_range()), BOOLEAN)

        ways = [
            by_number,
            by_columns,
            by_range,
            by_columns,
            by_constant,
            by_anything,
            by_columns_and_range,
            by_plain_range,
        ]
        return {"alias": alias, **source, "on": Formula(drawing.pick(ways)())}, columns

    def assignments(self, scope: Scope, *, windows: bool = False) -> list[dict[str, Any]]:
        drawing = self.drawing
        known = [each.name for each in self.scope().own() if each.name not in FIXED]
        targets = drawing.some([*dict.fromkeys([*known, *NEW]), "_labels"], 1, 3)
        made, kinds = [], []
        for name in targets:
            column = self.columns.get(name)
            if name == "_labels":
                labels = drawing.column(Known(None, "_labels", TEXT), MAIN)
                value: Node = Apply("CONCAT", (labels, drawing.value(scope, TEXT, 1)[0]), TEXT)
            else:
                kind = column.kind if column else drawing.pick([INTEGER, TEXT, BOOLEAN, DATE, TIMESTAMP])
                if kind == TIMESTAMP and column and drawing.chance(50):
                    kind = DATE
                if windows and kind in NUMBERS and drawing.chance(35):
                    value, bound = drawing.windowed(scope)
                else:
                    value, bound = drawing.value(scope, kind, 2)
                kinds.append((name, value.kind, bound))
            written = name.swapcase() if name in self.columns and drawing.chance(20) else name
            made.append({"column": written, "expression": Formula(value)})
        for name, kind, bound in kinds:
            self.set(name, kind, bound)
        return made

    def set(self, name: str, kind: str, bound: int) -> None:
        """What is known of a column that gets values of a kind."""
        before = self.columns.get(name)
        if before is None:
            self.columns[name] = Known(None, name, TEXT if kind == NULL else kind, bound)
        else:
            wider = DECIMAL if (before.kind, kind) == (INTEGER, DECIMAL) else before.kind
            self.columns[name] = replace(before, kind=wider, bound=max(before.bound, bound))

    def delete(self) -> None:
        self.add("delete", **self.selector(self.scope(), none=10))

    def groupable(self) -> list[Known]:
        temporal = [Known(None, name, TEXT if name == "_period" else DATE) for name in self.temporal]
        return [*self.columns.values(), *temporal, *self.lookups]

    def new_column(self, new: Sequence[str], keys: Sequence[Column]) -> str:
        taken = {key.name for key in keys if key.qualifier is None}
        known = [name for name in self.columns if name not in FIXED]
        return self.drawing.pick([name for name in (*new, *known) if name not in taken] or ["n9"])  # type: ignore[no-any-return]

    def aggregate(self) -> None:
        drawing, scope = self.drawing, self.scope()
        keys = [drawing.column(each, MAIN) for each in drawing.some(self.groupable(), 1, 2)]
        made: list[dict[str, Any]] = []
        kinds = []
        for _ in range(drawing.number(1, 3)):
            name = self.new_column(NEW, keys)
            if any(each["column"].casefold() == name.casefold() for each in made):
                continue
            known = self.columns.get(name)
            kind = known.kind if known else drawing.pick([INTEGER, TEXT, DATE, BOOLEAN, TIMESTAMP])
            if kind == TIMESTAMP and known and drawing.chance(50):
                kind = DATE
            total = drawing.total(scope, kind, keys)
            if total is None:
                continue
            written = name.swapcase() if known and drawing.chance(20) else name
            made.append({"column": written, "expression": Formula(total[0])})
            kinds.append((name, total[0].kind, total[1]))
        if not made:
            self.delete()
            return
        keyword = self.selector(scope)
        for name, kind, bound in kinds:
            self.set(name, kind, bound)
        arguments: dict[str, Any] = {"group_by": [Formula(key) for key in keys], "aggregations": made}
        self.add("aggregate", arguments=arguments | self.levels(keys, made), **keyword)

    def levels(self, keys: Sequence[Column], made: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Subtotals and a tree, or nothing."""
        drawing = self.drawing
        taken = {each.name.casefold() for each in keys} | {each["column"].casefold() for each in made}
        if not drawing.chance(40) or "level" in taken:
            return {}
        found: dict[str, Any] = {"level_column": "level"}
        self.set("level", TEXT, 0)
        levels = ["all", *(Formula(key) for key in keys[:-1])]
        if drawing.chance(70):
            found["rollup"] = drawing.some(levels, 1, len(levels))
        trees = [
            (key.name, given["dataset"]["id"], child["name"], parent["name"])
            for key in keys
            if key.qualifier is None and key.name in self.columns
            for given in self.datasets
            if given["dataset"] is self.latest(given["dataset"]["id"])
            for child in given["dataset"]["main_table"]["columns"]
            for parent in given["dataset"]["main_table"]["columns"]
            if child["type"] == parent["type"] == "string" and self.columns[key.name].kind == TEXT
            if "x.y" not in (key.name, child["name"].casefold(), parent["name"].casefold())
        ]
        if trees and drawing.chance(60):
            column, dataset, child, parent = drawing.pick(trees)
            found["hierarchy"] = {"column": column, "dataset_id": dataset, "child": child, "parent": parent}
        return found

    def append(self) -> None:
        drawing = self.drawing
        fitting = [
            dataset_id
            for dataset_id in sorted({each["dataset"]["id"] for each in self.datasets}, reverse=True)
            if all(self.stored(each.name) in self.columns for each in _declared(self.latest(dataset_id)))
        ]
        dataset_id = drawing.pick(fitting)
        document = self.latest(dataset_id)
        table = document["main_table"]
        labels = (Known(None, "_labels", TEXT), Known(None, "_updated_at", TIMESTAMP))
        columns = tuple(_joined(document))
        names = {each.name for each in (*columns, *labels)}
        # A selector is a tree over names in their stored spelling, so that both datasets must spell them alike.
        usable = tuple(
            Named(name, formula.tree)
            for name, formula in self.selectors.items()
            if all(each.name in names for each in walk(formula.tree) if isinstance(each, Column))
        )
        looked = [
            replace(each, qualifier=lookup["alias"])
            for lookup in document.get("lookups", ())
            for each in _joined(self.latest(lookup["target"]["id"]))
        ]
        scope = Scope(table["name"], (*columns, *labels, *looked), usable)
        source = {"dataset_id": dataset_id, **self.pin(dataset_id), **self.timing(dataset_id)}
        arguments: dict[str, Any] = {"source": source}
        if drawing.chance(30):
            join, joined = self.join(scope, "s")
            arguments["source"]["joins"] = [join]
            scope = replace(scope, columns=(*scope.columns, *joined))
        if chosen := self.selector(scope, none=40):
            arguments["source_selector"] = chosen["selector"]
        if drawing.chance(45) and (grouping := self.appended_groups(scope)):
            arguments["aggregation"] = grouping
        else:
            for each in _declared(document):
                self.set(self.stored(each.name), each.kind, each.bound)
        self.add("append", arguments=arguments)

    def allocate(self) -> None:
        """At most one, as it multiplies rows. Most drivers are above zero."""
        drawing, scope = self.drawing, self.scope()
        numbers = [each for each in self.columns.values() if each.kind in NUMBERS and each.name not in FIXED]
        if not numbers or any(each["type"] == "allocate" for each in self.operations):
            self.delete()
            return
        amount: Known = drawing.pick(numbers)
        join, columns = self.join(scope, "receivers")
        inside = replace(scope, columns=(*scope.columns, *columns))
        receivers = {key: value for key, value in join.items() if key.startswith("dataset")}
        if drawing.chance(30):
            own = Scope("", tuple(replace(each, qualifier=None) for each in columns))
            receivers["selector"] = Formula(_bare(drawing.condition(own, 1)))
        driver = drawing.numeric(replace(inside, columns=columns) if drawing.chance(60) else inside, 1)[0]
        if _is_null(driver):
            driver = Literal(1, INTEGER)
        elif drawing.chance(90):
            positive = Apply(">", (driver, Literal(0, INTEGER)), BOOLEAN)
            driver = Apply("IF", (positive, driver, Literal(0, INTEGER)), driver.kind)
        places = 2 if amount.kind == DECIMAL else drawing.pick([0, 2])
        arguments = {"amount": amount.name, "receivers": receivers, "driver": Formula(driver), "round": places}
        if drawing.chance(50):
            arguments["match"] = join["on"]
        if drawing.chance(60):
            made = [each for each in self.assignments(inside) if each["column"].casefold() != amount.name.casefold()]
            self.columns[amount.name] = amount
            arguments |= {"set": made} if made else {}
        arguments |= drawing.pick([{}, {"pool": "delete"}, {"pool": "keep"}, {"pool": "offset"}])
        arguments |= drawing.pick([{}, {"no_receivers": "keep"}, {"no_receivers": "keep"}, {"no_receivers": "stop"}])
        self.set(amount.name, DECIMAL if places else amount.kind, amount.bound)
        self.add("allocate", arguments=arguments, **self.selector(scope))

    def takes(self, known: Known) -> bool:
        """Whether the working dataset has a column that values of a joined one can be appended to."""
        column = self.columns.get(self.stored(known.name))
        return column is not None and _match(column, known)

    def appended_groups(self, scope: Scope) -> dict[str, Any] | None:
        drawing = self.drawing
        # A joined key becomes the column of its name, which must be there and able to hold it.
        fitting = [
            each
            for each in scope.columns
            if each.name not in ("_labels", "_updated_at") and (each.qualifier is None or self.takes(each))
        ]
        drawn = drawing.some(fitting, 1, 2)
        if len({each.name.casefold() for each in drawn}) < len(drawn):
            drawn = drawn[:1]
        keys = [drawing.column(each, scope.table) for each in drawn]
        taken = {self.stored(key.name) for key in keys}
        free = [each for each in self.columns.values() if each.name not in taken and each.name not in FIXED]
        made = []
        for target in drawing.some(free, 1, 2):
            total = drawing.total(scope, target.kind, keys)
            if total is not None:
                written = target.name.swapcase() if drawing.chance(20) else target.name
                made.append({"column": written, "expression": Formula(total[0])})
                self.set(target.name, total[0].kind, total[1])
        if not made:
            return None
        for key in keys:
            if not key.name.startswith("_"):
                bounds = [each.bound for each in scope.columns if each.name == key.name]
                self.set(self.stored(key.name), key.kind, max(bounds))
        return {"group_by": [Formula(key) for key in keys], "aggregations": made}

    def output(self) -> None:
        drawing = self.drawing
        deleted = drawing.chance(30)
        # Rows that arrive deleted have no lookups to speak of.
        scope = self.scope(lookups=not deleted)
        arguments: dict[str, Any] = {"destination": {"datasource_id": "out", "table": f"rows_{self.seq}"}}
        if deleted:
            arguments["include_deleted"] = True
        if drawing.chance(40):
            known = [each for each in self.scope(lookups=False).columns if each.name not in ("_created_at",)]
            columns = [*known, Known(None, "_row_id", TEXT)]
            arguments["columns"] = [Formula(drawing.column(each, MAIN)) for each in drawing.some(columns, 1, 6)]
        self.add("output", arguments=arguments, **self.selector(scope))


def _declared(document: dict[str, Any]) -> list[Known]:
    return [
        Known(None, each["name"], each["type"].partition("(")[0], 100 if each["type"] != "string" else 0)
        for each in document["main_table"]["columns"]
    ]


def _joined(document: dict[str, Any]) -> list[Known]:
    """What is visible of a dataset behind an alias."""
    mode = document["main_table"].get("temporal_mode")
    temporal = [Known(None, name, TEXT if name == "_period" else DATE) for name in TEMPORAL.get(mode, ())]
    return [*_declared(document), *temporal]


def _match(mine: Known, theirs: Known) -> bool:
    return mine.kind == theirs.kind or (mine.kind in NUMBERS and theirs.kind in NUMBERS)


def _bare(node: Node) -> Node:
    """The same expression with its columns as bare names."""
    if isinstance(node, Column):
        plain = node.name if node.name.replace("_", "a").isalnum() else f"`{node.name}`"
        return replace(node, written=plain)
    if isinstance(node, Apply):
        return replace(node, operands=tuple(_bare(each) for each in node.operands))
    return node


def draw_case(seed: int) -> Case:
    """The project of a number, with its datasets."""
    drawing = Drawing(random.Random(seed).randint)
    datasets = _Datasets(drawing).draw()
    projects = _Projects(drawing, datasets)
    project = projects.draw()
    as_of = drawing.pick([None, None, date(2026, 1, 2)])
    return Case(project, datasets, replace(RUN, as_of=as_of), given=projects.given)


seeds = st.integers(0, 2**64 - 1)
"""Numbers of projects. Whole projects drawn choice by choice are too much alike; to make one smaller, see ``reduce``."""


def reduce(case: Case, holds: Callable[[Case], bool]) -> Case:
    """A smaller project for which something still holds: fewer operations, parts of them, and rows."""
    smaller = True
    while smaller:
        smaller = False
        for each in _smaller(case):
            if holds(each):
                case, smaller = each, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    operations = case.project["operations"]

    def having(operations: list[dict[str, Any]]) -> Case:
        return replace(case, project={**case.project, "operations": operations})

    for at in range(len(operations)):
        yield having([*operations[:at], *operations[at + 1 :]])
    for at, operation in enumerate(operations):
        for changed in _simpler(operation):
            yield having([*operations[:at], changed, *operations[at + 1 :]])
    for name in case.project["selectors"]:
        left = {each: text for each, text in case.project["selectors"].items() if each != name}
        yield replace(case, project={**case.project, "selectors": left})
    for at, given in enumerate(case.datasets):
        yield replace(case, datasets=[*case.datasets[:at], *case.datasets[at + 1 :]])
        for row in range(len(given["rows"])):
            fewer = {**given, "rows": [*given["rows"][:row], *given["rows"][row + 1 :]]}
            yield replace(case, datasets=[*case.datasets[:at], fewer, *case.datasets[at + 1 :]])
        for name in sorted({name for row in given["rows"] for name in row if name.startswith("_")}):
            rows = [{key: value for key, value in row.items() if key != name} for row in given["rows"]]
            yield replace(case, datasets=[*case.datasets[:at], {**given, "rows": rows}, *case.datasets[at + 1 :]])


def _simpler(operation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "selector" in operation:
        yield {key: value for key, value in operation.items() if key != "selector"}
    arguments = operation.get("arguments", {})
    for key in ("source_selector", "columns", "match", "set", "rollup", "hierarchy"):
        if key in arguments:
            yield {**operation, "arguments": {name: value for name, value in arguments.items() if name != key}}
    for key in ("joins", "assignments", "group_by", "aggregations"):
        listed = arguments.get(key, [])
        for at in range(len(listed) if key == "joins" or len(listed) > 1 else 0):
            yield {**operation, "arguments": {**arguments, key: [*listed[:at], *listed[at + 1 :]]}}
