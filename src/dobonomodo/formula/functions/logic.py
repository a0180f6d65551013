"""Conditions and NULL."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from dobonomodo.formula.compare import compare, have_common_type
from dobonomodo.formula.functions.signature import (
    Argument,
    Function,
    RunValues,
    S,
    T,
    anything,
    condition,
    fn,
    maybe,
    more,
    number,
    same_as_first,
    sig,
)
from dobonomodo.formula.meaning import Scalar, Steps, all_true, any_true, choose, each, fit, is_null, lazy
from dobonomodo.formula.sql import literal
from dobonomodo.formula.typed import Apply, Typed
from dobonomodo.formula.types import BOOLEAN


def _join_all(word: str) -> Callable[[Sequence[Argument], RunValues], str]:
    def render(arguments: Sequence[Argument], run: RunValues) -> str:
        return f"({word.join(argument.sql for argument in arguments)})"

    return render


def _ifs(arguments: Sequence[Argument], run: RunValues) -> str:
    whens = (f"WHEN {test.sql} THEN {value.sql}" for test, value in zip(arguments[::2], arguments[1::2], strict=True))
    return f"CASE {' '.join(whens)} END"


def _switch(arguments: Sequence[Argument], run: RunValues) -> str:
    subject, *rest = arguments
    pairs, default = (rest[:-1], rest[-1]) if len(rest) % 2 else (rest, None)
    otherwise = f" ELSE {default.sql}" if default else ""
    if have_common_type((subject, *pairs[::2])):
        whens = (f"WHEN {value.sql} THEN {result.sql}" for value, result in zip(pairs[::2], pairs[1::2], strict=True))
        return f"CASE {subject.sql} {' '.join(whens)}{otherwise} END"
    whens = (
        f"WHEN {compare('=', subject, value)} THEN {result.sql}"
        for value, result in zip(pairs[::2], pairs[1::2], strict=True)
    )
    return f"CASE {' '.join(whens)}{otherwise} END"


def _nullif(arguments: Sequence[Argument], run: RunValues) -> str:
    value, other = arguments
    if have_common_type(arguments):
        return f"nullif({value.sql}, {other.sql})"
    return f"CASE WHEN {compare('=', value, other)} THEN NULL ELSE {value.sql} END"


def _zero_if_null(arguments: Sequence[Argument], run: RunValues) -> str:
    return f"coalesce({arguments[0].sql}, {literal(0, arguments[0].type)})"


# --- in plain Python


def _switch_to(operands: Sequence[Typed]) -> Steps:
    subject, *branches = operands
    return choose(branches, subject=subject)


def _first_present(operands: Sequence[Typed]) -> Steps:
    for operand in operands:
        value = yield operand
        if value is not None:
            return value
    return None


def _unless_equal(operands: Sequence[Typed]) -> Steps:
    value = yield operands[0]
    if value is None:
        return None
    other = yield operands[1]
    return None if value == other else value


def _zero_if_absent(node: Apply, run: RunValues) -> Steps:
    value = yield node.operands[0]
    return fit(0, node.type) if value is None else value


LOGIC: tuple[Function, ...] = (
    fn("IF", sig(condition, T, T, to="T"), "CASE WHEN {0} THEN {1} ELSE {2} END",
       "The second argument if the condition is true, the third if it is false or NULL.",
       'IF(1 < 2, "yes", "no") = "yes"', 'IF(1 > 2, "yes", "no") = "no"', "IF(NULL, 1, 2) = 2", "IF(TRUE, 1, 1 / 0) = 1",
       "IF(FALSE, 1, 2.5) = 2.5",
       python=lazy(choose), never_fails=True),
    fn("IFS", sig(more(condition, T, at_least=1), to="T"), _ifs,
       "The value that follows the first true condition; NULL if no condition is true.",
       "IFS(1 > 2, 10, 2 > 1, 20) = 20", "ISNULL(IFS(1 > 2, 10))", "IFS(NULL, 1, TRUE, 2) = 2",
       python=lazy(choose), never_fails=True),
    fn("SWITCH", sig(S, more(S, T, at_least=1), maybe(T), to="T"), _switch,
       "The result that follows the first listed value equal to the first argument, else the default, else NULL.",
       'SWITCH("b", "a", 1, "b", 2) = 2', 'SWITCH("z", "a", 1, 9) = 9', 'ISNULL(SWITCH("z", "a", 1))',
       "SWITCH(NULL, 1, 10, 99) = 99",
       python=lazy(_switch_to), never_fails=True),
    fn("AND", sig(condition, more(condition), to=BOOLEAN), _join_all(" AND "),
       "True if all conditions are true; false if one is false.",
       "AND(TRUE, 1 < 2)", "NOT AND(TRUE, FALSE)", "NOT AND(FALSE, NULL)", "ISNULL(AND(TRUE, NULL))",
       python=lazy(all_true), never_fails=True),
    fn("OR", sig(condition, more(condition), to=BOOLEAN), _join_all(" OR "),
       "True if at least one condition is true.",
       "OR(FALSE, 1 < 2)", "NOT OR(FALSE, FALSE)", "OR(TRUE, NULL)", "ISNULL(OR(FALSE, NULL))",
       python=lazy(any_true), never_fails=True),
    fn("NOT", sig(condition, to=BOOLEAN), "(NOT {0})",
       "True if the condition is false; NULL if it is NULL.",
       "NOT(FALSE)", "TRUE = NOT(FALSE)", "ISNULL(NOT(NULL))",
       python=each(operator.not_), never_fails=True),
    fn("ISNULL", sig(anything, to=BOOLEAN), "({0} IS NULL)",
       "Whether a value is NULL; the result is never NULL.",
       "ISNULL(NULL)", "NOT ISNULL(0)", 'NOT ISNULL("")', aliases=("IS_NULL",),
       python=lazy(is_null), never_fails=True),
    fn("COALESCE", sig(T, more(T), to="T"), "coalesce({all})",
       "The first argument that is not NULL.",
       "COALESCE(NULL, 2, 3) = 2", 'COALESCE(NULL, "x") = "x"', "ISNULL(COALESCE(NULL, NULL))", "COALESCE(NULL, 1, 2.5) = 1",
       python=lazy(_first_present), never_fails=True, keeps_number=True),
    fn("IFNULL", sig(T, T, to="T"), "coalesce({0}, {1})",
       "The first argument, or the second if the first is NULL.",
       "IFNULL(NULL, 7) = 7", "IFNULL(3, 7) = 3", aliases=("NVL",),
       python=lazy(_first_present), never_fails=True, keeps_number=True),
    fn("NULLIF", sig(S, S, to="S"), _nullif,
       "NULL if both arguments are equal, else the first.",
       "ISNULL(NULLIF(5, 5))", "NULLIF(5, 0) = 5", "ISNULL(NULLIF(NULL, 5))", "NULLIF(5, NULL) = 5",
       python=lazy(_unless_equal), never_fails=True),
    fn("ZEROIFNULL", sig(number, to=same_as_first), _zero_if_null,
       "The number, or zero if it is NULL.",
       "ZEROIFNULL(NULL) = 0", "ZEROIFNULL(4.5) = 4.5",
       python=Scalar(_zero_if_absent), never_fails=True, keeps_number=True),
)  # fmt: skip
