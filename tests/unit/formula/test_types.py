"""Types, what fits where, and the decimals of functions.md section 4 (C-27)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from dobonomodo.formula import Columns, Scope
from dobonomodo.formula.types import (
    BOOLEAN,
    DATE,
    DECIMAL,
    INTEGER,
    KEPT_SCALE,
    NULL,
    ROOMY_DIGITS,
    TEXT,
    TIMESTAMP,
    UNKNOWN,
    Arithmetic,
    DecimalType,
    Type,
    common_decimal,
    describe,
    fits,
    is_number,
    parse_type,
    type_product,
    type_quotient,
    type_sum,
    unify,
    unify_keys,
)
from tests.unit.formula.orders import columns_from, sql_in, type_in

SIMPLE = (TEXT, INTEGER, BOOLEAN, DATE, TIMESTAMP)


# --- Spark's documented result types, written down once more


def adjusted(precision: int, scale: int) -> DecimalType:
    """Beyond 38 digits those before the point are kept, and at most six behind it are safe."""
    if precision <= 38:
        return DecimalType(precision, scale)
    return DecimalType(38, max(38 - (precision - scale), min(scale, 6)))


def spark_sum(a: DecimalType, b: DecimalType) -> DecimalType:
    scale = max(a.scale, b.scale)
    return adjusted(max(a.whole, b.whole) + scale + 1, scale)


def spark_product(a: DecimalType, b: DecimalType) -> DecimalType:
    return adjusted(a.precision + b.precision + 1, a.scale + b.scale)


def spark_quotient(a: DecimalType, b: DecimalType) -> DecimalType:
    scale = max(6, a.scale + b.precision + 1)
    return adjusted(a.whole + b.scale + scale, scale)


@pytest.mark.parametrize(
    ("left", "right", "total", "times", "over"),
    [
        ((38, 18), (38, 18), (38, 17), (38, 6), (38, 6)),
        ((38, 10), (38, 10), (38, 9), (38, 6), (38, 6)),
        ((37, 10), (37, 10), (38, 10), (38, 6), (38, 6)),
        ((23, 10), (23, 10), (24, 10), (38, 11), (38, 15)),
        ((18, 2), (12, 8), None, (31, 10), (38, 14)),
        ((20, 0), (20, 0), None, None, (38, 18)),
        ((1, 0), (1, 0), None, None, (7, 6)),
    ],
)
def test_the_formulas_give_the_table_of_the_contract(
    left: tuple[int, int],
    right: tuple[int, int],
    total: tuple[int, int] | None,
    times: tuple[int, int] | None,
    over: tuple[int, int],
) -> None:
    a, b = DecimalType(*left), DecimalType(*right)
    assert total is None or spark_sum(a, b) == DecimalType(*total)
    assert times is None or spark_product(a, b) == DecimalType(*times)
    assert spark_quotient(a, b) == DecimalType(*over)


EVERY = [DecimalType(precision, scale) for precision in range(1, 39) for scale in range(precision + 1)]
SOME = [
    kind
    for kind in EVERY
    if kind.precision in (1, 9, 15, 18, 28, 37, 38) and (kind.scale % 6 in (0, 5) or kind.scale in (10, kind.precision))
]

Typing = Callable[[DecimalType, DecimalType], Arithmetic]
SparkTyping = Callable[[DecimalType, DecimalType], DecimalType]


@pytest.mark.parametrize(
    ("ours", "theirs"), [(type_sum, spark_sum), (type_product, spark_product), (type_quotient, spark_quotient)]
)
def test_narrowed_operands_give_the_promised_type(ours: Typing, theirs: SparkTyping) -> None:
    for left, right in product(SOME, SOME):
        types = ours(left, right)
        for kind in (types.left, types.right, types.result):
            assert 1 <= kind.precision <= 38, (left, right)
            assert 0 <= kind.scale <= kind.precision, (left, right)
        assert theirs(types.left, types.right) == types.result, (left, right)


def test_the_digits_of_the_contract() -> None:
    assert (KEPT_SCALE, ROOMY_DIGITS) == (10, 13)
    assert (DECIMAL.precision, DECIMAL.scale) == (38, 10)


def test_sums_and_differences_are_exact_as_long_as_they_fit() -> None:
    for left, right in product(SOME, SOME):
        types = type_sum(left, right)
        whole, scale = max(left.whole, right.whole), max(left.scale, right.scale)
        if whole + scale < 38:
            assert (types.left, types.right) == (left, right)
            assert types.result == DecimalType(whole + 1 + scale, scale)
        else:
            # As many places as leave 13 digits before the point and one more for the carry.
            kept = min(scale, 24)
            assert types.result == DecimalType(min(whole + 1, 38 - kept) + kept, kept)
            assert types.left == DecimalType(_precision(left, types.result), min(left.scale, 24))
            assert types.right == DecimalType(_precision(right, types.result), min(right.scale, 24))


def _precision(operand: DecimalType, result: DecimalType) -> int:
    """The digits that an operand keeps: all but those that the sum has no room for."""
    return max(1, min(operand.whole, result.whole - 1) + min(operand.scale, result.scale))


@pytest.mark.parametrize(
    ("left", "right", "exact"),
    [
        # 37 digits of the widest operand, and one for the carry: the last types that are not touched.
        ("decimal(37,10)", "decimal(37,10)", True),
        ("decimal(37,0)", "decimal(10,0)", True),
        # More places than a sum keeps that does not fit: these do, to the last one.
        ("decimal(37,25)", "decimal(37,25)", True),
        ("decimal(37,37)", "decimal(1,1)", True),
        ("decimal(38,10)", "decimal(37,10)", False),
        ("decimal(37,0)", "decimal(11,1)", False),
        ("decimal(38,0)", "decimal(1,0)", False),
    ],
)
def test_the_boundary_of_exact_addition_and_subtraction(left: str, right: str, *, exact: bool) -> None:
    columns = columns_from(a=left, b=right)
    casts = [sql_in(text, Scope(columns=columns)).count("CAST") for text in ("a + b", "a - b", "b - a")]
    assert [count == 0 for count in casts] == [exact] * 3


def test_products_keep_every_digit_that_there_is_room_for() -> None:
    for left, right in product(SOME, SOME):
        types = type_product(left, right)
        scale = left.scale + right.scale
        room = 37 - left.whole - right.whole
        assert (types.left.scale, types.right.scale) == (left.scale, right.scale)
        if room >= min(scale, 10):
            # Nothing is narrowed, and the result has all places, or all that the digits before the point leave.
            assert (types.left, types.right) == (left, right)
            assert types.result.scale == min(scale, room)
        else:
            assert types.result == DecimalType(38, min(scale, 10))
            # One operand gives up digits only where the other has no use for them.
            assert types.left.whole + types.right.whole == 37 - types.result.scale
            assert types.left.whole >= min(left.whole, 13)
            assert types.right.whole >= min(right.whole, 13)


def test_quotients_keep_ten_digits() -> None:
    for left, right in product(SOME, SOME):
        types = type_quotient(left, right)
        assert types.result == DecimalType(38, 10)
        assert types.left.whole >= min(left.whole, 13)
        assert types.right.whole >= min(right.whole, 13)
        assert types.left.scale >= min(left.scale, 10)
        # The divisor keeps all places, or all that the digits of the dividend leave, and never less than 15.
        assert types.right.scale == min(right.scale, max(15, 28 - left.whole))


@pytest.mark.parametrize(
    ("formula", "kind"),
    [
        # Declared narrow, and narrow as long as it stays exact.
        ("a + a", "decimal(16,2)"),
        ("a * a", "decimal(31,4)"),
        ("a * r", "decimal(31,10)"),
        ("d + d", "decimal(38,10)"),
        ("d * d", "decimal(38,10)"),
        ("d / d", "decimal(38,10)"),
        ("1 / 3", "decimal(38,10)"),
        ("i / i", "decimal(38,10)"),
        ("i + i", "integer"),
        ("i * i", "integer"),
        ("i * a", "decimal(35,2)"),
        ("i + 0.5", "decimal(21,1)"),
        ("a * 0.07", "decimal(18,4)"),
        ("-d", "decimal(38,10)"),
        ("ROUND(d, 2)", "decimal(31,2)"),
        ("ROUND(a, -1)", "decimal(14,0)"),
        ("ROUND(i, -1)", "integer"),
        ("FLOOR(a)", "decimal(14,0)"),
        ("MOD(i, 7)", "integer"),
        ("IF(TRUE, a, i)", "decimal(21,2)"),
        ("COALESCE(d, 0)", "decimal(38,10)"),
    ],
)
def test_types_of_formulas(formula: str, kind: str) -> None:
    columns = columns_from(a="decimal(15,2)", r="decimal(15,8)", d="decimal", i="integer")
    assert type_in(formula, Scope(columns=columns)) == kind


@pytest.mark.parametrize(
    ("left", "right", "sql"),
    [
        # As the contract shows them.
        ("decimal", "decimal", "(CAST(`a` AS DECIMAL(37,10)) + CAST(`b` AS DECIMAL(37,10)))"),
        ("decimal(15,2)", "decimal(15,2)", "(`a` + `b`)"),
        ("integer", "decimal(15,2)", "(CAST(`a` AS DECIMAL(19,0)) + `b`)"),
    ],
)
def test_only_wide_operands_are_narrowed(left: str, right: str, sql: str) -> None:
    assert sql_in("a + b", Scope(columns=columns_from(a=left, b=right))) == sql


def test_an_operand_of_13_integer_digits_is_never_refused() -> None:
    columns = Columns({"a": DecimalType(38, 18), "b": DecimalType(38, 18)})
    for formula in ("a + b", "a - b", "a * b", "a / b"):
        assert int(type_in(formula, Scope(columns=columns)).partition(",")[2].rstrip(")")) >= KEPT_SCALE


# --- names of types


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("string", TEXT),
        ("Integer", INTEGER),
        (" boolean ", BOOLEAN),
        ("date", DATE),
        ("timestamp", TIMESTAMP),
        ("decimal", DECIMAL),
        ("decimal(15,2)", DecimalType(15, 2)),
        ("DECIMAL( 15 , 2 )", DecimalType(15, 2)),
        ("decimal(38,38)", DecimalType(38, 38)),
        ("decimal(39,2)", None),
        ("decimal(2,3)", None),
        ("decimal(0,0)", None),
        ("decimal(15)", None),
        ("float", None),
        ("", None),
        ("null", None),
    ],
)
def test_parse_type(text: str, kind: Type | None) -> None:
    assert parse_type(text) == kind


@pytest.mark.parametrize("kind", [*SIMPLE, DECIMAL, DecimalType(15, 2)])
def test_a_type_reads_back(kind: Type) -> None:
    assert parse_type(str(kind)) == kind


@pytest.mark.parametrize(
    ("kind", "sql"),
    [
        (TEXT, "STRING"),
        (INTEGER, "BIGINT"),
        (DECIMAL, "DECIMAL(38,10)"),
        (BOOLEAN, "BOOLEAN"),
        (DATE, "DATE"),
        (TIMESTAMP, "TIMESTAMP"),
        # A column of nothing but NULL becomes text.
        (NULL, "STRING"),
    ],
)
def test_spark_types(kind: Type, sql: str) -> None:
    assert kind.sql == sql


def test_numbers() -> None:
    assert [kind for kind in (*SIMPLE, NULL, DECIMAL) if is_number(kind)] == [INTEGER, DECIMAL]


@pytest.mark.parametrize("kind", [*SIMPLE, DECIMAL, NULL, UNKNOWN])
def test_every_type_has_words(kind: Type) -> None:
    assert describe(kind)


# --- coercions


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (INTEGER, DECIMAL),
        (INTEGER, DecimalType(5, 2)),
        (DATE, TIMESTAMP),
        (DecimalType(9, 2), DECIMAL),
        (UNKNOWN, DATE),
        (DATE, UNKNOWN),
    ]
    + [(NULL, kind) for kind in (*SIMPLE, DECIMAL)]
    + [(kind, kind) for kind in SIMPLE],
)
def test_what_fits(kind: Type, wanted: Type) -> None:
    assert fits(kind, wanted)


ALLOWED = {(INTEGER, DECIMAL), (DATE, TIMESTAMP)}


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [pair for pair in product((*SIMPLE, DECIMAL), repeat=2) if pair[0] != pair[1] and pair not in ALLOWED],
)
def test_nothing_else_fits(kind: Type, wanted: Type) -> None:
    assert not fits(kind, wanted)


@pytest.mark.parametrize(
    ("kinds", "common"),
    [
        ([], NULL),
        ([NULL, NULL], NULL),
        ([NULL, TEXT], TEXT),
        ([TEXT, NULL, TEXT], TEXT),
        ([INTEGER, INTEGER], INTEGER),
        ([INTEGER, DecimalType(15, 2)], DecimalType(21, 2)),
        ([DecimalType(15, 2), INTEGER], DecimalType(21, 2)),
        ([NULL, DecimalType(15, 2)], DecimalType(15, 2)),
        ([DecimalType(15, 2), NULL], DecimalType(15, 2)),
        ([DecimalType(15, 2), DecimalType(12, 8)], DecimalType(21, 8)),
        ([DECIMAL, DecimalType(38, 18)], DecimalType(38, 10)),
        ([DATE, TIMESTAMP], TIMESTAMP),
        ([TIMESTAMP, NULL, DATE], TIMESTAMP),
        ([TEXT, INTEGER], None),
        ([DATE, TEXT], None),
        ([BOOLEAN, INTEGER], None),
        ([TIMESTAMP, INTEGER], None),
        ([NULL, TEXT, DATE], None),
        ([TEXT, UNKNOWN], UNKNOWN),
        ([UNKNOWN, INTEGER, TEXT], UNKNOWN),
    ],
)
def test_unify(kinds: list[Type], common: Type | None) -> None:
    assert unify(kinds) == common


def test_keys_keep_every_place() -> None:
    wide, fine = DecimalType(38, 10), DecimalType(38, 30)
    assert unify_keys([wide, fine]) == unify_keys([fine, wide]) == fine
    assert unify_keys([INTEGER, DecimalType(15, 2)]) == DecimalType(21, 2)
    assert unify_keys([INTEGER, INTEGER]) == INTEGER
    assert unify_keys([DATE, TIMESTAMP]) == TIMESTAMP
    assert unify_keys([TEXT, INTEGER]) is None


def test_unified_decimals_hold_both() -> None:
    for left, right in product(SOME, SOME):
        common = unify([left, right])
        assert common == unify([right, left])
        whole, scale = max(left.whole, right.whole), max(left.scale, right.scale)
        if whole + scale <= 38:
            assert common == DecimalType(whole + scale, scale)
        else:
            assert common == DecimalType(38, min(scale, max(10, 38 - whole)))


def test_a_common_decimal_holds_every_value_of_both_or_there_is_none() -> None:
    for left, right in product(SOME, SOME):
        common = common_decimal((left, right))
        whole, scale = max(left.whole, right.whole), max(left.scale, right.scale)
        if whole + scale <= 38:
            assert common == DecimalType(whole + scale, scale)
        else:
            assert common is None
