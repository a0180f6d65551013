from __future__ import annotations

from decimal import Decimal

import pytest

from dobonomodo.model.locale import ENGLISH, LOCALES


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("en", "-1,234,567.80"), ("de", "-1.234.567,80"), ("de-CH", "-1\u2019234\u2019567.80"),
        ("fr", "-1\u202f234\u202f567,80"), ("sv", "-1\u00a0234\u00a0567,80"), ("it", "-1.234.567,80"),
    ],
)  # fmt: skip
def test_signs_of_a_locale(name: str, shown: str) -> None:
    assert LOCALES[name].show(Decimal("-1234567.80")) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"), (999, "999"), (-1000, "-1,000"), (Decimal("0.00"), "0.00"), (Decimal("1E+3"), "1,000"),
        (Decimal("9" * 28 + "." + "9" * 10), ",".join(["9", *["999"] * 9]) + "." + "9" * 10),
        (Decimal("-1E-38"), "-0." + "0" * 37 + "1"),
    ],
)  # fmt: skip
def test_no_digit_is_lost(value: Decimal | int, shown: str) -> None:
    assert ENGLISH.show(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(5, "+5"), (-5, "-5"), (0, "0"), (Decimal("0.00"), "0.00")])
def test_a_change_has_its_sign(value: Decimal | int, shown: str) -> None:
    assert ENGLISH.show_change(value) == shown
