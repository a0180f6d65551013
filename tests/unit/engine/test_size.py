"""Small inputs, and the heap of Java."""

from __future__ import annotations

import pytest

from dobonomodo.engine.size import InputSize, available_megabytes, heap_megabytes

MEGABYTE = 1 << 20


@pytest.mark.parametrize(
    ("size", "small"),
    [
        (InputSize(0, 0), True),
        (InputSize(31 * MEGABYTE, 249_999), True),
        (InputSize(25 * MEGABYTE, 2_900_000), False),
        (InputSize(40 * MEGABYTE, 10), False),
    ],
)
def test_small_inputs_have_few_bytes_and_few_rows(size: InputSize, *, small: bool) -> None:
    assert size.is_small is small


@pytest.mark.parametrize(
    ("megabytes", "available", "heap"),
    [
        (0, 16_000, 2048),
        (40, 16_000, 3008),
        (10_000, 64_000, 8192),
        (10_000, 8_000, 4000),
        (10_000, 500, 2048),
        (None, 64_000, 8192),
        (None, 6_000, 3000),
    ],
)
def test_the_heap_follows_inputs_and_free_memory(megabytes: int | None, available: int, heap: int) -> None:
    size = InputSize(megabytes * MEGABYTE, 1) if megabytes is not None else None
    assert heap_megabytes(size, available) == heap


def test_some_memory_is_available() -> None:
    assert available_megabytes() > 100
