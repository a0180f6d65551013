"""Texts become the numbers that Python's decimals make of them, or are refused."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Any

import pyarrow as pa
import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import INTEGER, DecimalType
from dobonomodo.storage.values import parse_values
from tests.searching import tries

EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")


def parse(kind: Type, *texts: str | None) -> tuple[list[Any], list[int]]:
    parsed = parse_values(pa.array(texts, pa.string()), kind)
    return parsed.values.to_pylist(), list(parsed.wrong)


def reference(text: str, kind: Type) -> Decimal | int | None:
    """What a text is by Python's decimals; None if it is not of the type."""
    text = text.strip()
    if kind == INTEGER:
        return int(text) if re.fullmatch(r"-?[0-9]+", text) and -(2**63) <= int(text) < 2**63 else None
    assert isinstance(kind, DecimalType)
    if not NUMBER.fullmatch(text):
        return None
    number = EXACT.create_decimal(text)
    unscaled = EXACT.scaleb(number, kind.scale)
    whole = EXACT.to_integral_value(unscaled)
    return number if unscaled == whole and whole.copy_abs() < 10**kind.precision else None


EDGES = [10**power + more for power in range(60) for more in (-1, 0, 1)] + [
    2**power + more for power in (31, 53, 63, 64, 127, 128, 129, 256) for more in (-2, -1, 0, 1, 2)
]


def _digits(source: random.Random) -> str:
    choice = source.random()
    if choice < 0.35:
        return str(source.choice(EDGES) * (10 ** source.randrange(30) if source.random() < 0.3 else 1))
    if choice < 0.45:
        return source.choice("09") * source.randrange(1, 160)
    return "".join(source.choices("0123456789", k=source.randrange(1, 48)))


def _number(source: random.Random) -> str:
    digits = "0" * source.randrange(50) * (source.random() < 0.2) + _digits(source)
    if source.random() < 0.6:
        at = source.randrange(len(digits) + 1)
        digits = f"{digits[:at]}.{digits[at:]}"
        digits += "0" * source.randrange(50) * (source.random() < 0.2)
    exponent = ""
    if source.random() < 0.25:
        exponent = f"{source.choice('eE')}{source.choice(('', '+', '-'))}{source.choice((source.randrange(45), source.randrange(1200)))}"
    return source.choice(("", "", "-", "-", "+")) + digits + exponent


def _texts(source: random.Random, kind: Type, count: int) -> Iterator[str]:
    for _ in range(count):
        if isinstance(kind, DecimalType) and source.random() < 0.3:
            # At the very edge of the type.
            unscaled = 10**kind.precision + source.choice((-2, -1, 0, 1)) - source.choice((0, 0, 10, 100))
            number = Decimal(source.choice((unscaled, -unscaled))).scaleb(-kind.scale, EXACT)
            yield source.choice((f"{number:f}", str(number), f"{number:f}0" if kind.scale else f"{number:f}.0"))
        elif source.random() < 0.02:
            yield source.choice(("NaN", "-Infinity", "", "1.2.3", "1__0", "0x1", "٣", "1e5e5", "-", "+-1", "1 000"))
        else:
            yield _number(source)


@pytest.mark.search
def test_every_number_is_exact_or_refused(record_property: Callable[[str, object], None]) -> None:
    kinds: list[Type] = [INTEGER, *(DecimalType(p, s) for p in range(1, 39) for s in range(p + 1))]
    count = tries(sample=40, full=1_400)
    source = random.Random(2**128 + 1)
    accepted = 0
    for kind in kinds:
        texts = list(_texts(source, kind, count))
        values, wrong = parse(kind, *texts)
        expected = [reference(text, kind) for text in texts]
        assert values == expected, next((t, v, e) for t, v, e in zip(texts, values, expected, strict=True) if v != e)
        assert wrong == [at for at, value in enumerate(expected) if value is None]
        # Texts that all fit take a shorter way.
        assert [parse(kind, text)[0][0] for text in texts[::40]] == expected[::40]
        accepted += len(texts) - len(wrong)
    record_property("texts", count * len(kinds))
    record_property("accepted", accepted)
    assert 0.1 < accepted / (count * len(kinds)) < 0.9
