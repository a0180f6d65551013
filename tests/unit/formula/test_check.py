"""Names, kinds, selectors and aggregates of formulas: every problem with its code, fields and place."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import pytest

from dobonomodo.formula import Scope, check_formula
from dobonomodo.formula.parse import MAX_DEPTH
from dobonomodo.formula.typed import walk
from dobonomodo.formula.types import BOOLEAN, DATE, DECIMAL, INTEGER, TIMESTAMP, DecimalType, Type
from dobonomodo.problems import Passage, Problem
from dobonomodo.problems.formula import (
    AggregateNotAllowed,
    AggregateReason,
    ExpressionSyntax,
    InvalidAggregate,
    InvalidDate,
    NullComparison,
    SelectorCycle,
    SelectorUndefined,
    SyntaxReason,
    TypeMismatch,
    UnknownColumn,
    UnknownFunction,
    WrongArity,
)
from dobonomodo.problems.operation import UnknownOperation
from tests.unit.formula.orders import (
    GROUPS,
    ROWS,
    SELECTORS,
    WINDOWS,
    check,
    codes_in,
    columns_from,
    problems_in,
    type_in,
)

P = TypeVar("P", bound=Problem)


def only(kind: type[P], text: str, scope: Scope = ROWS) -> P:
    """The one problem of a formula."""
    (problem,) = problems_in(text, scope)
    assert isinstance(problem, kind)
    return problem


def marked(text: str, scope: Scope = ROWS) -> list[str]:
    """What the carets stand under."""
    spans = [problem.span for problem in problems_in(text, scope)]
    return [span.source.text[span.start : span.end] for span in spans if span]


# --- columns


@pytest.mark.parametrize(
    "text", ["amount", "Amount", "orders.amount", "ORDERS.AMOUNT", "`amount`", "fx.rate", "FX.Rate"]
)
def test_known_columns(text: str) -> None:
    """C-09, C-10: bare and qualified are equal, case does not matter."""
    assert codes_in(text) == []


def test_a_parameter_is_found_under_its_qualifier() -> None:
    scope = replace(ROWS, parameters=columns_from(uplift="decimal"))
    assert only(UnknownColumn, "Uplift", scope).also_under == ("param",)
    assert only(UnknownColumn, "fx.uplift", scope).also_under == ()


def test_unknown_column() -> None:
    problem = only(UnknownColumn, "1 + amout")
    assert (problem.name, problem.qualifier) == ("amout", None)
    assert "amount" in problem.known
    assert problem.expression == "1 + amout"
    assert marked("1 + amout") == ["amout"]


def test_joined_column_needs_its_alias() -> None:
    """C-36."""
    assert only(UnknownColumn, "rate").also_under == ("fx",)


@pytest.mark.parametrize("text", ["suppliers.amount", "selectors.active"])
def test_unknown_qualifier(text: str) -> None:
    """C-09: an unknown qualifier is never stripped."""
    problem = only(UnknownColumn, text)
    assert problem.known == ()
    assert problem.known_qualifiers == ("orders", "fx", "customers")


def test_known_qualifier_without_the_column() -> None:
    problem = only(UnknownColumn, "fx.amount")
    assert problem.qualifier == "fx"
    assert problem.known == ("rate", "currency", "valid_from")


@pytest.mark.parametrize("text", ["net", "NET", "orders.net"])
def test_column_of_the_same_update(text: str) -> None:
    """C-25."""
    assert only(UnknownColumn, text).made_by_this_update


def test_column_of_the_same_update_is_none_of_a_join() -> None:
    assert not only(UnknownColumn, "fx.net").made_by_this_update


# --- kinds


@pytest.mark.parametrize(
    "text",
    [
        'amount > "100"',
        "amount > status",
        "status = 1",
        'status + "x"',
        "status + 1",
        'order_date = "2026-01-01" & ""',
        "paid = 1",
        "paid + paid",
        "-status",
        "-order_date",
        "paid < in_scope",
        "order_date + 1.5",
        "order_date * 2",
        "order_date + order_date",
        "1 - order_date",
        "shipped_at + 1",
        "shipped_at - shipped_at",
        "status & amount",
        "status & paid",
        "amount AND paid",
        "NOT amount",
        "IF(amount, 1, 2)",
        'IF(paid, 1, "x")',
        'CASE WHEN paid THEN 1 ELSE "x" END',
        "CASE WHEN amount THEN 1 END",
        'amount IN (1, "x")',
        'amount BETWEEN 1 AND "x"',
        "amount LIKE status",
        "status LIKE 1",
        "paid BETWEEN FALSE AND TRUE",
        'COALESCE(order_date, "2026-01-01")',
        "LEFT(amount, 1)",
        'LEFT(status, "1")',
        "LEFT(status, 1.0)",
        "CONCAT(amount, status)",
        'YEAR("2026-01-01")',
        "MIN(paid, in_scope)",
        "ROUND(amount, quantity)",
        "ROUND(amount, NULL)",
        "ROUND(amount, 39)",
        "MID(status, 0, 1)",
        'TEXT(amount, "x")',
        'TEXT(order_date, "yyyy-mm-dd")',
        'SWITCH(status, 1, "x")',
    ],
)
def test_kinds_that_do_not_go_together(text: str) -> None:
    assert set(codes_in(text)) == {"TYPE_MISMATCH"}


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ('amount > "100"', '"100"'),
        ('"100" < amount', "amount"),
        ("amount + status", "status"),
        ("status IN (region, 1)", "1"),
        ("LEFT(amount, 1)", "amount"),
        ("NOT (amount + 1)", "(amount + 1)"),
        ("amount AND paid", "amount"),
    ],
)
def test_place_of_a_mismatch(text: str, mark: str) -> None:
    assert marked(text) == [mark]


@pytest.mark.parametrize(
    "text",
    [
        "amount > 100",
        "quantity = amount",
        "amount = NULL + 1",
        "order_date < shipped_at",
        'order_date = "2026-01-31"',
        '"2026-01-31" = order_date',
        'order_date IN ("2026-01-31", NULL)',
        'shipped_at BETWEEN "2026-01-31" AND "2026-01-31T08:30:00Z"',
        "IF(paid, NULL, order_date)",
        "COALESCE(NULL, amount)",
        "order_date + 1",
        "1 + order_date",
        "order_date - 1",
        "order_date - NULL",
        "status & 1 & order_date & NULL",
        "NOT NULL",
        "paid = TRUE",
    ],
)
def test_kinds_that_go_together(text: str) -> None:
    assert codes_in(text) == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1", "integer"),
        ("1.0", "decimal(2,1)"),
        ("9223372036854775807", "integer"),
        ("9223372036854775808", "decimal(19,0)"),
        ("-9223372036854775808", "integer"),
        ("-9223372036854775807", "integer"),
        ("-1000000000000000000", "integer"),
        ("-9223372036854775809", "decimal(19,0)"),
        ("1e18", "integer"),
        ("1e19", "decimal(20,0)"),
        ('"1"', "string"),
        ("TRUE", "boolean"),
        ("NULL", "null"),
        ("order_date - order_date", "integer"),
        ("order_date - 1", "date"),
        ("order_date - NULL", "date"),
        ("NULL + NULL", "integer"),
        ("-NULL", "integer"),
        ("amount > 1", "boolean"),
        ('"a" & 1', "string"),
        ("IF(paid, NULL, NULL)", "null"),
        ("IF(paid, order_date, NOW())", "timestamp"),
        ("CASE WHEN paid THEN 1 END", "integer"),
        ("COALESCE(NULL, 1, 2.5)", "decimal(2,1)"),
        ("MAX(quantity, 1)", "integer"),
        ("ZEROIFNULL(NULL)", "integer"),
    ],
)
def test_types(text: str, kind: str) -> None:
    assert type_in(text) == kind


@pytest.mark.parametrize(
    "text",
    [
        'DATE("2026-02-30")',
        'DATE("2026")',
        'DATE("2026-01-31T08:00:00Z")',
        'DATE(" 2026-01-31")',
        'DATE("2026-01-31\n")',
        'order_date = "soon"',
        'order_date IN ("2026-01-01", "2026-02-30")',
        'shipped_at < "2026-01-31T25:00"',
    ],
)
def test_invalid_dates(text: str) -> None:
    assert isinstance(only(InvalidDate, text), InvalidDate)


def test_invalid_date_says_the_text() -> None:
    assert only(InvalidDate, 'DATE("2026-02-30")').text == "2026-02-30"


@pytest.mark.parametrize(
    ("text", "operator", "operand"),
    [
        ("status = NULL", "=", "status"),
        ("status == NULL", "=", "status"),
        ("NULL <> amount + 1", "<>", "amount + 1"),
        ("amount != NULL", "<>", "amount"),
    ],
)
def test_comparison_with_null(text: str, operator: str, operand: str) -> None:
    """W-03, a warning: the formula can be used."""
    problem = only(NullComparison, text)
    assert (problem.severity, problem.operator, problem.operand) == ("warning", operator, operand)
    assert check(text).tree is not None


@pytest.mark.parametrize(
    "text", ["status IS NULL", "ISNULL(status)", "COALESCE(status, NULL) = region", "status IN (region, NULL)"]
)
def test_null_elsewhere_is_no_comparison(text: str) -> None:
    assert codes_in(text) == []


# --- functions


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("LEFT(status)", 1),
        ("NOW(1)", 1),
        ("COALESCE()", 0),
        ("IF(paid, 1)", 2),
        ("IFS(paid, 1, paid)", 3),
        ("SWITCH(1, 2)", 2),
    ],
)
def test_arity(text: str, given: int) -> None:
    problem = only(WrongArity, text)
    assert problem.given == given
    assert problem.usage
    assert marked(text) == [text]


@pytest.mark.parametrize("name", ["MIN", "MAX"])
def test_one_argument_of_min_and_max(name: str) -> None:
    """C-16: the hint names the aggregate."""
    problem = only(WrongArity, f"{name}(amount)")
    assert f"{name}_AGG(amount)" in (problem.instead or "")
    assert codes_in(f"{name}(amount)", GROUPS) == ["WRONG_ARITY"]


def test_unknown_function() -> None:
    problem = only(UnknownFunction, "1 + ROUNDD(amount)")
    assert problem.name == "ROUNDD"
    assert "ROUND" in problem.known
    assert marked("1 + ROUNDD(amount)") == ["ROUNDD"]
    assert only(UnknownFunction, "VLOOKUP(status)").instead


@pytest.mark.parametrize(
    "text", ["(FOO(amount))", "((FOO(amount)))", "( FOO(amount) ) + 1", "(SUM(amount)) + 1", "((COUNT(*)))"]
)
def test_place_of_a_function_in_parentheses(text: str) -> None:
    (mark,) = marked(text)
    assert mark in ("FOO", "SUM", "COUNT")


def test_arguments_of_an_unknown_function_are_checked() -> None:
    assert codes_in("FOO(amout, BAR(staus))") == [
        "UNKNOWN_FUNCTION",
        "UNKNOWN_COLUMN",
        "UNKNOWN_FUNCTION",
        "UNKNOWN_COLUMN",
    ]


def test_aggregates_are_no_suggestion_for_rows() -> None:
    assert "SUM" not in only(UnknownFunction, "SUMM(amount)").known
    assert "SUM" in only(UnknownFunction, "SUMM(amount)", GROUPS).known


# --- selectors


@pytest.mark.parametrize(
    "text", ["{{active}}", "{{ active }}", "NOT {{active}}", "{{large}} AND paid", "IF({{active}}, 1, 2) = 1"]
)
def test_known_selectors(text: str) -> None:
    assert (codes_in(text), type_in(text)) == ([], "boolean")


def test_undefined_selector() -> None:
    problem = only(SelectorUndefined, "{{Active}} AND paid")
    assert problem.name == "Active"
    assert "active" in problem.known
    assert marked("{{Active}} AND paid") == ["{{Active}}"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{{loop}}", ("loop", "loop")),
        ("{{ping}}", ("ping", "pong", "ping")),
        ("{{pong}} OR paid", ("pong", "ping", "pong")),
    ],
)
def test_circles(text: str, names: tuple[str, ...]) -> None:
    assert only(SelectorCycle, text).names == names


def test_the_same_selector_twice_is_no_circle() -> None:
    assert codes_in("{{active}} OR NOT {{active}} AND {{large}}") == []


def test_a_fault_inside_a_selector_is_reported_there_once() -> None:
    problem = only(TypeMismatch, "{{a_number}} AND NOT {{a_number}}")
    assert problem.span is not None
    assert problem.span.source.name == "selectors/a_number"
    assert problem.expression == "amount"


def test_a_selector_is_one_parenthesised_condition() -> None:
    """C-19: what it says does not leak into what stands around it."""
    scope = replace(ROWS, selectors={"s": Passage.alone("paid OR in_scope")})
    assert check("NOT {{s}} AND and_flag", scope).tree == check("NOT (paid OR in_scope) AND and_flag", scope).tree


def test_selectors_together_are_not_too_deep() -> None:
    """A formula and its selectors are one expression for Spark."""
    deep = "NOT " * (MAX_DEPTH - 2) + "paid"
    scope = replace(ROWS, selectors={"deep": Passage.alone(deep)})
    assert codes_in("{{deep}}", scope) == []
    problem = only(ExpressionSyntax, "NOT " * (MAX_DEPTH - 2) + "{{deep}}", scope)
    assert problem.reason is SyntaxReason.TOO_DEEP


def test_selectors_together_are_not_too_many() -> None:
    doubling = {f"s{n}": Passage.alone(f"{{{{s{n - 1}}}}} OR {{{{s{n - 1}}}}}") for n in range(1, 40)}
    scope = replace(ROWS, selectors={**doubling, "s0": Passage.alone("paid")})
    assert only(ExpressionSyntax, "{{s39}}", scope).reason is SyntaxReason.TOO_MANY_PARTS


# --- aggregates


@pytest.mark.parametrize(
    "text",
    [
        "SUM(amount)",
        "COUNT(*)",
        "COUNT_ALL()",
        "SUM(amount * quantity) / SUM(quantity)",
        "SUM(amount) / COUNT(*)",
        "region & COUNT(*)",
        "orders.Region & COUNT(*)",
        "IF(SUM(amount) > 0, region, NULL)",
        "SUM(IF({{active}}, amount, 0))",
        "SUM(fx.rate)",
        "SUM(1)",
    ],
)
def test_aggregations(text: str) -> None:
    """C-14, C-15."""
    assert codes_in(text, GROUPS) == []


@pytest.mark.parametrize(
    "text", ["SUM(amount)", "COUNT(*)", "COUNT_ALL()", "MAX_AGG(amount)", "STRING_AGG(status, '')"]
)
def test_aggregates_in_rows(text: str) -> None:
    """R-112."""
    problem = only(AggregateNotAllowed, text)
    assert problem.function == text.partition("(")[0]
    assert marked(text) == [problem.function]


@pytest.mark.parametrize("text", ["SUM(amount)", "COUNT(*)", "COUNT(status)", "AVG(amount)", "MAX_AGG(amount)"])
def test_the_window_that_is_suggested_can_be_written(text: str) -> None:
    suggested = only(AggregateNotAllowed, text, WINDOWS).over
    assert suggested is not None
    assert suggested.startswith(f"{text} OVER (")
    assert codes_in(suggested, WINDOWS) == []


@pytest.mark.parametrize("text", ["amount", "region", "1", "amount + 1", "UPPER(region)", "{{active}}", "NOW()"])
def test_no_aggregate(text: str) -> None:
    assert only(InvalidAggregate, text, GROUPS).reason is AggregateReason.NONE
    assert marked(text, GROUPS) == [text]


@pytest.mark.parametrize("text", ["SUM(SUM(amount))", "SUM(amount + AVG(amount))", "COUNT(COUNT(*))"])
def test_nested(text: str) -> None:
    assert only(InvalidAggregate, text, GROUPS).reason is AggregateReason.NESTED


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("SUM(amount) + quantity", "quantity"),
        ("quantity * SUM(amount)", "quantity"),
        ("SUM(amount) + orders.quantity", "orders.quantity"),
        ("SUM(amount) * fx.rate", "fx.rate"),
        ("IF({{active}}, SUM(amount), 0)", "status"),
    ],
)
def test_ungrouped(text: str, mark: str) -> None:
    problem = only(InvalidAggregate, text, GROUPS)
    assert problem.reason is AggregateReason.UNGROUPED
    assert problem.group_by == ("region",)
    assert marked(text, GROUPS) == [mark]


def test_an_ungrouped_joined_column_keeps_its_alias() -> None:
    assert only(InvalidAggregate, "SUM(amount) * fx.rate", GROUPS).name == "fx.rate"


def test_every_ungrouped_column_is_reported() -> None:
    assert marked("SUM(amount) + quantity + date_key", GROUPS) == ["quantity", "date_key"]
    assert codes_in("quantity + SUM(amount) + MEDIAN(amount)", GROUPS) == ["INVALID_AGGREGATE", "INVALID_AGGREGATE"]


def test_median() -> None:
    """C-16."""
    problem = only(InvalidAggregate, "MEDIAN(amount)", GROUPS)
    assert problem.reason is AggregateReason.UNSUPPORTED
    assert {"SUM", "COUNT", "AVG", "MIN_AGG", "MAX_AGG"} <= set(problem.supported)
    assert codes_in("MEDIAN(amount)") == ["UNKNOWN_FUNCTION"]


@pytest.mark.parametrize("text", ["SUM(*)", "AVG(*)", "COUNT()", "COUNT_ALL(*)", "SUM()", "SUM(amount, quantity)"])
def test_stars_and_nothing(text: str) -> None:
    """C-14."""
    assert codes_in(text, GROUPS) == ["WRONG_ARITY"]


@pytest.mark.parametrize("text", ["SUM(status)", "AVG(order_date)", "SUM(paid)", "MIN_AGG(paid)", "COUNT_IF(amount)"])
def test_kinds_of_aggregates(text: str) -> None:
    """C-46, R-136."""
    assert codes_in(text, GROUPS) == ["TYPE_MISMATCH"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SUM(quantity)", "decimal(29,0)"),
        ("SUM(amount)", "decimal(25,2)"),
        ("SUM(total)", "decimal(38,10)"),
        ("COUNT(amount)", "integer"),
        ("AVG(quantity)", "decimal(29,10)"),
        ("AVG(amount)", "decimal(23,10)"),
        ("AVG(total)", "decimal(38,14)"),
        ("MIN_AGG(order_date)", "date"),
        ("MAX_AGG(status)", "string"),
        ("MAX_AGG(amount)", "decimal(15,2)"),
    ],
)
def test_types_of_aggregates(text: str, kind: str) -> None:
    assert type_in(text, GROUPS) == kind


# --- the whole


@pytest.mark.parametrize(
    ("text", "wanted", "codes"),
    [
        ("amount > 1", BOOLEAN, []),
        ("NULL", BOOLEAN, []),
        ("amount", BOOLEAN, ["TYPE_MISMATCH"]),
        ("quantity", DECIMAL, []),
        ("amount", INTEGER, ["TYPE_MISMATCH"]),
        ("order_date", TIMESTAMP, []),
        ("shipped_at", DATE, ["TYPE_MISMATCH"]),
        ('"2026-01-31"', DATE, ["TYPE_MISMATCH"]),
        ("amout", BOOLEAN, ["UNKNOWN_COLUMN"]),
    ],
)
def test_wanted(text: str, wanted: Type, codes: list[str]) -> None:
    checked = check(text, wanted=wanted)
    assert [problem.code for problem in checked.problems] == codes
    assert (checked.tree is None) == bool(codes)
    if checked.tree is not None:
        assert checked.type == wanted


def test_all_problems_in_the_order_of_their_places() -> None:
    text = 'IF({{activ}}, amout, 0) + FOO(staus) > "1" & SUM(amount)'
    codes = ["SELECTOR_UNDEFINED", "UNKNOWN_COLUMN", "UNKNOWN_FUNCTION", "UNKNOWN_COLUMN", "AGGREGATE_NOT_ALLOWED"]
    found = [problem.code for problem in problems_in(text) if problem.code != "TYPE_MISMATCH"]
    assert found == codes
    places = [problem.sort_key for problem in problems_in(text)]
    assert places == sorted(places)


def test_a_problem_is_reported_once() -> None:
    assert codes_in("ROUND(amout + 1, 2) * 2 > 5 AND NOT amout2 = 1") == ["UNKNOWN_COLUMN", "UNKNOWN_COLUMN"]


def test_an_unknown_name_does_not_hide_a_wrong_kind_beside_it() -> None:
    assert codes_in('amout * "2"') == ["UNKNOWN_COLUMN", "TYPE_MISMATCH"]


def test_no_tree_with_errors_and_a_tree_with_warnings() -> None:
    assert check("amout").tree is None
    assert check("status = NULL").tree is not None


def test_the_checked_tree_has_no_holes() -> None:
    checked = check('IF(paid, amount * 1.19, NULL) > 0 AND status IN ("a", NULL) AND order_date = "2026-01-01"')
    assert checked.tree is not None
    assert all(node.type.name != "unknown" for node in walk(checked.tree) if not isinstance(node.type, DecimalType))


def test_size_of_the_sql_is_limited() -> None:
    """Some functions say their argument several times, so that nesting them multiplies."""
    text = "amount"
    for _ in range(12):
        text = f"MOD(quantity, {text})"
    assert only(ExpressionSyntax, text).reason is SyntaxReason.TOO_MANY_PARTS


def test_depth_of_the_sql_is_limited() -> None:
    """Some functions become several calls inside each other."""
    few, many = (f"{'MOD(' * count}amount{', 7.5)' * count}" for count in (35, 45))
    assert codes_in(few) == []
    assert only(ExpressionSyntax, many).reason is SyntaxReason.TOO_DEEP


def test_a_broken_selector_is_not_a_broken_formula() -> None:
    passage = Passage.alone("{{unfinished}}")
    (problem,) = check_formula(passage, ROWS).problems
    assert problem.span is not None
    assert problem.span.source == SELECTORS["unfinished"].source


# --- what is wrong inside is reported once


@pytest.mark.parametrize("text", ["-status", "-status + 1", "quantity > -status"])
def test_only_numbers_are_negated(text: str) -> None:
    assert only(TypeMismatch, text).found == "text"


@pytest.mark.parametrize("text", ['MADE_BY("sum")', 'NOT MADE_BY("sum")', 'MADE_BY("sum") AND paid'])
def test_only_one_operation_of_the_project_made_a_row(text: str) -> None:
    problem = only(UnknownOperation, text, replace(ROWS, makers={"split": (3,)}))
    assert (problem.name, problem.known) == ("sum", ("split",))
