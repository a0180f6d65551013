"""The conditions of resolver rules: formulas over the table and the period, evaluated without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from dobonomodo.formula import Checked, Columns, Scope, Typed, check_formula
from dobonomodo.formula.evaluate import evaluate
from dobonomodo.formula.functions.signature import NO_RUN
from dobonomodo.formula.typed import Apply, walk
from dobonomodo.formula.types import BOOLEAN, DATE, TEXT
from dobonomodo.problems import Passage
from dobonomodo.problems.formula import UnknownFunction

SCOPE = Scope(
    joined={
        "table": Columns({"name": TEXT}),
        "period": Columns({"identifier": TEXT, "level": TEXT, "start_date": DATE, "end_date": DATE}),
    }
)
"""What a rule can test."""


def check_rule(passage: Passage) -> Checked:
    """A condition that can be decided from the names alone: comparisons, AND, OR, NOT, IN, BETWEEN, LIKE."""
    checked = check_formula(passage, SCOPE, wanted=BOOLEAN, what="`when`")
    if checked.tree is None:
        return checked
    calls = [node.function.name for node in walk(checked.tree) if isinstance(node, Apply)]
    if not calls:
        return checked
    problem = UnknownFunction(
        name=calls[0],
        instead="a rule has no functions; compare with =, IN, BETWEEN or LIKE",
        span=passage.span(0, len(passage.value)),
        expression=passage.value,
    )
    return Checked(None, (problem,))


@lru_cache(maxsize=500)
def read_condition(text: str) -> Typed | None:
    """A condition that is decided for one period after another; None for one that has problems, which are reported elsewhere."""
    return check_rule(Passage.alone(text)).tree


def decide(node: Typed, facts: Mapping[str, object]) -> bool | None:
    """The value of a checked condition; None where it is unknown or cannot be computed."""
    value = evaluate(node, facts, NO_RUN).value
    return value if isinstance(value, bool) else None
