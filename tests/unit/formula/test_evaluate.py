"""Formulas in plain Python: every example of the catalogue is true, and every part of a formula has its value."""

from __future__ import annotations

import calendar
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from dobonomodo.formula import FUNCTIONS
from dobonomodo.formula.evaluate import Result, Row, evaluate, evaluate_group, evaluate_over, is_like
from dobonomodo.formula.functions.letters import to_lower, to_title, to_upper
from dobonomodo.formula.meaning import Scalar
from dobonomodo.formula.moment import Day, Moment, day_of
from dobonomodo.problems import RunFailed
from tests.unit.formula.orders import GROUPS, WINDOWS, check
from tests.world import JANUARY

SCALARS = [each for function in FUNCTIONS if isinstance(function.python, Scalar) for each in function.examples]
NEIGHBOURS = [example for function in FUNCTIONS if function.needs_window for example in function.examples]
AGGREGATES = [example for function in FUNCTIONS if function.is_aggregate for example in function.examples]
GROUP: list[Row] = [
    {"amount": Decimal("10.50"), "quantity": 1, "region": "N"},
    {"amount": Decimal(20), "quantity": 2, "region": "N"},
    {"amount": None, "quantity": 3, "region": "S"},
]
ORDER: dict[str, Any] = {
    "amount": Decimal("903"),
    "quantity": 3,
    "status": "active",
    "region": None,
    "order_date": date(2026, 1, 31),
    "shipped_at": datetime(2026, 1, 31, 9, tzinfo=timezone(timedelta(hours=1))),
    "paid": True,
    "notes": "2026-02-30",
    "fx.rate": Decimal("0.5"),
    "_labels": "",
}


FAULTS = [
    ("quantity * 9223372036854775807", "ARITHMETIC_OVERFLOW"),
    ("-quantity - 9223372036854775807", "ARITHMETIC_OVERFLOW"),
    ("ABS(-quantity - 9223372036854775805)", "ARITHMETIC_OVERFLOW"),
    ("DATEADD(order_date, 10000000)", "ARITHMETIC_OVERFLOW"),
    ("order_date + 1000000 * 10 * quantity", "ARITHMETIC_OVERFLOW"),
    ("EDATE(order_date, 1000000)", "ARITHMETIC_OVERFLOW"),
    ('VALUE("1e40")', "ARITHMETIC_OVERFLOW"),
    ("LPAD(status, 3000000000)", "ARITHMETIC_OVERFLOW"),
    ("TO_INTEGER(amount * 1000000000000000000)", "ARITHMETIC_OVERFLOW"),
    ('VALUE("1e2147483647")', "ARITHMETIC_OVERFLOW"),
    ('VALUE("1e2147483648")', "INVALID_NUMBER"),
    ('VALUE("1e-2147483648")', "INVALID_NUMBER"),
    ('VALUE("0.1e-2147483647")', "INVALID_NUMBER"),
    ("DATE(notes)", "INVALID_DATE"),
    ("DATE(quantity, 13, 1)", "INVALID_DATE"),
    ("VALUE(status)", "INVALID_NUMBER"),
    ("TO_INTEGER(notes)", "INVALID_NUMBER"),
    ('TO_INTEGER("9223372036854775808")', "INVALID_NUMBER"),
]


def result_of(text: str, **values: object) -> Result:
    tree = check(text).tree
    assert tree is not None, check(text).problems
    return evaluate(tree, ORDER | values, JANUARY)


def value_of(text: str, **values: object) -> object:
    return result_of(text, **values).get()


def total_of(text: str) -> Result:
    tree = check(text, GROUPS).tree
    assert tree is not None, check(text, GROUPS).problems
    return evaluate_group(tree, GROUP, JANUARY)


@pytest.mark.parametrize("example", SCALARS)
def test_examples_are_true(example: str) -> None:
    assert value_of(example) is True


@pytest.mark.parametrize("example", AGGREGATES)
def test_examples_of_aggregates_are_true(example: str) -> None:
    assert total_of(example).get() is True


def over_of(text: str, at: int, rows: list[Row] = GROUP) -> Result:
    tree = check(text, WINDOWS).tree
    assert tree is not None, check(text, WINDOWS).problems
    return evaluate_over(tree, rows, at, JANUARY)


@pytest.mark.parametrize("example", NEIGHBOURS)
def test_examples_of_windows_are_true_in_every_row(example: str) -> None:
    assert [over_of(example, at).get() for at in range(len(GROUP))] == [True] * len(GROUP)


def test_a_number_of_very_many_places_is_zero() -> None:
    assert value_of('VALUE("1e-2147483647")') == 0


@pytest.mark.parametrize("month", range(1, 13))
def test_the_last_day_of_every_month(month: int) -> None:
    last = calendar.monthrange(2026, month)[1]
    assert str(value_of(f"EOMONTH(DATE(2026, {month}, 1), 0)")) == f"2026-{month:02}-{last}"


# --- what the tree says


@pytest.mark.parametrize("text", ["quantity BETWEEN 1 AND 5", "quantity NOT BETWEEN 1 AND 5"])
def test_a_range_has_its_text(text: str) -> None:
    assert result_of(text).text == text


def test_every_part_has_its_text_and_value() -> None:
    result = result_of('IF(status = "active", ROUND(amount * 0.9, 2), amount)')
    test, then, otherwise = result.parts
    assert (result.value, str(result.value)) == (Decimal("812.70"), "812.70")
    assert (test.text, test.text_with_values, test.value) == ('status = "active"', '"active" = "active"', True)
    assert (then.text, then.text_with_values) == ("ROUND(amount * 0.9, 2)", "ROUND(812.700, 2)")
    assert (otherwise.text, otherwise.reached) == ("amount", False)
    assert result.text == 'IF(status = "active", ROUND(amount * 0.9, 2), amount)'
    assert result.text_with_values == "IF(TRUE, 812.70, amount)"


def test_conversions_are_not_shown() -> None:
    result = result_of("quantity / 2 > 1.25")
    quotient, _ = result.parts
    assert [part.text for part in quotient.parts] == ["quantity", "2"]
    assert quotient.value == Decimal("1.5")


def test_selectors_are_spelled_out() -> None:
    assert result_of("{{large}} AND paid").text == '(amount > 1000 OR status = "active") AND paid'


def test_joined_columns_have_their_alias() -> None:
    assert result_of("fx.rate").text == "fx.rate"
    assert value_of("amount * fx.rate") == Decimal("451.5")


def test_the_run_says_what_time_it_is() -> None:
    assert str(value_of("NOW()")) == "2026-02-03 08:00:00"
    assert value_of("TODAY()") == day_of(date(2026, 2, 3))
    assert value_of("RUN_PERIOD()") == "2026-01"
    assert value_of("PERIOD_END() - PERIOD_START()") == 30


def test_times_are_in_utc() -> None:
    assert str(value_of("shipped_at")) == "2026-01-31 08:00:00"
    assert value_of('shipped_at = "2026-01-31T08:00:00Z"') is True


def test_an_aggregate_keeps_the_values_of_its_rows() -> None:
    result = total_of("SUM(amount) / COUNT(*)")
    total, count = result.parts
    assert result.value == Decimal("10.1666666667")
    assert total.rows == (Decimal("10.50"), Decimal("20.00"), None)
    assert (count.value, count.rows) == (3, ())
    assert result.text_with_values == "30.50 / 3"


def test_a_key_of_a_group_is_that_of_its_rows() -> None:
    assert total_of('region & "-" & COUNT(*)').value == "N-3"


def test_a_window_shows_its_keys_and_what_it_is_made_of() -> None:
    result = over_of("amount / SUM(amount) OVER (PARTITION BY region ORDER BY quantity DESC)", 1)
    _, total = result.parts
    assert (total.value, total.rows) == (Decimal(20), (Decimal(20),))
    assert [part.text for part in total.parts] == ["amount", "region", "quantity"]
    assert total.text == "SUM(amount) OVER (PARTITION BY region ORDER BY quantity DESC)"
    assert total.text_with_values == 'SUM(20.00) OVER (PARTITION BY "N" ORDER BY 2 DESC)'
    assert over_of("SUM(amount) OVER (PARTITION BY region ORDER BY quantity DESC)", 0).rows == (20, Decimal("10.50"))


def values_over(text: str, rows: list[Row]) -> list[object]:
    return [over_of(text, at, rows).get() for at in range(len(rows))]


def test_peers_are_counted_together_and_ties_go_by_the_order_of_the_rows() -> None:
    rows: list[Row] = [{"quantity": each, "status": text} for each, text in ((2, "a"), (None, "b"), (2, "c"), (1, "d"))]
    assert values_over("SUM(quantity) OVER (ORDER BY quantity)", rows) == [5, None, 5, 1]
    assert values_over("COUNT(*) OVER (ORDER BY quantity DESC)", rows) == [2, 4, 2, 3]
    assert values_over("ROW_NUMBER() OVER (ORDER BY quantity)", rows) == [3, 1, 4, 2]
    assert values_over("ROW_NUMBER() OVER (ORDER BY quantity DESC)", rows) == [1, 4, 2, 3]
    assert values_over("RANK() OVER (ORDER BY quantity DESC)", rows) == [1, 4, 1, 3]
    assert values_over("DENSE_RANK() OVER (ORDER BY quantity DESC)", rows) == [1, 3, 1, 2]
    assert values_over("LAG(status) OVER (ORDER BY quantity)", rows) == ["d", None, "a", "b"]
    assert values_over("LEAD(status, 2) OVER (ORDER BY quantity)", rows) == [None, "a", None, "c"]
    assert values_over("LAST(status) OVER (ORDER BY quantity)", rows) == ["c"] * 4
    assert values_over("FIRST(status) OVER (ORDER BY quantity DESC, status DESC)", rows) == ["c"] * 4


def test_null_is_one_partition() -> None:
    rows: list[Row] = [{"quantity": 1, "region": None}, {"quantity": 2, "region": None}, {"quantity": 4, "region": "N"}]
    assert values_over("SUM(quantity) OVER (PARTITION BY region)", rows) == [3, 3, 4]


def test_a_fault_in_a_row_of_the_window_is_one_of_the_window() -> None:
    rows: list[Row] = [{"notes": "1", "quantity": 1}, {"notes": "x", "quantity": 2}]
    assert {over_of("SUM(VALUE(notes)) OVER ()", at, rows).problem is not None for at in (0, 1)} == {True}
    apart = over_of("SUM(VALUE(notes)) OVER (PARTITION BY quantity)", 0, rows)
    assert apart.get() == 1


# --- faults


@pytest.mark.parametrize(("text", "code"), FAULTS)
def test_what_has_no_value_is_a_problem_of_a_run(text: str, code: str) -> None:
    result = result_of(text)
    assert result.problem is not None
    assert result.problem.code == code
    assert result.value is None
    with pytest.raises(RunFailed):
        result.get()


def test_a_fault_is_where_it_happened() -> None:
    result = result_of("1 + LEN(status) * 9223372036854775807")
    one, product = result.parts
    assert (one.problem, product.parts[0].value) == (None, 6)
    assert product.problem is result.problem is not None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("region = TO_TEXT(DATE(notes))", None),
        ("NOT paid AND DATE(notes) > TODAY()", False),
        ("paid OR DATE(notes) > TODAY()", True),
        ("quantity IN (3, TO_INTEGER(notes))", True),
        ("quantity BETWEEN 4 AND TO_INTEGER(notes)", False),
        ("IF(paid, 1, TO_INTEGER(notes))", 1),
        ("COALESCE(status, TO_TEXT(DATE(notes)))", "active"),
        ('SWITCH(status, "active", 1, "x", TO_INTEGER(notes))', 1),
    ],
)
def test_a_fault_that_does_not_matter_is_passed_over(text: str, value: object) -> None:
    assert value_of(text) == value


def test_a_fault_in_a_group_is_one_of_its_total() -> None:
    result = total_of("1 + SUM(VALUE(region))")
    assert result.problem is not None
    assert result.problem.code == "INVALID_NUMBER"


# --- edges


def test_deep_formulas_need_no_deep_recursion() -> None:
    text = "-(" * 45 + "quantity" + ")" * 45
    assert value_of(text) == -3


def test_numbers_have_the_places_of_their_type() -> None:
    assert str(value_of("amount")) == "903.00"
    assert str(value_of("amount - 903")) == "0.00"
    assert str(value_of("-amount * 0")) == "0.00"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("\N{ARABIC-INDIC DIGIT THREE}", 3),
        ("\N{FULLWIDTH DIGIT ONE}\N{FULLWIDTH DIGIT TWO}.5", Decimal("12.5")),
        ("\N{MATHEMATICAL BOLD DIGIT ONE}", None),
        ("0e2000000000", 0),
        ("1e-2000000000", 0),
        ("1e2000000000", None),
        ("1e99999999999", None),
        ("1e0000000000000005", 100_000),
        ("-0.00000000005", Decimal("-0.0000000001")),
        ("9" * 5000, None),
        ("0." + "9" * 5000, 1),
        ("\x001\x1f", 1),
        ("\N{NO-BREAK SPACE}1", None),
        ("1_0", None),
    ],
)
def test_numbers_are_read_as_java_reads_them(text: str, number: object) -> None:
    assert value_of("TRY_VALUE(notes)", notes=text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [("\x7f42\x00", 42), ("9" * 5000, None), ("0" * 5000 + "7", 7), ("+5", 5), ("-", None), ("٣", None), ("1.0", None)],
)
def test_integers_are_read_as_spark_reads_them(text: str, number: object) -> None:
    assert value_of("TRY_TO_INTEGER(notes)", notes=text) == number


def test_years_go_on_after_9999() -> None:
    assert str(value_of("order_date + 9000000")) == "+26667-04-01"
    assert str(value_of("DATE(-5, 3, 1) - 1")) == "-0005-02-28"
    assert value_of('TEXT(DATE(12026, 1, 5), "yy-MM")') == "26-01"
    assert str(value_of("EOMONTH(DATE(2000, 1, 31), 1)")) == "2000-02-29"


def test_days_are_counted_as_python_counts_them() -> None:
    for ordinal in range(1, date.max.toordinal(), 367):
        day = date.fromordinal(ordinal)
        assert day_of(day).number == ordinal - date(1970, 1, 1).toordinal()
        assert day_of(day).parts == (day.year, day.month, day.day)


def test_days_far_away_come_back() -> None:
    for number in range(-(2**31), 2**31, 104_729 * 97):
        assert Day.of(*Day(number).parts) == Day(number)


def test_a_moment_before_1970_belongs_to_its_day() -> None:
    assert str(Moment(-1)) == "1969-12-31 23:59:59.999999"


@pytest.mark.parametrize(
    ("text", "pattern", "like"),
    [
        ("", "", True),
        ("", "%", True),
        ("", "_", False),
        ("abc", "a%", True),
        ("abc", "%b%", True),
        ("abc", "a_c", True),
        ("abc", "_%_", True),
        ("ab", "_%_%_", False),
        ("a%c", "a%c", True),
        ("50\\%", "50\\%", True),
        ("a\nb", "a%b", True),
        ("abab", "%ab", True),
        ("aab", "a%ab", True),
        ("\N{GRINNING FACE}", "_", True),
    ],
)
def test_like(text: str, pattern: str, *, like: bool) -> None:
    assert is_like(text, pattern) is like


def test_like_is_quick_for_hard_patterns() -> None:
    assert not is_like("a" * 2000, "%a" * 200 + "b")


def test_letters() -> None:
    assert to_upper("stra\N{LATIN SMALL LETTER SHARP S}e \ua7cd") == "STRASSE \ua7cc"
    assert to_lower("ΑΣ ΑΣΑ \ua7cc") == "ας ασα \ua7cd"
    assert to_title("ΑΣ's ǆ ß İI  x") == "Ασ's ǅ Ss İi  X"
    assert to_title("") == ""


def test_a_value_of_another_kind_is_refused() -> None:
    with pytest.raises(TypeError):
        value_of("amount", amount=1.5)
