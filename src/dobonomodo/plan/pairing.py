"""The columns by which rows of an output are paired with those of another run, by the operations that made the rows."""

from __future__ import annotations

from collections.abc import Iterator

from dobonomodo.formula.typed import ColumnRef, Literal, Operation, Typed
from dobonomodo.plan.relation import Keep
from dobonomodo.plan.step import Step
from dobonomodo.plan.system import OPERATION_SEQ


def find_pairing(step: Step) -> dict[int, tuple[str, ...]]:
    """The key of the rows that an output can write, by the operation that made them, 0 for loaded rows.

    A level that is not written is left out: the comparison then checks whether the key is still unique.
    """
    rows, write = step.before, step.write
    chosen = find_makers(write.rows.condition) if isinstance(write.rows, Keep) else None
    found = {}
    for seq, key in rows.keys.items():
        if chosen is None or seq in chosen:
            own = rows.parts.get(seq, key)
            level = rows.levels.get(seq)
            found[seq] = tuple(name for name in own if name != level or name in write.columns)
    return found


def find_makers(condition: Typed) -> frozenset[int] | None:
    """The operations whose rows can satisfy a condition; None if it does not say."""
    found: frozenset[int] | None = None
    for part in _conjuncts(condition):
        if isinstance(part, Operation) and part.operator in ("=", "IN"):
            column, *values = part.operands
            is_maker = isinstance(column, ColumnRef) and (column.name, column.qualifier) == (OPERATION_SEQ, None)
            numbers = [each.value for each in values if isinstance(each, Literal) and isinstance(each.value, int)]
            if is_maker and len(numbers) == len(values):
                found = frozenset(numbers) if found is None else found & frozenset(numbers)
    return found


def _conjuncts(condition: Typed) -> Iterator[Typed]:
    if isinstance(condition, Operation) and condition.operator == "AND":
        for each in condition.operands:
            yield from _conjuncts(each)
    else:
        yield condition
