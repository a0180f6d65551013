"""What one row adds to a total: a formula over the row, where the total is the sum of that over all rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from dobonomodo.formula import Typed, columns_of
from dobonomodo.formula.evaluate import Row, compute
from dobonomodo.formula.meaning import EXACT, Total, Value
from dobonomodo.formula.print import print_checked
from dobonomodo.formula.typed import Apply, Cast, Literal, Operation, rewrite, walk
from dobonomodo.formula.types import BOOLEAN, as_decimal, is_number
from dobonomodo.plan.facts import RunFacts


def amount_of(total: Typed, keys: Collection[Typed], facts: RunFacts) -> Typed | None:
    """The amount that one row adds to a total, with all its digits; NULL adds nothing.

    None if the total is not linear in sums and counts, or if amounts of rows have to be rounded. ``keys`` have the same value
    in all rows. A total that is rounded, or replaced if it is NULL, may still differ from the sum: see `adds_up`.
    """
    node = total
    while isinstance(node, Cast) or _keeps_number(node):
        node = node.operands[0]
    return _Finder(frozenset(keys), facts).find(node)


def arguments_of(total: Typed) -> dict[str, Typed]:
    """What a total reads of each row, by its text."""
    given = (each for node in walk(total) if _is_total(node) for each in node.operands)
    return {print_checked(each): each for each in given if not isinstance(each, Literal)}


def adds_up(total: Value, amounts: Iterable[Value]) -> bool:
    """Whether a total is exactly the sum of the amounts of its rows."""
    numbers = [Decimal(each) for each in amounts if isinstance(each, int | Decimal)]
    if not isinstance(total, int | Decimal):
        return total is None and not numbers
    found = Decimal(0)
    for each in numbers:
        found = EXACT.add(found, each)
    return found == total


def simplify_amount(amount: Typed, row: Row, facts: RunFacts) -> Typed:
    """The same amount for one row, without zeros in place of numbers that the row has."""

    def change(node: Typed) -> Typed | None:
        inner = _without_zero(node)
        if inner is None or compute(inner, row, facts) is None:
            return None
        return simplify_amount(inner, row, facts)

    return rewrite(amount, change)


class _Finder:
    """Finds what a row adds to each part of a formula. A result has the type of the part that it is of."""

    def __init__(self, keys: frozenset[Typed], facts: RunFacts) -> None:
        self._keys, self._facts = keys, facts

    def find(self, node: Typed) -> Typed | None:
        if not is_number(node.type):
            return None
        match node:
            case Apply():
                return self._find_call(node)
            case Cast():
                return self._convert(node, node.operand)
            case Operation("NEGATE", (value,)):
                return self._over(node, self.find(value))
            case Operation("+" | "-", (left, right)):
                one, other = self.find(left), self.find(right)
                if one is None or other is None or _scale(node) < max(_scale(left), _scale(right)):
                    return None
                return replace(node, operands=(_or_zero(one), _or_zero(other)))
            case Operation("*", (left, right)):
                if _scale(node) < _scale(left) + _scale(right):
                    return None
                return self._over(node, self.find(left), right) or self._over(node, self.find(right), left, at=1)
            case Operation("/", (left, right)) if self._divides(node, left, right):
                return self._over(node, self.find(left), right)
            case _:
                return None

    def _find_call(self, node: Apply) -> Typed | None:
        meaning = node.function.python
        if isinstance(meaning, Total):
            return meaning.of_row(node) if meaning.of_row is not None else None
        return self._convert(node, node.operands[0]) if _keeps_number(node) else None

    def _convert(self, node: Typed, operand: Typed) -> Typed | None:
        """The amount of an operand in the type of a node."""
        found = self.find(operand)
        if found is None or _scale(node) < _scale(operand):
            return None
        return found if found.type == node.type else Cast(found, node.type)

    def _over(
        self, node: Operation, found: Typed | None, constant: Typed | None = None, *, at: int = 0
    ) -> Typed | None:
        """An operation over the amount of one operand and a constant."""
        if found is None or (constant is not None and not self._is_constant(constant)):
            return None
        others = () if constant is None else (constant,)
        return replace(node, operands=(found, *others) if at == 0 else (*others, found))

    def _is_constant(self, node: Typed) -> bool:
        return not _has_totals(node) and set(columns_of(node)) <= self._keys

    def _divides(self, node: Typed, dividend: Typed, divisor: Typed) -> bool:
        """Whether every quotient fits the digits of the result."""
        if _has_totals(divisor) or columns_of(divisor):
            return False
        number = compute(divisor, {}, self._facts)
        if not isinstance(number, int | Decimal) or not number:
            return False
        return (Fraction(10) ** (_scale(node) - _scale(dividend)) / Fraction(number)).denominator == 1


def _keeps_number(node: Typed) -> bool:
    """Whether a call returns its first argument, a total, unless that is rounded or NULL."""
    is_kept = isinstance(node, Apply) and node.function.keeps_number and is_number(node.type)
    return is_kept and not any(_has_totals(each) for each in node.operands[1:])


def _is_total(node: Typed) -> bool:
    return isinstance(node, Apply) and isinstance(node.function.python, Total)


def _has_totals(node: Typed) -> bool:
    return any(_is_total(each) for each in walk(node))


def _scale(node: Typed) -> int:
    return as_decimal(node.type).scale


def _or_zero(amount: Typed) -> Typed:
    """In a sum, a number that a row does not have is zero."""
    test = Operation("IS NULL", (amount,), BOOLEAN)
    return Operation("CASE", (test, Literal(0, amount.type), amount), amount.type)


def _without_zero(node: Typed) -> Typed | None:
    """The number that `_or_zero` was given; None for other formulas."""
    number = node.operands[-1] if isinstance(node, Operation) and node.operator == "CASE" else None
    return number if number is not None and _or_zero(number) == node else None
