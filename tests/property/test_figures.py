"""Figures are recorded, compared and shared out to the last digit."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from dobonomodo.runs.attribution import round_parts, scale_of, share_out
from dobonomodo.runs.comparison import compare
from dobonomodo.runs.figures import Figures
from tests.unit.runs.making import WIDE, make_figures


@given(st.integers(0, 3), st.lists(st.integers(-(10**12), 10**12), min_size=8, max_size=8), st.integers(0, 6))
@settings(max_examples=60)
def test_parts_add_up_to_the_whole(factors: int, values: list[int], scale: int) -> None:
    def value(taken: frozenset[int]) -> Fraction:
        return Fraction(values[sum(1 << at for at in taken)], 10**scale)

    parts = share_out(factors, value)
    whole = value(frozenset(range(factors))) - value(frozenset())
    assert sum(parts, Fraction(0)) == whole
    rounded = round_parts(parts, scale=scale)
    assert sum(map(Fraction, rounded), Fraction(0)) == whole
    assert all(abs(Fraction(one) - other) < Fraction(1, 10**scale) for one, other in zip(rounded, parts, strict=True))
    assert scale_of(rounded) <= scale


amounts = st.none() | st.decimals(allow_nan=False, allow_infinity=False, places=10, min_value=-WIDE, max_value=WIDE)


@given(st.dictionaries(st.text(), amounts))
def test_what_is_recorded_is_read_again_to_the_last_digit(totals: dict[str, Decimal | None]) -> None:
    figures = make_figures(totals)
    read = Figures.load(json.loads(json.dumps(figures.document())))
    assert read == figures
    assert read.document() == figures.document()


wide = st.decimals(
    allow_nan=False, allow_infinity=False, places=10, min_value=Decimal(-(10**28)), max_value=Decimal(10**28)
)


@given(wide, wide)
def test_differences_agree_with_fractions(now: Decimal, before: Decimal) -> None:
    found = compare(now, before)
    assert found.difference is not None
    assert Fraction(found.difference) == Fraction(now) - Fraction(before)
    if found.percent is not None:
        exact = (Fraction(now) - Fraction(before)) * 100 / abs(Fraction(before))
        assert abs(Fraction(found.percent) - exact) <= Fraction(1, 20)
