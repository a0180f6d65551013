"""The catalogue: whole, consistent, and with examples that check. That they are true is shown on Spark."""

from __future__ import annotations

import re

import pytest

from dobonomodo.formula import FUNCTION_BY_NAME, FUNCTIONS, Scope
from dobonomodo.formula.functions import CHAPTERS, Function
from dobonomodo.formula.functions.foreign import INSTEAD, INSTEAD_OVER, UNSUPPORTED_AGGREGATES
from dobonomodo.formula.functions.signature import integer, maybe, more, sig, text
from dobonomodo.formula.parse import KEYWORDS
from dobonomodo.formula.types import BOOLEAN, TEXT
from tests.unit.formula.orders import GROUPS, ROWS, WINDOWS, codes_in, sql_in, type_in

CORE = (
    "IF AND OR NOT ISNULL IS_NULL COALESCE ABS ROUND FLOOR CEIL MOD MIN MAX CONCAT UPPER LOWER TRIM LEFT "
    "RIGHT LEN CONTAINS REPLACE DATE TODAY NOW YEAR MONTH DAY DATEDIFF DATEADD SUM COUNT COUNT_ALL AVG "
    "MIN_AGG MAX_AGG "
)
EXTENSIONS = (
    "IFS SWITCH IFNULL NVL NULLIF ZEROIFNULL EOMONTH EDATE SIGN QUARTER WEEKDAY ISOWEEKNUM RUN_PERIOD PERIOD_START PERIOD_END "
    "ROUNDUP ROUNDDOWN TRUNC BROUND TEXT VALUE TO_DECIMAL TO_INTEGER TO_TEXT TRY_VALUE TRY_TO_DECIMAL "
    "TRY_TO_INTEGER TRY_DATE MID FIND SUBSTITUTE STARTSWITH ENDSWITH LPAD RPAD PROPER COUNT_IF "
    "COUNT_DISTINCT FIRST_BY LAST_BY STRING_AGG "
)

WINDOW_FUNCTIONS = "RANK DENSE_RANK ROW_NUMBER LAG LEAD FIRST LAST"
"""finance.md section 2, with those aggregates that go over a window."""

every_function = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)


def scope_of(function: Function) -> Scope:
    """Where a function can be called."""
    return GROUPS if function.is_aggregate else WINDOWS if function.needs_window else ROWS


def test_the_contract_is_kept() -> None:
    """functions.md section 5, and ranks 2 to 9 of section 6; ranks 1, 11 and 13 are operators and words."""
    assert set((CORE + EXTENSIONS + WINDOW_FUNCTIONS).split()) <= set(FUNCTION_BY_NAME)


def test_which_functions_go_over_a_window() -> None:
    over = {function.name for function in FUNCTIONS if function.window is not None}
    assert over == {"SUM", "AVG", "MIN_AGG", "MAX_AGG", "COUNT", "COUNT_ALL", *WINDOW_FUNCTIONS.split()}
    assert {function.name for function in FUNCTIONS if function.needs_window} == set(WINDOW_FUNCTIONS.split())


def test_names_are_unique() -> None:
    names = [name for function in FUNCTIONS for name in (function.name, *function.aliases)]
    assert len(set(names)) == len(names) == len(FUNCTION_BY_NAME)
    assert all(re.fullmatch(r"[A-Z][A-Z_]*", name) for name in names)


def test_no_name_is_a_keyword_unless_it_is_an_operator_too() -> None:
    assert set(FUNCTION_BY_NAME) & KEYWORDS == {"AND", "OR", "NOT"}


def test_advice_is_only_given_for_what_there_is_not() -> None:
    assert not set(INSTEAD) & set(FUNCTION_BY_NAME)
    assert not UNSUPPORTED_AGGREGATES & set(FUNCTION_BY_NAME)


def test_advice_names_functions_that_exist() -> None:
    for name, advice in (*INSTEAD.items(), *INSTEAD_OVER.items()):
        assert set(re.findall(r"([A-Z_]+)\(", advice)) <= set(FUNCTION_BY_NAME), name


def test_advice_for_windows_is_about_functions_that_do_not_go_over_one() -> None:
    assert {FUNCTION_BY_NAME[name].window for name in INSTEAD_OVER} == {None}


def test_every_function_is_in_one_chapter() -> None:
    assert [function for _, chapter in CHAPTERS for function in chapter] == list(FUNCTIONS)
    assert {function.is_aggregate for function in dict(CHAPTERS)["Aggregates"]} == {True}
    assert sum(function.is_aggregate for function in FUNCTIONS) == len(dict(CHAPTERS)["Aggregates"])


WITHOUT_NULL = {
    "TODAY",
    "NOW",
    "RUN_PERIOD",
    "PERIOD_START",
    "PERIOD_END",
    "COUNT_ALL",
    "RANK",
    "DENSE_RANK",
    "ROW_NUMBER",
}
"""They take no argument that could be NULL."""


@every_function
def test_a_function_is_documented_with_examples(function: Function) -> None:
    assert function.summary.endswith(".")
    assert "\n" not in function.summary
    assert all(usage.startswith(f"{function.name}(") for usage in function.usages())
    assert len(set(function.examples)) == len(function.examples) >= 2
    for name in (function.name, *function.aliases):
        if name not in ("IS_NULL", "NVL"):
            assert any(re.search(rf"\b{name}\(", example) for example in function.examples), name
    # The aggregates' examples run over an amount that is NULL in one row.
    shown = "NULL" in " ".join(function.examples) or (function.is_aggregate and "amount" in " ".join(function.examples))
    assert shown or function.name in WITHOUT_NULL
    for example in function.examples:
        assert codes_in(example, scope_of(function)) == [], example
        assert type_in(example, scope_of(function)) == str(BOOLEAN), example


@every_function
def test_null_is_accepted_everywhere(function: Function) -> None:
    """A bare NULL is a value of any kind, save where something must be written out."""
    scope = scope_of(function)
    behind = " OVER (ORDER BY amount)" if function.needs_window else ""
    for signature, _ in function.ways:
        for count in range(5):
            placed = signature.place(count)
            if placed is not None and not any(parameter.constant for parameter in placed):
                formula = f"{function.name}({', '.join(['NULL'] * count)}){behind}"
                assert codes_in(formula, scope) == [], formula
                assert sql_in(formula, scope)


# --- signatures


def test_optional_arguments() -> None:
    signature = sig(text, maybe(integer), to=TEXT)
    assert [signature.place(count) is not None for count in range(4)] == [False, True, True, False]
    assert signature.usage("F") == "F(text, [integer])"


def test_repeated_arguments() -> None:
    signature = sig(text, more(integer), to=TEXT)
    assert [signature.place(count) is not None for count in range(4)] == [False, True, True, True]
    assert signature.place(3) == (text, integer, integer)


def test_repeated_groups_with_a_last_one() -> None:
    signature = sig(text, more(integer, text, at_least=1), maybe(integer), to=TEXT)
    assert [signature.place(count) is not None for count in range(7)] == [False, False, False, True, True, True, True]
    assert signature.place(4) == (text, integer, text, maybe(integer))


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("IF", {3}),
        ("COALESCE", {1, 2, 3, 4, 5, 6}),
        ("MIN", {2, 3, 4, 5, 6}),
        ("ROUND", {1, 2}),
        ("IFS", {2, 4, 6}),
        ("SWITCH", {3, 4, 5, 6}),
        ("DATE", {1, 3}),
        ("NOW", {0}),
        ("MID", {3}),
        ("LPAD", {2, 3}),
        ("CONCAT", {1, 2, 3, 4, 5, 6}),
        ("COUNT", {1}),
    ],
)
def test_numbers_of_arguments(name: str, counts: set[int]) -> None:
    ways = FUNCTION_BY_NAME[name].ways
    assert {count for count in range(7) if any(signature.place(count) is not None for signature, _ in ways)} == counts


@pytest.mark.parametrize(
    ("alias", "name"),
    [("IS_NULL", "ISNULL"), ("NVL", "IFNULL"), ("TRUNC", "ROUNDDOWN"), ("CEILING", "CEIL"), ("SUBSTITUTE", "REPLACE")],
)
def test_aliases(alias: str, name: str) -> None:
    assert FUNCTION_BY_NAME[alias] is FUNCTION_BY_NAME[name]


@pytest.mark.parametrize(
    "pattern", ["0", "0.0", "0.00", "000", "#,##0", "#,##0.00", "0%", "0.0%", "0000000000.0000000000"]
)
def test_number_patterns(pattern: str) -> None:
    assert codes_in(f'TEXT(amount, "{pattern}")') == []


@pytest.mark.parametrize(
    "pattern", ["", "#", "0,0", "#,##00", "0.", ".0", "0.00 EUR", "yyyy", "0.00000000000", "0" * 40, "%", "-0", "0.0#"]
)
def test_no_number_patterns(pattern: str) -> None:
    assert codes_in(f'TEXT(amount, "{pattern}")') == ["TYPE_MISMATCH"]


@pytest.mark.parametrize("pattern", ["yyyy", "yyyy-MM-dd", "yyyyMM", "dd.MM.yy", "MM/yyyy", "yyyy'MM"])
def test_date_patterns(pattern: str) -> None:
    assert codes_in(f'TEXT(order_date, "{pattern}")') == []


@pytest.mark.parametrize(
    "pattern", ["", "-", "YYYY", "yyyy-mm-dd", "HH:mm", "yyyy-MM-dd HH:mm", "y", "MMM", "EEEE", "Q"]
)
def test_no_date_patterns(pattern: str) -> None:
    assert codes_in(f'TEXT(order_date, "{pattern}")') == ["TYPE_MISMATCH"]


@pytest.mark.parametrize("pattern", ["yyyy-MM-dd HH:mm:ss", "HH:mm", "yyyy-MM", "ss"])
def test_time_patterns(pattern: str) -> None:
    assert codes_in(f'TEXT(shipped_at, "{pattern}")') == []


@pytest.mark.parametrize("pattern", ["yyyy-mm-dd", "mm", "hh:mm", "HH:MM:mm"])
def test_no_time_patterns(pattern: str) -> None:
    assert codes_in(f'TEXT(shipped_at, "{pattern}")') == ["TYPE_MISMATCH"]


@pytest.mark.parametrize(("width", "is_checked"), [(2**31 - 1, False), (2**31, True)])
def test_a_width_that_no_text_has_is_left_to_spark(width: int, is_checked: bool) -> None:
    assert ("CAST" in sql_in(f"LPAD(status, {width})")) == is_checked
