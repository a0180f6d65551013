"""What is written in a formula arrives on Spark unchanged: texts, column names, numbers, dates and times."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dobonomodo.formula import Columns, Scope, check_formula, print_formula, render_formula, tree
from dobonomodo.formula.types import TEXT
from dobonomodo.problems import Passage
from tests.property.on_spark import Formula, budget, decode, encode, frame, same
from tests.property.reference import as_value
from tests.property.strategies import DAYS, MOMENTS, NUMERALS, RUN, TEXTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SPECIAL = "\\'\"`${}%_-*/\n\r\t\b\x00\x1a0127xuU\N{GRINNING FACE}\N{RIGHT-TO-LEFT OVERRIDE}\N{COMBINING ACUTE ACCENT}"
some_texts = st.one_of(st.text(), st.text(_SPECIAL), st.text(_SPECIAL, min_size=3, max_size=6))
PIECES = (
    "${env:HOME}",
    "${spark.app.name}",
    "$${x}",
    "\\${x}",
    "\\u0024{x}",
    "\\u0041",
    "\\U0001F600",
    "\\x41",
    "\\101",
    "\\012",
    "\x00012",
    "\x007",
    "\x00\x00",
    "\\0",
    "\\Z",
    "\\%",
    "\\_",
    "\\",
    "\\\\",
    "\\'",
    "'",
    "''",
    "'''",
    '"',
    '""',
    "a' 'b",
    "') OR ('1'='1",
    "--",
    "/*+ HINT */",
    "{{ACTIVE}}",
    "\r\n",
    "\u2028",
    "\x1a",
    "\ufeff",
    "\uffff",
    "\U0010ffff",
    "\N{ZERO WIDTH JOINER}",
)


def gather(strategy: st.SearchStrategy[str], count: int) -> list[str]:
    """Many values of a strategy."""
    found: list[str] = []

    @settings(max_examples=count, phases=[Phase.generate], database=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def collect(value: str) -> None:
        found.append(value)

    collect()
    return found


def check(text: str, scope: Scope | None = None) -> Formula:
    checked = check_formula(Passage.alone(text), scope or Scope())
    assert checked.tree is not None, (text, checked.problems)
    return Formula(text, checked.tree)


def on_spark(spark: SparkSession, formulas: list[Formula]) -> list[object]:
    """The value of each formula, computed for a row rather than folded into a constant for all."""
    found: list[object] = []
    for at in range(0, len(formulas), 400):
        part = formulas[at : at + 400]
        columns = [
            f"{encode(render_formula(each.node, RUN), each.node.type)} AS `r{at}`" for at, each in enumerate(part)
        ]
        row = spark.range(1).selectExpr(*columns).collect()[0]
        found += [decode(value, each.node.type) for value, each in zip(row, part, strict=True)]
    return found


def test_texts(spark: SparkSession) -> None:
    texts = [*TEXTS, *PIECES, *NUMERALS, *gather(some_texts, 4 * budget(share=1))]
    texts += [one + other for one in PIECES for other in ("0", "12", "{x}", "'", "u0041")]
    double = [check('"' + text.replace('"', '""') + '"') for text in texts]
    single = [check("'" + text.replace("'", "''") + "'") for text in texts]
    for written in (double, single):
        got = on_spark(spark, written)
        assert [(text, each) for text, each in zip(texts, got, strict=True) if text != each] == []


def test_texts_inside_other_expressions(spark: SparkSession) -> None:
    texts = [*TEXTS, *PIECES]
    quoted = ['"' + text.replace('"', '""') + '"' for text in texts]
    scope = Scope(columns=Columns({"x": TEXT}))
    for template, row in (
        ("CONTAINS(x, {0})", "before {0} after"),
        ("x LIKE '%' & {0} & '%' OR CONTAINS({0}, '%') OR CONTAINS({0}, '_')", "before {0} after"),
        ("x IN ({0}, 'other')", "{0}"),
        ("SWITCH(x, {0}, TRUE, FALSE)", "{0}"),
        ("REPLACE(x, {0}, '') = '<>' OR {0} = ''", "<{0}>"),
    ):
        formulas = [check(template.replace("{0}", each), scope) for each in quoted]
        data = frame(spark, [{"x": row.replace("{0}", text)} for text in texts], {"x": TEXT})
        columns = [
            f"CASE WHEN `_at` = {at} THEN {render_formula(each.node, RUN)} END AS `r{at}`"
            for at, each in enumerate(formulas)
        ]
        found = data.selectExpr("`_at`", *columns).collect()
        assert [texts[row[0]] for row in found if row[row[0] + 1] is not True] == [], template


def test_column_names(spark: SparkSession) -> None:
    names = [name for name in (*TEXTS, *PIECES, *gather(some_texts, budget(share=1))) if name and "${" not in name]
    distinct = list({name.casefold(): name for name in names}.values())
    distinct = list({name.lower(): name for name in distinct}.values())
    types = dict.fromkeys(distinct, TEXT)
    scope = Scope(columns=Columns(types))
    formulas = [check("`" + name.replace("`", "``") + "`", scope) for name in distinct]
    data = frame(spark, [{name: f"value of {name}" for name in distinct}], types)
    row = data.selectExpr(
        *(f"{render_formula(each.node, RUN)} AS `r{at}`" for at, each in enumerate(formulas))
    ).collect()[0]
    assert [name for name, value in zip(distinct, row, strict=True) if value != f"value of {name}"] == []


def _exact(value: object) -> Fraction:
    assert isinstance(value, int | Decimal)
    return Fraction(value)


def test_numbers(spark: SparkSession) -> None:
    digits = [
        f"{'9876543210' * 4}"[: whole + scale][:whole] + ("." + ("1234567890" * 4)[:scale] if scale else "")
        for whole in range(1, 39)
        for scale in range(39 - whole)
    ]
    digits += [
        "0",
        "0.0",
        "0.00",
        "0." + "0" * 37,
        "0." + "0" * 36 + "1",
        "0." + "9" * 38,
        "000.5",
        "9" * 38,
        "1e37",
        "1e-38",
        "12.50e1",
        "5%",
        "0.5%",
    ]
    digits += ["9223372036854775807", "9223372036854775808", "9223372036854775809"]
    formulas = [check(sign + each) for each in digits for sign in ("", "-")]
    wanted = [Fraction(sign + each.rstrip("%")) / (100 if "%" in each else 1) for each in digits for sign in ("", "-")]
    got = on_spark(spark, formulas)
    pairs = zip(formulas, got, wanted, strict=True)
    assert [(each.text, value) for each, value, number in pairs if _exact(value) != number] == []
    columns = [f"{render_formula(each.node, RUN)} AS `r{at}`" for at, each in enumerate(formulas)]
    schema = spark.range(1).selectExpr(*columns).schema
    types = [
        (each.text, field.dataType.simpleString(), each.node.type.sql.lower())
        for each, field in zip(formulas, schema, strict=True)
    ]
    assert [each for each in types if each[1] != each[2]] == []


def test_dates_and_times(spark: SparkSession) -> None:
    days = [(each, check(f'DATE("{each.isoformat()}")')) for each in DAYS]
    times = [
        (
            each,
            check(
                f'IF(NOW() > "{each.isoformat()}", NOW() = "{each.isoformat()}", NOW() = "{each.isoformat()}") = FALSE'
            ),
        )
        for each in MOMENTS
    ]
    got = on_spark(spark, [formula for _, formula in (*days, *times)])
    assert all(same(value, as_value(day)) for value, (day, _) in zip(got, days, strict=False))  # type: ignore[arg-type]
    assert got[len(days) :] == [True] * len(times)


def test_the_clock(spark: SparkSession) -> None:
    from dataclasses import replace

    now = check("NOW()")
    columns = [
        f"{encode(render_formula(now.node, replace(RUN, started_at=each)), now.node.type)} AS `r{at}`"
        for at, each in enumerate(MOMENTS)
    ]
    row = spark.range(1).selectExpr(*columns).collect()[0]
    assert [decode(value, now.node.type) for value in row] == [as_value(each) for each in MOMENTS]
    assert datetime(1, 1, 1, tzinfo=UTC) in MOMENTS


def test_printed_texts_stay_what_they_are() -> None:
    for text in (*TEXTS, *PIECES):
        assert check(print_formula(tree.Text(text))).node.value == text  # type: ignore[union-attr]
