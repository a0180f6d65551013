"""Windows: a row among the rows of its partition. These functions have a meaning only before OVER, with an order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from dobonomodo.formula.functions.signature import (
    Argument,
    Function,
    RunValues,
    Window,
    anything,
    constant,
    fn,
    integer,
    maybe,
    same_as_first,
    sig,
)
from dobonomodo.formula.meaning import Neighbour, Place, Value
from dobonomodo.formula.typed import Value as Written
from dobonomodo.formula.types import INTEGER

_BIGINT = "CAST({call} OVER ({window}) AS BIGINT)"
"""Spark counts rows of a window in 32 bits."""
_RANKED = Window(_BIGINT, needs_order=True)
_NUMBERED = Window(_BIGINT, needs_order=True, breaks_ties=True)
_SHIFTED = Window(needs_order=True, breaks_ties=True)
_WHOLE = Window(frame="ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", needs_order=True, breaks_ties=True)

MOST_ROWS = 1_000_000
"""The largest offset of LAG and LEAD."""


def _distance(value: Written) -> str | None:
    fine = isinstance(value, int) and 1 <= value <= MOST_ROWS
    return None if fine else f"a whole number between 1 and {MOST_ROWS:,}"


_rows = constant(integer, _distance)


def _shift(function: str) -> Callable[[Sequence[Argument], RunValues], str]:
    def render(arguments: Sequence[Argument], run: RunValues) -> str:
        distance = arguments[1].value if len(arguments) > 1 else 1
        return f"{function}({arguments[0].sql}, {distance})"

    return render


# --- in plain Python


def _rank(place: Place) -> int:
    return place.keys.index(place.keys[place.at]) + 1


def _dense_rank(place: Place) -> int:
    before = place.keys[: place.at + 1]
    return 1 + sum(one != other for one, other in pairwise(before))


def _away(direction: int) -> Callable[[Place], Value]:
    def shifted(place: Place) -> Value:
        distance = place.arguments[place.at][1] if len(place.arguments[place.at]) > 1 else 1
        at = place.at + direction * int(distance)  # type: ignore[arg-type]
        return place.arguments[at][0] if 0 <= at < len(place.arguments) else None

    return shifted


WINDOWS: tuple[Function, ...] = (
    fn("RANK", sig(to=INTEGER), "rank()",
       "The place of a row in the order, from 1; rows that are equal in all keys share it, and the places after them are left out.",
       "RANK() OVER (ORDER BY quantity DESC) = 4 - quantity", "RANK() OVER (ORDER BY region) = IF(region = \"N\", 1, 3)",
       "RANK() OVER (PARTITION BY region ORDER BY region) = 1",
       window=_RANKED, python=Neighbour(_rank)),
    fn("DENSE_RANK", sig(to=INTEGER), "dense_rank()",
       "The place of a row in the order, from 1; rows that are equal in all keys share it, and no place is left out.",
       "DENSE_RANK() OVER (ORDER BY region) = IF(region = \"N\", 1, 2)", "DENSE_RANK() OVER (ORDER BY quantity) = quantity",
       window=_RANKED, python=Neighbour(_dense_rank)),
    fn("ROW_NUMBER", sig(to=INTEGER), "row_number()",
       "The number of a row in the order, from 1. Rows that are equal in all keys are numbered in the order of their source.",
       "ROW_NUMBER() OVER (ORDER BY quantity) = quantity", "ROW_NUMBER() OVER (PARTITION BY region ORDER BY quantity) <= quantity",
       window=_NUMBERED, python=Neighbour(lambda place: place.at + 1)),
    fn("LAG", sig(anything, maybe(_rows), to=same_as_first), _shift("lag"),
       "The value in the row before, or so many rows before; NULL if there is no such row.",
       "COALESCE(LAG(quantity) OVER (ORDER BY quantity), 0) = quantity - 1",
       "ISNULL(LAG(quantity, 2) OVER (ORDER BY quantity)) = (quantity < 3)",
       window=_SHIFTED, python=Neighbour(_away(-1))),
    fn("LEAD", sig(anything, maybe(_rows), to=same_as_first), _shift("lead"),
       "The value in the row after, or so many rows after; NULL if there is no such row.",
       "COALESCE(LEAD(quantity) OVER (ORDER BY quantity), 4) = quantity + 1",
       "ISNULL(LEAD(quantity, 2) OVER (ORDER BY quantity)) = (quantity > 1)",
       window=_SHIFTED, python=Neighbour(_away(1))),
    fn("FIRST", sig(anything, to=same_as_first), "first_value({0})",
       "The value in the first row of the partition; NULL if it is NULL there.",
       "FIRST(region) OVER (ORDER BY quantity) = \"N\"", "FIRST(quantity) OVER (ORDER BY quantity DESC) = 3",
       "ISNULL(FIRST(amount) OVER (ORDER BY amount))",
       window=_WHOLE, python=Neighbour(lambda place: place.arguments[0][0])),
    fn("LAST", sig(anything, to=same_as_first), "last_value({0})",
       "The value in the last row of the partition, whatever the row itself; NULL if it is NULL there.",
       "LAST(region) OVER (ORDER BY quantity) = \"S\"", "LAST(quantity) OVER (PARTITION BY region ORDER BY quantity) >= quantity",
       "ISNULL(LAST(amount) OVER (ORDER BY quantity))",
       window=_WHOLE, python=Neighbour(lambda place: place.arguments[-1][0])),
)  # fmt: skip
