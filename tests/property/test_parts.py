"""The parts of any amount add up, by the nodes that a plan has for them; no number on the way is rounded."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dobonomodo.plan.shares import TOTAL_DIGITS, amount_digits
from tests.unit.plan.parts import EXACT, part


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), st.sampled_from([1, 10, 11, 19, 27]), st.integers(0, 10), st.sampled_from([11, 15, 18, 25, 38]))
def test_parts_add_up_and_no_number_on_the_way_is_rounded(
    data: st.DataObject, digits: int, places: int, wide: int
) -> None:
    limit = min(10**digits, 10 ** (TOTAL_DIGITS - 1)) - 1
    drivers = data.draw(st.lists(st.integers(0, limit), min_size=1, max_size=8).filter(any))
    most = 10 ** min(amount_digits(places), wide) - 1
    units = data.draw(st.integers(-most, most))
    amount = EXACT.scaleb(Decimal(units), -places)
    parts = part(amount, drivers, places=places, digits=digits, wide=wide)
    assert sum(map(Fraction, parts)) == Fraction(amount)
    for found, driver in zip(parts, drivers, strict=True):
        assert abs(Fraction(found) - Fraction(amount) * driver / sum(drivers)) < Fraction(1, 10**places)
