"""The function catalogue: the one table that the checker, `dobo functions`, the documentation and completion read."""

from __future__ import annotations

from dobonomodo.formula.functions.aggregates import AGGREGATES
from dobonomodo.formula.functions.dates import DATES
from dobonomodo.formula.functions.logic import LOGIC
from dobonomodo.formula.functions.numbers import NUMBERS
from dobonomodo.formula.functions.signature import Function
from dobonomodo.formula.functions.texts import TEXTS
from dobonomodo.formula.functions.windows import WINDOWS

CHAPTERS: tuple[tuple[str, tuple[Function, ...]], ...] = (
    ("Logic and NULL", LOGIC),
    ("Numbers", NUMBERS),
    ("Text", TEXTS),
    ("Dates and the run", DATES),
    ("Aggregates", AGGREGATES),
    ("Windows", WINDOWS),
)

FUNCTIONS: tuple[Function, ...] = tuple(function for _, chapter in CHAPTERS for function in chapter)

FUNCTION_BY_NAME: dict[str, Function] = {
    name: function for function in FUNCTIONS for name in (function.name, *function.aliases)
}
