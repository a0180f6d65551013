"""A small interpreter of the nodes that part an amount; it does arithmetic as Spark's types allow it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Context, Decimal

from dobonomodo.formula import ColumnRef, Columns, Typed, flat_name
from dobonomodo.formula.typed import Cast, Literal, Operation, Order, Over
from dobonomodo.formula.types import INTEGER, TEXT, DecimalType
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.plan.relation import Derive, Rel, Scan, Window
from dobonomodo.plan.shares import part_amounts

EXACT = Context(prec=120)


Row = dict[str, Decimal | None]


POOL = ColumnRef("pool", None, TEXT)


KEY = ColumnRef("key", None, INTEGER)


def compute(node: Typed, row: Mapping[str, Decimal | None]) -> Decimal | bool | None:
    """An expression; a number that its type cannot hold, or would round, is an error of the test."""
    match node:
        case Literal():
            return Decimal(node.value) if isinstance(node.value, int) else node.value  # type: ignore[return-value]
        case ColumnRef():
            return row[flat_name(node)]
        case Cast():
            return fit(compute(node.operand, row), node.type)
        case Operation("CASE", (test, then, otherwise)):
            return compute(then, row) if compute(test, row) else compute(otherwise, row)
        case Operation("IS NULL" | "IS NOT NULL" as operator, (operand,)):
            return (compute(operand, row) is None) == (operator == "IS NULL")
        case Operation("NEGATE", (operand,)):
            value = compute(operand, row)
            assert isinstance(value, Decimal)
            return EXACT.minus(value)
        case Operation(operator, (left, right)):
            return apply_operator(operator, compute(left, row), compute(right, row), node)
        case _ if getattr(getattr(node, "function", None), "name", "") == "ABS":
            value = compute(node.operands[0], row)
            assert isinstance(value, Decimal)
            return EXACT.abs(value)
        case _:
            raise AssertionError(node)


def apply_operator(operator: str, left: object, right: object, node: Operation) -> Decimal | bool | None:
    if left is None or right is None:
        return None
    assert isinstance(left, Decimal)
    assert isinstance(right, Decimal)
    compared = {"<": left < right, "<=": left <= right, ">": left > right}
    if operator in compared:
        return compared[operator]
    exact = {
        "+": EXACT.add(left, right),
        "-": EXACT.subtract(left, right),
        "*": EXACT.multiply(left, right),
        "%": EXACT.remainder(left, right) if right else Decimal(0),
        "/": EXACT.divide(left, right) if right else Decimal(0),
        "DIV": EXACT.divide_int(left, right) if right else Decimal(0),
    }[operator]
    found = fit(exact, node.type)
    assert isinstance(found, Decimal)
    return found


def fit(value: Decimal | bool | None, kind: object) -> Decimal | None:
    assert value is None or isinstance(value, Decimal)
    if kind == INTEGER:
        assert value is None or -(2**63) <= value < 2**63, f"{value} is no long integer"
        kind = DecimalType(19, 0)
    assert isinstance(kind, DecimalType)
    if value is not None:
        assert EXACT.abs(value) < Decimal(10) ** kind.whole, f"{value} does not fit {kind}"
        assert EXACT.quantize(value, Decimal(1).scaleb(-kind.scale)) == value, f"{value} is rounded in {kind}"
    return value


def run(node: Rel, rows: list[Row]) -> None:
    """Compute the nodes above the scan, in place. All rows belong to one pool."""
    if isinstance(node, Scan):
        return
    assert isinstance(node, Derive | Window)
    run(node.rows, rows)
    if isinstance(node, Derive):
        for row in rows:
            row.update({name: compute(value, row) for name, value in node.values.items()})  # type: ignore[misc]
        return
    for name, over in node.values.items():
        compute_window(f"{node.alias}.{name}", over, rows)


def compute_window(name: str, over: Over, rows: list[Row]) -> None:
    if over.call.function.name == "SUM":
        (summed,) = over.call.operands
        assert isinstance(summed, ColumnRef)
        total = Decimal(sum(int(row[flat_name(summed)] or 0) for row in rows))
        for row in rows:
            row[name] = total
        return
    assert over.call.function.name == "ROW_NUMBER"
    ordered = sorted(
        rows,
        key=lambda row: [
            int(row[flat_name(each.key)] or 0) * (-1 if each.descending else 1)  # type: ignore[arg-type]
            for each in over.order
        ],
    )
    for number, row in enumerate(ordered, start=1):
        row[name] = Decimal(number)


def part(amount: Decimal, drivers: list[int], *, places: int, digits: int, wide: int = 38) -> list[Decimal]:
    weight = ColumnRef("weight", None, DecimalType(digits, 0))
    total = ColumnRef("total", None, DecimalType(38, 0))
    given_amount = ColumnRef("amount", None, DecimalType(wide, places))
    columns = Columns({each.name: each.type for each in (POOL, KEY, weight, total, given_amount)})
    node, value = part_amounts(
        Scan(DatasetUse("input", "pairs", 1, "pairs", None, columns)),
        pool=[POOL],
        amount=given_amount,
        weight=weight,
        total=total,
        places=places,
        ties=[Order(KEY)],
    )
    rows: list[Row] = [
        {"amount": amount, "weight": Decimal(each), "total": Decimal(sum(drivers)), "key": Decimal(at)}
        for at, each in enumerate(drivers)
    ]
    run(node, rows)
    found = [compute(value, row) for row in rows]
    return [each for each in found if isinstance(each, Decimal)]
